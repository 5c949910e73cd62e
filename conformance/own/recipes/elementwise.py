"""Elementwise functions. The oracle is math and cmath where they have the function, else NumPy."""

import cmath
import math
from collections.abc import Callable

import numpy as np

from conformance import spec
from conformance.own.recipes._recipe import Case, recipe

# Bounds of real and of complex arguments that keep answers finite and well conditioned.
UNARY: dict[str, tuple] = {
    "acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.875, 0.875), "acosh": (1, 50),
    "log": (0.0078125, 50), "log10": (0.0078125, 50), "log2": (0.0078125, 50),
    "log1p": (-0.875, 50), "sqrt": (0, 50), "tan": (-1.5, 1.5), "square": (-9, 9),
}  # fmt: skip
UNARY_NAMES = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj",
    "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10",
    "log1p", "log2", "logical_not", "negative", "positive", "real", "reciprocal", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
BINARY_NAMES = (
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal",
    "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor",
    "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "remainder", "subtract",
)  # fmt: skip
DIVISIONS = ("divide", "floor_divide", "remainder", "reciprocal")

# NumPy's functions under other names, and those that it lacks or answers differently.
NUMPY: dict[str, Callable] = {
    "pow": np.power,
    "sign": lambda x: np.where(x == 0, 0, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x),
    "round": np.round,
    "reciprocal": lambda x: 1.0 / x,
    "real": np.real,
    "imag": np.imag,
    "positive": np.array,
}
# cmath has no such function; these are stable where they are used.
CMATH = {
    "log2": lambda z: cmath.log(z) / math.log(2),
    "log1p": None,
    "expm1": None,
    "square": lambda z: z * z,
    "reciprocal": lambda z: 1 / z,
}


def oracle(name: str) -> Callable:
    """Return the function that says what is right: math's or cmath's by element, or NumPy's."""
    by_numpy = NUMPY.get(name) or getattr(np, name)

    def answer(*arrays: np.ndarray) -> np.ndarray:
        x = arrays[0]
        by_element = None
        if len(arrays) == 1 and x.dtype.kind == "c":
            by_element = CMATH.get(name, getattr(cmath, name, None))
        elif len(arrays) == 1 and x.dtype.kind == "f" and name not in ("ceil", "floor", "trunc"):
            by_element = getattr(math, name, None)
        with np.errstate(all="ignore"):
            return _each(by_element, x) if by_element else np.asarray(by_numpy(*arrays))

    return answer


def _each(function: Callable, x: np.ndarray) -> np.ndarray:
    out = [_guarded(function, v) for v in x.ravel().tolist()]
    kind = np.result_type(x.dtype, np.float64)
    if out and isinstance(out[0], bool):
        kind = np.dtype(bool)
    return np.array(out, dtype=kind).reshape(x.shape)


def _guarded(function: Callable, value: object) -> object:
    try:
        return function(value)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def wide(arrays: list, exact: bool = False) -> list:
    """Return float32 and complex64 arrays in double precision, for the oracle."""
    if exact:
        return arrays
    double = {"float32": np.float64, "complex64": np.complex128}
    return [a.astype(double.get(str(a.dtype), a.dtype)) for a in arrays]


@recipe(*UNARY_NAMES)
def unary(d, name):
    """A function of one array."""
    dtype = d.dtype(spec.function(name).params[0]["dtypes"])
    low, high = UNARY.get(name, (-9, 9) if name in ("exp", "expm1", "sinh", "cosh") else (-50, 50))
    if dtype.startswith("complex"):
        low, high = (-3, 3)
    elif not dtype.startswith("float"):
        low = high = None
    x = d.array(dtype, d.shape(), low, high, nonzero=name in ("reciprocal", "log", "log2", "log10"))
    answer = oracle(name)(*wide([x], exact=name in ("round", "sign")))
    return Case([x], {}, answer)


@recipe(*BINARY_NAMES)
def binary(d, name, equal=False):
    """A function of two arrays, or of an array and a Python number."""
    category = spec.function(name).params[0]["dtypes"]
    if name == "divide":
        category = "floating"  # integers are left to the library
    elif category == "any" and name == "nextafter":
        category = "real_floating"
    a, b = d.pair(category)
    if name == "nextafter" or equal:
        b = a
    s1, s2 = d.broadcastable(2)
    x1, x2 = d.array(a, s1, *_bounds(name, a)[0]), d.array(b, s2, *_bounds(name, b)[1])
    if name in DIVISIONS:
        x2 = np.where(x2 == 0, np.ones((), x2.dtype), x2)
    if name == "pow" and "complex" in a + b:
        x1 = np.where(x1 == 0, np.ones((), x1.dtype), x1)
    out = np.dtype(spec.promote(a, b))
    exact = name in ("nextafter", "floor_divide", "remainder")
    left, right = (x1.astype(out), x2.astype(out)) if out.kind != "b" else (x1, x2)
    answer = oracle(name)(*wide([left, right], exact))
    scale = 1.0
    if name in ("add", "subtract", "multiply", "divide") and out.kind == "c":
        scale = 1e2
    return Case([x1, x2], {}, answer, scale=scale)


def _bounds(name: str, dtype: str) -> tuple:
    """Bounds of both operands."""
    integer = np.dtype(dtype).kind in "iu"
    if name == "pow":
        if integer:
            return (1, 3), (0, 3)
        return ((-3, 3), (-3, 3)) if dtype.startswith("complex") else ((0.0625, 8), (-4, 4))
    if name.endswith("shift"):
        return (0, 60), (0, 1)
    if name == "multiply" and integer:
        return (-10, 10), (-10, 10)
    if name in ("add", "subtract") and integer:
        return (30, 60), (-30, 30) if not dtype.startswith("u") else (0, 30)
    return (None, None), (None, None)


@recipe("clip")
def clip(d):
    """Bounds may be numbers, arrays of the same dtype, or absent."""
    dtype = d.dtype("real")
    s1, s2, s3 = d.broadcastable(3)
    x = d.array(dtype, s1)
    low: object = d.choice([None, 1, d.array(dtype, s2, 0, 20)])
    high: object = d.choice([None, 30, d.array(dtype, s3, 20, 40)])
    answer = x
    if low is not None:
        answer = np.maximum(answer, low)
    if high is not None:
        answer = np.minimum(answer, high)
    return Case([x], {"min": low, "max": high}, np.asarray(answer), dtypes=(dtype,))


@recipe("where")
def where(d):
    """Either of two arrays."""
    a, b = d.pair("any")
    s0, s1, s2 = d.broadcastable(3)
    condition, x1, x2 = d.array("bool", s0), d.array(a, s1), d.array(b, s2)
    return Case([condition, x1, x2], {}, np.where(condition, x1, x2), dtypes=(a, b))
