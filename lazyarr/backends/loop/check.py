"""What well-formed index notation and well-formed loop IR are.

Tests run both checkers on every plan. Both raise `GraphError` that names the statement or node at
fault.
"""

from collections.abc import Iterable

from lazyarr.backends.loop import ir
from lazyarr.backends.loop.affine import Affine, Axis
from lazyarr.backends.loop.notation import (
    Access,
    Buffer,
    Position,
    Repeat,
    Routine,
    Statement,
    reads,
    writes,
)
from lazyarr.backends.loop.order import walk
from lazyarr.backends.loop.plan import Plan
from lazyarr.errors import GraphError
from lazyarr.graph.scalar import PRIMS, Scalar

_MIXED = ("select", "cast", "copy")


def check(plan: Plan) -> None:
    """Check the index notation and the loop IR of a plan."""
    check_steps(plan.program.steps, set(), set())
    for f in plan.functions:
        _Function(f).run()


def _demand(holds: object, what: str, where: object) -> None:
    if not holds:
        raise GraphError(f"loop family: {what}: {where!r:.300}")


# -- index notation -------------------------------------------------------------------------------


def check_steps(steps: Iterable, ready: set[Buffer], outer: set[Axis]) -> None:
    """Check statements in order: what they read is written before, their axes are their own."""
    for step in steps:
        for buffer in reads(step) - (writes(step) if isinstance(step, Repeat) else set()):
            known = buffer.kind in ("input", "const") or buffer in ready
            _demand(known, f"{buffer.name} is read before it is written", step)
        if isinstance(step, Repeat):
            inner = ready | writes(step)
            check_steps([*step.body, *step.updates], inner, outer | {step.axis})
        elif isinstance(step, Statement):
            check_statement(step, outer)
        else:
            _demand(isinstance(step, Routine), "not a step", step)
        for buffer in writes(step):
            _demand(buffer.kind in ("temp", "output"), "writes an input", step)
        ready |= writes(step)


def check_statement(s: Statement, outer: set[Axis]) -> None:
    """Check one statement: dtypes, ranks, axes."""
    own = set(s.axes)
    _demand(len(own) == len(s.axes), "an axis twice", s)
    _demand(set(s.reduced) <= own, "reduces over a foreign axis", s)
    _demand(s.running is None or s.running in own, "runs along a foreign axis", s)
    written = s.argument if s.argument is not None else s.value
    _demand(written.dtype == s.buffer.dtype, "stores another dtype", s)
    _check_access(s.target, own | outer, s)
    plain = {key for i in s.target.index for key, _ in i.terms}
    _demand(not plain & set(s.reduced), "the target varies along a reduced axis", s)
    for e in walk(s.expressions()):
        if e.prim != "var":
            continue
        name = e.args[0]
        if isinstance(name, Access):
            _check_access(name, own | outer, s)
            _demand(e.dtype == name.buffer.dtype, "reads another dtype", s)
        else:
            _demand(isinstance(name, Position), "an unknown variable", s)
            _check_axes(name.index, own | outer, s)


def _check_access(a: Access, axes: set[Axis], s: Statement) -> None:
    _demand(len(a.index) == len(a.shape), "an index of another rank", s)
    for i in a.index:
        _check_axes(i, axes, s)


def _check_axes(index: Affine, axes: set[Axis], s: Statement) -> None:
    for key, _ in index.terms:
        _demand(not isinstance(key, Axis) or key in axes, "an index uses a foreign axis", s)


# -- loop IR --------------------------------------------------------------------------------------


class _Function:
    """Checks one function: definitions before uses, dtypes, what a simd loop may hold."""

    def __init__(self, f: ir.Function):
        self.f = f
        self.names: set[str] = set()
        self.buffers = set(f.buffers)

    def run(self) -> None:
        """Check the whole body."""
        self.body(self.f.body, frozenset(), frozenset(), None)

    def body(
        self, nodes: list, known: frozenset, registers: frozenset, loop: ir.For | None
    ) -> None:
        """Check a body under the locals and registers that are known around it."""
        values, changing = set(known), set(registers)
        for node in nodes:
            for a in _atoms(node):
                fine = a.prim == "const" or a in values or a in changing
                _demand(fine, f"{a} is used before it is defined", node)
            if isinstance(node, ir.Let | ir.Load | ir.Init):
                self._define(node.local, node)
                (changing if isinstance(node, ir.Init) else values).add(node.local)
            if isinstance(node, ir.For):
                self._for(node, values, changing, loop)
            else:
                self._node(node, changing, loop)

    def _define(self, local: Scalar, node: object) -> None:
        name = local.args[0].name
        _demand(name not in self.names, f"{name} is defined twice", node)
        self.names.add(name)

    def _for(self, node: ir.For, values: set, changing: set, loop: ir.For | None) -> None:
        _demand(loop is None or loop.kind != "simd", "a loop inside a simd loop", node)
        _demand(node.extent.dtype == ir.INT64, "an extent that is no int64", node)
        outside = set(self.names)
        self._define(node.counter, node)
        self.body(node.body, frozenset(values | {node.counter}), frozenset(changing), node)
        self.names = outside  # two loops may hold the same body

    def _node(self, node: object, changing: set, loop: ir.For | None) -> None:
        simd = loop is not None and loop.kind == "simd"
        if isinstance(node, ir.Let):
            _check_let(node)
        elif isinstance(node, ir.Load | ir.Store | ir.Update):
            _demand(node.offset.dtype == ir.INT64, "an offset that is no int64", node)
            value = node.local if isinstance(node, ir.Load) else node.value
            _demand(value.dtype == node.buffer.dtype, "memory of another dtype", node)
            _demand(node.buffer in self.buffers, "a buffer the function does not list", node)
        elif isinstance(node, ir.Accumulate):
            _demand(node.local in changing, "accumulates into no register", node)
            _demand(node.value.dtype == node.local.dtype, "accumulates another dtype", node)
            if simd:
                _demand(
                    (node.local, node.monoid) in loop.reductions, "not a listed reduction", node
                )
        elif isinstance(node, ir.Fail | ir.Invoke | ir.Break):
            _demand(not simd, "leaves a simd loop", node)
            _demand(loop is not None or not isinstance(node, ir.Break), "leaves no loop", node)


def _check_let(node: ir.Let) -> None:
    e = node.value
    _demand(e.dtype == node.local.dtype, "defines another dtype", node)
    if e.prim in PRIMS:
        _demand(len(e.args) == PRIMS[e.prim].arity, "another arity", node)
        if e.prim not in _MIXED:
            _demand(len({a.dtype for a in e.args}) == 1, "operands of mixed dtypes", node)
        if e.prim == "select":
            _demand(e.args[1].dtype == e.args[2].dtype == e.dtype, "sides of mixed dtypes", node)
    else:
        known = e.prim in ("cast", "copy", "dim") or e.prim in ir.INDEX_PRIMS
        _demand(known, "an unknown primitive", node)


def _atoms(node: object) -> list[Scalar]:
    """Return the atoms that a node uses."""
    if isinstance(node, ir.Let):
        return [] if node.value.prim == "dim" else list(node.value.args)
    if isinstance(node, ir.For):
        return [node.extent, *([] if node.work is None else [node.work])]
    if isinstance(node, ir.Invoke):
        return list(node.sizes)
    names = ("offset", "value", "condition")
    return [getattr(node, name) for name in names if hasattr(node, name)]
