"""Expand composite ops, and drop derivative rules, until only what a backend may see is left."""

from lazyarr.errors import ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import of_kind, p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet
from lazyarr.graph.shapes import Size

COMPOSITES = RuleSet("composites")


@COMPOSITES.rule(of_kind("composite"))
def expand(node: Variable) -> Variable:
    """f(x) -> the expression that f stands for"""
    out: Variable = node.op.expand(*node.inputs, **node.params)
    return out if out.type is node.type else as_shape(out, node)


@COMPOSITES.rule(p.pick(var("x", lambda v: v.expr is not None and v.op.name == "with_rule")))
def drop_rule(x: Variable, node: Variable) -> Variable:
    """pick(with_rule(values), i) -> values[i]: derivatives have been taken by now"""
    value: Variable = x.inputs[node.params["index"]]
    return value


def as_shape(out: Variable, node: Variable) -> Variable:
    """Return a value under the sizes of the node it replaces, which are checked when bound."""
    for a, b in zip(out.shape, node.shape, strict=True):
        if not (isinstance(a, Size) or isinstance(b, Size)) and a != b:
            raise ShapeError(f"{node.op.name}: {node.shape} became {out.shape}.")
    result: Variable = op.specify_shape(out, node.shape)
    return result
