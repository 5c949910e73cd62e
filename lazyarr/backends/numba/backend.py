"""The Numba backend: the loop family's plan as a Python module, compiled by Numba.

Modules are real files in the disk cache, so that Numba keeps its machine code beside them and a
known program of an earlier process loads without compiling.
"""

import importlib.metadata
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np

from lazyarr.backends.cache import cache_key, open_cache
from lazyarr.backends.loop.externals import NEEDED, REAL, externals_of
from lazyarr.backends.loop.lapack import address
from lazyarr.backends.loop.native import Callback
from lazyarr.backends.loop.plan import Plan, plan
from lazyarr.backends.loop.support import supports
from lazyarr.backends.numba import complexfns
from lazyarr.backends.numba.foreign import function_of
from lazyarr.backends.numba.launch import launcher
from lazyarr.backends.numba.mathfns import FUNCTIONS
from lazyarr.backends.numba.print import PythonSource, to_python
from lazyarr.config import options
from lazyarr.errors import BackendError
from lazyarr.graph import shapes
from lazyarr.graph.dtypes import own
from lazyarr.graph.node import Variable
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

_FILE = "program.py"
SEGMENT = 60  # scalar operations in one function: time to compile grows faster than its length


class NumbaBackend:
    """Compiles graphs with Numba."""

    name = "numba"

    def supports(self, node: Variable) -> bool:
        """Tell whether a node can be part of a compiled program."""
        return supports(node, has_routine, complexfns.PRIMS)

    def compile(self, graph: Graph) -> "NumbaExecutable":
        """Return the program of a graph, compiled or found in Numba's cache."""
        planned = plan(
            graph,
            precise=options.precise,
            by_length=False,  # LLVM does worse with two
            segment=SEGMENT,
        )
        source = to_python(planned, precise=options.precise)
        canon = planned.program.sizes.canon
        shapes = [(tuple(map(canon, t.shape)), t.dtype) for t in planned.outputs]
        dtypes = tuple(t.dtype for t in planned.inputs)
        places = [_place(atom, planned.inputs) for atom in planned.atoms]
        given = [tuple(map(canon, t.shape)) for t in planned.inputs]
        atoms, externals = planned.atoms, planned.externals
        made = Compiled(source, dtypes, given, shapes, atoms, places, externals)
        return NumbaExecutable(made, planned)

    def depends_on(self) -> tuple:
        """Return what the code of a program depends on beside the program."""
        parts = importlib.metadata.version("numba"), options.precise
        return (*parts, [address(name) is not None for name in ("dgemm", "z@fft")])


@dataclass(frozen=True)
class Compiled:
    """What must be known of a program to load and call it."""

    source: PythonSource
    dtypes: tuple[np.dtype, ...]  # of the inputs
    given: list[tuple]  # shapes of the inputs
    shapes: list[tuple]  # and dtypes of the outputs
    atoms: tuple[Atom, ...]
    places: list[tuple[int, int]]  # where inputs tell the atoms
    externals: tuple[str, ...]  # functions whose addresses follow the sizes
    report: str = ""


def has_routine(routine: str, dtype: np.dtype) -> bool:
    """Tell whether programs can call a library routine on arrays of a dtype."""
    if routine not in FUNCTIONS or (dtype.kind == "c" and routine in REAL):
        return False
    names = externals_of(routine, dtype) if routine in NEEDED else ()
    return all(address(name) for name in names if not name.endswith(".data"))


class NumbaExecutable:
    """A program: arrays in, fresh arrays and a code out; inputs are never written or returned."""

    def __init__(self, made: Compiled, plan: Plan | None = None):
        self.made, self.plan, self.source = made, plan, made.source.text
        self.entry = load(made.source)
        self.dtypes, self.places = tuple(map(own, made.dtypes)), made.places
        self.shapes = [(shape, own(dtype)) for shape, dtype in made.shapes]
        self.dim = np.array([address(name) or 0 for name in made.externals], np.int64)

    def __reduce__(self) -> tuple:
        """Pickle the text: loading compiles it, or finds it in the cache."""
        return NumbaExecutable, (replace(self.made, report=self.explain()),)

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return the outputs and 0, or the code of the check that failed."""
        values = [
            np.asarray(a, dtype, order="C") for a, dtype in zip(arrays, self.dtypes, strict=True)
        ]
        dim, env = self.dim, {}
        if self.places:
            sizes = [values[k].shape[d] for k, d in self.places]
            dim = np.array([*sizes, *self.dim], np.int64)
            env = dict(zip(self.made.atoms, sizes, strict=True))
        outputs = [
            np.empty([shapes.evaluate(s, env) for s in shape], dtype)
            for shape, dtype in self.shapes
        ]
        flat = [v.reshape(-1) for v in values]
        code = self.entry(dim, *flat, *[v.reshape(-1) for v in outputs])
        return outputs, code

    def launcher(
        self,
        on_code: Callable[[int, tuple], object],
        *,
        equal: Iterable[tuple] = (),
        nonzero: Iterable[Size] = (),
        on_mismatch: Callable[..., object],
        returns: str,
        bound: Sequence[np.ndarray | None] = (),
        **options: object,
    ) -> Callable[..., object] | None:
        """Return a callable of positional arrays, None for a program of unknown sizes."""
        sizes = [s for shape in self.made.given for s in shape]
        if self.places or equal or nonzero or not all(isinstance(s, int) for s in sizes):
            return None
        inputs = list(zip(self.made.given, self.dtypes, strict=True))
        return launcher(
            self.entry, self.dim, inputs, self.shapes, bound,
            on_code=on_code, on_mismatch=on_mismatch, returns=returns,
        )  # fmt: skip

    @property
    def callbacks(self) -> list[str]:
        """What is called in Python by a loop of the program."""
        return [n.name for n in self.made.source.natives if isinstance(n.code, Callback)]

    def explain(self) -> str:
        """Return kernels, loops, fused nodes and buffers as text."""
        return self.made.report if self.plan is None else self.plan.explain()


def _place(atom: Atom, inputs: Sequence[TensorType]) -> tuple[int, int]:
    """Return the input and axis that tell the value of an unknown size."""
    for k, t in enumerate(inputs):
        for d, size in enumerate(t.shape):
            if shapes.lone_atom(size) is atom:
                return k, d
    raise BackendError(f"no input has the size {atom.name}.")


def load(source: PythonSource) -> Callable[..., int]:
    """Return the entry of a program from its file in the cache."""
    if source.natives:  # what they do is not in the text: nothing is kept on disk
        scope = {f"native{i}": function_of(n) for i, n in enumerate(source.natives)}
        exec(compile(source.text.replace("cache=True", "cache=False"), _FILE, "exec"), scope)
        return scope[source.entry]
    key = cache_key("numba", source.text)
    name = f"lazyarr_numba_{key}"
    with _LOCK:  # Numba compiles one program at a time anyway
        if name not in _LOADED:
            folder = open_cache().build(key, lambda path: _write(path, source.text))
            spec = importlib.util.spec_from_file_location(name, folder / _FILE)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module  # Numba looks it up while the module runs
            spec.loader.exec_module(module)
            _LOADED[name] = module
        return getattr(_LOADED[name], source.entry)


_LOADED: dict[str, ModuleType] = {}  # modules that have run to their end
_LOCK = threading.Lock()


def _write(folder: Path, text: str) -> None:
    (folder / _FILE).write_text(text, encoding="utf-8")
