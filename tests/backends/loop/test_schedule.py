"""What fuses with what: the shape of the loops, not their values."""

import pytest

from lazyarr.backends.loop import emit, ir, schedule, statements
from lazyarr.backends.loop import plan as planning
from lazyarr.backends.loop.plan import Plan, plan
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.loop.cases import CASES, K, M, N, leaf
from tests.backends.loop.test_cases import expanded

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def whole_loops(monkeypatch) -> None:
    """Loops as they are before long sums are cut into blocks, and short rows into tiles."""
    monkeypatch.setattr(statements, "is_long_sum", lambda node: False)
    monkeypatch.setattr(statements, "rows_in_blocks", lambda node, sums, make: [node])
    monkeypatch.setattr(emit.Emitter, "_adds_whole", lambda *args: False)
    monkeypatch.setattr(planning, "add_tiles", lambda *arguments: None)


def loops(planned: Plan) -> list:
    """The loops of a plan as nested lists of kinds."""

    def inside(body: list) -> list:
        return [[n.kind, *inside(n.body)] for n in body if isinstance(n, ir.For)]

    return [shape for f in planned.functions for shape in inside(f.body)]


def planned(inputs: list, outputs: list) -> Plan:
    return plan(expanded(Graph(inputs, outputs)))


def whole(p: Plan) -> list[ir.For]:
    """Every loop of a plan."""
    return [n for f in p.functions for n in ir.walk(f.body) if isinstance(n, ir.For)]


def count(node: type, p: Plan) -> int:
    return sum(isinstance(n, node) for f in p.functions for n in ir.walk(f.body))


def test_a_chain_is_one_loop_without_temporaries() -> None:
    x, y = leaf(N), leaf(N)
    p = planned([x, y], [op.exp(x) * y + op.tanh(x)])
    assert loops(p) == [["simd"]]
    assert not p.local
    assert not p.slots


def test_a_value_and_its_gradients_share_a_loop() -> None:
    x, y, m = leaf(N), leaf(N), leaf()
    z = (y - m) * x
    p = planned([x, y, m], [op.sum(z * z), op.sum(z * x), z * y])
    assert loops(p) == [["simd"]]
    assert count(ir.Load, p) == 3


def test_a_loop_takes_as_many_sums_as_there_are_registers() -> None:
    x, many = leaf(N), 3 * schedule.MOST_SUMS
    p = planned([x], [op.sum(op.abs(x - k)) for k in range(many)])
    assert loops(p) == [["simd"]] * 3
    assert all(len(n.reductions) <= schedule.MOST_SUMS for n in whole(p))


def test_equal_expressions_are_made_once() -> None:
    x = leaf(N)
    p = planned([x], [op.exp(x) + 1, op.exp(x) * 2])
    lets = [n for f in p.functions for n in ir.walk(f.body) if isinstance(n, ir.Let)]
    assert sum(n.value.prim == "exp" for n in lets) == 1


def test_a_normalisation_blocks_by_rows() -> None:
    graph, _ = CASES["softmax"]()
    p = plan(expanded(graph), precise=True)
    assert loops(p) == [["serial", ["simd"], ["simd"], ["simd"]]]
    (row,) = p.slots
    assert len(p.shapes[row]) == 1  # the exponentials of one row


def test_a_first_axis_reduction_keeps_the_vector_innermost() -> None:
    x = leaf(N, M)
    rows = ["serial", ["simd"]]  # four at a time, and the rest
    assert loops(planned([x], [op.sum(x, axis=0)])) == [["simd"], rows, rows]


def test_scalars_leave_loops() -> None:
    x, s = leaf(N), leaf()
    p = planned([x, s], [x * op.exp(s)])
    (loop,) = [n for n in p.functions[0].body if isinstance(n, ir.For)]
    assert all(n.value.prim == "mul" for n in loop.body if isinstance(n, ir.Let))


def test_short_static_axes_are_unrolled_inside_one_loop() -> None:
    x, w = leaf(N, 3), leaf(3, 4)
    logits = op.matmul(x, w)
    p = planned([x, w], [op.sum(op.logsumexp(logits, axis=1))])
    assert loops(p) == [["simd"]]
    assert not p.slots


def test_where_all_axes_are_short_the_last_is_walked() -> None:
    """So that what is stored lies side by side: the first axis is unrolled."""
    x, y = leaf(4, 4), leaf(4)
    p = planned([x, y], [op.sum(x * y, axis=0), x * y])
    assert loops(p) and all(kinds == ["simd"] for kinds in loops(p))
    loop = next(n for f in p.functions for n in f.body if isinstance(n, ir.For))
    assert loop.counter in {n.offset for n in loop.body if isinstance(n, ir.Store)}


def test_strided_reads_stay_out_of_vector_loops() -> None:
    x, w, y = leaf(N, 5), leaf(5), leaf(N)
    eta = op.matmul(x, w)
    p = planned([x, w, y], [op.sum(op.softplus(eta) * y)])
    assert loops(p) == [["serial"], ["simd"]]


def test_stacked_columns_never_meet_memory() -> None:
    a, b, w = leaf(N), leaf(N), leaf(2)
    p = planned([a, b, w], [op.sum(op.exp(op.matmul(op.stack([a, b], axis=1), w)))])
    assert loops(p) == [["simd"]]
    assert not p.slots


def test_updates_of_one_array_happen_in_place() -> None:
    x, y = leaf(N), leaf(3)
    zeros = op.zeros((N,))
    both = zeros
    for start in (0, 1):
        both = op.add_at(both, y, start, spec=(("slice", 1),), lengths=(3,))
    p = planned([x, y], [both])
    assert not p.local
    assert not p.slots


def test_a_gather_limits_the_lanes() -> None:
    x, i = leaf(M), leaf(K, dtype="int64")
    p = planned([x, i], [op.exp(op.take(x, i))])
    assert [n.lanes for n in p.functions[0].body if isinstance(n, ir.For)] == [4]


def test_explain_names_loops_nodes_and_memory() -> None:
    graph, _ = CASES["softmax"]()
    text = plan(expanded(graph)).explain()
    for part in ("for n (outer)", "for m (vector)", "exp", "arena slot"):
        assert part in text


def test_explain_says_what_is_apart_and_why() -> None:
    x, w, y = leaf(N, M), leaf(M), leaf(M)
    p = planned([x, w, y], [op.matmul(x, op.exp(w)), op.exp(y / op.sum(y)), op.sum(x * op.tanh(w))])
    text = p.explain()
    for part in ("a library routine reads it", "complete only after the loop before", "gemv"):
        assert part in text


def test_elementwise_work_of_any_rank_is_one_loop() -> None:
    x, y, s = leaf(N, 5), leaf(N, M, K), leaf()
    assert loops(planned([x, s], [op.exp(x) * s, x + 1])) == [["simd"]]
    assert loops(planned([y], [op.exp(y)])) == [["simd"]]


def test_work_that_shares_rows_keeps_them() -> None:
    x = leaf(N, M)
    p = planned([x], [op.exp(x), op.sum(op.exp(x), axis=1)])
    assert loops(p) == [["serial", ["simd"]]]


def test_a_growing_history_is_not_copied() -> None:
    graph, _ = CASES["history_scan"]()
    p = plan(expanded(graph), precise=True)
    assert loops(p) == [["simd"], ["serial", ["simd"]]]  # the start, then a sum in each step
