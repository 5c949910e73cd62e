"""What a program computes from constants alone is computed once, when it is linked.

The structure of a program never depends on data: passes see a symbol in place of each array. Here
the nodes that no input reaches are taken out of the program; linking it to data evaluates them by
the interpreter, unless that would make them much larger than what they are computed from.
"""

import math
from collections.abc import Sequence

import numpy as np

from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.graph.types import TensorType

SMALL = 1024  # elements that may always be stored


def lift_data(graph: Graph) -> tuple[Graph, list]:
    """Return the graph with its data as further inputs, and that data; an array counts once."""
    given = set(graph.inputs)
    arrays: dict[tuple, Variable] = {}
    values: list = []
    mapping: dict[Variable, Variable] = {}
    for v in graph.toposort():
        if not v.is_data or v in given:
            continue
        key = (id(v.value), v.type)
        if key not in arrays:
            arrays[key] = symbol(v.type, v.name)
            arrays[key].site = v.site
            values.append(v.value)
        mapping[v] = arrays[key]
    if not mapping:
        return graph, values
    return Graph([*graph.inputs, *arrays.values()], substitute(graph.outputs, mapping)), values


def split(graph: Graph, n_data: int) -> tuple[Graph, Graph]:
    """Return a program without what is constant, and the graph that makes its further inputs.

    The last `n_data` inputs of the graph are data, and so are the inputs of the second graph.
    """
    n = len(graph.inputs) - n_data
    given, lifted = graph.inputs[:n], graph.inputs[n:]
    order = graph.toposort()
    weight = _constant_weights(given, order)
    read = _read_by_program(graph, order, weight)
    made = [v for v in order if v in read and v.expr is not None and _worth(v, weight[v])]
    constants = [*made, *_leaves_left(graph, made, weight)]
    stand_ins = [v if v.is_symbol else symbol(v.type, v.name) for v in constants]
    outputs = substitute(graph.outputs, dict(zip(constants, stand_ins, strict=True)))
    return Graph([*given, *stand_ins], outputs), Graph(lifted, constants)


def constants_of(recipe: Graph, values: Sequence) -> list[np.ndarray]:
    """Return the constants of a program for data.

    Checks on constants are verified here, so a compiled program has none of them left.
    """
    found = evaluate(recipe, values)
    for value in found:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return found


def _constant_weights(given: Sequence[Variable], order: list[Variable]) -> dict[Variable, int]:
    """Return, for each node that depends on data only, the elements of the data below it."""
    weight: dict[Variable, int] = {}
    inputs = set(given)
    for v in order:
        if v in inputs:
            continue
        if v.expr is None:
            shape = getattr(v.type, "shape", ())
            weight[v] = math.prod(shape)
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


def _read_by_program(graph: Graph, order: list[Variable], weight: dict) -> set[Variable]:
    """Constant nodes that something not constant reads, or that are outputs."""
    read = {x for v in order if v not in weight for x in v.inputs if x.__class__ is Variable}
    read.update(graph.outputs)
    return {v for v in read if v in weight}


def _leaves_left(graph: Graph, made: list[Variable], weight: dict) -> list[Variable]:
    """Return the data that the program still reads once what is made of data is taken out."""
    order = Graph(made, graph.outputs).toposort()
    return [v for v in order if v.expr is None and v in weight]


def _worth(node: Variable, source: int) -> bool:
    t = node.type
    if not isinstance(t, TensorType) or any(isinstance(s, Size) for s in t.shape):
        return False
    return math.prod(t.shape) <= max(SMALL, 2 * source)
