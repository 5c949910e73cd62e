"""What recording one operation costs: positional and named, against numpy computing it.

Bars: 2 us for a positional operation, 3 us for a named one, by Python code and by the compiled
recorder, which takes over once the C backend has compiled something; a labelled operation 2 x the
positional one. The chain is short enough that it is never flushed, and a fresh one starts in every
call, so nothing is merged.
"""

from collections.abc import Callable

import numpy as np

import lazyarr as xp
from benchmarks import timing
from lazyarr.backends.c import recorder
from lazyarr.graph import node

POSITIONAL_BAR, NAMED_BAR = 2.0, 3.0  # microseconds
CHAIN = 50
LABELLED_BAR = 2.0  # times the positional operation


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


def labelled_pairs() -> dict[str, tuple[Callable, Callable]]:
    """The same operation on an array and on one with labels along every dim."""
    x = xp.symbol("x", shape=(10, 20))
    labels = {"a": list(range(10)), "b": [f"b{i}" for i in range(20)]}
    z = xp.symbol("x", dims=("a", "b"), coords=labels)
    picks = np.array([1, 3, 5])
    return {
        "a + b": (lambda: x + x, lambda: z + z),
        "exp(a)": (lambda: xp.exp(x), lambda: xp.exp(z)),
        "where(c, a, b)": (lambda: xp.where(x > 0, x, x), lambda: xp.where(z > 0, z, z)),
        "sum": (lambda: xp.sum(x, axis=1), lambda: z.sum("b")),
        "transpose": (lambda: xp.permute_dims(x, (1, 0)), lambda: z.transpose("b", "a")),
        "slice": (lambda: x[2:5], lambda: z.isel(a=slice(2, 5))),
        "label": (lambda: x[2], lambda: z.sel(a=2)),
        "positions": (lambda: xp.take(x, xp.asarray(picks), axis=0), lambda: z.isel(a=picks)),
    }


def compare_labelled() -> None:
    """Print each labelled operation over the positional one."""
    print(f"recording a labelled operation, bar {LABELLED_BAR} x the positional one")
    with xp.set_options(skipna=False):
        for name, (positional, labelled) in labelled_pairs().items():
            plain, named = (
                timing.interleave({"": lambda f=f: [f() for _ in range(CHAIN)]})[""]
                for f in (positional, labelled)
            )
            ratio = named / plain
            print(f"  {name:20s} {ratio:5.2f} x   {timing.verdict(ratio, LABELLED_BAR)}")


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
    compare_labelled()


if __name__ == "__main__":
    main()
