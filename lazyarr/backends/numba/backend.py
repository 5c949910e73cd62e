"""The Numba backend: the loop family's plan as a Python module, compiled by Numba.

Modules are real files in the disk cache, so that Numba keeps its machine code beside them and a
known program of an earlier process loads without compiling.
"""

import functools
import importlib.metadata
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from lazyarr.backends.base import get_backend
from lazyarr.backends.cache import cache_key, open_cache
from lazyarr.backends.loop.donate import reusable
from lazyarr.backends.loop.externals import NEEDED, REAL, externals_of
from lazyarr.backends.loop.interface import Interface, interface_of
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
    relayout = 1 << 30  # bytes of copies that are worth a program for their layout

    def supports(self, node: Variable) -> bool:
        """Tell whether a node can be part of a compiled program."""
        return supports(node, has_routine, complexfns.PRIMS)

    donates = True  # programs can write results over inputs that are given away

    def compile(self, graph: Graph, donated: Sequence[int] = ()) -> "NumbaExecutable":
        """Return the program of a graph, compiled or found in Numba's cache."""
        planned = plan(
            graph,
            precise=options.precise,
            by_length=False,  # LLVM does worse with two
            segment=SEGMENT,
        )
        planned.reuse = reusable(planned.functions, donated) if donated else {}
        source = to_python(planned, precise=options.precise)
        face = interface_of(planned, tuple(v.name or "" for v in graph.inputs))
        taken = {out.number: given.number for out, given in planned.reuse.items()}
        canon = planned.program.sizes.canon
        made = Compiled(
            source,
            face,
            given=[tuple(map(canon, t.shape)) for t in planned.inputs],
            shapes=[(tuple(map(canon, t.shape)), t.dtype) for t in planned.outputs],
            atoms=planned.atoms,
            places=[_place(atom, planned.inputs) for atom in planned.atoms],
            externals=planned.externals,
            reuse=tuple(taken.get(k, -1) for k in range(len(face.outputs))),
        )
        return NumbaExecutable(made, planned)

    def depends_on(self) -> tuple:
        """Return what the code of a program depends on beside the program."""
        parts = importlib.metadata.version("numba"), options.precise
        return (*parts, [address(name) is not None for name in ("dgemm", "z@fft")])


@dataclass(frozen=True)
class Compiled:
    """What must be known of a program to load and call it."""

    source: PythonSource
    interface: Interface
    given: list[tuple]  # shapes of the inputs
    shapes: list[tuple]  # and dtypes of the outputs
    atoms: tuple[Atom, ...]
    places: list[tuple[int, int]]  # where inputs tell the atoms
    externals: tuple[str, ...]  # functions whose addresses follow the sizes
    reuse: tuple[int, ...]  # for each output the donated input whose memory it may take, or -1
    report: str = ""


def has_routine(routine: str, dtype: np.dtype) -> bool:
    """Tell whether programs can call a library routine on arrays of a dtype."""
    if routine not in FUNCTIONS or (dtype.kind == "c" and routine in REAL):
        return False
    names = externals_of(routine, dtype) if routine in NEEDED else ()
    return all(address(name) for name in names if not name.endswith(".data"))


class NumbaExecutable:
    """A program: arrays in, fresh arrays and a code out; inputs are never written or returned.

    Where the launcher of the C backend can be built, it calls the program as a C function;
    otherwise Python calls it as a function of Numba. Only what is called is compiled.
    """

    def __init__(self, made: Compiled, plan: Plan | None = None):
        self.made, self.plan, self.source = made, plan, made.source.text
        self.dtypes = tuple(own(t.dtype) for t in made.interface.inputs)
        self.shapes = [(shape, own(dtype)) for shape, dtype in made.shapes]
        self.dim = np.array([address(name) or 0 for name in made.externals], np.int64)
        self.launch = native_launch()
        self.takes_out = self.launch is not None  # and whether the launcher knows of donated inputs
        if self.launch is None:
            self.entry  # noqa: B018  # compiled now
        else:
            function = load(made.source, made.source.native)
            self.pointers = {
                "entry": function.address,
                "table": self.dim.ctypes.data,
                "keep": (function, self.dim),
                "scratch": made.source.scratch,
                "done": 1,
            }

    @functools.cached_property
    def entry(self) -> Callable[..., int]:
        """The program as a function of Numba, of flat arrays."""
        return load(self.made.source, self.made.source.entry)

    def __reduce__(self) -> tuple:
        """Pickle the text: loading compiles it, or finds it in the cache."""
        return NumbaExecutable, (replace(self.made, report=self.explain()),)

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return the outputs and 0, or nothing of use and the code of the check that failed."""
        if self.launch is not None:
            result = self._program(*arrays)
            return ([], result) if isinstance(result, int) else (result, 0)
        values = [
            np.asarray(a, dtype, order="C") for a, dtype in zip(arrays, self.dtypes, strict=True)
        ]
        dim, env = self.dim, {}
        if self.made.places:
            sizes = [values[k].shape[d] for k, d in self.made.places]
            dim = np.array([*sizes, *self.dim], np.int64)
            env = dict(zip(self.made.atoms, sizes, strict=True))
        outputs = [
            np.empty([shapes.evaluate(s, env) for s in shape], dtype)
            for shape, dtype in self.shapes
        ]
        flat = [v.reshape(-1) for v in values]
        code = self.entry(dim, *flat, *[v.reshape(-1) for v in outputs])
        return outputs, code

    @functools.cached_property
    def _program(self) -> Callable[..., object]:
        return self.launch(self.made.interface, self.pointers, lambda code, _: code)

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
    ) -> Callable[..., object]:
        """Return a callable of positional arrays; the rest is told in the launcher of C."""
        face = self.made.interface
        face = replace(face, equal=(*face.equal, *equal), nonzero=(*face.nonzero, *nonzero))
        if self.launch is None:
            face = replace(face, atoms=self.made.atoms)
            return launcher(
                self.entry, face, self.dim, bound,
                on_code=on_code, on_mismatch=on_mismatch, returns=returns,
                reject_one=bool(options.get("reject_one")),
            )  # fmt: skip
        if options.get("donated"):
            options["reuse"] = self.made.reuse
        return self.launch(
            face, self.pointers, on_code,
            on_mismatch=on_mismatch, returns=returns, bound=bound, **options,
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


def native_launch() -> Callable[..., object] | None:
    """Return what calls a program by its address, from the C backend where that has it."""
    try:
        found = getattr(get_backend("c"), "launch", None)
    except BackendError:  # there is no C compiler
        return None
    return found() if found else None


def load(source: PythonSource, name: str) -> Any:
    """Return an entry of a program, compiled, from its file in the cache."""
    if source.natives:  # what they do is not in the text: nothing is kept on disk
        scope = {f"native{i}": function_of(n) for i, n in enumerate(source.natives)}
        exec(compile(source.text.replace("cache=True", "cache=False"), _FILE, "exec"), scope)
        return _compiled(source, name, scope, False)
    key = cache_key("numba", source.text)
    module = f"lazyarr_numba_{key}"
    with _LOCK:  # Numba compiles one program at a time anyway
        if module not in _LOADED:
            folder = open_cache().build(key, lambda path: _write(path, source.text))
            spec = importlib.util.spec_from_file_location(module, folder / _FILE)
            sys.modules[module] = importlib.util.module_from_spec(spec)  # Numba looks it up
            spec.loader.exec_module(sys.modules[module])
            _LOADED[module] = {}
        known = _LOADED[module]
        if name not in known:
            known[name] = _compiled(source, name, vars(sys.modules[module]), True)
        return known[name]


def _compiled(source: PythonSource, name: str, scope: dict, cache: bool) -> Any:
    """Compile an entry: that on addresses is a C function."""
    make = numba.cfunc if name == source.native else numba.njit
    return make(scope[f"{name}_type"], cache=cache, error_model="numpy")(scope[name])


_LOADED: dict[str, dict[str, Any]] = {}  # compiled entries of modules that have run to their end
_LOCK = threading.Lock()


def _write(folder: Path, text: str) -> None:
    (folder / _FILE).write_text(text, encoding="utf-8")
