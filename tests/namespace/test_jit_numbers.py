"""Numbers passed to jitted functions are data: other numbers compile nothing."""

import random

import numpy as np
import pytest

import lazyarr as xp

BACKENDS = ["interpret", pytest.param("c", marks=pytest.mark.backends)]


def compiles(run) -> int:
    before = xp.stats().get("compiles", 0)
    run()
    return xp.stats().get("compiles", 0) - before


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_numbers_compile_nothing(backend):
    choose = random.Random(0)
    a, g = np.arange(5.0), np.linspace(-1.0, 1.0, 5)

    @xp.jit(backend=backend)
    def step(x, g, rate, scale, options):
        momentum = 1 - options["decay"]  # a number made from an argument
        return x - rate * g * momentum + xp.clip(x, -scale, scale) ** 2 + 0.5

    def one():
        rate, scale, decay = choose.random(), choose.random(), choose.random()
        got = step(a, g, rate, scale, {"decay": decay})
        want = a - rate * g * (1 - decay) + np.clip(a, -scale, scale) ** 2 + 0.5
        np.testing.assert_allclose(got.compute(), want, rtol=1e-12)

    assert compiles(lambda: [one() for _ in range(30)]) <= 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_shapes_a_program_is_part_of_it(backend):
    a = np.arange(12.0).reshape(3, 4)

    @xp.jit(backend=backend)
    def f(x, axis, power, rows, flag):
        y = xp.sum(x**power, axis=axis)
        return (y if flag else -y) + xp.sum(xp.reshape(x, (rows, -1))[0])

    for axis, power, rows, flag in ((0, 2, 2, True), (1, 3, 3, False), (0, 2.5, 6, True)) * 2:
        want = np.sum(a**power, axis=axis) * (1 if flag else -1) + a.reshape(rows, -1)[0].sum()
        np.testing.assert_allclose(f(a, axis, power, rows, flag).compute(), want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_keep_their_kind_and_stay_weak(backend):
    f = xp.jit(lambda x, c: x * c + c, backend=backend)
    small, whole = np.ones(2, "float32"), np.ones(2, "int64")
    for c in (2.5, 3.5, 0.1):
        assert f(small, c).dtype == np.float32
        np.testing.assert_array_equal(f(small, c).compute(), np.float32(c) + np.float32(c))
    for c, dtype in ((1, "int64"), (1.0, "float64"), (True, "int64"), (2, "int64")):
        assert f(whole, c).dtype == dtype
    with pytest.raises(OverflowError):
        f(np.ones(2, "int8"), 1000)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_decide_as_python_does(backend):
    f = xp.jit(lambda x, c: x + c if c > 0 else x - c, backend=backend)
    a = np.arange(3.0)
    for c in (1.0, -1.0, 2.0, -3.0, 0.0, -0.0):
        np.testing.assert_array_equal(f(a, c).compute(), a + abs(c))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_is_data(backend):
    f = xp.jit(lambda x, i, k: x[i] + xp.sum(x[k : k + 3]), backend=backend)
    a = np.arange(10.0) ** 2

    def one(i, k):
        np.testing.assert_allclose(f(a, i, k).compute(), a[i] + a[k : k + 3].sum())

    one(1, 2)
    one(2, 3)
    assert compiles(lambda: [one(i, k) for i in range(3, 9) for k in range(4, 7)]) <= 2
    with pytest.raises(IndexError):
        f(a, 10, 0)
