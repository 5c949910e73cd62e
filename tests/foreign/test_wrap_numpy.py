"""NumPy and Numba functions with rules of their own."""

import traceback

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, GradientError
from tests.backend_params import BACKENDS

POINT = np.linspace(0.3, 1.7, 5)
on_backends = pytest.mark.parametrize("backend", BACKENDS)


@xp.wrap_numpy(out=0, vjp=lambda g, y, x: (g * xp.cos(x),), batch=True)
def sine(x):
    assert type(x) is np.ndarray
    return np.sin(x)


@on_backends
def test_value_and_derivatives(backend):
    x = xp.symbol("x", shape=(None,))

    def all_of(f):
        y = xp.sum(f(x) ** 2)
        _, along = xp.jvp(f, (x,), (x * 2,))
        return [y, xp.grad(y, x), xp.grad(xp.sum(xp.grad(y, x) ** 2), x), along]

    got = xp.function([x], all_of(sine), backend=backend)(POINT)
    want = xp.function([x], all_of(xp.sin), backend="interpret")(POINT)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@on_backends
@pytest.mark.parametrize("batch", [True, None, lambda x: np.sin(x)])
def test_batching(backend, batch):
    f = xp.wrap_numpy(np.sin, out=0, vjp=lambda g, y, x: (g * np.cos(x),), batch=batch)
    x = xp.symbol("x", shape=(3, 5))
    rows = np.stack([POINT, POINT + 1, POINT + 2])

    def one(row):
        return xp.sum(f(row) ** 2)

    outputs = [xp.vectorize(f)(x), xp.vectorize(xp.grad(one))(x)]
    outputs.append(xp.grad(xp.sum(xp.vectorize(one)(x)), x))
    got = xp.function([x], outputs, backend=backend)(rows)
    np.testing.assert_allclose(got[0], np.sin(rows))
    np.testing.assert_allclose(got[1], 2 * np.sin(rows) * np.cos(rows))
    np.testing.assert_allclose(got[2], 2 * np.sin(rows) * np.cos(rows))


@on_backends
def test_forward_rule_and_several_outputs(backend):
    def polar(d):
        return {"r": np.hypot(d["x"], d["y"]), "a": np.arctan2(d["y"], d["x"])}

    def jvp(tangents, out, d):
        (t,) = tangents
        a, r = out
        return [(d["x"] * t["y"] - d["y"] * t["x"]) / r**2, (d["x"] * t["x"] + d["y"] * t["y"]) / r]

    f = xp.wrap_numpy(polar, out=lambda d: {"r": d["x"], "a": d["x"]}, jvp=jvp)
    x, y = xp.symbol("x", shape=("k",)), xp.symbol("y", shape=("k",))
    _, along = xp.jvp(lambda x: f({"x": x, "y": y})["r"], (x,), (xp.ones_like(x),))
    got = xp.function([x, y], [along, f({"x": x, "y": y})["a"]], backend=backend)(POINT, POINT + 1)
    np.testing.assert_allclose(got[0], POINT / np.hypot(POINT, POINT + 1))
    np.testing.assert_allclose(got[1], np.arctan2(POINT + 1, POINT))


@on_backends
def test_sizes_that_only_the_function_knows(backend):
    unique = xp.wrap_numpy(np.unique, out=("float64", (None,)))
    x = xp.symbol("x", shape=(None,))
    u = unique(x)
    assert u.shape == (None,)
    f = xp.function([x], [u * 2, xp.sum(u), u.sizes[0] + xp.sum(xp.ones_like(u))], backend=backend)
    got = f(np.array([3.0, 1.0, 3.0, 1.0, 2.0]))
    np.testing.assert_allclose(got[0], [2, 4, 6])
    assert got[1] == 6 and got[2] == 6


def test_static_arguments():
    f = xp.wrap_numpy(lambda x, table, n: x * table[n], out=0, static="table")
    x = xp.symbol("x", shape=(2,))
    calls = [f(x, np.array([2.0, 3.0]), 1)._v.inputs[0].call for _ in range(2)]
    assert calls[0] is calls[1]
    got = xp.function([x], f(x, np.array([2.0, 3.0]), 1), backend="c")(np.ones(2))
    np.testing.assert_array_equal(got, 3.0)


def test_errors():
    with pytest.raises(ArgumentError, match="needs `out=`"):
        xp.wrap_numpy(np.sin)
    x = xp.symbol("x", shape=(3,))
    with pytest.raises(GradientError, match="give it a `vjp`"):
        xp.grad(xp.sum(xp.wrap_numpy(np.sin, out=0)(x)), x)
    with pytest.raises(TypeError, match="correct `out=`"):
        xp.wrap_numpy(np.sin, out=("int64", (3,)))(xp.ones(3)).compute()

    def boom(x):
        raise KeyError("no luck")

    with pytest.raises(KeyError) as caught:
        xp.wrap_numpy(boom, out=0)(xp.ones(3)).compute()
    text = "".join(traceback.format_exception(caught.value))
    assert "in boom" in text and "wrapped function 'boom'" in text


@on_backends
def test_numba(backend):
    numba = pytest.importorskip("numba")

    @numba.njit
    def step(x, k):
        return x * k + 1

    f = xp.wrap_numba(step, out=0, vjp=lambda g, y, x, k: (g * k, xp.sum(g * x)))
    x, k = xp.symbol("x", shape=(None,)), xp.symbol("k")
    y = xp.sum(f(x, k) ** 2)
    got = xp.function([x, k], [y, *xp.grad(y, [x, k])], backend=backend)(POINT, 2.0)
    inner = POINT * 2 + 1
    np.testing.assert_allclose(got[0], np.sum(inner**2))
    np.testing.assert_allclose(got[1], 4 * inner)
    np.testing.assert_allclose(got[2], np.sum(2 * inner * POINT))
