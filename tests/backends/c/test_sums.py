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


LONG = [  # shapes of ten million elements, and the axes that are added up
    ((10_000_000,), None),
    ((1, 10_000_000), 1),
    ((2, 5_000_000), 1),
    ((5_000_000, 2), None),
    ((3162, 3162), None),
    ((2, 1_000_000, 5), (1, 2)),
    ((5_000_000, 2), 0),
    ((1_000_000, 10), 0),
    ((10_000, 1000), 0),
]
FUNCTIONS = {
    "sum": lambda xp, x, axis: xp.sum(x, axis=axis),
    "squares": lambda xp, x, axis: xp.sum(x * x, axis=axis),
    "mean": lambda xp, x, axis: xp.mean(x, axis=axis),
    "var": lambda xp, x, axis: xp.var(x, axis=axis),
}


def pairwise(x: np.ndarray, axis: object) -> np.ndarray:
    """NumPy's sum along one contiguous axis, which is pairwise."""
    over = range(x.ndim) if axis is None else np.atleast_1d(axis)
    kept = [d for d in range(x.ndim) if d not in over]
    turned = np.transpose(x, [*kept, *over]).reshape([x.shape[d] for d in kept] + [-1])
    return np.sum(np.ascontiguousarray(turned), axis=-1)


def error_of(got: np.ndarray, exact: np.ndarray) -> float:
    return float(np.max(np.abs(got - exact) / exact))


@pytest.mark.parametrize(
    ("make", "threads"), [(uniform, 1), (squares, 1), (constant, 1), (uniform, 2)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_error_of_ten_million(dtype: str, make, threads: int) -> None:
    values = make(np.random.default_rng(0), 10_000_000).astype(dtype)
    few = LONG[1:3] if threads == 1 else LONG[::4]
    for shape, axis in LONG if (make, threads) == (uniform, 1) else few:
        accurate(values[: int(np.prod(shape))].reshape(shape), axis, threads)


def accurate(values: np.ndarray, axis: object, threads: int) -> None:
    """All functions are about as exact as pairwise summation, and the same twice."""
    x = xp.symbol("x", dtype=values.dtype.name, shape=(None,) * values.ndim)
    names = [n for n in FUNCTIONS if n != "var" or np.ptp(values) > 0]
    outputs = [FUNCTIONS[name](xp, x, axis) for name in names]
    with xp.set_options(threads=threads):
        call = xp.function([x], outputs, backend="c")
    got, again = call(values), call(values)
    exact = values.astype(np.longdouble if values.itemsize == 8 else np.float64)
    lucky = error_of(pairwise(values, axis), np.sum(exact, axis=axis))
    # what pairwise may lose: half an eps for each of some 20 levels; it is often lucky
    bar = 4 * max(lucky, 2.5 * np.finfo(values.dtype).eps)
    for name, value, second in zip(names, got, again, strict=True):
        error = error_of(value, FUNCTIONS[name](np, exact, axis))
        assert error <= bar, (name, values.shape, axis)
        if threads == 1:
            np.testing.assert_array_equal(value, second)


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
