"""How many structures changing numbers, sizes and labels make, and what a key depends on."""

import random
import string

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends import implicit
from lazyarr.backends.structure import key_of, pending

EVALUATIONS, MOST = 1000, 20


def structures() -> int:
    """The different keys met so far."""
    return sum(len(t.seen | t.programs.keys()) for t in implicit._tables.values())


def descend(choose: random.Random, rng: np.random.Generator) -> None:
    """A step of gradient descent: learning rates, sizes, and data."""
    n, rate, momentum = choose.randint(2, 80), choose.random(), choose.random()
    a, b = rng.normal(size=(n, 3)), rng.normal(size=n)
    x, y, w = xp.asarray(a), xp.asarray(b), xp.asarray(np.ones(3))
    loss = xp.mean((xp.matmul(x, w) - y) ** 2)
    step = w * momentum - rate * xp.grad(loss, w)
    want = momentum - rate * (2 / n) * a.T @ (a.sum(axis=1) - b)
    np.testing.assert_allclose(step.compute(), want, rtol=1e-8, atol=1e-10)


def select(choose: random.Random, rng: np.random.Generator) -> None:
    """Indices, slice bounds, sizes, fills and shifts."""
    n, m = choose.randint(12, 60), choose.randint(2, 7)
    a = rng.normal(size=(n, m))
    i, j, k = choose.randint(-n, n - 1), choose.randint(2, 5), choose.randint(6, 11)
    x = xp.asarray(a)
    got = xp.sum(x[j:k, ::-1] * choose.random() * 0 + x[i], axis=0) + xp.full((m,), float(k))
    want = np.sum(a[j:k, ::-1] * 0 + a[i], axis=0) + k
    np.testing.assert_allclose(got.compute(), want, rtol=1e-9)
    grid = xp.reshape(xp.arange(float(j), float(j + n * m)), (n, m)) + xp.roll(x, k, axis=0)
    want = np.arange(j, j + n * m, dtype=float).reshape(n, m) + np.roll(a, k, axis=0)
    np.testing.assert_allclose(xp.mean(grid, axis=1).compute(), want.mean(axis=1))


def power(choose: random.Random, rng: np.random.Generator) -> None:
    """Exponents, of the table and others, and bounds of clip."""
    a, p = rng.random(choose.randint(2, 40)) + 0.5, choose.choice([2, 3, 2.5, choose.random()])
    low = choose.random()
    got = xp.sum(xp.clip(xp.asarray(a) ** p, low, 2.0))
    np.testing.assert_allclose(float(got), np.clip(a**p, low, 2.0).sum())


def label(choose: random.Random, rng: np.random.Generator) -> None:
    """Labels, names and sizes of dimensions."""
    n, m = choose.randint(3, 30), choose.randint(2, 9)
    group, obs = (("".join(choose.sample(string.ascii_letters, 5))) for _ in range(2))
    names = [f"{choose.random()}-{i}" for i in range(m)]
    a, b = rng.normal(size=(n, m)), rng.normal(size=m)
    x = xp.XTensor(a, dims=(obs, group), coords={group: names})
    y = xp.XTensor(b, dims=group, coords={group: x.coords[group]})
    out = ((x - y) * choose.random() ** 0 + xp.exp(-x * x)).mean(obs, skipna=False)
    want = ((a - b) + np.exp(-a * a)).mean(axis=0)
    assert float(out.sel({group: names[1]})) == pytest.approx(want[1])
    np.testing.assert_allclose(out.values, want)


@pytest.mark.backends
def test_a_thousand_evaluations_make_few_structures():
    choose, rng = random.Random(0), np.random.default_rng(0)
    before = structures()
    with xp.set_options(backend="c"):
        for _ in range(EVALUATIONS):
            choose.choice([descend, select, power, label])(choose, rng)
    made = structures() - before
    print(f"{EVALUATIONS} evaluations made {made} structures")
    assert made <= MOST


@pytest.mark.backends
def test_options_that_change_a_program_have_their_own():
    x = xp.asarray(np.linspace(-700.0, 700.0, 1000))
    with xp.set_options(backend="c", tier="compile"):
        fast = xp.exp(x).compute()
        with xp.set_options(precise=True):
            exact = xp.exp(x).compute()
        again = xp.exp(x).compute()
    np.testing.assert_array_equal(fast, again)
    want = np.exp(x.compute().astype(np.longdouble))
    assert np.max(np.abs((exact - want) / want)) < np.max(np.abs((fast - want) / want))


def key(handle) -> object:
    return key_of(pending([handle._v]))


def test_dims_count_by_their_order_not_by_their_names():
    def made(first, second, third):
        x = xp.XTensor(np.ones((2, 3)), dims=(first, second))
        y = xp.XTensor(np.ones((3, 2)), dims=(second, third))
        return (x + 1) * y

    assert key(made("a", "b", "c")) == key(made("p", "q", "r"))
    assert key(made("a", "b", "c")) != key(made("a", "b", "a"))


def test_what_a_key_depends_on():
    x, y = xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])
    single = xp.asarray(np.ones(2, "float32"))
    different = [
        x + x, x + y, x + 1, x + 1.0, x - 1.0, 1.0 - x, x + True, x**2, x**3, x**2.5,
        xp.sum(x + 1, axis=0), xp.sum(x + 1, axis=0, keepdims=True), single + 1.0,
        xp.asarray([1.0]) + 1.0, xp.expand_dims(x + 1, axis=0), xp.expand_dims(x + 1, axis=1),
        x[0:1] + 1.0, x[:2] + 1.0, (x + 1)[::-1],
    ]  # fmt: skip
    assert len({key(z) for z in different}) == len(different)
    longer = xp.asarray(np.arange(5.0))
    assert key(x + 1.5) == key(longer + 2.5)
    assert key(x**2.5) == key(longer**3.5)
    assert key(longer[1:3] * 2) == key(longer[2:5] * 7)
