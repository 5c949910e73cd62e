"""Known traps of array compilers, through the public namespace: each was a bug somewhere."""

import itertools
import threading
import tracemalloc

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ConcretizationError
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.backends
backends = pytest.mark.parametrize("backend", BACKENDS)
cheap = pytest.mark.parametrize("backend", BACKENDS[:2])  # the interpreter and C


def run(backend: str, f, *arrays: object) -> object:
    """Compile f of symbols of the arrays' dtypes and unknown sizes, and call it."""
    values = [np.asarray(a) for a in arrays]
    symbols = [
        xp.symbol(f"x{i}", shape=(None,) * a.ndim, dtype=a.dtype) for i, a in enumerate(values)
    ]
    return xp.function(symbols, f(*symbols), backend=backend)(*values)


@backends
def test_where_of_float32_is_not_narrow(backend: str) -> None:
    def f(c, x):
        one, zero = xp.asarray(np.float32(1)), xp.asarray(np.float32(0))
        return xp.where(c, one, zero) * x

    got = run(backend, f, True, 0.1)
    assert got == 0.1 and got.dtype == np.float64


@backends
def test_folding_keeps_the_shape(backend: str) -> None:
    got = run(backend, lambda s: xp.full((10,), -0.1) + s, 2.0)
    np.testing.assert_array_equal(got, np.full(10, 2.0 - 0.1))


@backends
def test_reversed_slice_that_ends_early(backend: str) -> None:
    np.testing.assert_array_equal(run(backend, lambda x: x[0:-3:-1], [10.0, 20.0]), [10])


@cheap
def test_slices_of_slices(backend: str) -> None:
    """Chains of slices of an unknown length agree with NumPy, and raise where it raises."""
    chains = [
        lambda x: x[2:8][-1],
        lambda x: x[1:-1][1:-1][1:-1],
        lambda x: x[-1:-4:-1][1:3],
        lambda x: x[5:2:-1][::-1],
    ]
    x = xp.symbol("x", shape=(None,))
    for chain in chains:
        f = xp.function([x], chain(x), backend=backend)
        for length in range(10):
            array = np.arange(float(length))
            try:
                want = chain(array)
            except IndexError:
                with pytest.raises(IndexError):
                    f(array)
                continue
            np.testing.assert_array_equal(f(array), want)


@backends
def test_slice_then_index_at_run_time(backend: str) -> None:
    """b[i:i+4][j] clamps the slice, then indexes what is left."""
    b = np.arange(10.0)
    got = run(backend, lambda x, i, j: x[i : i + 4][j], b, 9, 0)
    assert got == 9.0


@backends
def test_flat_argmax_of_a_transpose(backend: str) -> None:
    m = np.random.default_rng(0).normal(size=(5, 7)) * 9
    got = run(backend, lambda x: xp.argmax(xp.sin(x).T), m)
    assert got == np.argmax(np.sin(m).T)


@backends
def test_empty_axes(backend: str) -> None:
    assert run(backend, lambda x: xp.max(x, axis=-1), np.zeros((0, 2))).shape == (0,)
    with pytest.raises(ValueError, match="axis"):
        run(backend, lambda x: xp.max(x, axis=-1), np.zeros((2, 0)))
    product = run(backend, lambda a, b: a @ b, np.zeros((3, 0)), np.zeros((0, 2)))
    np.testing.assert_array_equal(product, np.zeros((3, 2)))


@backends
def test_accumulators(backend: str) -> None:
    total = run(backend, xp.sum, np.arange(100_000, dtype="int32"))
    assert total == 4_999_950_000 and total.dtype == np.int64
    np.testing.assert_array_equal(
        run(backend, lambda x: xp.cumulative_sum(x, axis=0), np.array([1, 2, 3])), [1, 3, 6]
    )


@backends
def test_tensordot_of_last_axes(backend: str) -> None:
    a, b = xp.symbol("a", shape=(2,)), xp.symbol("b", shape=(7, 3, 2))
    y = xp.tensordot(a, b, axes=((-1,), (-1,)))
    assert y.shape == (7, 3)
    got = xp.function([a, b], y, backend=backend)(np.ones(2), np.ones((7, 3, 2)))
    np.testing.assert_array_equal(got, np.full((7, 3), 2.0))


@backends
def test_unknown_size_that_is_one(backend: str) -> None:
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], x + xp.ones(3), backend=backend)
    np.testing.assert_array_equal(f([1.0]), [2, 2, 2])
    g = xp.function([x], xp.grad(xp.sum(xp.broadcast_to(x, (3, 5))), x), backend=backend)
    np.testing.assert_array_equal(g([1.0]), [15])


@backends
def test_broadcast_to_that_does_not_fit(backend: str) -> None:
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        xp.broadcast_to(xp.zeros((3, 2)), (3, 4))
    x = xp.symbol("x", shape=(None, None))
    f = xp.function([x], xp.broadcast_to(x, (3, 4)), backend=backend)
    with pytest.raises(ValueError, match="2.*4"):
        f(np.zeros((3, 2)))


@backends
def test_results_are_fresh(backend: str) -> None:
    """Writing into a result changes neither the next one nor what was captured."""
    shared = xp.asarray(np.ones(3))
    x = xp.symbol("x", shape=(3,))
    f = xp.function([x], [shared, x, x], backend=backend)
    given = np.zeros(3)
    first = f(given)
    for y in first:
        y[:] = 7
    again = f(np.zeros(3))
    np.testing.assert_array_equal(again[0], np.ones(3))
    assert not given.any()
    assert not np.shares_memory(first[1], first[2])


@backends
def test_values_that_others_still_need(backend: str) -> None:
    """y = log(x), z = log(y): a reused buffer must not hold z where y is returned."""

    def f(x):
        y = xp.log(x)
        return [y, xp.log(y)]

    np.testing.assert_allclose(run(backend, f, 3.0), [1.09861228867, 0.0940478276])


@backends
def test_update_of_a_broadcast(backend: str) -> None:
    def f(x):
        a = xp.broadcast_to(x, (2,))
        a[-1] = 3.0
        return a

    np.testing.assert_array_equal(run(backend, f, 1.0), [1, 3])


@backends
def test_update_with_duplicates(backend: str) -> None:
    def f(x):
        y = +x  # the handle is rebound, the input stays one
        y[np.array([[0, 0]])] = y[np.array([[0, 0]])] + y[np.array([[0, 0]])]
        return y

    np.testing.assert_array_equal(run(backend, f, np.ones((2, 4))), [[2] * 4, [1] * 4])


@cheap
def test_gradient_through_both_sides_of_a_sum(backend: str) -> None:
    z = xp.symbol("z", shape=())
    y = xp.sum(xp.exp(z) - 0) + xp.sum(xp.exp(z) - xp.zeros(1000))
    got = xp.function([z], xp.grad(y, z), backend=backend)(1.0)
    assert got.shape == ()
    np.testing.assert_allclose(got, 1001 * np.e)


@backends
def test_weak_scalars(backend: str) -> None:
    assert run(backend, lambda x: x * 3.5, np.ones(2, "float32")).dtype == np.float32
    assert run(backend, lambda x: x + 1, np.ones(2, "int8")).dtype == np.int8
    with pytest.raises(OverflowError):
        xp.asarray(np.ones(2, "int8")) + 256


def test_snapshot_of_an_array() -> None:
    a = np.ones(3)
    y = xp.asarray(a) + 1
    a[:] = 9
    np.testing.assert_array_equal(np.asarray(y), [2, 2, 2])


def test_in_place_operators_rebind_the_name() -> None:
    x = xp.zeros(5)
    y = x
    y += 1
    np.testing.assert_array_equal(np.asarray(y), np.ones(5))
    np.testing.assert_array_equal(np.asarray(x), np.zeros(5))


def test_one_element_of_a_huge_array_is_cheap() -> None:
    tracemalloc.start()
    assert float(xp.broadcast_to(xp.asarray(2.0), (100_000, 100_000))[3, 4]) == 2.0
    assert xp.zeros((200_000, 200_000)).shape == (200_000, 200_000)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("ask", [bool, int, float, complex], ids=lambda f: f.__name__)
def test_numbers_asked_of_a_symbol(ask) -> None:
    x = xp.symbol("speed", shape=())
    with pytest.raises(ConcretizationError, match="speed") as caught:
        ask(x + 1)
    assert isinstance(caught.value, ValueError) and not isinstance(caught.value, TypeError)


def test_truth_of_a_symbol_says_what_to_write() -> None:
    x = xp.symbol("speed", shape=())
    with pytest.raises(ConcretizationError, match="where"):
        if x > 0:
            pass
    assert bool(xp.asarray(2.0) > 1)


@cheap
def test_many_threads(backend: str) -> None:
    """Eight threads record, compile and call the same and different functions."""
    wrong: list = []

    def work(k: int) -> None:
        x = xp.symbol("x", shape=(None,))
        for power, n in itertools.product((1 + k % 3, 2), (3, 5)):
            f = xp.function([x], xp.sum(x**power) + k, backend=backend)
            a = np.arange(float(n))
            if not np.allclose(f(a), np.sum(a**power) + k):
                wrong.append((k, power, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_named_sums() -> None:
    a = xp.XTensor(np.array([[1.0, 2, 3], [4, 5, 6]]), dims=("x", "y"))
    b = xp.XTensor(np.array([[10.0, 20], [30, 40], [50, 60]]), dims=("y", "x"))
    c = a + b
    assert c.dims == ("x", "y")
    np.testing.assert_array_equal(np.asarray(c), [[11, 32, 53], [24, 45, 66]])


def test_names_of_dims() -> None:
    with pytest.raises(ValueError, match="a"):
        xp.XTensor(np.zeros((2, 2)), dims=("a", "a"))
    y = xp.XTensor([5, 7], dims="repo")
    assert y.dims == ("repo",) and y.shape == (2,)
    small, wide = xp.XTensor(np.ones(2, "int8"), dims="a"), xp.XTensor(np.ones(3), dims="b")
    assert (small + wide).dims == ("a", "b")
    assert small.dtype == np.int8
