"""A batched graph computes what a Python loop over the batch computes, for each kind of op."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401  (fills the catalogue)
from lazyarr.autodiff.batch import BATCH, SHIFTED, batch
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.errors import ArgumentError
from lazyarr.graph import shapes
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import KINDS, AxisMap, Op
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.ops.control import picks
from lazyarr.graph.ops.indexing import basic_parts, getitem, read_region, update
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import Graph, toposort
from lazyarr.graph.types import TensorType, TupleType

pytestmark = pytest.mark.fast
SIZE = 3


def leaf(dtype: str, *shape: object) -> Variable:
    return symbol(TensorType(dtype, shape))


def named(name: str, graph: Graph) -> list[Variable]:
    """The nodes of an op in a graph."""
    return [v for v in toposort(graph.outputs) if v.op is not None and v.op.name == name]


def values_of(t: TensorType, seed: int, lead: tuple = ()) -> np.ndarray:
    """Random values of a type; integers are small enough to index every axis in these tests."""
    rng = np.random.default_rng(seed)
    shape = (*lead, *t.shape)
    if t.dtype.kind == "f":
        return rng.uniform(0.2, 0.8, shape).astype(t.dtype)
    if t.dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(t.dtype)
    return rng.integers(0, 2, shape).astype(t.dtype)


def check_batch(inputs: list[Variable], outputs: list[Variable], axes: list, arrays: list) -> Graph:
    """Compare a batched graph with a loop over the batch, and return it."""
    graph = Graph(inputs, outputs)
    batched = batch(graph, axes, SIZE)
    got = evaluate(batched, arrays)
    rows = []
    for k in range(SIZE):
        given = [
            a if axis is None else np.take(a, k, axis) for a, axis in zip(arrays, axes, strict=True)
        ]
        rows.append(evaluate(graph, given))
    for i, y in enumerate(outputs):
        want = np.stack([row[i] for row in rows])
        assert batched.outputs[i].dtype == y.dtype
        assert batched.outputs[i].shape == (SIZE, *y.shape)
        assert got[i].dtype == want.dtype
        np.testing.assert_allclose(got[i], want, rtol=1e-12, atol=1e-12)
    return batched


def check_all(inputs: list[Variable], outputs: list[Variable], spd: bool = False) -> None:
    """Check a graph with every choice of batched inputs, at different positions of the axis."""
    for chosen in itertools.product([False, True], repeat=len(inputs)):
        if not any(chosen):
            continue
        axes = [
            (i % (v.ndim + 1)) if c else None
            for i, (v, c) in enumerate(zip(inputs, chosen, strict=True))
        ]
        arrays = []
        for i, (v, axis) in enumerate(zip(inputs, axes, strict=True)):
            a = values_of(v.type, i, () if axis is None else (SIZE,))
            if spd and v.ndim >= 2:
                a = a @ np.swapaxes(a, -1, -2) + v.shape[-1] * np.eye(v.shape[-1])
            arrays.append(a if axis is None else np.moveaxis(a, 0, axis))
        check_batch(inputs, outputs, axes, arrays)


def test_every_kind_has_a_rule() -> None:
    assert set(BATCH) == set(KINDS)


# -- elementwise, reductions, cumulative ----------------------------------------------------------


def test_elementwise_aligns_ranks() -> None:
    x, y, z = leaf("float64", 4), leaf("float64", 2, 1), leaf("float64")
    check_all([x, y, z], [op.add(op.multiply(x, y), z), op.subtract(z, x), op.add(y, 1)])


def test_elementwise_of_three_and_casts() -> None:
    c, x, y = leaf("bool", 2, 4), leaf("float32", 4), leaf("float64")
    check_all([c, x, y], [op.where(c, x, y), op.astype(x, "int64"), op.where(c, x, 0)])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "all", "any"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction(name: str, keepdims: bool) -> None:
    x = leaf("float64", 2, 3, 4)
    axes: list = [None, 0, 2, (0, 2), ()]
    check_all([x], [OPS[name](x, axis=a, keepdims=keepdims) for a in axes])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_index_of_extreme(name: str, keepdims: bool) -> None:
    x, scalar = leaf("float64", 2, 3, 4), leaf("float64")
    outputs = [OPS[name](x, axis=a, keepdims=keepdims) for a in (None, 0, 2)]
    check_all([x, scalar], [*outputs, OPS[name](scalar, keepdims=keepdims)])


@pytest.mark.parametrize("initial", [False, True])
def test_cumulative(initial: bool) -> None:
    x = leaf("float64", 2, 3)
    check_all([x], [
        op.cumulative_sum(x, axis=1, include_initial=initial),
        op.cumulative_prod(x, axis=0, include_initial=initial),
    ])  # fmt: skip


# -- movement -------------------------------------------------------------------------------------


def test_movement() -> None:
    x = leaf("float64", 2, 3, 1)
    check_all([x], [
        op.permute_dims(x, (2, 0, 1)), op.expand_dims(x, axis=(0, 2)), op.squeeze(x, 2),
        op.flip(x), op.flip(x, axis=1), op.broadcast_to(x, (5, 2, 3, 4)), op.reshape(x, (3, 2)),
        op.reshape(x, (-1,)), op.specify_shape(x, (2, 3, 1), ("a", "b", "c")),
        op.main_diagonal(op.matmul(x, op.reshape(x, (2, 1, 3)))),
    ])  # fmt: skip


def test_broadcast_of_lower_rank_and_scalars() -> None:
    x, s = leaf("float64", 4), leaf("float64")
    check_all([x, s], [op.broadcast_to(x, (2, 3, 4)), op.broadcast_to(s, (2, 2)),
                       op.broadcast_to(x, (4,)), op.broadcast_to(s, ())])  # fmt: skip


def test_movement_stays_movement() -> None:
    """No index arrays where shifted axes will do."""
    x = leaf("float64", 2, 3, 1)
    y = op.broadcast_to(op.flip(op.squeeze(op.permute_dims(x, (2, 0, 1)), 0), axis=1), (4, 2, 3))
    y = op.main_diagonal(getitem(op.expand_dims(y, axis=1), (..., slice(0, 2))))
    y = getitem(y, (slice(1, None), None, 0))
    found = batch(Graph([x], [y]), [0], SIZE)
    names = {v.op.name for v in toposort(found.outputs) if v.op is not None}
    assert names <= {"permute_dims", "squeeze", "flip", "expand_dims", "broadcast_to",
                     "main_diagonal", "basic_index"}  # fmt: skip


def test_joins() -> None:
    x, y = leaf("float64", 2, 3), leaf("float64", 2, 3)
    check_all([x, y], [op.concat([x, y], axis=1), op.concat([x, y, x], axis=0),
                       op.stack([x, y], axis=0), op.stack([x, y], axis=2)])  # fmt: skip


@pytest.fixture
def rotate() -> Iterator[Op]:
    """A movement whose call on one more axis means something else."""

    def index(node: Variable) -> tuple:
        last = node.ndim - 1
        return tuple(
            AxisMap(last - i, -1, s - 1) if i == last else AxisMap(last - i)
            for i, s in enumerate(node.inputs[0].shape)
        )

    yield declare(
        "movement",
        name="test_rotate",
        infer=lambda types, params: TensorType(types[0].dtype, types[0].shape[::-1]),
        reference=lambda x: np.transpose(x)[::-1],
        index=index,
        vjp=lambda g, y, x: (None,),
    )(lambda x, /: ((x,), {}))
    del OPS["test_rotate"]


def test_movement_that_is_not_shifted_is_read_by_index(rotate: Op) -> None:
    x = leaf("float64", 2, 3, 4)
    check_all([x], [rotate(x)])


# -- basic indices --------------------------------------------------------------------------------

KEYS = [
    lambda i, j: (i,),
    lambda i, j: (slice(None), i),
    lambda i, j: (None, i, None, slice(3, None, -2)),
    lambda i, j: (1, slice(0, 3), i),
    lambda i, j: (i, slice(1, None), j),
    lambda i, j: (i, j, None, i),
    lambda i, j: (0, slice(None, None, -1), 2),
]


@pytest.mark.parametrize("key", KEYS)
def test_region_with_batched_starts(key) -> None:
    x, i, j = leaf("float64", 2, 4, 5), leaf("int64"), leaf("int64")
    y = getitem(x, key(i, j))
    check_all([x, i, j], [op.add(y, op.add(i, j))])


def moving_window(x: Variable, start: Variable, step: int) -> tuple:
    """The parts of a slice of 3 along the last axis from a computed start."""
    spec, starts, lengths = basic_parts(x, (slice(None), slice(0, 3 * abs(step), abs(step))))
    return (spec[0], ("slice", step)), (starts[0], start), lengths


@pytest.mark.parametrize("step", [1, 2, -1])
def test_slice_with_batched_start(step: int) -> None:
    x, v, i = leaf("float64", 2, 8), leaf("float64", 2, 3), leaf("int64")
    start = op.add(i, 0 if step > 0 else 3)
    spec, starts, lengths = moving_window(x, start, step)
    read = read_region(x, spec, lengths, starts)
    put = op.set_at(x, v, *starts, spec=spec, lengths=lengths)
    add = op.add_at(x, v, *starts, spec=spec, lengths=lengths)
    check_all([x, v, i], [op.add(read, v), put, add])


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("how", ["set", "add"])
def test_update_of_region(key, how: str) -> None:
    x, i, j = leaf("float64", 2, 4, 5), leaf("int64"), leaf("int64")
    v = leaf("float64", *getitem(x, key(i, j)).shape[-1:])
    check_all([x, v, i, j], [update(x, key(i, j), op.add(v, op.add(i, j)), how)])


# -- arrays of indices ----------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_take(axis: int, shape: tuple) -> None:
    x, i = leaf("float64", 2, 3, 4), leaf("int64", *shape)
    check_all([x, i], [op.take(x, i, axis=axis)])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
@pytest.mark.parametrize("name", ["take_set", "take_add"])
def test_scatter(axis: int, shape: tuple, name: str) -> None:
    x, i = leaf("float64", 2, 3, 4), leaf("int64", *shape)
    v = leaf("float64", *op.take(x, i, axis=axis).shape)
    check_all([x, i, v], [OPS[name](x, i, v, axis=axis)])


def test_several_index_arrays() -> None:
    x, i, j = leaf("float64", 2, 3, 4), leaf("int64", 5), leaf("int64", 5)
    check_all([x, i, j], [getitem(x, (i, j)), getitem(x, (slice(None), i, j)),
                          update(x, (i, j), 2.5, how="add")])  # fmt: skip


# -- creation, contractions, linear algebra, composites -------------------------------------------


def test_creation() -> None:
    x, v = leaf("float64", 2, 3), leaf("int64")
    check_all([x, v], [
        op.full((2, 3), v, dtype="float32"), op.full((), v), op.full_like(x, v), op.zeros_like(x),
        op.ones((2,)), op.add(op.arange(3), v), op.eye(3),
    ])  # fmt: skip


def test_contraction() -> None:
    a, b = leaf("float64", 2, 3), leaf("float64", 3, 4)
    row, stacked = leaf("float64", 3), leaf("float64", 5, 3, 2)
    check_all([a, b], [op.matmul(a, b), op.tensordot(a, b, axes=1), op.tensordot(a, b, axes=0)])
    check_all([a, row], [op.matmul(a, row), op.vecdot(a, row)])
    check_all([stacked, a], [op.matmul(stacked, a), op.matmul(a, stacked)])


def test_cholesky_and_solve() -> None:
    a, b = leaf("float64", 3, 3), leaf("float64", 3)
    check_all([a, b], [op.cholesky(a), op.cholesky(a, upper=True), op.solve_triangular(a, b),
                       op.solve_triangular(a, b, lower=False, trans=True)], spd=True)  # fmt: skip
    many, columns = leaf("float64", 2, 3, 3), leaf("float64", 2, 3, 3)
    check_all([many, columns], [op.solve_triangular(many, columns)], spd=True)


def test_one_matrix_is_solved_once() -> None:
    a, b = leaf("float64", 3, 3), leaf("float64", 3)
    found = batch(Graph([a, b], [op.solve_triangular(a, b)]), [None, 0], 5)
    (solve,) = [
        v for v in toposort(found.outputs) if v.op is not None and v.op.name == "solve_matrix"
    ]
    assert solve.inputs[0] is a
    assert solve.shape == (3, 5)


def test_composites() -> None:
    x = leaf("float64", 3, 4)
    check_all([x], [
        op.mean(x), op.var(x, axis=1, correction=1), op.std(x, axis=0, keepdims=True),
        op.logsumexp(x, axis=1), op.softmax(x, axis=0), op.log_softmax(x), op.clip(x, 0.3, 0.6),
        op.tril(x), op.triu(x, k=1), op.trace(x), op.diagonal(x, offset=1), op.sum_to(x, (1, 4)),
        op.matrix_transpose(x),
    ])  # fmt: skip


def test_composite_with_a_rule_stays() -> None:
    x = leaf("float64", 3)
    found = batch(Graph([x], [op.std(x)]), [0], 2)
    assert named("std", found)


# -- loops ----------------------------------------------------------------------------------------


def loop(
    init: list, xs: list, captures: list, step, length: int = 4, reverse: bool = False
) -> list:
    carry, items = [symbol(v.type) for v in init], [leaf(v.dtype, *v.shape[1:]) for v in xs]
    inside = [symbol(v.type) for v in captures]
    new, ys = step(carry, items, inside)
    body = Graph([*carry, *items, *inside], [*new, *ys])
    return picks(op.scan(body, (*init, *xs, *captures), length=4, reverse=reverse,
                         n_carry=len(init), n_xs=len(xs)))  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool) -> None:
    c, x, w = leaf("float64", 2), leaf("float64", 4, 2), leaf("float64")
    found = loop([c], [x], [w], lambda c, x, w: (
        [op.add(op.multiply(c[0], w[0]), x[0])], [op.sum(c[0]), op.multiply(w[0], 2), x[0]]),
        reverse=reverse)  # fmt: skip
    check_all([c, x, w], found)


def test_scan_batches_only_what_must_be() -> None:
    """b becomes batched through a; n, which counts steps, never does."""
    a, b, n, w = leaf("float64"), leaf("float64"), leaf("int64"), leaf("float64")
    found = loop([a, b, n], [], [w], lambda c, x, w: (
        [op.add(c[0], w[0]), op.add(c[1], c[0]), op.add(c[2], 1)], [c[2]]))  # fmt: skip
    check_all([a, b, n, w], found)
    batched = batch(Graph([a, b, n, w], found), [None, None, None, 0], SIZE)
    (scan,) = named("scan", batched)
    assert [t.ndim for t in scan.type.types] == [1, 1, 0, 1]


def test_derivative_of_batched_scan() -> None:
    c, x, w = leaf("float64"), leaf("float64", 4), leaf("float64")
    (last, ys) = loop([c], [x], [w], lambda c, x, w: (
        [op.sin(op.add(op.multiply(c[0], w[0]), x[0]))], [op.square(c[0])]))  # fmt: skip
    y = op.add(last, op.sum(ys))
    gradient = pullback([y], [c, x, w], [op.full((), 1.0)])
    tangent = pushforward([y], [w], [op.full((), 1.0)])
    check_all([c, x, w], [*gradient, *tangent])
    batched = batch(Graph([c, x, w], [y]), [0, None, None], SIZE)
    total = op.sum(batched.outputs[0])
    after = pullback([total], [batched.inputs[0]], [op.full((), 1.0)])
    arrays = [values_of(v.type, i) for i, v in enumerate(batched.inputs)]
    before = batch(Graph([c, x, w], gradient[:1]), [0, None, None], SIZE)
    np.testing.assert_allclose(
        evaluate(Graph(batched.inputs, after), arrays)[0], evaluate(before, arrays)[0], rtol=1e-12
    )


# -- the whole ------------------------------------------------------------------------------------


def test_nested_batches() -> None:
    x, i = leaf("float64", 4), leaf("int64")
    y = op.multiply(op.softmax(x, axis=0), getitem(x, (i,)))
    once = batch(Graph([x, i], [y]), [None, 0], 2)
    check_batch(list(once.inputs), list(once.outputs), [1, None],
                [values_of(leaf("float64", 4, SIZE).type, 0), np.array([1, 3])])  # fmt: skip


def test_symbolic_sizes() -> None:
    n, m = shapes.unknown("n"), shapes.unknown("m")
    x, i = leaf("float64", n, 2), leaf("int64")
    y = op.sum(op.multiply(getitem(x, (i,)), op.logsumexp(op.reshape(x, (-1,)))))
    z = update(x, (slice(None), i), op.sum(x, axis=1), how="add")
    graph = Graph([x, i], [y, z])
    batched = batch(graph, [0, 0], m)
    xs, indices = values_of(leaf("float64", 5, 4, 2).type, 0), np.array([0, 1, 1, 0, 1])
    got = evaluate(batched, [xs, indices])
    for k in range(5):
        for a, b in zip(evaluate(graph, [xs[k], indices[k]]), got, strict=True):
            np.testing.assert_allclose(a, b[k], rtol=1e-12)


def test_output_without_the_batch_is_repeated() -> None:
    x, y = leaf("float64", 2), leaf("float64", 2)
    check_batch([x, y], [op.exp(x), y], [None, 0], [np.ones(2), np.ones((SIZE, 2))])


def test_size_one_and_empty_batches() -> None:
    x, y = leaf("float64", 2, 1), leaf("float64", 3)
    for size in (0, 1):
        found = batch(Graph([x, y], [op.multiply(x, y), op.argmax(x)]), [0, None], size)
        assert [a.shape for a in evaluate(found, [np.ones((size, 2, 1)), np.ones(3)])] == [
            (size, 2, 3), (size,)]  # fmt: skip


def test_bad_axes() -> None:
    x = leaf("float64", 2)
    with pytest.raises(ArgumentError, match="axis 2"):
        batch(Graph([x], [x]), [2], 3)
    with pytest.raises(ArgumentError, match="1 inputs"):
        batch(Graph([x], [x]), [0, 0], 3)


def test_parameters_that_grow_are_known() -> None:
    """An op whose parameters count axes under another name would be batched wrongly."""
    harmless = {"keepdims", "dtype", "correction", "include_initial"}
    for record in OPS.values():
        if record.kind in ("reduction", "cumulative"):
            x = leaf("bool" if record.combine in ("and", "or") else "float64", 2)
            assert set(record(x, axis=0).params) <= harmless | set(SHIFTED)


def test_an_op_without_a_rule_runs_in_a_loop() -> None:
    """Also one with several outputs; what is not batched is captured."""

    def declared(name: str, infer, reference) -> Op:
        return declare("library", name=name, infer=infer, reference=reference, vjp=None)(
            lambda x, y, /: ((x, y), {})
        )

    try:
        one = declared("test_one", lambda types, params: types[0], lambda x, y: x[::-1] + y)
        two = declared("test_two", lambda types, params: TupleType(types),
                       lambda x, y: (x[::-1], y * 2))  # fmt: skip
        x, y = leaf("float64", 3), leaf("float64")
        check_all([x, y], [one(x, y), *picks(two(x, y))])
    finally:
        del OPS["test_one"], OPS["test_two"]
