"""diffrax's solver of differential equations, wrapped as it is, with gradients on every backend."""

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import BACKENDS

diffrax = pytest.importorskip("diffrax")
jnp = pytest.importorskip("jax").numpy

TIMES = np.linspace(0.5, 4.0, 8)
solve = xp.wrap_jax(diffrax.diffeqsolve, name="diffeqsolve")  # the function of the package itself


def predator_prey(t, y, rates):
    u, v = y
    return jnp.stack([(rates["a"] - rates["b"] * v) * u, (rates["d"] * u - rates["c"]) * v])


def path(start, a):
    """Return the solution at TIMES; solver, controller and term are what the package asks for."""
    solution = solve(
        diffrax.ODETerm(predator_prey), diffrax.Tsit5(), 0.0, 4.0, 0.01, start,
        {"a": a, "b": 0.6, "c": 0.9, "d": 0.4},
        saveat=diffrax.SaveAt(ts=TIMES),
        stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-9),
        max_steps=4096,
    )  # fmt: skip
    return solution.ys


def reference(start, a, steps=400):
    """Return the solution by the classical method in NumPy, and none of the package."""

    def slope(y):
        u, v = y
        return np.array([(a - 0.6 * v) * u, (0.4 * u - 0.9) * v])

    found, y, t = [], np.array(start), 0.0
    for end in TIMES:
        h = (end - t) / steps
        for _ in range(steps):
            k1 = slope(y)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + h / 2 * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t = end
        found.append(y)
    return np.array(found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_solution_and_gradient(backend):
    start, a = xp.symbol("start", shape=(2,)), xp.symbol("a")
    value = xp.sum(path(start, a) ** 2)
    f = xp.function([start, a], xp.value_and_grad(value, [start, a]), backend=backend)
    point, rate = np.array([2.0, 1.0]), 1.1
    got, (by_start, by_a) = f(point, rate)

    def exact(point, rate):
        return np.sum(reference(point, rate) ** 2)

    np.testing.assert_allclose(got, exact(point, rate), rtol=1e-7)
    h = 1e-5
    wanted = (exact(point, rate + h) - exact(point, rate - h)) / (2 * h)
    np.testing.assert_allclose(by_a, wanted, rtol=1e-5)
    for i, e in enumerate(np.eye(2) * h):
        wanted = (exact(point + e, rate) - exact(point - e, rate)) / (2 * h)
        np.testing.assert_allclose(by_start[i], wanted, rtol=1e-5)
    # the cotangent of the path is computed from the path: two calls outside JAX
    assert len(f.fallbacks()) == (0 if backend in ("jax", "interpret") else 2)
