"""A rewrite from outside: one rule in a set of its own."""

from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet

MINE = RuleSet("mine")
x = var("x")


@MINE.rule(p.subtract(p.multiply(p.cosh(x), p.cosh(x)), p.multiply(p.sinh(x), p.sinh(x))))
def hyperbolic_unit(x: Variable, node: Variable) -> Any:
    """cosh(x)^2 - sinh(x)^2 -> 1"""
    return op.full(node.shape, 1.0, dtype=node.dtype)
