"""Calls of compiled functions: `out=`, donated inputs, trusted inputs, memory, the GIL."""

import pickle
import threading
import time

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from tests.backend_params import BACKENDS, parameter

pytestmark = pytest.mark.backends
backends = pytest.mark.parametrize("backend", BACKENDS)
launched = pytest.mark.parametrize("backend", [parameter("c"), parameter("numba")])


def vector(name="x", n=None, dtype="float64"):
    return xp.symbol(name, shape=(n,), dtype=dtype)


# -- out= ------------------------------------------------------------------------------------------


@backends
def test_results_are_written_into_given_arrays(backend):
    x = vector()
    one = xp.function([x], x * 2, backend=backend)
    a, here = np.arange(3.0), np.empty(3)
    assert one(a, out=here) is here
    np.testing.assert_array_equal(here, [0, 2, 4])
    many = xp.function([x], [x + 1, xp.sum(x)], backend=backend)
    got = many(a, out=[here, None])
    assert got[0] is here and got[1] is not None
    np.testing.assert_array_equal(here, [1, 2, 3])
    assert got[1] == 3
    tree = xp.function([x], {"a": x - 1, "b": (x, x * x)}, backend=backend)
    where = {"a": here, "b": (None, np.empty(3))}
    got = tree(a, out=where)
    assert got["a"] is here and got["b"][1] is where["b"][1]
    np.testing.assert_array_equal(got["b"][1], [0, 1, 4])
    np.testing.assert_array_equal(got["b"][0], a)


@backends
def test_out_may_be_an_input(backend):
    """The result is right where it is written over what it is computed from."""
    x, y = vector("x"), vector("y")
    f = xp.function([x, y], xp.flip(x) + y, backend=backend)
    a, b = np.arange(4.0), np.ones(4)
    want = a[::-1] + b
    assert f(a, b, out=a) is a
    np.testing.assert_array_equal(a, want)
    block = np.arange(6.0)
    want = block[1:5][::-1] + 1
    f(block[1:5], b, out=block[:4])
    np.testing.assert_array_equal(block[:4], want)


@backends
def test_out_of_any_layout(backend):
    x = xp.symbol("x", shape=(None, None))
    f = xp.function([x], x * 2, backend=backend)
    a, here = np.arange(6.0).reshape(2, 3), np.zeros((3, 4))
    f(a, out=here[:, ::2].T)
    np.testing.assert_array_equal(here[:, ::2].T, a * 2)
    assert not here[:, 1::2].any()


@backends
def test_an_out_that_does_not_fit(backend):
    x = vector()
    f = xp.function([x], [x * 2, x + 1], backend=backend)
    a, good = np.arange(3.0), np.empty(3)
    with pytest.raises(ShapeError, match=r"out\[1\].*\(3,\).*\(4,\)"):
        f(a, out=[good, np.empty(4)])
    with pytest.raises(DTypeError, match=r"out\[0\].*float64.*float32"):
        f(a, out=[np.empty(3, "float32"), good])
    with pytest.raises(ArgumentError, match="list"):
        f(a, out=[good, [1.0, 2.0, 3.0]])
    with pytest.raises(ArgumentError, match="2 entries"):
        f(a, out=[good])
    with pytest.raises(ArgumentError, match="share memory"):
        f(a, out=[good, good])
    fixed = np.empty(3)
    fixed.flags.writeable = False
    with pytest.raises(ArgumentError, match=r"out\[1\].*read-only"):
        f(a, out=[good, fixed])


def test_an_input_may_be_called_out():
    x = vector("out")
    f = xp.function([x], x * 2, backend="c")
    np.testing.assert_array_equal(f(out=np.ones(2)), [2, 2])


def test_labelled_results_take_no_out():
    x = xp.symbol("x", dims="obs", shape=(2,))
    f = xp.function([x], x * 2, backend="c")
    with pytest.raises(ArgumentError, match="labelled"):
        f(np.ones(2), out=np.empty(2))


# -- donation --------------------------------------------------------------------------------------


@backends
def test_donated_inputs_give_right_results(backend):
    x, y = vector("x"), vector("y")
    f = xp.function([x, y], [x * 2 + y, xp.sum(x)], backend=backend, donate=[x])
    a, b = np.arange(5.0), np.ones(5)
    first, total = f(a.copy(), b)
    np.testing.assert_array_equal(first, a * 2 + b)
    assert total == 10
    g = xp.function([x], xp.flip(x) - xp.mean(x), backend=backend, donate=["x"])
    np.testing.assert_array_equal(g(a.copy()), a[::-1] - 2)


@backends
def test_donated_inputs_that_overlap_are_copied(backend):
    x, y = vector("x"), vector("y")
    f = xp.function([x, y], [x + y, x - y], backend=backend, donate=["x", "y"])
    block = np.arange(6.0)
    u, v = block[:4], block[2:]
    want = u + v, u - v
    for got, expected in zip(f(u, v), want, strict=True):
        np.testing.assert_array_equal(got, expected)
    same = np.arange(4.0)
    np.testing.assert_array_equal(f(same, same)[0], np.arange(4.0) * 2)
    one = xp.function([x, y], x + y, backend=backend, donate=["x"])
    block = np.arange(6.0)
    want = block[:4] + block[2:]
    np.testing.assert_array_equal(one(block[:4], block[2:]), want)
    np.testing.assert_array_equal(block, np.arange(6.0))


@backends
def test_a_read_only_array_cannot_be_donated(backend):
    x = vector()
    f = xp.function([x], x * 2, backend=backend, donate="x")
    a = np.ones(3)
    a.flags.writeable = False
    with pytest.raises(ArgumentError, match="'x'.*donated.*read-only"):
        f(a)
    np.testing.assert_array_equal(a, np.ones(3))


def test_only_inputs_are_donated():
    x = vector("speed")
    with pytest.raises(ArgumentError, match="'sped'.*speed"):
        xp.function([x], x, donate=["sped"])
    with pytest.raises(ArgumentError, match="no input"):
        xp.function([x], x, donate=[vector("other")])


@launched
def test_the_memory_of_donated_inputs_is_taken(backend):
    """Updates and elementwise results; what is read again later keeps its memory."""
    x, i = vector(), xp.symbol("i", shape=(), dtype=xp.int64)
    update = xp.function([x, i], x.at[i].set(7.0), backend=backend, donate=[x])
    a = np.zeros(1000)
    assert update(a, 3) is a
    assert a[3] == 7 and a.sum() == 7
    with pytest.raises(BoundsError):
        update(a, 1000)
    assert a.sum() == 7
    twice = xp.function([x], x * 2 + 1, backend=backend, donate=[x])
    assert twice(a) is a and a[3] == 15 and a[4] == 1
    centred = xp.function([x], [x - xp.mean(x), xp.sum(x * x)], backend=backend, donate=[x])
    b = np.arange(4.0)
    np.testing.assert_array_equal(centred(b)[0], np.arange(4.0) - 1.5)
    flipped = xp.function([x], xp.flip(x), backend=backend, donate=[x])
    c = np.arange(4.0)
    assert flipped(c) is not c
    np.testing.assert_array_equal(c, np.arange(4.0))


@launched
def test_a_donated_update_does_not_copy(backend):
    """Time does not grow with the array: nothing but the element is written."""
    x, i = vector(), xp.symbol("i", shape=(), dtype=xp.int64)
    f = xp.function([x, i], x.at[i].set(1.0), backend=backend, donate=[x])
    seconds = []
    for n in (1_000, 4_000_000):
        a = np.zeros(n)
        f(a, 1)
        best = 1.0
        for _ in range(20):
            start = time.perf_counter()
            f(a, 1)
            best = min(best, time.perf_counter() - start)
        seconds.append(best)
    assert seconds[1] < 20 * seconds[0] + 1e-4  # a copy of 32 MB takes some milliseconds


@launched
def test_donation_and_trust_survive_pickle(backend):
    x = vector()
    f = xp.function([x], x * 2 + 1, backend=backend, donate=[x], trust_inputs=True)
    again = pickle.loads(pickle.dumps(f))
    a = np.ones(4)
    assert again(a) is a
    np.testing.assert_array_equal(a, np.full(4, 3.0))


@backends
def test_programs_of_known_sizes(backend):
    """The same rules where a backend has a shorter way to be called."""
    x = vector(n=3)
    f = xp.function([x], [x * 2, x + 1], backend=backend)
    a, here = np.arange(3.0), np.empty(3)
    assert f(a, out=[None, here])[1] is here
    np.testing.assert_array_equal(here, [1, 2, 3])
    one = xp.function([x], x * 2, backend=backend)
    assert one(a, out=here) is here and one(x=a, out=here) is here
    with pytest.raises(ShapeError, match=r"\(3,\).*\(4,\)"):
        one(a, out=np.empty(4))
    given = xp.function([x], x * 2 + 1, backend=backend, donate=[x])
    np.testing.assert_array_equal(given(a.copy()), a * 2 + 1)
    a.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        given(a)


# -- trust -----------------------------------------------------------------------------------------


@backends
def test_trusted_inputs(backend):
    x, y = vector("x"), vector("y")
    f = xp.function([x, y], x + y * 2, backend=backend, trust_inputs=True)
    a, b = np.arange(3.0), np.ones(3)
    np.testing.assert_array_equal(f(a, b), a + 2)
    np.testing.assert_array_equal(f(np.ones(1), b), np.full(3, 3.0))
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0], b), [3, 4, 5])
    here = np.empty(3)
    assert f(a, b, out=here) is here


# -- memory and threads ----------------------------------------------------------------------------


@launched
def test_results_come_from_a_pool(backend):
    """A large result that is dropped leaves its memory to the next one."""
    x = vector()
    f = xp.function([x], x + 1, backend=backend)
    a = np.zeros(1_000_000)
    places = {f(a).ctypes.data for _ in range(20)}
    assert len(places) <= 2
    kept = [f(a) for _ in range(3)]
    assert len({r.ctypes.data for r in kept}) == 3


@launched
def test_long_work_leaves_the_interpreter_to_others(backend):
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], xp.sum(xp.sin(xp.cos(xp.exp(x)))), backend=backend)
    a = np.linspace(0, 1, 20_000_000)
    f(a)  # measured once, long from then on
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(2):
            f(a)
        before = counted[0]
        start = time.perf_counter()
        f(a)
        seconds, gained = time.perf_counter() - start, counted[0] - before
    finally:
        ended.set()
        thread.join()
    assert gained > 5 * min(1.0, seconds)
