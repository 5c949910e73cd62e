"""What recording one operation costs: positional and named, against numpy computing it.

Bars: 2 us for a positional operation, 3 us for a named one, by Python code and by the compiled
recorder, which takes over once the C backend has compiled something. The chain is short enough that
it is never flushed, and a fresh one starts in every call, so nothing is merged.
"""

from collections.abc import Callable

import numpy as np

import lazyarr as xp
from benchmarks import timing
from lazyarr.backends.c import recorder
from lazyarr.graph import node

POSITIONAL_BAR, NAMED_BAR = 2.0, 3.0  # microseconds
CHAIN = 50


def chain(x: object, y: object, step: Callable[[object, object], object]) -> Callable[[], object]:
    """CHAIN operations, each on the result of the one before."""

    def run() -> object:
        z = x
        for _ in range(CHAIN):
            z = step(z, y)
        return z

    return run


def add(z: object, y: object) -> object:
    return z + y  # type: ignore[operator]


def main() -> None:
    """Print the cost of an operation, a contestant a row."""
    timing.one_thread()
    table("by Python code", None)
    if recorder.module() is not None:
        table("by the compiled recorder", recorder.module())


def table(title: str, native: object) -> None:
    """Print the rows of one way to record."""
    node.set_native(native)
    a, b = np.linspace(0.0, 1.0, 10), np.linspace(1.0, 2.0, 10)
    positional = [xp.symbol(name, shape=(10,), dtype=xp.float64) for name in "ab"]
    named = [xp.symbol(n, dims=("dim",), shape=(10,), dtype=xp.float64) for n in "ab"]
    times = timing.interleave(
        {
            "numpy a + b": chain(a, b, add),
            "positional a + b": chain(*positional, add),
            "positional exp(a)": chain(*positional, lambda z, _: xp.exp(z)),
            "positional a * 2.0": chain(*positional, lambda z, _: z * 2.0),
            "named a + b": chain(*named, add),
            "named exp(a)": chain(*named, lambda z, _: xp.exp(z)),
        }
    )
    base = times["numpy a + b"]
    print(f"recording one operation {title} (a chain of {CHAIN})")
    for name, seconds in times.items():
        each = seconds / CHAIN * 1e6
        bar = {"p": POSITIONAL_BAR, "n": NAMED_BAR}[name[0]] if "numpy" not in name else None
        says = "" if bar is None else f"   bar {bar} us: {timing.verdict(each, bar)}"
        print(f"  {name:20s} {each:6.2f} us   {seconds / base:5.2f} x numpy{says}")


if __name__ == "__main__":
    main()
