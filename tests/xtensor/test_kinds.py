"""How dims of results follow from those of operands, kind by kind."""

import warnings

import numpy as np
import pytest

import lazyarr  # noqa: F401
from lazyarr.errors import DimError
from lazyarr.graph.node import Variable, data, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import unknown
from lazyarr.xtensor.kinds import DimNameWarning, looks_mistyped
from lazyarr.xtensor.types import XTensorType

pytestmark = pytest.mark.fast


def named(dims: str, shape: tuple, dtype: str = "float64") -> Variable:
    return symbol(XTensorType(dtype, tuple(dims), shape))


@pytest.mark.parametrize(
    ("left", "right", "dims"), [("ab", "bc", "abc"), ("ba", "ab", "ba"), ("c", "ab", "cab")]
)
def test_elementwise_dims_in_order_of_first_appearance(left: str, right: str, dims: str) -> None:
    sizes = {"a": 2, "b": 3, "c": 4}
    x = named(left, tuple(sizes[d] for d in left))
    y = named(right, tuple(sizes[d] for d in right), "int32")
    out = op.add(x, y)
    assert out.type.dims == tuple(dims)
    assert out.type.sizes == {d: sizes[d] for d in dims}
    assert out.type.dtype == np.float64


def test_known_sizes_must_agree_and_one_does_not_broadcast() -> None:
    for n in (1, 4):
        with pytest.raises(DimError, match=r"'a' has size 3 in one operand and") as error:
            op.add(named("a", (3,)), named("a", (n,)))
        assert "float64[a: 3]" in str(error.value) and f"float64[a: {n}]" in str(error.value)


def test_a_known_size_wins_over_an_unknown_one() -> None:
    n, m = unknown("n"), unknown("m")
    assert op.add(named("a", (n,)), named("a", (5,))).shape == (5,)
    assert op.add(named("a", (n,)), named("a", (m,))).shape == (n,)


def test_positional_operands() -> None:
    x = named("ab", (2, 3))
    assert op.multiply(x, data(np.float64(2.0))).type.dims == ("a", "b")
    assert op.multiply(2, x).type.dims == ("a", "b")
    with pytest.raises(DimError, match="XTensor"):
        op.add(x, data(np.zeros(3)))


def test_reductions_and_cumulative_ops() -> None:
    x = named("abc", (2, 3, 4))
    assert op.sum(x, axis="b").type.dims == ("a", "c")
    assert op.max(x, axis=("a", "c")).type.dims == ("b",)
    assert op.sum(x, axis="b", keepdims=True).type.sizes == {"a": 2, "b": 1, "c": 4}
    assert op.argmax(x).type.dims == ()
    assert op.cumulative_sum(x, axis="c").type is x.type


def test_composites_follow_their_axis() -> None:
    x = named("ab", (2, 3))
    assert op.mean(x, axis="a").type.dims == ("b",)
    assert op.logsumexp(x, axis="b").type.dims == ("a",)
    assert op.softmax(x, axis="b").type is x.type
    assert op.zeros_like(x).type is x.type
    assert op.clip(x, 0.0, named("c", (4,))).type.dims == ("a", "b", "c")


def test_movement() -> None:
    x = named("abc", (2, 3, 1))
    assert op.permute_dims(x, ("c", "a", "b")).type.sizes == {"c": 1, "a": 2, "b": 3}
    assert op.squeeze(x, "c").type.dims == ("a", "b")
    assert op.flip(x, axis="a").type is x.type
    assert op.basic_index(x, (0, slice(1, None))).type.sizes == {"b": 2, "c": 1}
    assert op.concat([x, named("bca", (5, 1, 2))], axis="b").type.sizes == {"a": 2, "b": 8, "c": 1}


def test_take_and_contract() -> None:
    x = named("ab", (2, 3))
    assert op.take(x, named("pq", (4, 5), "int64"), axis="b").type.dims == ("a", "p", "q")
    assert op.take(x, data(np.array([0, 1])), axis="b").type.sizes == {"a": 2, "b": 2}
    spec = ((0, 1), (1, 2), (0, 2))
    assert op.contract(x, named("bc", (3, 4)), spec).type.sizes == {"a": 2, "c": 4}
    with pytest.raises(DimError, match="'b' has size 3"):
        op.contract(x, named("bc", (5, 4)), spec)


@pytest.mark.parametrize(
    "record",
    [
        lambda x: op.matmul(x, x),
        lambda x: op.reshape(x, (4,)),
        lambda x: op.expand_dims(x, axis=0),
        lambda x: op.tril(x),
        lambda x: op.cholesky(x),
        lambda x: op.diagonal(x),
        lambda x: op.stack([x, x]),
        lambda x: op.sum(x, axis="z"),
        lambda x: op.take(x, named("b", (2,), "int64"), axis="a"),
    ],
)
def test_what_has_no_meaning_by_name_is_refused(record) -> None:
    with pytest.raises(DimError):
        record(named("ab", (2, 2)))


def test_names_one_edit_apart_warn() -> None:
    city = symbol(XTensorType("float64", ("city",), (1000,)))
    with pytest.warns(DimNameWarning, match="'city' and 'ctiy'") as caught:
        out = op.add(city, symbol(XTensorType("float64", ("ctiy",), (1000,))))
    assert out.type.dims == ("city", "ctiy") and out.shape == (1000, 1000)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("other", ["obs2", "x", "state", "cities", "cityx"])
def test_other_names_do_not(other: str) -> None:
    assert not looks_mistyped("obs", other)
    assert looks_mistyped("city", other) == (other == "cityx")


def test_both_dims_in_one_operand_are_meant() -> None:
    both = symbol(XTensorType("float64", ("city", "ctiy"), (2, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        op.add(symbol(XTensorType("float64", ("city",), (2,))), both)
