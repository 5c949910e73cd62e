"""Reference functions against exact values and against each other."""

import math

import mpmath
import numpy as np
import pytest

from lazyarr.graph import numeric

pytestmark = pytest.mark.fast
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("x", "y", "want"),
    [
        (7.0, 2.0, 3.0), (-7.0, 2.0, -4.0), (7.0, -2.0, -4.0), (1.0, 0.0, INF), (-1.0, 0.0, -INF),
        (0.0, 0.0, NAN), (INF, 2.0, INF), (-INF, 2.0, -INF), (1.0, INF, 0.0), (-1.0, INF, -0.0),
        (1.0, -INF, -0.0), (INF, INF, NAN), (NAN, 1.0, NAN), (0.0, 3.0, 0.0), (0.0, INF, 0.0),
    ],
)  # fmt: skip
def test_floor_divide_of_floats(x: float, y: float, want: float) -> None:
    """The special cases of the standard."""
    got = numeric.floor_divide(x, y)
    np.testing.assert_array_equal(got, want)
    assert math.isnan(want) or np.signbit(got) == np.signbit(want)


def test_integers_divide_without_traps() -> None:
    for dtype in ("int8", "int32", "int64"):
        low = np.iinfo(dtype).min
        x, y = np.array([low, 5, -5, 7, -7], dtype), np.array([-1, 0, 0, 2, 2], dtype)
        np.testing.assert_array_equal(numeric.floor_divide(x, y), [low, 0, 0, 3, -4])
        np.testing.assert_array_equal(numeric.remainder(x, y), [0, 0, 0, 1, 1])
        assert numeric.floor_divide(x, y).dtype == dtype


@pytest.mark.parametrize("y", [3.0, -3.0, INF, -INF])
def test_remainder_has_the_sign_of_the_divisor(y: float) -> None:
    for x in (0.0, -0.0, 3.0, -3.0, 5.0, -5.0):
        got = float(numeric.remainder(x, y))
        if not math.isnan(got):
            assert math.copysign(1, got) == math.copysign(1, y), (x, y)
    assert math.isnan(numeric.remainder(1.0, 0.0)) and math.isnan(numeric.remainder(INF, y))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "uint32"])
def test_integer_power_is_exact_and_wraps(dtype: str) -> None:
    info = np.iinfo(dtype)
    low = max(info.min, -5)
    for x in range(low, 6):
        for y in range(low, 7):
            exact = x**y if y >= 0 else (int(x**y) if x in (1, -1) else 0)
            wrapped = (exact - info.min) % (info.max - info.min + 1) + info.min
            got = numeric.power(np.array(x, dtype), np.array(y, dtype))
            assert (int(got), got.dtype) == (wrapped, np.dtype(dtype)), (x, y)


def test_gamma_family() -> None:
    x = np.array([0.5, 1.0, 2.5, 10.0, 123.0, -0.5, -2.5])
    step = 1e-5
    slope = (numeric.lgamma(x + step) - numeric.lgamma(x - step)) / (2 * step)
    np.testing.assert_allclose(numeric.digamma(x), slope, rtol=1e-7, atol=1e-8)
    slope = (numeric.digamma(x + step) - numeric.digamma(x - step)) / (2 * step)
    np.testing.assert_allclose(numeric.trigamma(x), slope, rtol=1e-6)
    np.testing.assert_allclose(numeric.digamma(1.0), -0.5772156649015329, rtol=1e-14)
    np.testing.assert_allclose(numeric.trigamma(1.0), math.pi**2 / 6, rtol=1e-14)
    np.testing.assert_allclose(numeric.digamma(x + 1), numeric.digamma(x) + 1 / x, rtol=1e-12)


def test_poles_and_ends_of_the_gamma_family() -> None:
    ends = np.array([NAN, INF, -INF, 0.0, -0.0, -1.0, -30.0])
    np.testing.assert_array_equal(numeric.lgamma(ends), [NAN, INF, INF, INF, INF, INF, INF])
    np.testing.assert_array_equal(numeric.digamma(ends), [NAN, INF, NAN, -INF, INF, NAN, NAN])
    np.testing.assert_array_equal(numeric.trigamma(ends), [NAN, 0, NAN, INF, INF, INF, INF])


def test_digamma_is_exact_near_its_root():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(a, b, 200) for a, b in ((0, 12), (1.4, 1.5), (1.4616, 1.4617))])
    with mpmath.workdps(40):
        want = np.array([np.longdouble(mpmath.nstr(mpmath.digamma(float(v)), 25)) for v in x])
    unit = np.spacing(np.abs(want.astype(np.float64)))
    assert np.max(np.abs(numeric.digamma(x) - want) / unit) <= 4


def test_functions_keep_dtype_and_shape() -> None:
    for f in (numeric.erf, numeric.erfc, numeric.lgamma, numeric.digamma, numeric.trigamma):
        for shape in ((), (2, 3), (0, 2)):
            out = f(np.full(shape, 0.5, "float32"))
            assert (out.dtype, out.shape) == (np.float32, shape)
