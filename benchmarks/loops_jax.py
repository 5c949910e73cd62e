"""The loops of `benchmarks.loops` written for jax.numpy, as a user of JAX writes them."""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

K = 4  # states of the hidden Markov model


def garch(x: Any, y: Any) -> Any:
    """Gaussian log density under a variance that depends on the last error and variance."""

    def step(s2: Any, value: Any) -> Any:
        e = value - x[0]
        return x[1] + x[2] * e * e + x[3] * s2, jnp.log(s2) + e * e / s2

    return -0.5 * jnp.sum(lax.scan(step, 1.0, y)[1])


def hmm(x: Any, y: Any) -> Any:
    """Forward algorithm of a hidden Markov model with normal emissions."""
    trans, mu = jnp.reshape(x[K : K + K * K], (K, K)), x[K + K * K :]

    def step(a: Any, value: Any) -> Any:
        new = jax.scipy.special.logsumexp(a[:, None] + trans, axis=0)
        return new - 0.5 * (value - mu) ** 2, None

    return jax.scipy.special.logsumexp(lax.scan(step, x[:K], y)[0])


def taps(x: Any, y: Any) -> Any:
    """An autoregression of three lags, simulated."""

    def step(past: Any, e: Any) -> Any:
        new = x[0] + x[1] * past[0] + x[2] * past[1] + x[3] * past[2] + e
        return (new, past[0], past[1]), new

    return jnp.sum(lax.scan(step, (0.1, 0.1, 0.1), y)[1] ** 2)


def rk(x: Any, y: Any) -> Any:
    """Runge-Kutta steps of predators and prey."""
    h = 0.01

    def slope(u: Any, v: Any) -> Any:
        return (x[0] - x[1] * v) * u, (x[3] * u - x[2]) * v

    def step(state: Any, _: Any) -> Any:
        u, v = state
        u1, v1 = slope(u, v)
        u2, v2 = slope(u + h / 2 * u1, v + h / 2 * v1)
        u3, v3 = slope(u + h / 2 * u2, v + h / 2 * v2)
        u4, v4 = slope(u + h * u3, v + h * v3)
        new = u + h / 6 * (u1 + 2 * u2 + 2 * u3 + u4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        return new, None

    (u, v), _ = lax.scan(step, (x[4], x[5]), None, length=y.shape[0])
    return u + v


def _kick(x: Any, state: Any) -> Any:
    h, k = 0.002, x[0]
    q, p = state
    p = p - h / 2 * k * jnp.sin(q)
    q = q + h * p
    return q, p - h / 2 * k * jnp.sin(q)


def leapfrog(x: Any, y: Any) -> Any:
    """A pendulum until it is upright again: a while loop, which JAX has no gradient for."""

    def more(state: Any) -> Any:
        return (state[0] < y.shape[0]) & (state[1][0] >= 0)

    start = 1, _kick(x, (x[1], x[2]))
    _, (q, p) = lax.while_loop(more, lambda s: (s[0] + 1, _kick(x, s[1])), start)
    return q + p


def leapfrog_masked(x: Any, y: Any) -> Any:
    """The same over all steps, those after the stop without effect: what has a gradient."""

    def step(state: Any, _: Any) -> Any:
        done, (q, p) = state
        new = _kick(x, (q, p))
        q, p = jnp.where(done, q, new[0]), jnp.where(done, p, new[1])
        return (done | (q < 0), (q, p)), None

    (_, (q, p)), _ = lax.scan(step, (False, (x[1], x[2])), None, length=y.shape[0])
    return q + p


def history(x: Any, w: Any) -> Any:
    """A renewal process: each element is a weighted sum of all before it."""
    n = w.shape[0]
    padded, j = jnp.concatenate([w, jnp.zeros(n)]), jnp.arange(n)

    def step(h: Any, t: Any) -> Any:
        past = jnp.where(j < t, h * lax.dynamic_slice(padded, (n - t,), (n,)), 0.0)
        return h.at[t].set(x[0] * jnp.sum(past)), None

    h, _ = lax.scan(step, jnp.zeros(n).at[0].set(x[1]), jnp.arange(1, n))
    return jnp.sum(h * h)


VALUES = {f.__name__: f for f in (garch, hmm, taps, rk, leapfrog, history)}
WITH_GRADIENT = {**VALUES, "leapfrog": leapfrog_masked}


def thunks(name: str, case: Any) -> dict[str, Callable]:
    """Return calls of jax.jit of value, and of value and gradient, on device arrays."""
    jax.config.update("jax_enable_x64", True)
    x, y = jnp.asarray(case.point), jnp.asarray(case.data)
    value, both = jax.jit(VALUES[name]), jax.jit(jax.value_and_grad(WITH_GRADIENT[name]))
    return {
        "jax.jit value": lambda: jax.block_until_ready(value(x, y)),
        "jax.jit both": lambda: jax.block_until_ready(both(x, y)),
    }
