"""`python -m lazyarr` prints what was found; `... cache [clear]` lists or empties the cache."""

import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Sequence

import numpy as np

import lazyarr
from lazyarr.backends.cache import open_cache
from lazyarr.errors import BackendError

_MODULES = ("c", "numba", "jax", "torch")


def found() -> list[tuple[str, dict]]:
    """Return what each backend says of itself."""
    rows: list[tuple[str, dict]] = []
    for name in _MODULES:
        try:
            rows.append((name, described(name)))
        except (BackendError, ImportError) as error:
            rows.append((name, {"available": False, "reason": str(error)}))
    return rows


def described(name: str) -> dict:
    """Return the facts that a backend, or its module, gives; else the version of its package."""
    backend = lazyarr.get_backend(name)
    module = importlib.import_module(f"lazyarr.backends.{name}.backend")
    describe = getattr(backend, "describe", None) or getattr(module, "describe", None)
    return describe() if describe else {"version": importlib.metadata.version(name)}


def report() -> str:
    """Return versions, backends, compiler and cache folder as text."""
    lines = [
        f"lazyarr {lazyarr.__version__}, Array API {lazyarr.__array_api_version__}",
        f"python {platform.python_version()}, numpy {np.__version__}, {platform.platform()}",
        f"cache {open_cache().root}",
        "backend interpret: available",
    ]
    for name, facts in found():
        there = "available" if facts.get("available", True) else "not available"
        lines.append(f"backend {name}: {there}")
        lines += [f"    {k}: {v}" for k, v in facts.items() if k != "available"]
    return "\n".join(lines)


def cache(arguments: Sequence[str]) -> str:
    """List the entries of the cache, or clear it."""
    store = open_cache()
    if "clear" in arguments:
        return f"removed {store.clear()} entries from {store.root}"
    entries = store.entries()
    rows = [f"{e.key}  {e.size / 1024:8.1f} KiB" for e in entries]
    total = sum(e.size for e in entries) / 2**20
    return "\n".join([*rows, f"{len(entries)} entries, {total:.1f} MiB, in {store.root}"])


def main(arguments: Sequence[str]) -> int:
    """Run a command; without one, print the report."""
    if not arguments:
        print(report())
    elif arguments[0] == "cache":
        print(cache(arguments[1:]))
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
