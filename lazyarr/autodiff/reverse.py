"""Reverse mode: cotangents flow from the outputs of a graph to its inputs.

>>> import numpy as np
>>> from lazyarr.graph.node import symbol
>>> from lazyarr.graph.types import TensorType
>>> x = symbol(TensorType("float64", (3,)), "x")
>>> y = op.sum(op.multiply(x, x))
>>> pullback([y], [x], [op.full((), 1.0)])[0].type
float64[3]
"""

from collections.abc import Sequence
from typing import Any

from lazyarr.errors import GradientError
from lazyarr.graph.node import Variable
from lazyarr.graph.op import NoGradient
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline, toposort
from lazyarr.graph.types import TupleType


def carries_derivative(node: Variable) -> bool:
    """Tell whether a value is floating, so that it can carry a derivative."""
    t = node.type
    if isinstance(t, TupleType):
        return any(x.dtype.kind in "fc" for x in t.types)
    return hasattr(t, "dtype") and t.dtype.kind in "fc"


def varied(order: Sequence[Variable], wrt: Sequence[Variable]) -> set[Variable]:
    """Return the nodes of an order through which a derivative by `wrt` can flow."""
    found = {v for v in wrt if carries_derivative(v)}
    for v in order:
        if v in found or v.expr is None or v.op.jvp == "zero" or not carries_derivative(v):
            continue
        if any(x in found for x in v.inputs if x.__class__ is Variable):
            found.add(v)
    return found


class Context:
    """What a control op's vjp receives: derivatives of graphs, without knowing autodiff.

    `alive`: the nodes through which a derivative can flow, None where all may.
    """

    def __init__(self, alive: set[Variable] | None = None):
        self.alive = alive

    def wants(self, x: object) -> bool:
        """Tell whether the cotangent of an operand is of use."""
        return self.alive is None or x in self.alive

    @staticmethod
    def seeded(
        outputs: Sequence[Variable],
        wrt: Sequence[Variable],
        cotangents: Sequence[Variable],
        start: dict[Variable, Variable],
    ) -> list[Variable]:
        """Return cotangents of independent nodes, added to what some of them start with."""
        found = pullback(outputs, wrt, cotangents, stop=True, start=start)
        return [
            op.zeros(x.shape, dtype=x.dtype) if g is None else g
            for x, g in zip(wrt, found, strict=True)
        ]

    @staticmethod
    def pullback(
        graph: Graph, args: Sequence[Any], cotangents: Sequence[Any], wanted: Sequence[int]
    ) -> list[Variable]:
        """Return cotangents of chosen inputs of a graph at args; None cotangents are zero."""
        outputs = inline(graph, args)
        seeds = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if g is not None]
        wrt = [args[i] for i in wanted]
        found = pullback([y for y, _ in seeds], wrt, [g for _, g in seeds], stop=True)
        return [
            op.zeros(x.shape, dtype=x.dtype) if g is None else g
            for x, g in zip(wrt, found, strict=True)
        ]


class _Cotangents:
    """Sums what arrives at each node; nodes with several outputs keep one sum per output."""

    def __init__(self) -> None:
        self.single: dict[Variable, Variable] = {}
        self.several: dict[Variable, dict[int, Variable]] = {}

    def add(self, node: Variable, g: Variable) -> None:
        have = self.single.get(node)
        self.single[node] = g if have is None else op.add(have, g)

    def add_pick(self, node: Variable, index: int, g: Variable) -> None:
        slots = self.several.setdefault(node, {})
        slots[index] = op.add(slots[index], g) if index in slots else g

    def of_outputs(self, node: Variable) -> "OutputCotangents":
        """Return a function from output number to its cotangent, zeros where none arrived."""
        return OutputCotangents(node, self.several[node])


class OutputCotangents:
    """The cotangents of a node with several outputs, zeros where none arrived."""

    def __init__(self, node: Variable, slots: dict[int, Variable]):
        self.node, self.slots = node, slots

    def has(self, i: int) -> bool:
        """Tell whether a cotangent arrived at an output."""
        return i in self.slots

    def __call__(self, i: int) -> Variable:
        """Return the cotangent of an output."""
        t: Any = self.node.type.types[i]  # type: ignore[attr-defined]
        return self.slots[i] if i in self.slots else op.zeros(t.shape, dtype=t.dtype)


def pullback(
    outputs: Sequence[Variable],
    wrt: Sequence[Variable],
    cotangents: Sequence[Variable],
    stop: bool = False,
    start: dict[Variable, Variable] | None = None,
) -> list[Variable | None]:
    """Return the cotangent of each `wrt` (None: no dependence) from cotangents of the outputs.

    With `stop`, `wrt` are independent variables even where one is computed from another. `start`
    holds what the cotangents of some of them are added to.
    """
    order = toposort(outputs, stop=wrt if stop else ())
    alive = varied(order, wrt)
    sums = _Cotangents()
    sums.single.update(start or {})
    for y, g in zip(outputs, cotangents, strict=True):
        if y in alive:
            sums.add(y, g)
    ends = set(wrt) if stop else set()
    for node in reversed(order):
        if node.expr is None or node in ends or node not in alive:
            continue
        if node in sums.single or node in sums.several:
            _propagate(node, sums, alive)
    return [sums.single.get(v) for v in wrt]


def _propagate(node: Variable, sums: _Cotangents, alive: set[Variable]) -> None:
    """Send the cotangent of a node to its operands."""
    for x, g in zip(node.inputs, _operand_cotangents(node, sums, alive), strict=True):
        if g is None or x.__class__ is not Variable or x not in alive:
            continue
        if isinstance(g, tuple):  # a pick: ("pick", index, cotangent)
            sums.add_pick(x, g[1], g[2])
        else:
            sums.add(x, _fitted(g, x))


def _operand_cotangents(node: Variable, sums: _Cotangents, alive: set[Variable]) -> Sequence[Any]:
    rule: Any = node.op.vjp
    if isinstance(rule, NoGradient):
        raise GradientError(
            f"{node.op.name} has no derivative: {rule.reason}. Made at {node.where_made()}; "
            "wrap its operand in stop_gradient if it is a constant here."
        )
    if isinstance(node.type, TupleType):
        found: Sequence[Any] = rule(
            Context(alive), sums.of_outputs(node), node, *node.inputs, **node.params
        )
        return found
    g = sums.single[node]
    if rule is None:
        return _through_expansion(node, g)
    found = rule(g, node, *node.inputs, **node.params)
    return found


def _through_expansion(node: Variable, g: Variable) -> list[Variable | None]:
    """The derivative of a composite without a rule is that of its expansion."""
    if node.op.expand is None:
        raise GradientError(f"{node.op.name} declares no derivative; give its Op a vjp.")
    inside = node.op.expand(*node.inputs, **node.params)
    wrt = list(dict.fromkeys(x for x in node.inputs if x.__class__ is Variable))
    found = dict(zip(wrt, pullback([inside], wrt, [g], stop=True), strict=True))
    return [found.pop(x, None) for x in node.inputs]  # a repeated operand gets all of it once


def _fitted(g: Variable, x: Variable) -> Variable:
    """Undo broadcasting and casting, so that a cotangent has the type of its variable."""
    shape, want = g.shape, x.shape
    if shape is not want and not _same_sizes(shape, want):
        g = op.sum_to(g, want)
    if g.dtype.kind == "c" and x.dtype.kind != "c":
        g = op.real(g)
    return g if g.dtype == x.dtype else op.astype(g, x.dtype)


def _same_sizes(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(s is t or s == t for s, t in zip(a, b, strict=True))
