"""Running checks in this process, each within a time limit."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from conformance.libraries import Library
from conformance.own.check import Check, Options, OutOfTime, Result, perform


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the block after so many seconds; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(
    library: Library,
    checks: Iterable[Check],
    options: Options = Options(),  # noqa: B008 - frozen
    started: Callable[[Check], None] = lambda check: None,
) -> Iterator[Result]:
    """Ask every check, and yield how each ended."""
    for check in checks:
        started(check)
        try:
            with limit(options.seconds):
                result = perform(check, library, options)
        except OutOfTime:  # the alarm rang between the check and the end of the block
            result = Result(check.id, "timeout", f"more than {options.seconds:g} s")
        yield result
