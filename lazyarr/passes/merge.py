"""Merge equal subgraphs into one node.

Two nodes are equal when they apply the same op with the same parameters to the same operands. Raw
numbers are compared by class and spelling, data leaves by identity, the bodies of loops by
structure. Every walk of the rewriter merges; this pass is a walk without rules.
"""

from lazyarr.graph.rewrite import RuleSet, rewrite
from lazyarr.graph.traverse import Graph

_NONE = RuleSet("merge")


def merge(graph: Graph) -> Graph:
    """Return a graph in which no two nodes compute the same application."""
    return rewrite(graph, _NONE)
