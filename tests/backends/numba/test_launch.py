"""Calls of Numba programs of known sizes: what fits goes the short way, the rest is converted."""

import pickle

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, LazyArrError

pytest.importorskip("numba")
pytestmark = [pytest.mark.backends]


@pytest.fixture(scope="module")
def call():
    x, s = xp.symbol("x", shape=(2, 3)), xp.symbol("s", shape=())
    constant = xp.asarray(np.arange(3.0))
    return xp.function([x, s], [xp.sum(x, axis=0) * s + constant, s * 2.0], backend="numba")


def test_arrays_of_every_layout(call) -> None:
    x = np.arange(6.0).reshape(2, 3)
    want = x.sum(0) * 2.0 + np.arange(3.0)
    frozen = x.copy()
    frozen.flags.writeable = False
    odd = np.zeros(6 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(2, 3)
    odd[...] = x
    assert call.fast is not None and not odd.flags.aligned
    for given in (x, frozen, np.asfortranarray(x), x[:, ::-1][:, ::-1], odd, x.tolist()):
        for s in (np.array(2.0), 2.0, np.float64(2.0)):
            first, second = call(given, s)
            np.testing.assert_array_equal(first, want)
            assert second.shape == () and float(second) == 4.0
            assert first.flags.writeable and not np.shares_memory(first, x)


def test_what_does_not_fit_is_an_error(call) -> None:
    for wrong in ((np.zeros((3, 2)), 1.0), (np.zeros((2, 3), complex), 1.0)):
        with pytest.raises(LazyArrError):
            call(*wrong)
    with pytest.raises(ArgumentError):
        call(np.zeros((2, 3)))
    with pytest.raises(LazyArrError):
        call(np.zeros((2, 3)), 1.0, 2.0)


def test_a_failing_check_and_a_single_result() -> None:
    x, i = xp.symbol("x", shape=(3,)), xp.symbol("i", shape=(), dtype="int64")
    call = xp.function([x, i], x[i], backend="numba")
    x = np.arange(3.0)
    assert call(x, np.array(-1)) == 2.0
    with pytest.raises(IndexError):
        call(x, np.array(3))


def test_a_program_loads_with_its_short_way(call) -> None:
    again = pickle.loads(pickle.dumps(call))
    x = np.ones((2, 3))
    for a, b in zip(again(x, 3.0), call(x, 3.0), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.fast is not None
