"""Backends of the family under the driver: passes, gradients, sizes, cuts and errors."""

import numpy as np
import pytest

from lazyarr.autodiff.reverse import pullback
from lazyarr.backends import base
from lazyarr.backends.driver import Program
from lazyarr.errors import BoundsError, LinAlgError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.ops.indexing import getitem
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.passes.pipeline import run
from tests.backends.array.family import FAMILY, backend, expanded, leaf, same, sizes
from tests.backends.array.test_program import loop

pytestmark = pytest.mark.backends


@pytest.fixture(autouse=True)
def numpy_is_known(monkeypatch):
    monkeypatch.setitem(base._registered, "numpy", lambda: backend("numpy"))


def matches(program: Program, graph: Graph, arrays: list, ulps: float = 256) -> None:
    for got, want in zip(program(arrays), evaluate(graph, arrays), strict=True):
        same(got, want, program.backend.name, ulps)


@pytest.mark.parametrize("name", FAMILY)
def test_value_and_gradient(name: str) -> None:
    n = sizes("n")[0]
    x, w, y = leaf("float64", n, 3), leaf("float64", 3), leaf("float64", n)
    eta = op.matmul(x, w)
    value = op.sum(op.subtract(op.softplus(eta), op.multiply(y, eta)))
    value = op.add(value, op.logsumexp(op.multiply(w, 0.5)))
    (gradient,) = pullback([value], [w], [op.full((), 1.0)])
    graph = Graph([x, w, y], [value, gradient])
    program = Program(graph, name)
    rng = np.random.default_rng(0)
    for k in (4, 1, 4):
        matches(program, graph, [rng.normal(size=(k, 3)), rng.normal(size=3), np.ones(k)])
    assert program.fallbacks() == []


@pytest.mark.parametrize("name", FAMILY)
def test_gradient_of_a_loop(name: str) -> None:
    xs, init, scale = leaf("float64", 2, 2), leaf("float64", 2), leaf("float64")
    node = loop(2, False, xs, init, scale)
    value = op.add(op.sum(op.pick(node, 0)), op.sum(op.square(op.pick(node, 3))))
    wrt = [xs, init, scale]
    graph = Graph(wrt, [value, *pullback([value], wrt, [op.full((), 1.0)])])
    program = Program(graph, name)
    matches(program, graph, [np.arange(4.0).reshape(2, 2), np.array([1.0, -1.0]), np.array(0.5)])
    assert program.fallbacks() == []


@pytest.mark.parametrize("name", FAMILY)
def test_errors_are_the_interpreters(name: str) -> None:
    x, i, a = leaf("float64", 3), leaf("int64"), leaf("float64", 2, 2)
    program = Program(Graph([x, i], [getitem(x, i)]), name)
    assert program([np.arange(3.0), np.array(-1)])[0] == 2.0
    with pytest.raises(BoundsError, match="index 3 is out of bounds"):
        program([np.arange(3.0), np.array(3)])
    program = Program(Graph([a], [op.cholesky(a)]), name)
    with pytest.raises(LinAlgError):
        program([-np.eye(2)])


def test_cut_where_torch_has_no_words() -> None:
    pytest.importorskip("torch")
    x = leaf("uint64", 3)
    graph = Graph([x], [op.less(op.add(x, 1), op.flip(x))])
    program = Program(graph, "torch")
    matches(program, graph, [np.array([0, 2**63, 5], "uint64")])
    assert len(program.fallbacks()) == 1


@pytest.mark.parametrize("name", FAMILY)
def test_sizes_that_only_a_multiple_tells(name: str) -> None:
    n = sizes("n")[0]
    x = leaf("float64", 2 * n + 1)
    outputs = [op.full((n,), 1.0), op.basic_index(x, slice(0, n))]
    run_ = backend(name).compile(expanded([x], outputs))
    got, code = run_([np.arange(7.0)])
    assert code == 0
    np.testing.assert_array_equal(got[1], [0.0, 1.0, 2.0])


def test_pipeline_is_what_the_driver_runs() -> None:
    x = leaf("float64", 3)
    ready = run(Graph([x], [op.softmax(x)]))
    assert all(backend("numpy").supports(v) for v in ready.toposort())
