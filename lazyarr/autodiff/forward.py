"""Forward mode: tangents flow from the inputs of a graph to its outputs.

An op's `jvp` may be a function `(tangents, y, *operands, **params)`, a word for a structure
(`linear`, `bilinear`, `zero`), or absent; see the README of this folder.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from lazyarr.autodiff.reverse import Context, _same_sizes, carries_derivative, pullback, varied
from lazyarr.errors import GradientError
from lazyarr.graph.node import Variable
from lazyarr.graph.op import NoGradient
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline, toposort
from lazyarr.graph.types import TupleType


def pushforward(
    outputs: Sequence[Variable],
    wrt: Sequence[Variable],
    tangents: Sequence[Variable],
    stop: bool = False,
) -> list[Variable | None]:
    """Return the tangent of each output (None: no dependence) from tangents of `wrt`."""
    order = toposort(outputs, stop=wrt if stop else ())
    alive = _useful(order, outputs, varied(order, wrt))
    found: dict[Variable, object] = dict(zip(wrt, tangents, strict=True))
    for node in order:
        if node in found or node.expr is None or node not in alive:
            continue
        given = [found.get(x) if x.__class__ is Variable else None for x in node.inputs]
        out = _tangent(node, given)
        if out is not None:
            found[node] = out
    return [found.get(v) for v in outputs]  # type: ignore[misc]


def _useful(
    order: Sequence[Variable], outputs: Sequence[Variable], alive: set[Variable]
) -> set[Variable]:
    """Return those of the living nodes whose tangent an output needs."""
    wanted = {v for v in outputs if v in alive}
    for v in reversed(order):
        if v in wanted:
            wanted.update(x for x in v.inputs if x.__class__ is Variable and x in alive)
    return wanted


class ForwardContext(Context):
    """What a control op's jvp receives."""

    @staticmethod
    def pushforward(
        graph: Graph, args: Sequence[Any], tangents: dict[int, Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return outputs of a graph at args and their tangents, from tangents by input number."""
        outputs = inline(graph, args)
        found = pushforward(
            outputs, [args[i] for i in tangents], list(tangents.values()), stop=True
        )
        filled = [
            _zeros(y) if t is None and carries_derivative(y) else t
            for y, t in zip(outputs, found, strict=True)
        ]
        return outputs, filled


def _tangent(node: Variable, tangents: list[Any]) -> object:
    """Return the tangent of one node; a list with an entry per output for nodes with several."""
    if all(t is None for t in tangents):
        return None
    rule = node.op.jvp
    if isinstance(rule, NoGradient) or isinstance(node.op.vjp, NoGradient):
        reason = rule.reason if isinstance(rule, NoGradient) else node.op.vjp.reason
        raise GradientError(f"{node.op.name} has no derivative: {reason}.")
    if rule == "pick":
        return tangents[0][node.params["index"]]
    if callable(rule) and node.op.kind == "control":
        return rule(ForwardContext(), tangents, node, *node.inputs, **node.params)
    if callable(rule):
        out = rule(tangents, node, *node.inputs, **node.params)
        return _double_pullback(node, tangents) if out is NotImplemented else out
    if isinstance(rule, str):
        return _structural(rule, node, tangents)
    if node.op.kind == "elementwise":
        return _diagonal(node, tangents)
    if node.op.kind == "composite":
        return _through_expansion(node, tangents)
    return _double_pullback(node, tangents)


def _structural(rule: str, node: Variable, tangents: list[Any]) -> object:
    if rule == "zero":
        return None
    if rule == "bilinear":
        return _sum(
            node.op.apply(node.call, tuple(t if i == k else x for i, x in enumerate(node.inputs)))
            for k, t in enumerate(tangents)
            if t is not None
        )
    head, _, numbers = rule.partition(":")
    places = [int(k) for k in numbers.split(",")] if numbers else range(len(tangents))
    filled = list(node.inputs)
    for k in places:
        if filled[k].__class__ is Variable:
            filled[k] = tangents[k] if tangents[k] is not None else _zeros(filled[k])
        else:
            filled[k] = type(filled[k])(0)
    return node.op.apply(node.call, tuple(filled))


def _zeros(x: Variable) -> Variable:
    zeros: Variable = op.zeros(x.shape, dtype=x.dtype)
    return zeros


def _sum(terms: Iterable[Variable]) -> Variable | None:
    total = None
    for t in terms:
        total = t if total is None else op.add(total, t)
    return total


def _diagonal(node: Variable, tangents: list[Any]) -> Variable | None:
    """An elementwise op has a diagonal Jacobian: its vjp, asked with tangents, is its jvp."""
    terms = []
    for k, t in enumerate(tangents):
        if t is None:
            continue
        if not _same_sizes(t.shape, node.shape):
            t = op.broadcast_to(t, node.shape)
        if t.dtype != node.dtype:
            t = op.astype(t, node.dtype)
        term = node.op.vjp(t, node, *node.inputs, **node.params)[k]
        if term is not None:
            terms.append(term if term.dtype == node.dtype else op.astype(term, node.dtype))
    return _sum(terms)


def _through_expansion(node: Variable, tangents: list[Any]) -> object:
    inside = node.op.expand(*node.inputs, **node.params)
    pairs = [(x, t) for x, t in zip(node.inputs, tangents, strict=True) if t is not None]
    return pushforward([inside], [x for x, _ in pairs], [t for _, t in pairs], stop=True)[0]


def _double_pullback(node: Variable, tangents: list[Any]) -> object:
    """The vjp is linear in its cotangent; its own vjp, asked with tangents, is the jvp.

    It is asked at zero: a loop in it keeps its carries, so the result may mention the cotangent.
    """
    several = isinstance(node.type, TupleType)
    types: Any = node.type.types if several else (node.type,)  # type: ignore[attr-defined]
    probes = [op.zeros(t.shape, dtype=t.dtype) for t in types]
    if several:
        back = node.op.vjp(Context(), lambda i: probes[i], node, *node.inputs, **node.params)
    elif node.op.vjp is None:
        raise GradientError(f"{node.op.name} declares no derivative; give its Op a vjp.")
    else:
        back = node.op.vjp(probes[0], node, *node.inputs, **node.params)
    pairs = [(g, t) for g, t in zip(back, tangents, strict=True) if g is not None and t is not None]
    floats = [p for p in probes if carries_derivative(p)]
    found = pullback([g for g, _ in pairs], floats, [t for _, t in pairs], stop=True)
    by_probe = dict(zip(floats, found, strict=True))
    out = [by_probe.get(p) for p in probes]
    if not several:
        return out[0]
    return [
        g if g is not None else op.zeros(t.shape, dtype=t.dtype)
        for g, t in zip(out, types, strict=True)
    ]
