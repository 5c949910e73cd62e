"""Every elementwise op, on special values of every category, against the interpreter."""

import numpy as np
import pytest

from lazyarr.graph.registry import op
from tests.backends.array.family import FAMILY, agrees, every_elementwise, leaf

pytestmark = pytest.mark.backends

FLOATS = [-np.inf, -1e30, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 3.0, 1e30, np.inf, np.nan]
INTS = {
    "int8": [-128, -127, -3, -1, 0, 1, 2, 5, 127],
    "int32": [-(2**31), -7, -1, 0, 1, 2, 6, 2**31 - 1],
    "int64": [-(2**63), -7, -1, 0, 1, 2, 6, 2**63 - 1],
    "uint8": [0, 1, 2, 7, 128, 255],
    "uint16": [0, 1, 2, 7, 2**15, 2**16 - 1],
    "uint32": [0, 1, 2, 7, 2**31, 2**32 - 1],
    "uint64": [0, 1, 2, 7, 2**63, 2**64 - 1],
    "bool": [False, True],
}


def pairs(values: list, dtype: str) -> list[np.ndarray]:
    a, b = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    return [a, b]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FAMILY)
def test_floats(name: str, dtype: str) -> None:
    arrays = pairs(FLOATS, dtype)
    x, y = leaf(dtype, *arrays[0].shape), leaf(dtype, *arrays[0].shape)
    outputs = [*every_elementwise(x), *every_elementwise(x, y)]
    assert len(outputs) > 50
    agrees(name, [x, y], outputs, arrays)


@pytest.mark.parametrize("dtype", list(INTS))
@pytest.mark.parametrize("name", FAMILY)
def test_integers_and_booleans(name: str, dtype: str) -> None:
    arrays = pairs(INTS[dtype], dtype)
    x, y = leaf(dtype, *arrays[0].shape), leaf(dtype, *arrays[0].shape)
    partly = name == "torch" and dtype == "uint64"
    outputs = [*every_elementwise(x), *every_elementwise(x, y)]
    exact = [v for v in outputs if v.dtype.kind != "f"]
    agrees(name, [x, y], exact if name != "numpy" else outputs, arrays, partly=partly)


COMPLEX = [1 + 2j, -1.5 + 0.25j, 0.5j, -2 - 1j, 3.0, 0j]


@pytest.mark.parametrize("name", FAMILY)
def test_complex(name: str) -> None:
    arrays = pairs(COMPLEX, "complex128")
    x, y = leaf("complex128", *arrays[0].shape), leaf("complex128", *arrays[0].shape)
    agrees(name, [x, y], [*every_elementwise(x), *every_elementwise(x, y)], arrays, partly=True)


@pytest.mark.parametrize("name", FAMILY)
def test_operands_of_several_dtypes(name: str) -> None:
    x, y, c = leaf("float32", 3), leaf("int64", 2, 1), leaf("bool", 2, 1)
    z = leaf("int8")
    outputs = [
        op.add(x, y),
        op.multiply(z, y),
        op.add(x, 2.5),
        op.subtract(1, z),
        op.where(c, x, y),
        op.where(c, z, 0),
        op.where(True, x, 1.0),
        op.isnan(y),
        op.isfinite(op.add(y, z)),
        op.divide(y, 2),
        op.add(op.multiply(z, 2), 1),
        op.astype(x, "int32"),
        op.astype(x, "bool"),
        op.astype(y, "uint8"),
        op.astype(c, "float32"),
        op.positive(x),
        op.stop_gradient(z),
        op.less(z, y),
    ]
    arrays = [
        np.array([1.5, -2.0, 0.0], "float32"),
        np.array([[3], [-4]]),
        np.array(7, "int8"),
        np.array([[True], [False]]),
    ]
    agrees(name, [x, y, z, c], outputs, arrays)


@pytest.mark.parametrize("name", FAMILY)
def test_empty(name: str) -> None:
    x, y = leaf("float64", 0, 3), leaf("float64", 3)
    outputs = [op.add(x, y), op.exp(x), op.remainder(x, 2.0), op.less(x, y)]
    agrees(name, [x, y], outputs, [np.zeros((0, 3)), np.ones(3)])


@pytest.mark.parametrize("name", FAMILY)
def test_wrapped_indices_are_checked(name: str) -> None:
    i = leaf("int64", 3)
    run = agrees(name, [i], [op.wrap_index(i, 5)], [np.array([-5, 0, 4])])
    assert run([np.array([0, 1, -6])]) == ([], 1)
    assert run([np.array([0, 5, 0])])[1] == 1
    assert run([np.array([0, 0, 0])])[1] == 0


EDGES = [-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan]


@pytest.mark.parametrize("name", FAMILY)
def test_complex_branch_cuts_and_infinities(name: str) -> None:
    values = [complex(a, b) for a in EDGES for b in EDGES]
    x, y = (leaf("complex128", len(values), len(values)) for _ in range(2))
    unary = ["abs", "sqrt", "exp", "log", "sin", "cosh", "tanh", "asin", "acos", "atan", "negative"]
    outputs = [getattr(op, f)(x) for f in unary]
    outputs += [op.add(x, y), op.subtract(x, y), op.equal(x, y), op.pow(x, 0)]
    agrees(name, [x, y], outputs, pairs(values, "complex128"))
