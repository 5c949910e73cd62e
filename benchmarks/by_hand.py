"""Value and gradient of radon and eight schools: lazyarr on C, JAX, and C written by hand.

One process, one thread, interleaved rounds, medians of CPU time. lazyarr's row is the whole Python
call, NumPy array in, fresh NumPy arrays out; JAX's takes and leaves arrays on its device (its best
case) and waits for the result; the hand-written kernel writes into a buffer that it reuses.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import kernels, timing

MODELS = {"radon": "radon_intercept_slope", "eight_schools": "eight_schools_noncentered"}
DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "models"
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
FASTER_THAN_JAX = 5.0  # goal: JAX's time over lazyarr's
AGAINST_HAND = 3.0  # goal: lazyarr's time over the hand-written kernel's


def jax_radon(jnp: Any, data: dict[str, Any]) -> Callable[[Any], Any]:
    """The radon log density, written for jax.numpy."""
    y, floor = jnp.asarray(data["log_radon"]), jnp.asarray(data["floor"], jnp.float64)
    county, n = jnp.asarray(data["county"]), int(data["J"])

    def logp(x: Any) -> Any:
        u, ar, br, ma, mb = x[:3], x[3 : 3 + n], x[3 + n : 3 + 2 * n], x[-2], x[-1]
        sy, sa, sb = jnp.exp(u[0]), jnp.exp(u[1]), jnp.exp(u[2])
        z = (y - (ma + sa * ar)[county] - floor * (mb + sb * br)[county]) / sy
        prior = jnp.sum(ar**2) + jnp.sum(br**2) + sy**2 + sa**2 + sb**2 + (ma**2 + mb**2) / 100
        normal = -(y.size + 2 * n + 5) * HALF_LOG_2PI - 2 * math.log(10) - y.size * u[0]
        return normal + jnp.sum(u) - 0.5 * (prior + jnp.sum(z**2))

    return logp


def jax_eight_schools(jnp: Any, data: dict[str, Any]) -> Callable[[Any], Any]:
    """The eight schools log density, written for jax.numpy."""
    y, sigma = jnp.asarray(data["y"], jnp.float64), jnp.asarray(data["sigma"], jnp.float64)

    def logp(x: Any) -> Any:
        t, mu, u = x[:8], x[8], x[9]
        tau = jnp.exp(u)
        z = (y - mu - tau * t) / sigma
        prior = jnp.sum(-0.5 * t**2 - HALF_LOG_2PI) - 0.5 * (mu / 5) ** 2 - math.log(5)
        scale = -math.log(math.pi * 5) - jnp.log1p((tau / 5) ** 2) + u - HALF_LOG_2PI
        return prior + scale + jnp.sum(-0.5 * z**2 - jnp.log(sigma) - HALF_LOG_2PI)

    return logp


JAX = {"radon": jax_radon, "eight_schools": jax_eight_schools}


def jax_thunk(name: str, data: dict[str, Any], point: np.ndarray) -> Callable[[], Any]:
    """jax.jit(value_and_grad), 64 bits, called on a device array and waited for."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(jax.value_and_grad(JAX[name](jax.numpy, data)))
    x = jax.numpy.asarray(point)
    return lambda: jax.block_until_ready(compiled(x))


def lazyarr_thunk(entry: str, data: dict[str, Any], point: np.ndarray) -> Callable[[], Any]:
    """The model of tests/models on the C backend, NumPy in and NumPy out."""
    from tests.models.models import compiled

    call = compiled(entry, data, point.size, "c")
    return lambda: call(point)


def check(name: str, result: Any, point: dict[str, Any]) -> None:
    """Refuse to time something that computes something else."""
    want = np.array(point["grad"])
    scale = max(1.0, float(np.max(np.abs(want))))
    value, gradient = float(np.asarray(result[0])), np.asarray(result[1])
    error = max(abs(value - point["logp"]), float(np.max(np.abs(gradient - want)))) / scale
    if not error < 1e-10:
        raise SystemExit(f"{name} differs from the reference by {error:.2g}")


def compare(name: str) -> None:
    """Print one model's three times and two ratios."""
    entry = json.loads((DATA / f"{MODELS[name]}.json").read_text())
    point = np.array(entry["points"][1]["point"])
    kernel = kernels.bind(name, entry["data"])
    thunks = {
        "hand-written C": lambda: kernel(point),
        "lazyarr C": lazyarr_thunk(MODELS[name], entry["data"], point),
        "jax.jit": jax_thunk(name, entry["data"], point),
    }
    for who, thunk in thunks.items():
        check(f"{name}, {who}", thunk(), entry["points"][1])
    times = timing.interleave(thunks)
    ours, hand, jax = (times[who] for who in ("lazyarr C", "hand-written C", "jax.jit"))
    print(f"{name}: value and gradient, one call")
    for who, seconds in times.items():
        print(f"  {who:16s} {seconds * 1e6:9.2f} us   {seconds / hand:6.2f} x hand-written C")
    against_hand = timing.verdict(ours / hand, AGAINST_HAND)
    print(f"  lazyarr / hand   {ours / hand:9.2f}      goal {AGAINST_HAND}: {against_hand}")
    against_jax = timing.verdict(FASTER_THAN_JAX, jax / ours)
    print(f"  jax / lazyarr    {jax / ours:9.2f}      goal {FASTER_THAN_JAX}: {against_jax}")


if __name__ == "__main__":
    timing.one_thread()
    for model in MODELS:
        compare(model)
