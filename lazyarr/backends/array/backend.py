"""ArrayBackend: compiles a graph to a program over one namespace, and calls it with NumPy arrays.

A backend of the family gives a `Table` and says how arrays enter and leave its namespace.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from lazyarr.backends.array.program import Program, linear_form, supported, write
from lazyarr.backends.array.table import CheckFailed, Table
from lazyarr.backends.base import get_backend
from lazyarr.errors import GraphError, ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.op import operand_types
from lazyarr.graph.shapes import Atom
from lazyarr.graph.traverse import Graph

_MEMO_LIMIT = 4096


class _Writable:
    """Shows an array's memory as writable, and keeps the array alive."""

    def __init__(self, array: np.ndarray):
        self.array = array
        shown = array.__array_interface__
        self.__array_interface__ = {
            **shown, "strides": array.strides, "data": (shown["data"][0], False)
        }  # fmt: skip


def writable(array: np.ndarray) -> np.ndarray:
    """Return a writable view of memory that NumPy was only lent for reading.

    For memory that nobody else reads, or where the view is handed to code that never writes.
    """
    return np.asarray(_Writable(array)) if array.size else np.array(array)


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
        """Return a result as a writable NumPy array that shares no memory.

        `owned` tells that nothing else can hold the memory of the result itself.
        """
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
        self._backend, self._graph, self._program = backend, graph, program
        self._bound: dict[int, np.ndarray] = {}
        self.source = program.source
        self._call = backend.prepare(program)
        self._live = [(k, i) for k, i in enumerate(program.used)]
        with backend.context():
            held = [backend.resident(a) for a in program.residents]
        self._args: list = [None] * len(program.used) + held
        self._places = [_place(graph, atom) for atom in program.atoms]
        self._checks = _further_places(graph, program.atoms)

    def bind(self, index: int, array: np.ndarray) -> None:
        """Keep an array as argument `index` for all calls, which may then pass None there.

        The array must not change any more.
        """
        self._bound[index] = array
        for k, i in list(self._live):
            if i == index:
                with self._backend.context():
                    self._args[k] = self._backend.resident(array)
                self._live.remove((k, i))

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return fresh outputs and a code, 0 when every check held (no outputs otherwise)."""
        backend, args = self._backend, self._args.copy()
        for k, i in self._live:
            given = arrays[i]
            if given.__class__ is tuple:  # the outputs of a node that the reference ran
                args[k] = tuple([backend.enter(a) for a in given])
            else:
                args[k] = backend.enter(given)
        if self._places:
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

    def within(self, arrays: Sequence, convert: Callable) -> list:
        """Return the outputs for arrays of the namespace, inside somebody else's program.

        Checks are dropped. `convert(value, dtype)` gives the arrays that the program holds.
        """
        p, bound = self._program, self._bound
        args = [convert(bound[i], bound[i].dtype) if i in bound else arrays[i] for i in p.used]
        args += [convert(a, a.dtype) for a in p.residents]
        if self._places:
            args.insert(0, self._sizes(arrays))
        results = p.function(*args)
        return list(results[:-1] if p.checked else results)

    def _sizes(self, arrays: Sequence) -> tuple[int, ...]:
        """Return the values of the unknown sizes; inputs that disagree are an error."""
        found = tuple([
            (self._shape(arrays, i)[axis] - offset) // factor
            for i, axis, factor, offset in self._places
        ])  # fmt: skip
        for i, axis, number, name in self._checks:
            given = self._shape(arrays, i)[axis]
            if given != found[number]:
                raise ShapeError(
                    f"size {name} is {found[number]} in one input and {given} in another."
                )
        return found

    def _shape(self, arrays: Sequence, i: int) -> tuple:
        return (self._bound[i] if i in self._bound else arrays[i]).shape

    def __reduce__(self):
        """Pickle as the graph, which is compiled again where it is loaded."""
        return revive, (self._backend.name, self._graph, self._bound)

    def explain(self) -> str:
        """Say what was generated."""
        p = self._program
        held = f", {len(p.residents)} resident arrays" if p.residents else ""
        sizes = f", {len(p.atoms)} unknown sizes" if p.atoms else ""
        return f"{self._backend.name}: one program of {p.lines} lines{sizes}{held}"


def revive(name: str, graph: Graph, bound: dict[int, np.ndarray]) -> ArrayExecutable:
    """Compile the graph of a pickled executable and bind its arguments again."""
    run = get_backend(name).compile(graph)
    for index, array in bound.items():
        run.bind(index, array)
    return run


def _place(graph: Graph, atom: Atom) -> tuple[int, int, int, int]:
    """Return (input, axis, factor, offset) where an unknown can be read: factor * it + offset."""
    for i, axis, form in _size_forms(graph):
        if form[0] is atom:
            return i, axis, *form[1:]
    raise GraphError(f"the size {atom} is not known; no input has it as a size.")


def _further_places(graph: Graph, atoms: tuple) -> list[tuple]:
    """Return (input, axis, number, name) of each place where an unknown stands alone again."""
    seen: set = set()
    found = []
    for i, axis, (atom, factor, offset) in _size_forms(graph):
        if atom in seen and factor == 1 and offset == 0:
            found.append((i, axis, atoms.index(atom), str(atom)))
        seen.add(atom)
    return found


def _size_forms(graph: Graph) -> list[tuple]:
    """Return (input, axis, (atom, factor, offset)) of sizes that tell an unknown, plain first."""
    forms = [
        (i, axis, form)
        for i, v in enumerate(graph.inputs)
        for axis, s in enumerate(getattr(v.type, "shape", ()))
        if (form := linear_form(s)) is not None
    ]
    return sorted(forms, key=lambda row: row[2][1:] != (1, 0))
