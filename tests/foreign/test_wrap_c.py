"""C functions: signatures, values, derivatives, error codes, the key of the build."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, LazyArrError, ShapeError
from lazyarr.namespace.foreign_c import parse
from tests.backend_params import BACKENDS

POINT = np.linspace(0.3, 1.7, 5)
on_backends = pytest.mark.parametrize("backend", BACKENDS)
SOFT = """
void soft(int64_t n, double k, const double *x, double *y, double *slope)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = log1p(exp(k * x[i]));
        slope[i] = k / (1 + exp(-k * x[i]));
    }
}
"""


def vjp(g, y, k, x):
    return None, g[0] * y[1]


soft = xp.wrap_c(
    SOFT, "soft(n, k: float64, x: float64[n]) -> (y: float64[n], s: float64[n])", vjp=vjp
)


@on_backends
def test_value_and_gradient(backend):
    x = xp.symbol("x", shape=(None,))
    y = xp.sum(soft(2.0, x)[0] ** 2)
    f = xp.function([x], xp.value_and_grad(y, x), backend=backend)
    value, slope = f(POINT)
    want = np.log1p(np.exp(2 * POINT))
    np.testing.assert_allclose(value, np.sum(want**2))
    np.testing.assert_allclose(slope, 2 * want * 2 / (1 + np.exp(-2 * POINT)))
    inside = backend in ("interpret", "c", "numba")
    assert len(f.fallbacks()) == (0 if inside else 1)


@on_backends
def test_batched_in_a_loop(backend):
    x = xp.symbol("x", shape=(2, 5))
    y = xp.vectorize(lambda row: soft(2.0, row)[0])(x)
    rows = np.stack([POINT, -POINT])
    got = xp.function([x], y, backend=backend)(rows)
    np.testing.assert_allclose(got, np.log1p(np.exp(2 * rows)))


def test_matrices_integers_and_results_of_other_shapes():
    count = xp.wrap_c(
        """
        int count(int64_t n, int64_t m, const double *x, const int32_t *limit, int64_t *out)
        {
            if (*limit < 0) return 7;
            for (int64_t j = 0; j < m; j++) out[j] = 0;
            for (int64_t i = 0; i < n * m; i++) out[i % m] += x[i] > *limit;
            return 0;
        }
        """,
        "int count(n, m, x: float64[n, m], limit: int32[]) -> out: int64[m]",
    )
    x = np.arange(6.0).reshape(2, 3)
    assert count(x, np.int32(1)).compute().tolist() == [1, 1, 2]
    assert count(x.T, np.int32(1)).compute().tolist() == [1, 3]
    with pytest.raises(LazyArrError, match="returned the code 7"):
        count(x, np.int32(-1)).compute()


def test_headers_flags_and_libraries():
    f = xp.wrap_c(
        'void f(const double *x, double *y) { y[0] = FACTOR * cbrt(*x) + (double)strlen("abc"); }',
        "f(x: float64[]) -> y: float64[]",
        headers=["string.h"],
        libraries=["m"],
        flags=["-DFACTOR=10"],
    )
    assert float(f(xp.asarray(8.0))) == 23.0


def test_signature():
    found = parse("int f(n, x: float32[n, 3], flag: bool) -> (y: float64[n], z: int8[])")
    assert found.prototype == "int f(int64_t n, const float *x, _Bool flag, double *y, int8_t *z)"
    for text in (
        "f(x) y",
        "f(x: float64[n]) -> y: float64",
        "f(x: float64[n] ->",
        "f(x:) -> y: int8[]",
    ):
        with pytest.raises(ArgumentError, match="cannot read|must be buffers"):
            parse(text)


def test_operands_must_fit():
    f = xp.wrap_c("", "f(n, x: float64[n], y: float64[n]) -> z: float64[n]")
    with pytest.raises(ShapeError, match="y has size 4 where n is 3"):
        f(xp.ones(3), xp.ones(4))
    with pytest.raises(ArgumentError, match="cast or reshape"):
        f(xp.ones(3), xp.ones((3, 3)))
    with pytest.raises(ArgumentError, match="takes 2 arrays, got 1"):
        f(xp.ones(3))
