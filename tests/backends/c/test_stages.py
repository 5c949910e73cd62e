"""Chains of dear functions run in stages: which loops do, and that values stay what they were."""

import numpy as np
import pytest

import lazyarr as xp

pytestmark = [pytest.mark.backends]


def chain(x, links: int):
    for i in range(links):
        x = xp.tanh(x) * 0.5 + x if i % 2 else xp.exp(-xp.abs(x)) + 0.25 * x
    return x


def compiled(f, *dtypes: str):
    symbols = [xp.symbol(f"x{i}", dtype=d, shape=("n",)) for i, d in enumerate(dtypes)]
    made = f(*symbols)
    outputs = list(made) if isinstance(made, tuple) else made
    return (
        xp.function(symbols, outputs, backend="c"),
        xp.function(symbols, outputs, backend="interpret"),
    )


@pytest.mark.parametrize(("links", "stages"), [(1, 0), (2, 0), (3, 3), (5, 5)])
def test_long_chains_run_in_stages(links, stages):
    source = compiled(lambda x: chain(x, links), "float64")[0].source
    assert source.count("#pragma omp simd") == max(1, stages)
    assert ("b_i" in source) == bool(stages)


def test_functions_side_by_side_stay_in_one_loop():
    def wide(*xs):
        return tuple(chain(x, 1) + xp.sin(x) + xp.cos(x) + xp.log1p(xp.abs(x)) for x in xs)

    assert "s_t" not in compiled(wide, *["float64"] * 3)[0].source


@pytest.mark.parametrize(("n", "staged"), [(8, False), (64, True)])
def test_loops_known_to_be_short_stay_whole(n, staged):
    x = xp.symbol("x", shape=(n,))
    assert ("s_t" in xp.function([x], chain(x, 4), backend="c").source) == staged


PROGRAMS = {
    "value": lambda x, y, k: chain(x, 4),
    "sum": lambda x, y, k: xp.sum(chain(x, 5)),
    "several outputs": lambda x, y, k: (chain(x, 3), chain(x, 4), xp.max(chain(x, 5))),
    "two inputs": lambda x, y, k: xp.exp(-xp.abs(chain(x, 3) * xp.log1p(xp.exp(y)) + y)),
    "a choice": lambda x, y, k: xp.where(x > 0, chain(x, 4), xp.tanh(xp.where(y > x, y, 1.0))),
    "a mask that waits": lambda x, y, k: xp.where(xp.tanh(x) > 0.1, chain(x, 4), y),
    "gathered": lambda x, y, k: chain(xp.take(x, k), 3) * xp.take(y, k),
    "counts": lambda x, y, k: chain(x * xp.astype(k, xp.float64), 3) + xp.astype(k * 2, xp.float64),
    "a gradient": lambda x, y, k: xp.grad(xp.sum(chain(x, 4) * y), x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_the_same(name):
    fast, slow = compiled(PROGRAMS[name], "float64", "float64", "int64")
    rng = np.random.default_rng(0)
    for n in (2, 3, 63, 64, 65, 128, 1000):
        x, y = rng.normal(size=(2, n))
        x[0], y[-1] = np.nan if n == 65 else -0.0, np.inf if n == 64 else 3.0
        k = rng.integers(0, n, n)
        got, want = fast(x, y, k), slow(x, y, k)
        many = isinstance(want, list)
        for a, b in zip(got if many else [got], want if many else [want], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_rows_and_single_precision():
    x = xp.symbol("x", dtype="float32", shape=(None, None))
    out = xp.sum(chain(x, 4) - xp.mean(x, axis=1, keepdims=True), axis=1)
    fast = xp.function([x], out, backend="c")
    slow = xp.function([x], out, backend="interpret")
    for shape in ((3, 5), (2, 200), (70, 70)):
        a = np.random.default_rng(0).normal(size=shape).astype("float32")
        np.testing.assert_allclose(fast(a), slow(a), rtol=1e-4, atol=1e-5)
