"""Expand composite ops until only those are left that a backend may see."""

from lazyarr.errors import ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import of_kind
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet
from lazyarr.graph.shapes import Size

COMPOSITES = RuleSet("composites")


@COMPOSITES.rule(of_kind("composite"))
def expand(node: Variable) -> Variable:
    """f(x) -> the expression that f stands for"""
    out: Variable = node.op.expand(*node.inputs, **node.params)
    return out if out.type is node.type else as_shape(out, node)


def as_shape(out: Variable, node: Variable) -> Variable:
    """Return a value under the sizes of the node it replaces, which are checked when bound."""
    for a, b in zip(out.shape, node.shape, strict=True):
        if not (isinstance(a, Size) or isinstance(b, Size)) and a != b:
            raise ShapeError(f"{node.op.name}: {node.shape} became {out.shape}.")
    result: Variable = op.specify_shape(out, node.shape)
    return result
