"""Implicit use: structures, tiers, what is kept, what is bounded, and threads."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends import implicit, stats
from lazyarr.errors import ConcretizationError, GradientError
from lazyarr.graph import node as nodes

ROOT = Path(__file__).resolve().parents[2]


def before_and_after(run):
    """Run, and return what the counters gained."""
    first = xp.stats()
    run()
    return {k: v - first.get(k, 0) for k, v in xp.stats().items()}


@pytest.fixture(params=["interpret", "c", "c recorded by Python code"])
def backend(request):
    name, *by_python = request.param.split(" ", 1)
    before = list(nodes._native)
    if by_python:
        nodes.set_native(None)
    with xp.set_options(backend=name):
        yield name
    if by_python:
        nodes.set_native(before[0] if before else None)
        nodes._native[:] = before


def test_changing_numbers_and_sizes_compile_nothing_new(backend):
    rng, choose = np.random.default_rng(0), random.Random(0)

    def one():
        n, k = choose.randint(5, 60), choose.randint(1, 3)
        rate, power = choose.random(), 2 + choose.random()
        a = rng.normal(size=(n, 3))
        x = xp.asarray(a)
        inner = xp.sum((xp.abs(x) * rate + 1.5)[k : n - 1] ** power, axis=0)
        y = inner + xp.reshape(x, (3 * n,))[::2][k] * rate
        got = float(xp.mean(xp.exp(-y) * x[k], axis=0))
        want = np.sum((np.abs(a) * rate + 1.5)[k : n - 1] ** power, axis=0)
        want = want + a.reshape(3 * n)[::2][k] * rate
        assert got == pytest.approx(np.mean(np.exp(-want) * a[k]), rel=1e-9)

    gained = before_and_after(lambda: [one() for _ in range(300)])
    assert gained.get("compiles c", 0) <= 4
    if backend == "c":
        assert gained["misses"] <= 8


def test_changing_sizes_and_labels_of_named_arrays_compile_nothing_new(backend):
    rng, choose = np.random.default_rng(0), random.Random(0)

    def one(i):
        n, m, k = choose.randint(3, 30), choose.randint(2, 9), choose.randint(0, 1)
        a, b = rng.normal(size=(n, m)), rng.normal(size=m)
        x = xp.XTensor(a, dims=("obs", "group"), coords={"group": [f"{i}-{j}" for j in range(m)]})
        y = xp.XTensor(b, dims="group", coords={"group": x.coords["group"]})
        got = ((x - y) * choose.random() * 0 + xp.exp(x * y)).isel(obs=slice(k, None)).mean("obs")
        np.testing.assert_allclose(
            got.sel(group=f"{i}-1").values, np.exp(a * b)[k:].mean(axis=0)[1]
        )

    with xp.set_options(skipna=False):
        gained = before_and_after(lambda: [one(i) for i in range(100)])
    assert gained.get("compiles c", 0) <= 4
    if backend == "c":
        assert gained["misses"] <= 8


def test_sharing_is_part_of_the_structure(backend):
    x, y = xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])
    for _ in range(3):
        assert (x + x).compute().tolist() == [2.0, 4.0]
        assert (x + y).compute().tolist() == [4.0, 6.0]
        assert (x**2).compute().tolist() == [1.0, 4.0]
        assert (x**3.5 / x**2.5).compute().tolist() == pytest.approx([1.0, 2.0])
        assert (xp.astype(x, xp.float32) * 3.5).compute().dtype == np.float32
        assert (xp.asarray(np.int8([3])) * 2).compute().dtype == np.int8
        clipped = xp.clip(xp.asarray(np.int8([3, 50])), max=30).compute()
        assert clipped.dtype == np.int8
        assert clipped.tolist() == [3, 30]


def test_a_size_of_one_is_another_structure(backend):
    for n, m in ((3, 3), (1, 3), (3, 1), (2, 2), (1, 1)) * 3:
        a, b = np.arange(1.0, n + 1), np.arange(m)
        got = (xp.asarray(a)[:, None] * xp.asarray(b) + xp.asarray(a)[0]).compute()
        np.testing.assert_array_equal(got, a[:, None] * b + a[0])
        c = np.arange(float(n + 1))
        got = (xp.asarray(c)[1:] + xp.asarray(np.arange(4.0))[-n:]).compute()
        np.testing.assert_array_equal(got, c[1:] + np.arange(4.0)[-n:])


def test_a_loop_until_convergence_computes_each_step_once(backend):
    stats.reset()
    x, error, steps = xp.asarray(2.0), xp.asarray(1.0), 0
    while error > 1e-12:
        y = 0.5 * (x + 2.0 / x)
        error = xp.abs(y - x)
        x, steps = y, steps + 1
    assert float(x) == pytest.approx(2**0.5)
    done = xp.stats()
    assert done["interpretations"] + done["hits"] + done["compiles"] <= 2 * steps + 2


def test_live_handles_are_kept():
    x = xp.asarray(np.arange(5.0))
    y = xp.exp(x)
    total = xp.sum(y)
    float(total)
    assert isinstance(y._v.value, np.ndarray)


def test_an_exception_publishes_nothing():
    x = xp.asarray([1.0, 2.0])
    bad = xp.take(x, xp.asarray([0, 1]) + 5)
    kept = bad * 2
    for _ in range(3):
        with pytest.raises(IndexError, match="out of bounds"):
            kept.compute()
    assert kept._v.value is nodes.UNSET
    assert bad._v.value is nodes.UNSET


def test_history_serves_derivatives_and_says_when_it_is_gone():
    x = xp.asarray(3.0)
    y = x * x
    float(y)
    assert float(xp.grad(y * x, x)) == 27.0
    for _ in range(implicit.HISTORY + 5):
        y = y * 0.5
        float(y)
    with pytest.raises(GradientError, match=str(implicit.HISTORY)):
        xp.grad(y, x)


def test_deep_recording_is_flushed_and_symbols_are_not():
    x, s = xp.asarray(0.0), xp.symbol("s")
    y, t = x, s
    for _ in range(3 * implicit.DEPTH):
        y, t = y + 1.0, t + 1.0
    assert y._v.depth <= implicit.DEPTH + 1
    assert t._v.depth >= 3 * implicit.DEPTH
    assert float(y) == 3 * implicit.DEPTH


MEMORY = """
import resource
import numpy as np
import lazyarr as xp
rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
float(xp.sum(xp.asarray([1.0]) + 1))
base = rss()
total = xp.zeros(1000)
for i in range(3000):
    total = total + np.full(1000, float(i))
losses, w = [], xp.asarray(2.0)
for i in range(3000):
    losses.append(xp.mean((xp.asarray(np.full(20000, float(i % 7))) - w) ** 2))
print(rss() - base, float(total[0]), float(losses[3]), float(losses[-1]))
"""


def test_unforced_recording_stays_small():
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, cwd=ROOT
    )
    grown, total, early, late = map(float, done.stdout.split())
    assert grown < 100
    assert total == 3000 * 2999 / 2
    assert (early, late) == (1.0, 0.0 if 2999 % 7 == 2 else (2999 % 7 - 2.0) ** 2)


def test_forbidding_and_explaining():
    x = xp.asarray([1.0, 2.0])
    with xp.no_implicit_eval():
        y = xp.sum(x)
        with pytest.raises(ConcretizationError, match="test_implicit.py"):
            float(y)
    with xp.explain_forces() as places:
        float(y)
    assert len(places) == 1
    assert "test_implicit.py" in places[0]


def test_a_place_that_keeps_compiling_is_named(monkeypatch):
    monkeypatch.setattr(implicit, "MANY", 3)

    def ask(k):
        x = xp.asarray(np.ones(3))
        for _ in range(k):
            x = xp.sin(x) * 1.25
        return x.compute()

    with xp.set_options(backend="c", tier="compile"):
        with pytest.warns(UserWarning, match="test_implicit.py.*different structures"):
            for k in range(31, 35):
                ask(k)
