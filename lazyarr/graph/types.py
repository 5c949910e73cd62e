"""Types: what is known of a value before it is computed.

Types are interned, so equal types are the same object, and inference can be memoised on them.
"""

import threading
import weakref

import numpy as np

from lazyarr.errors import ArgumentError, DTypeError, ShapeError
from lazyarr.graph.dtypes import as_dtype, own
from lazyarr.graph.shapes import Size

_lock = threading.Lock()
_table: "weakref.WeakValueDictionary[tuple, Type]" = weakref.WeakValueDictionary()


def intern_type(key: tuple, make: object) -> "Type":
    """Return the one type with this key, made on the first request (safe from many threads)."""
    found = _table.get(key)
    if found is None:
        with _lock:
            found = _table.get(key)
            if found is None:
                found = _table[key] = make()  # type: ignore[operator]
    return found


_codes: dict[tuple, int] = {}
_codes_lock = threading.Lock()  # types take codes while they are made


def code_of(structure: tuple) -> int:
    """Return the number of a structure: one for equal structures, for the life of the process.

    Keys of recorded expressions are made of these.
    """
    found = _codes.get(structure)
    if found is None:
        with _codes_lock:
            found = _codes.setdefault(structure, len(_codes))
    return found


class Type:
    """The type of any value; a subclass says which values it takes and when two are equal."""

    __slots__ = ("__weakref__",)
    named = False  # True for types with dimension names

    def filter(self, value: object, strict: bool = False, allow_downcast: bool = False) -> object:
        """Return the value as this type holds it, or raise ArgumentError."""
        return value

    def values_eq_approx(self, a: object, b: object) -> bool:
        """Tell whether two values are equal up to rounding."""
        return a == b


class TensorType(Type):
    """An array of a dtype and a shape, whose sizes are ints or `Size`s.

    >>> TensorType("float64", (2, 3)) is TensorType("float64", (2, 3))
    True
    """

    __slots__ = ("dtype", "shape", "ndim", "ones", "structure", "_code")
    dtype: np.dtype
    shape: tuple
    ndim: int
    ones: tuple
    structure: tuple
    _code: int | None

    def __new__(cls, dtype: object, shape: tuple = ()):
        """Return the interned type."""
        if dtype.__class__ is str or not isinstance(dtype, np.dtype):
            dtype = as_dtype(dtype)
        found = _table.get((cls, dtype, shape))
        if found is not None:
            return found
        shape = tuple(s if isinstance(s, Size) else int(s) for s in shape)
        dtype = own(dtype)
        return intern_type((cls, dtype, shape), lambda: cls._make(dtype, shape))

    @classmethod
    def _make(cls, dtype: np.dtype, shape: tuple) -> "TensorType":
        self = object.__new__(cls)
        self.dtype, self.shape, self.ndim = dtype, shape, len(shape)
        self.ones = tuple(s == 1 for s in shape)
        self.structure = (dtype, self.ones)  # what a program depends on: sizes only as "is it 1"
        self._code = None
        return self

    @property
    def code(self) -> int:
        """The number of what a program depends on."""
        if self._code is None:
            self._code = code_of(self.structure)
        return self._code

    def __reduce__(self):
        return TensorType, (self.dtype, self.shape)

    def with_shape(self, shape: tuple) -> "TensorType":
        """Return the same type with other sizes."""
        return TensorType(self.dtype, shape)

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def filter(
        self, value: object, strict: bool = False, allow_downcast: bool = False
    ) -> np.ndarray:
        """Return the value as an ndarray of this dtype and rank; sizes are checked when bound."""
        array = np.asarray(value)
        if array.dtype != self.dtype:
            number = isinstance(value, bool | int | float | complex)
            weak = number and not isinstance(value, np.generic)
            kind = "same_kind" if weak or allow_downcast else "safe"
            if strict or not np.can_cast(array.dtype, self.dtype, "unsafe" if weak else kind):
                raise DTypeError(f"expected dtype {self.dtype}, got {array.dtype}; cast it first.")
            array = array.astype(self.dtype)
        if array.ndim != self.ndim:
            raise ArgumentError(
                f"expected {self.ndim} dimensions ({self}), got shape {array.shape}."
            )
        for size, given in zip(self.shape, array.shape, strict=True):
            if isinstance(size, int) and size != given:
                raise ShapeError(f"expected shape {self.shape}, got {array.shape}.")
        return array

    def values_eq_approx(self, a: object, b: object) -> bool:
        """Tell whether two arrays are equal up to rounding, NaN equal to NaN."""
        a, b = np.asarray(a), np.asarray(b)
        tol = 1e-4 if self.dtype in (np.float32, np.complex64) else 1e-8
        return a.shape == b.shape and np.allclose(a, b, rtol=tol, atol=tol, equal_nan=True)


class TupleType(Type):
    """The type of a node with several outputs."""

    __slots__ = ("types",)
    types: tuple

    def __new__(cls, types: tuple):
        """Return the interned type."""
        types = tuple(types)

        def make():
            self = object.__new__(cls)
            self.types = types
            return self

        return intern_type((cls, types), make)

    def __reduce__(self):
        return TupleType, (self.types,)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.types))})"
