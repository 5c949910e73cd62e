"""The extension module that records operations and walks expressions.

It is built once and kept in the cache, as the launcher is, and does what the Python code of
`graph/node.py`, `namespace/array.py`, `backends/structure.py` and `backends/implicit.py` does, ten
times as fast. Where it cannot be built, or with LAZYARR_RECORDER=python, that code does the work.
"""

import os
import threading
from types import ModuleType

from lazyarr.backends.c.launcher import build_module
from lazyarr.errors import BackendError

SOURCES = ("recorder.c", "walker.c", "recorder_module.c")
"""The files that make up the extension module, one after the other."""

_NAME = "lazyarr_recorder"
_MODULE: list[ModuleType | None] = []
_LOCK = threading.Lock()


def module() -> ModuleType | None:
    """Return the extension module, or None where there is none."""
    if not _MODULE:
        with _LOCK:
            if not _MODULE:
                _MODULE.append(_load())
    return _MODULE[0]


def _load() -> ModuleType | None:
    if os.environ.get("LAZYARR_RECORDER") == "python":
        return None
    try:
        return build_module(_NAME, SOURCES)
    except (BackendError, ImportError, OSError):
        return None
