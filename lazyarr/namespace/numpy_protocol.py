"""NumPy's functions on lazy arrays: recorded where lazyarr has them, else computed by NumPy.

`np.sum(x, 0)` reaches `lazyarr.sum(x, axis=0)`: arguments are sorted by the names that NumPy's
signature gives them. What lazyarr has no word for (a function, or an argument such as `where=`) is
computed by NumPy on values; arrays among its results are arrays of lazyarr again, so that code that
asks an array for its namespace goes on in the same one.
"""

import inspect
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

from lazyarr.errors import ArgumentError
from lazyarr.graph import dtypes


def call_function(function: Callable, args: tuple, kwargs: dict) -> object:
    """Return what a function of NumPy gives on arguments among which are lazy arrays."""
    ours = _counterpart(function)
    given = None if ours is None else _sorted(function, ours, args, kwargs)
    if ours is not None and given is not None:
        return ours(*given.args, **given.kwargs)
    return handles(function(*values(args), **values(kwargs)))


@cache
def _counterpart(function: Callable) -> Callable | None:
    found: object = sys.modules["lazyarr"]
    for name in [*function.__module__.split(".")[1:], function.__name__]:  # linalg, inv
        found = getattr(found, name, None)
    return found if callable(found) else None


@cache
def _signatures(function: Callable, ours: Callable) -> tuple:
    try:
        return inspect.signature(function), inspect.signature(ours)
    except (TypeError, ValueError):
        return None, None


def _sorted(
    function: Callable, ours: Callable, args: tuple, kwargs: dict
) -> inspect.BoundArguments | None:
    """Return the arguments as our function takes them; None where it does not."""
    theirs, own = _signatures(function, ours)
    if theirs is None:
        return None
    places = [p.name for p in theirs.parameters.values() if p.kind < p.VAR_POSITIONAL]
    first = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
                for p in own.parameters.values())  # fmt: skip
    open_end = any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values())
    cut = len(args) if open_end else min(first, len(args))
    named = dict(zip(places[cut:], args[cut:], strict=False))
    try:
        return own.bind(*args[:cut], **named, **kwargs)
    except TypeError:
        return None


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> object:
    """Return what NumPy computes, when a ufunc cannot be recorded."""
    if any(hasattr(x, "_v") for x in kwargs.get("out", ())):
        raise ArgumentError(
            f"a lazy array cannot be written by out=; write x = np.{ufunc.__name__}(...)."
        )
    return handles(getattr(ufunc, method)(*values(inputs), **values(kwargs)))


def handles(held: object) -> object:
    """Return results with NumPy's arrays of the standard's dtypes as arrays of lazyarr."""
    if isinstance(held, np.ndarray) and held.dtype in dtypes.CATEGORIES["all"]:
        return sys.modules["lazyarr"].asarray(held)
    if isinstance(held, tuple | list) and held.__class__ in (tuple, list):
        return type(held)(map(handles, held))
    return held


def values(held: object) -> object:
    """Return arguments with lazy arrays computed, also within lists, tuples and dicts."""
    if hasattr(held, "_v"):
        return np.asarray(held)
    if isinstance(held, dict):
        return {k: values(v) for k, v in held.items()}
    if held.__class__ in (tuple, list):
        return type(held)(map(values, held))  # type: ignore[call-arg]
    return held
