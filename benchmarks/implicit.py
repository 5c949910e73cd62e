"""Twenty operations of array-agnostic code, run eagerly by each library: no jit, no word of
lazyarr.

The same function of a namespace and an array, n = 100, 1e4, 1e6; arithmetic, and with exp and sqrt.
Process CPU time, medians of interleaved rounds, as multiples of NumPy. Bars for lazyarr: 3 x at
n = 100; 0.5 x (arithmetic) and 1.0 x (transcendental) at 1e4; 0.33 x at 1e6.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import lazyarr as xp
from benchmarks import timing

BARS = {
    ("arithmetic", 100): 3.0, ("transcendental", 100): 3.0,
    ("arithmetic", 10_000): 0.5, ("transcendental", 10_000): 1.0,
    ("arithmetic", 1_000_000): 1 / 3, ("transcendental", 1_000_000): 1 / 3,
}  # fmt: skip


def arithmetic(ns: Any, x: Any) -> float:
    """Twenty additions, products and quotients, and a sum."""
    y = x * 2.0 + 1.0
    w = y
    for _ in range(5):
        w = (w * 0.5 + y) - x / 3.0
    return float(ns.sum(w))


def transcendental(ns: Any, x: Any) -> float:
    """The same length with exp, sqrt and tanh among the operations."""
    y = x * 2.0 + 1.0
    w = ns.exp(-y) + ns.sqrt(ns.abs(y))
    for _ in range(4):
        w = ns.tanh(w) * 0.5 + y
    return float(ns.sum(w))


def libraries(values: np.ndarray) -> dict[str, tuple[Any, Any]]:
    """Each library's namespace and its array of the values."""
    found: dict[str, tuple[Any, Any]] = {"numpy": (np, values), "lazyarr": (xp, xp.asarray(values))}
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        found["torch"] = (torch, torch.from_numpy(values))
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        found["jax"] = (jax.numpy, jax.numpy.asarray(values))
    if importlib.util.find_spec("dask"):
        import dask.array

        found["dask"] = (dask.array, dask.array.from_array(values))
    return found


def main() -> None:
    """Print a table: a row for each function and size, a column for each library."""
    timing.one_thread()
    rng = np.random.default_rng(0)
    for function in (arithmetic, transcendental):
        for n in (100, 10_000, 1_000_000):
            print(row(function, n, rng.random(n)))
    print(f"lazyarr: {xp.stats()}")


def row(function: Callable[[Any, Any], float], n: int, values: np.ndarray) -> str:
    """One line of the table."""
    names = libraries(values)
    thunks = {k: (lambda ns=ns, x=x: function(ns, x)) for k, (ns, x) in names.items()}
    for run in thunks.values():
        for _ in range(3):
            run()
    times = timing.interleave(thunks, 40 if n < 1_000_000 else 8)
    base = times["numpy"]
    cells = "  ".join(f"{k} {times[k] / base:7.2f}" for k in names if k != "numpy")
    bar = BARS[function.__name__, n]
    says = timing.verdict(times["lazyarr"] / base, bar)
    head = f"{function.__name__:15s} n={n:<8d} numpy {base * 1e6:9.1f} us"
    return f"{head}  {cells}  bar {bar:.2f}: {says}"


if __name__ == "__main__":
    main()
