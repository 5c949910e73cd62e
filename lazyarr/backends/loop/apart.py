"""Values that several loops need which cannot be one, known before any loop is made.

What a sum runs over is needed before the sum is there, and what depends on the sum after it: two
loops. Planning finds such values too, by making all loops and looking; that takes long where large
graphs repeat a long expression in every loop.
"""

from lazyarr.backends.loop.roots import SHARE_COST, STORED_KINDS, STORED_OPS, node_cost
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph

LARGE = 400  # nodes from which it pays to look before


def is_large(graph: Graph) -> bool:
    """Tell whether a graph is so large that the time it takes to compile comes first."""
    return len(graph.toposort()) >= LARGE


def needed_apart(graph: Graph) -> set[Variable]:
    """Return the dear elementwise values of a large graph that loops before and after sums need."""
    if not is_large(graph):
        return set()
    order = graph.toposort()
    stage, costs = _stages(order)
    found: set[Variable] = set()
    needed: dict[Variable, set[int]] = {}  # the stages of the loops that compute a value
    for v in graph.outputs:
        needed.setdefault(v, set()).add(stage[v])
    for v in reversed(order):
        if v.op is None:
            continue
        at = needed.get(v, set())
        if _is_stored(v):
            at = {_own_stage(v, stage)}
        elif len(at) > 1 and v.op.kind == "elementwise" and v.ndim and costs[v] >= SHARE_COST:
            found.add(v)
            at = {stage[v]}
        for x in v.inputs:
            if x.__class__ is Variable:
                needed.setdefault(x, set()).update(at)
    return found


def _is_stored(v: Variable) -> bool:
    return v.op.kind in STORED_KINDS or v.op.name in STORED_OPS


def _own_stage(v: Variable, stage: dict[Variable, int]) -> int:
    """Return the stage of the loop that computes a node from its operands."""
    return max((stage[x] for x in v.inputs if x.__class__ is Variable), default=0)


def _stages(order: list[Variable]) -> tuple[dict[Variable, int], dict[Variable, int]]:
    """Return for each node how many finished sums lead to it, and its cost when made in place."""
    stage: dict[Variable, int] = {}
    costs: dict[Variable, int] = {}
    own: dict[tuple, int] = {}
    for v in order:
        stage[v], costs[v] = 0, 0
        if v.op is None:
            continue
        stage[v] = _own_stage(v, stage)
        if _is_stored(v):
            stage[v] += 1
            continue
        given = [x for x in v.inputs if x.__class__ is Variable]
        key = (v.call, v.type, *(x.type for x in given))
        if key not in own:
            own[key] = node_cost(v)
        costs[v] = min(own[key] + sum(costs[x] for x in given), 1_000_000)
    return stage, costs
