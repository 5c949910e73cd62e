"""Bad input gets its error at the call that causes it: class, both shapes, where each was made."""

import inspect
import re

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import AxisError, BoundsError, DTypeError, LazyArrError, ShapeError
from lazyarr.graph import dtypes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.indexing import getitem
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.types import TensorType
from tests.strategies.recipes.declare import RECIPES
from tests.strategies.samples import arity

pytestmark = pytest.mark.fast


def leaf(*shape: object, dtype: str = "float64") -> Variable:
    return symbol(TensorType(dtype, shape))


X, Y = leaf(2, 3), leaf(4)
EMPTY = leaf(0, 3)
INTS, SMALL, BOOLS = leaf(3, dtype="int64"), leaf(3, dtype="int8"), leaf(3, dtype="bool")
COMPLEX = leaf(3, dtype="complex128")

# name -> (what is recorded, the class a caller would catch, what the message says)
ROWS = {
    "shapes that do not broadcast": (lambda: op.add(X, Y), ValueError, r"\(2, 3\) and \(4,\)"),
    "where of three": (lambda: op.where(BOOLS, X, Y), ValueError, r"\(3,\).*\(2, 3\).*\(4,\)"),
    "matmul": (lambda: op.matmul(X, Y), ValueError, r"\(2, 3\).*\(4,\)"),
    "matmul of 0-d": (lambda: op.matmul(leaf(), Y), ValueError, "multiply"),
    "vecdot": (lambda: op.vecdot(leaf(3), Y), ValueError, r"\(3,\).*\(4,\)"),
    "tensordot": (lambda: op.tensordot(X, Y, axes=1), ValueError, "3 and 4"),
    "tensordot, unpaired": (lambda: op.tensordot(X, X, axes=((0,), (0, 1))), ValueError, "paired"),
    "concat": (lambda: op.concat([X, leaf(2, 4)], axis=0), ValueError, r"\(2, 3\) and \(2, 4\)"),
    "concat of ranks": (lambda: op.concat([X, Y]), ValueError, "rank"),
    "concat of nothing": (lambda: op.concat([]), ValueError, "at least one"),
    "stack": (lambda: op.stack([X, leaf(3, 2)]), ValueError, r"\(2, 3\) and \(3, 2\)"),
    "reshape": (lambda: op.reshape(X, (4, 2)), ValueError, r"6 elements.*8"),
    "reshape, -1": (lambda: op.reshape(X, (4, -1)), ValueError, r"\(2, 3\)"),
    "reshape, -1 of nothing": (lambda: op.reshape(EMPTY, (0, -1)), ValueError, r"\(0, 3\)"),
    "broadcast_to": (lambda: op.broadcast_to(X, (3, 4)), ValueError, r"\(2, 3\).*\(3, 4\)"),
    "broadcast_to, too few": (lambda: op.broadcast_to(X, (3,)), ValueError, r"\(2, 3\).*\(3,\)"),
    "squeeze": (lambda: op.squeeze(X, 0), ValueError, r"axis 0.*\(2, 3\)"),
    "a shape with None": (lambda: op.zeros((None, 2)), ValueError, "sizes"),
    "full of an array": (lambda: op.full((2,), Y), ValueError, "0-d"),
    "arange, step 0": (lambda: op.arange(0, 3, 0), ValueError, "step"),
    "axis": (lambda: op.sum(X, axis=2), IndexError, "axis 2.*2 dimensions"),
    "negative axis": (lambda: op.max(X, axis=-3), ValueError, "axis -3"),
    "axis twice": (lambda: op.sum(X, axis=(0, -2)), ValueError, "twice"),
    "axis that is no int": (lambda: op.sum(X, axis=0.5), ValueError, "0.5"),
    "axis of stack": (lambda: op.stack([X], axis=3), IndexError, "axis 3"),
    "axis of expand_dims": (lambda: op.expand_dims(X, axis=3), IndexError, "axis 3"),
    "axis of expand_dims, twice": (lambda: op.expand_dims(X, axis=(0, 0)), ValueError, "twice"),
    "permutation": (lambda: op.permute_dims(X, (0, 0)), ValueError, "permutation"),
    "argmax over some axes": (lambda: op.argmax(leaf(2, 3, 4), axis=(0, 1)), ValueError, "axis"),
    "cumulative_sum without axis": (lambda: op.cumulative_sum(X), ValueError, "axis"),
    "max over nothing": (lambda: op.max(EMPTY, axis=0), ValueError, r"axis 0.*\(0, 3\)"),
    "argmin over nothing": (lambda: op.argmin(EMPTY), ValueError, r"\(0, 3\)"),
    "index": (lambda: getitem(X, (2,)), IndexError, "2.*size 2"),
    "negative index": (lambda: getitem(X, (0, -4)), IndexError, "-4.*size 3"),
    "too many indices": (lambda: getitem(X, (0, 0, 0)), IndexError, "3.*2 dimensions"),
    "two ellipses": (lambda: getitem(X, (..., 0, ...)), TypeError, "one ellipsis"),
    "index of known data": (
        lambda: op.take(Y, np.array([0, 4])), IndexError, "4.*size 4"),
    "index of floats": (lambda: op.take(Y, np.array([0.0])), TypeError, "float64"),
    "take without axis": (lambda: op.take(X, np.array([0])), TypeError, "axis"),
    "slice step 0": (lambda: getitem(X, (slice(None, None, 0),)), ValueError, "step"),
    "dtypes": (lambda: op.logical_and(BOOLS, INTS), TypeError, "boolean.*int64"),
    "bitwise of floats": (lambda: op.bitwise_and(Y, Y), TypeError, "float64"),
    "order of complex": (lambda: op.less(COMPLEX, COMPLEX), TypeError, "complex128"),
    "max of bool": (lambda: op.max(BOOLS), TypeError, "bool"),
    "adding booleans": (lambda: op.add(BOOLS, BOOLS), TypeError, "bool"),
    "matmul of bool": (lambda: op.matmul(BOOLS, BOOLS), TypeError, "bool"),
    "condition that is no bool": (lambda: op.where(INTS, 1, 2), TypeError, "bool.*!= 0"),
    "cholesky of integers": (lambda: op.cholesky(leaf(2, 2, dtype="int64")), TypeError, "int64"),
    "cholesky, not square": (lambda: op.cholesky(X), ValueError, "square"),
    "unknown dtype": (lambda: op.astype(X, "float128"), TypeError, "float128"),
    "dtype of an object": (lambda: op.zeros((2,), dtype=object), TypeError, "object"),
    "negative integer power": (lambda: op.pow(INTS, -2), TypeError, "-2.*cast"),
    "int8 + 256": (lambda: op.add(SMALL, 256), OverflowError, "256.*int8"),
    "256 - int8": (lambda: op.subtract(256, SMALL), OverflowError, "256.*int8"),
    "uint8 + -1": (lambda: op.add(leaf(3, dtype="uint8"), -1), OverflowError, "-1.*uint8"),
    "full that does not fit": (
        lambda: op.full((2,), 300, dtype="uint8"), OverflowError, "300.*uint8"),
    "adding to booleans in place": (
        lambda: op.take_add(BOOLS, np.array([0]), True, axis=0), TypeError, "bool"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_row(name: str) -> None:
    record, error, message = ROWS[name]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)) as caught:
        record()
    assert isinstance(caught.value, LazyArrError)


def test_both_places_are_named() -> None:
    """Shapes that do not broadcast: the message has both operands, their names and lines."""
    frame = inspect.currentframe()
    here = frame.f_lineno
    left = symbol(TensorType("float64", (2, 3)), "left")
    right = op.exp(Y)
    with pytest.raises(ShapeError) as caught:
        op.multiply(left, right)
    text = str(caught.value)
    assert "multiply" in text and "(2, 3)" in text and "(4,)" in text
    assert "'left'" in text
    assert f"{__file__}:{here + 1}" in text
    assert f"{__file__}:{here + 2}" in text


@pytest.mark.parametrize("name", [o.name for o in OPS.values() if o.kind == "elementwise"])
def test_dtypes_outside_the_category(name: str) -> None:
    """An elementwise op refuses every dtype that its category does not hold."""
    record = OPS[name]
    if name in RECIPES or record.promoted is not None:
        pytest.skip("its operands have dtypes of their own")
    for dtype in dtypes.ALL:
        seen = dtypes.floating(dtype) if record.accepts.endswith("floating-point") else dtype
        operands = [leaf(2, dtype=dtype.name) for _ in range(arity(record))]
        if seen in dtypes.CATEGORIES[record.accepts]:
            record(*operands)
        else:
            with pytest.raises(DTypeError, match=dtype.name):
                record(*operands)


@pytest.mark.parametrize(
    "name", [o.name for o in OPS.values() if o.kind in ("reduction", "cumulative")]
)
def test_axes_outside(name: str) -> None:
    dtype = "bool" if name in ("all", "any") else "float64"
    x = leaf(2, 3, dtype=dtype)
    for axis in (2, -3):
        with pytest.raises(AxisError, match=str(axis)):
            OPS[name](x, axis=axis)


def test_errors_are_the_classes_one_would_catch() -> None:
    assert issubclass(ShapeError, ValueError)
    assert issubclass(DTypeError, TypeError)
    assert issubclass(BoundsError, IndexError)
    assert issubclass(AxisError, ValueError) and issubclass(AxisError, IndexError)
