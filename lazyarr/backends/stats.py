"""Counters of what the driver did, for users and tests: `lazyarr.stats()`."""

import os
import sys
import threading
from collections import Counter

_counts: "Counter[str]" = Counter()
_lock = threading.Lock()


def count(name: str, n: int = 1) -> None:
    """Add to a counter."""
    with _lock:
        _counts[name] += n


def count_hit() -> None:
    """Count a structure that was known."""
    with _lock:
        _counts["keys"] += 1
        _counts["hits"] += 1


def stats() -> dict[str, int]:
    """Return the counters: keys, hits, misses, interpretations, compiles (in all, by backend).

    `loads` are programs that were found on disk, by this process or an earlier one.
    """
    names = ("keys", "hits", "misses", "interpretations", "compiles", "loads", "flushes")
    with _lock:
        return {**dict.fromkeys(names, 0), **_counts}


def reset() -> None:
    """Set all counters to 0."""
    with _lock:
        _counts.clear()


def log(message: str) -> None:
    """Write a line to standard error when LAZYARR_LOG is set (to anything but 0)."""
    if os.environ.get("LAZYARR_LOG", "0") not in ("", "0"):
        print(f"lazyarr: {message}", file=sys.stderr)
