"""The program text, its arguments and results, loops, and backends of one's own."""

import ast
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lazyarr.backends import base
from lazyarr.backends.array.backend import ArrayBackend
from lazyarr.backends.numpy.table import make_table
from lazyarr.graph.node import data
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.array.family import (
    EAGER,
    FAMILY,
    agrees,
    backend,
    expanded,
    leaf,
    sizes,
)

pytestmark = pytest.mark.backends


@pytest.mark.parametrize("name", FAMILY)
def test_text_is_a_straight_line(name: str) -> None:
    x, y = leaf("float64", 3, 4), leaf("float64", 4)
    run = agrees(
        name, [x, y], [op.expit(op.add(x, y)), op.var(x, axis=0)], [np.ones((3, 4)), np.ones(4)]
    )
    function = ast.parse(run.source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert all(isinstance(s, ast.Assign | ast.Delete | ast.Return) for s in function.body)
    assert name in run.explain()


@pytest.mark.parametrize("name", EAGER)
def test_depth_is_no_limit(name: str) -> None:
    x = leaf("float64", 3)
    y = x
    for _ in range(20_000):
        y = op.add(y, 1.0)
    run = backend(name).compile(Graph([x], [y]))
    np.testing.assert_array_equal(run([np.zeros(3)])[0][0], np.full(3, 20_000.0))


@pytest.mark.parametrize("name", FAMILY)
def test_arguments_of_any_layout(name: str) -> None:
    x = leaf("float64", 3, 4)
    base = np.arange(48.0).reshape(6, 8)
    frozen = base[:3, :4].copy()
    frozen.flags.writeable = False
    record = np.zeros((3, 4), [("a", "i4"), ("b", "f8")])
    record["b"] = base[:3, :4]
    outputs = [op.multiply(x, 2.0), op.permute_dims(x, (1, 0)), op.positive(x), x, x]
    run = backend(name).compile(Graph([x], outputs))
    layouts = [base[::2, ::2], base[2::-1, 3::-1], frozen, record["b"], np.asfortranarray(frozen)]
    layouts.append(np.broadcast_to(np.arange(4.0), (3, 4)))
    for array in layouts:
        results = run([array])[0]
        for got, want in zip(results, [array * 2, array.T, array, array, array], strict=True):
            np.testing.assert_array_equal(got, want)
            got[...] = -1  # fresh: neither the argument nor another result changes
        assert not (array == -1).any()


@pytest.mark.parametrize("name", FAMILY)
def test_constants_stay(name: str) -> None:
    x, y = leaf("float64", 3), leaf("float64", 3)
    held = data(np.array([1.0, 2.0, 3.0]))
    graph = Graph([x, y], [op.add(op.multiply(x, y), held), held])
    run = backend(name).compile(graph)
    run.bind(1, np.array([2.0, 2.0, 2.0]))
    got, _ = run([np.ones(3), None])
    np.testing.assert_array_equal(got[0], [3.0, 4.0, 5.0])
    got[1][:] = 0
    np.testing.assert_array_equal(run([np.ones(3), None])[0][1], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("size", [1000, 100_000])
@pytest.mark.parametrize("name", FAMILY)
def test_results_do_not_change_later(name: str, size: int) -> None:
    x = leaf("float64", size)
    y = op.multiply(x, 2.0)
    run = backend(name).compile(Graph([x], [y, op.multiply(2.0, x), op.flip(x), y]))
    array = np.ones(size)
    first = run([array])[0]
    array[:] = 5.0
    second = run([array])[0]
    for got in first:
        got += 1.0
    assert [a[-1] for a in first] == [3.0, 3.0, 2.0, 3.0]
    assert [a[0] for a in second] == [10.0, 10.0, 5.0, 10.0]


def test_jax_stays_in_the_users_precision() -> None:
    jax = pytest.importorskip("jax")
    x = leaf("float64", 3)
    before = jax.config.jax_enable_x64
    run = backend("jax").compile(Graph([x], [op.add(x, 1.0)]))
    assert run([np.zeros(3)])[0][0].dtype == np.float64
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(2).dtype == ("float64" if before else "float32")


@pytest.mark.parametrize("name", FAMILY)
def test_many_threads_call(name: str) -> None:
    x = leaf("float64", 50)
    run = backend(name).compile(Graph([x], [op.sum(op.exp(x))]))
    arrays = [np.full(50, 0.1 * k) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda a: float(run([a])[0][0]), arrays * 5))
    np.testing.assert_allclose(found, [50 * np.exp(0.1 * k) for k in range(8)] * 5)


@pytest.mark.parametrize("name", FAMILY)
def test_pickled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base._registered, "numpy", lambda: backend("numpy"))
    x, y = leaf("float64", 3), leaf("float64", 3)
    run = backend(name).compile(Graph([x, y], [op.add(x, y)]))
    run.bind(1, np.arange(3.0))
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again([np.ones(3), None])[0][0], [1.0, 2.0, 3.0])


def loop(length: object, reverse: bool, xs, init, scale):
    """c -> scale * c + x, giving c and the position of the loop by an index."""
    c, i, x, s = leaf("float64", 2), leaf("int64"), leaf("float64", 2), leaf("float64")
    body = Graph(
        [c, i, x, s],
        [op.add(op.multiply(c, s), x), op.add(i, 1), op.sum(c), op.take(c, i, axis=0)],
    )
    start = op.full((), 0, dtype="int64")
    return op.scan(
        body, (init, start, xs, scale), length=length, reverse=reverse, n_carry=2, n_xs=1
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", FAMILY)
def test_scan(name: str, reverse: bool) -> None:
    n = sizes("n")[0]
    xs, init, scale = leaf("float64", n, 2), leaf("float64", 2), leaf("float64")
    node = loop(n, reverse, xs, init, scale)
    outputs = [op.pick(node, k) for k in range(4)]
    graph = expanded([xs, init, scale], outputs)
    run = backend(name).compile(graph)
    for k in (2, 0):
        arrays = [np.arange(2.0 * k).reshape(k, 2), np.array([1.0, -1.0]), np.array(0.5)]
        agrees(name, [xs, init, scale], outputs, arrays)
        got, code = run(arrays)
        assert code == 0 and got[2].shape == (k,)
    arrays[0] = np.ones((3, 2))  # the third step reads past the end
    assert run(arrays)[1] != 0


@pytest.mark.parametrize("name", FAMILY)
def test_scan_in_a_scan(name: str) -> None:
    c, s = leaf("float64", 2), leaf("float64")
    xs = leaf("float64", 3, 2)
    inner = loop(1, False, op.reshape(op.multiply(c, s), (1, 2)), c, s)
    body = expanded([c, s], [op.pick(inner, 0), op.pick(inner, 2)])
    node = op.scan(body, (xs_row(xs), s), length=4, reverse=False, n_carry=1, n_xs=0)
    arrays = [np.arange(6.0).reshape(3, 2), np.array(0.5)]
    agrees(name, [xs, s], [op.pick(node, 0), op.pick(node, 1)], arrays)


def xs_row(xs):
    return op.reshape(op.basic_index(xs, slice(0, 1)), (2,))


def test_a_backend_in_a_few_lines() -> None:
    """A table and a class make a backend; a row of its own replaces an op's formula or kind."""

    class Toy(ArrayBackend):
        name = "toy"
        table = make_table()

    toy = Toy()
    x = leaf("float64", 2, 2)
    toy.table.register("expit", lambda x: np.full_like(x, 42.0))
    toy.table.register("flip", lambda x, axis: x + len(axis))
    run = toy.compile(Graph([x], [op.expit(x), op.flip(x)]))
    got, _ = run([np.zeros((2, 2))])
    assert (got[0] == 42.0).all() and (got[1] == 2.0).all()


def test_no_words_means_not_supported() -> None:
    class Poor(ArrayBackend):
        name = "poor"
        table = make_table()

    poor = Poor()
    del poor.table.words["erf"]
    x = leaf("float64", 2)
    assert not poor.supports(op.erf(x))
    assert poor.supports(op.exp(x))


def test_torch_leaves_the_rest_of_uint64_to_the_reference() -> None:
    pytest.importorskip("torch")
    x = leaf("uint64", 2)
    assert backend("torch").supports(op.add(x, x))
    assert not backend("torch").supports(op.less(x, x))


@pytest.mark.parametrize("name", FAMILY)
def test_describe(name: str) -> None:
    assert set(backend(name).describe()) == {"version", "devices"}
