"""Patterns match by op, number, order and identity."""

import pytest

import lazyarr.graph.ops  # noqa: F401  (fills the catalogue)
from lazyarr.errors import GraphError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.pattern import WILDCARD, find, number, of_kind, operand, p, same_number, var
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast
x, y = var("x"), var("y")


def tensor(name: str = "v") -> Variable:
    return symbol(TensorType("float64", (3,)), name)


def test_commutative_ops_match_in_both_orders() -> None:
    v = tensor()
    for node in (op.add(1, v), op.add(v, 1.0)):
        assert find(p.log(p.add(1, x)), op.log(node)) == {"x": v}
    assert find(p.subtract(1, x), op.subtract(v, 1)) is None


def test_orders_at_every_level() -> None:
    v, w = tensor(), tensor("w")
    pattern = p.add(p.exp(x), p.multiply(2, y))
    for node in (op.add(op.multiply(w, 2), op.exp(v)), op.add(op.exp(v), op.multiply(2, w))):
        assert find(pattern, node) == {"x": v, "y": w}


def test_a_name_stands_for_one_node() -> None:
    v, w = tensor(), tensor("w")
    assert find(p.multiply(x, x), op.multiply(v, v)) == {"x": v}
    assert find(p.multiply(x, x), op.multiply(v, w)) is None
    a = operand("a")
    assert find(p.where(x, a, a), op.where(op.isnan(v), 1, 1.0)) is not None
    assert find(p.where(x, a, a), op.where(op.isnan(v), 0.0, -0.0)) is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [(1, 1.0, True), (0, -0.0, False), (True, 1, False), (0.0, 0, True), (1, 1 + 0j, True)],
)
def test_numbers(a: object, b: object, same: bool) -> None:
    assert same_number(a, b) is same


def test_variables_and_numbers() -> None:
    v = tensor()
    node = op.multiply(v, 3)
    assert find(p.multiply(x, number("c", lambda c: c > 2)), node) == {"x": v, "c": 3}
    assert find(p.multiply(x, number("c", lambda c: c > 3)), node) is None
    assert find(p.multiply(x, y), node) is None
    assert find(p.multiply(WILDCARD, WILDCARD), node) == {}


def test_inner_names_kinds_and_open_ends() -> None:
    v = tensor()
    inner = op.basic_index(v, slice(0, 2))
    node = op.exp(inner)
    assert find(p.exp(p.basic_index(x, ...).named("part")), node) == {"x": v, "part": inner}
    assert find(p.exp(p.basic_index(x)), node) is None
    assert find(of_kind("elementwise", "f"), node) == {"f": node}
    assert find(of_kind("reduction"), node) is None


def test_unknown_ops_are_errors() -> None:
    with pytest.raises(GraphError, match="Did you mean 'log1p'"):
        p.log1pp(x)
    with pytest.raises(GraphError, match="made of ops"):
        p.log("x")
