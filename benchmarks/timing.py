"""Interleaved timing in process CPU time: each round runs every contestant once.

Absolute figures move from machine to machine and from minute to minute; a ratio of medians of
interleaved rounds inside one process does not. The process is kept on one CPU.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping

Thunk = Callable[[], object]
SLICE = 2e-3  # seconds of work per contestant and round


def one_thread() -> None:
    """One CPU for this process, and for every library loaded after this call."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def cpu(thunk: Thunk, calls: int) -> float:
    """CPU seconds per call over a number of calls."""
    start = time.process_time()
    for _ in range(calls):
        thunk()
    return (time.process_time() - start) / calls


def interleave(thunks: Mapping[str, Thunk], rounds: int = 60) -> dict[str, float]:
    """Median CPU seconds a call of each contestant."""
    calls = {name: max(1, int(SLICE / max(cpu(thunk, 3), 1e-8))) for name, thunk in thunks.items()}
    samples: dict[str, list[float]] = {name: [] for name in thunks}
    for _ in range(rounds):
        for name, thunk in thunks.items():
            samples[name].append(cpu(thunk, calls[name]))
    return {name: statistics.median(values) for name, values in samples.items()}


def verdict(figure: float, bar: float) -> str:
    """`ok` when a figure is at most its bar, or by how much it is over."""
    return "ok" if figure <= bar else f"over the bar by {figure / bar:.2f} x"
