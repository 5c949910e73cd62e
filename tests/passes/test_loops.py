"""Loops: joined, trimmed, accumulating in place; nested ones too."""

import numpy as np
import pytest

from lazyarr.autodiff.reverse import pullback
from lazyarr.graph.check import check
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.passes.loops import loops
from lazyarr.passes.pipeline import run

pytestmark = pytest.mark.fast


def tensor(*shape: int, name: str = "x") -> Variable:
    return symbol(TensorType("float64", shape), name)


def scans(graph: Graph) -> list[Variable]:
    return [v for v in graph.toposort() if v.op is not None and v.op.name == "scan"]


def scan(body: Graph, inputs: tuple, length: int, n_carry: int, n_xs: int, reverse=False):
    return picks(op.scan(body, inputs, length=length, reverse=reverse, n_carry=n_carry, n_xs=n_xs))


def agree(before: Graph, after: Graph) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=v.shape) for v in before.inputs]
    for a, b in zip(evaluate(before, arrays), evaluate(after, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-300)


def recurrence(length: int = 6) -> tuple[list[Variable], Variable, Variable]:
    """A tanh recurrence with a weight picked from a captured vector."""
    c, x, w = tensor(name="c"), tensor(), tensor(5, name="w")
    new = op.tanh(op.add(op.multiply(c, op.basic_index(w, 2)), x))
    init, xs, weights = tensor(name="init"), tensor(length, name="xs"), tensor(5, name="weights")
    body = Graph([c, x, w], [new, op.square(new)])
    last, ys = scan(body, (init, xs, weights), length, 1, 1)
    return [init, xs, weights], last, ys


def test_value_and_gradient_hold_two_loops() -> None:
    inputs, last, ys = recurrence()
    loss = op.add(last, op.sum(ys))
    graph = Graph(inputs, [loss, *pullback([loss], inputs, [op.full((), 1.0)])])
    assert len(scans(graph)) == 3
    done = check(run(graph), lowered=True)
    assert len(scans(done)) == 2
    agree(graph, done)


def test_the_gradient_of_an_indexed_capture_is_updated_in_place() -> None:
    inputs, last, ys = recurrence()
    graph = run(Graph(inputs, pullback([last], inputs, [op.full((), 1.0)])))
    back = scans(graph)[-1].params["body"]
    ops = [v.op.name for v in back.toposort() if v.op is not None]
    assert "add_at" in ops and "full" not in ops


def test_second_derivatives() -> None:
    inputs, last, _ = recurrence(4)
    (slope,) = pullback([last], inputs[:1], [op.full((), 1.0)])
    second = pullback([slope], inputs, [op.full((), 1.0)])
    graph = Graph(inputs, [last, slope, *second])
    done = check(run(graph), lowered=True)
    assert len(scans(done)) < len(scans(graph))
    agree(graph, done)


def test_what_nobody_reads_is_dropped() -> None:
    c, d, x, w = tensor(name="c"), tensor(name="d"), tensor(), tensor(name="w")
    body = Graph([c, d, x, w], [op.add(c, 1.0), op.multiply(d, x), op.multiply(c, 2), op.add(d, w)])
    a, b, xs, k = tensor(name="a"), tensor(name="b"), tensor(4, name="xs"), tensor(name="k")
    graph = Graph([a, b, xs, k], [scan(body, (a, b, xs, k), 4, 2, 1)[2]])
    done = check(loops(graph))
    (loop,) = scans(done)
    assert (loop.params["n_carry"], loop.params["n_xs"], len(loop.inputs)) == (1, 0, 1)
    agree(graph, done)


def test_a_carry_that_never_changes_is_a_capture() -> None:
    c, d = tensor(name="c"), tensor(name="d")
    a, b = tensor(name="a"), tensor(name="b")
    first, second = scan(Graph([c, d], [op.multiply(c, d), d]), (a, b), 3, 2, 0)
    graph = Graph([a, b], [first, second])
    done = check(loops(graph))
    (loop,) = scans(done)
    assert loop.params["n_carry"] == 1 and done.outputs[1] is b
    agree(graph, done)


def test_loops_with_other_steps_stay_apart() -> None:
    c, x = tensor(name="c"), tensor()
    a, xs = tensor(name="a"), tensor(4, name="xs")
    one = Graph([c, x], [op.add(c, x), op.multiply(c, x)])
    two = Graph([c, x], [op.subtract(c, x), op.multiply(c, x)])
    back = scan(one, (a, xs), 4, 1, 1, reverse=True)
    graph = Graph([a, xs], [*scan(one, (a, xs), 4, 1, 1), *scan(two, (a, xs), 4, 1, 1), *back])
    done = check(loops(graph))
    assert len(scans(done)) == 3
    agree(graph, done)


def test_joined_loops_hold_equal_outputs_once() -> None:
    c, x = tensor(name="c"), tensor()
    new = op.add(c, op.square(x))
    a, xs = tensor(name="a"), tensor(4, name="xs")
    one = scan(Graph([c, x], [new, op.multiply(x, c)]), (a, xs), 4, 1, 1)
    two = scan(Graph([c, x], [new, c, op.multiply(x, c)]), (a, xs), 4, 1, 1)
    graph = Graph([a, xs], [*one, *two])
    done = check(loops(graph))
    (loop,) = scans(done)
    assert len(loop.params["body"].outputs) == 3
    agree(graph, done)


def test_nested_loops() -> None:
    c, w = tensor(name="c"), tensor(name="w")
    inner = Graph([c, w], [op.multiply(c, w), op.exp(c)])
    d, v = tensor(name="d"), tensor(name="v")
    outer = Graph([d, v], [scan(inner, (d, v), 3, 1, 0)[0]])
    a, k = tensor(name="a"), tensor(name="k")
    (last,) = scan(outer, (a, k), 2, 1, 0)
    graph = Graph([a, k], [last, *pullback([last], [a, k], [op.full((), 1.0)])])
    done = check(run(graph), lowered=True)
    agree(graph, done)
    body = scans(done)[0].params["body"]
    assert len(scans(body)[0].params["body"].outputs) == 1


def test_passes_enter_bodies() -> None:
    c = tensor(name="c")
    body = Graph([c], [op.log(op.add(1, op.softplus(c * 1.0)) - 0)])
    a = tensor(name="a")
    (loop,) = scans(run(Graph([a], scan(body, (a,), 3, 1, 0))))
    ops = [v.op.name for v in loop.params["body"].toposort() if v.op is not None]
    assert ops == ["softplus", "log1p"]


def test_a_masked_cotangent_masks_its_products() -> None:
    """What is masked out is 0 whatever it is multiplied with; the mask is left on top."""
    m, g, x = symbol(TensorType("bool", (4,))), tensor(), tensor(4)
    graph = Graph([m, g, x], [op.absorb(op.where(m, g, 0.0), x)])
    done = check(run(graph))
    assert done.outputs[0].op.name == "where"
    mask = np.array([True, False, True, False])
    for factor in (2.0, np.inf, 0.0):
        arrays = [mask, np.array(factor), np.array([1.0, -1.0, 0.0, np.inf])]
        (a,), (b,) = evaluate(graph, arrays), evaluate(done, arrays)
        np.testing.assert_array_equal(a, b)


def test_a_dear_part_of_a_y_is_computed_after_the_loop_and_of_xs_before_it() -> None:
    c, x = tensor(name="c"), tensor()
    new = op.add(op.multiply(c, 0.5), op.exp(x))
    a, xs = tensor(name="a"), tensor(4, name="xs")
    last, ys = scan(Graph([c, x], [new, op.log(op.add(c, 2.0))]), (a, xs), 4, 1, 1)
    graph = Graph([a, xs], [last, ys])
    done = check(loops(graph))
    (loop,) = scans(done)
    inside = {v.op.name for v in loop.params["body"].toposort() if v.op is not None}
    assert inside == {"add", "multiply"}
    agree(graph, done)


def test_a_counter_becomes_a_walk() -> None:
    c, k = tensor(name="c"), symbol(TensorType("int64", ()))
    body = Graph([c, k], [op.sin(op.add(c, op.multiply(k, 2.0))), op.add(k, 3)])
    a, start = tensor(name="a"), symbol(TensorType("int64", ()), "start")
    last, count = scan(body, (a, start), 5, 2, 0)
    graph = Graph([a, start], [last, count])
    done = check(loops(graph))
    (loop,) = scans(done)
    assert (loop.params["n_carry"], loop.params["n_xs"]) == (1, 1)
    arrays = [np.array(1.0), np.array(2)]
    for got, want in zip(evaluate(done, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want)


def test_a_carry_that_adds_up_a_dear_part_becomes_a_sum() -> None:
    c, s, x = tensor(name="c"), tensor(name="s"), tensor()
    new = op.add(op.multiply(c, 0.5), op.square(x))
    body = Graph([c, s, x], [new, op.add(op.add(s, op.log(new)), op.divide(x, new))])
    a, b, xs = tensor(name="a"), tensor(name="b"), tensor(4, name="xs")
    graph = Graph([a, b, xs], scan(body, (a, b, xs), 4, 2, 1))
    done = check(loops(graph))
    (loop,) = scans(done)
    assert loop.params["n_carry"] == 1
    inside = {v.op.name for v in loop.params["body"].toposort() if v.op is not None}
    assert not inside & {"log", "divide"}
    agree(graph, done)


def lag_chain(length: int, reverse: bool, elements: tuple = ()) -> Graph:
    """A series read at lags of 1 to 3, all of them and the series stored."""
    c, d, e, x = (tensor(*elements) for _ in range(4))
    new = op.add(op.multiply(c, 0.5), op.subtract(op.multiply(e, x), d))
    starts = [tensor(*elements, name=f"start{k}") for k in range(3)]
    xs = tensor(length, *elements, name="xs")
    body = Graph([c, d, e, x], [new, c, d, e, new, d, c])
    return Graph([*starts, xs], scan(body, (*starts, xs), length, 3, 1, reverse))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_shifted_stacks_are_stored_once(length: int, reverse: bool) -> None:
    for elements in ((), (2,)):
        graph = lag_chain(length, reverse, elements)
        done = check(loops(graph))
        (loop,) = scans(done)
        assert len(loop.params["body"].outputs) == 4  # three carries and one stack
        agree(graph, done)


def test_a_ring_of_carries_and_a_carry_that_stays_share_no_stack() -> None:
    c, d, e = tensor(name="c"), tensor(name="d"), tensor(name="e")
    starts = tuple(tensor(name=f"start{k}") for k in range(3))
    ring = Graph([c, d, e], [d, c, op.multiply(e, c), c, d, e])
    graph = Graph(starts, scan(ring, starts, 5, 3, 0))
    done = check(loops(graph))
    agree(graph, done)


def test_two_carries_that_become_one_value() -> None:
    c, d, x = tensor(name="c"), tensor(name="d"), tensor()
    new = op.add(op.multiply(c, d), x)
    starts, xs = (tensor(name="a"), tensor(name="b")), tensor(4, name="xs")
    graph = Graph(
        [*starts, xs], scan(Graph([c, d, x], [new, new, c, d, new]), (*starts, xs), 4, 2, 1)
    )
    agree(graph, check(loops(graph)))


def test_the_gradient_of_lags_stores_one_series() -> None:
    length = 6
    graph = lag_chain(length, False)
    (loss,) = (op.sum(op.square(graph.outputs[3])),)
    slopes = pullback([loss], graph.inputs, [op.full((), 1.0)])
    whole = Graph(graph.inputs, [loss, *slopes])
    done = check(run(whole), lowered=True)
    forward = next(v for v in scans(done) if not v.params["reverse"])
    stacks = forward.type.types[forward.params["n_carry"] :]
    assert len(stacks) == 1
    agree(whole, done)


def test_an_input_may_be_a_node_of_other_nodes() -> None:
    c, x, start = tensor(name="c"), tensor(), tensor(name="start")
    xs = op.exp(tensor(4))
    last, ys = scan(Graph([c, x], [op.add(c, x), c]), (start, xs), 4, 1, 1)
    graph = Graph([start, xs], [last, op.sum(ys)])
    agree(graph, run(graph))
