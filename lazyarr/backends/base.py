"""What a backend is, and the table of those that exist.

A backend gets a positional graph of which it supports every node, and returns an `Executable`. It
lists only its differences; what it does not support the driver runs by the reference, between
compiled steps.
"""

import gc
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import numpy as np

from lazyarr.config import know_backends
from lazyarr.errors import BackendError, near_match
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph


@runtime_checkable
class Executable(Protocol):
    """A compiled graph."""

    source: str

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return fresh outputs and a code, 0 when every check held."""

    def explain(self) -> str:
        """Say what was generated, in words."""


@runtime_checkable
class Backend(Protocol):
    """A way to run graphs."""

    name: str

    def supports(self, node: Variable) -> bool:
        """Tell whether a node can be compiled; others are run by their reference."""

    def compile(self, graph: Graph) -> Executable:
        """Compile a graph of supported nodes."""


# name -> (module, class, package it needs, pip extra)
_BUILT_IN = {
    "c": ("lazyarr.backends.c.backend", "CBackend", None, "cc"),
    "numba": ("lazyarr.backends.numba.backend", "NumbaBackend", "numba", "numba"),
    "jax": ("lazyarr.backends.jax.backend", "JaxBackend", "jax", "jax"),
    "numpy": ("lazyarr.backends.numpy.backend", "NumpyBackend", None, None),
    "torch": ("lazyarr.backends.torch.backend", "TorchBackend", "torch", "torch"),
}
ENTRY_POINTS = "lazyarr.backends"  # in which packages name what makes a backend of theirs
_registered: dict[str, Callable[[], Backend]] = {}
_instances: dict[str, Backend] = {}


def register_backend(name: str, make: Callable[[], Backend]) -> None:
    """Add a backend from outside; `make` is called when it is first used."""
    _registered[name] = make
    _instances.pop(name, None)


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends, installed or not."""
    return ("interpret", *_BUILT_IN, *_registered)


know_backends(lambda: tuple(_registered))


def get_backend(name: str) -> Backend:
    """Return a backend by name, or raise BackendError that says how to install it."""
    found = _instances.get(name)
    if found is None:
        found = _instances[name] = _make(name)
    return found


def _make(name: str) -> Backend:
    if name in _registered:
        return _registered[name]()
    if name not in _BUILT_IN:
        for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
            return entry.load()()
        known = backend_names()
        raise BackendError(
            f"there is no backend {name!r}.{near_match(name, known)} Known: {', '.join(known)}."
        )
    module, cls, package, extra = _BUILT_IN[name]
    if package is not None and importlib.util.find_spec(package) is None:
        raise BackendError(
            f"backend {name!r} needs the package {package}; install it with "
            f"`pip install lazyarr[{extra}]`."
        )
    return getattr(importlib.import_module(module), cls)()


@contextmanager
def collector_off() -> Iterator[None]:
    """Leave cycles of garbage alone in a block that makes many objects and keeps them.

    The collector would walk all of them again and again: a third of the time of a large graph.

    >>> with collector_off():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
