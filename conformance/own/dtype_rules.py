"""The dtype of a result, from those of the arguments: the rules that the facts name."""

import numpy as np

from conformance import spec
from conformance.libraries import Library
from conformance.own.recipes import Case

REAL_OF = {"complex64": "float32", "complex128": "float64"}
COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}


def expected_dtypes(entry: spec.Entry, case: Case, library: Library) -> list[str] | None:
    """Return the dtypes of the results, one for all or one for each; None without a rule."""
    rule = entry.out_dtype
    if rule is None or rule == "not_an_array" or case.plain:
        if entry.kind == "operator" or entry.name in ("T", "mT", "to_device"):
            return _operator(entry, case)
        return None
    if rule == "each_same_as_own_input":
        return list(case.inputs())
    if rule.startswith("tuple("):
        names = rule[6:-1].split(",")
        return [one(name, case, library) for name in names if name != "..."]
    out = one(rule, case, library)
    return None if out is None else [out]


def _operator(entry: spec.Entry, case: Case) -> list[str] | None:
    out = spec.promote(*case.inputs())
    return None if out is None else [out]


def one(rule: str, case: Case, library: Library) -> str | None:
    """Return the dtype that one rule gives."""
    inputs = case.inputs()
    given = case.kwargs.get("dtype")
    first = inputs[0] if inputs else None
    if rule.startswith("dtype_param"):
        return _asked(rule, given, first, library)
    if rule == "accumulate":
        return str(given) if given else accumulated(first, library)
    if rule in ("promote", "promote_floating"):
        return spec.promote(*inputs)
    if rule in ("real_component_or_same", "real_floating_of_precision"):
        return REAL_OF.get(first, first)
    if rule == "complex_of_precision":
        return COMPLEX_OF.get(first, first)
    return {
        "same_as_first": first,
        "bool": "bool",
        "default_index": library.defaults["indexing"],
        "default_int": library.defaults["integral"],
    }.get(rule)


def _asked(rule: str, given: object, first: str | None, library: Library) -> str | None:
    """The dtype asked for, or the default of the rule."""
    if given is not None:
        return str(given)
    if rule in ("dtype_param", "dtype_param_or_infer") or rule.endswith("same_as_first"):
        return first
    if rule.endswith("default_float") or rule.endswith("default_float_or_complex"):
        return library.defaults["real floating"]
    kind = np.dtype(first).kind if first else "f"
    names = {"i": "integral", "f": "real floating", "c": "complex floating"}
    return library.defaults[names[kind]] if kind in names else first


def accumulated(dtype: str, library: Library) -> str:
    """Return the dtype of a sum: integers take at least the default size, others stay."""
    default = library.defaults["integral"]
    found = np.dtype(dtype)
    if found.kind not in "iu" or found.itemsize > np.dtype(default).itemsize:
        return dtype
    return default if found.kind == "i" else f"u{default}"
