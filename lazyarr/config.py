"""Options, set for good or within a `with` block, and their LAZYARR_* environment variables.

>>> with set_options(backend="interpret"):
...     options.backend
'interpret'
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from lazyarr.errors import ArgumentError, near_match

BACKENDS = ("auto", "interpret", "c", "numba", "jax", "torch", "numpy")
TIERS = ("auto", "interpret", "compile")
JOINS = ("exact", "inner", "outer", "left", "right", "override")


@dataclass(frozen=True)
class Options:
    """The values of all options; each has a default and may come from the environment."""

    backend: str = "auto"
    tier: str = "auto"
    cache_dir: str | None = None
    checks: bool = True
    skipna: bool | None = None
    arithmetic_join: str = "exact"
    keep_attrs: bool = True
    precise: bool = False
    threads: int = 1
    background: bool = False
    jax_cache: bool = False


_CHOICES = {"tier": TIERS, "arithmetic_join": JOINS}


def _from_environment() -> Options:
    """Read LAZYARR_BACKEND, LAZYARR_TIER, ... ; booleans are 0 or 1."""
    found: dict[str, object] = {}
    for f in fields(Options):
        text = os.environ.get(f"LAZYARR_{f.name.upper()}")
        if text is not None:
            if f.name == "threads":
                found[f.name] = int(text) if text.isdigit() and int(text) else 1
                continue
            found[f.name] = text not in ("0", "false", "") if "bool" in str(f.type) else text
    return Options(**found)  # type: ignore[arg-type]


class _State(threading.local):
    """The options of a thread: its own blocks on top of what is set for all."""

    def __init__(self) -> None:
        self.stack: list[Options] = []


_default = _from_environment()
_state = _State()
_known_backends: list[Callable[[], tuple]] = []


def know_backends(names: Callable[[], tuple]) -> None:
    """Let the registry of backends say which names are valid beside the built-in ones."""
    _known_backends[:] = [names]


def get_options() -> Options:
    """Return the options in force in this thread."""
    return _state.stack[-1] if _state.stack else _default


@contextmanager
def in_force(found: Options) -> Iterator[None]:
    """Put options in force in this thread for a block, as another thread had them."""
    _state.stack.append(found)
    try:
        yield
    finally:
        _state.stack.pop()


class _Current:
    """Reads an option by attribute: `options.backend`."""

    __slots__ = ()

    def __getattr__(self, name: str):
        return getattr(get_options(), name)


options = _Current()


def _check(name: str, value: object) -> None:
    names = [f.name for f in fields(Options)]
    if name not in names:
        raise ArgumentError(f"there is no option {name!r}.{near_match(name, names)}")
    choices = _CHOICES.get(name)
    if name == "backend":
        choices = BACKENDS + (_known_backends[0]() if _known_backends else ())
    if name == "threads" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ArgumentError(f"option threads is a number of threads, 1 or more; got {value!r}.")
    if choices and value not in choices:
        raise ArgumentError(f"option {name} is one of {', '.join(choices)}; got {value!r}.")


class set_options:  # noqa: N801 - used as a function and as a context manager, as in xarray
    """Set options, for good or, in a `with` statement, until its end.

    backend: "auto", "interpret", "c", "numba", "jax", "torch"; tier: "auto", "interpret",
    "compile"; cache_dir: a folder; threads: how many may share large loops of what C compiles from
    then on; background: True compiles in a thread and interprets meanwhile (implicit use);
    jax_cache: True keeps what XLA compiles in the cache folder, for all JAX programs of the
    process; skipna: None as xarray, False propagates NaN; arithmetic_join: "exact", ...

    Raises ArgumentError for an unknown option or value.
    """

    def __init__(self, **changes: object):
        global _default
        for name, value in changes.items():
            _check(name, value)
        self.before = (_default, list(_state.stack))
        if _state.stack:
            _state.stack[-1] = replace(_state.stack[-1], **changes)  # type: ignore[arg-type]
        else:
            _default = replace(_default, **changes)  # type: ignore[arg-type]
        self.after = get_options()

    def __enter__(self) -> "set_options":
        global _default
        _default, _state.stack = self.before[0], [*self.before[1], self.after]
        return self

    def __exit__(self, *error: object) -> None:
        _state.stack.pop()
