"""A name for the structure of a graph that is the same in every process.

In it: ops, parameters, types, numbers, which arrays are one array, sharing, outputs. Not in it:
data, names of symbols, addresses, hash seeds. Graphs of one digest become the same program, so a
program that another process made is found again by it. What has no such description (a Python
function within the graph, an op from outside the package) has no digest.
"""

import hashlib

import numpy as np

from lazyarr.graph.node import Call, Variable
from lazyarr.graph.op import Op
from lazyarr.graph.registry import OWN
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType

SMALL = 1 << 16  # bytes of data within the body of a loop that may be part of a digest


class _UnknownError(Exception):
    """Something without a description that is the same in every process."""


def digest(*parts: object) -> str | None:
    """Return the digest of graphs, types, keys and numbers; None where something has none."""
    writer = _Writer()
    try:
        text = "\n".join([writer.text(part) for part in parts])
    except _UnknownError:
        return None
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class _Writer:
    """Writes values as text; unknown sizes, types and calls are numbered as they are met."""

    def __init__(self) -> None:
        self.atoms: dict[Atom, int] = {}
        self.known: dict[object, str] = {}
        self.inside = False

    def text(self, value: object) -> str:
        """Return a value as text; equal texts stand for equal meanings."""
        write = _WRITE.get(value.__class__)
        if write is not None:
            return write(self, value)
        if isinstance(value, np.dtype):
            return f"d{value.str}"
        if isinstance(value, TensorType):
            return self.once(value)
        if isinstance(value, type) and value.__module__ in ("builtins", "lazyarr.graph.shapes"):
            return f"class {value.__name__}"
        if isinstance(value, np.generic):
            return f"{value.dtype.str}:{value.tobytes().hex()}"
        raise _UnknownError(repr(value))

    def once(self, value: object) -> str:
        """Return a type or call in full when first met, by its number afterwards."""
        found = self.known.get(value)
        if found is not None:
            return found
        full = self.call(value) if isinstance(value, Call) else self.type(value)
        self.known[value] = f"#{len(self.known)}"
        return f"{self.known[value]}={full}"

    def type(self, t: object) -> str:
        if isinstance(t, TupleType):
            return self.many(t.types)
        if not isinstance(t, TensorType):
            raise _UnknownError(repr(t))
        dims = self.text(t.dims) if t.named else ""
        return f"{t.dtype.str}{self.many(t.shape)}{dims}"

    def call(self, call: Call) -> str:
        return f"{self.op(call.op)}{self.many(call.params)}"

    def op(self, op: Op) -> str:
        if op.name not in OWN:
            raise _UnknownError(op.name)
        return op.name

    def many(self, values: tuple) -> str:
        text = self.text
        return f"({','.join([text(v) for v in values])})"

    def size(self, size: Size) -> str:
        terms = [f"{k}*{'*'.join(map(self.atom, mono))}" for mono, k in size.terms]
        return f"[{'+'.join(terms)}]"

    def atom(self, atom: Atom) -> str:
        if atom.kind != "dim":
            return f"{atom.kind}{self.many(atom.args)}"
        number = self.atoms.setdefault(atom, len(self.atoms))
        return f"n{number}{'!' if atom.not_one else ''}"

    def graph(self, graph: Graph) -> str:
        inside, self.inside = self.inside, True
        number: dict[Variable, int] = {}
        arrays: dict[int, int] = {}
        rows = []
        for v in graph.inputs:
            number[v] = len(number)
            rows.append(self.once(v.type))
        for v in graph.toposort():
            if v in number:
                continue
            number[v] = len(number)
            if v.expr is not None:
                rows.append(self.node(v, number))
            elif v.is_symbol:
                raise _UnknownError(repr(v))
            else:
                rows.append(self.data(v, inside, arrays))
        self.inside = inside
        return f"{{{';'.join(rows)}:{','.join([str(number[v]) for v in graph.outputs])}}}"

    def node(self, v: Variable, number: dict[Variable, int]) -> str:
        operands = [
            str(number[x]) if x.__class__ is Variable else f"={self.text(x)}" for x in v.expr[1:]
        ]
        return f"{self.once(v.expr[0])} {' '.join(operands)} {self.once(v.type)}"

    def data(self, v: Variable, inside: bool, arrays: dict[int, int]) -> str:
        """Data of the graph itself is left out, only which arrays are the same one."""
        if not inside:
            return f"data{arrays.setdefault(id(v.value), len(arrays))} {self.once(v.type)}"
        if not isinstance(v.value, np.ndarray) or v.value.nbytes > SMALL:
            raise _UnknownError(repr(v))
        content = hashlib.sha256(np.ascontiguousarray(v.value).tobytes()).hexdigest()
        return f"data {content} {self.once(v.type)}"


_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_WRITE = {
    **dict.fromkeys(_PLAIN, lambda writer, value: repr(value)),
    tuple: _Writer.many,
    Size: _Writer.size,
    Atom: _Writer.atom,
    Call: _Writer.once,
    Op: _Writer.op,
    TupleType: _Writer.once,
    TensorType: _Writer.once,
    Graph: _Writer.graph,
}
