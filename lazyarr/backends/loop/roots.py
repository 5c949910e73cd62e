"""Which nodes are stored: the roots. Everything else is computed inline where it is used.

A node is a root when its kind needs memory (reductions, joins, scatters, library calls, loops),
when it is an output, when a consumer needs it in memory, when inlining would repeat dear work (a
value that does not vary along an outer loop), or when the inline expression would grow without
bound.
"""

from collections.abc import Iterable, Sequence

from lazyarr.backends.loop.products import GEMM_LEAST, matrix_product
from lazyarr.backends.loop.sizes import Sizes
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph

LIMIT = 300  # most nodes computed inline in one statement
HOIST_COST = 3  # a value dearer than this is not repeated along an outer loop
SHARE_COST = 6  # a scalar dearer than this is computed once for all its consumers

REPEATED = "dear, and the same for many elements of a consumer"
STORED_KINDS = ("reduction", "cumulative", "contraction", "library", "control")
STORED_OPS = ("concat", "stack", "set_at", "add_at", "take_set", "take_add")


def is_view(node: Variable, sizes: Sizes) -> bool:
    """Tell whether a node is its operand's memory seen in another shape."""
    if node.op is None:
        return False
    return node.op.name == "pick" or (node.op.name == "reshape" and not is_relabel(node, sizes))


def is_relabel(node: Variable, sizes: Sizes) -> bool:
    """Tell whether a reshape only adds or drops axes of size 1."""
    a = [s for s in sizes.shape(node.inputs[0]) if s != 1]
    b = [s for s in sizes.shape(node) if s != 1]
    return len(a) == len(b) and all(x is y or x == y for x, y in zip(a, b, strict=True))


def node_cost(node: Variable) -> int:
    """Return the work of one element of a node, its operands not counted."""
    op = node.op
    if op is None or op.kind in ("movement", "creation"):
        return 0
    if op.kind != "elementwise" or op.formula is None:
        return 1
    compute = op.compute_dtype(node)
    args = []
    for k, x in enumerate(node.inputs):
        own = x.dtype if x.__class__ is Variable else compute
        args.append(scalar.var(k, compute if op.promoted is None or k in op.promoted else own))
    return scalar.cost(op.formula(*args, **node.params))


class Roots:
    """Chooses the roots of one graph (a program or the body of a scan)."""

    def __init__(self, order: Sequence[Variable], outputs: Iterable[Variable], sizes: Sizes):
        self.order, self.sizes = order, sizes
        self.found: set[Variable] = set()
        self.members: dict[Variable, frozenset] = {}
        self.costs: dict[Variable, int] = {}
        self.why: dict[Variable, str] = {}  # reasons, for `explain`
        self._own: dict[object, int] = {}
        self.users: dict[Variable, int] = {}
        for node in order:
            for x in node.inputs:
                if x.__class__ is Variable:
                    self.users[x] = self.users.get(x, 0) + 1
        self.outputs = set(outputs)

    def choose(self, forced: Iterable[Variable] = ()) -> set[Variable]:
        """Return the roots; `forced` are nodes that earlier planning wants stored."""
        self.found.update(v for v in forced if v.op is not None and not is_view(v, self.sizes))
        self.why.update(dict.fromkeys(self.found, "dear, and read in several loops"))
        for node in self.order:
            if node.op is not None:
                self._require(node)
                if self._is_stored(node):
                    self.found.add(node)
                self._measure(node)
        return self.found

    def _is_stored(self, node: Variable) -> bool:
        if is_view(node, self.sizes):
            return False
        if node.op.name == "specify_shape" and node.inputs[0] in self.found:
            return False
        if node.op.kind in STORED_KINDS or node.op.name in STORED_OPS or node in self.outputs:
            return True
        shared_scalar = node.ndim == 0 and self.users.get(node, 0) > 1
        return shared_scalar and self._inline_cost(node) >= SHARE_COST

    def _store(self, node: object, why: str = "") -> None:
        """Demand that an operand lies in memory."""
        if node.__class__ is Variable and node.op is not None and not is_view(node, self.sizes):
            self.found.add(node)
            self.why.setdefault(node, why)
            self.members[node], self.costs[node] = frozenset(), 0

    def _require(self, node: Variable) -> None:
        """Store the operands that this node needs in memory."""
        op, inputs = node.op, node.inputs
        if op.name == "scan":
            first, inner = node.params["n_carry"], self._computed_inside(node)
            for x in inputs[first:]:
                if x not in inner:
                    self._store(x, "scan reads it from memory")
        elif op.kind in ("library", "control") or is_view(node, self.sizes):
            for x in inputs:
                self._store(x, f"{op.name} reads it from memory")
        elif op.name == "take" and self.costs.get(inputs[0], 0) > 0:
            self._store(inputs[0], "its elements are gathered")
        elif op.name in ("take_add", "take_set"):  # values from a vector loop, a bare scatter after
            if self.costs.get(inputs[2], 0) > 0:
                self._store(inputs[2], "a scatter reads it in a loop of its own")
        elif op.name == "contract":
            self._hoist_contract(node)
        elif op.kind == "elementwise":
            shape = self.sizes.shape(node)
            for x in inputs:
                if x.__class__ is Variable and self.costs.get(x, 0) >= HOIST_COST:
                    if varies_inside(self.sizes.shape(x), shape):
                        self._store(x, REPEATED)
        elif op.name == "broadcast_to" and self.costs.get(inputs[0], 0) >= HOIST_COST:
            if varies_inside(self.sizes.shape(inputs[0]), self.sizes.shape(node)):
                self._store(inputs[0], REPEATED)

    def _computed_inside(self, node: Variable) -> set[Variable]:
        """Return the xs of a scan of which a step computes its element: cheap, and cannot fail."""
        p = node.params
        xs = slice(p["n_carry"], p["n_carry"] + p["n_xs"])
        found = {
            x: inside
            for x, inside in zip(node.inputs[xs], p["body"].inputs[xs], strict=True)
            if x in self.members and x not in self.found and not is_view(x, self.sizes)
            and x.expr is not None
            and all(v.op.check is None for v in self.members[x])
            and (self.costs[x] <= HOIST_COST if x.ndim == 1 else _walks_part(x))
        }  # fmt: skip
        if not found:
            return set()
        held = memory_operands(p["body"])
        return {x for x, inside in found.items() if inside not in held}

    def _hoist_contract(self, node: Variable) -> None:
        a_labels, b_labels, out = node.params["spec"]
        if node.dtype.kind in "fc" and matrix_product(*node.inputs, a_labels, b_labels, out):
            sides = (s for x in node.inputs for s in self.sizes.shape(x))
            if not any(isinstance(s, int) and s < GEMM_LEAST for s in sides):
                for x in node.inputs:  # the library reads memory
                    if self.costs.get(x, 0) > 0:
                        self._store(x, "a library routine reads it")
        for x, labels in zip(node.inputs, (a_labels, b_labels), strict=True):
            every = {*a_labels, *b_labels, *out}
            if self.costs.get(x, 0) >= HOIST_COST and every - set(labels):
                self._store(x, REPEATED)

    def _inline_cost(self, node: Variable) -> int:
        total = self._own_cost(node)
        for x in node.inputs:
            if x.__class__ is Variable:
                total += self.costs.get(x, 0)
        return min(total, 1_000_000)

    def _own_cost(self, node: Variable) -> int:
        key = (
            node.call,
            node.type,
            *(x.type if x.__class__ is Variable else 0 for x in node.inputs),
        )
        if key not in self._own:
            self._own[key] = node_cost(node)
        return self._own[key]

    def _measure(self, node: Variable) -> None:
        """Set the inline cost and the inline members of a node, as its consumers see them."""
        if node in self.found or is_view(node, self.sizes):
            self.members[node], self.costs[node] = frozenset(), 0
            return
        parts = {x for x in node.inputs if x.__class__ is Variable}
        members = frozenset((node,)).union(*(self.members.get(x, ()) for x in parts))
        if len(members) > LIMIT:
            self._store(node, "the expression would be too long")
            return
        self.members[node], self.costs[node] = members, self._inline_cost(node)


def _walks_part(x: Variable) -> bool:
    """Tell whether a node only chooses elements along the first axis."""
    if x.op.name not in ("basic_index", "flip"):
        return False
    return all(m.out_axis == d and m.step == 1 and m.start.__class__ is int and m.start == 0
               for d, m in enumerate(x.op.index(x)) if d)  # fmt: skip


def memory_operands(body: Graph) -> set[Variable]:
    """Return what the nodes of a body read as a whole: it must lie in memory."""
    held: set[Variable] = set()
    for v in body.toposort():
        if v.expr is None:
            continue
        first = v.params["n_carry"] if v.op.name == "scan" else 0
        if v.op.kind in ("library", "control", "contraction", "indexing", "cumulative"):
            held.update(x for x in v.inputs[first:] if x.__class__ is Variable)
        elif v.op.name == "reshape":
            held.add(v.inputs[0])
    return held


def varies_inside(inner: Sequence, outer: Sequence) -> bool:
    """Tell whether an operand misses an axis of the result outside one along which it varies."""
    inner = (1,) * (len(outer) - len(inner)) + tuple(inner)
    missing = False
    for a, b in zip(inner, outer, strict=True):
        if a == 1 and b != 1:
            missing = True
        elif a != 1 and missing:
            return True
    return False
