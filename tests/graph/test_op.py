"""Recording: memory of types, raw scalars, promotion; declaring ops from outside."""

import pickle

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import DTypeError, GraphError, OverflowValueError
from lazyarr.graph import dtypes
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import symbol
from lazyarr.graph.op import KINDS, operand_types
from lazyarr.graph.registry import OPS, get_op, op, register
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast
F8, F4, I1 = (TensorType(d, (3,)) for d in ("float64", "float32", "int8"))


def test_names() -> None:
    assert op.tanh is OPS["tanh"] is get_op("tanh")
    assert pickle.loads(pickle.dumps(OPS["tanh"])) is OPS["tanh"]
    assert repr(op.tanh) == "<op tanh>"
    with pytest.raises(GraphError, match="Did you mean 'softplus'"):
        op.softpuls  # noqa: B018
    with pytest.raises(GraphError, match="exists already"):
        register(OPS["tanh"])
    assert {o.kind for o in OPS.values()} <= set(KINDS)


def test_inference_is_remembered_by_types() -> None:
    x = symbol(TensorType("float64", (7, 5)))
    op.exp(x)
    known = len(OPS["exp"].memo)
    assert op.exp(symbol(x.type)).type is op.exp(x).type
    assert len(OPS["exp"].memo) == known


@pytest.mark.parametrize(
    ("array", "scalar", "dtype"),
    [
        (I1, 1, "int8"), (I1, 1.5, "float64"), (F4, 1, "float32"), (F4, 3.5, "float32"),
        (F4, 1j, "complex64"), (F8, 2, "float64"), (I1, True, "int8"),
    ],
)  # fmt: skip
def test_python_scalars_are_weak(array: TensorType, scalar: object, dtype: str) -> None:
    for node in (op.multiply(symbol(array), scalar), op.multiply(scalar, symbol(array))):
        assert node.dtype == np.dtype(dtype)


def test_numpy_scalars_are_strong() -> None:
    assert op.multiply(symbol(F4), np.float64(2)).dtype == np.float64
    assert op.add(symbol(I1), np.int64(300)).dtype == np.int64


def test_scalars_must_fit_also_when_the_types_are_known() -> None:
    x = symbol(I1)
    op.add(x, 1)
    for bad in (256, -129):
        with pytest.raises(OverflowValueError):
            op.add(x, bad)
    assert op.add(x, -128).dtype == np.int8


def test_sizes_are_weak_integers() -> None:
    n = unknown("n")
    x = symbol(TensorType("float32", (n,)))
    mean = op.divide(op.sum(x), n)
    assert mean.dtype == np.float32
    (got,) = evaluate(Graph([x], [mean]), [np.array([1, 2, 6], "float32")])
    assert got == 3 and got.dtype == np.float32


@pytest.mark.parametrize("a", dtypes.ALL, ids=str)
def test_promotion_is_numpys(a: np.dtype) -> None:
    for b in dtypes.ALL:
        assert dtypes.promote(a, b) == np.result_type(a, b) == dtypes.promote(b, a)


def test_dtypes_that_do_not_promote() -> None:
    with pytest.raises(DTypeError, match="float64 and <U1"):
        dtypes.promote(np.dtype("f8"), np.dtype("U1"))


def test_dtypes_by_any_name() -> None:
    for name in ("float64", float, np.float64, np.dtype("f8")):
        assert dtypes.as_dtype(name) == np.float64
    for bad in (None, "float16", "text", object()):
        with pytest.raises(DTypeError, match="float64"):
            dtypes.as_dtype(bad)


def test_accumulators() -> None:
    found = {d.name: dtypes.accumulator(d).name for d in dtypes.ALL}
    assert found["bool"] == found["int8"] == found["int64"] == "int64"
    assert found["uint8"] == found["uint64"] == "uint64"
    assert all(found[d] == d for d in ("float32", "float64", "complex64"))


def test_operands_by_class_or_type() -> None:
    node = op.add(symbol(F8), 2)
    assert operand_types(node) == (F8, int)
    assert node.op.compute_dtype(node) == np.float64
