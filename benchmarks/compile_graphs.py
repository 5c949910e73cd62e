"""Cold compilation of large graphs, as loops of a user's program record them.

    python -m benchmarks.compile_graphs [graph ...]

Each graph of 500 and of 5,000 operations is compiled in a fresh process with an empty cache: CPU
seconds of the process and of the C compiler that it starts, from the first recorded operation to
the compiled function, without the imports and what is done once on a machine. Bars: 0.5 and 5 s.
JAX compiles the same beside it (`over` where that takes more than 20 s). Then the cost of the
Python side, all but the C compiler, for each operation of 500, 5,000 and 20,000: it must not grow
with the graph by more than 1.5 x.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import timing
from benchmarks.compile import fresh

BARS = {500: 0.5, 5000: 5.0}
SIZES = 500, 5000, 20_000
GROWTH = 1.5
PATIENCE = 20.0
ROUNDS = 3


def chain(xp: Any, x: Any, n: int) -> Any:
    """Each of n operations waits for the one before it."""
    y = x[0]
    for k in range(n // 4):
        y = xp.sin(y) * 0.5 + x[0] * (1.0 + k % 7)
    return y


def wide(xp: Any, x: Any, n: int) -> Any:
    """Pieces beside each other, each with its own numbers, added up."""
    total = x[0]
    for k in range(n // 5):
        total = total + xp.exp(x[1] * -(k + 1.0)) * (x[1] + k)
    return total


def mixed(xp: Any, x: Any, n: int) -> Any:
    """Slices, means, broadcasting, elementwise functions and sums, many small ones."""
    total = xp.sum(x)
    for k in range(n // 8):
        row = x[k % 4]
        d = (row - xp.mean(row)) / (1.0 + k)
        total = total + xp.sum(xp.tanh(d) * d)
    return total


def ladder(xp: Any, x: Any, n: int) -> Any:
    """A recurrence over columns: rows that reduce, and feed the next step."""
    state = x[0]
    for k in range(n // 8):
        scale = xp.max(state) - xp.min(state) + 1.0
        state = xp.sqrt(state * state + 1.0) / scale + x[k % 4]
    return state


GRAPHS: dict[str, Callable[[Any, Any, int], Any]] = {
    f.__name__: f for f in (chain, wide, mixed, ladder)
}

OURS = """
import lazyarr as xp
from benchmarks.compile_graphs import GRAPHS
from lazyarr.backends.c import backend, compiler, launcher
from lazyarr.backends.driver import Program
xp.function, xp.symbol, xp.sin, xp.sum  # names load when used
compiler.find_compiler(), launcher.extension()
def made(n):
    x = xp.symbol("x", shape=(4, None))
    return xp.function([x], GRAPHS["{graph}"](xp, x, n), backend="c")
"""
COLD = """
start = clock()
made({n})
print(clock() - start)
"""
PYTHON = """
made(100)
for n in {sizes}:
    start = time.process_time()
    made(n)
    print((time.process_time() - start) / n * 1e6)
"""
JAX = """
import jax
jax.config.update("jax_enable_x64", True)
from benchmarks.compile_graphs import GRAPHS
x = jax.numpy.ones((4, 100)).block_until_ready()
start = clock()
jax.jit(lambda x: GRAPHS["{graph}"](jax.numpy, x, {n})).lower(x).compile()
print(clock() - start)
"""


def cold(graph: str, n: int) -> float:
    """The median of CPU seconds to a compiled function."""
    found = []
    for _ in range(ROUNDS if n < 1000 else 1):
        with tempfile.TemporaryDirectory() as cache:
            found += fresh((OURS + COLD).format(graph=graph, n=n), cache)
    return statistics.median(found)


def of_jax(graph: str, n: int) -> str:
    """The same of JAX as text."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            return f"{fresh(JAX.format(graph=graph, n=n), cache, 2 * PATIENCE)[0]:6.2f} s"
        except subprocess.TimeoutExpired:
            return f"over {PATIENCE:g} s"


def compare(graph: str) -> None:
    """Print the rows of a graph."""
    for n, bar in BARS.items():
        seconds = cold(graph, n)
        says = timing.verdict(seconds, bar)
        peer = of_jax(graph, n)
        print(f"{graph:7s} {n:6d} operations {seconds:6.2f} s   bar {bar} s: {says}   JAX {peer}",
              flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory() as cache:
        each = fresh((OURS + PYTHON).format(graph=graph, sizes=SIZES), cache)
    cells = ", ".join(f"{n}: {us:.0f} us" for n, us in zip(SIZES, each, strict=True))
    grown = each[-1] / each[0]
    says = timing.verdict(grown, GROWTH)
    print(f"{graph:7s} Python, each operation {cells}; grows {grown:.2f} x, bar {GROWTH}: {says}",
          flush=True)  # fmt: skip


def main(names: Sequence[str]) -> None:
    """Print the table."""
    timing.one_thread()
    for name in names or GRAPHS:
        compare(name)


if __name__ == "__main__":
    main(sys.argv[1:])
