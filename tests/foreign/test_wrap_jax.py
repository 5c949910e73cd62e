"""JAX functions as parts of expressions, on every backend."""

import importlib.util
import traceback
from collections import namedtuple

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import BackendError
from tests.backend_params import BACKENDS, MACHINES

jax = pytest.importorskip("jax")
jnp = jax.numpy

from lazyarr.backends.jax.foreign import FRAMEWORK, JaxFramework  # noqa: E402

POINT = np.linspace(0.3, 1.7, 5)
on_backends = pytest.mark.parametrize("backend", BACKENDS)
Pair = namedtuple("Pair", "left right")


@pytest.fixture
def runs(monkeypatch):
    """The names of the callees that ran outside compiled JAX programs."""
    found = []
    run = JaxFramework.run

    def counted(self, callee, arrays):
        found.append(str(callee))
        return run(self, callee, arrays)

    monkeypatch.setattr(JaxFramework, "run", counted)
    return found


@xp.wrap_jax
def energy(x, scale):
    return jnp.sum(jnp.tanh(x) ** 2 * scale)


def native(x, scale):
    return xp.sum(xp.tanh(x) ** 2 * scale)


@on_backends
def test_value_and_gradient_are_one_call(backend, runs):
    x, s = xp.symbol("x", shape=(None,)), xp.symbol("s")
    f = xp.function([x, s], xp.value_and_grad(energy(x, s), [x, s]), backend=backend)
    g = xp.function([x, s], xp.value_and_grad(native(x, s), [x, s]), backend="interpret")
    value, slopes = f(POINT, 1.5)
    want, wanted = g(POINT, 1.5)
    np.testing.assert_allclose(value, want, rtol=1e-13)
    for a, b in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    inlined = backend == "jax"
    assert runs == ([] if inlined else ["value_and_vjp(energy, (0, 1))"])
    assert len(f.fallbacks()) == (0 if inlined or backend == "interpret" else 1)
    assert "share_calls" in f.explain()


@on_backends
def test_derivatives_of_any_order(backend):
    x, s = xp.symbol("x", shape=(5,)), xp.symbol("s")

    def all_of(f):
        y = f(x, s) * xp.sum(x) + xp.exp(f(x, 2.0))
        g = xp.grad(y, x)
        _, along = xp.jvp(lambda x: f(x, s), (x,), (xp.cos(x),))
        return [y, g, xp.grad(xp.sum(g * g), x), xp.hessian(lambda x: f(x, s))(x), along]

    f = xp.function([x, s], all_of(energy), backend=backend)
    g = xp.function([x, s], all_of(native), backend="interpret")
    for a, b in zip(f(POINT, 0.7), g(POINT, 0.7), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_calls_that_depend_on_each_other_stay_apart(runs):
    """Each cotangent is computed from the other's value: no order would let both be shared."""
    double = xp.wrap_jax(lambda x: x * 2, name="double")
    triple = xp.wrap_jax(lambda x: x**3, name="triple")
    x = xp.symbol("x", shape=(3,))
    y = xp.sum(double(x) * triple(x))
    value, slope = xp.function([x], xp.value_and_grad(y, x), backend="interpret")(POINT[:3])
    np.testing.assert_allclose(value, np.sum(2 * POINT[:3] ** 4))
    np.testing.assert_allclose(slope, 8 * POINT[:3] ** 3)
    assert len(runs) == 3


@on_backends
def test_vectorize(backend):
    x = xp.symbol("x", shape=(3, 5))
    f = xp.function(
        [x],
        [
            xp.vectorize(lambda r: energy(r, 2.0))(x),
            xp.vectorize(xp.grad(lambda r: energy(r, 2.0)))(x),
        ],
        backend=backend,
    )
    g = xp.function(
        [x],
        [
            xp.vectorize(lambda r: native(r, 2.0))(x),
            xp.vectorize(xp.grad(lambda r: native(r, 2.0)))(x),
        ],
        backend="interpret",
    )
    rows = np.stack([POINT, -POINT, POINT + 1])
    for a, b in zip(f(rows), g(rows), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_gradient_of_vectorized_is_one_call(runs):
    x = xp.symbol("x", shape=(None, 5))
    y = xp.sum(xp.vectorize(lambda r: energy(r, 2.0))(x))
    f = xp.function([x], xp.value_and_grad(y, x), backend="c")
    f(np.stack([POINT, POINT]))
    assert len(runs) == 1 + ("vmap(energy)" in runs)


@on_backends
def test_pytrees_static_leaves_and_functions_as_arguments(backend):
    @xp.wrap_jax
    def inner(x, power=2):
        return x**power

    @xp.wrap_jax(static="mode")
    def outer(tree, function, mode):
        assert isinstance(mode, str)
        y = function(tree["a"].left) + tree["b"][0] * 2
        return {"sum": jnp.sum(y), "all": [y, mode], "n": 3, "none": None}

    a, b = xp.symbol("a", shape=("n",)), xp.symbol("b", shape=("n",))
    out = outer({"a": Pair(a, 1.0), "b": (b, "text")}, inner, mode="fast")
    assert out["all"][1] == "fast" and out["n"] == 3 and out["none"] is None
    f = xp.function([a, b], [out["sum"], out["all"][0], xp.grad(out["sum"], a)], backend=backend)
    total, each, slope = f(POINT, POINT + 1)
    np.testing.assert_allclose(each, POINT**2 + 2 * POINT + 2)
    np.testing.assert_allclose(total, each.sum())
    np.testing.assert_allclose(slope, 2 * POINT)


def test_equal_calls_merge(runs):
    x = xp.symbol("x", shape=(5,))
    f = xp.wrap_jax(lambda x, n: x * n)
    assert f(x, 2)._v.inputs[0].call is f(x, 2)._v.inputs[0].call
    assert f(x, 2)._v.inputs[0].call is not f(x, 2.0)._v.inputs[0].call
    assert f(x, 2)._v.inputs[0].call is not f(x, True)._v.inputs[0].call
    y = xp.function([x], f(x, 2) + f(x, 2), backend="c")
    np.testing.assert_allclose(y(POINT), 4 * POINT)
    assert len(runs) == 1


def test_static_leaf_must_be_hashable():
    f = xp.wrap_jax(lambda x, options: x)
    with pytest.raises(TypeError, match="neither an array nor hashable"):
        f(xp.ones(3), {1, 2})


def test_values_are_computed_at_once():
    value = energy(POINT, xp.asarray(2.0))
    np.testing.assert_allclose(float(value), 2 * np.sum(np.tanh(POINT) ** 2))


@on_backends
def test_sizes_of_results(backend):
    join = xp.wrap_jax(lambda x, y: (jnp.concatenate([x, y, x]), jnp.outer(x, y)))
    x, y = xp.symbol("x", shape=("n",)), xp.symbol("y", shape=("m",))
    long, table = join(x, y)
    assert long.sizes[0] is 2 * x.sizes[0] + y.sizes[0]
    assert table.sizes == (x.sizes[0], y.sizes[0])
    f = xp.function(
        [x, y], [long * 2, xp.sum(table, axis=0), xp.grad(xp.sum(table**2), y)], backend=backend
    )
    a, b = POINT, POINT[:3]
    got = f(a, b)
    np.testing.assert_allclose(got[0], 2 * np.concatenate([a, b, a]))
    np.testing.assert_allclose(got[1], np.outer(a, b).sum(0))
    np.testing.assert_allclose(got[2], 2 * b * np.sum(a**2))


@on_backends
def test_declared_types(backend):
    f = xp.wrap_jax(
        lambda x: jnp.sort(x)[: x.shape[0] // 2], out=lambda x: (x.dtype, (x.shape[0] // 2,))
    )
    x = xp.symbol("x", shape=(None,))
    y = f(x)
    assert y.sizes[0] is x.sizes[0] // 2
    got = xp.function([x], y + 1, backend=backend)(POINT)
    np.testing.assert_allclose(got, POINT[:2] + 1)


def test_declared_types_are_verified():
    f = xp.wrap_jax(lambda x: x, out=("float32", (3,)))
    with pytest.raises(TypeError, match="correct `out=`"):
        f(xp.ones(3)).compute()


@on_backends
def test_dtypes_follow_the_arrays(backend):
    """JAX's global flag stays as it is; float32 functions see JAX's 32-bit mode."""
    jax.config.update("jax_enable_x64", False)  # whatever ran before in this process
    seen = []

    @xp.wrap_jax
    def f(x):
        seen.append(jnp.zeros(3).dtype)
        return x + jnp.zeros(3), jnp.argmax(x)

    for dtype in ("float32", "float64"):
        x = xp.symbol("x", shape=(3,), dtype=dtype)
        y, k = f(x)
        assert y.dtype == dtype == str(seen[-1])
        got, slope = xp.function([x], xp.value_and_grad(xp.sum(y * y), x), backend=backend)(
            POINT[:3].astype(dtype)
        )
        assert got.dtype == slope.dtype == dtype
        assert int(f(POINT[:3].astype(dtype))[1]) == 2
    assert not jax.config.jax_enable_x64


@on_backends
def test_complex_gradients_have_our_convention(backend):
    def f(z, np):
        return np.sum(np.abs(z * z + (1 + 2j) * z) ** 2)

    z = xp.symbol("z", shape=(3,), dtype="complex128")
    wrapped = xp.wrap_jax(lambda z: f(z, jnp))(z)
    middle = xp.wrap_jax(lambda z: z * z + (1 + 2j) * z)(z)
    outputs = [xp.grad(y, z) for y in (wrapped, xp.sum(xp.abs(middle) ** 2), f(z, xp))]
    got = xp.function([z], outputs, backend=backend)(POINT[:3] + 1j * POINT[2:])
    np.testing.assert_allclose(got[0], got[2], rtol=1e-10)
    np.testing.assert_allclose(got[1], got[2], rtol=1e-10)


def test_forward_mode_of_a_function_with_reverse_mode_only():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    x = xp.symbol("x", shape=(5,))
    _, along = xp.jvp(xp.wrap_jax(f, name="f"), (x,), (2 * x,))
    got = xp.function([x], along, backend="interpret")(POINT)
    np.testing.assert_allclose(got, 2 * POINT * np.cos(POINT))


def test_errors_keep_their_traceback_and_name_the_function():
    def boom(x):
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck") as caught:
        xp.wrap_jax(boom)(xp.ones(3))
    text = "".join(traceback.format_exception(caught.value))
    assert "in boom" in text and "wrapped JAX function 'boom'" in text


def test_zero_cotangents_stop_infinite_slopes():
    f = xp.wrap_jax(lambda x: jnp.sqrt(jnp.sum(x)))
    x = xp.symbol("x", shape=(3,))
    y = xp.where(xp.sum(x) > 0, f(x), 0.0)
    np.testing.assert_array_equal(xp.function([x], xp.grad(y, x), backend="c")(np.zeros(3)), 0)


def test_named_arrays():
    f = xp.wrap_jax(lambda x: jnp.cumsum(x), dims="time")
    x = xp.XTensor(POINT, dims="time")
    y = f(x)
    assert y.dims == ("time",)
    np.testing.assert_allclose(y.values, np.cumsum(POINT))


def test_without_jax(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "jax" else find(n))
    with pytest.raises(BackendError, match=r"pip install lazyarr\[jax\]"):
        energy(xp.ones(3), 1.0)


@pytest.mark.parametrize("backend", MACHINES)
def test_inside_a_loop(backend):
    f = xp.wrap_jax(lambda c, x: jnp.tanh(c) + x)
    x = xp.symbol("x", shape=(4,))

    def run(f):
        last, _ = xp.scan(lambda c, v: (f(c, v), c), xp.asarray(0.1), x)
        return [last, xp.grad(last, x)]

    got = xp.function([x], run(f), backend=backend)(POINT[:4])
    want = xp.function([x], run(lambda c, v: xp.tanh(c) + v), backend="interpret")(POINT[:4])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("backend", MACHINES)
def test_value_and_gradient_are_one_call_in_every_step(backend, runs):
    wrapped = xp.wrap_jax(lambda x: jnp.sum(jnp.tanh(x) ** 2), name="wrapped")
    x = xp.symbol("x", shape=(3,))

    def descend(f):
        def step(c, _):
            value, slope = xp.value_and_grad(f)(c)
            return c - 0.1 * slope, value

        last, values = xp.scan(step, x, None, length=4)
        return [last, values]

    def through(f):
        """The derivative of a loop that holds values alone."""
        last, values = xp.scan(lambda c, _: (c * (1 - 0.1 * f(c)), f(c)), x, None, length=4)
        return list(xp.value_and_grad(xp.sum(last) + xp.sum(values), x))

    for make in (descend, through):
        runs.clear()
        got = xp.function([x], make(wrapped), backend=backend)(POINT[:3])
        wanted = make(lambda x: xp.sum(xp.tanh(x) ** 2))
        want = xp.function([x], wanted, backend="interpret")(POINT[:3])
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        assert runs == ([] if backend == "jax" else ["value_and_vjp(wrapped, (0,))"] * 4)


def test_framework_is_one():
    import pickle

    assert pickle.loads(pickle.dumps(FRAMEWORK)) is FRAMEWORK
