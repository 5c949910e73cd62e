"""Rows below a limit are taken a vector of rows at a time: the same values, whatever the sizes."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.base import get_backend
from lazyarr.backends.c import print as printer
from lazyarr.backends.loop import ir
from lazyarr.backends.loop.check import check
from lazyarr.backends.loop.interpret import run
from lazyarr.backends.loop.plan import Plan, plan
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.loop.cases import K, M, N, leaf
from tests.backends.loop.test_cases import assert_same, expanded

LENGTHS = [0, 1, 2, 3, 7, 8, 15, 16, 31, 33, 70]
ROWS = [0, 1, 7, 8, 9, 33]


def soft(x: Variable) -> Variable:
    e = op.exp(x - op.max(x, axis=1, keepdims=True))
    return e / op.sum(e, axis=1, keepdims=True)


def total_of_rows(x: Variable) -> list[Variable]:
    """A sum over all rows of what each row comes to, beside what each row keeps."""
    peak = op.max(x, axis=1, keepdims=True)
    each = op.log(op.sum(op.exp(x - peak), axis=1, keepdims=True)) + peak
    return [op.sum(each, axis=(0, 1)), x - each]


def used_twice(x: Variable) -> list[Variable]:
    """A sum over a short axis, two functions of which have no memory in between."""
    pairs = op.sum(op.square(op.stack([x, op.sin(x)], axis=2)), axis=2)
    near = op.exp(pairs * -0.5)
    return [near, op.sum(near * pairs, axis=1)]


def moments(x: Variable) -> list[Variable]:
    n = op.sum(x * 0.0 + 1.0, axis=1, keepdims=True)
    mean = op.sum(x, axis=1, keepdims=True) / n
    return [op.sum(op.square(x - mean), axis=1) / op.sum(n, axis=1), (x - mean) / n]


def complex_rows(x: Variable, y: Variable) -> list[Variable]:
    """Rows of complex numbers divided by one number each."""
    z = op.astype(x, "complex128") * 1j + op.exp(op.astype(y, "float64"))
    return [z / op.sum(z, axis=1, keepdims=True)]


WORK = {
    "complex": complex_rows,
    "softmax": lambda x, y: [soft(x)],
    "sums over all rows": lambda x, y: total_of_rows(x),
    "moments": lambda x, y: moments(x),
    "one factor for each row": lambda x, y: [x / op.sqrt(op.exp(y)), op.sum(x * y, axis=1)],
    "products": lambda x, y: [op.prod(op.tanh(x) + y, axis=1), op.min(x, axis=1)],
    "elements used twice": lambda x, y: used_twice(x),
    "integers": lambda x, y: [op.sum(op.astype(x * 9, "int32"), axis=1)],
}


def graph_of(work: str, dtype: str) -> Graph:
    x, y = leaf(N, M, dtype=dtype), leaf(N, 1, dtype=dtype)
    return expanded(Graph([x, y], WORK[work](x, y)))


def arrays_of(rows: int, length: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(rows * 100 + length)
    return [rng.normal(size=(rows, k)).astype(dtype) for k in (length, 1)]


def tiles(planned: Plan) -> list[str]:
    return [line for line in planned.explain().splitlines() if "at a time where" in line]


@pytest.mark.fast
@pytest.mark.parametrize("work", WORK)
def test_loop_ir(work: str) -> None:
    graph = graph_of(work, "float64")
    planned = plan(graph)
    check(planned)
    assert tiles(planned), planned.explain()
    for rows, length in ((9, 3), (8, 15), (7, 2), (17, 40)):
        arrays = arrays_of(rows, length, "float64")
        out, code = run(planned, arrays)
        assert code == 0
        assert_same(out, evaluate(graph, arrays))


@pytest.mark.backends
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("work", WORK)
def test_every_length(work: str, dtype: str) -> None:
    graph = graph_of(work, dtype)
    program = get_backend("c").compile(graph)
    for length in LENGTHS:
        if length == 0 and ("max" in work or work not in ("moments", "integers")):
            continue  # the extreme of nothing is an error
        for rows in ROWS:
            arrays = arrays_of(rows, length, dtype)
            with np.errstate(all="ignore"):
                want = evaluate(graph, arrays)
            out, code = program(arrays)
            assert code == 0
            assert_same(out, want)


@pytest.mark.backends
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0, 5e-324, 1e308])
def test_one_row_does_not_touch_the_others(special: float) -> None:
    graph = graph_of("softmax", "float64")
    program = get_backend("c").compile(graph)
    arrays = arrays_of(16, 5, "float64")
    clean, _ = program(arrays)
    arrays[0][3, 2] = special
    with np.errstate(all="ignore"):
        want = evaluate(graph, arrays)
    out, _ = program(arrays)
    np.testing.assert_allclose(out[0], want[0], rtol=1e-12)
    others = np.arange(16) != 3
    assert np.array_equal(out[0][others], clean[0][others])


@pytest.mark.fast
def test_dear_work_of_a_row_is_done_once() -> None:
    """The logarithm of a row's sum stands in a loop over rows, not in that over its elements."""
    planned = plan(graph_of("sums over all rows", "float64"))
    along = elements_of_tiles(planned)
    inside = [n.value.prim for a in along for n in ir.walk(a.body) if isinstance(n, ir.Let)]
    assert "exp" in inside
    assert "log" not in inside


def elements_of_tiles(planned: Plan) -> list[ir.For]:
    """The loops over elements in tiles: each holds one loop, over the rows of a tile."""
    found = []
    for n in ir.walk(planned.functions[0].body):
        if isinstance(n, ir.For) and n.kind == "serial":
            inner = [m for m in n.body if isinstance(m, ir.For)]
            if len(inner) == 1 and inner[0].kind == "simd" and inner[0].extent.prim == "const":
                found.append(n)
    return found


@pytest.mark.fast
@pytest.mark.parametrize("precise", [False, True])
def test_precise_programs_divide(precise: bool) -> None:
    planned = plan(graph_of("softmax", "float64"), precise=precise)
    along = elements_of_tiles(planned)
    assert along
    divides = any(
        isinstance(n, ir.Let) and n.value.prim == "div" for a in along for n in ir.walk(a.body)
    )
    assert divides is precise


@pytest.mark.fast
def test_gathers_and_running_sums_have_no_tiles() -> None:
    x, index = leaf(N, M), leaf(N, dtype="int64")
    for made in (op.take(x, index, axis=0), op.cumulative_sum(x, axis=1)):
        graph = expanded(Graph([x, index], [op.sum(op.exp(made), axis=1) * 1.0]))
        assert "take" not in str(tiles(plan(graph)))


def pairs(d: object, dtype: str = "float64") -> Graph:
    """Distances between all pairs, and which point is how near to the nearest."""
    x, y = leaf(N, d, dtype=dtype), leaf(M, d, dtype=dtype)
    apart = op.expand_dims(x, axis=1) - op.expand_dims(y, axis=0)
    squares = op.sum(op.square(apart), axis=2)
    near = op.exp(-squares) + op.tanh(op.max(apart, axis=2))
    return expanded(Graph([x, y], [near, op.min(op.sum(op.abs(apart), axis=2), axis=1)]))


@pytest.mark.fast
@pytest.mark.parametrize("d", [K, 9, 40])
def test_rows_that_are_met_again_are_packed(d: object) -> None:
    graph = pairs(d)
    planned = plan(graph)
    check(planned)
    assert "packs" in planned.explain()
    rng = np.random.default_rng(0)
    for n, m in ((3, 17), (8, 16), (9, 7)):
        size = d if isinstance(d, int) else 5
        arrays = [rng.normal(size=(n, size)), rng.normal(size=(m, size))]
        out, code = run(planned, arrays)
        assert code == 0
        assert_same(out, evaluate(graph, arrays))


@pytest.mark.backends
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("d", [K, 9, 40])
def test_all_pairs(d: object, threads: int, dtype: str, monkeypatch) -> None:
    monkeypatch.setattr(printer, "LEAST_WORK", 0)
    graph = pairs(d, dtype)
    with xp.set_options(threads=threads):
        program = get_backend("c").compile(graph)
        rng = np.random.default_rng(0)
        for size in (1, 2, 15, 16, 17, 63, 64, 130) if d is K else (d,):
            for n, m in ((0, 9), (1, 40), (7, 33), (8, 16), (20, 5), (20, 37)):
                arrays = [rng.normal(size=(k, size)).astype(dtype) for k in (n, m)]
                out, code = program(arrays)
                assert code == 0
                assert_same(out, evaluate(graph, arrays))


@pytest.mark.fast
def test_short_static_axes_inside_stay_unrolled() -> None:
    """A few scales beside short rows: what they vary along is not lifted out of them."""
    x, scales = leaf(N, M), leaf(2)
    bent = op.exp(
        op.expand_dims(x, axis=2) / op.expand_dims(op.exp(op.sum(x, axis=1, keepdims=True)), axis=2)
    )
    graph = expanded(Graph([x, scales], [op.sum(bent / op.exp(scales), axis=(1, 2))]))
    planned = plan(graph)
    check(planned)
    arrays = [np.random.default_rng(0).normal(size=(9, 4)), np.array([0.5, 2.0])]
    out, code = run(planned, arrays)
    assert code == 0
    assert_same(out, evaluate(graph, arrays))


def random_rows(seed: int) -> Graph:
    """About twelve operations on rows, columns and numbers, all of which may share a nest."""
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float64", "float32"]))
    leaves = [leaf(N, M, dtype=dtype), leaf(N, 1, dtype=dtype), leaf(1, M, dtype=dtype)]
    values = [*leaves, leaves[0] / op.exp(leaves[1])]
    for _ in range(12):
        x, y = (values[int(len(values) * rng.random())] for _ in range(2))
        kind = rng.integers(6)
        if kind < 2:
            made = getattr(op, str(rng.choice(["tanh", "exp", "square", "abs", "sin"])))(op.tanh(x))
        elif kind < 4:
            made = getattr(op, str(rng.choice(["add", "multiply", "subtract", "maximum"])))(x, y)
        elif kind == 4:
            made = x / (op.abs(y) + 1.0)
        else:
            name = str(rng.choice(["sum", "max", "min", "mean"]))
            made = getattr(op, name)(x, axis=1, keepdims=True)
        values.append(made)
    chosen = rng.choice(np.arange(4, len(values)), size=3, replace=False)
    outputs = [values[i] for i in chosen]
    return expanded(Graph(leaves, [*outputs, op.sum(values[-1]), op.sum(values[-2], axis=0)]))


@pytest.mark.backends
@pytest.mark.parametrize("seed", range(24))
def test_random_rows(seed: int) -> None:
    graph = random_rows(seed)
    program = get_backend("c").compile(graph)
    rng = np.random.default_rng(seed)
    for rows, length in ((19, 3), (33, 11), (16, 40), (5, 7)):
        shapes = [(rows, length), (rows, 1), (1, length)]
        arrays = [
            rng.normal(size=s).astype(v.dtype) for s, v in zip(shapes, graph.inputs, strict=True)
        ]
        out, code = program(arrays)
        assert code == 0
        for got, want in zip(out, evaluate(graph, arrays), strict=True):
            tolerance = 1e-4 if got.dtype == np.float32 else 1e-11
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


TURNED = {
    "transposed": lambda x: [op.permute_dims(x, (1, 0)) * 2.0],
    "with itself": lambda x: [op.exp(x) + op.permute_dims(x, (1, 0))],
    "diagonals": lambda x: [op.tril(op.permute_dims(x, (1, 0))) - op.permute_dims(x, (1, 0))],
}


@pytest.mark.backends
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
@pytest.mark.parametrize("work", TURNED)
def test_transposes_of_every_size(work: str, dtype: str) -> None:
    x = leaf(N, N if work == "with itself" else M, dtype=dtype)
    made = TURNED[work](x) if dtype != "int8" else [op.permute_dims(x, (1, 0)) + 1]
    graph = expanded(Graph([x], made))
    planned = plan(graph)
    check(planned)
    assert tiles(planned) == [] and "8 at a time" in planned.explain()
    program = get_backend("c").compile(graph)
    rng = np.random.default_rng(0)
    for rows, columns in ((0, 5), (1, 1), (7, 20), (8, 8), (9, 30), (40, 7)):
        shape = (rows, rows if x.shape[0] is x.shape[1] else columns)
        arrays = [(rng.normal(size=shape) * 9).astype(dtype)]
        out, code = program(arrays)
        assert code == 0
        assert_same(out, evaluate(graph, arrays))


@pytest.mark.backends
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sum_over_many_short_rows_is_exact(threads: int) -> None:
    """What tiles of rows come to is added as exactly as what single rows do."""
    x = leaf(N, M, dtype="float32")
    each = op.log(op.sum(op.exp(x), axis=1, keepdims=True))
    graph = expanded(Graph([x], [op.sum(each), op.sum(op.sum(op.exp(x), axis=1))]))
    assert tiles(plan(graph))
    values = np.random.default_rng(0).random((500_003, 3)).astype("float32")
    rows = np.exp(values.astype("float64")).sum(axis=1)
    with xp.set_options(threads=threads):
        out, _ = get_backend("c").compile(graph)([values])
    for got, want in zip(out, (np.log(rows).sum(), rows.sum()), strict=True):
        assert abs(float(got) - want) <= 4 * np.finfo("float32").eps * want
