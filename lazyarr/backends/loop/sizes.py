"""Which symbolic sizes of a graph are equal, because the program would fail otherwise.

The driver has made sizes that are 1 static, so two sizes that meet in one elementwise op, one
contracted label or one scan must be the same. Every class gets one representative, an int where
there is one.
"""

from collections.abc import Iterable

from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TupleType


class Sizes:
    """The equalities between the sizes of one graph, and the canonical form of each size."""

    def __init__(self, graph: Graph):
        self.mapping: dict[Atom, int | Size] = {}
        self._memo: dict[object, object] = {}
        self._seen: set[Atom] = set()
        graphs = [graph]
        while graphs:
            for node in graphs.pop().toposort():
                self._learn(node)
                if node.op is not None and node.op.kind == "control" and "body" in node.params:
                    graphs.append(node.params["body"])

    def canon(self, size: "int | Size") -> "int | Size":
        """Return the representative of a size."""
        if not isinstance(size, Size):
            return size
        found = self._memo.get(size)
        if found is None:
            found = size
            for _ in range(len(self.mapping) + 1):
                new = shapes.replace(found, self.mapping)
                if new is found:
                    break
                found = new
            self._memo[size] = found
        return found

    def shape(self, node: Variable) -> tuple:
        """Return the shape of a node in canonical sizes."""
        return tuple(self.canon(s) for s in node.type.shape)

    def equate(self, a: "int | Size", b: "int | Size") -> None:
        """Record that two sizes are equal; sizes that are 1 broadcast and say nothing."""
        a, b = self.canon(a), self.canon(b)
        if a is b or a == 1 or b == 1:
            return
        for gone, kept in sorted(((a, b), (b, a)), key=lambda pair: _rank(pair[0]), reverse=True):
            atom = shapes.lone_atom(gone)
            if atom is not None and not _mentions(kept, atom):
                self.mapping[atom] = kept
                self._memo.clear()
                return

    def equate_shapes(self, a: Iterable, b: Iterable) -> None:
        """Record that two shapes are equal, right aligned."""
        for x, y in zip(reversed(tuple(a)), reversed(tuple(b)), strict=False):
            self.equate(x, y)

    def _learn(self, node: Variable) -> None:
        types = node.type.types if isinstance(node.type, TupleType) else (node.type,)
        for t in types:
            for s in t.shape:
                self._learn_broadcast(s)
        if node.op is None:
            return
        operands = [x for x in node.inputs if x.__class__ is Variable]
        if node.op.kind == "elementwise":
            for x in operands:
                self.equate_shapes(x.type.shape, node.type.shape)
        elif node.op.name in ("specify_shape", "broadcast_to"):
            self.equate_shapes(operands[0].type.shape, node.type.shape)
        elif node.op.name in ("main_diagonal", "cholesky_lower", "inv", "det"):
            self.equate(*operands[0].type.shape[-2:])
        elif node.op.name in ("solve_matrix", "solve_system"):
            a, b = (x.type.shape for x in operands)
            self.equate(a[-1], a[-2])
            self.equate_shapes(a[:-1], b[:-1])
        elif node.op.name == "contract":
            self._learn_contract(node, operands)
        elif node.op.kind == "control" and "body" in node.params:
            self._learn_scan(node, operands)
        elif node.op.name in ("take_add", "take_set"):
            x, indices, v = operands
            axis = node.params["axis"]
            head, tail = x.type.shape[:axis], x.type.shape[axis + 1 :]
            self.equate_shapes((*head, *indices.type.shape, *tail), v.type.shape)
        elif node.op.name == "concat":
            axis = node.params["axis"]
            for x in operands[1:]:
                for d, (a, b) in enumerate(zip(operands[0].shape, x.shape, strict=True)):
                    if d != axis:
                        self.equate(a, b)
        elif node.op.name == "stack":
            for x in operands[1:]:
                self.equate_shapes(operands[0].shape, x.shape)

    def _learn_broadcast(self, size: "int | Size") -> None:
        if not isinstance(size, Size):
            return
        for mono, _ in size.terms:
            for atom in mono:
                if atom.kind == "bc" and atom not in self._seen:
                    self._seen.add(atom)
                    for arg in atom.args:
                        self._learn_broadcast(arg)
                        self.equate(_size_of(atom), arg)

    def _learn_contract(self, node: Variable, operands: list) -> None:
        known: dict[int, object] = {}
        for x, labels in zip(operands, node.params["spec"], strict=False):
            for label, size in zip(labels, x.type.shape, strict=True):
                self.equate(known.setdefault(label, size), size)

    def _learn_scan(self, node: Variable, operands: list) -> None:
        p = node.params
        first, last = p["n_carry"], p["n_carry"] + p["n_xs"]
        for k, (x, inner) in enumerate(zip(operands, p["body"].inputs, strict=True)):
            shape = x.type.shape
            if first <= k < last:
                self.equate(shape[0], p["length"])
                shape = shape[1:]
            self.equate_shapes(shape, inner.type.shape)
        for inner, out in zip(p["body"].inputs[:first], p["body"].outputs, strict=False):
            self.equate_shapes(inner.type.shape, out.type.shape)


def _size_of(atom: Atom) -> Size:
    return shapes._of_atom(atom)


def _mentions(size: object, atom: Atom) -> bool:
    """Tell whether an atom occurs in a size, also inside computed atoms."""
    stack = [size]
    while stack:
        s = stack.pop()
        if isinstance(s, Size):
            for mono, _ in s.terms:
                for a in mono:
                    if a is atom:
                        return True
                    stack.extend(a.args)
    return False


def _rank(size: object) -> tuple:
    """Order sizes by how gladly they are replaced: broadcasts, computed ones, later unknowns."""
    atom = shapes.lone_atom(size)
    if atom is None:
        return (-1, 0)
    return ({"bc": 2, "dim": 0}.get(atom.kind, 1), atom.uid)
