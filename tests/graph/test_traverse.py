"""Walking, rebuilding and comparing graphs."""

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import GraphError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import (
    Graph,
    clients,
    inline,
    leaves,
    map_sizes,
    substitute,
    toposort,
    with_inputs,
)
from lazyarr.graph.types import TensorType
from tests.strategies.recipes.control import loop

pytestmark = pytest.mark.fast
F8 = TensorType("float64", ())


def diamond() -> tuple:
    x = symbol(F8, "x")
    a = op.exp(x)
    b, c = op.sin(a), op.cos(a)
    return x, a, b, c, op.add(b, c)


def test_order() -> None:
    x, a, b, c, y = diamond()
    assert toposort([y]) == [x, a, b, c, y]
    assert toposort([y, y, b]) == [x, a, b, c, y]
    assert toposort([y], stop=[b, c]) == [b, c, y]
    assert leaves([y]) == [x]
    assert clients(toposort([y]))[a] == [b, c]


def test_substitution() -> None:
    x, a, b, c, y = diamond()
    z = symbol(F8, "z")
    (new,) = substitute([y], {a: z})
    assert toposort([new])[0] is z and x not in toposort([new])
    assert toposort([y])[0] is x  # the old graph is as it was
    assert substitute([y], {z: x}) == [y]  # nothing to replace: the same nodes
    assert with_inputs(b, b.inputs) is b
    assert with_inputs(b, [z]).site == b.site


def test_rule_sees_every_node_once() -> None:
    *_, y = diamond()
    seen: list = []
    substitute([y], {}, lambda v: seen.append(v) or v)
    assert len(seen) == len(set(seen)) == 5


def test_structural_equality() -> None:
    x, *_, y = diamond()
    z, *_, w = diamond()
    assert Graph([x], [y]) == Graph([z], [w])
    assert hash(Graph([x], [y])) == hash(Graph([z], [w]))
    assert Graph([x], [y]) != Graph([x], [y, y])
    assert Graph([x], [op.add(x, 1)]) != Graph([x], [op.add(x, 2)])
    assert Graph([x], [op.add(x, 0.0)]) != Graph([x], [op.add(x, -0.0)])
    assert Graph([x], [op.add(x, 1)]) != Graph([x], [op.add(x, 1.0)])
    assert Graph([x], [op.add(x, 1)]) != Graph([x], [op.add(x, True)])


def test_sharing_is_part_of_the_structure() -> None:
    x, y = symbol(F8), symbol(F8)
    assert Graph([x, y], [op.add(x, y)]) != Graph([x, y], [op.add(x, x)])
    assert Graph([x, y], [op.subtract(x, y)]) != Graph([y, x], [op.subtract(x, y)])


def test_missing_inputs() -> None:
    x, *_, y = diamond()
    other = symbol(F8, "other")
    assert Graph([x], [y]).missing() == []
    assert Graph([], [y]).missing() == [x]
    with pytest.raises(GraphError, match="other"):
        evaluate(Graph([x], [op.add(y, other)]), [np.array(1.0)])
    with pytest.raises(GraphError, match="takes 1 inputs, got 2"):
        inline(Graph([x], [y]), [x, x])


def test_inline() -> None:
    x, *_, y = diamond()
    (out,) = inline(Graph([x], [y]), [np.float64(2.0) and op.full((), 2.0)])
    want = np.sin(np.exp(2)) + np.cos(np.exp(2))
    np.testing.assert_allclose(evaluate(Graph([], [out]), [])[0], want)


def test_sizes_are_replaced_everywhere() -> None:
    """In types, in parameters, in operands, in the bodies of loops."""
    n = unknown("n")
    x = symbol(TensorType("float64", (n,)))
    looped = op.pick(loop([op.full((), 0.0), x], lambda c, v: [op.add(c, v), c], 1, 1), 1)
    outputs = [op.divide(op.sum(x), n), op.zeros((n, 2)), op.arange(n), looped, op.size_value(n)]
    fixed = map_sizes(Graph([x], outputs), {n.atom: 3})
    assert "n" not in [str(s) for v in fixed.toposort() if hasattr(v.type, "shape")
                       for s in v.type.shape]  # fmt: skip
    assert fixed.outputs[1].shape == (3, 2)
    assert fixed.outputs[3].shape == (3,)
    array = [np.array([1.0, 2.0, 6.0])]
    found = zip(evaluate(fixed, array), evaluate(Graph([x], outputs), array), strict=True)
    for got, want in found:
        np.testing.assert_array_equal(got, want)
