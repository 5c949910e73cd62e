"""ArrayBackend: compiles a graph to a program over one namespace, and calls it with NumPy arrays.

A backend of the family gives a `Table` and says how arrays enter and leave its namespace.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from lazyarr.backends.array.program import Program, supported, write
from lazyarr.backends.array.table import CheckFailed, Table
from lazyarr.errors import ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.op import operand_types
from lazyarr.graph.shapes import lone_atom
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

_MEMO_LIMIT = 4096


class ArrayBackend:
    """A namespace as a backend; a subclass sets `name`, `table` and what differs below."""

    name = "array"
    table: Table

    def __init__(self) -> None:
        self._known: dict[tuple, bool] = {}

    def supports(self, node: Variable) -> bool:
        """Tell whether the table has words for a node."""
        if node.op is None:
            return True
        key = (node.call, *operand_types(node), node.op.name in self.table.rows)
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _MEMO_LIMIT:
                self._known.clear()
            found = self._known[key] = supported(node, self.table)
        return found

    def compile(self, graph: Graph) -> "ArrayExecutable":
        """Return the graph as a program that can be called."""
        return ArrayExecutable(self, graph, write(graph, self.table))

    # -- what a namespace says for itself ----------------------------------------------------------

    def enter(self, array: np.ndarray) -> object:
        """Return a NumPy array as an argument of programs, without writing it."""
        return array

    def resident(self, array: np.ndarray) -> object:
        """Return an array that stays for many calls."""
        return self.enter(array)

    def leave(self, value: object, owned: bool) -> np.ndarray:
        """Return a result as a writable NumPy array that shares no memory; `owned`: none else does."""
        out = np.asarray(value)
        return out if owned and out.flags.writeable else np.array(out)

    def context(self) -> AbstractContextManager:
        """Return the context in which programs are called."""
        return nullcontext()

    def prepare(self, program: Program) -> Callable:
        """Return the function to call, `(sizes, *args)` or `(*args)`, from a program's."""
        return program.function

    def describe(self) -> dict:
        """Return version and devices."""
        raise NotImplementedError


class ArrayExecutable:
    """A program that takes and returns NumPy arrays."""

    def __init__(self, backend: ArrayBackend, graph: Graph, program: Program):
        self._backend, self._program = backend, program
        self.source = program.source
        self._call = backend.prepare(program)
        self._live = [(k, i) for k, i in enumerate(program.used)]
        with backend.context():
            held = [backend.resident(a) for a in program.residents]
        self._args: list = [None] * len(program.used) + held
        self._shapes: dict[int, tuple] = {}  # of bound arguments
        self._where = _size_places(graph, program.atoms)
        self._checks = _sizes_to_check(graph, program.atoms)

    def bind(self, index: int, array: np.ndarray) -> None:
        """Keep an array as argument `index` for all calls, which may then pass None there.

        The array must not change any more.
        """
        self._shapes[index] = np.shape(array)
        for k, i in list(self._live):
            if i == index:
                with self._backend.context():
                    self._args[k] = self._backend.resident(array)
                self._live.remove((k, i))

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return fresh outputs and a code, 0 when every check held (no outputs otherwise)."""
        backend, args = self._backend, self._args.copy()
        for k, i in self._live:
            args[k] = backend.enter(arrays[i])
        if self._where:
            args.insert(0, self._sizes(arrays))
        with backend.context():
            try:
                results = self._call(*args)
            except CheckFailed as failed:
                return [], failed.code
            if self._program.checked:
                *results, error = results
                if code := int(error):
                    return [], code
            out = [
                backend.leave(r, owned)
                for r, owned in zip(results, self._program.owned, strict=True)
            ]
        return out, 0

    def _sizes(self, arrays: Sequence) -> tuple[int, ...]:
        """Return the values of the unknown sizes, each read from the first place that has it."""
        for i, axis, number, name in self._checks:
            place, along = self._where[number]
            a, b = self._shape(arrays, place)[along], self._shape(arrays, i)[axis]
            if a != b:
                raise ShapeError(f"size {name} is {a} in one input and {b} in another.")
        return tuple([self._shape(arrays, i)[axis] for i, axis in self._where])

    def _shape(self, arrays: Sequence, i: int) -> tuple:
        return self._shapes[i] if i in self._shapes else arrays[i].shape

    def explain(self) -> str:
        """Say what was generated."""
        p = self._program
        held = f", {len(p.residents)} resident arrays" if p.residents else ""
        sizes = f", {len(p.atoms)} unknown sizes" if p.atoms else ""
        return f"{self._backend.name}: one program of {p.lines} lines{sizes}{held}"


def _size_places(graph: Graph, atoms: tuple) -> list[tuple[int, int]]:
    """Return (input, axis) where each unknown size can be read."""
    found: dict[object, tuple[int, int]] = {}
    for i, axis, atom in _lone_sizes(graph):
        found.setdefault(atom, (i, axis))
    return [found[a] for a in atoms]


def _sizes_to_check(graph: Graph, atoms: tuple) -> list[tuple]:
    """Return (input, axis, number, name) of each further place of an unknown size."""
    seen: set = set()
    found = []
    for i, axis, atom in _lone_sizes(graph):
        if atom in seen:
            found.append((i, axis, atoms.index(atom), atom.name))
        seen.add(atom)
    return found


def _lone_sizes(graph: Graph) -> list[tuple]:
    return [
        (i, axis, atom)
        for i, v in enumerate(graph.inputs)
        if isinstance(v.type, TensorType)
        for axis, s in enumerate(v.type.shape)
        if (atom := lone_atom(s)) is not None
    ]
