"""Nodes: leaves, calls, places in the user's code, copies of data, pickling, freeing."""

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import ConcretizationError, GraphError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Call, as_operand, constant, data, symbol
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph, linearize, revive_all
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast
F8 = TensorType("float64", (3,))


def test_leaves() -> None:
    x, c = symbol(F8, "x"), data(np.arange(3.0))
    assert x.is_symbol and not x.is_data and x.op is None and x.inputs == () and x.apply is None
    assert c.is_data and not c.is_symbol and c.type is F8
    with pytest.raises(ValueError, match="read-only"):
        c.value[0] = 1


def test_application() -> None:
    x = symbol(F8)
    y = op.sum(op.add(x, 1.5), axis=0)
    assert y.op is OPS["sum"] and y.params["axis"] == (0,)
    assert y.inputs[0].inputs == (x, 1.5)
    assert y.apply.op is y.op and y.apply.outputs == (y.type,)
    assert (x.depth, y.inputs[0].depth, y.depth) == (0, 1, 2)
    assert (y.dtype, y.shape, y.ndim) == (np.dtype("float64"), (), 0)


def test_equal_calls_are_one_object() -> None:
    x = symbol(F8)
    assert op.sum(x, axis=0).call is op.sum(symbol(F8), axis=-1).call
    assert op.sum(x, axis=0).call is not op.sum(x, axis=0, keepdims=True).call
    call = op.sum(x).call
    assert pickle.loads(pickle.dumps(call)) is call
    assert isinstance(call, Call)


def test_arrays_are_snapshots() -> None:
    array = np.ones(3)
    y = op.add(array, 1)
    array[:] = 9
    np.testing.assert_array_equal(evaluate(Graph([], [y]), [])[0], [2, 2, 2])


def test_where_made_is_the_users_line() -> None:
    line = inspect.currentframe().f_lineno
    y = op.mean(symbol(F8))
    assert y.where_made() == f"{__file__}:{line + 1}"


def test_operands() -> None:
    n = unknown()
    assert as_operand(True) is True and as_operand(2) == 2 and as_operand(n) is n
    assert as_operand(np.float32(2)).dtype == np.float32
    assert constant(2, np.dtype("int8")).type is TensorType("int8", ())

    class Kind(int):
        pass

    assert type(as_operand(Kind(3))) is int
    with pytest.raises(GraphError, match="asarray"):
        as_operand("text")


def test_truth_is_not_known_while_recording() -> None:
    with pytest.raises(ConcretizationError, match="<x: float64"):
        bool(symbol(F8, "x"))


def test_operators() -> None:
    x, y = symbol(F8), symbol(F8)
    a, b = np.array([5.0, -2.0, 3.0]), np.array([2.0, 3.0, -1.5])
    pairs = [
        (x + y, a + b), (1 - x, 1 - a), (x * 2, a * 2), (x / y, a / b), (x // y, a // b),
        (x % y, a % b), (abs(x) ** y, abs(a) ** b), (-x, -a), (x < y, a < b), (x >= y, a >= b),
        (2.0 ** x, 2.0**a), ((x < y) & (x < 0), (a < b) & (a < 0)), (~(x < y), ~(a < b)),
    ]  # fmt: skip
    found = evaluate(Graph([x, y], [v for v, _ in pairs]), [a, b])
    for got, (node, want) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(got, want, err_msg=str(node))


def test_pickle_and_copy() -> None:
    x = symbol(F8, "x")
    y = op.multiply(op.exp(x), np.arange(3.0))
    graph = Graph([x], [y, op.sum(y)])
    again = pickle.loads(pickle.dumps(graph))
    value = [np.array([0.0, 1.0, 2.0])]
    for got, want in zip(evaluate(again, value), evaluate(graph, value), strict=True):
        np.testing.assert_array_equal(got, want)
    assert again.inputs[0].name == "x"
    assert again.outputs[1].inputs[0] is again.outputs[0]
    twin = copy.deepcopy(y)
    assert twin is not y and twin.type is y.type
    assert [v.type for v in revive_all(linearize([y]))] == [y.type]


def test_depth_is_no_limit() -> None:
    """20,000 nodes one after the other: pickled, evaluated and freed without recursion."""
    x = symbol(TensorType("float64", ()), "x")
    y = x
    for _ in range(10_000):
        y = op.add(op.sin(y), x)
    again = pickle.loads(pickle.dumps(Graph([x], [y])))
    want = 0.3
    for _ in range(10_000):
        want = np.sin(want) + 0.3
    np.testing.assert_allclose(evaluate(again, [np.array(0.3)])[0], want)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_nothing_points_to_consumers() -> None:
    x = symbol(F8)
    gone = weakref.ref(op.exp(x))
    assert gone() is None
