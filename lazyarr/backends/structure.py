"""The structural key of a recorded expression, and the program that serves all with that key.

In the key: ops, static parameters, dtypes, ranks, which sizes are 1, sharing, outputs. Not in it:
data, numbers beside arrays, slice bounds, and sizes. `generalise` makes the graph that a key stands
for: sizes become unknowns and numbers become 0-d inputs, whose values are gathered from each
expression.
"""

import operator
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lazyarr.errors import ConcretizationError
from lazyarr.graph import dtypes
from lazyarr.graph.node import UNSET, Call, Variable, symbol
from lazyarr.graph.shapes import Size, unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType, code_of

# An exponent of this table is part of the key, and so of the program: passes may use it.
EXPONENTS = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4})
_CHUNK = 2  # sizes that one phantom input carries; their product must fit 63 bits

# The words of a key: a node is its place in the order, a number beside arrays is one of these.
LEAF = -1
NUMBERS = {bool: -1, int: -2, float: -3, complex: -4, Size: -5}
BAKED = -6  # and below: a number that is part of the key


@dataclass
class Expression:
    """A recorded expression cut at nodes that have values.

    What another thread may change meanwhile was read once: `values` and `exprs`. `exact`: sizes
    must stay as they are, because loops hold bodies of fixed types.
    """

    nodes: tuple[Variable, ...]
    order: list[Variable]  # pending nodes and the valued ones they read, in order
    exact: bool = False
    uses: dict[Variable, int] = field(default_factory=dict)  # by pending nodes of the order
    values: dict[Variable, object] = field(default_factory=dict)  # of the nodes that have one
    exprs: dict[Variable, tuple] = field(default_factory=dict)  # of the pending nodes

    @property
    def inputs(self) -> list[Variable]:
        """The nodes that have values."""
        return [v for v in self.order if v in self.values]


def pending(nodes: Sequence[Variable]) -> Expression:
    """Return what must be computed for nodes, and the valued nodes it stops at.

    Raises ConcretizationError when a symbol stands below.
    """
    uses: dict[Variable, int] = dict.fromkeys(nodes, 0)
    values: dict[Variable, object] = {}
    exprs: dict[Variable, tuple] = {}
    stack = list(uses)
    exact = False
    while stack:
        v = stack.pop()
        expr = v.expr  # before the value: a node loses its expression after it got a value
        value = v.value
        if value is not UNSET:
            values[v] = value
            continue
        if expr is None:
            raise ConcretizationError(
                f"the expression depends on the symbol {v.name or v.type!r}, made at "
                f"{v.where_made()}"
            )
        exprs[v] = expr
        if v.type.__class__ is TupleType:
            exact = True
        for x in expr:
            if x.__class__ is Variable:
                if x in uses:
                    uses[x] += 1
                else:
                    uses[x] = 1
                    stack.append(x)
    return Expression(tuple(nodes), sorted(uses, key=_sequence), exact, uses, values, exprs)


_sequence = operator.attrgetter("seq")


def baked(call: Call, x: object) -> bool:
    """Tell whether a number beside an array is part of the key."""
    return call.op.name == "pow" and x.__class__ is not bool and x in EXPONENTS


def number_word(call: Call, x: object) -> int:
    """Return the word of a number beside arrays."""
    if call.op.name == "pow" and baked(call, x):
        return BAKED - code_of((x.__class__, repr(x)))
    return NUMBERS[x.__class__]


def key_of(expression: Expression) -> object:
    """Return the structure of an expression; equal keys share one program.

    The key is bytes, words of 32 bits: how many nodes and outputs there are; for each node its
    call, its type, how many operands it has, and these; then the outputs. The dims of a type, and
    the names in a call, are numbered as they are met.
    """
    if expression.exact:
        return _exact_key(expression)
    exprs = expression.exprs
    place: dict[Variable, int] = {}
    dims: dict[int, int] = {}
    words = [len(expression.order), len(expression.nodes)]
    for i, v in enumerate(expression.order):
        place[v] = i
        expr = exprs.get(v)
        words += (LEAF if expr is None else expr[0].code, v.type.code)
        if v.type.named:
            words += [dims.setdefault(d, len(dims)) for d in v.type.dim_codes]
        if expr is None:
            continue
        call = expr[0]
        words += [dims.get(name, -1) for name in call.names]
        words.append(len(expr) - 1)
        for x in expr[1:]:
            words.append(place[x] if x.__class__ is Variable else number_word(call, x))
    words += [place[v] for v in expression.nodes]
    return array("i", words).tobytes()


def _exact_key(expression: Expression) -> tuple:
    """The structure with all sizes and numbers, for expressions that hold loops."""
    number: dict[Variable, int] = {}
    rows: list = ["exact"]
    for v in expression.order:
        number[v] = len(number)
        expr = expression.exprs.get(v)
        if expr is None:
            rows.append(v.type)
            continue
        operands = [
            number[x] if x.__class__ is Variable else (x.__class__, repr(x)) for x in expr[1:]
        ]
        rows.append((expr[0], v.type, *operands))
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
        order, exprs = expression.order, expression.exprs
        values: list = []
        for slot in self.slots:
            v = order[slot.node]
            if slot.operand is None:
                values.append(expression.values[v])
            else:
                values.append(as_argument(exprs[v][slot.operand], slot.dtype))
        return values + phantoms([exprs[order[i]][0] for i in self.sized])


def as_argument(x: object, dtype: np.dtype | None) -> object:
    """Return a number as a program takes it."""
    exactly = x.__class__ is float and dtype is dtypes.float64
    return x if exactly else np.asarray(x).astype(dtype)


def phantoms(calls: Sequence[Call]) -> list[np.ndarray]:
    """Return the arrays without elements that carry the sizes of calls."""
    sizes: list = []
    for call in calls:
        _collect_sizes(call, sizes)
    return [np.empty((*sizes[i : i + _CHUNK], 0), bool) for i in range(0, len(sizes), _CHUNK)]


def scalar_dtype(type_: TensorType, expr: tuple, x: object) -> np.dtype:
    """Return the dtype that a number takes in a node of a type and an expression."""
    op, operands = expr[0].op, expr[1:]
    if op.kind == "elementwise":
        position = next(i for i, v in enumerate(operands) if v is x)
        if op.promoted is None or position in op.promoted:
            types = tuple(v.type if v.__class__ is Variable else v.__class__ for v in operands)
            return op.compute_dtype_of(types)
    if op.name == "full" or "weak_numbers" in op.facts:
        return type_.dtype
    arrays = [v for v in operands if v.__class__ is Variable]
    beside = op.kind == "composite" and op.accepts != "all"  # not a shift or an index
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
            if v in self.expression.values:
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
        expr, operands = self.expression.exprs[v], []
        call = expr[0]
        for j, x in enumerate(expr[1:], start=1):
            if x.__class__ is Variable:
                operands.append(done[x])
            elif self.exact or baked(call, x):
                operands.append(x)
            else:
                dtype = scalar_dtype(v.type, expr, x)
                operands.append(self.add(TensorType(dtype, ()), Slot(i, j, dtype)))
        if call.op.sizes and not self.exact:
            self.sized.append(i)
            sizes = call.op.sizes
            parameters = ((n, self.size(x) if n in sizes else x) for n, x in call.params)
            call = Call(call.op, tuple(parameters))
        out = call.op.apply(call, tuple(operands))
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
