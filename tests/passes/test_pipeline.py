"""The whole pipeline: reported cases, order, cost, switches."""

import time

import numpy as np
import pytest

from lazyarr.errors import BoundsError
from lazyarr.graph import shapes
from lazyarr.graph.check import check
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, data, symbol
from lazyarr.graph.ops.indexing import getitem
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.passes.pipeline import (
    INTERPRETED,
    PIPELINE,
    RulePass,
    Step,
    fingerprint,
    run,
    switched,
)

pytestmark = pytest.mark.fast
F64 = np.float64


def tensor(*shape: object, dtype: str = "float64", name: str = "x") -> Variable:
    return symbol(TensorType(dtype, shape), name)


def lowered(inputs: list, outputs: list, **options) -> Graph:
    graph = Graph(inputs, outputs)
    return check(run(graph, **options), lowered=True)


def value(inputs: list, y: Variable, *arrays: object) -> np.ndarray:
    return evaluate(lowered(inputs, [y]), [np.asarray(a) for a in arrays])[0]


def names(graph: Graph) -> list[str]:
    return [v.op.name for v in graph.toposort() if v.op is not None]


def test_root_of_square_and_square_of_root() -> None:
    x = tensor()
    assert value([x], op.sqrt(op.square(x)), -3.0) == 3.0
    assert np.isnan(value([x], op.square(op.sqrt(x)), -1.0))


def test_nothing_is_absorbed_by_zero() -> None:
    x = tensor(3)
    got = value([x], op.multiply(x, 0), [np.nan, np.inf, 1])
    np.testing.assert_array_equal(got, [np.nan, np.nan, 0])
    got = value([x], op.divide(0, x), [0, np.nan, 2])
    np.testing.assert_array_equal(got, [np.nan, np.nan, 0])
    fast = run(Graph([x], [op.multiply(x, 0)]), switched(PIPELINE, on=["fast_math"]))
    assert names(fast) == ["full"]


def test_a_choice_of_float32_stays_exact() -> None:
    c, x = tensor(dtype="bool", name="c"), tensor()
    picked = op.where(c, np.float32(1), np.float32(0))
    out = value([c, x], op.multiply(picked, x), True, 0.1)
    assert out == 0.1 and out.dtype == F64


def test_slice_past_the_start() -> None:
    x = tensor(2)
    np.testing.assert_array_equal(value([x], getitem(x, slice(0, -3, -1)), [10, 20]), [10])


KEYS = [
    (slice(2, 8), -1),
    (slice(1, -1), slice(1, -1), slice(1, -1)),
    (slice(-1, -4, -1), slice(1, 3)),
    (slice(5, 2, -1), slice(None, None, -1)),
]


@pytest.mark.parametrize("keys", KEYS, ids=str)
@pytest.mark.parametrize("length", range(10))
def test_slices_of_slices(keys: tuple, length: int) -> None:
    x, wanted = tensor(length, dtype="int64"), np.arange(length)
    y = x
    for key in keys:
        try:
            wanted = wanted[key]
        except IndexError:
            with pytest.raises(IndexError):
                getitem(y, key)
            return
        y = getitem(y, key)
    graph = lowered([x], [y])
    assert names(graph).count("basic_index") <= 1
    np.testing.assert_array_equal(evaluate(graph, [np.arange(length)])[0], wanted)


def test_a_filled_array_gives_its_shape() -> None:
    s = tensor()
    out = value([s], op.add(op.full((10,), -0.1), s), 2.0)
    assert out.shape == (10,)
    np.testing.assert_array_equal(out, 2.0 - 0.1)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_negative_constants(dtype: str) -> None:
    x = tensor(dtype=dtype)
    two = x.dtype.type(-2).item()
    outputs = [
        op.subtract(x, two),
        op.negative(op.negative(x)),
        op.multiply(x, -1),
        op.pow(op.add(op.multiply(x, 0), two), 2),
        op.subtract(x, op.negative(x)),
    ]
    got = evaluate(lowered([x], outputs), [np.asarray(3, dtype)])
    assert got == [5, 3, -3, 4, 6]


def test_run_time_indices_keep_their_check() -> None:
    i, j = tensor(dtype="int64", name="i"), tensor(dtype="int64", name="j")
    x = data(np.arange(3.0))
    graph = lowered([i], [op.take(x, i)])
    with pytest.raises(BoundsError):
        evaluate(graph, [np.asarray(5)])
    rows = tensor(4, 5)
    graph = lowered([rows, i, j], [getitem(getitem(rows, i), j)])
    assert names(graph).count("basic_index") == 1
    a = np.arange(20.0).reshape(4, 5)
    assert evaluate(graph, [a, np.asarray(-1), np.asarray(2)])[0] == 17
    for bad in ((4, 0), (0, -6)):
        with pytest.raises(BoundsError):
            evaluate(graph, [a, *map(np.asarray, bad)])


def test_a_rule_never_drops_a_check() -> None:
    """where(true, a, b) still verifies the index that b reads."""
    x, i = tensor(3), tensor(dtype="int64", name="i")
    y = op.where(op.full((), True), op.sum(x), getitem(x, i))
    graph = lowered([x, i], [y])
    with pytest.raises(BoundsError):
        evaluate(graph, [np.zeros(3), np.asarray(7)])
    assert "where" not in names(lowered([x], [op.where(op.full((), True), op.sum(x), op.max(x))]))


def test_huge_filled_arrays_stay_numbers() -> None:
    wide = op.broadcast_to(op.full((), 2.0), (100_000, 100_000))
    graph = lowered([], [getitem(wide, (3, 4))])
    assert names(graph) == ["full"]
    assert evaluate(graph, [])[0] == 2.0


def test_data_is_never_read() -> None:
    graph = lowered([], [op.add(op.multiply(data(np.ones(3)), 1.0), data(np.asarray(0.0)))])
    assert names(graph) == ["add"]


def test_numbers_are_kept_apart() -> None:
    x = tensor(3)
    graph = run(Graph([x], [op.divide(x, 0.0), op.divide(x, -0.0), op.divide(x, 0.0)]))
    assert graph.outputs[0] is graph.outputs[2] is not graph.outputs[1]
    i = tensor(3, dtype="int64")
    graph = run(Graph([i], [op.multiply(i, 3), op.multiply(i, 3.0)]))
    assert graph.outputs[0].dtype != graph.outputs[1].dtype


def test_stabilizing_sees_through_composites() -> None:
    x = tensor(2, 3)
    far = [[1e3, 0, -1e3], [0, 0, 0]]
    out = value([x], op.log(op.softmax(x, axis=1)), far)
    assert np.isfinite(out).all()
    out = value([x], op.log(op.sum(op.exp(x), axis=1)), far)
    assert np.isfinite(out).all()
    interpreted = run(Graph([x], [op.log(op.softmax(x, axis=1))]), INTERPRETED)
    assert names(interpreted) == ["log_softmax"]


def test_a_second_run_changes_nothing() -> None:
    x = tensor(2, 3)
    y = op.sum(op.log(op.sum(op.exp(x), axis=1))) + op.mean(op.log_softmax(x, axis=1)) + op.var(x)
    once = lowered([x], [y])
    assert names(run(once)) == names(once)


def test_equal_parts_of_composites_merge() -> None:
    x = tensor(4)
    graph = lowered([x], [op.softmax(x), op.logsumexp(x)])
    assert names(graph).count("exp") == 1


def test_symbolic_sizes() -> None:
    n = shapes.unknown("n")
    x = tensor(n)
    y = op.add(op.divide(op.sum(op.zeros_like(x) + x), n), op.multiply(op.ones((n,)), x))
    (got,) = evaluate(lowered([x], [y]), [np.arange(4.0)])
    np.testing.assert_array_equal(got, 1.5 + np.arange(4.0))


def test_the_record_tells_what_each_pass_did() -> None:
    x, steps = tensor(3), []
    run(Graph([x], [op.log(op.add(1, x)) * 1.0]), record=steps)
    assert [s.name for s in steps] == [one.name for one in PIPELINE]
    assert steps[1].fired["log_one_plus"] == 1 and "log_one_plus 1" in str(steps[1])
    assert isinstance(steps[0], Step) and all(s.seconds >= 0 for s in steps)


def test_a_rule_from_outside() -> None:
    mine, x = RuleSet("mine"), var("x")

    @mine.rule(p.sin(p.asin(x)))
    def sine_of_arcsine(x, node):
        """sin(asin(x)) -> x, where |x| <= 1"""
        return x

    s = tensor()
    graph = run(Graph([s], [op.sin(op.asin(s))]), [*PIPELINE, RulePass("mine", (mine,))])
    assert graph.outputs == (s,)
    assert fingerprint() != fingerprint(switched(PIPELINE, off=["rounding"]))
    off = switched([RulePass("mine", (mine,))], off=["sine_of_arcsine"])
    assert names(run(Graph([s], [op.sin(op.asin(s))]), off)) == ["asin", "sin"]
    before = fingerprint([RulePass("mine", (mine,))])
    mine.remove("sine_of_arcsine")
    assert fingerprint([RulePass("mine", (mine,))]) != before
    assert names(run(graph, [RulePass("mine", (mine,))])) == []


def test_cost_grows_linearly() -> None:
    def seconds(n: int) -> float:
        x = tensor(3)
        y = x
        for _ in range(n // 4):
            y = op.subtract(op.add(op.sin(y), op.multiply(x, 1.5)), op.softplus(y))
        graph, start = Graph([x], [y]), time.perf_counter()
        run(graph)
        return time.perf_counter() - start

    small, large = min(seconds(1250) for _ in range(3)), min(seconds(5000) for _ in range(2))
    assert large < 12 * small
    assert large < 3  # about a third of a second on an idle machine


def test_a_deep_graph() -> None:
    x = tensor()
    y = x
    for _ in range(20_000):
        y = op.add(op.sin(y), x)
    assert len(lowered([x], [y]).toposort()) == 40_001
