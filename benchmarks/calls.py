"""The cost of calling a compiled function: microseconds of a call that computes next to nothing.

Bars: `x + 1` on 10 elements 1 us with all checks, 20 inputs 2 us. NumPy's own `x + 1` stands
beside.
"""

import time

import numpy as np

import lazyarr as xp
from benchmarks import timing

ROUNDS = 30
CALLS = 20_000


def cost(f, *args: object, calls: int = CALLS, **named: object) -> float:
    """Microseconds of a call, the least of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            f(*args, **named)
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def rows(backend: str, calls: int) -> list[tuple[str, float]]:
    """What calls cost on a backend."""
    x, n = xp.symbol("x", shape=(10,)), xp.symbol("x", shape=(None,))
    many = [xp.symbol(f"x{i}", shape=(10,)) for i in range(20)]
    total = many[0]
    for v in many[1:]:
        total = total + v
    a, out = np.arange(10.0), np.empty(10)
    one = xp.function([x], x + 1, backend=backend)
    return [
        ("x + 1, 10 elements", cost(one, a, calls=calls)),
        ("the same, size unknown", cost(xp.function([n], n + 1, backend=backend), a, calls=calls)),
        (
            "the same, trusted",
            cost(xp.function([x], x + 1, backend=backend, trust_inputs=True), a, calls=calls),
        ),
        ("the same, out=", cost(one, a, out=out, calls=calls)),
        (
            "20 inputs",
            cost(xp.function(many, total, backend=backend), *[a] * 20, calls=calls),
        ),
    ]


def main() -> None:
    """Print a table."""
    timing.one_thread()
    a = np.arange(10.0)
    print(f"microseconds a call; numpy x + 1: {cost(lambda: a + 1):.2f}")
    bars = {"x + 1, 10 elements": 1.0, "20 inputs": 2.0}
    for backend, calls in (("c", CALLS), ("numba", 2_000), ("jax", 500), ("torch", 500)):
        for name, found in rows(backend, calls):
            bar = bars.get(name) if backend == "c" else None
            says = f"   bar {bar}: {timing.verdict(found, bar)}" if bar else ""
            print(f"{backend:<6} {name:<24} {found:7.2f}{says}")


if __name__ == "__main__":
    main()
