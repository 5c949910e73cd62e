"""Masks of cotangents: a product with what is masked is masked itself.

What is masked out is +0.0 after, where before it was the signed zero of a product with 0: the value
of exact arithmetic, which a loop can leave out instead of computing.
"""

from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import operand, p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet
from lazyarr.passes.algebra import ZEROS, like

MASKS = RuleSet("masks")


@MASKS.rule(p.absorb(p.where(var("cond"), operand("a"), ZEROS), operand("b")))
def absorb_chosen(cond: Any, a: Any, b: Any, node: Variable) -> Variable | None:
    """absorb(where(c, a, 0), b) -> where(c, absorb(a, b), 0)"""
    return like(op.where(cond, op.absorb(a, b), 0.0), node)
