"""Types are interned, refuse what is not theirs, and pickle to themselves."""

import pickle
import threading

import numpy as np
import pytest

from lazyarr.errors import ArgumentError, DTypeError, ShapeError
from lazyarr.graph.shapes import unknown
from lazyarr.graph.types import TensorType, TupleType

pytestmark = pytest.mark.fast
F8 = TensorType("float64", (2, 3))


def test_equal_types_are_one_object() -> None:
    n = unknown("n")
    assert TensorType(np.dtype("f8"), (2, 3)) is F8
    assert TensorType("float64", (np.int64(2), 3)) is F8
    assert TensorType("float64", (n, 3)) is TensorType("float64", (n, 3))
    assert TensorType("float64", (n,)) is not TensorType("float64", (unknown("n"),))
    assert TensorType("float32", (2, 3)) is not F8
    assert TupleType((F8, F8)) is TupleType([F8, F8])
    assert F8.with_shape((4,)) is TensorType("float64", (4,))


def test_interning_from_many_threads() -> None:
    found: list = []

    def make() -> None:
        found.extend(TensorType("int32", (k, k + 7)) for k in range(200))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({id(t) for t in found}) == 200


def test_pickle_keeps_identity() -> None:
    assert pickle.loads(pickle.dumps(F8)) is F8
    pair = TupleType((F8, TensorType("bool", ())))
    assert pickle.loads(pickle.dumps(pair)) is pair


def test_facts() -> None:
    t = TensorType("int64", (1, unknown("n"), 4))
    assert (t.ndim, t.ones) == (3, (True, False, False))
    assert repr(F8) == "float64[2, 3]"
    assert repr(TupleType((F8,))) == "(float64[2, 3])"


def test_filter_takes_what_fits() -> None:
    assert F8.filter([[1, 2, 3], [4, 5, 6]]).dtype == np.float64
    assert F8.filter(np.ones((2, 3), "float32")).dtype == np.float64
    assert TensorType("float32").filter(2.5) == np.float32(2.5)
    array = np.ones((2, 3))
    assert F8.filter(array) is array


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.ones((2, 3)) + 0j, DTypeError, "complex128"),
        (np.ones(3), ArgumentError, "2 dimensions"),
        (np.ones((3, 2)), ShapeError, r"\(3, 2\)"),
    ],
)
def test_filter_refuses(value: np.ndarray, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        F8.filter(value)


def test_filter_does_not_narrow_unless_told() -> None:
    small = TensorType("float32", (2,))
    with pytest.raises(DTypeError):
        small.filter(np.ones(2))
    assert small.filter(np.ones(2), allow_downcast=True).dtype == np.float32
    with pytest.raises(DTypeError):
        F8.filter(np.ones((2, 3), "int64"), strict=True)


def test_equal_up_to_rounding() -> None:
    t = TensorType("float64", (2,))
    assert t.values_eq_approx([1.0, np.nan], [1.0 + 1e-12, np.nan])
    assert not t.values_eq_approx([1.0, 2.0], [1.0, 2.1])
    assert not t.values_eq_approx([1.0], [1.0, 1.0])


def test_unknown_dtypes() -> None:
    for bad in ("float16", "U5", None, object):
        with pytest.raises(DTypeError):
            TensorType(bad, ())
