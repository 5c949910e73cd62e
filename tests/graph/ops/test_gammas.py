"""Special functions against exact values of mpmath: values, slopes, slopes by parameters."""

import itertools

import mpmath
import numpy as np
import pytest

import lazyarr as xp
from lazyarr import special
from lazyarr.errors import ArgumentError
from tests.backend_params import BACKENDS

MP = mpmath.mp
SMALL = np.array([1e-8, 1e-3, 0.1, 0.5, 1.0, 2.5, 7.9, 8.1, 30.0, 150.0])
# name -> (exact function, arguments, relative tolerance)
FUNCTIONS = {
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [-5.0, -0.3, *SMALL, 1e5], 2e-15),
    "ndtr": (mpmath.ncdf, [-30.0, -3.0, 0.0, 0.4, 6.0], 1e-13),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)), [-1e4, -30, -1.1, -0.9, 0.2, 5.0], 1e-14),
    "logit": (lambda p: mpmath.log(p / (1 - p)), [1e-9, 0.2, 0.499999, 0.5001, 0.64, 0.99], 4e-15),
    "log1mexp": (lambda x: mpmath.log(1 - mpmath.exp(x)), [-700.0, -2.0, -0.5, -1e-12], 1e-15),
    "entr": (lambda x: -x * mpmath.log(x), SMALL, 1e-15),
    "gamma": (mpmath.gamma, [-2.5, -0.3, *SMALL, 170.5], 2e-13),
}  # fmt: skip


def exact(f, *args: float, digits: int = 60) -> float:
    """A function of exact numbers at doubles."""
    with MP.workdps(digits):
        return float(f(*map(mpmath.mpf, args)))


def close(got: object, want: object, tolerance: float) -> None:
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-300)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str) -> None:
    f, points, tolerance = FUNCTIONS[name]
    got = np.asarray(getattr(special, name)(np.array(points)))
    close(got, [exact(f, x) for x in points], tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes(name: str) -> None:
    f, points, _ = FUNCTIONS[name]
    points = [x for x in points if abs(x) < 100]
    call = xp.grad(lambda x: xp.sum(getattr(special, name)(x)))
    want = [exact(lambda x: mpmath.diff(f, x), x) for x in points]
    close(call(np.array(points)).compute(), want, 2e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 6, 11, 30])
def test_polygamma(order: int) -> None:
    points = np.array([-3.3, -0.7, 1e-3, 0.5, 1.0, 7.0, 200.0])
    got = np.asarray(special.polygamma(order, points))
    close(got, [exact(lambda x: mpmath.polygamma(order, x), x) for x in points], 2e-13)


def test_polygamma_at_its_poles() -> None:
    got = np.asarray(special.polygamma(3, np.array([0.0, -1.0, -4.0, np.inf, np.nan])))
    np.testing.assert_array_equal(got, [np.inf, np.inf, np.inf, 0, np.nan])
    got = np.asarray(special.polygamma(2, np.array([0.0, -0.0, -1.0])))
    np.testing.assert_array_equal(got, [-np.inf, np.inf, np.nan])


def test_polygamma_refuses_orders_that_are_no_number() -> None:
    with pytest.raises(ArgumentError, match="write polygamma"):
        special.polygamma(np.array([1.5]), 2.0)
    with pytest.raises(ArgumentError, match="from 0 to 170"):
        special.polygamma(-1, 2.0)


def test_gammaln_to_any_order() -> None:
    """The derivatives of gammaln, digamma and trigamma are polygamma functions."""
    f, x = special.gammaln, 2.7
    for order in range(6):
        close(float(f(x)), exact(lambda x, n=order: (
            mpmath.polygamma(n - 1, x) if n else mpmath.loggamma(x)), x), 1e-13)  # fmt: skip
        f = xp.grad(f)


@pytest.mark.parametrize(("a", "b"), list(itertools.product([0.1, 1.0, 7.9, 8.1, 2e6], repeat=2)))
def test_betaln(a: float, b: float) -> None:
    want = exact(lambda a, b: mpmath.log(mpmath.beta(a, b)), a, b)
    np.testing.assert_allclose(float(special.betaln(a, b)), want, rtol=1e-13, atol=2e-14)
    if max(a, b) < 100:
        close(float(special.beta(a, b)), np.exp(want), 1e-12)


def lower(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


POINTS = [(a, a * f if a > 0.05 else f) for a in SMALL for f in (0.01, 0.5, 0.97, 1.02, 1.5, 3.0)]


@pytest.mark.parametrize(("name", "f"), [("gammainc", lower), ("gammaincc", upper)])
def test_incomplete_gamma(name: str, f) -> None:
    a, x = np.array(POINTS).T
    got = np.asarray(getattr(special, name)(a, x))
    want = np.array([exact(f, *p) for p in POINTS])
    np.testing.assert_allclose(got, want, rtol=5e-13, atol=1e-280)


def by_parameter(f, *args, k: int = 0, h: float = 1e-20):
    """The derivative of an exact function by its parameter k, by a difference of exact numbers."""
    with MP.workdps(100):
        args = [mpmath.mpf(v) for v in args]
        up, down = list(args), list(args)
        up[k] += h
        down[k] -= h
        return float((f(*up) - f(*down)) / (2 * mpmath.mpf(h)))


@pytest.mark.parametrize(("name", "f"), [("gammainc", lower), ("gammaincc", upper)])
def test_incomplete_gamma_by_its_parameter(name: str, f) -> None:
    points = POINTS[::5]
    a, x = np.array(points).T
    call = xp.grad(lambda a, x: xp.sum(getattr(special, name)(a, x)), (0, 1))
    got = [g.compute() for g in call(a, x)]
    for k in (0, 1):
        want = [by_parameter(f, *p, k=k) for p in points]
        np.testing.assert_allclose(got[k], want, rtol=2e-12, atol=1e-18)


def test_second_derivatives_by_parameters() -> None:
    """All of the Hessian, parameters and argument."""
    point = np.array([2.3, 1.7])
    got = xp.hessian(lambda p: special.gammainc(p[0], p[1]))(point).compute()
    with MP.workdps(40):
        want = [[float(mpmath.diff(lower, tuple(point), n)) for n in row]
                for row in ([(2, 0), (1, 1)], [(1, 1), (0, 2)])]  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=1e-9)


BETAS = [(0.1, 0.2), (0.5, 3.0), (2.0, 2.0), (7.5, 30.0), (9.0, 12.0), (150.0, 80.0)]


def regularised(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def test_incomplete_beta() -> None:
    points = [(a, b, x) for a, b in BETAS for x in (0.01, 0.3, a / (a + b), 0.9)]
    got = np.asarray(special.betainc(*np.array(points).T))
    np.testing.assert_allclose(got, [exact(regularised, *p) for p in points], rtol=1e-12)


def test_incomplete_beta_by_its_parameters() -> None:
    points = [(a, b, x) for a, b in BETAS[:5] for x in (0.2, a / (a + b))]
    call = xp.grad(lambda a, b, x: xp.sum(special.betainc(a, b, x)), (0, 1, 2))
    got = [g.compute() for g in call(*np.array(points).T)]
    for k in range(3):
        want = [by_parameter(regularised, *p, k=k) for p in points]
        np.testing.assert_allclose(got[k], want, rtol=1e-11, atol=1e-16)


def test_ends() -> None:
    """Where a series has nothing to sum."""
    inf, nan = np.inf, np.nan
    a, x = np.array([2.0, 2, 0, -1, nan, 2]), np.array([0.0, inf, 1, 1, 1, -1])
    np.testing.assert_array_equal(np.asarray(special.gammainc(a, x)), [0, 1, 1, nan, nan, nan])
    np.testing.assert_array_equal(np.asarray(special.gammaincc(a, x)), [1, 0, 0, nan, nan, nan])
    got = np.asarray(special.betainc(2.0, 3.0, np.array([0.0, 1.0, -0.1, 1.1, nan])))
    np.testing.assert_array_equal(got, [0, 1, nan, nan, nan])
    assert float(xp.grad(lambda x: special.gammainc(1.0, x))(0.0)) == 1.0


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend(backend: str) -> None:
    """Value and gradient of a sum of all of them, by every argument."""

    def f(a, b, x):
        total = special.gammainc(a, x) + special.gammaincc(b, x) + special.betainc(a, b, x / 9)
        total = total + special.betaln(a, b) + special.polygamma(2, x) + special.erfcx(x)
        return xp.sum(total + special.log_ndtr(-x) + special.logit(x / 9))

    arrays = [np.array([0.7, 2.0, 9.0]), np.array([3.0, 1.5, 0.4]), np.array([0.5, 2.0, 6.0])]
    symbols = [xp.symbol(n, shape=(None,)) for n in "abx"]
    both = xp.value_and_grad(f, (0, 1, 2))
    call = xp.function(symbols, both(*symbols), backend=backend)
    value, slopes = call(*arrays)
    want, wanted = both(*map(xp.asarray, arrays))
    np.testing.assert_allclose(value, float(want), rtol=1e-12)
    for g, w in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(g, w.compute(), rtol=1e-11)
