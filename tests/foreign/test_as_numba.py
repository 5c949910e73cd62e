"""Compiled functions as functions of Numba."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import GraphError
from tests.foreign.test_export import POINT, exact, example, slope

numba = pytest.importorskip("numba")


def test_inside_a_function_of_numba():
    x, k, value = example()
    f = xp.function([x, k], xp.value_and_grad(value, x), backend="c").as_numba("posterior")

    @numba.njit
    def climb(x, k, steps):
        best = 0.0
        for _ in range(steps):
            best, g = f(x, k)
            x = x + 0.01 * g
        return best, x

    value, slopes = f(POINT, 1.5)
    np.testing.assert_allclose(value, exact(POINT, 1.5))
    np.testing.assert_allclose(slopes, slope(POINT, 1.5))
    best, last = climb(POINT, 1.5, 3)
    want, x = 0.0, POINT
    for _ in range(3):
        want, x = exact(x, 1.5), x + 0.01 * slope(x, 1.5)
    np.testing.assert_allclose(best, want)
    np.testing.assert_allclose(last, x)
    with pytest.raises(ValueError, match="must not be 1"):
        f(POINT[:1], 1.5)


def test_layouts_dtypes_shapes_and_checks():
    x, i = (
        xp.symbol("x", shape=(None, 3), dtype="float32"),
        xp.symbol("i", shape=(2,), dtype="int64"),
    )
    y = xp.symbol("y", shape=(None,))
    picked = xp.take(x, i, axis=1)
    f = xp.function([x, i, y], [picked, xp.concat([y, y]) > 0], backend="numba").as_numba()
    rows = np.arange(12, dtype="float32").reshape(3, 4).T
    got = f(rows, np.array([2, -1]), POINT[::2] - 1)
    np.testing.assert_array_equal(got[0], rows[:, [2, 2]])
    np.testing.assert_array_equal(got[1], np.tile(POINT[::2] > 1, 2))
    assert got[0].dtype == np.float32 and got[1].dtype == np.bool_
    with pytest.raises(ValueError, match="a check failed"):
        f(rows, np.array([2, 3]), POINT)


def test_data_and_functions_of_others_stay_inside():
    table = np.linspace(0, 1, 1000)
    twice = xp.wrap_c(
        "void f(int64_t n, const double *x, double *y) { while (n--) y[n] = 2 * x[n]; }",
        "f(n, x: float64[n]) -> y: float64[n]",
    )
    x = xp.symbol("x", shape=(1000,))
    f = xp.function([x], xp.sum(twice(x) * xp.asarray(table)), backend="c").as_numba()
    assert isinstance(f(table), float)
    np.testing.assert_allclose(f(table), 2 * np.sum(table**2))


def test_what_is_not_numba():
    x = xp.symbol("x", shape=(3,))
    f = xp.function([x], xp.wrap_numpy(np.sin, out=0)(x), backend="c")
    with pytest.raises(GraphError, match="not Numba alone.*foreign"):
        f.as_numba()
