"""Joins of labels, and nodes taken to other labels."""

import numpy as np
import pytest

from lazyarr.errors import ArgumentError, CoordError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import data
from lazyarr.graph.traverse import Graph
from lazyarr.xtensor.coords import Coord, Coords, Index
from lazyarr.xtensor.joining import (
    join_indexes,
    merge,
    positions_in,
    reindex_coords,
    take_filled,
)
from lazyarr.xtensor.lower import lower_named
from lazyarr.xtensor.types import XTensorType

pytestmark = pytest.mark.fast

A, B = Index([3, 1, 2]), Index([2, 3, 7])


@pytest.mark.parametrize(
    ("join", "want"),
    [
        ("inner", [3, 2]),
        ("outer", [1, 2, 3, 7]),
        ("left", [3, 1, 2]),
        ("right", [2, 3, 7]),
        ("override", [3, 1, 2]),
    ],
)
def test_joins(join: str, want: list) -> None:
    assert join_indexes(join, "x", [A, B]).labels.tolist() == want


def test_exact_says_how_labels_differ() -> None:
    with pytest.raises(CoordError, match="at 3 of 3 positions, such as 3 and 2"):
        join_indexes("exact", "x", [A, B])
    with pytest.raises(CoordError, match="largest difference is 1e-09"):
        join_indexes("exact", "x", [Index([0.1]), Index([0.1 + 1e-9])])
    assert join_indexes("exact", "x", [Index([0.1]), Index([0.1 + 1e-9])], 1e-6).labels[0] == 0.1
    with pytest.raises(CoordError, match="another order"):
        join_indexes("exact", "x", [Index([1, 2]), Index([2, 1])])


def test_what_cannot_be_joined() -> None:
    with pytest.raises(CoordError, match="none in common"):
        join_indexes("inner", "x", [Index(["a"]), Index([1])])
    with pytest.raises(CoordError, match="more than once"):
        join_indexes("outer", "x", [Index([1, 1]), B])
    with pytest.raises(CoordError, match="equal sizes"):
        join_indexes("override", "x", [Index([1]), B])
    with pytest.raises(ArgumentError, match="join is one of"):
        join_indexes("middle", "x", [A, B])


def test_labels_without_an_order_keep_their_own() -> None:
    mixed = [Index(np.array(["b", 1], object)), Index(np.array([1, "a"], object))]
    assert join_indexes("outer", "x", mixed).labels.tolist() == ["b", 1, "a"]


def test_dates_of_other_units_are_the_same_labels() -> None:
    days = Index(np.array(["2020-01-01", "2020-01-02"], "M8[D]"))
    stamps = Index(np.array(["2020-01-02", "2020-01-05"], "M8[ns]"))
    assert positions_in(days, stamps).tolist() == [1, -1]


def test_taking_fills_what_is_missing() -> None:
    values = np.arange(6.0).reshape(2, 3)
    x = data(values, XTensorType(np.float64, ("a", "b"), (2, 3)))
    out = take_filled(x, "b", np.array([2, -1]), np.nan)
    (got,) = evaluate(lower_named(Graph((), [out])), ())
    assert out.type.dims == ("a", "b")
    np.testing.assert_array_equal(got, [[2.0, np.nan], [5.0, np.nan]])


def test_coordinates_follow() -> None:
    coords = Coords(
        {"x": Coord.of("x", ("x",), [1, 2]), "k": Coord.of("k", ("x",), np.array(["u", "v"]))}
    )
    out = reindex_coords(coords, "x", Index([2, 9]), np.array([1, -1]))
    assert out["x"].values.tolist() == [2, 9]
    assert out["k"].values.tolist()[0] == "v" and out["k"].values[1] != out["k"].values[1]


def test_merging_is_remembered() -> None:
    first = Coords({"x": Coord.of("x", ("x",), [1, 2])})
    second = Coords({"y": Coord.of("y", ("y",), [3])})
    assert merge([first, second]) is merge([first, second])
