"""The same function written in NumPy, C, Numba, JAX and Torch, on every backend."""

import importlib.util

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.passes import pipeline
from tests.backend_params import BACKENDS

POINT = np.linspace(0.3, 1.7, 5)


def vjp(g, y, x):
    return (g * (1 - y * y),)


def in_numpy():
    return xp.wrap_numpy(np.tanh, out=0, vjp=vjp, batch=True)


def in_c():
    return xp.wrap_c(
        "void f(int64_t n, const double *x, double *y) { while (n--) y[n] = tanh(x[n]); }",
        "f(n, x: float64[n]) -> y: float64[n]",
        vjp=vjp,
    )


def in_numba():
    return xp.wrap_numba(lambda x: np.tanh(x), out=0, vjp=vjp, batch=True)


def in_jax():
    from jax import numpy as jnp

    return xp.wrap_jax(jnp.tanh)


def in_torch():
    import torch

    return xp.wrap_torch(torch.tanh)


NATIVE = {"numba": in_numba, "jax": in_jax, "torch": in_torch}
INLINED = {("jax", "jax"), ("torch", "torch")}
INLINED |= {(language, backend) for language in ("c", "numba") for backend in ("c", "numba")}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("language", ["numpy", "c", "numba", "jax", "torch"])
def test_values_and_derivatives(language, backend):
    make = {"numpy": in_numpy, "c": in_c, **NATIVE}[language]
    if language in NATIVE and importlib.util.find_spec(language) is None:
        pytest.skip(f"{language} is not installed")
    f = make()
    x = xp.symbol("x", shape=(5,))
    y = xp.sum(f(x * 2) ** 2)
    outputs = [
        *xp.value_and_grad(y, x),
        xp.jvp(xp.grad(lambda x: xp.sum(f(x) ** 2)), (x,), (x,))[1],
    ]
    g = xp.function([x], outputs, backend=backend)
    t, u = np.tanh(2 * POINT), np.tanh(POINT)
    got = g(POINT)
    np.testing.assert_allclose(got[0], np.sum(t * t))
    np.testing.assert_allclose(got[1], 4 * t * (1 - t * t))
    second = 2 * (1 - u * u) * (1 - 3 * u * u)
    np.testing.assert_allclose(got[2], second * POINT)
    inlined = backend == "interpret" or (language, backend) in INLINED
    assert (g.fallbacks() == []) == inlined


def energies():
    """A number of an array and its gradient, in each language that is installed."""

    def energy_vjp(g, y, x):
        t = xp.tanh(x)
        return (g * 2 * t * (1 - t * t),)

    def plain(x):
        return np.sum(np.tanh(x) ** 2)

    number = ("float64", ())
    source = (
        "void f(int64_t n, const double *x, double *y)"
        " { *y = 0; while (n--) *y += tanh(x[n]) * tanh(x[n]); }"
    )
    found = {
        "numpy": lambda: xp.wrap_numpy(plain, out=number, vjp=energy_vjp),
        "c": lambda: xp.wrap_c(source, "f(n, x: float64[n]) -> y: float64[]", vjp=energy_vjp),
        "numba": lambda: xp.wrap_numba(plain, out=number, vjp=energy_vjp),
        "jax": lambda: xp.wrap_jax(lambda x: in_jax().function(x).__pow__(2).sum()),
        "torch": lambda: xp.wrap_torch(lambda x: in_torch().function(x).__pow__(2).sum()),
    }
    return [name for name in found if name not in NATIVE or importlib.util.find_spec(name)], found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("language", energies()[0])
def test_value_and_gradient_are_one_call(language, backend):
    f = energies()[1][language]()
    x = xp.symbol("x", shape=(5,))
    g = xp.function([x], xp.value_and_grad(f(x * 2), x), backend=backend)
    value, slope = g(POINT)
    t = np.tanh(2 * POINT)
    np.testing.assert_allclose(value, np.sum(t * t))
    np.testing.assert_allclose(slope, 4 * t * (1 - t * t))
    ready = pipeline.run(g.program.graph)
    calls = [v for v in ready.toposort() if v.op is not None and v.op.name == "foreign"]
    assert len(calls) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_are_called_once(backend):
    """The calls themselves, counted where the function is Python."""
    calls = []
    f = xp.wrap_numpy(lambda x: calls.append(1) or np.tanh(x), out=0, vjp=vjp, name="counted")
    x = xp.symbol("x", shape=(5,))
    g = xp.function([x], xp.value_and_grad(xp.sum(f(x)), x), backend=backend)
    g(POINT)
    assert len(calls) == 1
