"""Values that samples are made of: deterministic arrays, and the special values of each dtype."""

import math

import numpy as np

DTYPES = tuple(np.dtype(d) for d in ("float64", "float32", "int64", "int32", "uint8", "bool"))
# Sampled with special values where an op takes integers: they wrap where C promotes to int.
NARROW = tuple(np.dtype(d) for d in ("int8", "uint16", "uint64"))

_FLOATS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -7.0,
           1e-3, 20.0, -50.0, 1e4]  # fmt: skip
_SIGNED = [0, 1, -1, 2, -2, 3, 7, -7, 20, 100]


def special(dtype: np.dtype, extreme: bool = True) -> np.ndarray:
    """Every special value of a dtype and some ordinary ones; `extreme` adds those that overflow."""
    if dtype.kind == "f":
        return np.array(_FLOATS, dtype)
    if dtype.kind == "b":
        return np.array([True, False, False, True])
    info = np.iinfo(dtype)
    values = _SIGNED if dtype.kind == "i" else [abs(v) for v in _SIGNED]
    ends = [info.max, info.min, info.max - 1, info.min + 1] if extreme else []
    return np.array([*values, *ends], dtype)  # 100 fits every one of them


def draw(shape: tuple, dtype: object = "float64", shift: float = 0.0) -> np.ndarray:
    """Distinct irregular values without order, about -2 to 2 for floats, small for integers."""
    dtype, n = np.dtype(dtype), math.prod(shape)
    k = np.arange(1, n + 1)
    if dtype.kind == "f":
        return (2 * np.sin(k * 12.9898 + shift) + 0.013 * k).astype(dtype).reshape(shape)
    mixed = (k * 7919 + int(10 * shift)) % 13
    if dtype.kind == "b":
        return (mixed % 3 > 0).reshape(shape)
    return (mixed - (4 if dtype.kind == "i" else 0)).astype(dtype).reshape(shape)


def positive_definite(n: int, batch: tuple = (), dtype: object = "float64") -> np.ndarray:
    """Symmetric positive-definite matrices."""
    x = draw((*batch, n, n))
    return (x @ np.swapaxes(x, -1, -2) + n * np.eye(n)).astype(dtype)


def triangular(n: int, batch: tuple = (), dtype: object = "float64") -> np.ndarray:
    """Square matrices with a strong diagonal; both triangles are filled."""
    return (draw((*batch, n, n)) + 4 * np.eye(n)).astype(dtype)
