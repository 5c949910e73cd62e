"""When a structure is compiled: what is known on disk, what waits in the background.

`set_options(background=True)` leaves compiling to one thread; what it has not finished yet is
interpreted. A structure that an earlier process compiled is loaded when it is first seen.
"""

import queue
import threading
from collections.abc import Callable

from lazyarr.backends import stats, store
from lazyarr.backends.base import get_backend
from lazyarr.backends.structure import Expression, baked
from lazyarr.config import Options, get_options, in_force
from lazyarr.graph.node import Call, Variable


class Worker:
    """One thread that runs jobs in turn; it ends with the process, whatever it does."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._left = 0
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], object]) -> None:
        """Run a job later, under the options that are in force now."""
        with self._lock:
            self._left += 1
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = threading.Thread(
                    target=self._run, name="lazyarr compiles", daemon=True
                )
                self._thread.start()
        self._jobs.put((job, get_options()))

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is left to do; tell whether that is so."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._left, seconds)

    def _run(self) -> None:
        while True:
            job, found = self._jobs.get()
            self._one(job, found)
            del job
            with self._idle:
                self._left -= 1
                self._idle.notify_all()

    def _one(self, job: Callable[[], object], found: Options) -> None:
        try:
            with in_force(found):
                job()
        except Exception as error:  # what cannot be compiled stays interpreted
            stats.count("background errors")
            stats.log(f"compiling in the background failed: {error!r}")


WORKER = Worker()


def wait_for_compiles(seconds: float | None = None) -> bool:
    """Wait until everything that compiles in the background is done; tell whether it is.

    >>> wait_for_compiles(60)
    True
    """
    return WORKER.wait(seconds)


def disk_name(expression: Expression, backend: str) -> str | None:
    """Return the name under which it is noted on disk that a structure was compiled."""
    place: dict[Variable, int] = {}
    rows: list = ["expression", expression.exact]
    for v in expression.order:
        place[v] = len(place)
        expr = expression.exprs.get(v)
        if expr is None:
            rows.append(v.type if expression.exact else v.type.structure)
            continue
        operands = [
            place[x] if x.__class__ is Variable else _number(expr[0], x, expression.exact)
            for x in expr[1:]
        ]
        called = (expr[0], v.type) if expression.exact else (expr[0].structure, v.type.ones)
        rows.append((*called, *operands))
    rows.append(tuple([place[v] for v in expression.nodes]))
    return store.name_of(get_backend(backend), tuple(rows))


def _number(call: Call, x: object, exact: bool) -> tuple:
    """Return what a key tells of a number beside arrays."""
    return x.__class__, x if exact or baked(call, x) else None
