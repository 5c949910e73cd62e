"""Calls of foreign functions are made once: a derivative also gives the values it is of.

Two derivatives of the same call become one, and a call beside its own derivative is read from it,
unless the derivative's cotangents are computed from that call.
"""

from collections.abc import Sequence
from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, substitute, toposort
from lazyarr.passes.loop import Loop, Outputs, is_scan, remade

Places = dict[Variable, tuple[Variable, list[int]]]  # a call: who computes it, at which outputs


def share_calls(graph: Graph) -> Graph:
    """f(x), (f, df)(x) -> (f, df)(x), in the bodies of loops too"""
    if any(is_scan(v) for v in graph.toposort()):
        graph = remade(graph, _in_body)
    while True:
        order = graph.toposort()
        calls = [v for v in order if v.op is not None and v.op.name == "foreign"]
        found = _replaceable(calls)
        if not found:
            return graph
        mapping: dict[Variable, object] = {}
        for v in order:
            place = found.get(v.inputs[0]) if v.op is not None and v.op.name == "pick" else None
            if place is not None:
                mapping[v] = op.pick(place[0], place[1][v.params["index"]])
        graph = Graph(graph.inputs, substitute(graph.outputs, mapping))


def _in_body(v: Variable, inputs: list[Variable]) -> Outputs | None:
    """Return the outputs of a loop whose body makes fewer calls, None where it cannot."""
    loop = Loop.of(v, inputs)
    body = share_calls(loop.body)
    if body.outputs == loop.body.outputs:
        return None
    made = loop.with_outputs(body.outputs).scan()
    return [op.pick(made, i) for i in range(len(made.type.types))]


def _replaceable(calls: Sequence[Variable]) -> Places:
    """Return calls that another call can stand for, of one group at a time; nothing at the end."""
    groups: dict[tuple[Any, ...], list[Variable]] = {}
    for v in calls:
        covered = v.params["function"].covers()
        if covered is not None:
            function, n = covered
            groups.setdefault((function, v.inputs[:n]), []).append(v)
    for group in groups.values():
        for i, a in enumerate(group):
            for b in group[i + 1 :]:
                found = _joined(a, b)
                if found:
                    return found
    for v in calls if groups else ():
        for other in groups.get((v.params["function"], v.inputs), ()):
            n = len(v.type.types)
            same = v.type.types == other.type.types[:n]
            if same and v not in set(toposort([other])):
                return {v: (other, list(range(n)))}
    return {}


def _joined(a: Variable, b: Variable) -> Places:
    """Join two derivatives of one call, where they can be one."""
    if a.inputs != b.inputs or a.call is b.call:
        return {}
    found = a.params["function"].joined(b.params["function"], len(a.type.types))
    if found is None:
        return {}
    function, mine, others = found
    types: dict[int, Any] = dict(zip(others, b.type.types, strict=True))
    types.update(zip(mine, a.type.types, strict=True))
    ordered = [types[i] for i in range(len(types))]
    node = op.foreign(
        *a.inputs,
        function=function,
        dtypes=tuple(t.dtype for t in ordered),
        shapes=tuple(t.shape for t in ordered),
    )
    return {a: (node, mine), b: (node, others)}
