"""Arguments for a call: drawn by hypothesis, or fixed where only dtypes are looked at.

A recipe asks a `Draw` for dtypes, shapes, arrays and choices. `Drawn` answers with hypothesis's
array-API strategies over NumPy; `Fixed` with given dtypes and small regular arrays.
"""

import random
import warnings
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from conformance import spec
from conformance.own.check import Skip

LIMITS = {"i": 100, "u": 100, "f": 50.0, "c": 10.0}


class Draw:
    """The questions a recipe may ask."""

    def __init__(self, missing: Sequence[str] = ()):
        self.missing = frozenset(missing)  # dtypes that the library does not have

    def integer(self, low: int, high: int) -> int:
        """Return an integer within bounds, both included."""
        raise NotImplementedError

    def choice(self, options: Sequence) -> object:
        """Return one of several things."""
        return options[self.integer(0, len(options) - 1)]

    def boolean(self) -> bool:
        """Return a truth value."""
        return bool(self.integer(0, 1))

    def dtype(self, category: str) -> str:
        """Return a dtype of a category of the standard."""
        return self.choice(self._known(spec.CATEGORIES[category]))

    def pair(self, category: str) -> tuple[str, str]:
        """Return two dtypes of a category that promote."""
        pairs = [p for p in spec.promotable(category) if not self.missing & set(p)]
        return self.choice(pairs)

    def _known(self, names: Sequence[str]) -> list[str]:
        found = [n for n in names if n not in self.missing]
        if not found:
            raise Skip(f"the library has none of {', '.join(names)}")
        return found

    def shape(self, low: int = 0, high: int = 3, side: int = 4, least: int = 0) -> tuple:
        """Return a shape with so many dimensions, its sides within bounds."""
        n = self.integer(low, high)
        return tuple(self.integer(least, side) for _ in range(n))

    def broadcastable(self, n: int, least: int = 0) -> list[tuple]:
        """Return shapes that broadcast together."""
        whole = self.shape(0, 3, 3, least)
        out = []
        for _ in range(n):
            part = whole[self.integer(0, len(whole)) :] if self.boolean() else whole
            out.append(tuple(1 if self.integer(0, 3) == 0 else s for s in part))
        return out

    def axis(self, ndim: int) -> int:
        """Return an axis, counted from either end."""
        if ndim == 0:
            raise ValueError("an axis of a 0-d array")
        return self.integer(-ndim, ndim - 1)

    def axes(self, ndim: int) -> object:
        """Return None, an axis, or several: what a reduction takes."""
        if ndim == 0:
            return None
        how = self.integer(0, 3)
        if how < 2:
            return None if how == 0 else self.axis(ndim)
        chosen = [i for i in range(ndim) if self.boolean()]
        return tuple(i - ndim if self.boolean() else i for i in chosen)

    def permutation(self, n: int) -> tuple:
        """Return the numbers below n in some order."""
        rest, out = list(range(n)), []
        while rest:
            out.append(rest.pop(self.integer(0, len(rest) - 1)))
        return tuple(out)

    def array(self, dtype: str, shape: tuple, low=None, high=None, nonzero: bool = False):
        """Return a NumPy array with values within bounds; floats are finite."""
        low, high = bounds(dtype, low, high)
        out = self.values(np.dtype(dtype), tuple(shape), low, high)
        return np.where(out == 0, np.ones((), out.dtype), out) if nonzero else np.asarray(out)

    def values(self, dtype: np.dtype, shape: tuple, low, high) -> np.ndarray:
        """Return an array of a dtype and shape, values within bounds."""
        raise NotImplementedError

    def number(self, dtype: str) -> object:
        """Return a Python number that a dtype can be combined with."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.boolean()
        n = self.integer(0 if kind == "u" else -9, 9)
        return n if kind in "iu" else n / 2 if kind == "f" else complex(n, 1)


def bounds(dtype: str, low: object, high: object) -> tuple:
    """Return the bounds of the values of a dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return 0, 1
    limit = LIMITS[kind]
    low = -limit if low is None else low
    high = limit if high is None else high
    return (max(low, 0), max(high, 0)) if kind == "u" else (low, high)


@cache
def numpy_strategies():
    """Return hypothesis's array strategies over NumPy; the first call takes a while."""
    from hypothesis.extra import array_api  # hypothesis is needed to draw, not to read reports

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return array_api.make_strategies_namespace(np, api_version="2024.12")


class Drawn(Draw):
    """Answers of hypothesis."""

    def __init__(self, draw: Callable, missing: Sequence[str] = ()):
        super().__init__(missing)
        from hypothesis import strategies

        self.draw, self.st, self.xps = draw, strategies, numpy_strategies()

    def integer(self, low: int, high: int) -> int:
        """Return an integer within bounds, both included."""
        return self.draw(self.st.integers(low, high)) if high > low else low

    def choice(self, options: Sequence) -> object:
        """Return one of several things."""
        return self.draw(self.st.sampled_from(options))

    def shape(self, low: int = 0, high: int = 3, side: int = 4, least: int = 0) -> tuple:
        """Return a shape with so many dimensions, its sides within bounds."""
        return self.draw(
            self.xps.array_shapes(min_dims=low, max_dims=high, min_side=least, max_side=side)
        )

    def broadcastable(self, n: int, least: int = 0) -> list[tuple]:
        """Return shapes that broadcast together."""
        found = self.draw(
            self.xps.mutually_broadcastable_shapes(n, max_dims=3, min_side=least, max_side=3)
        )
        return list(found.input_shapes)

    def values(self, dtype: np.dtype, shape: tuple, low, high) -> np.ndarray:
        """Return an array of a dtype and shape, values within bounds."""
        if dtype.kind == "c":
            part = np.dtype(f"float{dtype.itemsize * 4}")
            real = self.values(part, shape, low, high)
            return (real + 1j * self.values(part, shape, low, high)).astype(dtype)
        if dtype.kind == "f":
            elements = self.st.floats(low, high, width=dtype.itemsize * 8, allow_subnormal=False)
        elif dtype.kind == "b":
            elements = self.st.booleans()
        else:
            elements = self.st.integers(int(low), int(high))
        found = self.draw(self.xps.arrays(dtype, shape, elements=elements))
        return np.asarray(found) + np.zeros((), dtype) if dtype.kind == "f" else np.asarray(found)


class Fixed(Draw):
    """Given dtypes, in the order asked for, and arrays that are small and regular."""

    def __init__(self, dtypes: Sequence[str], seed: int = 0, missing: Sequence[str] = ()):
        super().__init__(missing)
        self.given, self.random = list(dtypes), random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """Return an integer within bounds, both included."""
        return self.random.randint(low, high)

    def dtype(self, category: str) -> str:
        """Return the next given dtype."""
        return self.given.pop(0) if self.given else super().dtype(category)

    def pair(self, category: str) -> tuple[str, str]:
        """Return the next two given dtypes."""
        if len(self.given) < 2:
            return super().pair(category)
        return self.given.pop(0), self.given.pop(0)

    def shape(self, low: int = 0, high: int = 3, side: int = 4, least: int = 0) -> tuple:
        """Return a shape without empty sides."""
        return super().shape(low, min(high, low + 1), min(side, 3), max(least, 1))

    def values(self, dtype: np.dtype, shape: tuple, low, high) -> np.ndarray:
        """Return regular values within bounds."""
        if dtype.kind == "b":
            return np.arange(int(np.prod(shape))).reshape(shape) % 2 == 0
        start = int(np.ceil(np.real(low))) if low > 0 else 1 if high >= 1 else 0
        span = max(1, min(5, int(np.floor(high)) - start + 1))
        counted = np.arange(int(np.prod(shape))).reshape(shape) % span + start
        return np.clip(counted, low, high).astype(dtype)


class Probe(Fixed):
    """Remembers which dtypes a recipe asks for first."""

    def __init__(self, missing: Sequence[str] = ()):
        super().__init__((), 0, missing)
        self.asked: tuple[str, str] | None = None

    def dtype(self, category: str) -> str:
        """Return a dtype, and remember its category."""
        self.asked = self.asked or ("one", category)
        return super().dtype(category)

    def pair(self, category: str) -> tuple[str, str]:
        """Return two dtypes, and remember their category."""
        self.asked = self.asked or ("pair", category)
        return super().pair(category)
