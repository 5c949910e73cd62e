"""Sizes that depend on data: recorded for symbolic operands, found when the program runs."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import function, symbol
from lazyarr.errors import GraphError, ShapeError
from tests.backend_params import BACKENDS

NAN = np.nan
VECTORS = [[1.0, -2, 3, 0, 5], [-1.0], [2.0], [], [3.0, 1, 3, NAN, 2, 1, NAN, -0.0, 0.0]]
MATRICES = [[[1.0, -1], [-2, 3], [4, 5]], [[0.0, 0.0]], [[7.0]]]


def vector(name="x", size="n", dtype=xp.float64):
    return symbol(name, shape=(size,), dtype=dtype)


def check(f, expected, *values):
    """The same result for every input, and of the expected dtype."""
    for out, want in zip(f(*values), expected(*values), strict=True):
        assert out.dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_and_nonzero(backend):
    x, m = vector(), symbol("m", shape=("a", "b"))
    positive = x[x > 0]
    assert positive.shape == (None,)
    f = function([x], [positive, xp.sum(positive * 2), *xp.nonzero(x)], backend=backend)
    for v in map(np.array, VECTORS):
        check(f, lambda v: (v[v > 0], np.sum(v[v > 0] * 2), *np.nonzero(v)), v)
    f = function([m], [m[m > 0], *xp.nonzero(m), m[m[:, 0] > 0], m[:, m[0] > 0]], backend=backend)
    for v in map(np.array, MATRICES):
        check(f, lambda v: (v[v > 0], *np.nonzero(v), v[v[:, 0] > 0], v[:, v[0] > 0]), v)


@pytest.mark.parametrize("backend", BACKENDS)
def test_distinct_elements(backend):
    x = vector()
    f = function([x], [*xp.unique_all(x)], backend=backend)

    def numpy_unique(v):
        return np.unique(v, True, True, True, equal_nan=False)

    for v in map(np.array, VECTORS):
        check(f, numpy_unique, v)
    z = vector("z", dtype=xp.complex128)
    f = function([z], [*xp.unique_counts(z)], backend=backend)
    values, counts = f(np.array([1j, 2, 1j, 2 + 1j, 2]))
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {1j: 2, 2: 2, 2 + 1j: 1}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stated_size(backend):
    x, k = vector(), vector("k", dtype=xp.int64)
    outputs = [*xp.nonzero(x, size=3), *xp.unique_all(x, size=2), xp.repeat(x, k, size=4)]
    f = function([x, k], outputs, backend=backend)
    at, values, first, inverse, counts, many = f(np.array([2.0, 0, 1, 2]), np.array([0, 2, 1, 0]))
    np.testing.assert_array_equal(at, [0, 2, 3])
    np.testing.assert_array_equal(values, [0, 1])
    np.testing.assert_array_equal(first, [1, 2])
    np.testing.assert_array_equal(inverse, [2, 0, 1, 2])
    np.testing.assert_array_equal(counts, [1, 1])
    np.testing.assert_array_equal(many, [0, 0, 1, 2])  # the first element fills what lacks
    assert np.asarray(xp.nonzero(xp.asarray([0.0, 5, 0]), size=3)[0]).tolist() == [1, 0, 0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_repeat_by_an_array(backend):
    x, k = vector(), vector("k", dtype=xp.int64)
    f = function([x, k], [xp.repeat(x, k), xp.repeat(x, k[0])], backend=backend)
    check(f, lambda v, k: (np.repeat(v, k), np.repeat(v, k[0])), np.ones(3), np.array([2, 0, 1]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_flow(backend):
    x = vector()
    f = function([x], [xp.grad(xp.sum(x[x > 0] ** 2), x)], backend=backend)
    check(f, lambda v: (np.where(v > 0, 2 * v, 0),), np.array([1.0, -2, 3]))
    check(f, lambda v: (np.zeros(0),), np.zeros(0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_found_size_is_checked_against_the_others(backend):
    x, y = vector(), vector("y", "m")
    f = function([x, y], [x[x > 0] + y], backend=backend)
    check(f, lambda x, y: (x[x > 0] + y,), np.array([1.0, -1, 2]), np.array([3.0, 4]))
    with pytest.raises(ShapeError, match="found while running is 1, where 3 is needed"):
        f(np.array([1.0, -1]), np.ones(3))

    def replaced(x, y):
        x = x + 0
        x[x > 0] = y
        return x

    g = function([x, y], [replaced(x, y)], backend=backend)
    check(g, lambda x, y: (replaced(x, y),), np.array([1.0, -1, 2]), np.array([3.0, 4]))
    with pytest.raises(ShapeError, match="found while running is 2, where 3 is needed"):
        g(np.array([1.0, -1, 2]), np.ones(3))


def test_within_transforms():
    @xp.jit
    def f(x):
        return xp.sum(x[x > 0]), xp.unique_values(x)

    total, distinct = f(xp.asarray([1.0, 2, -3, 1]))
    assert float(total) == 4 and np.asarray(distinct).tolist() == [-3, 1, 2]
    x = vector()
    out = xp.scan(lambda c, _: (c + xp.sum(x[x > c]), None), 1.0, xp.arange(3))[0]
    assert function([x], [out])(np.array([1.0, 2, 3]))[0] == 6
    with pytest.raises(ShapeError, match="state a bound with `size=`"):
        xp.vectorize(lambda r: xp.sum(r[r > 0]))(symbol("s", shape=("a", "b")))


def test_as_jax_needs_a_bound():
    pytest.importorskip("jax")
    x = vector()
    with pytest.raises(GraphError, match="`size=`"):
        function([x], [xp.sum(x[x > 0])]).as_jax()(np.ones(3))
