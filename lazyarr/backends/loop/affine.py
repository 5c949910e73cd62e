"""Index arithmetic: sums of `coefficient * unknown` with a constant, all of them sizes.

An unknown is an `Axis` of a statement, a `Dynamic` (an int64 scalar known only while running), or,
when code is emitted, a loop counter. Strides, alignment and flat offsets are all questions about
the coefficients.

>>> i = Axis(10, "i")
>>> (of(i) * 3 + 2).coefficient(i)
3
"""

from collections.abc import Mapping, Sequence

from lazyarr.graph.scalar import Scalar
from lazyarr.graph.shapes import Size


class Axis:
    """One dimension of an iteration space, compared by identity."""

    __slots__ = ("extent", "name")

    def __init__(self, extent: "int | Size", name: str = ""):
        self.extent, self.name = extent, name

    def __repr__(self) -> str:
        return f"{self.name or 'axis'}<{self.extent}>"


class Dynamic:
    """An int64 scalar expression as an unknown of an index, compared by its identity."""

    __slots__ = ("value",)

    def __init__(self, value: Scalar):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dynamic) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"[{self.value}]"


class Affine:
    """An immutable affine form: `const + sum(coefficient * unknown)`."""

    __slots__ = ("terms", "const", "_hash")

    def __init__(self, terms: tuple, const: "int | Size" = 0):
        self.terms, self.const = terms, const
        self._hash = hash((frozenset(terms), const))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Affine) or self._hash != other._hash:
            return False
        return self.const == other.const and (
            self.terms == other.terms or frozenset(self.terms) == frozenset(other.terms)
        )

    def __add__(self, other: "Affine | int | Size") -> "Affine":
        if not isinstance(other, Affine):
            return Affine(self.terms, self.const + other) if other != 0 else self
        if not other.terms and other.const == 0:
            return self
        terms = dict(self.terms)
        for key, k in other.terms:
            terms[key] = terms.get(key, 0) + k
        return Affine(tuple(t for t in terms.items() if t[1] != 0), self.const + other.const)

    def __mul__(self, k: "int | Size") -> "Affine":
        if isinstance(k, int) and k == 1:
            return self
        if isinstance(k, int) and k == 0:
            return ZERO
        return Affine(tuple((key, c * k) for key, c in self.terms), self.const * k)

    def __repr__(self) -> str:
        parts = [f"{key}" if k == 1 else f"{k}*{key}" for key, k in self.terms]
        if self.const != 0 or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)

    def coefficient(self, key: object) -> "int | Size":
        """Return the factor of one unknown, 0 when it is absent."""
        for other, k in self.terms:
            if other is key or other == key:
                return k
        return 0

    @property
    def axis(self) -> Axis | None:
        """The axis when this is exactly one axis, else None."""
        if len(self.terms) == 1 and self.const == 0 and self.terms[0][1] == 1:
            key = self.terms[0][0]
            return key if isinstance(key, Axis) else None
        return None


ZERO = Affine((), 0)


def of(unknown: object) -> Affine:
    """Return the affine form of one unknown, or of a constant int or Size."""
    if isinstance(unknown, int | Size):
        return Affine((), unknown)
    return Affine(((unknown, 1),), 0)


def substitute(form: Affine, mapping: Mapping) -> Affine:
    """Return the form with unknowns replaced by forms; others stay."""
    if not form.terms:
        return form
    out = Affine((), form.const)
    for key, k in form.terms:
        out = out + (mapping[key] if key in mapping else of(key)) * k
    return out


def strides(shape: Sequence) -> tuple:
    """Return the strides in elements of a C-contiguous array.

    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    out, step = [], 1
    for s in reversed(shape):
        out.append(step)
        step = step * s
    return tuple(reversed(out))


def flatten(index: Sequence[Affine], shape: Sequence) -> Affine:
    """Return the offset in elements of an index into a C-contiguous array."""
    out = ZERO
    for i, step in zip(index, strides(shape), strict=True):
        out = out + i * step
    return out
