"""A graph of 20,000 operations at the default recursion limit, each stage timed.

`y = sin(y) + x`, ten thousand times: recorded, printed, pickled, differentiated, interpreted,
compiled in C (in segments; bar 20 s), called, freed.
"""

import gc
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lazyarr as xp
from benchmarks import timing

STEPS = 10_000
COMPILE_BAR = 20.0


def stage(name: str, run: Callable[..., Any], *args: Any, bar: float | None = None) -> Any:
    """Run, print the wall time, hand on the result."""
    start = time.perf_counter()
    result = run(*args)
    seconds = time.perf_counter() - start
    says = "" if bar is None else f"   bar {bar} s: {timing.verdict(seconds, bar)}"
    print(f"  {name:34s} {seconds:7.2f} s{says}")
    return result


def record(x: Any) -> Any:
    """The chain of 2 * STEPS operations."""
    y = x
    for _ in range(STEPS):
        y = xp.sin(y) + x
    return y


def expected(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum and gradient, computed by NumPy."""
    y, slope = x, np.ones_like(x)
    for _ in range(STEPS):
        y, slope = np.sin(y) + x, np.cos(y) * slope + 1
    return float(np.sum(y)), slope


def agree(name: str, result: Any, want: tuple[float, np.ndarray]) -> None:
    """Stop when a stage computed something else."""
    if not (np.allclose(result[0], want[0], rtol=1e-9) and np.allclose(result[1], want[1])):
        raise SystemExit(f"{name} differs from NumPy")


def function(x: Any, outputs: Any, backend: str) -> Callable[[np.ndarray], Any]:
    """A compiled function; the first call made, so that lowering and compiling are done."""
    call = xp.function([x], outputs, backend=backend)
    if backend != "interpret":
        call(np.zeros(8))
    return call


def walk(kept: dict[str, Any]) -> None:
    """The stages up to the call; `kept` holds every expression and function made."""
    point = np.linspace(0.1, 1.0, 8)
    want = expected(point)
    x = xp.symbol("x", shape=(8,), dtype=xp.float64)
    kept["chain"] = chain = stage("record", record, x)
    kept["total"] = total = xp.sum(chain)
    stage("print", repr, total)
    stage("unpickle", pickle.loads, stage("pickle", pickle.dumps, total))
    kept["pair"] = pair = stage("differentiate", xp.value_and_grad, total, x)
    kept["slow"] = slow = function(x, pair, "interpret")
    agree("the interpreter", stage("interpret", slow, point), want)
    kept["value"] = value = stage("compile in C", function, x, total, "c", bar=COMPILE_BAR)
    agree("C", (stage("call", value, point), want[1]), want)
    kept["fast"] = fast = stage("compile value and gradient in C", function, x, pair, "c")
    agree("C", stage("call", fast, point), want)


def main() -> None:
    """Walk the stages with an empty cache, then free what they made."""
    print(f"a graph of {2 * STEPS} operations, recursion limit {sys.getrecursionlimit()}")
    kept: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache, xp.set_options(cache_dir=cache):
        walk(kept)
        stage("free", lambda: (kept.clear(), gc.collect()))


if __name__ == "__main__":
    main()
