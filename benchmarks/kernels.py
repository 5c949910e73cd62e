"""The hand-written C kernels, compiled and bound to data through ctypes.

>>> value_and_grad = bind("radon", data)        # data: the entries of tests/data/models
>>> value, gradient = value_and_grad(x)         # gradient: one buffer, reused by each call
"""

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("kernels.c")
FLAGS = ["-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"]

Call = Callable[[np.ndarray], tuple[float, np.ndarray]]


def compiler() -> str:
    """$CC, or the first C compiler on the path."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    raise RuntimeError("no C compiler found: set CC, or install gcc or clang")


@functools.cache
def build(source: Path, *flags: str) -> ctypes.CDLL:
    """A file as a shared library, with vector math where the compiler and libc have it."""
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "kernels.so")
        base = [compiler(), *FLAGS, *flags, "-fPIC", "-shared", str(source), "-o", target]
        vector = subprocess.run([*base, "-DVECTOR_MATH", "-lmvec", "-lm"], capture_output=True)
        if vector.returncode:
            subprocess.run([*base, "-lm"], check=True)
        return ctypes.CDLL(target)


def library() -> ctypes.CDLL:
    """kernels.c as a shared library."""
    return build(SOURCE)


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """The address of an array's data, ready to pass."""
    return ctypes.c_void_p(array.ctypes.data)


def bind(model: str, data: Mapping[str, Any]) -> Call:
    """Value and gradient of a model, its data bound once and its gradient buffer reused."""
    function = getattr(library(), model)
    function.restype = ctypes.c_double
    if model == "radon":
        counties = int(data["J"])
        kept = [np.array(data[name], np.float64) for name in ("log_radon", "floor")]
        kept.append(np.array(data["county"], np.int64))
        before = (ctypes.c_long(kept[0].size), ctypes.c_long(counties))
        gradient = np.zeros(2 * counties + 5)
    else:
        kept = [np.array(data[name], np.float64) for name in ("y", "sigma")]
        before = ()
        gradient = np.zeros(10)
    after = (*(pointer(array) for array in kept), pointer(gradient))
    last: list[Any] = [None, None]

    def call(x: np.ndarray) -> tuple[float, np.ndarray]:
        if last[0] is not x:
            last[:] = [x, pointer(x)]
        return function(*before, last[1], *after), gradient

    call.__dict__["kept"] = kept
    return call
