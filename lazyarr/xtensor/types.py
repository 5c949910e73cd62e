"""XTensorType: the type of an array whose axes have names.

A node with a named operand holds the same op as a positional one; only its type knows dims. How
the dims of a result follow from those of the operands is told by kind, in `INFER`, which
`kinds.py` fills.
"""

from collections.abc import Callable, Iterable

import numpy as np

from lazyarr.errors import DimError, near_match
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.types import TensorType, Type, code_of, intern_type

INFER: dict[str, Callable] = {}  # kind -> (op, operand types, parameters) -> Type


def as_dims(dims: object) -> tuple[str, ...]:
    """Return dims given as a name or several as a tuple of distinct names.

    >>> as_dims("obs"), as_dims(["obs", "county"])
    (('obs',), ('obs', 'county'))
    """
    many = (dims,) if isinstance(dims, str) else tuple(dims)  # type: ignore[arg-type]
    for i, dim in enumerate(many):
        if not isinstance(dim, str):
            raise DimError(f"a dimension name is a str, not {dim!r}.")
        if dim in many[:i]:
            raise DimError(f"dims {many} hold {dim!r} twice; each dimension needs its own name.")
    return many


class XTensorType(TensorType):
    """An array of a dtype, names of its dimensions, and their sizes.

    >>> XTensorType("float64", ("obs", "county"), (919, 85))
    float64[obs: 919, county: 85]
    """

    __slots__ = ("dims", "positional", "dim_codes")
    named = True
    dims: tuple[str, ...]
    positional: TensorType
    dim_codes: tuple[int, ...]  # numbers that stand for the names

    def __new__(cls, dtype: object, dims: tuple = (), shape: tuple = ()):
        """Return the interned type."""
        if dtype.__class__ is str or not isinstance(dtype, np.dtype):
            dtype = as_dtype(dtype)
        plain = TensorType(dtype, shape)
        return intern_type((cls, plain, dims), lambda: cls._named(plain, dims))

    @classmethod
    def _named(cls, plain: TensorType, dims: tuple) -> "XTensorType":
        self = cls._make(plain.dtype, plain.shape)
        self.dims, self.positional = as_dims(dims), plain
        # a program depends on which dims are the same, not on their names: keys number them
        self.structure = (self.dtype, "named", self.ones)
        self.dim_codes = tuple([code_of(("dim", d)) for d in self.dims])
        if len(self.dims) != self.ndim:
            raise DimError(
                f"an array of shape {plain.shape} needs {self.ndim} dimension names, "
                f"got {self.dims}."
            )
        return self

    def __reduce__(self):
        return XTensorType, (self.dtype, self.dims, self.shape)

    def __repr__(self) -> str:
        inner = ", ".join(f"{d}: {s}" for d, s in zip(self.dims, self.shape, strict=True))
        return f"{self.dtype}[{inner}]"

    @property
    def sizes(self) -> dict[str, object]:
        """The size of each dimension by name."""
        return dict(zip(self.dims, self.shape, strict=True))

    def with_shape(self, shape: tuple) -> "XTensorType":
        """Return the same dtype and dims with other sizes."""
        return XTensorType(self.dtype, self.dims, shape)

    def axis(self, name: str) -> int:
        """Return the position of a dimension, or raise DimError with the nearest name."""
        try:
            return self.dims.index(name)
        except ValueError:
            raise DimError(
                f"there is no dimension {name!r} among {self.dims}.{near_match(name, self.dims)}"
            ) from None

    def infer(self, op: object, types: tuple, params: dict) -> Type:
        """Return the type of an op's result, by the rule of the op's kind."""
        return INFER[op.kind](op, types, params)  # type: ignore[attr-defined]

    def filter(
        self, value: object, strict: bool = False, allow_downcast: bool = False
    ) -> np.ndarray:
        """Return the value as an ndarray in this order of dims; a labelled value is transposed."""
        dims = getattr(value, "dims", None)
        if dims is not None and not isinstance(value, np.ndarray):
            value = np.transpose(_values(value), order_of(dims, self.dims))
        return super().filter(value, strict, allow_downcast)


def _values(value: object) -> np.ndarray:
    return np.asarray(value.values if hasattr(value, "values") else value)


def order_of(dims: Iterable, wanted: tuple[str, ...]) -> tuple[int, ...]:
    """Return the permutation that brings dims into a wanted order, or raise DimError."""
    have = tuple(dims)
    if len(have) != len(wanted) or set(have) != set(wanted):
        raise DimError(f"expected dims {wanted}, got {have}.")
    return tuple(have.index(d) for d in wanted)
