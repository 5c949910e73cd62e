"""Signatures: a call that the standard allows is allowed by the library.

A library may accept more: optional parameters of its own, names for positional-only ones, positions
for keyword-only ones, another default where it stands for the same (a sentinel).
"""

import ast
import inspect
from inspect import Parameter

from conformance import spec
from conformance.libraries import Library
from conformance.own.check import Check, Mismatch, Options, Skip
from conformance.own.names import owner

PLAIN = bool | int | float | str | None
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def ask_signature(library: Library, check: Check, options: Options) -> None:
    """The parameters of the standard are there, of their kinds, with their defaults."""
    entry = spec.function(check.entry)
    found = getattr(owner(library, entry), entry.name, None)
    if found is None:
        library.get(check.entry)
        raise Mismatch(f"{check.entry} is missing")
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        raise Skip("the function has no signature to look at") from None
    compare(entry, parameters)


def compare(entry: spec.Entry, found: list[Parameter]) -> None:
    """Raise Mismatch at the first parameter that the library does not take as the standard says."""
    wanted = [p for p in entry.params if p["name"] != "self"]
    anything = any(p.kind is Parameter.VAR_KEYWORD for p in found)
    many = any(p.kind is Parameter.VAR_POSITIONAL for p in found)
    by_name = {p.name: p for p in found}
    at = 0
    matched: set[str] = set()
    for p in wanted:
        name, kind = p["name"], p["kind"]
        if kind == "var_positional":
            if not many:
                raise Mismatch(f"*{name} is not taken")
            matched |= {q.name for q in found if q.kind is Parameter.VAR_POSITIONAL}
        elif kind == "keyword_only":
            q = by_name.get(name)
            if (q is None or q.kind not in NAMED) and not anything:
                raise Mismatch(f"the keyword {name} is not taken")
            if q is not None:
                _default(p, q)
                matched.add(name)
        else:
            q = found[at] if at < len(found) else None
            at += 1
            if q is None or q.kind not in POSITIONAL:
                if many:
                    continue
                raise Mismatch(f"{name} is not taken at position {at}")
            if kind == "positional_or_keyword" and (q.name != name or q.kind not in NAMED):
                raise Mismatch(f"{name} is not taken by its name, only as {q.name}")
            _default(p, q)
            matched.add(q.name)
    needed = [
        q.name
        for q in found
        if q.name not in matched
        and q.default is Parameter.empty
        and q.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    ]
    if needed:
        raise Mismatch(f"{', '.join(needed)} is needed, which the standard does not have")


def _default(wanted: dict, found: Parameter) -> None:
    """A default exists when the standard has one, and is the same where both are plain values."""
    if "default" not in wanted:
        return
    if found.default is Parameter.empty:
        raise Mismatch(f"{wanted['name']} has no default, expected {wanted['default']}")
    try:
        value = ast.literal_eval(str(wanted["default"]))
    except (SyntaxError, ValueError):
        return
    sentinel = value is None or found.default is None or not isinstance(found.default, PLAIN)
    if not sentinel and found.default != value:
        raise Mismatch(f"{wanted['name']} is {found.default!r} by default, expected {value!r}")


def checks() -> list[Check]:
    """Return a check for every function and method."""
    return [
        Check(e.chapter, e.key, "signature", ask_signature)
        for e in spec.entries()
        if e.kind in ("function", "extension_function", "method") and e.group != "dtype_object"
    ]
