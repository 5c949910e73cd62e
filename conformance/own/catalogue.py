"""All checks for a library, in the order in which they are run."""

from collections.abc import Sequence

from conformance import spec
from conformance.libraries import Library
from conformance.own import inspection, lazy, names, scalars, signatures, special, values
from conformance.own.check import Check
from conformance.own.draw import Fixed
from conformance.own.recipes import RECIPES


def generic() -> list[Check]:
    """Return the checks of shapes, dtypes and values, for every function with a recipe."""
    out = []
    for key, make in RECIPES.items():
        entry = spec.function(key)
        case = make(Fixed(()))
        if not case.plain and case.expected is not None:
            out.append(Check(entry.chapter, key, "shape", values.ask_shapes))
        ruled = entry.out_dtype not in (None, "not_an_array") or entry.kind == "operator"
        if (ruled or key in ("T", "mT", "to_device")) and not case.plain:
            out.append(Check(entry.chapter, key, "dtype", values.ask_dtypes))
        out.append(Check(entry.chapter, key, "values", values.ask_values))
    return out


def checks(library: Library, only: Sequence[str] = ()) -> list[Check]:
    """Return every check, or those whose id holds one of some words."""
    found = [
        *names.checks(),
        *signatures.checks(),
        *inspection.checks(),
        *generic(),
        *scalars.checks(),
        *special.checks(),
    ]
    if library.lazy:
        found += lazy.checks(library)
    return [c for c in found if not only or any(word in c.id for word in only)]
