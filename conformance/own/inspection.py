"""What is no call on arrays: dtype functions, the namespace's account of itself, dtype objects."""

from collections.abc import Callable

import numpy as np

from conformance import spec
from conformance.libraries import Library
from conformance.own.check import Check, Mismatch, Options

KINDS = {
    "bool": spec.BOOL,
    "signed integer": spec.SIGNED,
    "unsigned integer": spec.UNSIGNED,
    "integral": spec.INTEGER,
    "real floating": spec.REAL_FLOATING,
    "complex floating": spec.COMPLEX,
    "numeric": spec.CATEGORIES["numeric"],
}


def demand(found: object, wanted: object, what: str) -> None:
    """Raise Mismatch unless two things are equal."""
    if found != wanted:
        raise Mismatch(f"{what} is {found!r}, expected {wanted!r}")


def result_type(library: Library) -> None:
    """The promotion table, of dtypes, of arrays, and with Python numbers."""
    function = library.get("result_type")
    for pair, wanted in spec.facts()["promotion"].items():
        a, b = pair.split(",")
        if {a, b} <= set(library.dtypes):
            x = library.array(np.ones((2,), a))
            found = function(library.dtype(a), library.dtype(b))
            demand(library.dtype_name(found), wanted, f"result_type({a}, {b})")
            found = function(x, library.dtype(b))
            demand(library.dtype_name(found), wanted, f"result_type(array of {a}, {b})")
    x = library.array(np.ones((2,), "float32"))
    demand(library.dtype_name(function(x, 1.0)), "float32", "result_type(float32, 1.0)")
    demand(library.dtype_name(function(x, 1j)), "complex64", "result_type(float32, 1j)")
    i = library.array(np.ones((2,), "int8"))
    demand(library.dtype_name(function(i, 1)), "int8", "result_type(int8, 1)")


def can_cast(library: Library) -> None:
    """What promotion can turn a dtype into."""
    function = library.get("can_cast")
    names = list(library.dtypes)
    for a in names:
        for b in names:
            wanted = spec.promote(a, b)
            if wanted is not None:
                found = function(library.dtype(a), library.dtype(b))
                demand(bool(found), wanted == b, f"can_cast({a}, {b})")
    x = library.array(np.ones((2,), "int8"))
    demand(bool(function(x, library.dtype("int16"))), True, "can_cast(array of int8, int16)")


def isdtype(library: Library) -> None:
    """Every dtype, every kind, and tuples of kinds."""
    function = library.get("isdtype")
    for name in library.dtypes:
        d = library.dtype(name)
        for kind, members in KINDS.items():
            demand(bool(function(d, kind)), name in members, f"isdtype({name}, {kind!r})")
        for other in library.dtypes:
            found = bool(function(d, library.dtype(other)))
            demand(found, name == other, f"isdtype({name}, {other})")
        found = bool(function(d, ("bool", "real floating")))
        demand(found, name in spec.BOOL + spec.REAL_FLOATING, f"isdtype({name}, (bool, real))")


def finfo(library: Library) -> None:
    """Limits of floats, also for complex dtypes and arrays."""
    function = library.get("finfo")
    for name in spec.REAL_FLOATING + spec.COMPLEX:
        if name not in library.dtypes:
            continue
        wanted = np.finfo(name)
        for given in (library.dtype(name), library.array(np.ones((1,), name))):
            found = function(given)
            for field in ("bits", "eps", "max", "min", "smallest_normal"):
                value = getattr(found, field)
                demand(float(value), float(getattr(wanted, field)), f"finfo({name}).{field}")
                if field != "bits" and not isinstance(value, float):
                    raise Mismatch(f"finfo({name}).{field} is a {type(value).__name__}, no float")
            demand(library.dtype_name(found.dtype), str(wanted.dtype), f"finfo({name}).dtype")


def iinfo(library: Library) -> None:
    """Limits of integers."""
    function = library.get("iinfo")
    for name in spec.INTEGER:
        if name in library.dtypes:
            wanted = np.iinfo(name)
            for given in (library.dtype(name), library.array(np.ones((1,), name))):
                found = function(given)
                for field in ("bits", "max", "min"):
                    value = getattr(found, field)
                    demand(int(value), int(getattr(wanted, field)), f"iinfo({name}).{field}")
                demand(library.dtype_name(found.dtype), name, f"iinfo({name}).dtype")


def _info(library: Library) -> object:
    return library.get("__array_namespace_info__")()


def capabilities(library: Library) -> None:
    """The three capabilities, honest about data-dependent shapes."""
    found = _info(library).capabilities()
    for key in ("boolean indexing", "data-dependent shapes", "max dimensions"):
        if key not in found:
            raise Mismatch(f"capabilities() has no {key!r}")
    x = library.array(np.array([0.0, 1.0]))
    for key, act in (
        ("data-dependent shapes", lambda: library.get("nonzero")(x)),
        ("boolean indexing", lambda: x[x > 0]),
    ):
        try:
            act()
            works = True
        except Exception:
            works = False
        demand(bool(found[key]), works, f"capabilities()[{key!r}]")


def devices(library: Library) -> None:
    """The default device is one of the devices, and arrays can be put on each."""
    info = _info(library)
    found = list(info.devices())
    default = info.default_device()
    if default is not None and default not in found:
        raise Mismatch(f"the default device {default!r} is not among {found!r}")
    for device in found:
        library.get("zeros")((1,), device=device)


def default_dtypes(library: Library) -> None:
    """Four kinds, which are what creation functions use."""
    found = _info(library).default_dtypes()
    for key in ("real floating", "complex floating", "integral", "indexing"):
        if key not in found:
            raise Mismatch(f"default_dtypes() has no {key!r}")
    for key, value in (("real floating", 1.0), ("complex floating", 1j), ("integral", 1)):
        made = library.get("asarray")(value).dtype
        if made != found[key]:
            raise Mismatch(f"asarray({value}) has dtype {made}, not the default {found[key]}")
    place = library.get("argmax")(library.array(np.ones((2,)))).dtype
    if place != found["indexing"]:
        raise Mismatch(f"argmax has dtype {place}, not the default {found['indexing']}")


def info_dtypes(library: Library) -> None:
    """The dtypes of each kind, by name."""
    info = _info(library)
    for kind, members in {**KINDS, None: spec.DTYPES}.items():
        found = info.dtypes(kind=kind)
        wanted = {name for name in members if name in library.dtypes}
        demand(set(found), wanted, f"dtypes(kind={kind!r})")
        for name, d in found.items():
            if d != library.dtype(name):
                raise Mismatch(f"dtypes()[{name!r}] is {d!r}, not the namespace's")
    found = info.dtypes(kind=("bool", "complex floating"))
    wanted = {n for n in spec.BOOL + spec.COMPLEX if n in library.dtypes}
    demand(set(found), wanted, "dtypes(kind=('bool', 'complex floating'))")


def dtype_equality(library: Library) -> None:
    """A dtype equals itself alone, and comparing never raises."""
    for a in library.dtypes:
        for b in library.dtypes:
            found = library.dtype(a) == library.dtype(b)
            demand(bool(found), a == b, f"{a} == {b}")
        for other in ("no dtype", 7, object()):
            demand(bool(library.dtype(a) == other), False, f"{a} == {other!r}")


def namespace_of_array(library: Library) -> None:
    """An array leads to a namespace with the functions that made it."""
    x = library.array(np.ones((2,)))
    found = x.__array_namespace__()
    if not hasattr(found, "asarray") or not hasattr(found, "matmul"):
        raise Mismatch(f"__array_namespace__() gives {found!r}")


ASKED: dict[str, Callable[[Library], None]] = {
    "result_type": result_type, "can_cast": can_cast, "isdtype": isdtype, "finfo": finfo,
    "iinfo": iinfo, "capabilities": capabilities, "devices": devices, "default_device": devices,
    "default_dtypes": default_dtypes, "dtypes": info_dtypes,
    "__array_namespace__": namespace_of_array,
}  # fmt: skip


def ask_inspection(library: Library, check: Check, options: Options) -> None:
    """The facts that a namespace states are the standard's."""
    (dtype_equality if check.detail else ASKED[check.entry])(library)


def checks() -> list[Check]:
    """Return the checks of this module."""
    found = [Check(spec.function(key).chapter, key, "values", ask_inspection) for key in ASKED]
    return [*found, Check("data types", "__eq__", "values", ask_inspection, "of dtypes")]
