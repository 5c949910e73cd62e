"""The Numba backend: the loop family's plan as a Python module, compiled by Numba.

Modules are real files in the disk cache, so that Numba keeps its machine code beside them and a
known program of an earlier process loads without compiling.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from lazyarr.backends.cache import cache_key, open_cache
from lazyarr.backends.loop.plan import Plan, plan
from lazyarr.backends.loop.support import supports
from lazyarr.backends.numba.print import PythonSource, to_python
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph

_FILE = "program.py"


class NumbaBackend:
    """Compiles graphs with Numba."""

    name = "numba"

    def supports(self, node: Variable) -> bool:
        """Tell whether a node can be part of a compiled program."""
        return supports(node)

    def compile(self, graph: Graph) -> "NumbaExecutable":
        """Return the program of a graph; Numba compiles it when it is first called."""
        planned = plan(graph)
        source = to_python(planned)
        return NumbaExecutable(planned, source, load(source))


class NumbaExecutable:
    """A program: arrays in, fresh arrays and a code out; inputs are never written or returned."""

    def __init__(self, plan: Plan, source: PythonSource, entry: Callable[..., int]):
        self.plan, self.source, self.entry = plan, source.text, entry

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return the outputs and 0, or the code of the check that failed."""
        types = self.plan.inputs
        values = [np.asarray(a, t.dtype, order="C") for a, t in zip(arrays, types, strict=True)]
        env = shapes.bind((t.shape for t in types), (v.shape for v in values))
        dim = np.array([env[a] for a in self.plan.atoms], np.int64)
        sizes = zip(self.plan.output_shapes(env), self.plan.outputs, strict=True)
        outputs = [np.empty(shape, t.dtype) for shape, t in sizes]
        flat = [readable(v) for v in values]
        code = self.entry(dim, *flat, *(v.reshape(-1) for v in outputs))
        return outputs, int(code)

    def explain(self) -> str:
        """Return kernels, loops, fused nodes and buffers as text."""
        return self.plan.explain()


def readable(array: np.ndarray) -> np.ndarray:
    """Return a flat view that has one Numba type, whether or not the array may be written."""
    flat = array.reshape(-1)
    if flat.flags.writeable:
        flat = flat.view()
        flat.flags.writeable = False
    return flat


def load(source: PythonSource) -> Callable[..., int]:
    """Return the entry of a program from its file in the cache."""
    key = cache_key("numba", source.text)
    name = f"lazyarr_numba_{key}"
    module = sys.modules.get(name)
    if module is None:
        folder = open_cache().build(key, lambda path: _write(path, source.text))
        spec = importlib.util.spec_from_file_location(name, folder / _FILE)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return getattr(module, source.entry)


def _write(folder: Path, text: str) -> None:
    (folder / _FILE).write_text(text, encoding="utf-8")
