"""Slices whose ends are symbolic integers: recorded, clamped as Python does, on every backend."""

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import BACKENDS

A = np.arange(24.0).reshape(8, 3)
ENDS = [(0, 3), (2, 2), (5, 20), (-3, -1), (-30, 4), (6, 1), (7, 8)]


def compiled(f, backend, n=2):
    ends = [xp.symbol(f"i{k}", dtype="int64", shape=()) for k in range(n)]
    x = xp.symbol("x", shape=(None, 3))
    return xp.function([x, *ends], f(x, *ends), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_reading(backend):
    f = compiled(lambda x, i, j: [x[i:j], xp.sum(x[i:j], axis=0), x[j:, 1], x[::-1][:i:2]], backend)
    for i, j in ENDS:
        for got, want in zip(
            f(A, i, j), [A[i:j], A[i:j].sum(0), A[j:, 1], A[::-1][:i:2]], strict=True
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_window_is_clamped_and_then_indexed(backend):
    b = np.arange(10.0)
    i, j = (xp.symbol(n, dtype="int64", shape=()) for n in "ij")
    f = xp.function([i, j], xp.asarray(b)[i : i + 4][j], backend=backend)
    assert f(9, 0) == 9.0
    assert f(2, 3) == 5.0
    with pytest.raises(IndexError):
        f(9, 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writing(backend):
    def f(x, i, j):
        y, z = x + 0, x + 0
        y[i:j] = 7.0
        z[i:j, ::2] = -z[i:j, ::2]
        return [y, z, x.at[i:].add(1.0)]

    run = compiled(f, backend)
    for i, j in ENDS:
        y, z, w = A.copy(), A.copy(), A.copy()
        y[i:j] = 7.0
        z[i:j, ::2] *= -1
        w[i:] += 1.0
        for got, want in zip(run(A, i, j), [y, z, w], strict=True):
            np.testing.assert_array_equal(got, want)


def test_gradients_go_to_the_elements_read():
    f = compiled(lambda x, i, j: xp.grad(xp.sum(x[i:j] ** 2), x), "interpret")
    for i, j in ENDS:
        want = np.zeros_like(A)
        want[i:j] = 2 * A[i:j]
        np.testing.assert_array_equal(f(A, i, j), want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_size_that_was_found_is_known_to_what_does_not_read_it(backend):
    x, i = xp.symbol("x", shape=(None,)), xp.symbol("i", dtype="int64", shape=())
    y = x[i:]
    part = xp.sum(y * 2.0) + xp.sum(xp.ones(y.sizes))
    f = xp.function([x, i], [part, xp.grad(part, x)], backend=backend)
    value, slope = f(np.arange(6.0), 2)
    assert value == 2 * (2 + 3 + 4 + 5) + 4
    np.testing.assert_array_equal(slope, [0, 0, 2, 2, 2, 2])


def test_lazy_ends_with_values_make_static_slices():
    x, i = xp.asarray(A), xp.asarray(1) + 1
    assert x[i : i + 2].shape == (2, 3)
    np.testing.assert_array_equal(x[i : i + 2].compute(), A[2:4])


def test_refusals():
    x = xp.symbol("x", shape=(5,))
    with pytest.raises(IndexError, match="one integer"):
        x[xp.symbol("i", dtype="int64", shape=(2,)) :]
    with pytest.raises(IndexError, match="one integer"):
        x[xp.symbol("i", shape=()) :]
    i = xp.symbol("i", dtype="int64", shape=())
    with pytest.raises(IndexError, match="step"):
        x[i :: xp.symbol("k", dtype="int64", shape=())]


@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_in_loops(backend):
    x = xp.symbol("x", shape=(None,))

    def step(total, i):
        return total + xp.sum(x[i : i + 2] * 2.0), total

    f = xp.function([x], list(xp.scan(step, xp.asarray(0.0), xp.arange(4))), backend=backend)
    total, before = f(np.arange(4.0))
    assert total == 2 * (1 + 3 + 5 + 3)
    np.testing.assert_array_equal(before, [0, 2, 8, 18])


def test_what_each_step_finds_by_itself_cannot_be_stacked():
    x = xp.symbol("x", shape=(None,))
    with pytest.raises(ValueError, match="found in each step.*test_open_slices"):
        xp.scan(lambda c, i: (c, x[i : i + 2]), xp.asarray(0.0), xp.arange(4))
    total, _ = xp.scan(
        lambda c, i: (c + xp.sum(x[i : i + 2] ** 2), c), xp.asarray(0.0), xp.arange(4)
    )
    with pytest.raises(ValueError, match="fixed length"):
        xp.grad(total, x)
