"""Programs on disk: what lowering, passes and code generation made of a structure.

A new process that records a known structure goes from its digest straight to the machine code: no
pass runs, nothing is generated. An entry of the disk cache holds one pickle; it is named by the
digest, the backend and what its code depends on, the versions of Python and NumPy, and the files of
this package. An entry that is damaged, or that does not load, is made again.

Pickles are read from the cache folder only, which is private to its owner (see `cache.py`).
"""

import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from lazyarr.backends import stats
from lazyarr.backends.base import Backend
from lazyarr.backends.cache import cache_key, open_cache
from lazyarr.backends.digest import digest
from lazyarr.errors import BackendError
from lazyarr.passes import pipeline

_FILE = "program.pickle"
Kept = TypeVar("Kept")
_PASSES = pipeline.fingerprint()  # with the rules of the package alone


def name_of(backend: Backend, *parts: object) -> str | None:
    """Return the name under which a program is kept; None for one that cannot be.

    A backend says by `depends_on()` what its code depends on beside the program; one that does not
    say so keeps nothing. Nothing is kept while rules from outside take part.
    """
    depends_on = getattr(backend, "depends_on", None)
    if depends_on is None or pipeline.fingerprint() != _PASSES:
        return None
    found = digest(*parts)
    if found is None:
        return None
    versions = (sys.version_info[:3], np.__version__, package_stamp())
    return cache_key("program", found, backend.name, depends_on(), *versions)


def part_of(name: str, part: object) -> str:
    """Return the name of one part of what is kept under a name."""
    return hashlib.sha256(f"{name} {part!r}".encode()).hexdigest()[:40]


def find(name: str | None, kind: type[Kept]) -> Kept | None:
    """Return what was kept under a name, or None."""
    if name is None:
        return None
    try:
        folder = open_cache().get(name)
        if folder is None:
            return None
        found = pickle.loads((folder / _FILE).read_bytes())
        if not isinstance(found, kind):
            raise TypeError(f"a {type(found).__name__} where a {kind.__name__} was kept")
    except Exception as error:  # damaged or outdated, whatever the reason: it is made again
        stats.log(f"a kept program does not load and is made again: {error!r}")
        discard(name)
        return None
    stats.count("loads")
    return found


def known(name: str | None) -> bool:
    """Tell whether something is kept under a name."""
    return name is not None and open_cache().get(name) is not None


def keep(name: str | None, value: object) -> None:
    """Keep a value under a name; what cannot be pickled or written is not kept."""
    if name is None:
        return
    try:
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        open_cache().build(name, lambda folder: _write(folder, data))
    except Exception as error:  # keeping is a service: the program itself is there
        stats.log(f"a program cannot be kept: {error!r}")


def discard(name: str) -> None:
    """Forget what is kept under a name."""
    try:
        open_cache().discard(name)
    except (OSError, BackendError):
        pass


def _write(folder: Path, data: bytes) -> None:
    (folder / _FILE).write_bytes(data)


@functools.cache
def package_stamp() -> str:
    """Return what changes with any file of the package: names, sizes and times of change."""
    return repr(sorted(_files(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))


def _files(folder: str) -> Iterator[tuple]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".c")):
                facts = entry.stat()
                yield entry.path, facts.st_size, facts.st_mtime_ns
            elif entry.is_dir() and not entry.name.startswith(("_", ".")):
                yield from _files(entry.path)
