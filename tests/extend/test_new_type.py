"""A type from outside that is no tensor: an input, a value between compiled parts, an output."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.graph import shapes
from lazyarr.graph.node import symbol
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.types import TensorType, Type, intern_type
from lazyarr.namespace.array import Array
from tests.backend_params import BACKENDS


class Arrays(Type):
    """A list of arrays of one element type."""

    __slots__ = ("element",)

    def __new__(cls, element):
        def make():
            new = object.__new__(cls)
            new.element = element
            return new

        return intern_type((cls, element), make)

    def filter(self, value, strict=False, allow_downcast=False):
        return [self.element.filter(v, strict, allow_downcast) for v in value]

    def values_eq_approx(self, a, b):
        return len(a) == len(b) and all(map(self.element.values_eq_approx, a, b))


ROWS = Arrays(TensorType("float64", (shapes.unknown("length"),)))


@pytest.fixture(autouse=True)
def ops():
    none = NO_GRADIENT("lists have no derivative")

    @declare(
        "library", infer=lambda types, params: ROWS, vjp=none,
        reference=lambda x, sizes: np.split(x, np.cumsum(sizes)[:-1]),
    )  # fmt: skip
    def test_split(x, sizes, /):
        """x in pieces."""
        return (x, sizes), {}

    @declare(
        "library", infer=lambda types, params: types[0], vjp=none,
        reference=lambda rows, more: [*rows, *more],
    )  # fmt: skip
    def test_chain(rows, more, /):
        """Two lists, one after the other."""
        return (rows, more), {}

    @declare(
        "library", infer=lambda types, params: TensorType("float64", ()), vjp=none,
        reference=lambda rows: max(r.sum() for r in rows),
    )  # fmt: skip
    def test_largest(rows, /):
        """The largest sum."""
        return (rows,), {}

    yield
    for name in ("test_split", "test_chain", "test_largest"):
        OPS.pop(name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_pass_through_a_graph(backend):
    x, sizes = xp.symbol("x", shape=(None,)), xp.symbol("sizes", shape=(None,), dtype="int64")
    given = symbol(ROWS, "given")
    rows = op.test_chain(op.test_split((x * 2)._v, sizes._v), given)
    largest = Array(op.test_largest(rows)) + 1
    f = xp.function([x, sizes, given], [largest, Array(rows)], backend=backend)
    value, out = f(np.arange(6.0), np.array([1, 3, 2]), [[4, 4], np.ones(1)])
    assert value == 19
    want = [np.zeros(1), [2, 4, 6], [8, 10], [4.0, 4.0], np.ones(1)]
    assert ROWS.values_eq_approx(out, [np.asarray(w, float) for w in want])
    assert len(f.fallbacks()) == (3 if backend != "interpret" else 0)


def test_what_a_type_refuses():
    given = symbol(ROWS, "given")
    f = xp.function([given], Array(op.test_largest(given)) * 2, backend="c")
    assert f([np.ones(2)]) == 4
    with pytest.raises(Exception, match="input 'given'"):
        f([np.ones((2, 2))])
