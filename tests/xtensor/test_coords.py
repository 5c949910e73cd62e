import pickle

import numpy as np
import pytest

from lazyarr.errors import CoordError, DimError, LabelError
from lazyarr.xtensor.coords import EMPTY, Coords, Index, make_coords, take_values
from lazyarr.xtensor.joining import merge

pytestmark = pytest.mark.fast


def coords(dims: tuple = ("a", "b"), **given: object) -> Coords:
    return make_coords(given, dims, {"a": 2, "b": 3})


def test_equal_labels_are_one_object() -> None:
    assert Index(["u", "v"]) is Index(np.array(["u", "v"]))
    assert Index([1, 2]) is not Index([1.0, 2.0])
    assert Index([1, 2]).equals(Index([1.0, 2.0]))
    assert pickle.loads(pickle.dumps(Index([1, 2]))) is Index([1, 2])


def test_labels_cannot_be_changed() -> None:
    given = np.array([1, 2])
    index = Index(given)
    given[0] = 5
    assert index.labels.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        index.labels[0] = 3


def test_find() -> None:
    assert Index(["u", "v"]).find("v") == 1
    assert Index([10, 20]).find(np.int64(20)) == 1
    assert Index([0.5, 1.5]).find_all([1.5, 0.5]).tolist() == [1, 0]
    assert Index(["u", "v", "u"]).find("u").tolist() == [0, 2]
    with pytest.raises(LabelError, match="Did you mean 'aitkin'"):
        Index(["aitkin", "anoka"]).find("aitken")
    with pytest.raises(KeyError):
        Index([1, 2]).find(3)


@pytest.mark.parametrize(
    ("labels", "given", "want"),
    [
        ([10, 20, 30], slice(10, 20), [10, 20]),
        ([10, 20, 30], slice(12, 99), [20, 30]),
        ([30, 20, 10], slice(25, 10), [20, 10]),
        (["b", "a", "c"], slice("a", "c"), ["a", "c"]),
        (["a", "b", "d"], slice("aa", "c"), ["b"]),
        ([1, 1, 2], slice(1, 1), [1, 1]),
        ([10, 20, 30], slice(None, None, 2), [10, 30]),
    ],
)
def test_slices_include_both_ends(labels: list, given: slice, want: list) -> None:
    index = Index(labels)
    assert index.labels[index.find_slice(given)].tolist() == want


def test_slices_that_cannot_be() -> None:
    with pytest.raises(LabelError, match="against the order"):
        Index([10, 20, 30]).find_slice(slice(30, 10))
    with pytest.raises(LabelError):
        Index([2, 1, 3]).find_slice(slice(1.5, 3))
    with pytest.raises(LabelError):
        Index([1, 2]).find_slice(slice("a", "b"))


def test_dates_and_nearest_labels() -> None:
    pd = pytest.importorskip("pandas")
    days = Index(pd.date_range("2020-01-01", periods=60))
    assert days.find("2020-02") == slice(31, 60, None)
    assert days.find("2020-01-03") == 2
    assert len(days.labels[days.find_slice(slice("2020-01-30", "2020-02-02"))]) == 4
    assert Index([10, 20]).find(14, method="nearest") == 0
    with pytest.raises(LabelError):
        Index([10, 20]).find(14, method="nearest", tolerance=1)


def test_coordinates_given_by_a_user() -> None:
    made = coords(a=["u", "v"], g=("b", [1, 2, 2]), s=5.0)
    assert made["a"].index is Index(["u", "v"])
    assert made["g"].index is None and made["g"].dims == ("b",)
    assert made["s"].dims == ()
    assert made.within(["b"]) == coords(g=("b", [1, 2, 2]), s=5.0)
    assert made.rename({"b": "c"})["g"].dims == ("c",)
    assert hash(made) == hash(coords(s=5.0, a=["u", "v"], g=("b", [1, 2, 2])))
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("given", "error"),
    [({"a": [1, 2, 3]}, CoordError), ({"g": ("z", [1])}, DimError), ({"z": [1, 2]}, DimError)],
)
def test_coordinates_that_do_not_fit(given: dict, error: type) -> None:
    with pytest.raises(error):
        coords(**given)


def test_unknown_names_have_a_hint() -> None:
    with pytest.raises(LabelError, match="Did you mean 'county'"):
        make_coords({"county": [1, 2]}, ("county",), {"county": 2})["conty"]


def test_merge() -> None:
    left = coords(a=["u", "v"], g=("b", [1.0, np.nan, 2.0]), s=1)
    assert merge([left, EMPTY]) is left
    assert merge([left, coords(b=[1, 2, 3])]) == left.assign(coords(b=[1, 2, 3]))
    assert merge([left, coords(g=("b", [1.0, np.nan, 2.0]))]) == left
    assert set(merge([left, coords(s=2), coords(s=1)])) == {"a", "g"}


def test_exact_join_shows_what_differs() -> None:
    with pytest.raises(CoordError, match=r"'a' differ: at 1 of 2 positions, such as 'v' and 'w'"):
        merge([coords(a=["u", "v"]), coords(a=["u", "w"])])
    with pytest.raises(CoordError, match="largest difference is 1e-0?8"):
        merge([coords(a=[0.0, 1.0]), coords(a=[0.0, 1.0 + 1e-8])])
    with pytest.raises(CoordError, match="another order"):
        merge([coords(a=["u", "v"]), coords(a=["v", "u"])])
    assert merge([coords(a=["u", "v"]), coords(a=["v", "u"])], "override") == coords(a=["u", "v"])


def test_take_values_point_by_point() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    keys = {"x": (("p",), np.array([1, 0])), "z": (("p",), np.array([3, 2]))}
    dims, out = take_values(("x", "y", "z"), values, keys)
    assert dims == ("p", "y")
    np.testing.assert_array_equal(out, values[[1, 0], :, [3, 2]])


def test_isel_of_coordinates() -> None:
    made = coords(a=["u", "v"], g=("b", [1, 2, 3]))
    assert made.isel({"a": 1})["a"].dims == ()
    assert made.isel({"b": slice(None, None, -1)})["g"].values.tolist() == [3, 2, 1]
    assert set(made.isel({"b": None})) == {"a"}


def test_what_was_asked_before_is_remembered_apart() -> None:
    """Dims that stay and positions along dims are different questions."""
    c = make_coords({"a": [1, 2], "s": 3.0}, ("a",), {"a": 2})
    for _ in range(2):
        assert set(c.within(())) == {"s"} and set(c.isel({})) == {"a", "s"}
        assert c.within(("a",)) is c
        assert c.isel({"a": 1})["a"].dims == () and len(c.isel({"a": slice(1)})["a"]) == 1
        picked = c.isel({"a": (("p",), np.array([1, 0, 1]))})
        assert picked["a"].dims == ("p",) and picked["a"].values.tolist() == [2, 1, 2]
