"""Whether an answer is the expected one: dtypes, shapes, and values within a tolerance."""

import numpy as np

from conformance.own.check import Mismatch

# Relative to the larger of the expected value and the scale of the data.
TOLERANCE = {"float32": 2e-5, "complex64": 4e-5, "float64": 1e-11, "complex128": 1e-11}


def shape(actual: object, expected: tuple, what: str = "the result") -> None:
    """Demand a shape."""
    found = tuple(actual.shape)
    if found != tuple(expected):
        raise Mismatch(f"{what} has shape {found}, expected {tuple(expected)}")


def dtype(actual: str, expected: str, what: str = "the result") -> None:
    """Demand a dtype, by name."""
    if actual != expected:
        raise Mismatch(f"{what} has dtype {actual}, expected {expected}")


def values(actual: np.ndarray, expected: np.ndarray, scale: float = 1.0, what: str = "") -> None:
    """Demand values: exact for integers and booleans, within a tolerance for floats."""
    expected = np.asarray(expected)
    shape(actual, expected.shape, what or "the result")
    if actual.dtype.kind not in "fc":
        if expected.dtype.kind in "fc" and actual.dtype.kind in "iu":
            expected = np.trunc(expected)
        wrong = np.asarray(actual != expected)
    else:
        wrong = ~close(actual, expected, scale)
    if np.any(wrong):
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f" at {at}" if at else ""
        raise Mismatch(f"{what + ': ' if what else ''}{actual[at]}{where}, expected {expected[at]}")


def close(actual: np.ndarray, expected: np.ndarray, scale: float) -> np.ndarray:
    """Tell which values are equal up to rounding; NaN equals NaN, component by component."""
    if np.iscomplexobj(actual) or np.iscomplexobj(expected):
        width = actual.real.dtype
        both = np.asarray(actual, complex), np.asarray(expected, complex)
        size = np.abs(both[1])
        finite = np.isfinite(both[1])
        limit = TOLERANCE[f"complex{width.itemsize * 16}"] * np.maximum(size, scale)
        with np.errstate(all="ignore"):
            near = np.abs(both[0] - both[1]) <= limit
        same = _same(both[0].real, both[1].real) & _same(both[0].imag, both[1].imag)
        return np.where(finite, near, same)
    actual64, expected64 = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    with np.errstate(all="ignore"):
        limit = TOLERANCE[str(actual.dtype)] * np.maximum(np.abs(expected64), scale)
        near = np.abs(actual64 - expected64) <= limit
    over = np.abs(expected64) > np.finfo(actual.dtype).max * 0.999
    infinite = over & np.isinf(actual64) & (np.sign(actual64) == np.sign(expected64))
    return np.where(np.isfinite(expected64), near, _same(actual64, expected64)) | infinite


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))
