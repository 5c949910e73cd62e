"""The checker finds broken graphs and names the node."""

import pytest

import lazyarr.graph.ops  # noqa: F401  (fills the catalogue)
from lazyarr.errors import GraphError
from lazyarr.graph import shapes
from lazyarr.graph.check import check
from lazyarr.graph.node import Call, Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast


def tensor(*shape: object, dtype: str = "float64", name: str = "x") -> Variable:
    return symbol(TensorType(dtype, shape), name)


def made(op_name: str, type_: TensorType, *inputs: object, **params: object) -> Variable:
    """A node made by hand, past every check of recording."""
    return Variable(type_, (Call(getattr(op, op_name), tuple(params.items())), *inputs))


X = tensor(3)
F3 = TensorType("float64", (3,))


def test_sound_graphs_pass() -> None:
    n = shapes.unknown("n")
    x, y = tensor(n), tensor(shapes.unknown("m"), name="y")
    graph = Graph([x, y], [op.sum(x + y) / n, op.softmax(x)])
    assert check(graph) is graph


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (made("exp", TensorType("float32", (3,)), X), "has type float32"),
        (made("exp", TensorType("float64", (4,)), X), "operands give float64"),
        (made("exp", F3, "x"), "operand of class str"),
        (made("logical_not", F3, X), "not what logical_not takes"),
        (made("sum", TensorType("float64", ()), X, axis=(1,), keepdims=False, dtype=None), "axis"),
        (made("add", F3, X, op.scan(Graph([X], [X]), (X,), length=1, reverse=False, n_carry=1,
                                    n_xs=0)), "several outputs"),
    ],
)  # fmt: skip
def test_broken_nodes(node: Variable, message: str) -> None:
    with pytest.raises(GraphError, match=message) as error:
        check(Graph([X], [node]))
    assert "test_check.py:" in str(error.value)


def test_broken_ends() -> None:
    with pytest.raises(GraphError, match="no input"):
        check(Graph([], [op.exp(X)]))
    with pytest.raises(GraphError, match="not a leaf"):
        check(Graph([op.exp(X)], [X]))
    with pytest.raises(GraphError, match="twice"):
        check(Graph([X, X], [X]))


def test_lowered_graphs_hold_no_composites() -> None:
    graph = Graph([X], [op.softmax(X)])
    check(graph)
    with pytest.raises(GraphError, match="is composite"):
        check(graph, lowered=True)


def test_bodies_are_checked() -> None:
    c, x = tensor(name="c"), tensor(name="x")
    bad = Graph([c], [made("exp", TensorType("float64", ()), c), made("exp", F3, c)])
    loop = op.scan(bad, (x,), length=2, reverse=False, n_carry=1, n_xs=0)
    with pytest.raises(GraphError, match="in the body of"):
        check(Graph([x], [op.pick(loop, 0)]))
    good = Graph([c], [op.exp(c)])
    wide = made("scan", loop.type, X, body=good, length=2, reverse=False, n_carry=1, n_xs=0)
    with pytest.raises(GraphError):
        check(Graph([X], [op.pick(wide, 0)]))
