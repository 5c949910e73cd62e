"""Names: every entry of the standard is where it belongs, and constants have their values."""

import math

import numpy as np

from conformance import spec
from conformance.libraries import Library, Missing
from conformance.own.check import Check, Mismatch, Options

CONSTANTS = {"e": math.e, "pi": math.pi, "inf": math.inf, "nan": math.nan, "newaxis": None}


def owner(library: Library, entry: spec.Entry) -> object:
    """Return the object that has to have a name."""
    if entry.group in ("linalg", "fft"):
        return library.get(entry.group)
    if entry.group == "info" and entry.name != "__array_namespace_info__":
        return library.get("__array_namespace_info__")()
    if entry.group.startswith(("array_", "operator_")):
        return library.array(np.ones((2, 2)))
    if entry.group == "dtype_object":
        return library.dtype("float64")
    return library.xp


def ask_name(library: Library, check: Check, options: Options) -> None:
    """The name exists."""
    entry = next(e for e in spec.entries() if check_id(e) == check.id)
    if entry.group == "dtype":
        library.dtype(entry.name)
        return
    name = entry.name
    if entry.group == "operator_inplace":
        base = f"__{name[3:]}"
        name = name if hasattr(owner(library, entry), name) else base  # Python falls back on it
    if not hasattr(owner(library, entry), name):
        raise Missing(f"{entry.key} is missing")
    if entry.name in CONSTANTS and entry.group == "constant":
        found, wanted = getattr(library.xp, entry.name), CONSTANTS[entry.name]
        if found != wanted and not (entry.name == "nan" and math.isnan(found)):
            raise Mismatch(f"{entry.name} is {found!r}, expected {wanted!r}")
    if entry.name == "__array_api_version__" and library.xp.__array_api_version__ < spec.VERSION:
        raise Mismatch(f"the version is {library.xp.__array_api_version__}, not {spec.VERSION}")


def check_id(entry: spec.Entry) -> str:
    """The id of the name check of an entry."""
    return Check(entry.chapter, entry.key, "name", ask_name, _detail(entry)).id


def _detail(entry: spec.Entry) -> str:
    return "of a dtype" if entry.group == "dtype_object" else ""


def checks() -> list[Check]:
    """Return a check for every entry."""
    return [Check(e.chapter, e.key, "name", ask_name, _detail(e)) for e in spec.entries()]
