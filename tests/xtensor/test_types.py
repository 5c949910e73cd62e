import pickle

import numpy as np
import pytest

import lazyarr  # noqa: F401
from lazyarr.errors import DimError
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.types import TensorType
from lazyarr.xtensor.types import XTensorType, as_dims

pytestmark = pytest.mark.fast


def test_equal_types_are_one_object() -> None:
    n = unknown("n")
    assert XTensorType("float64", ("a",), (n,)) is XTensorType(np.dtype("float64"), ("a",), (n,))
    assert XTensorType("float64", ("a",), (3,)) is not XTensorType("float64", ("b",), (3,))
    assert XTensorType("float64", ("a",), (3,)) is not TensorType("float64", (3,))


def test_parts() -> None:
    t = XTensorType("int8", ("a", "b"), (2, 3))
    assert t.named and t.dims == ("a", "b") and t.sizes == {"a": 2, "b": 3}
    assert t.positional is TensorType("int8", (2, 3))
    assert t.with_shape((4, 5)) is XTensorType("int8", ("a", "b"), (4, 5))
    assert repr(t) == "int8[a: 2, b: 3]"


def test_pickle() -> None:
    t = XTensorType("int8", ("a", "b"), (2, 3))
    assert pickle.loads(pickle.dumps(t)) is t


@pytest.mark.parametrize("dims", [("a", "a"), ("a", 1), (None, "a"), ("a",), ("a", "b", "c")])
def test_wrong_dims(dims: tuple) -> None:
    with pytest.raises(DimError):
        XTensorType("float64", dims, (2, 2))


def test_dims_are_strings_or_several() -> None:
    assert as_dims("obs") == ("obs",)
    assert as_dims(["a", "b"]) == ("a", "b")


def test_unknown_dim_has_a_hint() -> None:
    with pytest.raises(DimError, match="Did you mean 'county'"):
        XTensorType("float64", ("obs", "county"), (2, 2)).axis("conty")


def test_a_labelled_value_is_transposed() -> None:
    xr = pytest.importorskip("xarray")
    t = XTensorType("float64", ("a", "b"), (2, 3))
    given = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("b", "a"))
    np.testing.assert_array_equal(t.filter(given), given.values.T)
    with pytest.raises(DimError, match="expected dims"):
        t.filter(given.rename(b="c"))


def test_naming_ops_change_types_only() -> None:
    x = lazyarr.XTensor(np.zeros((2, 3)), dims=("a", "b"))._v
    assert op.drop_dims(x).type is TensorType("float64", (2, 3))
    assert op.with_dims(x, ("c", "d")).type.dims == ("c", "d")
    with pytest.raises(DimError, match="2 axes"):
        op.with_dims(x, ("c",))
