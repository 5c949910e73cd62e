"""Math functions of compiled programs: within 4 ulp on large samples, and right at the edges."""

import mpmath
import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.c import compiler

pytestmark = [pytest.mark.backends]

BAR = 4.0
HUGE = {"float64": 700.0, "float32": 85.0}


def everywhere(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """Numbers of all sizes and both signs."""
    top = 290 if dtype == "float64" else 35
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-top, top, n)


def within(low: float, high: float):
    def make(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
        return rng.uniform(low, high, n)

    return make


def positive(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return np.abs(everywhere(rng, n, dtype))


def exponents(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return rng.uniform(-HUGE[dtype], HUGE[dtype], n)


NUMPY = {  # name -> samples; the reference is NumPy's function in the next wider dtype
    "exp": [exponents, within(-1, 1)],
    "expm1": [exponents, within(-1, 1), within(-1e-3, 1e-3)],
    "log": [positive, within(0.5, 2)],
    "log2": [positive, within(0.5, 2)],
    "log10": [positive, within(0.5, 2)],
    "log1p": [positive, within(-0.9, 2)],
    "sin": [within(-100, 100)],
    "cos": [within(-100, 100)],
    "tan": [within(-10, 10)],
    "asin": [within(-1, 1)],
    "acos": [within(-1, 1)],
    "atan": [everywhere, within(-3, 3)],
    "sinh": [within(-20, 20)],
    "cosh": [within(-20, 20)],
    "tanh": [within(-20, 20), within(-1, 1)],
    "asinh": [everywhere, within(-3, 3)],
    "acosh": [within(1, 100)],
    "atanh": [within(-0.99, 0.99)],
}
MPMATH = {
    "erf": (mpmath.erf, [within(-6, 6), within(-0.5, 0.5)]),
    "erfc": (mpmath.erfc, [within(-6, 9)]),
    "gammaln": (mpmath.loggamma, [within(0, 3), within(0.9, 1.1), within(0, 50), positive]),
    "digamma": (mpmath.digamma, [within(0, 3), within(1.4, 1.5), within(0, 50), within(10, 1e6)]),
}
EDGES = [
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-310, -1e-310,
    1e300, -1e300, 709.7, 709.8, 710.5, -708.5, -745.1, -745.2, -745.3, -1e4, 1e-30,
]  # fmt: skip


def compiled(name: str, dtype: str):
    x = xp.symbol("x", dtype=dtype, shape=(None,))
    f = getattr(xp, name, None) or getattr(xp.special, name)
    return xp.function([x], f(x), backend="c")


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest distance in units of the last place of the exact value."""
    unit = np.spacing(np.abs(want.astype(got.dtype))).astype(want.dtype)
    return float(np.max(np.abs(got.astype(want.dtype) - want) / unit))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NUMPY)
def test_ulp(name: str, dtype: str) -> None:
    f, rng = compiled(name, dtype), np.random.default_rng(0)
    wide = np.longdouble if dtype == "float64" else np.float64
    for sample in NUMPY[name]:
        x = sample(rng, 200_000, dtype).astype(dtype)
        with np.errstate(all="ignore"):
            want = getattr(np, {"asin": "arcsin"}.get(name, name))(x.astype(wide))
        assert ulps(f(x), want) <= BAR


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MPMATH)
def test_ulp_of_special_functions(name: str, dtype: str) -> None:
    exact, samples = MPMATH[name]
    f, rng = compiled(name, dtype), np.random.default_rng(0)
    for sample in samples:
        x = sample(rng, 3000, dtype).astype(dtype)
        x = x[x < 1e300] if dtype == "float64" else x[x < 1e35]
        with mpmath.workdps(40):
            digits = [mpmath.nstr(exact(mpmath.mpf(float(v))), 25) for v in x]
        want = np.array([np.longdouble(text) for text in digits])
        assert ulps(f(x), want) <= BAR


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*NUMPY, *MPMATH])
def test_edges(name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array(EDGES * 3, dtype)
        got = compiled(name, dtype)(x)
        y = xp.symbol("y", dtype=dtype, shape=(None,))
        f = getattr(xp, name, None) or getattr(xp.special, name)
        want = xp.function([y], f(y), backend="interpret")(x)
    tolerance = 1e-14 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=0)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


def test_precise_calls_libm() -> None:
    with xp.set_options(precise=True):
        f = compiled("exp", "float64")
    assert "vexp" not in f.source
    x = np.random.default_rng(0).uniform(-700, 700, 200_000)
    assert ulps(f(x), np.exp(x.astype(np.longdouble))) < 1.0


def test_dear_functions_stay_in_vector_loops() -> None:
    if not {"log", "sin"} <= compiler.find_compiler().vector:
        pytest.skip("no vector functions")
    assert "vlgamma_float64(" in compiled("gammaln", "float64").source
