"""From other objects to lazy arrays: numbers, nested lists, arrays of any library.

Source: Array API standard 2025.12, creation functions, data interchange.
"""

import numpy as np

from lazyarr.errors import ArgumentError, ChoiceError, ShapeError
from lazyarr.graph import dtypes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, to_numpy
from lazyarr.namespace.xtensor import XTensor


class CopyError(ShapeError, BufferError):
    """An object cannot be shared, only copied."""


def check_device(device: object) -> None:
    """Refuse what is no device."""
    if device not in (None, "cpu"):
        raise ChoiceError(f"unknown device {device!r}; arrays live on 'cpu'.")


def asarray(obj: object, /, *, dtype=None, device=None, copy=None):
    """Return a lazy array of a number, a nested list, or an array of any library.

    A NumPy array is copied, unless `copy=False` shares it. Lazy arrays inside lists are stacked.
    """
    check_device(device)
    if isinstance(obj, Array):
        if dtype is None or dtypes.as_dtype(dtype) == obj.dtype:
            return obj if copy is not True else Array(obj._v)
        if copy is False:
            raise CopyError(f"copy=False: {obj.dtype} to {dtype} needs a copy.")
        return Array(op.astype(obj._v, dtype))
    if isinstance(obj, XTensor):
        raise ArgumentError("asarray of an XTensor would drop its dims; use x.data.")
    if copy is False:
        return _shared(obj, dtype)
    if isinstance(obj, list | tuple) and _holds_lazy(obj):
        stacked = Array(op.stack([asarray(v)._v for v in obj]))
        return stacked if dtype is None else Array(op.astype(stacked._v, dtype))
    return Array(data(np.array(_as_numpy(obj, dtype))))


def _holds_lazy(values: list | tuple) -> bool:
    return any(
        isinstance(v, Array) or (isinstance(v, list | tuple) and _holds_lazy(v)) for v in values
    )


def _as_numpy(obj: object, dtype: object) -> np.ndarray:
    want = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(obj, np.ndarray | np.generic):
        value = np.asarray(obj)
    elif isinstance(obj, bool | int | float | complex | list | tuple):
        value = np.asarray(obj, dtype=want)
    else:
        value = to_numpy(obj)
    if want is not None:
        value = value.astype(want, copy=False)
    if value.dtype.kind in "OUSV" or not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    dtypes.as_dtype(value.dtype)
    return value


def _shared(obj: object, dtype: object) -> Array:
    """Return an array on the memory of another, or raise CopyError."""
    if isinstance(obj, bool | int | float | complex | list | tuple | np.generic):
        raise CopyError(f"copy=False: a {type(obj).__name__} cannot be shared, only converted.")
    value = obj if isinstance(obj, np.ndarray) else np.from_dlpack(obj, copy=False)  # type: ignore[call-overload]
    if dtype is not None and dtypes.as_dtype(dtype) != value.dtype:
        raise CopyError(f"copy=False: {value.dtype} to {dtype} needs a copy.")
    return Array(Variable(TensorType(value.dtype, value.shape), None, value.view()))


def from_dlpack(x: object, /, *, device=None, copy=None):
    """Return a lazy array of another library's array, through DLPack; shared only by copy=False."""
    check_device(device)
    if isinstance(x, Array):
        return Array(x._v)
    return asarray(x, copy=copy)


def array(obj: object, dtype=None) -> Array:
    """Return a lazy array of anything, always copied (NumPy's name for `asarray`)."""
    return asarray(obj, dtype=dtype, copy=True)
