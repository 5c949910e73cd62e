"""NumPy functions that NumPy lacks, or whose special cases the standard states otherwise.

These are references: exact meaning first, speed second.
"""

import math
from collections.abc import Callable

import numpy as np

from lazyarr.errors import ShapeError


def _quiet(f):
    def run(*args):
        with np.errstate(all="ignore"):
            return f(*args)

    run.__name__, run.__doc__ = f.__name__, f.__doc__
    return run


@_quiet
def floor_divide(x, y):
    """Floor division; integers give 0 for divisor 0 and wrap for INT_MIN // -1; floats floor x / y.

    Source: Array API standard, floor_divide, special cases.
    """
    x, y = np.asarray(x), np.asarray(y)
    out = np.floor_divide(x, y)
    if out.dtype.kind != "f":
        return out
    quotient = np.floor(np.true_divide(x, y))
    special = ~np.isfinite(x) | ~np.isfinite(y) | (y == 0)
    return np.where(special, quotient, out).astype(out.dtype)


@_quiet
def remainder(x, y):
    """Remainder with the sign of the divisor, also for a zero result; integers modulo 0 give 0."""
    out = np.remainder(x, y)
    if np.asarray(out).dtype.kind != "f":
        return out
    return np.where(out == 0, np.copysign(0.0, y), out).astype(out.dtype)


@_quiet
def power(x, y):
    """Power; of integers exact, wrapped, truncated toward zero for negative exponents."""
    x, y = np.asarray(x), np.asarray(y)
    dtype = np.result_type(x, y)
    if dtype.kind not in "iu":
        return np.power(x, y)
    x, y = np.broadcast_arrays(x.astype(dtype), y.astype(dtype))
    if dtype.kind == "u":
        return np.power(x, y)
    out = np.power(x, np.where(y < 0, 0, y))
    odd = (y & 1).astype(bool)
    unit = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0)).astype(dtype)
    return np.where(y < 0, unit, out)


@_quiet
def acosh(x):
    """Inverse hyperbolic cosine."""
    return np.arccosh(x)


@_quiet
def asinh(x):
    """Inverse hyperbolic sine."""
    return np.arcsinh(x)


@_quiet
def atanh(x):
    """Inverse hyperbolic tangent."""
    return np.arctanh(x)


@_quiet
def expm1(x):
    """exp(x) - 1; for x = a + ib as expm1(a) cos(b) - 2 sin(b/2)^2 + i exp(a) sin(b).

    Source: Array API standard, expm1, special cases.
    """
    x = np.asarray(x)
    if x.dtype.kind != "c":
        return np.expm1(x)
    a, b = x.real, x.imag
    re = np.expm1(a) * np.cos(b) - 2 * np.sin(b / 2) ** 2 + 0.0
    im = np.where(b == 0, b, np.exp(a) * np.sin(b))
    re = np.where(a == -np.inf, -1, np.where((a == np.inf) & ~np.isfinite(b), np.inf, re))
    im = np.where((a == -np.inf) & ~np.isfinite(b), 0, im)
    out = np.empty(x.shape, x.dtype)
    out.real, out.imag = re, im
    return out


@_quiet
def sign(x):
    """The sign; of a complex number x / abs(x), NaN where a part is.

    Source: Array API standard, sign, special cases.
    """
    out = np.sign(x)
    if out.dtype.kind != "c":
        return out
    return np.where(np.isnan(x), complex(np.nan, np.nan), out).astype(out.dtype)


@_quiet
def tanh(x):
    """Hyperbolic tangent; for a complex x with infinite real part the imaginary one is a zero.

    Source: Array API standard, tanh, special cases.
    """
    out = np.tanh(x)
    x = np.asarray(x)
    if x.dtype.kind != "c":
        return out
    zero = np.isinf(x.real) & np.isfinite(x.imag)
    exact = np.array(out)
    exact.imag = np.where(zero, np.copysign(0, x.imag), exact.imag)
    return exact


def _elementwise(f):
    """Lift a function of one Python float to arrays, keeping the floating dtype."""

    def run(x):
        x = np.asarray(x)
        flat = [f(float(v)) for v in x.ravel()]
        return np.array(flat, dtype=np.float64).reshape(x.shape).astype(x.dtype)

    run.__doc__ = f.__doc__
    run.__name__ = f.__name__.lstrip("_")
    return run


def _lgamma(x: float) -> float:
    """Logarithm of the absolute value of the gamma function; inf at its poles."""
    if math.isnan(x):
        return math.nan
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


# digamma(z) = (z - root) q(z - 1.5) on [1, 2]: the root in two parts, and q by interpolation at
# Chebyshev's points, the constant term first.
DIGAMMA_ROOT = float.fromhex("0x1.762d86356be3fp+0"), float.fromhex("0x1.b86a722197829p-54")
DIGAMMA = tuple(map(float.fromhex, """
0x1.e6f0cbb873617p-1 -0x1.b1cb63005ee97p-2 0x1.eca189b8e6da1p-3 -0x1.2feeeb98a7cd8p-3
0x1.8512e5905d180p-4 -0x1.fb442029cdbf4p-5 0x1.4de9aa05d3418p-5 -0x1.b9f8b1367959dp-6
0x1.256475e5ac975p-6 -0x1.86355f6f68797p-7 0x1.03c00801ba958p-7 -0x1.5a071c746535bp-8
0x1.cd3e42d157015p-9 -0x1.33661f9073563p-9 0x1.980fc9c9f0be8p-10 -0x1.1002aaf6255f5p-10
0x1.7b3b41b0b38cdp-11 -0x1.f99f529bd0771p-12 0x1.dc8ae08af0fc4p-13 -0x1.3db05b36d9a48p-13
0x1.104c9d0897b58p-12 -0x1.6b107f71aa124p-13
""".split()))  # fmt: skip


def _digamma(x: float) -> float:
    """Logarithmic derivative of the gamma function; NaN at negative integers, -inf at +0.

    Source: Abramowitz and Stegun 6.3.5 (recurrence), 6.3.7 (reflection), 6.3.18 (series); the
    recurrence leads into [1, 2], where the root is a factor.
    """
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf:
        return math.inf
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * math.fmod(x, 1.0))
    if x >= 10:
        r = 1 / (x * x)
        tail = 1 / 252 - r * (1 / 240 - r * (1 / 132 - r * 691 / 32760))
        series = r * (1 / 12 - r * (1 / 120 - r * tail))
        return math.log(x) - 0.5 / x - series
    shift = 0.0
    if x < 1:
        shift, x = -1 / x, x + 1
    while x >= 2:
        x -= 1
        shift += 1 / x
    q = 0.0
    for coefficient in reversed(DIGAMMA):
        q = q * (x - 1.5) + coefficient
    return ((x - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1]) * q + shift


def _trigamma(x: float) -> float:
    """Second logarithmic derivative of the gamma function; inf at its poles.

    Source: Abramowitz and Stegun 6.4.6 (recurrence), 6.4.7 (reflection), 6.4.12 (series).
    """
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf:
        return 0.0
    if x <= 0:
        if x == math.floor(x):
            return math.inf
        return (math.pi / math.sin(math.pi * math.fmod(x, 1.0))) ** 2 - _trigamma(1 - x)
    if x * x == 0:
        return math.inf
    shift = 0.0
    while x < 15:
        shift += 1 / (x * x)
        x += 1
    r = 1 / (x * x)
    tail = r * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * 691 / 2730)))))
    return shift + 1 / x + 0.5 * r + tail / x


erf = _elementwise(math.erf)
erfc = _elementwise(math.erfc)
lgamma = _elementwise(_lgamma)
digamma = _elementwise(_digamma)
trigamma = _elementwise(_trigamma)


# -- reductions and running combinations, by the monoid they combine with --------------------------


def _reduce(function: Callable, needs_element: bool = False) -> Callable:
    def run(x, *, axis, keepdims, dtype=None):
        x = np.asarray(x)
        if needs_element and any(x.shape[a] == 0 for a in axis):
            raise ShapeError(f"{function.__name__} over an empty axis: axis {axis} of {x.shape}.")
        if dtype is not None:
            x = x.astype(dtype)
        return function(x, axis=axis, keepdims=keepdims)

    return run


def _arg_extreme(function: Callable) -> Callable:
    def run(x, *, axis, keepdims):
        x = np.asarray(x)
        if any(x.shape[a] == 0 for a in axis):
            raise ShapeError(f"{function.__name__} over an empty axis: axis {axis} of {x.shape}.")
        over = axis[0] if len(axis) == 1 else None
        return function(x, axis=over, keepdims=keepdims)

    return run


def _accumulate(ufunc: np.ufunc) -> Callable:
    def run(x, *, axis, include_initial, dtype=None):
        x = np.asarray(x) if dtype is None else np.asarray(x).astype(dtype)
        out = ufunc.accumulate(x, axis=axis)
        if include_initial:
            head = np.full_like(np.take(out, [], axis=axis), ufunc.identity, shape=(
                *x.shape[:axis], 1, *x.shape[axis + 1 :]))  # fmt: skip
            out = np.concatenate([head, out], axis=axis)
        return out

    return run


REDUCE: dict[str, Callable] = {
    "add": _reduce(np.sum),
    "mul": _reduce(np.prod),
    "max": _reduce(np.max, needs_element=True),
    "min": _reduce(np.min, needs_element=True),
    "and": _reduce(np.all),
    "or": _reduce(np.any),
    "argmax": _arg_extreme(np.argmax),
    "argmin": _arg_extreme(np.argmin),
}
ACCUMULATE: dict[str, Callable] = {"add": _accumulate(np.add), "mul": _accumulate(np.multiply)}
