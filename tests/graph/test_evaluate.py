"""The interpreter: sizes, checks with detail, memory, errors."""

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import BoundsError, GraphError, LinAlgError, ShapeError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import data, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast


def leaf(*shape: object, dtype: str = "float64"):
    return symbol(TensorType(dtype, shape), "x")


def test_unknown_sizes_are_bound_by_the_inputs() -> None:
    n, m = unknown("n"), unknown("m")
    x, y = leaf(n, m), leaf(m)
    outputs = [op.add(x, y), op.size_value(n * m), op.zeros((n + 1,)), op.reshape(x, (-1,))]
    found = evaluate(Graph([x, y], outputs), [np.ones((2, 3)), np.arange(3.0)])
    assert [v.shape for v in found] == [(2, 3), (), (3,), (6,)]
    assert found[1] == 6
    with pytest.raises(ShapeError, match="m is 3 in one input and 4"):
        evaluate(Graph([x, y], outputs), [np.ones((2, 3)), np.arange(4.0)])


def test_sizes_that_no_input_tells() -> None:
    n = unknown("n")
    graph = Graph([], [op.zeros((n,))])
    assert evaluate(graph, [], {n.atom: 4})[0].shape == (4,)
    with pytest.raises(ShapeError, match="size n is not known"):
        evaluate(graph, [])


def test_missing_symbol() -> None:
    with pytest.raises(GraphError, match="is not an input"):
        evaluate(Graph([], [op.exp(leaf())]), [])


def test_an_input_may_lie_inside_the_graph() -> None:
    """A computed node given as an input is not computed."""
    x = leaf()
    y = op.exp(x)
    assert evaluate(Graph([y], [op.add(y, 1)]), [np.array(2.0)])[0] == 3


def test_check_shows_the_first_offender() -> None:
    x, i = leaf(4), leaf(3, dtype="int64")
    graph = Graph([x, i], [op.take(x, i)])
    with pytest.raises(BoundsError, match="index -5 is out of bounds for an axis of size 4"):
        evaluate(graph, [np.arange(4.0), np.array([3, -5, 9])])


def test_first_bad_matrix_is_named() -> None:
    x = leaf(2, 2, 2, 2)
    array = np.broadcast_to(np.eye(2), (2, 2, 2, 2)).copy()
    array[1, 0] = -1
    with pytest.raises(LinAlgError, match=r"\(1, 0\)"):
        evaluate(Graph([x], [op.cholesky(x)]), [array])


def test_empty_axis_at_run_time() -> None:
    x = leaf(unknown("n"), 2)
    graph = Graph([x], [op.max(x, axis=0)])
    with pytest.raises(ValueError, match="empty axis"):
        evaluate(graph, [np.zeros((0, 2))])


def test_no_warnings_from_numbers() -> None:
    x = leaf(3)
    outputs = [op.log(x), op.divide(1, x), op.floor_divide(op.astype(x, "int32"), 0), op.sqrt(x)]
    with np.errstate(all="raise"):
        evaluate(Graph([x], outputs), [np.array([0.0, -1.0, np.inf])[:2].repeat(2)[:3]])


def test_inputs_are_not_written() -> None:
    x, v = leaf(3), leaf(1)
    graph = Graph([x, v], [op.set_at(x, v, 1, spec=(("slice", 1),), lengths=(1,))])
    array = np.zeros(3)
    assert evaluate(graph, [array, np.ones(1)])[0].tolist() == [0, 1, 0]
    assert not array.any()


def test_updates_write_in_place_where_the_operand_dies(monkeypatch) -> None:
    """Two hundred updates of one intermediate copy nothing; what others see is never written."""
    copies = []
    array = np.array
    monkeypatch.setattr(np, "array", lambda *a, **k: copies.append(1) or array(*a, **k))
    x = symbol(TensorType("float64", (50,)), "x")
    y = op.add(x, 1.0)
    for i in range(20):
        y = op.set_at(y, op.full((), float(i)), i, spec=(("int", 0),), lengths=())
    given = np.zeros(50)
    (got,) = evaluate(Graph([x], [y]), [given])
    np.testing.assert_array_equal(got[:22], [*range(20), 1, 1])
    assert not given.any() and not copies


@pytest.mark.parametrize("kept", ["input", "output", "reader", "view", "data", "view of data"])
def test_updates_copy_what_somebody_still_reads(kept: str) -> None:
    x = symbol(TensorType("float64", (4,)), "x")
    held = data(np.zeros(4))
    bases = {"input": x, "data": held, "view of data": op.flip(held)}
    base = bases[kept] if kept in bases else op.add(x, 1.0)
    other = {
        "output": base,
        "reader": op.multiply(base, 2.0),
        "view": op.flip(base),
    }.get(kept, x)
    late = op.set_at(base, op.full((), 9.0), 0, spec=(("int", 0),), lengths=())
    later = op.add(other, 0.0)
    given = np.zeros(4)
    first = Graph([x], [late, later, other])
    want = {"output": 1.0, "reader": 2.0, "view": 1.0}.get(kept, 0.0)
    got = evaluate(first, [given])
    assert got[0][0] == 9.0
    np.testing.assert_array_equal(got[1], np.full(4, want))
    np.testing.assert_array_equal(got[2], np.full(4, want))
    assert not given.any() and not held.value.any()
