"""Graph -> index notation: roots become statements, everything else is inlined into them.

One `Scope` lowers one graph: the program, or the body of a scan inside it. Views say where the
stored nodes lie; `element` computes any node at any index by the rules.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lazyarr.backends.loop import rules
from lazyarr.backends.loop.affine import ZERO, Affine, Axis, of
from lazyarr.backends.loop.notation import Access, Buffer, Statement
from lazyarr.backends.loop.roots import Roots, is_view
from lazyarr.backends.loop.sizes import Sizes
from lazyarr.errors import BackendError
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.op import Check
from lazyarr.graph.scalar import Scalar
from lazyarr.graph.traverse import Graph, clients

UPDATES = ("set_at", "add_at", "take_set", "take_add")


@dataclass(frozen=True)
class View:
    """Where a stored value lies: a buffer seen in a shape, with leading indices fixed.

    A view of a part of a longer first axis has the length of that and where the part starts.
    """

    buffer: Buffer
    shape: tuple
    prefix: tuple[Affine, ...] = ()
    lead: tuple = ()
    longer: object = None
    start: object = 0

    def access(self, index: Sequence[Affine]) -> Access:
        """Return the access of one element."""
        index, shape = tuple(index), self.shape
        if self.longer is not None:
            index, shape = (index[0] + self.start, *index[1:]), (self.longer, *shape[1:])
        return Access(self.buffer, (*self.prefix, *index), (*self.lead, *shape))

    def reshaped(self, shape: tuple) -> "View":
        """Return the same memory in another shape; a part of an axis has its own."""
        if self.longer is not None:
            return replace(self, shape=(self.shape[0], *shape[1:]))
        return View(self.buffer, shape, self.prefix, self.lead)

    def part(self, start: object, length: object) -> "View":
        """Return the view of a part of the first axis."""
        longer = self.shape[0] if self.longer is None else self.longer
        shape = (length, *self.shape[1:])
        return replace(self, shape=shape, longer=longer, start=self.start + start)

    def at(self, i: Affine) -> "View":
        """Return the view of one element along the first axis."""
        longer = self.shape[0] if self.longer is None else self.longer
        return View(
            self.buffer, self.shape[1:], (*self.prefix, i + self.start), (*self.lead, longer)
        )


@dataclass(repr=False)
class Program:
    """The result of lowering: statements in a valid order, and the buffers they use."""

    graph: Graph
    sizes: Sizes
    steps: list = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    checks: list[tuple[object, str]] = field(default_factory=list)
    costs: dict[Variable, int] = field(default_factory=dict)  # inline cost of each node
    why: dict[Buffer, str] = field(default_factory=dict)  # why something is stored

    def buffer(self, name: str, dtype: np.dtype, shape: tuple, **fields: object) -> Buffer:
        """Make a buffer of the program."""
        out = Buffer(f"{name}{len(self.buffers)}", np.dtype(dtype), shape, **fields)
        self.buffers.append(out)
        return out

    def code(self, error: object, message: str) -> int:
        """Return the positive code of a check."""
        if (error, message) not in self.checks:
            self.checks.append((error, message))
        return self.checks.index((error, message)) + 1


class Scope:
    """Lowers one graph into steps of a program."""

    def __init__(self, program: Program, graph: Graph, forced: Iterable[Variable] = ()):
        self.program, self.graph, self.sizes = program, graph, program.sizes
        self.forced = forced
        self.views: dict[Variable, View] = {}
        self.targets: dict[object, View] = {}
        self.parts: dict[Variable, set[int]] = {}  # joins -> operands computed where they join
        self.given: dict[Variable, tuple[Scope, Variable, Affine]] = {}  # xs that a step computes
        self.order = graph.toposort()
        roots = Roots(self.order, graph.outputs, self.sizes)
        self.roots = roots.choose(forced)
        self.why = roots.why
        program.costs.update(roots.costs)
        self.users: dict[Variable, int] = {}
        for node in self.order:
            for x in node.inputs:
                if x.__class__ is Variable:
                    self.users[x] = self.users.get(x, 0) + 1
        self.steps: list = []
        self.late: list[tuple[Variable, View]] = []  # results to copy where an output wants them
        self._checks: list[tuple[Scalar, int]] = []
        self._shapes: dict[Variable, tuple] = {}

    # -- what rules and root builders ask ---------------------------------------------------------

    def shape(self, node: Variable) -> tuple:
        """Return the canonical shape of a node."""
        found = self._shapes.get(node)
        if found is None:
            found = self._shapes[node] = self.sizes.shape(node)
        return found

    def axes(self, shape: Iterable, name: str = "i") -> tuple[tuple[Axis, ...], tuple[Affine, ...]]:
        """Return fresh axes for the sizes that are not 1, and the index over all of them."""
        axes, index = [], []
        for k, s in enumerate(shape):
            if s == 1:
                index.append(ZERO)
            else:
                axes.append(Axis(s, f"{name}{k}"))
                index.append(of(axes[-1]))
        return tuple(axes), tuple(index)

    def add_check(self, holds: Scalar, check: Check) -> None:
        """Note a predicate that must hold wherever the current statement is computed."""
        self._checks.append((holds, self.program.code(check.error, check.message)))

    def element(self, node: Variable, index: tuple, memo: dict, deep: bool = False) -> Scalar:
        """Return the scalar of a node at an index; `deep` computes a root instead of reading it."""
        goal = (node, index)
        stack: list = [(goal, self._start(node, index, deep))]
        sent: Scalar | None = None
        while stack:
            key, rule = stack[-1]
            if isinstance(rule, Scalar):
                memo[key] = sent = rule
                stack.pop()
                continue
            try:
                request = rule.send(sent)
            except StopIteration as done:
                memo[key] = sent = done.value
                stack.pop()
                continue
            if request in memo:
                sent = memo[request]
            else:
                stack.append((request, self._start(*request, False)))
                sent = None
            # a finished request is sent on the next turn of its asker
        return memo[goal]

    def _start(self, node: Variable, index: tuple, deep: bool):
        if node in self.given:
            outer, whole, i = self.given[node]
            return outer.element(whole, (i, *index), {})
        if not deep and (view := self.view(node)) is not None:
            return scalar.var(view.access(index), node.dtype)
        if node.op is None:
            if node.is_data and node.ndim == 0:
                return scalar.const(node.value.item(), node.dtype)
            raise BackendError(f"{node!r} is not an input of the graph.")
        rule = rules.rule_of(node)
        if rule is None:
            raise BackendError(f"the loop family cannot lower {node.op.name} inline.")
        return rule(self, node, index)

    def view(self, node: Variable) -> View | None:
        """Return where a node lies in memory, None when it is computed inline."""
        found = self.views.get(node)
        if found is None and node.op is not None and is_view(node, self.sizes):
            found = self.views[node] = self._alias(node)
        if found is None and node.is_data and node.ndim:
            found = self.views[node] = self._baked(node)
        return found

    def _alias(self, node: Variable) -> View:
        chain = []
        while node not in self.views and is_view(node, self.sizes):
            chain.append(node)
            if node.op.name == "pick":
                break
            node = node.inputs[0]
        for v in reversed(chain):
            if v.op.name == "pick":
                self.views[v] = self.views[v.inputs[0], v.params["index"]]
            else:
                self.views[v] = self.view(v.inputs[0]).reshaped(self.shape(v))
        return self.views[chain[0]]

    def _baked(self, node: Variable) -> View:
        value = np.ascontiguousarray(node.value)
        buffer = self.program.buffer("k", node.dtype, value.shape, kind="const", value=value)
        return View(buffer, value.shape)

    def store(self, node: object) -> View:
        """Return where a new root lies: where an output wants it, or a fresh buffer."""
        view = self.targets.get(node)
        if view is None:
            view = View(self.program.buffer("m", node.dtype, self.shape(node)), self.shape(node))
        self.views[node] = view
        if why := self.why.get(node):
            self.program.why[view.buffer] = why
        return view

    def emit(
        self,
        view: View,
        index: Sequence[Affine],
        axes: tuple[Axis, ...],
        value: Scalar,
        memo: dict | None = None,
        **fields: object,
    ) -> None:
        """Append a statement, with the checks met while its value was made."""
        inline = (node for node, _ in (memo or {}) if node.op is not None)
        nodes = tuple(dict.fromkeys(v for v in inline if v not in self.views))
        self.steps.append(
            Statement(
                view.access(index), axes, value, checks=tuple(self._checks), nodes=nodes, **fields
            )
        )
        self._checks.clear()

    # -- the walk ---------------------------------------------------------------------------------

    def run(self, build: Callable) -> list:
        """Lower every root in order by `build(scope, node)` and return the steps."""
        self._place_parts()
        for node in self.order:
            if node in self.roots and (node not in self.views or node in self.parts):
                build(self, node)
        return self.steps

    def _place_parts(self) -> None:
        """Let loops stack what is joined where it is joined."""
        joins = [v for v in self.order if v in self.roots and v.op.name == "concat"]
        users = clients(self.order) if joins else {}
        for node in joins:
            if node.params["axis"] != 0 or node in self.views:
                continue
            offset: object = 0
            for k, x in enumerate(node.inputs):
                if _is_stack(x) and x.dtype == node.dtype and all(map(_by_element, users[x])):
                    key = (x.inputs[0], x.params["index"])
                    if key not in self.targets:
                        whole = self.views.get(node) or self.store(node)
                        self.targets[key] = whole.part(offset, self.shape(x)[0])
                        self.parts.setdefault(node, set()).add(k)
                offset = offset + self.shape(x)[0]

    def assign(self, node: Variable, view: View) -> bool:
        """Try to let an output be computed in place; False when it must be copied there."""
        while node.op is not None and node not in self.roots and self._is_same(node):
            node = node.inputs[0]
        if node.op is None or node in self.views:
            return False
        if node.op.name == "pick":
            if not node.ndim:  # a carry that stays in a register
                return False
            key: object = (node.inputs[0], node.params["index"])
        elif node in self.roots:
            key = node
        else:
            return False
        if key in self.targets:
            return False
        own = view.reshaped(self.shape(node))
        self.targets[key] = own
        while node in self.roots and self.in_place(node):  # the whole chain of updates lives there
            node = node.inputs[0]
            self.targets[node] = own
        return True

    def _is_same(self, node: Variable) -> bool:
        """Tell whether a node is the memory of its operand under another name."""
        if node.op.name == "specify_shape":
            return node.inputs[0] in self.roots
        return node.op.name == "reshape" and is_view(node, self.sizes)

    def in_place(self, node: Variable) -> bool:
        """Tell whether an update may overwrite its operand: another update, used once."""
        if node.op is None or node.op.name not in UPDATES:
            return False
        x = node.inputs[0]
        own = x.op is not None and x.op.name in UPDATES and x in self.roots
        return own and self.users[x] == 1 and x not in self.graph.outputs


def _is_stack(node: Variable) -> bool:
    """Tell whether a node is what a loop stacks."""
    if node.expr is None or node.op.name != "pick" or node.inputs[0].op.name != "scan":
        return False
    p = node.inputs[0].params
    return p["n_carry"] <= node.params["index"] < len(p["body"].outputs) - p["until"]


def _by_element(node: Variable) -> bool:
    """Tell whether a node reads its operands element by element, wherever they lie."""
    if node.op.name == "scan":
        return not node.inputs[node.params["n_carry"] + node.params["n_xs"] :]
    return node.op.name != "reshape" and node.op.kind in ("elementwise", "reduction", "movement")


def copy_into(scope: Scope, node: Variable, view: View, label: str = "copy") -> None:
    """Append a statement that copies a node to a place."""
    axes, index = scope.axes(scope.shape(node))
    memo: dict = {}
    scope.emit(view, index, axes, scope.element(node, index, memo), label=label)
