"""Composed ops: an expression as one node, with its own derivative where the user states one.

`composed` holds its expression as a graph, and is differentiated through it. `composed_with_rule`
has a derivative rule beside it. Both are expanded before a backend sees them.
"""

from collections.abc import Callable

from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import composite
from lazyarr.graph.traverse import Graph, inline

__all__ = ["composed", "composed_with_rule"]


def _expand(*operands, body, **_) -> Variable:
    return inline(body, operands)[0]


def _vjp(g, y, *operands, body, label, rule):
    return rule(g, y, *operands)


@composite(expand=_expand, sizes=("body",), public=False)
def composed(operands, body: Graph, label: str):
    """An expression of its operands, as one node."""
    return tuple(operands), {"body": body, "label": label}


@composite(expand=_expand, vjp=_vjp, sizes=("body",), public=False)
def composed_with_rule(operands, body: Graph, label: str, rule: Callable):
    """An expression of its operands whose cotangents are given by a rule, as one node."""
    return tuple(operands), {"body": body, "label": label, "rule": rule}
