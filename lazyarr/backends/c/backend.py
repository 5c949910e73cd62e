"""The C backend: a graph becomes one C file, a shared library, and a callable.

executable = CBackend().compile(graph)
outputs, code = executable([x, y])          # what the driver's protocol asks
call = executable.launcher(on_code)         # what a compiled function calls: positional arrays
"""

import ctypes
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from lazyarr.backends.base import collector_off
from lazyarr.backends.c import compiler, complexfns, launcher, mathfns, recorder
from lazyarr.backends.c.foreign import pointers_of
from lazyarr.backends.c.launcher import Pointers, launch
from lazyarr.backends.c.print import CSource, to_c
from lazyarr.backends.cache import default_folder, open_cache
from lazyarr.backends.loop.donate import reusable
from lazyarr.backends.loop.externals import NEEDED, REAL, externals_of
from lazyarr.backends.loop.interface import Interface, interface_of
from lazyarr.backends.loop.lapack import address, pointers
from lazyarr.backends.loop.native import Callback
from lazyarr.backends.loop.plan import Plan, plan
from lazyarr.backends.loop.support import supports
from lazyarr.config import options
from lazyarr.errors import BackendError
from lazyarr.graph.node import Variable
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph


class CBackend:
    """Compiles graphs to native code with the C compiler of the machine.

    `precise` (default: the option of that name) calls libm's functions one element at a time, not
    the vector ones, which are within 4 ulp, and forbids fused multiply-add. Raises BackendError
    where there is no compiler.
    """

    name = "c"
    relayout = 1 << 26  # bytes of copies that are worth a program for their layout

    def __init__(self, *, precise: bool | None = None):
        compiler.find_compiler()
        self.precise = precise

    def supports(self, node: Variable) -> bool:
        """Can the node be part of a compiled program (or must its reference be run)?"""
        return supports(node, has_routine, complexfns.PRIMS)

    def recorder(self) -> ModuleType | None:
        """Return compiled code that records and walks expressions, where it can be built."""
        return recorder.module()

    def launch(self) -> Callable[..., object] | None:
        """Return what calls programs of the same form that another backend compiled.

        It takes an `Interface`, what `Pointers` are made of, and the options of `launch`. None
        without the extension module: ctypes is slower than what others have.
        """
        return _launch if launcher.extension() else None

    donates = True  # programs can write results over inputs that are given away

    def compile(self, graph: Graph, donated: Sequence[int] = ()) -> "CExecutable":
        """Return the compiled program; BackendError where no compiler can build it."""
        precise = options.precise if self.precise is None else self.precise
        found = compiler.find_compiler()
        vector = frozenset() if precise else found.vector
        threads = options.threads if found.openmp else 1
        with collector_off():
            planned = plan(graph, precise=precise, threads=threads)
            planned.reuse = reusable(planned.functions, donated) if donated else {}
            source = to_c(planned, vector=vector, precise=precise, versions=found.clones)
        names = tuple(v.name or "" for v in graph.inputs)
        flags = compiler.PRECISE if precise else ()
        flags = (*flags, *compiler.OPENMP) if planned.threads > 1 else flags
        face = interface_of(planned, names)
        taken = {out.number: given.number for out, given in planned.reuse.items()}
        reuse = tuple(taken.get(k, -1) for k in range(len(face.outputs)))
        made = Native(source, flags, face, planned.externals, planned.codes, reuse)
        return CExecutable(made, planned)

    def depends_on(self) -> tuple:
        """Return what the code of a program depends on beside the program."""
        precise = options.precise if self.precise is None else self.precise
        found = compiler.find_compiler()
        parts = found.identity, found.flags, sorted(found.vector), precise, options.threads
        return (*parts, [address(name) is not None for name in ("dgemm", "z@fft")])


def has_routine(routine: str, dtype: np.dtype) -> bool:
    """Tell whether programs can call a library routine on arrays of a dtype."""
    if routine not in mathfns.FUNCTIONS or (dtype.kind == "c" and routine in REAL):
        return False
    names = externals_of(routine, dtype) if routine in NEEDED else ()
    return all(address(name) for name in names if not name.endswith(".data"))


@dataclass(frozen=True)
class Native:
    """What must be known of a program to build, load and call it."""

    source: CSource
    flags: tuple[str, ...]
    interface: Interface
    externals: tuple[str, ...]
    codes: dict[int, tuple]  # of failing checks: the class of the error and its message
    reuse: tuple[int, ...] = ()  # for each output the donated input whose memory it may take, or -1
    report: str = ""


class CExecutable:
    """A loaded program. Safe to call from many threads; never writes or returns its inputs.

    `plan` is what it was printed from; a program that was loaded from a pickle has none.
    """

    takes_out = True  # its launcher knows `out=` and donated inputs

    def __init__(self, made: Native, plan: Plan | None = None):
        self.made, self.plan, self.source = made, plan, made.source.text
        library = compiler.load(made.source.text, (*made.flags, *made.source.flags))
        self.interface = made.interface
        table = pointers_of(made.externals, made.source.pointers)
        self.pointers = Pointers(
            entry=_address(library, made.source.entry),
            arena=_address(library, made.source.arena),
            table=ctypes.addressof(table),
            keep=(library, table),
        )

    def __reduce__(self) -> tuple:
        """Pickle the text: loading compiles it, or finds it in the cache."""
        return CExecutable, (replace(self.made, report=self.explain()),)

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return the outputs and 0, or nothing and the code of the check that failed."""
        result = self._program(*arrays)
        return ([], result) if isinstance(result, int) else (result, 0)

    @functools.cached_property
    def _program(self) -> Callable[..., object]:
        return self.launcher(lambda code, _: code)

    @functools.cached_property
    def call(self) -> Callable[..., object]:
        """The program by itself: arrays by position in, a list of arrays out."""
        return self.launcher(self._fail)

    def launcher(
        self,
        on_code: Callable[[int, tuple], object],
        *,
        equal: Iterable[tuple[object, object]] = (),
        nonzero: Iterable[Size] = (),
        **options: object,
    ) -> Callable[..., object]:
        """Return a callable that runs the program.

        `equal` and `nonzero` add conditions on sizes to those of the program itself; the rest is
        told in `lazyarr.backends.c.launcher.launch`.
        """
        if options.get("donated"):
            options["reuse"] = self.made.reuse
        face = self.interface
        face = replace(face, equal=(*face.equal, *equal), nonzero=(*face.nonzero, *nonzero))
        return launch(face, self.pointers, on_code, **options)

    @property
    def callbacks(self) -> list[str]:
        """What is called in Python by a loop of the program."""
        return [n.name for n in self.made.source.pointers if isinstance(n.code, Callback)]

    def explain(self) -> str:
        """Return kernels, loops, fused nodes, buffers and library calls as text."""
        return self.made.report if self.plan is None else self.plan.explain()

    def _fail(self, code: int, arguments: tuple) -> None:
        if code == launcher.SIZES_DISAGREE:
            raise BackendError("sizes are not what this program relies on (equal, not 0)")
        error, message = self.made.codes.get(code, (BackendError, f"the program failed: {code}"))
        raise error(message)


def _launch(
    face: Interface, pointers: dict, on_code: Callable[[int, tuple], object], **options: object
) -> Callable[..., object]:
    return launch(face, Pointers(**pointers), on_code, **options)


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def describe() -> dict[str, object]:
    """Return what `python -m lazyarr` prints about C: compiler, flags, launcher, cache.

    Never raises: without a compiler `available` is False and `reason` tells why.
    """
    cache = open_cache()
    facts: dict[str, object] = {"cache folder": str(cache.root)}
    if cache.folder not in cache.root.parents:
        facts["cache folder wanted"] = str(default_folder())
    try:
        found = compiler.find_compiler()
    except BackendError as error:
        return {"available": False, "reason": str(error)} | facts
    native = launcher.extension() is not None
    return {
        "available": True,
        "compiler": found.name,
        "version": found.version,
        "flags": " ".join((*found.flags, *found.link)),
        "vector functions": " ".join(sorted(found.vector)) or "none",
        "launcher": "extension module" if native else f"ctypes ({launcher.obstacle})",
        "BLAS and LAPACK": "from scipy" if pointers(["dgemm"])[0] else "none (scipy is missing)",
    } | facts
