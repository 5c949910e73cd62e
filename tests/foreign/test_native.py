"""`as_jax(native=True)`: the C program called by XLA."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import GraphError, LazyArrError
from lazyarr.namespace import foreign_native

jax = pytest.importorskip("jax")
jnp = jax.numpy

POINT = np.linspace(0.3, 1.7, 5)


def example():
    """A number of an array of unknown size, another number, integers and a constant."""
    x, k = xp.symbol("x", shape=(None,)), xp.symbol("k")
    at = xp.symbol("at", shape=(2,), dtype="int64")
    weights = xp.asarray(np.array([1.0, 2.0, 3.0]))
    value = xp.sum(xp.log1p(xp.exp(x * k))) + xp.sum(weights * k) + xp.sum(xp.take(x, at))
    return [x, k, at], value


def plain(x, k, at):
    return jnp.sum(jnp.log1p(jnp.exp(x * k))) + 6 * k + jnp.sum(x[at])


@pytest.fixture
def calls(monkeypatch):
    """How often a program was put into a JAX function, by the number of its outputs."""
    found = []
    call = foreign_native.Target.__call__
    monkeypatch.setattr(
        foreign_native.Target,
        "__call__",
        lambda self, values, env: found.append(len(self.outputs)) or call(self, values, env),
    )
    return found


@pytest.mark.parametrize("wide", [True, False])
def test_value_and_gradient_are_one_call(wide, calls):
    inputs, value = example()
    f = xp.function(inputs, value, backend="c").as_jax(native=True)
    with jax.enable_x64(wide):
        x = jnp.asarray(POINT, "float64" if wide else "float32")
        at = np.array([0, 3])
        got = jax.jit(f)(x, 1.5, at)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, plain(x, 1.5, at), rtol=1e-14 if wide else 1e-6)
        calls.clear()
        both = jax.jit(jax.value_and_grad(f, argnums=(0, 1)))
        value, slopes = both(x, 1.5, at)
        assert calls == [3]  # the value with its two gradients
        wanted = jax.value_and_grad(plain, argnums=(0, 1))(x, 1.5, at)
        np.testing.assert_allclose(value, wanted[0], rtol=1e-14 if wide else 1e-6)
        for a, b in zip(slopes, wanted[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13 if wide else 1e-6)


def test_inside_vmap_and_scan_and_at_other_sizes():
    inputs, value = example()
    f = xp.function(inputs, value, backend="c").as_jax(native=True)
    with jax.enable_x64(True):
        at = np.array([0, 0])
        for n in (1, 2, 5):  # a size that is 1 is another program
            rows = jnp.asarray(np.stack([POINT[:n], POINT[:n] + 1]))
            got = jax.vmap(jax.grad(f), (0, None, None))(rows, 1.5, at)
            np.testing.assert_allclose(got, [jax.grad(plain)(r, 1.5, at) for r in rows], rtol=1e-13)

        def step(c, x):
            return c + f(x, 1.5, at), None

        total = jax.jit(lambda rows: jax.lax.scan(step, 0.0, rows)[0])(rows)
        np.testing.assert_allclose(total, sum(plain(r, 1.5, at) for r in rows), rtol=1e-13)


def test_several_outputs_have_a_pullback():
    x, y = xp.symbol("x", shape=(3,)), xp.symbol("y", shape=(3,), dtype="float32")
    out = {"product": x * xp.sin(y), "count": xp.sum(x > 1), "sum": xp.sum(x) * 2}
    f = xp.function([x, y], out, backend="c").as_jax(native=True)
    with jax.enable_x64(True):
        a, b = jnp.asarray(POINT[:3]), jnp.asarray(POINT[2:], "float32")

        def number(f):
            return lambda a, b: jnp.sum(f(a, b)["product"] ** 2) + f(a, b)["sum"]

        def same(a, b):
            return {"product": a * jnp.sin(b), "sum": jnp.sum(a) * 2}

        assert int(f(a, b)["count"]) == 0
        got = jax.jit(jax.grad(number(f), (0, 1)))(a, b)
        want = jax.grad(number(same), (0, 1))(a, b)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=1e-5)


def test_conventions_subnormals_and_failing_checks():
    x = xp.symbol("x", shape=(2,))
    f = xp.function([x], xp.sum(xp.where(x > 0, xp.sqrt(x), xp.abs(x))), backend="c")
    g = jax.grad(f.as_jax(native=True))
    np.testing.assert_array_equal(g(jnp.zeros(2)), 0)
    tiny = xp.function([x], x * 1e-310, backend="c").as_jax(native=True)
    with jax.enable_x64(True):
        assert (np.asarray(tiny(np.ones(2))) == 1e-310).all()
        y, i = xp.symbol("y", shape=(3,)), xp.symbol("i", shape=(2,), dtype="int64")
        at = xp.function([y, i], xp.take(y, i), backend="c").as_jax(native=True)
        np.testing.assert_array_equal(at(jnp.arange(3.0), np.array([2, -1])), [2, 2])
        with pytest.raises(Exception, match="out of bounds|out of range"):
            jax.block_until_ready(at(jnp.arange(3.0), np.array([2, 3])))


def test_linear_algebra_through_pointers():
    a, b = xp.symbol("a", shape=(40, 40)), xp.symbol("b", shape=(40, 40))
    f = xp.function([a, b], xp.sum((a @ b) ** 2), backend="c").as_jax(native=True)
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        p, q = rng.normal(size=(2, 40, 40))
        got = jax.jit(jax.grad(f))(p, q)
        np.testing.assert_allclose(got, jax.grad(lambda a: jnp.sum((a @ q) ** 2))(p), rtol=1e-10)


def test_what_is_not_c():
    x = xp.symbol("x", shape=(3,))
    f = xp.function([x], xp.wrap_numpy(np.sin, out=0)(x), backend="c").as_jax(native=True)
    with pytest.raises(GraphError, match="not C alone"):
        f(POINT[:3])


def test_sizes_that_disagree():
    x, y = xp.symbol("x", shape=("n",)), xp.symbol("y", shape=("n",))
    f = xp.function([x, y], x + y, backend="c").as_jax(native=True)
    with pytest.raises(LazyArrError):
        f(jnp.zeros(2), jnp.zeros(3))
