"""A hidden Markov model written in JAX, used as one operation of a lazyarr program on any backend.

Eight sequences of 70 observations, three hidden states. The likelihood is a `lax.scan` inside a
`vmap`; wrapped, it is a node like any other: lazyarr differentiates through it, and value and
gradient are one call of the JAX function. Prints likelihood and gradients for three settings
on each backend, fits signal and noise, and times a call.

Run with `python examples/hmm_wrap_jax.py` where lazyarr[all] is installed.
"""

import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import lazyarr as xp
from lazyarr.errors import BackendError

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "foreign" / "hmm.json"
BACKENDS = ("interpret", "c", "numba", "jax", "torch")
STATES = 3


def logsumexp(x: Any, axis: int) -> Any:
    """Log of a sum of exponentials whose gradient is 0 where every term is."""
    top = jax.lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True))
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    return jnp.log(jnp.sum(jnp.exp(x - top), axis=axis)) + jnp.squeeze(top, axis)


def log_likelihood(y: Any, signal: Any, noise: Any, log_start: Any, log_step: Any) -> Any:
    """Log likelihood of all sequences (rows of y) by the forward algorithm."""
    means = signal * jnp.arange(STATES)

    def emission(value: Any) -> Any:
        z = (value - means) / noise
        return -0.5 * z * z - jnp.log(noise) - 0.5 * jnp.log(2 * jnp.pi)

    def one(row: Any) -> Any:
        def step(alpha: Any, value: Any) -> tuple:
            return logsumexp(alpha[:, None] + log_step, 0) + emission(value), None

        alpha, _ = jax.lax.scan(step, log_start + emission(row[0]), row[1:])
        return logsumexp(alpha, 0)

    return jnp.sum(jax.vmap(one)(y))


hmm = xp.wrap_jax(log_likelihood, name="hmm")


def read() -> tuple[np.ndarray, list[dict]]:
    """Return the observations and the settings, with their exact values."""
    found = json.loads(DATA.read_text(encoding="utf-8"))
    for case in found["cases"]:
        rows = [[-np.inf if v is None else v for v in row] for row in case["logA"]]
        case["logA"] = np.array(rows)
    return np.array(found["y"]), found["cases"]


def compiled(backend: str) -> Any:
    """Return the likelihood and its gradients by the four parameters, compiled for a backend."""
    y, _ = read()
    signal, noise = xp.symbol("signal"), xp.symbol("noise")
    start, step = xp.symbol("start", shape=(STATES,)), xp.symbol("step", shape=(STATES, STATES))
    value = hmm(y, signal, noise, start, step)
    wrt = [signal, noise, start, step]
    return xp.function(wrt, xp.value_and_grad(value, wrt), backend=backend)


def main() -> None:
    """Show values, gradients, a fit and times."""
    _, cases = read()
    for backend in BACKENDS:
        try:
            f = compiled(backend)
        except BackendError as error:
            print(f"{backend}: {error}")
            continue
        print(f"{backend}: {len(f.fallbacks())} host step(s)")
        for case in cases:
            point = [case["signal"], case["noise"], np.array(case["logpi"]), case["logA"]]
            value, slopes = f(*point)
            print(f"  {case['name']:6} {value:.6f}  signal {slopes[0]:.4f}  noise {slopes[1]:.4f}")
            assert abs(value - case["logp"]) < 1e-8 * abs(case["logp"])
            assert all(np.isfinite(s).all() for s in slopes)
        point = [
            cases[0]["signal"],
            cases[0]["noise"],
            np.array(cases[0]["logpi"]),
            cases[0]["logA"],
        ]
        start = time.perf_counter()
        for _ in range(100):
            f(*point)
        print(f"  value and four gradients: {(time.perf_counter() - start) * 1e4:.0f} us")

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = f(x[0], x[1], np.array(cases[0]["logpi"]), cases[0]["logA"])
        return -float(value), -np.array([slopes[0], slopes[1]])

    f = compiled("c")
    fit = minimize(negative, [0.8, 0.5], jac=True, bounds=[(None, None), (0.01, None)])
    print(f"fitted signal {fit.x[0]:.4f}, noise {fit.x[1]:.4f}")


if __name__ == "__main__":
    main()
