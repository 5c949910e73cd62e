"""What a recipe makes: a call of one function, and what it has to answer.

A recipe draws arguments as NumPy arrays and computes the answer with NumPy or cmath:

    @recipe("flip")
    def flip(d):
        x = d.array(d.dtype("any"), d.shape())
        axis = d.axes(x.ndim)
        return Case([x], {"axis": axis}, np.flip(x, axis))
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from conformance.libraries import Library
from conformance.own.draw import Draw


class DType(str):
    """The name of a dtype, which a call gets as the library's object."""


@dataclass
class Case:
    """A call and its answer."""

    args: list
    kwargs: dict = field(default_factory=dict)
    expected: object = None
    verify: Callable[[list], None] | None = None  # judges the answer instead of `expected`
    call: Callable | None = None  # instead of the function of that name
    scale: float = 1.0  # errors are relative to this or to the value, whichever is larger
    data_dependent: bool = False
    dtypes: tuple[str, ...] | None = None  # what the rule for dtypes looks at, else the arrays
    plain: bool = False  # the answer is no array

    def inputs(self) -> tuple[str, ...]:
        """Return the dtypes of the array arguments, in order."""
        if self.dtypes is not None:
            return self.dtypes
        found: list[str] = []
        for a in [*self.args, *self.kwargs.values()]:
            parts = a if isinstance(a, list) else [a]
            found += [str(p.dtype) for p in parts if isinstance(p, np.ndarray | np.generic)]
        return tuple(found)

    def given(self, library: Library) -> tuple[list, dict]:
        """Return the arguments as the library's."""
        convert = _converter(library)
        kwargs = {k: convert(v) for k, v in self.kwargs.items() if k != "dtype" or v is not None}
        return [convert(a) for a in self.args], kwargs

    def text(self, name: str) -> str:
        """Return the call as text."""
        parts = [shown(a) for a in self.args]
        parts += [f"{k}={shown(v)}" for k, v in self.kwargs.items() if v is not None]
        return f"{name}({', '.join(parts)})"


def _converter(library: Library) -> Callable:
    def convert(value: object) -> object:
        if isinstance(value, np.ndarray | np.generic):
            return library.array(value)
        if isinstance(value, list):
            return [convert(v) for v in value]
        return library.dtype(value) if isinstance(value, DType) else value

    return convert


def shown(value: object) -> str:
    """Return an argument as short text."""
    if isinstance(value, np.ndarray | np.generic):
        if value.size > 12:
            return f"<{value.dtype} {value.shape}>"
        inner = f"{value.tolist()}" if value.size else f"empty {value.shape}"
        return f"{value.dtype}:{inner}"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return str(value) if isinstance(value, DType) else repr(value)


RECIPES: dict[str, Callable[[Draw], Case]] = {}


def recipe(*keys: str) -> Callable:
    """Register a recipe for entries; with several, it is called with the key as well."""

    def register(make: Callable) -> Callable:
        for key in keys:
            RECIPES[key] = make if len(keys) == 1 else _named(make, key)
        return make

    return register


def _named(make: Callable, key: str) -> Callable:
    return lambda d: make(d, key)


def size_of(*arrays: np.ndarray) -> float:
    """Return the largest magnitude in arrays, at least 1: the scale of rounding errors."""
    found = [float(np.max(np.abs(a))) for a in arrays if np.asarray(a).size]
    return max([1.0, *found])
