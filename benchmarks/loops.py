"""Loops: lazyarr on C (and Numba) against C written by hand, Numba and JAX, value and gradient.

One process, one thread, interleaved rounds, medians of CPU time, everything as a ratio to the
hand-written C. lazyarr's rows are whole Python calls, NumPy arrays in, fresh NumPy arrays out.
`python -m benchmarks.loops [name ...] [--numba] [--jax] [--torch] [--jax.jit]`: lazyarr on these
backends too, and the same loops written for jax.numpy. `--memory`: scratch with and without
checkpoints, and the time to compile loops of few and many steps.
"""

import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lazyarr as xp
from benchmarks import timing
from benchmarks.kernels import FLAGS, compiler, pointer

SOURCE = Path(__file__).with_name("loops.c")
AGAINST_HAND = {"c": 1.2, "numba": 1.5}  # goals: lazyarr's time over the hand-written kernel's
GRADIENT = {"history": 4.0}  # goal: value and gradient over value, 3 for the others
K = 4  # states of the hidden Markov model


def garch(x: Any, y: Any) -> Any:
    """Gaussian log density under a variance that depends on the last error and variance."""
    mu, a0, a1, b1 = x[0], x[1], x[2], x[3]

    def step(s2: Any, value: Any) -> Any:
        e = value - mu
        return a0 + a1 * e * e + b1 * s2, xp.log(s2) + e * e / s2

    return -0.5 * xp.sum(xp.scan(step, 1.0, y)[1])


def hmm(x: Any, y: Any) -> Any:
    """Forward algorithm of a hidden Markov model with normal emissions."""
    start, trans, mu = x[:K], xp.reshape(x[K : K + K * K], (K, K)), x[K + K * K :]

    def step(a: Any, value: Any) -> Any:
        new = xp.special.logsumexp(a[:, None] + trans, axis=0) - 0.5 * (value - mu) ** 2
        return new, None

    return xp.special.logsumexp(xp.scan(step, start, y)[0])


def taps(x: Any, y: Any) -> Any:
    """An autoregression of three lags, simulated."""
    step = xp.lagged(
        lambda past, e: x[0] + x[1] * past[0] + x[2] * past[1] + x[3] * past[2] + e, (1, 2, 3)
    )
    return xp.sum(xp.scan(step, (0.1, 0.1, 0.1), y)[1] ** 2)


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

    (u, v), _ = xp.scan(step, (x[4], x[5]), length=y.shape[0])
    return u + v


def leapfrog(x: Any, y: Any) -> Any:
    """A pendulum until it is upright again, at most as many steps as y has elements."""
    h, k = 0.002, x[0]

    def step(state: Any, _: Any) -> Any:
        q, p = state
        p = p - h / 2 * k * xp.sin(q)
        q = q + h * p
        return (q, p - h / 2 * k * xp.sin(q)), None

    (q, p), _, _ = xp.scan(step, (x[1], x[2]), length=y.shape[0], until=lambda state: state[0] < 0)
    return q + p


def history(x: Any, w: Any) -> Any:
    """A renewal process: each element is a weighted sum of all before it."""
    n = w.shape[0]
    padded = xp.concat([w, xp.zeros(n)])
    j = xp.arange(n)

    def step(h: Any, t: Any) -> Any:
        past = xp.where(j < t, h * xp.window(padded, n - t, n), 0.0)
        return h.at[t].set(x[0] * xp.sum(past)), None

    start = xp.zeros(n).at[0].set(x[1])
    h, _ = xp.scan(step, start, xp.arange(1, n))
    return xp.sum(h * h)


@dataclass(frozen=True)
class Case:
    """A loop: its function, how many steps, a point, and whether `y` is data of that length."""

    f: Callable[[Any, Any], Any]
    steps: int
    point: np.ndarray
    data: np.ndarray
    work: int  # doubles of scratch for the kernel


def cases() -> dict[str, Case]:
    """Return the loops by name."""
    rng = np.random.default_rng(1)
    normal = rng.normal(size=10_000)
    hmm_point = np.concatenate(
        [np.log(np.full(K, 1 / K)), rng.normal(size=K * K), rng.normal(size=K)]
    )
    weights = np.exp(-np.arange(2000)[::-1] / 20.0) / 25.0
    return {
        "garch": Case(garch, 10_000, np.array([0.1, 0.2, 0.1, 0.8]), normal, 10_000),
        "hmm": Case(hmm, 1000, hmm_point, normal[:1000], 1000 * K * K),
        "taps": Case(taps, 10_000, np.array([0.1, 0.4, 0.2, -0.1]), normal, 10_003),
        "rk": Case(rk, 1000, np.array([0.6, 0.03, 0.8, 0.02, 30.0, 4.0]), normal[:1000], 2000),
        "leapfrog": Case(leapfrog, 1000, np.array([2.0, 1.0, 0.3]), normal[:1000], 3000),
        "history": Case(history, 2000, np.array([1.1, 1.0]), weights, 4000),
    }


def library() -> ctypes.CDLL:
    """loops.c as a shared library, with vector math where the compiler and libc have it."""
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "loops.so")
        base = [compiler(), *FLAGS, "-fPIC", "-shared", str(SOURCE), "-o", target]
        vector = subprocess.run([*base, "-DVECTOR_MATH", "-lmvec", "-lm"], capture_output=True)
        if vector.returncode:
            subprocess.run([*base, "-lm"], check=True)
        return ctypes.CDLL(target)


def by_hand(lib: ctypes.CDLL, name: str, case: Case) -> tuple[Callable, Callable]:
    """Return value, and value and gradient, of the hand-written kernel."""
    function = getattr(lib, name)
    function.restype = ctypes.c_double
    gradient, work = np.zeros(case.point.size), np.zeros(case.work)
    x, y = case.point, case.data
    head = (ctypes.c_long(case.steps), pointer(x), pointer(y))
    tail = pointer(work)
    both = pointer(gradient)

    def value(kept: Any = work) -> float:
        return function(*head, None, tail)

    return value, lambda: (function(*head, both, tail), gradient)


def ours(case: Case, backend: str) -> tuple[Callable, Callable, Any]:
    """Return value, and value and gradient, of a loop on a backend."""
    x = xp.symbol("x", shape=case.point.shape)
    y = xp.symbol("y", shape=case.data.shape)
    loss = case.f(x, y)
    value = xp.function([x, y], loss, backend=backend)
    both = xp.function([x, y], xp.value_and_grad(loss, x), backend=backend)
    return (lambda: value(case.point, case.data)), (lambda: both(case.point, case.data)), both


def compare(lib: ctypes.CDLL, name: str, case: Case, others: list[str]) -> None:
    """Print the times of one loop."""
    thunks: dict[str, Callable] = {}
    thunks["hand value"], thunks["hand both"] = by_hand(lib, name, case)
    for backend in ["c", *(b for b in others if b != "jax.jit")]:
        thunks[f"{backend} value"], thunks[f"{backend} both"], _ = ours(case, backend)
    if "jax.jit" in others:
        from benchmarks.loops_jax import thunks as jax_thunks

        thunks.update(jax_thunks(name, case))
    want_value, want = thunks["hand both"]()
    want = want.copy()
    for who, thunk in thunks.items():
        found = thunk()
        if who.endswith("both"):
            np.testing.assert_allclose(np.asarray(found[1]), want, rtol=1e-8, err_msg=who)
            found = found[0]
        np.testing.assert_allclose(np.asarray(found), want_value, rtol=1e-9, err_msg=who)
    times = timing.interleave(thunks)
    for who, seconds in times.items():
        backend, what = who.split()
        ratio = seconds / times[f"hand {what}"]
        bar = AGAINST_HAND.get(backend)
        said = "" if bar is None else f"  {timing.verdict(ratio, bar)}"
        print(f"{name:9s} {who:14s} {seconds * 1e6:9.1f} us  {ratio:6.2f} x hand{said}")
        theirs = times.get(f"jax.jit {what}")
        if theirs is not None and backend in AGAINST_HAND:
            said = timing.verdict(seconds / theirs, 1.0)
            print(f"{name:9s} {who:14s} {seconds / theirs:9.2f} x jax.jit  {said}")
    for backend in AGAINST_HAND:
        if f"{backend} both" in times:
            ratio = times[f"{backend} both"] / times[f"{backend} value"]
            said = timing.verdict(ratio, GRADIENT.get(name, 3.0))
            print(f"{name:9s} {backend} both / value {ratio:.2f}  {said}", flush=True)


def orbit(steps: int, how: object) -> Any:
    """Value and gradient of steps of a nonlinear map, compiled."""
    a = xp.symbol("a", shape=())
    last, _ = xp.scan(
        lambda c, _: (xp.sin(a * c) + 0.1 * c, None), 0.5, length=steps, checkpoint=how
    )
    return xp.function([a], xp.value_and_grad(last, a), backend="c")


def scratch_of(plan: Any) -> int:
    """Return the bytes of a plan's temporaries, in the arena and on the stack."""
    local = sum(b.dtype.itemsize * int(np.prod(plan.shapes[b])) for b in plan.local)
    return plan.arena_bytes({}) + local


def memory() -> None:
    """Print the scratch that a gradient needs, whole and with checkpoints, and its CPU time."""
    sizes, scratches = (10_000, 100_000, 1_000_000), []
    for steps in sizes:
        row = {}
        for how in (None, "sqrt"):
            call = orbit(steps, how)
            (variant,) = call.program.variants.values()
            scratch = sum(scratch_of(s.run.plan) for s in variant.steps)
            seconds = min(timing.cpu(lambda c=call: c(1.3), 3) for _ in range(5))
            row[how] = scratch, seconds
        (whole, plain), (kept, again) = row.values()
        roots = kept / 8 / steps**0.5
        scratches.append(kept)
        print(
            f"{steps:8d} steps: {whole / 1e3:9.1f} kB, {plain * 1e6:8.0f} us; checkpoint "
            f"{kept / 1e3:7.1f} kB ({roots:.1f} roots of the steps), {again * 1e6:8.0f} us",
            flush=True,
        )
    slope = np.polyfit(np.log(sizes), np.log(scratches), 1)[0]
    print(f"checkpointed scratch grows as T^{slope:.2f}  {timing.verdict(slope, 0.55)}")


def compiling() -> None:
    """Print the time of compiling the same loop for few and many steps, medians of several."""
    taken: dict[int, list[float]] = {999: [], 999_999: []}
    for k in range(6):  # other numbers of steps each time: nothing is known already
        for steps, seconds in taken.items():
            start = time.perf_counter()
            orbit(steps - k, None)
            seconds.append(time.perf_counter() - start)
    few, many = (statistics.median(v[1:]) for v in taken.values())
    for steps, seconds in zip(taken, (few, many), strict=True):
        print(f"{steps:8d} steps: {1e3 * seconds:7.0f} ms to compile")
    print(f"compile time, many over few: {many / few:.2f}  {timing.verdict(many / few, 1.15)}")


def main(arguments: list[str]) -> None:
    """Compare the loops named, all by default."""
    timing.one_thread()
    if "--memory" in arguments:
        with tempfile.TemporaryDirectory() as folder, xp.set_options(cache_dir=folder):
            memory()  # a program that the cache knows has no plan
            compiling()
        return
    lib = library()
    others = [a[2:] for a in arguments if a.startswith("--")]
    names = [a for a in arguments if not a.startswith("--")]
    for name, case in cases().items():
        if not names or name in names:
            compare(lib, name, case, others)


if __name__ == "__main__":
    main(sys.argv[1:])
