"""Expressions as ops, and types that are no tensors."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, GradientError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.op import NoGradient
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import Graph, toposort
from lazyarr.graph.types import TensorType, Type, intern_type
from lazyarr.namespace.array import Array
from tests.backend_params import BACKENDS

POINT = np.linspace(0.3, 1.7, 5)
on_backends = pytest.mark.parametrize("backend", BACKENDS)


@xp.composite
def softplus(x, scale=1.0):
    return xp.log1p(xp.exp(x * scale)), xp.special.expit(x)


@on_backends
def test_one_node_that_is_inlined(backend):
    x = xp.symbol("x", shape=(None,))
    y = softplus(x, 2.0)[0]
    assert [v.op.name for v in toposort([y._v]) if v.op is not None] == ["composed"]
    assert softplus(x, 2.0)[0]._v.call is y._v.call
    value = xp.sum(y)
    rows = xp.symbol("rows", shape=(2, 5))
    batched = xp.vectorize(lambda r: xp.sum(softplus(r, 2.0)[0]))(rows)
    f = xp.function([x, rows], [*xp.value_and_grad(value, x), batched], backend=backend)
    got = f(POINT, np.stack([POINT, POINT]))
    np.testing.assert_allclose(got[0], np.sum(np.log1p(np.exp(2 * POINT))))
    np.testing.assert_allclose(got[1], 2 / (1 + np.exp(-2 * POINT)))
    np.testing.assert_allclose(got[2], [got[0]] * 2)
    assert f.fallbacks() == []


@on_backends
def test_own_gradient(backend):
    straight = xp.composite(lambda x, k: xp.round(x) * k, vjp=lambda g, y, x, k: (g * k, None))
    x, k = xp.symbol("x", shape=(5,)), xp.symbol("k")
    value = xp.sum(straight(x, k) ** 2)
    got = xp.function([x, k], xp.value_and_grad(value, [x, k]), backend=backend)(POINT, 2.0)
    np.testing.assert_allclose(got[0], np.sum((2 * np.round(POINT)) ** 2))
    np.testing.assert_allclose(got[1][0], 8 * np.round(POINT))
    assert got[1][1] == 0


def test_errors():
    x, y = xp.symbol("x"), xp.symbol("y")
    with pytest.raises(ArgumentError, match="reads the symbol 'y' from outside"):
        xp.composite(lambda x: x + y)(x)
    with pytest.raises(ArgumentError, match="must return one array"):
        xp.composite(lambda x: (x, x), vjp=lambda g, y, x: g)(x)
    with pytest.raises(GradientError, match="2 cotangents for 1"):
        xp.grad(xp.composite(lambda x: x, vjp=lambda g, y, x: (g, g))(x), x)


# -- types that are no tensors ---------------------------------------------------------------------


class ListType(Type):
    """A list of arrays of one dtype, of any length and shapes."""

    __slots__ = ("element",)

    def __new__(cls, element):
        def make():
            self = object.__new__(cls)
            self.element = np.dtype(element)
            return self

        return intern_type((cls, str(element)), make)

    def filter(self, value, strict=False, allow_downcast=False):
        return [np.asarray(x, self.element) for x in value]

    def values_eq_approx(self, a, b):
        return len(a) == len(b) and all(map(np.allclose, a, b))


class StringType(Type):
    """Text."""

    __slots__ = ()

    def __new__(cls):
        return intern_type((cls,), lambda: object.__new__(cls))

    def filter(self, value, strict=False, allow_downcast=False):
        return str(value)


if "split_at_zeros" not in OPS:
    NONE = NoGradient("it works on lists of arrays")

    @declare(
        "library",
        infer=lambda types, params: ListType(types[0].dtype),
        reference=lambda x: [p[p != 0] for p in np.split(x, np.flatnonzero(x == 0))],
        vjp=NONE,
    )
    def split_at_zeros(x, /):
        """The runs between zeros."""
        return (x,), {}

    @declare(
        "library",
        infer=lambda types, params: TensorType("float64", ()),
        reference=lambda runs, word: max(map(len, runs)) + len(word) / 10,
        vjp=NONE,
    )
    def longest(runs, word, /):
        """The length of the longest run, and a tenth for each letter."""
        return (runs, word), {}


def test_a_type_from_outside():
    t = ListType("float64")
    assert t is ListType("float64") and t is not ListType("float32")
    assert t.values_eq_approx(t.filter([[1, 2], [3]]), [np.array([1.0, 2.0]), np.array([3.0])])
    runs, word = make_symbol(t, "runs"), make_symbol(StringType(), "word")
    graph = Graph([runs, word], [op.longest(runs, word)])
    (out,) = evaluate(graph, [[np.ones(2), np.ones(4)], "abc"])
    assert out == 4.3


@on_backends
def test_lists_pass_through_compiled_programs(backend):
    x = xp.symbol("x", shape=(None,))
    word = Variable(StringType(), None, "ab")
    y = Array(op.longest(op.split_at_zeros((x * 2)._v), word)) + 1
    f = xp.function([x], y, backend=backend)
    np.testing.assert_allclose(f(np.array([1.0, 0, 2, 3, 4, 0, 5])), 4.2)
