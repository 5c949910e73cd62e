"""Lowering: named code becomes what one would write positionally."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor, special
from lazyarr.errors import DimError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size, unknown
from lazyarr.graph.traverse import Graph
from lazyarr.xtensor.lower import lower_named, lower_nodes, size_checks
from lazyarr.xtensor.types import XTensorType

pytestmark = pytest.mark.fast


def leaf(dims: str, shape: tuple, name: str = "x") -> Variable:
    return symbol(XTensorType("float64", tuple(dims), shape), name)


def lowered(f, *inputs: Variable) -> Graph:
    return lower_named(Graph(inputs, [f(*inputs)]))


def positional(f, *inputs: Variable) -> Graph:
    plain = [symbol(v.type.positional) for v in inputs]
    return Graph(plain, [f(*plain)])


X, Y, V = leaf("ab", (2, 3)), leaf("cb", (4, 3)), leaf("b", (3,))

PAIRS = {
    "same order": (lambda x: op.multiply(op.exp(x), x), lambda x: op.multiply(op.exp(x), x), [X]),
    "missing leading": (op.add, op.add, [X, V]),
    "transposed": (
        op.add,
        lambda x, y: op.add(op.expand_dims(x, axis=2), op.permute_dims(y, (1, 0))),
        [X, Y],
    ),
    "trailing": (
        lambda x, v: op.add(v, x),
        lambda x, v: op.add(op.expand_dims(v, axis=1), op.permute_dims(x, (1, 0))),
        [X, V],
    ),
    "reduction": (
        lambda x: op.sum(op.square(x), axis="a"),
        lambda x: op.sum(op.square(x), axis=0),
        [X],
    ),
    "composite": (
        lambda x: op.logsumexp(op.softmax(x, axis="b"), axis="a"),
        lambda x: op.logsumexp(op.softmax(x, axis=1), axis=0),
        [X],
    ),
    "clip": (
        lambda x: op.clip(x, 0.0, 1.0),
        lambda x: op.clip_high(op.clip_low(x, 0.0), 1.0),
        [X],
    ),
    "contract": (
        lambda x, y: op.contract(x, y, ((0, 1), (2, 1), (0, 2))),
        lambda x, y: op.contract(x, y, ((0, 1), (2, 1), (0, 2))),
        [X, Y],
    ),
    "index": (
        lambda x: op.basic_index(x, (slice(None), 1)),
        lambda x: op.basic_index(x, (slice(None), 1)),
        [X],
    ),
    "concat": (
        lambda x, y: op.concat([x, op.with_dims(y, ("b", "a"))], axis="b"),
        lambda x, y: op.concat([x, op.permute_dims(y, (1, 0))], axis=1),
        [X, leaf("cd", (5, 2))],
    ),
    "renamed": (
        lambda x: op.subtract(x, op.with_dims(x, ("c", "b"))),
        lambda x: op.subtract(op.expand_dims(x, axis=2), op.permute_dims(x, (1, 0))),
        [X],
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_lowered_equals_handwritten(case: str) -> None:
    by_name, by_position, inputs = PAIRS[case]
    if case == "trailing":  # result dims (b, a)
        inputs = [leaf("ab", (2, 3)), leaf("b", (3,))]
    assert lowered(by_name, *inputs) == positional(by_position, *inputs)


def test_handles_give_the_positional_graph() -> None:
    """A log density by name and by position, without NaN to skip, is one graph."""

    def lpdf(x, mu):
        z = (x - mu) / 2.0
        return -0.5 * z * z - xp.log(xp.exp(mu))

    group = np.array([0, 1, 1, 0, 1])
    with xp.set_options(skipna=False):
        y, a = xp.symbol("y", dims="obs", shape=5), xp.symbol("a", dims="group", shape=2)
        by_name = lpdf(y, a.isel(group=XTensor(group, dims="obs"))).sum("obs")
    u, b = xp.symbol("y", shape=5), xp.symbol("a", shape=2)
    by_position = xp.sum(lpdf(u, xp.take(b, xp.asarray(group), axis=0)))
    left = lower_named(Graph([y._v, a._v], [by_name._v]))
    right = Graph([u._v, b._v], [by_position._v])
    assert [v.call for v in left.toposort()] == [v.call for v in right.toposort()]


def test_inputs_keep_their_order_and_shape() -> None:
    graph = lowered(op.add, X, Y)
    assert [v.type for v in graph.inputs] == [X.type.positional, Y.type.positional]
    assert [v.name for v in graph.inputs] == ["x", "x"]
    assert not any(getattr(v.type, "named", False) for v in graph.toposort())


def test_a_positional_graph_is_left_alone() -> None:
    x = xp.symbol("x", shape=3)
    graph = Graph([x._v], [xp.exp(x)._v])
    assert lower_named(graph) is graph


def test_lower_nodes_keeps_the_leaves() -> None:
    out = op.sum(op.exp(X))
    low = lower_nodes([out])[out]
    assert not low.type.named
    assert Graph([X], [low]).missing() == []


def test_random_expressions_with_unknown_sizes() -> None:
    rng = np.random.default_rng(0)
    sizes = {"a": 2, "b": 3, "c": 4}
    for _ in range(40):
        nodes, arrays = [], []
        for _ in range(2):
            dims = rng.permutation(list(sizes))[: rng.integers(1, 4)]
            shape = tuple(unknown(d) if rng.random() < 0.6 else sizes[d] for d in dims)
            nodes.append(leaf("".join(dims), shape))
            arrays.append(rng.normal(size=tuple(sizes[d] for d in dims)))
        out = op.subtract(op.multiply(nodes[0], 2), nodes[1])
        got = evaluate(lower_named(Graph(nodes, [out])), arrays)[0]
        wide = []
        for v, a in zip(nodes, arrays, strict=True):
            order = [d for d in out.type.dims if d in v.type.dims]
            a = np.transpose(a, [v.type.dims.index(d) for d in order])
            wide.append(a.reshape([sizes[d] if d in order else 1 for d in out.type.dims]))
        np.testing.assert_allclose(got, 2 * wide[0] - wide[1])


def test_unknown_sizes_are_checked_by_name() -> None:
    n, m = unknown("n"), unknown("m")
    x, y = leaf("ab", (n, 3), "first"), leaf("ba", (3, m), "second")
    (check,) = size_checks([op.add(op.add(x, y), y)])
    assert isinstance(n, Size) and isinstance(m, Size)
    check.verify({n.atom: 4, m.atom: 4})
    with pytest.raises(DimError, match=r"'a' has two sizes: 'first' .* has 4, 'second' .* has 5"):
        check.verify({n.atom: 4, m.atom: 5})


def test_a_function_reports_sizes_by_name() -> None:
    x, y = xp.symbol("x", dims="obs"), xp.symbol("y", dims="obs")
    f = xp.function([x, y], (x * y).sum("obs"), backend="interpret")
    assert float(f(np.ones(3), np.ones(3))) == 3.0
    with pytest.raises(DimError, match="'obs' has two sizes: 'x'"):
        f(np.ones(3), np.ones(1))


def test_softmax_with_names_in_any_order() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 4))
    x = XTensor(values, dims=("a", "b"))
    got = special.softmax(x.T, axis="a").transpose("a", "b")
    e = np.exp(values)
    np.testing.assert_allclose(got.values, e / e.sum(0))
