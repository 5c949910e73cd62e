"""Addresses of BLAS and LAPACK functions, borrowed from SciPy, so that no program links either.

`scipy.linalg.cython_blas` and `cython_lapack` export the Fortran functions of the BLAS that SciPy
was built with, as capsules that Cython modules read; so do we. Integers are 32 bits, all arguments
are pointers, matrices are column-major. Without SciPy there are no addresses: programs then run
loops of their own.
"""

import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from lazyarr.backends.loop import transforms

MODULES = ("cython_blas", "cython_lapack")


def pointers(names: Iterable[str]) -> ctypes.Array:
    """Return a table of the functions' addresses, NULL for each that is not to be had.

    >>> pointers(["no_such_function"])[0] is None
    True
    """
    found = [address(name) for name in names]
    return (ctypes.c_void_p * max(len(found), 1))(*found)


@functools.cache
def address(name: str) -> int | None:
    """Return the address of a BLAS or LAPACK function such as `dpotrf`, or None.

    A name with `@` is a Fourier transform of NumPy.
    """
    if "@" in name:
        return transforms.address(name)
    for module in MODULES:
        capsule = _capsules(module).get(name)
        if capsule is not None:
            return _pointer(capsule, _capsule_name(capsule))
    return None


@functools.cache
def _capsules(module: str) -> dict[str, object]:
    """Return the functions that one of SciPy's modules exports; none without SciPy."""
    try:
        return getattr(_load(module), "__pyx_capi__", {})
    except ImportError:
        return {}


def _load(module: str) -> ModuleType:
    """Import `scipy.linalg.<module>`, without the rest of scipy.linalg where none is loaded.

    The two modules need nothing of their package, whose import takes ten times as long.
    """
    full = f"scipy.linalg.{module}"
    if "scipy.linalg" in sys.modules:
        return importlib.import_module(full)
    scipy = importlib.import_module("scipy")  # finds the libraries that come with it
    folders = [str(Path(folder) / "linalg") for folder in scipy.__path__]
    spec = importlib.machinery.PathFinder.find_spec(full, folders)
    if spec is None or spec.loader is None:
        return importlib.import_module(full)
    try:
        alone = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(alone)
        return alone
    except (ImportError, AttributeError):
        return importlib.import_module(full)
    finally:
        # a later import of scipy.linalg must find its own way, and set itself as the parent
        if "scipy.linalg" not in sys.modules:
            sys.modules.pop(full, None)


_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
