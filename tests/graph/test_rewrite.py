"""Rule sets and the walk that applies them."""

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401  (fills the catalogue)
from lazyarr.errors import GraphError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RewriteWarning, RuleSet, Walk, rewrite, strict
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.passes.merge import merge

pytestmark = pytest.mark.fast
x = var("x")


def tensor(name: str = "v") -> Variable:
    return symbol(TensorType("float64", (3,)), name)


def rules(*named: str) -> RuleSet:
    known = RuleSet("known")

    @known.rule(p.log(p.add(1, x)), "log")
    def one(x):
        """log(1 + x) -> log1p(x)"""
        return op.log1p(x)

    @known.rule(p.log1p(p.exp(x)), "log", "exp")
    def two(x):
        """log1p(exp(x)) -> softplus(x)"""
        return op.softplus(x)

    return known.select(*named)


def test_rules_apply_until_none_does() -> None:
    v = tensor()
    walk = Walk(rules())
    done = walk.graph(Graph([v], [op.log(op.add(op.exp(v), 1))]))
    assert done.outputs[0].op.name == "softplus"
    assert walk.fired == {"one": 1, "two": 1}


def test_selection_by_name_and_tag() -> None:
    assert [r.name for r in rules("exp")] == ["two"]
    assert [r.name for r in rules("one", "exp")] == ["one", "two"]
    assert [r.name for r in rules().select(without=["exp"])] == ["one"]
    assert len(rules("one") | rules("two")) == 2
    assert rules()["one"].doc == "log(1 + x) -> log1p(x)"
    assert "one" in rules()
    with pytest.raises(GraphError, match="Did you mean"):
        rules()["ones"]
    with pytest.raises(GraphError, match="already"):
        rules() | rules()


def test_a_rule_can_be_taken_out() -> None:
    v, known = tensor(), rules()
    graph = Graph([v], [op.log(op.add(1, v))])
    assert rewrite(graph, known).outputs[0].op.name == "log1p"
    known.remove("one")
    assert rewrite(graph, known) is graph


def test_equal_applications_become_one_node() -> None:
    v = tensor()
    done = rewrite(Graph([v], [op.exp(v) * 2, op.exp(v) * 2, op.exp(v) * 2.0]), RuleSet("none"))
    assert done.outputs[0] is done.outputs[1] is not done.outputs[2]
    assert done.outputs[0].inputs[0] is done.outputs[2].inputs[0]


def test_unknown_sizes_of_one_name_stay_apart() -> None:
    a, b = (symbol(TensorType("float64", (unknown("n"),))) for _ in range(2))
    numbers = [op.minimum(op.arange(4), x.shape[0] - 1) for x in (a, b, a)]
    out = merge(Graph([a, b], numbers)).outputs
    assert out[0] is out[2]
    assert out[0] is not out[1]


def test_a_result_keeps_name_and_place() -> None:
    v = tensor()
    node = op.log(op.add(1, v))
    done = rewrite(Graph([v], [node]), rules()).outputs[0]
    assert done.where_made() == node.where_made()


def wrong(make) -> RuleSet:
    found = RuleSet("wrong")
    make.__doc__ = "exp(x) -> ?"
    found.rule(p.exp(x))(make)
    return found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: op.astype(x, np.float32), "must keep the type"),
        (lambda x: op.sum(x), "must keep the type"),
        (lambda x: 1.0, "must keep the type"),
        (lambda x: 1 / 0, "failed on"),
        (lambda x: op.exp(op.negative(op.exp(x))), "do not come to an end"),
    ],
)
def test_failing_rules_raise_or_warn(make, message: str) -> None:
    v = tensor()
    graph = Graph([v], [op.exp(v)])
    with strict(), pytest.raises(GraphError, match=message):
        rewrite(graph, wrong(make))
    with strict(False), pytest.warns(RewriteWarning, match=message):
        done = rewrite(graph, wrong(make))
    assert done.outputs[0].type is graph.outputs[0].type


def test_a_rule_may_decline() -> None:
    v = tensor()
    graph = Graph([v], [op.exp(v)])
    assert rewrite(graph, wrong(lambda x: None)) is graph


def test_a_rule_needs_its_equation() -> None:
    with pytest.raises(GraphError, match="docstring"):
        RuleSet("bare").rule(p.exp(x))(lambda x: x)


def test_depth_is_no_limit() -> None:
    v = tensor()
    y = v
    for _ in range(20_000):
        y = op.log(op.add(1, y))
    done = rewrite(Graph([v], [y]), rules("one"))
    assert len(done.toposort()) == 20_001
