"""Regrouping: what it moves, and what it leaves where it is."""

import pytest

from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.passes.pipeline import run

pytestmark = pytest.mark.fast


def leaf(*shape: object, dtype: str = "float64") -> Variable:
    return symbol(TensorType(dtype, shape))


def simplified(y: Variable, *inputs: Variable) -> list[Variable]:
    """The nodes of a graph after the passes, leaves first."""
    return run(Graph(inputs, [y])).toposort()


def sizes_of(nodes: list[Variable], name: str) -> list[tuple]:
    return [v.shape for v in nodes if v.op is not None and v.op.name == name]


@pytest.mark.parametrize(
    ("size", "places", "where"),
    [(5, 100, (5,)), (100, 5, (5,)), (5, 5, (5,))],
)
def test_exp_is_taken_where_there_are_fewer(size: int, places: int, where: tuple) -> None:
    x, i = leaf(size), leaf(places, dtype="int64")
    nodes = simplified(op.exp(op.negative(op.take(x, i, axis=0))), x, i)
    assert sizes_of(nodes, "exp") == [where]
    assert sizes_of(nodes, "take") == [(places,)]


def test_what_is_cheap_stays_with_its_reader() -> None:
    x, i = leaf(5), leaf(100, dtype="int64")
    assert sizes_of(simplified(op.negative(op.take(x, i, axis=0)), x, i), "negative") == [(100,)]


def test_two_arrays_stay_where_they_meet() -> None:
    x, y, i = leaf(5), leaf(100), leaf(100, dtype="int64")
    nodes = simplified(op.exp(op.add(op.take(x, i, axis=0), y)), x, y, i)
    assert sizes_of(nodes, "exp") == [(100,)]


def test_sums_come_before_products() -> None:
    """The rows of a product are not made where only their sum is wanted."""
    a, b = leaf(1000, 10), leaf(10, 7)
    for y in (op.sum(op.matmul(a, b), axis=0), op.sum(op.negative(op.matmul(a, b)), axis=0)):
        nodes = simplified(y, a, b)
        assert sizes_of(nodes, "contract") == [(7,)]
        assert sizes_of(nodes, "sum") == [(10,)]


def test_a_product_that_sums_nothing_stays() -> None:
    a, b = leaf(30), leaf(20)
    nodes = simplified(op.sum(op.outer(a, b), axis=0), a, b)
    assert sizes_of(nodes, "sum") == [(20,)]
