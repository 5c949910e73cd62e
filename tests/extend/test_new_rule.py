"""A new rewrite is a rule (my_rules.py) and this test."""

from lazyarr.graph.node import symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, toposort
from lazyarr.graph.types import TensorType
from lazyarr.passes.pipeline import PIPELINE, RulePass, run
from tests.extend.my_rules import MINE


def test_rule_from_outside():
    x = symbol(TensorType("float64", (3,)), "x")
    cosh, sinh = op.cosh(x), op.sinh(x)
    graph = Graph([x], [op.subtract(op.multiply(cosh, cosh), op.multiply(sinh, sinh))])
    before = {v.op.name for v in toposort(run(graph).outputs) if v.op is not None}
    after = run(graph, [RulePass("mine", (MINE,)), *PIPELINE])
    assert "cosh" in before
    assert [v.op.name for v in toposort(after.outputs)] == ["full"]
