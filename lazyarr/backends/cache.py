"""The disk cache of built programs: a private folder of entries named by what they were made from.

An entry is a folder `<root>/v1/<key>/` with the built files and a `manifest` of their checksums. It
is made under a temporary name and renamed, so a reader sees all of it or nothing, and a process
killed half-way leaves only rubbish that `prune` removes. Nothing is ever written in place. An
entry whose checksums do not fit is made again.

    cache = open_cache()
    entry = cache.build(cache_key("c", source, *flags), make)   # make(folder) writes the files

Safe from many threads and many processes. Knows nothing of C: any backend may keep files here.
"""

import atexit
import contextlib
import errno
import functools
import hashlib
import os
import platform
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lazyarr.config import options
from lazyarr.errors import BackendError

LAYOUT = "v1"
"""Name of the subfolder that holds the entries; a new layout gets a new name."""

DEFAULT_LIMIT = 1 << 30
_MANIFEST = "manifest"
_UNFINISHED = ".new-"
_KEPT = "kept"
_PRUNED = ".pruned"
_HOUR = 3600.0
_FULL = {errno.ENOSPC, errno.EDQUOT}
_CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}


@dataclass(frozen=True)
class Entry:
    """One built program on disk: its key, folder, size in bytes and time of last use."""

    key: str
    path: Path
    size: int
    used: float


def cache_key(*parts: object) -> str:
    """Return the name of an entry made from `parts` on this machine (40 hex digits).

    The machine (CPU features, libc) always takes part. The version of lazyarr does not: what it
    changes shows in the source, which belongs among the parts.
    """
    digest = hashlib.sha256()
    for part in (LAYOUT, machine(), *parts):
        text = str(part).encode("utf-8", "surrogateescape")
        digest.update(b"%d:" % len(text))
        digest.update(text)
    return digest.hexdigest()[:40]


@functools.cache
def machine() -> str:
    """Return what native code depends on: architecture, CPU model and features, libc."""
    libc = ""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    return "|".join((platform.system(), platform.machine(), _cpu(), libc or platform.release()))


def _cpu() -> str:
    """Return the model and feature lines of the first CPU, or what platform knows."""
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    lines = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", errors="replace") as info:
        for line in info:
            name, _, value = line.partition(":")
            if not name.strip() and lines:
                break
            if name.strip() in wanted:
                lines[name.strip()] = value.strip()
    return repr(sorted(lines.items())) if lines else platform.processor()


def default_folder() -> Path:
    """Return the folder of the option cache_dir, else the user's cache folder (need not exist)."""
    if options.cache_dir:
        return Path(options.cache_dir).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "lazyarr"
    home = os.path.expanduser("~")
    if not os.path.isabs(home):  # no home at all: a path that cannot be made, so a private one
        return Path(os.devnull) / "lazyarr"
    return Path(home) / ".cache" / "lazyarr"


def default_limit() -> int:
    """Return the size limit in bytes: LAZYARR_CACHE_SIZE (`500M`, `2G`, a number), else 1 GiB."""
    text = os.environ.get("LAZYARR_CACHE_SIZE", "").strip()
    if not text:
        return DEFAULT_LIMIT
    number = text.upper().removesuffix("IB").removesuffix("B")
    scale = {"K": 10, "M": 20, "G": 30, "T": 40}.get(number[-1:], 0)
    try:
        return int(float(number[:-1] if scale else number) * (1 << scale))
    except (ValueError, OverflowError):
        raise BackendError(
            f"LAZYARR_CACHE_SIZE={text!r} is not a size; write bytes, or for example 500M or 2G"
        ) from None


_OPEN: dict[tuple[str, int], "Cache"] = {}
_OPEN_LOCK = threading.Lock()


def open_cache(folder: str | os.PathLike[str] | None = None) -> "Cache":
    """Return the process's cache for `folder` (by default `default_folder()`)."""
    path = Path(folder).absolute() if folder is not None else default_folder()
    key = (str(path), default_limit())
    with _OPEN_LOCK:
        if key not in _OPEN:
            _OPEN[key] = Cache(path, key[1])
        return _OPEN[key]


class Cache:
    """Entries under one folder, and under a private temporary one where that cannot be written."""

    def __init__(self, folder: str | os.PathLike[str], limit: int = DEFAULT_LIMIT):
        self.folder = Path(folder)
        self.limit = limit
        self._stored = 0
        self._lock = threading.Lock()
        self._building: dict[str, threading.Lock] = {}
        self._roots: list[Path] = []
        try:
            self._roots.append(_private_root(self.folder))
        except OSError as error:
            self._retreat(error)

    @property
    def root(self) -> Path:
        """The folder new entries go to."""
        return self._roots[-1]

    def get(self, key: str) -> Path | None:
        """Return the folder of an entry and mark it as used; None for a missing or damaged one.

        A damaged entry stays until `build` replaces it: another process may be doing so right now.
        """
        for root in self._roots:
            path = root / key
            if _is_sound(path):
                with contextlib.suppress(OSError):
                    os.utime(path)
                return path
        return None

    def build(self, key: str, make: Callable[[Path], None]) -> Path:
        """Return the entry's folder, calling `make(folder)` to write its files where it is missing.

        One thread of a process builds an entry, the others wait; two processes may both build it,
        and the first to finish wins.
        """
        if found := self.get(key):
            return found
        with self._lock:
            turn = self._building.setdefault(key, threading.Lock())
        try:
            with turn:
                return self.get(key) or self._make(key, make)
        finally:
            with self._lock:
                self._building.pop(key, None)

    def discard(self, key: str) -> None:
        """Remove an entry (nothing happens when there is none)."""
        for root in self._roots:
            _remove(root / key)

    def keep(self, name: str, text: str) -> Path | None:
        """Write `text` where a person can look at it later (a source that failed to compile).

        Returns its path, or None where nothing can be written.
        """
        data = text.encode("utf-8", "replace")
        for folder in (lambda: self.folder / LAYOUT / _KEPT, _scratch):
            with contextlib.suppress(OSError):
                path = folder() / name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.write_bytes(data)
                return path
        return None

    def entries(self) -> list[Entry]:
        """Return the entries, the least recently used first."""
        found = [entry for root in self._roots for entry in _entries(root)]
        return sorted(found, key=lambda entry: entry.used)

    def clear(self) -> int:
        """Remove every entry and leftover; return the number of entries removed."""
        count = 0
        for root in self._roots:
            count += sum(1 for _ in _entries(root))
            for path in _listing(root):
                _remove(path)
        return count

    def prune(self) -> None:
        """Remove old leftovers, then the least recently used entries beyond the size limit."""
        self._stored = 0
        for path in (*self.root.glob(_UNFINISHED + "*"), *self.root.glob(_KEPT + "/*")):
            if _age(path) > (_HOUR if path.name.startswith(_UNFINISHED) else 24 * _HOUR):
                _remove(path)
        with contextlib.suppress(OSError):
            (self.root / _PRUNED).touch()
        entries = self.entries()
        excess = sum(entry.size for entry in entries) - self.limit
        # the newest stays, however large: it is about to be used
        for entry in entries[:-1]:
            if excess <= 0:
                break
            _remove(entry.path)
            excess -= entry.size

    def _make(self, key: str, make: Callable[[Path], None]) -> Path:
        """Make an entry under a temporary name and publish it by a rename.

        Once more where the folder was removed, or closed to us, meanwhile.
        """
        for last in (False, True):
            temporary = self._temporary()
            try:
                make(temporary)
                size = _seal(temporary)
                path = _publish(temporary, self.root / key)
                break
            except (OSError, BackendError) as error:
                if getattr(error, "errno", None) in _FULL:
                    raise self._disk_full(error) from error
                if last or (temporary.exists() and getattr(error, "errno", None) not in _CLOSED):
                    raise
                if temporary.exists():
                    self._retreat(error)
            finally:
                _remove(temporary)
        self._account(size)
        return path

    def _temporary(self) -> Path:
        """Return a new folder for an unfinished entry, in the private place if need be."""
        try:
            if not self.root.exists():  # somebody removed the whole folder meanwhile
                _private_root(self.root.parent)
            return Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.root))
        except OSError as error:
            if error.errno in _FULL:
                raise self._disk_full(error) from error
            self._retreat(error)
            return Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.root))

    def _account(self, size: int) -> None:
        """Prune when this process wrote a good part of the limit, or nobody did for an hour."""
        self._stored += size
        if self._stored > self.limit // 16 or _age(self.root / _PRUNED) > _HOUR:
            self.prune()

    def _disk_full(self, error: OSError) -> BackendError:
        return BackendError(
            f"the disk of the cache folder {self.root} is full ({error.strerror}); free some "
            "space, run `python -m lazyarr cache clear`, or set LAZYARR_CACHE_DIR to another disk"
        )

    def _retreat(self, error: OSError) -> None:
        """Send new entries to the process's temporary folder; say so once."""
        self._roots.append(_private_root(_PRIVATE.folder()))
        _PRIVATE.warn(self.folder, error)


class _Private:
    """The process's temporary folder: made when first needed, removed at exit."""

    def __init__(self) -> None:
        self.root: Path | None = None
        self._warned = False
        self._lock = threading.Lock()

    def folder(self) -> Path:
        with self._lock:
            if self.root is None:
                self.root = Path(tempfile.mkdtemp(prefix="lazyarr-"))  # mkdtemp makes it 0700
                atexit.register(self._remove, os.getpid())
            return self.root

    def _remove(self, process: int) -> None:
        if os.getpid() == process:  # a forked child leaves it to its parent
            shutil.rmtree(self.root, ignore_errors=True)

    def warn(self, folder: Path, error: OSError) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            warnings.warn(
                f"lazyarr cannot use the cache folder {folder} ({error.strerror or error}); "
                "compiled programs of this process go to a temporary folder and are lost at exit. "
                "Set LAZYARR_CACHE_DIR to a folder of your own",
                RuntimeWarning,
                stacklevel=2,
            )


_PRIVATE = _Private()


def _private_root(folder: Path) -> Path:
    """Make (where missing) and check `folder`/v1: ours, closed to others. OSError otherwise."""
    root = folder / LAYOUT
    for path in (folder, root):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700, parents=True)
        if not hasattr(os, "getuid"):
            continue
        owner = path.stat().st_uid
        if owner not in (os.getuid(), 0):
            raise PermissionError(errno.EPERM, f"it belongs to user {owner}", str(path))
    if hasattr(os, "getuid") and root.stat().st_uid == os.getuid() and root.stat().st_mode & 0o077:
        root.chmod(0o700)
    return root


def _scratch() -> Path:
    """Return a new temporary folder that stays after this process."""
    return Path(tempfile.mkdtemp(prefix="lazyarr-kept-"))


def _seal(folder: Path) -> int:
    """Write the manifest of a finished entry; return the entry's size."""
    lines, size = [], 0
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        size += len(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()} {path.name}\n")
    (folder / _MANIFEST).write_text("".join(lines), encoding="utf-8")
    return size


def _is_sound(folder: Path) -> bool:
    """Do all files of the manifest exist with the checksums they were made with?"""
    try:
        lines = (folder / _MANIFEST).read_text(encoding="utf-8").splitlines()
        for line in lines:
            digest, _, name = line.partition(" ")
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
                return False
    except (OSError, UnicodeError):
        return False
    return bool(lines)


def _publish(temporary: Path, path: Path) -> Path:
    """Rename a finished entry to its name, unless another process was first."""
    for _ in range(3):
        try:
            os.rename(temporary, path)
            return path
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
            if _is_sound(path):
                return path
            _remove(path)
    raise BackendError(f"cannot replace the damaged cache entry {path}; remove it by hand")


def _remove(path: Path) -> None:
    """Remove an entry or file. It leaves its name first, so that no reader sees half of it."""
    doomed = path
    if path.is_dir() and not path.name.startswith(_UNFINISHED):
        doomed = path.with_name(f"{_UNFINISHED}gone-{os.getpid()}-{threading.get_ident()}")
        with contextlib.suppress(OSError):
            shutil.rmtree(doomed)
        try:
            os.rename(path, doomed)
        except OSError:
            return
    if doomed.is_dir():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            doomed.unlink()


def _listing(root: Path) -> list[Path]:
    try:
        return list(root.iterdir())
    except OSError:
        return []


def _entries(root: Path) -> Iterator[Entry]:
    """Yield the finished entries under `root`; one that vanishes meanwhile is left out."""
    for path in _listing(root):
        if path.name.startswith(".") or not (path / _MANIFEST).exists():
            continue
        with contextlib.suppress(OSError):
            size = sum(file.stat().st_size for file in path.iterdir())
            yield Entry(path.name, path, size, path.stat().st_mtime)


def _age(path: Path) -> float:
    """Return the seconds since `path` was written; endless for a missing one."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
