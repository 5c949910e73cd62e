"""Compiled recording and walking: the same nodes, keys and values as Python code; no leak."""

import gc
import random
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.c import recorder
from lazyarr.backends.implicit import held_elsewhere
from lazyarr.backends.structure import key_of, pending
from lazyarr.graph import node as nodes
from lazyarr.graph.traverse import toposort

pytestmark = [pytest.mark.backends]


@pytest.fixture(scope="module")
def native():
    """The extension module."""
    module = recorder.module()
    if module is None:
        pytest.skip("the extension module cannot be built here")
    return module


@pytest.fixture(autouse=True)
def installed(native):
    before = list(nodes._native)
    nodes.set_native(native)
    yield
    nodes.set_native(before[0] if before else None)
    nodes._native[:] = before


NUMBERS = [2, 2.0, -1, 0.5, 3, 2.5, True, 0, -0.0, 7, 1, 1.0]
STEPS = [
    lambda x, y, c, k: x + y,
    lambda x, y, c, k: x * c,
    lambda x, y, c, k: c - x,
    lambda x, y, c, k: xp.abs(x) ** abs(c),
    lambda x, y, c, k: xp.exp(-xp.abs(x)),
    lambda x, y, c, k: xp.where(x > c, x, y),
    lambda x, y, c, k: xp.clip(x, -1.5, 2.0 + k),
    lambda x, y, c, k: xp.sum(x) + y,
    lambda x, y, c, k: xp.mean(y, axis=0) * x,
    lambda x, y, c, k: xp.concat([x, y])[k : k + 4],
    lambda x, y, c, k: xp.reshape(xp.reshape(x, (2, 2)).T, (4,)),
    lambda x, y, c, k: xp.roll(x, k) + xp.full((4,), float(k)),
    lambda x, y, c, k: x[k % 4] * y + xp.zeros(4),
    lambda x, y, c, k: xp.astype(xp.astype(y, xp.float32) * 1.5, xp.float64),
    lambda x, y, c, k: xp.take(x, xp.asarray([0, 3, 1, 2])),
    lambda x, y, c, k: xp.flip(xp.asarray(np.arange(4))) * 2 + x,
]


def program(seed: int, length: int = 14) -> tuple:
    """A random expression of four elements, and some of the handles on its way."""
    choose = random.Random(seed)
    found = [xp.asarray(np.array([0.5, -1.0, 2.0, 0.25])), xp.asarray(np.arange(4.0))]
    for _ in range(length):
        x, y = choose.choice(found), choose.choice(found)
        found.append(choose.choice(STEPS)(x, y, choose.choice(NUMBERS), choose.randint(0, 3)))
    kept = [x for x in found if choose.random() < 0.2]
    return xp.sum(found[-1] + found[-2]), kept


@pytest.mark.parametrize("part", range(4))
def test_keys_and_what_is_kept_are_the_same(native, part):
    for seed in range(100 * part, 100 * part + 100):
        out, kept = program(seed)
        asked = [out._v, *[x._v for x in kept[:1] if x._v.value is nodes.UNSET]]
        asked = list(dict.fromkeys(asked))
        key, held = native.key(asked)
        expression = pending(asked)
        again = held_elsewhere(expression, asked)
        expression.nodes = (*asked, *again)
        assert held == again
        assert key == key_of(expression)
        del out, kept, asked, held, again, expression


NAMED = [
    lambda x, y, c: x + y,
    lambda x, y, c: xp.exp(-x * c),
    lambda x, y, c: x.transpose(*reversed(x.dims)) - y,
    lambda x, y, c: x.rename({x.dims[0]: f"{x.dims[0]}'"}) * c,
    lambda x, y, c: x.mean(x.dims[0], skipna=False) * y,
    lambda x, y, c: x.isel({x.dims[-1]: slice(None, None, -1)}),
]


@pytest.mark.parametrize("seed", range(60))
def test_keys_of_named_expressions_are_the_same(native, seed):
    choose = random.Random(seed)
    p, q = choose.sample("abcdef", 2)
    found = [xp.XTensor(np.ones((2, 2)), dims=d) for d in ((p, q), (q, p))]
    for _ in range(6):
        many = [x for x in found if x.ndim == 2]
        made = choose.choice(NAMED)(choose.choice(many), choose.choice(many), choose.random())
        if made.ndim <= 4:
            found.append(made)
    out = xp.exp(found[-1] * 2)
    key, held = native.key([out._v])
    expression = pending([out._v])
    expression.nodes = (out._v, *held_elsewhere(expression, [out._v]))
    assert key == key_of(expression)
    assert list(expression.nodes[1:]) == held


def test_long_expressions_have_the_same_key(native):
    x = y = xp.asarray(np.arange(3.0))
    for i in range(400):
        y = y * 0.5 + x if i % 3 else y - xp.sin(x)
    key, held = native.key([y._v])
    expression = pending([y._v])
    assert (key, held) == (key_of(expression), [])
    assert len(expression.order) > 150


def described(v) -> list:
    """All that recording says of an expression."""
    found = pending([v]) if not v.symbolic else None
    order = found.order if found else toposort([v])
    place = {n: i for i, n in enumerate(order)}
    return [
        (n.type, n.depth, n.symbolic, n.name, n.call, n.where_made(),
         [place.get(x, x) if isinstance(x, nodes.Variable) else (type(x), x) for x in n.inputs])
        for n in order
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_the_same_nodes_are_recorded(native, seed):
    program(seed)  # what is seen for the first time is asked of Python
    first = described(program(seed)[0]._v)
    nodes.set_native(None)
    second = described(program(seed)[0]._v)
    assert first == second


def test_symbols_and_sizes_are_recorded_alike(native):
    def run():
        x = xp.symbol("x", shape=(None, 3))
        y = xp.exp(x) * 2.0 - x
        for _ in range(3):
            y = y + xp.sum(x) / x.sizes[0]
        return [(n.type.dtype, n.depth, n.symbolic, n.name) for n in toposort([y._v])]

    run()
    first = run()
    nodes.set_native(None)
    assert run() == first


def test_what_must_be_refused_is_refused_after_it_was_learned(native):
    x, i = xp.asarray([1.0, 2.0]), xp.asarray(np.int8([1, 2]))
    for _ in range(3):
        assert (x + 1000).dtype == xp.float64
        assert (i + 1).dtype == xp.int8
        with pytest.raises(OverflowError):
            i + 1000
        with pytest.raises(TypeError):
            x + "text"
        with pytest.raises(TypeError):
            xp.exp(x, x)
        assert xp.asarray(np.int8([3])).__add__(object()) is NotImplemented
        with pytest.raises(ValueError):
            x + xp.asarray([1.0, 2.0, 3.0])


def test_operators_have_the_names_and_texts_of_functions(native):
    assert xp.asarray([1.0]).__add__(1.0).dtype == xp.float64
    assert type(xp.asarray(1.0)).__add__.__name__ == "forward"
    assert xp.exp.__name__ == "exp"
    assert xp.Array.__mul__.__wrapped__ is not None


def evaluate(x, i: int) -> float:
    y = x * 0.5 + float(i)
    w = xp.exp(-y) ** 2 + (x[i % 3] - y) / 3
    return float(xp.sum(w, axis=0) + xp.mean(y))


def test_a_hundred_thousand_evaluations_leak_nothing(native):
    x, again = xp.asarray(np.arange(4.0)), 100_000
    with xp.set_options(backend="c"):
        for i in range(200):
            evaluate(x, i)
        gc.collect()
        objects, references = len(gc.get_objects()), sys.getrefcount(x._v.type)
        tracemalloc.start(1)
        for i in range(again // 100):
            evaluate(x, i)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for i in range(again // 20):
            evaluate(x, i)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        for i in range(again - again // 20 - again // 100):
            evaluate(x, i)
    gc.collect()
    assert grown < 20_000
    assert len(gc.get_objects()) - objects < 200
    assert abs(sys.getrefcount(x._v.type) - references) < 50
    assert sys.getrefcount(nodes.UNSET) < 10_000


def test_failures_leak_nothing(native):
    x = xp.asarray([1.0, 2.0])

    def fail():
        bad = xp.take(x, xp.asarray([0, 1]) + 5) * 2.0
        with pytest.raises(IndexError):
            bad.compute()

    with xp.set_options(backend="c"):
        for _ in range(50):
            fail()
        gc.collect()
        before = sys.getrefcount(x._v)
        for _ in range(200):
            fail()
    gc.collect()
    assert sys.getrefcount(x._v) <= before + 2


def test_threads_force_the_same_expressions(native):
    problems: list = []
    rounds, n = 60, 8
    barrier = threading.Barrier(n)
    shared: dict = {}
    lock = threading.Lock()

    def made(r):
        with lock:
            if r not in shared:
                x = xp.asarray(np.arange(5.0) + r)
                y = xp.exp(-x) * 2.0
                z = y + x[r % 4]
                shared[r] = x, y, z, xp.sum(z * y)
            return shared[r]

    def work(seed):
        choose = random.Random(seed)
        try:
            for r in range(rounds):
                barrier.wait(timeout=60)
                x, y, z, total = made(r)
                a = np.arange(5.0) + r
                b = np.exp(-a) * 2.0
                c = b + a[r % 4]
                for got, want in choose.sample([(y, b), (z, c), (total, np.sum(c * b))], 3):
                    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
        except BaseException as error:
            problems.append(error)
            barrier.abort()

    with xp.set_options(backend="auto"):
        threads = [threading.Thread(target=work, args=(s,)) for s in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not problems


def test_without_the_extension_python_code_does_the_same(native):
    x = xp.asarray(np.arange(4.0))
    with xp.set_options(backend="c", tier="compile"):
        first = [evaluate(x, i) for i in range(6)]
        nodes.set_native(None)
        assert [evaluate(x, i) for i in range(6)] == first
