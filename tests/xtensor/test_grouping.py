"""Reductions by group against a loop over the groups."""

import numpy as np
import pytest

from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, data
from lazyarr.graph.traverse import Graph
from lazyarr.xtensor.grouping import SEGMENTED, Groups, segment_reduce, side_by_side, spread
from lazyarr.xtensor.lower import lower_named
from lazyarr.xtensor.types import XTensorType

pytestmark = pytest.mark.fast

CODES = np.array([1, 0, 1, -1, 2, 0, 1])
GROUPS = Groups("t", CODES, 3, "g")
VALUES = np.random.default_rng(0).normal(size=(2, 7, 3))
X = data(VALUES, XTensorType(np.float64, ("a", "t", "b"), (2, 7, 3)))
REFERENCE = {"count": lambda v, axis: np.full(np.delete(v.shape, axis), v.shape[axis])}


def value(node: Variable) -> np.ndarray:
    return evaluate(lower_named(Graph((), [node])), ())[0]


@pytest.mark.parametrize("name", [n for n in SEGMENTED if n not in ("any", "all")])
def test_as_a_loop(name: str) -> None:
    out = segment_reduce(name, X, GROUPS, (), True)
    f = REFERENCE.get(name) or getattr(np, name)
    want = np.stack([f(VALUES[:, CODES == i], axis=1) for i in range(3)], axis=1)
    assert out.type.dims == ("a", "g", "b")
    np.testing.assert_allclose(value(out), want)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "median"])
def test_over_other_dims_too(name: str) -> None:
    out = segment_reduce(name, X, GROUPS, ("a",), True)
    f = getattr(np, name)
    want = np.stack([f(VALUES[:, CODES == i], axis=(0, 1)) for i in range(3)])
    assert out.type.dims == ("g", "b")
    np.testing.assert_allclose(value(out), want)


def test_members_and_sizes() -> None:
    assert [m.tolist() for m in GROUPS.members] == [[1, 5], [0, 2, 6], [4]]
    assert GROUPS.sizes.tolist() == [2, 3, 1]
    assert not GROUPS.uneven()


def test_short_groups_are_filled_up() -> None:
    wide = side_by_side(X, GROUPS, np.nan, "m")
    assert wide.type.dims == ("a", "g", "m", "b") and wide.shape == (2, 3, 3, 3)
    assert np.isnan(value(wide)[:, 2, 1:]).all()


def test_spread_undoes_the_grouping() -> None:
    means = segment_reduce("mean", X, GROUPS, (), True)
    back = spread(means, GROUPS)
    assert back.type.dims == ("a", "t", "b")
    np.testing.assert_allclose(value(back)[:, 1], value(means)[:, 0])
