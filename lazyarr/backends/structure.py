"""The structural key of a recorded expression, and the program that serves all with that key.

In the key: ops, static parameters, dtypes, ranks, which sizes are 1, sharing, outputs. Not in it:
data, numbers beside arrays, slice bounds, and sizes. `generalise` makes the graph that a key stands
for: sizes become unknowns and numbers become 0-d inputs, whose values are gathered from each
expression.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lazyarr.errors import ConcretizationError
from lazyarr.graph import dtypes
from lazyarr.graph.node import UNSET, Call, Variable, symbol
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType

# An exponent of this table is part of the key, and so of the program: passes may use it.
EXPONENTS = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4})
_CHUNK = 2  # sizes that one phantom input carries; their product must fit 63 bits


@dataclass
class Expression:
    """A recorded expression cut at nodes that have values.

    `exact`: sizes must stay as they are, because loops hold bodies of fixed types.
    """

    nodes: tuple[Variable, ...]
    order: list[Variable]  # pending nodes and the valued ones they read, in order
    exact: bool = False
    uses: dict[Variable, int] = field(default_factory=dict)  # by pending nodes of the order

    @property
    def inputs(self) -> list[Variable]:
        """The nodes that have values."""
        return [v for v in self.order if v.value is not UNSET]


def pending(nodes: Sequence[Variable]) -> Expression:
    """Return what must be computed for nodes, and the valued nodes it stops at.

    Raises ConcretizationError when a symbol stands below.
    """
    uses: dict[Variable, int] = dict.fromkeys(nodes, 0)
    stack = [v for v in nodes if v.value is UNSET]
    exact = False
    while stack:
        v = stack.pop()
        if v.type.__class__ is TupleType:
            exact = True
        if v.expr is None:
            raise ConcretizationError(
                f"the expression depends on the symbol {v.name or v.type!r}, made at "
                f"{v.where_made()}"
            )
        for x in v.expr:
            if x.__class__ is Variable:
                if x in uses:
                    uses[x] += 1
                else:
                    uses[x] = 1
                    if x.value is UNSET:
                        stack.append(x)
    return Expression(tuple(nodes), sorted(uses, key=_sequence), exact, uses)


_sequence = operator.attrgetter("seq")


def baked(node: Variable, x: object) -> bool:
    """Tell whether a number beside an array is part of the key."""
    return node.op.name == "pow" and x.__class__ is not bool and x in EXPONENTS


def key_of(expression: Expression) -> tuple:
    """Return the structure of an expression; equal keys share one program."""
    if expression.exact:
        return _exact_key(expression)
    number: dict[Variable, int] = {}
    rows: list = []
    i = 0
    for v in expression.order:
        number[v] = i
        i += 1
        if v.value is not UNSET:
            rows.append(v.type.structure)
            continue
        expr = v.expr
        call = expr[0]
        row = [call._structure or call.structure, v.type.ones]
        for x in expr[1:]:
            if x.__class__ is Variable:
                row.append(number[x])
            elif call.op.name == "pow" and baked(v, x):
                row.append((x.__class__, repr(x)))
            else:
                row.append(x.__class__)
        rows.append(tuple(row))
    rows.append(tuple([number[v] for v in expression.nodes]))
    return tuple(rows)


def _exact_key(expression: Expression) -> tuple:
    """The structure with all sizes and numbers, for expressions that hold loops."""
    number: dict[Variable, int] = {}
    rows: list = ["exact"]
    for v in expression.order:
        number[v] = len(number)
        if v.value is not UNSET:
            rows.append(v.type)
            continue
        operands = [
            number[x] if x.__class__ is Variable else (x.__class__, repr(x)) for x in v.inputs
        ]
        rows.append((v.call, v.type, *operands))
    rows.append(tuple([number[v] for v in expression.nodes]))
    return tuple(rows)


@dataclass(frozen=True)
class Slot:
    """Where an argument of a program stands in an expression of its key."""

    node: int  # position in the order
    operand: int | None = None  # a number beside arrays, by its place in `expr`
    dtype: np.dtype | None = None


@dataclass
class General:
    """The graph of a key, and where its inputs stand in every expression with that key."""

    graph: Graph
    slots: list[Slot]
    sized: list[int]  # nodes whose parameters hold sizes

    def arguments(self, expression: Expression) -> list:
        """Return the values that the graph takes for an expression."""
        order, values = expression.order, []
        for slot in self.slots:
            v = order[slot.node]
            if slot.operand is None:
                values.append(v.value)
                continue
            x = v.expr[slot.operand]
            exactly = x.__class__ is float and slot.dtype is dtypes.float64
            values.append(x if exactly else np.asarray(x).astype(slot.dtype))
        sizes: list = []
        for i in self.sized:
            _collect_sizes(order[i].expr[0], sizes)
        chunks = range(0, len(sizes), _CHUNK)
        values.extend(np.empty((*sizes[i : i + _CHUNK], 0), bool) for i in chunks)
        return values


def _scalar_dtype(node: Variable, x: object) -> np.dtype:
    """The dtype that a number takes beside arrays."""
    if node.op.kind == "elementwise":
        position = next(i for i, v in enumerate(node.inputs) if v is x)
        promoted = node.op.promoted
        if promoted is None or position in promoted:
            return node.op.compute_dtype(node)
    if node.op.name == "full" or "weak_numbers" in node.op.facts:
        return node.type.dtype
    arrays = [v for v in node.inputs if v.__class__ is Variable]
    beside = node.op.kind == "composite" and node.op.accepts != "all"  # not a shift or an index
    if beside and arrays:
        return dtypes.weak(arrays[0].type.dtype, x.__class__)
    return dtypes.DEFAULTS[x.__class__]


def _collect_sizes(call: Call, found: list) -> None:
    for name, value in call.params:
        if name in call.op.sizes:
            _walk_sizes(value, found)


def _walk_sizes(value: object, found: list) -> None:
    if isinstance(value, tuple):
        for v in value:
            _walk_sizes(v, found)
    elif isinstance(value, int) and value != 1:
        found.append(value)


class _Generaliser:
    """Rebuilds an expression on symbols: unknown sizes, numbers as 0-d inputs."""

    def __init__(self, expression: Expression):
        self.expression, self.exact = expression, expression.exact
        self.inputs: list[Variable] = []
        self.atoms: list = []
        self.slots: list[Slot] = []
        self.sized: list[int] = []

    def run(self) -> General:
        done: dict[Variable, Variable] = {}
        for i, v in enumerate(self.expression.order):
            if v.value is not UNSET:
                t = v.type if self.exact else _unknown_type(v.type)
                done[v] = self.add(t, Slot(i), v.name)
            else:
                done[v] = self.node(i, v, done)
        for i in range(0, len(self.atoms), _CHUNK):
            shape = (*self.atoms[i : i + _CHUNK], 0)
            self.inputs.append(symbol(TensorType(dtypes.bool_, shape), "sizes"))
        graph = Graph(self.inputs, [done[v] for v in self.expression.nodes])
        return General(graph, self.slots, self.sized)

    def add(self, t: TensorType, slot: Slot, name: str | None = None) -> Variable:
        self.slots.append(slot)
        self.inputs.append(symbol(t, name))
        return self.inputs[-1]

    def node(self, i: int, v: Variable, done: dict) -> Variable:
        operands = []
        for j, x in enumerate(v.expr[1:], start=1):
            if x.__class__ is Variable:
                operands.append(done[x])
            elif self.exact or baked(v, x):
                operands.append(x)
            else:
                dtype = _scalar_dtype(v, x)
                operands.append(self.add(TensorType(dtype, ()), Slot(i, j, dtype)))
        call = v.call
        if v.op.sizes and not self.exact:
            self.sized.append(i)
            sizes = v.op.sizes
            call = Call(v.op, tuple((n, self.size(x) if n in sizes else x) for n, x in call.params))
        out = v.op.apply(call, tuple(operands))
        out.site = v.site
        return out

    def size(self, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(self.size(v) for v in value)
        if isinstance(value, int) and value != 1:
            self.atoms.append(unknown(f"size {len(self.atoms)}", not_one=True))
            return self.atoms[-1]
        return value


def _unknown_type(t: TensorType) -> TensorType:
    return t.with_shape(tuple(1 if s == 1 else unknown("n", not_one=True) for s in t.shape))


def generalise(expression: Expression) -> General:
    """Return the graph that stands for every expression with the same key."""
    return _Generaliser(expression).run()
