"""Two threads against one on ten million elements, in C: wall time, best of interleaved rounds.

`python -m benchmarks.threads [threads]`. Bar: 1.6. It needs as many idle CPUs as threads, so it is
printed and never a test. Work bound by memory gains what memory gives to a second thread.
"""

import functools
import sys
import time
from collections.abc import Callable

import numpy as np

import lazyarr as xp
from benchmarks.rows import logpdf_sum, memory, softmax, transcendental, variance

BAR, ROUNDS, N = 1.6, 25, 10_000_000

WORK: dict[str, tuple[Callable, tuple]] = {
    "transcendental": (lambda x: transcendental(xp, x, 0.3, 1.7, 2.5), ((N,),)),
    "memory": (lambda x, y: memory(xp, x, y), ((N,), (N,))),
    "logpdf sum": (lambda x: logpdf_sum(xp, x, 0.1, xp.asarray(1.3)), ((N,),)),
    "softmax last": (lambda x: softmax(xp, x, -1), ((N // 1000, 1000),)),
    "softmax short": (lambda x: softmax(xp, x, -1), ((N // 8, 8),)),
    "variance last": (lambda x: variance(xp, x, -1), ((N // 1000, 1000),)),
}


def compiled(f: Callable, shapes: tuple, threads: int) -> Callable:
    """The work for a number of threads, sizes unknown, into one result that is used again."""
    with xp.set_options(threads=threads):
        symbols = [xp.symbol(f"x{k}", shape=(None,) * len(s)) for k, s in enumerate(shapes)]
        return xp.function(symbols, f(*symbols), backend="c")


def best(calls: dict[int, Callable]) -> dict[int, float]:
    """The shortest wall time of each, in rounds that run all in turn."""
    times = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for key, call in calls.items():
            start = time.perf_counter()
            call()
            times[key] = min(times[key], time.perf_counter() - start)
    return times


def main(words: list[str]) -> None:
    """Print a line for each kind of work."""
    threads = int(words[0]) if words else 2
    rng = np.random.default_rng(0)
    for name, (f, shapes) in WORK.items():
        arrays = [rng.normal(size=s) for s in shapes]
        calls = {}
        for count in (1, threads):
            call = compiled(f, shapes, count)
            out = np.array(call(*arrays))
            calls[count] = functools.partial(call, *arrays, out=out)
        times = best(calls)
        gain = times[1] / times[threads]
        says = "ok" if gain >= BAR else "under the bar"
        print(f"{name:15s} {times[1] * 1e3:7.2f} ms on one, {gain:.2f} x on {threads}: {says}")


if __name__ == "__main__":
    main(sys.argv[1:])
