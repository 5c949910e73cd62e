"""Sums are about as exact as pairwise summation, whole ones and those along rows."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.base import get_backend
from lazyarr.backends.loop.check import check
from lazyarr.backends.loop.interpret import run
from lazyarr.backends.loop.plan import plan
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.loop.cases import N, leaf

pytestmark = [pytest.mark.backends]


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0, 1, n)


def squares(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0.5, 1.5, n) ** 2


def constant(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.full(n, 0.1)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("make", [uniform, squares, constant])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_error_of_ten_million(dtype: str, make, rows: int) -> None:
    x = xp.symbol("x", dtype=dtype, shape=(None, None))
    f = xp.function([x], xp.sum(x, axis=1), backend="c")
    eps = np.finfo(dtype).eps
    values = make(np.random.default_rng(0), 10_000_000).astype(dtype).reshape(rows, -1)
    exact = np.sum(values.astype(np.longdouble), axis=1)
    pairwise = np.max(np.abs(np.sum(values, axis=1) - exact) / exact)
    # what pairwise may lose: half an eps for each of some 20 levels; it is often lucky
    assert np.max(np.abs(f(values) - exact) / exact) <= 4 * max(pairwise, 2.5 * eps)


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1024, 5000])
def test_values_at_the_ends_of_blocks(n: int) -> None:
    x = leaf(N)
    graph = Graph([x], [op.sum(x * x), op.max(x + 1), op.sum(op.exp(x))] if n else [op.sum(x)])
    values = np.random.default_rng(n).normal(size=n)
    want = [np.sum(values**2), np.max(values + 1), np.sum(np.exp(values))] if n else [0.0]
    planned = plan(graph)
    check(planned)
    for out, code in (run(planned, [values]), get_backend("c").compile(graph)([values])):
        assert code == 0
        for a, b in zip(out, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan(special: float) -> None:
    x = leaf(N)
    values = np.ones(3000)
    values[700] = special
    out, _ = get_backend("c").compile(Graph([x], [op.sum(x)]))([values])
    np.testing.assert_array_equal(out[0], special)
    values[2000] = -special
    out, _ = get_backend("c").compile(Graph([x], [op.sum(x)]))([values])
    np.testing.assert_array_equal(out[0], np.nan)


def test_a_sum_that_overflows() -> None:
    x = leaf(N)
    program = get_backend("c").compile(Graph([x], [op.sum(x)]))
    np.testing.assert_array_equal(program([np.full(3000, 1e308)])[0][0], np.inf)
    np.testing.assert_array_equal(program([np.full(3000, -1e308)])[0][0], -np.inf)
