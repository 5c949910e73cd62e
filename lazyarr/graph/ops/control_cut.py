"""What a loop keeps for its derivative: the cheapest values from which the rest is made again.

Storing an element costs about 1 ns; making it again costs what its op costs. The cheapest choice is
a minimum cut: each node is an edge from its computation to its availability with the cost of
storing it, the source pays for computing it, and what the derivative reads must be available.
"""

from collections import deque
from collections.abc import Iterable

from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import toposort
from lazyarr.graph.types import TensorType, TupleType

NEVER = 1e18
TINY = 1e-9  # capacity that counts as none
UNKNOWN = 64  # elements along an axis of unknown size
DEAR = 4.0  # ns for an exp or a log
LARGEST = 4000  # nodes up to which the cut is exact; beyond, everything read is stored


def elements(t: TensorType) -> float:
    """Return the number of elements of a type, unknown sizes by a hint."""
    total = 1.0
    for s in t.shape:
        total *= s if isinstance(s, int) else UNKNOWN
    return total


def compute_cost(v: Variable) -> float:
    """Return the ns that computing a node takes."""
    kind = v.op.kind
    if isinstance(v.type, TupleType):
        p = v.params
        if "body" not in p:
            return NEVER
        steps = p["length"] if isinstance(p["length"], int) else UNKNOWN
        inner = sum(compute_cost(x) for x in p["body"].toposort() if x.expr is not None)
        return min(steps * inner, NEVER)
    if v.op.name == "pick" or kind in ("movement", "creation"):
        return 0.01
    size = elements(v.type)
    for x in v.inputs:
        if x.__class__ is Variable and isinstance(x.type, TensorType):
            size = max(size, elements(x.type))
    if kind == "elementwise" and v.op.formula is not None:
        return size * _formula_cost(v)
    if kind in ("library", "contraction"):
        return size * 8
    return size * 0.5


def dear_cost(v: Variable) -> float:
    """Return the ns that divisions, roots and functions of a node take."""
    if v.op.kind != "elementwise" or v.op.formula is None:
        return 0.0
    return elements(v.type) * _formula_cost(v, {"div": 2.0, "sqrt": 2.0}, 0.0, 0.0)


_WEIGHTS = {"add": 0.4, "sub": 0.4, "mul": 0.4, "div": 2.0, "sqrt": 2.0, "neg": 0.2, "select": 0.4}


def _formula_cost(
    v: Variable, weights: dict[str, float] = _WEIGHTS, other: float = 0.4, base: float = 0.2
) -> float:
    compute = v.op.compute_dtype(v)
    args = [
        scalar.var(i, x.type.dtype if x.__class__ is Variable and v.op.promoted is not None
                   and i not in v.op.promoted else compute)
        for i, x in enumerate(v.inputs)
    ]  # fmt: skip
    total, seen = base, set()
    stack = [v.op.formula(*args, **v.params)]
    while stack:
        e = stack.pop()
        if id(e) in seen or not isinstance(e, scalar.Scalar):
            continue
        seen.add(id(e))
        if e.prim in ("var", "const"):
            continue
        total += weights.get(e.prim, DEAR if e.prim in _DEAR_PRIMS else other)
        stack.extend(e.args)
    return total


_DEAR_PRIMS = frozenset(
    "exp expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh "
    "atanh hypot erf erfc lgamma digamma trigamma pow".split()
)


def store_cost(v: Variable) -> float:
    """Return the ns that storing a node takes; what a recomputed loop stacks is never stored."""
    if isinstance(v.type, TupleType):
        return NEVER
    if v.op is not None and v.op.name == "pick":
        p = v.inputs[0].params
        if p.get("recompute") and v.params["index"] >= p["n_carry"]:
            return NEVER
    return elements(v.type)


def cheapest_cut(
    needed: Iterable[Variable],
    carries: Iterable[Variable],
    free: set[Variable],
    captures: set[Variable],
) -> list[Variable]:
    """Return the nodes to store so that `needed` can be made from them and from what is free.

    What depends on captures alone is the same in every step: it costs nothing.
    """
    carries = set(carries) - free
    needed = [v for v in needed if v not in free]
    order = toposort(needed, stop=[*free, *carries])
    moving = {v for v in order if v in carries or (v in free and v not in captures)}
    for v in order:
        if any(x in moving for x in v.inputs if x.__class__ is Variable):
            moving.add(v)
    walked = {v for v in moving if v not in free}
    if len(walked) > LARGEST:
        return [v for v in needed if v in walked]
    flow = _Flow()
    for v in walked:
        flow.edge((v, 0), (v, 1), store_cost(v))
        flow.edge("source", (v, 0), NEVER if v in carries else compute_cost(v))
        if v not in carries:
            for x in v.inputs:
                if x.__class__ is Variable and x in walked:
                    flow.edge((x, 1), (v, 0), NEVER)
    for v in needed:
        if v in walked:
            flow.edge((v, 1), "sink", NEVER)
    side = flow.source_side()
    return [v for v in order if v in walked and (v, 0) in side and (v, 1) not in side]


class _Flow:
    """Maximum flow: paths of one length at a time, each edge looked at once for a length."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {"source": 0, "sink": 1}
        self.edges: list[list[int]] = [[], []]  # by node: numbers of its edges
        self.ends: list[int] = []  # by edge; edge e ^ 1 is the one back
        self.left: list[float] = []

    def edge(self, a: object, b: object, capacity: float) -> None:
        """Add an edge."""
        for x, y, room in ((a, b, capacity), (b, a, 0.0)):
            self.edges[self._number(x)].append(len(self.ends))
            self.ends.append(self._number(y))
            self.left.append(room)

    def _number(self, node: object) -> int:
        found = self.numbers.get(node)
        if found is None:
            found = self.numbers[node] = len(self.edges)
            self.edges.append([])
        return found

    def source_side(self) -> set:
        """Saturate, and return what the source still reaches."""
        while True:
            level = self._levels()
            if level[1] < 0:
                return {node for node, i in self.numbers.items() if level[i] >= 0}
            self._saturate(level)

    def _levels(self) -> list[int]:
        level = [-1] * len(self.edges)
        level[0] = 0
        work = deque([0])
        while work:
            a = work.popleft()
            for e in self.edges[a]:
                b = self.ends[e]
                if level[b] < 0 and self.left[e] > TINY:
                    level[b] = level[a] + 1
                    work.append(b)
        return level

    def _saturate(self, level: list[int]) -> None:
        """Augment along shortest paths until there is none of this length."""
        looked = [0] * len(self.edges)
        path: list[int] = []
        a = 0
        while True:
            if a == 1:
                least = min(self.left[e] for e in path)
                full = len(path)
                for k, e in enumerate(path):
                    self.left[e] -= least
                    self.left[e ^ 1] += least
                    if self.left[e] <= TINY and k < full:
                        full = k
                del path[full:]
                a = self.ends[path[-1]] if path else 0
                continue
            while looked[a] < len(self.edges[a]):
                e = self.edges[a][looked[a]]
                if self.left[e] > TINY and level[self.ends[e]] == level[a] + 1:
                    break
                looked[a] += 1
            if looked[a] < len(self.edges[a]):
                path.append(self.edges[a][looked[a]])
                a = self.ends[path[-1]]
            elif path:
                a = self.ends[path.pop() ^ 1]
                looked[a] += 1
            else:
                return
