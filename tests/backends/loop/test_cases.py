"""Every case means the same to the interpreter of graphs, to that of loop IR, to C and to Numba."""

from collections.abc import Callable

import numpy as np
import pytest

from lazyarr.backends.base import get_backend
from lazyarr.backends.loop.check import check
from lazyarr.backends.loop.interpret import run
from lazyarr.backends.loop.plan import plan
from lazyarr.graph import scalar
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import Graph
from lazyarr.passes import pipeline
from tests.backend_params import parameter
from tests.backends.loop.cases import CASES, VALUES, M, leaf

EXPAND = [p for p in pipeline.PIPELINE if p.name == "composites"]


def expanded(graph: Graph) -> Graph:
    """The graph as a backend sees it."""
    return pipeline.run(graph, EXPAND)


def by_loops(graph: Graph, arrays: list) -> tuple[list, int]:
    planned = plan(graph)
    check(planned)
    return run(planned, arrays)


RUNNERS: dict[str, Callable] = {
    "loops": by_loops,
    "c": lambda graph, arrays: get_backend("c").compile(graph)(arrays),
    "numba": lambda graph, arrays: get_backend("numba").compile(graph)(arrays),
}
WAYS = [
    pytest.param("loops", marks=pytest.mark.fast),
    pytest.param("c", marks=pytest.mark.backends),
    pytest.param(*parameter("numba").values, marks=[*parameter("numba").marks, pytest.mark.slow]),
]


def assert_same(got: list, want: list) -> None:
    for a, b in zip(got, want, strict=True):
        assert a.shape == np.shape(b)
        assert a.dtype == np.asarray(b).dtype
        tolerance = 2e-5 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str, way: str) -> None:
    graph, arrays = CASES[name]()
    out, code = RUNNERS[way](expanded(graph), arrays)
    assert code == 0
    assert_same(out, evaluate(graph, arrays))


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_arrays(shape: tuple, way: str) -> None:
    n, m = shape
    for name in ("elementwise", "reductions", "products", "cumulative", "joins"):
        graph, arrays = CASES[name]()
        sizes = {5: n, 4: m, 3: 2}
        arrays = [np.zeros(tuple(sizes[s] for s in a.shape), a.dtype) for a in arrays]
        out, code = RUNNERS[way](expanded(graph), arrays)
        assert code == 0
        assert_same(out, evaluate(graph, arrays))


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_check_gives_its_code(way: str) -> None:
    y, i = leaf(M), leaf(3, dtype="int64")
    values = op.take(y, i)
    added = op.take_add(op.zeros((M,)), op.wrap_index(i, M), values, axis=0)
    graph = expanded(Graph([y, i], [values, added]))
    for indices, bad in ([0, 1, -1], False), ([0, 9, 1], True), ([-5, 0, 0], True):
        _, code = RUNNERS[way](graph, [np.arange(4.0), np.array(indices)])
        assert (code != 0) == bad


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_check_never_reads_or_writes_outside(way: str) -> None:
    y, i = leaf(M), leaf(3, dtype="int64")
    far = op.wrap_index(i, M)
    one = op.take(y, i)
    graph = expanded(Graph([y, i], [one, op.take_add(y, far, one, axis=0)]))
    _, code = RUNNERS[way](graph, [np.zeros(0), np.array([10**15, -(10**15), 0])])
    assert code != 0


@pytest.mark.parametrize("way", WAYS)
def test_cholesky_of_an_indefinite_matrix_fails(way: str) -> None:
    a = leaf(M, M)
    graph = expanded(Graph([a], [op.cholesky(a)]))
    for n in (3, 12):
        assert RUNNERS[way](graph, [np.eye(n)])[1] == 0
        assert RUNNERS[way](graph, [-np.eye(n)])[1] != 0


@pytest.mark.backends
@pytest.mark.parametrize("shape", [(30, 20, 25), (3, 4, 5), (1, 30, 7), (0, 3, 4), (3, 0, 4)])
def test_matrix_products_of_every_layout(shape: tuple) -> None:
    rng = np.random.default_rng(0)
    n, m, k = shape
    x, y = rng.normal(size=(n, m)), rng.normal(size=(m, k))
    graph, _ = CASES["products"]()
    a, b, _ = graph.inputs
    at, bt = (op.permute_dims(v, (1, 0)) for v in (a, b))
    specs = [((0, 1), (1, 2), (0, 2)), ((0, 1), (1, 2), (2, 0))]
    outputs = [op.contract(a, b, s) for s in specs] + [op.matmul(bt, at)]
    graph = expanded(Graph([a, b], outputs))
    out, _ = RUNNERS["c"](graph, [x, y])
    assert_same(out, evaluate(graph, [x, y]))


FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 2.5, 3.0, -2.0, 1e30, -745.0]
UNDEFINED = {"astype"}  # of NaN and infinities to integers


def elementwise_names() -> list[str]:
    return sorted(
        name
        for name, o in OPS.items()
        if o.kind == "elementwise" and o.check is None and name not in UNDEFINED
    )


def samples(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        return np.array(FLOATS, dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    info = np.iinfo(dtype)
    small = {-1, -2, -3, -7} if info.min < 0 else set()
    return np.array(sorted({info.min, info.max, info.max - 1, 0, 1, 2, 3, 7} | small), dtype)


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("name", elementwise_names())
def test_special_values(name: str, way: str) -> None:
    record = OPS[name]
    arity = len(_scalars(record))
    inputs, arrays, outputs = [], [], []
    for dtype in map(np.dtype, ("float64", "float32", "int64", "int8", "uint32", "bool")):
        grid = np.meshgrid(*([samples(dtype)] * arity), indexing="ij")
        count = grid[0].size
        leaves = [leaf(count, dtype=dtype.name) for _ in grid]
        try:
            outputs.append(record(*leaves))
        except (TypeError, ValueError):
            continue
        inputs += leaves
        arrays += [g.ravel() for g in grid]
    if not outputs:
        pytest.skip("takes parameters")
    graph = Graph(inputs, outputs)
    want = evaluate(graph, arrays)
    got, code = RUNNERS[way](graph, arrays)
    assert code == 0
    for a, b in zip(got, want, strict=True):
        tolerance = 1e-6 if a.dtype == np.float32 else 2e-14
        if name == "beta":  # exp of a sum of logarithms: its error grows with their size
            tolerance *= 4
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=0)
        if a.dtype.kind == "f":
            known = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[known], np.signbit(b)[known])


def _scalars(record: object) -> list:
    """As many scalar variables as the op's formula takes."""
    x = scalar.var("x", np.dtype("float64"))
    for arity in (1, 2, 3):
        try:
            record.formula(*[x] * arity)
            return [x] * arity
        except TypeError:
            continue
        except Exception:  # noqa: BLE001 (the right arity, a dtype it refuses)
            return [x] * arity
    return [x]


@pytest.mark.parametrize("way", WAYS)
def test_products_that_the_library_computes(way: str) -> None:
    graph, _ = CASES["library_products"]()
    sizes = dict(zip((5, 4, 3), (37, 41, 29), strict=True))
    rng = np.random.default_rng(0)
    arrays = []
    for v in graph.inputs:
        shape = tuple(s if isinstance(s, int) else sizes[VALUES[s]] for s in v.shape)
        arrays.append(rng.normal(size=shape))
    out, code = RUNNERS[way](expanded(graph), arrays)
    assert code == 0
    assert_same(out, evaluate(graph, arrays))
