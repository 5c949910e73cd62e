"""The same function written in NumPy, C, Numba, JAX and Torch, on every backend."""

import importlib.util

import numpy as np
import pytest

import lazyarr as xp
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
