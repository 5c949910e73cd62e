"""What a program computes from constants alone is computed once, when it is linked.

The structure of a program never depends on data; here, after its key is settled, the nodes that no
input reaches are evaluated by the interpreter and become constants themselves, unless that would
make them much larger than what they are computed from.
"""

import math

from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, data
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.graph.types import TensorType

SMALL = 1024  # elements that may always be stored


def hoist(graph: Graph) -> Graph:
    """Return the graph with maximal constant subgraphs replaced by their values.

    Checks on constants are verified here, so a compiled program has none of them left.
    """
    order = graph.toposort()
    weight = _constant_weights(graph, order)
    frontier = [v for v in _frontier(graph, order, weight) if _worth(v, weight[v])]
    if not frontier:
        return graph
    values = evaluate(Graph((), frontier), ())
    mapping = {v: data(value) for v, value in zip(frontier, values, strict=True)}
    return Graph(graph.inputs, substitute(graph.outputs, mapping))


def _constant_weights(graph: Graph, order: list[Variable]) -> dict[Variable, int]:
    """Return, for each node that depends on data only, the elements of the data below it."""
    weight: dict[Variable, int] = {}
    inputs = set(graph.inputs)
    for v in order:
        if v in inputs or v.is_symbol:
            continue
        if v.expr is None:
            weight[v] = getattr(v.value, "size", 1)
            continue
        nodes = [x for x in v.inputs if x.__class__ is Variable]
        if nodes and not _reads_sizes(v) and all(x in weight for x in nodes):
            weight[v] = max(weight[x] for x in nodes)
    return weight


def _reads_sizes(node: Variable) -> bool:
    """Tell whether a node depends on an unknown size, directly or by a parameter."""
    if any(isinstance(x, Size) for x in node.inputs):
        return True
    held = [value for name, value in node.call.params if name in node.op.sizes]
    while held:
        value = held.pop()
        if isinstance(value, Size | Graph):  # bodies of loops are left where they are
            return True
        if isinstance(value, tuple):
            held.extend(value)
    return False


def _frontier(graph: Graph, order: list[Variable], weight: dict) -> list[Variable]:
    """Constant nodes that something not constant reads, or that are outputs."""
    read = {x for v in order if v not in weight for x in v.inputs if x.__class__ is Variable}
    read.update(graph.outputs)
    return [v for v in order if v in weight and v in read and v.expr is not None]


def _worth(node: Variable, source: int) -> bool:
    t = node.type
    if not isinstance(t, TensorType) or any(isinstance(s, Size) for s in t.shape):
        return False
    return math.prod(t.shape) <= max(SMALL, 2 * source)
