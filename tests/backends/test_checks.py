"""What is verified while a program runs fails with the same error on every backend."""

import numpy as np
import pytest

from lazyarr.backends.driver import Program
from lazyarr.errors import LinAlgError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.indexing import getitem, update
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.backend_params import BACKENDS
from tests.strategies.recipes.control import loop

pytestmark = pytest.mark.backends
backends = pytest.mark.parametrize("backend", BACKENDS)


def f8(*shape: object) -> Variable:
    return symbol(TensorType("float64", shape), "x")


def ints(*shape: object, dtype: str = "int64") -> Variable:
    return symbol(TensorType(dtype, shape), "i")


INDEXED = {
    "take": lambda x, i: op.take(x, i, axis=0),
    "take of a sum": lambda x, i: op.sum(op.take(op.exp(x), i, axis=0)),
    "index": lambda x, i: getitem(x, (i,)),
    "set": lambda x, i: update(x, (i,), 1.0),
    "add": lambda x, i: update(x, (i,), 1.0, how="add"),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("size", [3, None])
@backends
def test_index_out_of_bounds(backend: str, size: int | None, name: str) -> None:
    """Negative indices count from the end; beyond either end the error gives index and size."""
    x, i = f8(unknown("n") if size is None else size), ints(2)
    program = Program(Graph([x, i], [INDEXED[name](x, i)]), backend)
    array = np.arange(3.0)
    for good in ([0, 2], [-3, -1]):
        program([array, np.array(good)])
    for bad, shown in (([0, 3], 3), ([-4, 0], -4), ([1, 2**40], 2**40)):
        with pytest.raises(IndexError, match=rf"index {shown} is out of bounds .*size 3"):
            program([array, np.array(bad)])
    program([array, np.array([2, 2])])  # an error leaves the program usable


@backends
def test_run_time_integer(backend: str) -> None:
    """x[i] with i known at run time, of every integer dtype."""
    x = f8(4)
    for dtype in ("int8", "uint8", "int32", "int64"):
        i = ints(dtype=dtype)
        program = Program(Graph([x, i], [getitem(x, (i,))]), backend)
        assert program([np.arange(4.0), np.array(3, dtype)])[0] == 3
        with pytest.raises(IndexError):
            program([np.arange(4.0), np.array(4, dtype)])
        if dtype != "uint8":
            assert program([np.arange(4.0), np.array(-4, dtype)])[0] == 0
            with pytest.raises(IndexError):
                program([np.arange(4.0), np.array(-5, dtype)])


@backends
def test_narrow_indices(backend: str) -> None:
    """An index dtype that cannot hold the size: 128 as uint8 and -1 as int8, of 200 elements."""
    x = f8(200)
    for dtype, index, want in (("uint8", 128, 128), ("int8", -1, 199)):
        i = ints(1, dtype=dtype)
        program = Program(Graph([x, i], [op.take(x, i)]), backend)
        assert program([np.arange(200.0), np.array([index], dtype)])[0] == [want]


@backends
def test_index_of_nothing(backend: str) -> None:
    """An axis of size 0 has no index; no index is always in bounds."""
    x, i = f8(unknown("n")), ints(unknown("m"))
    program = Program(Graph([x, i], [op.take(x, i)]), backend)
    assert program([np.zeros(0), np.zeros(0, "int64")])[0].shape == (0,)
    with pytest.raises(IndexError):
        program([np.zeros(0), np.array([0, 0])])


@backends
def test_check_in_a_loop(backend: str) -> None:
    """An index inside the body of a loop is checked at every step."""
    c, i, x = f8(), ints(unknown("m")), f8(3)

    def step(c: Variable, i: Variable, x: Variable) -> list:
        return [op.add(c, getitem(x, (i,)))]

    program = Program(Graph([c, i, x], [op.pick(loop([c, i, x], step, 1, 1), 0)]), backend)
    arrays = [np.array(0.0), np.array([0, 1, -1, 2]), np.array([1.0, 2.0, 4.0])]
    assert program(arrays)[0] == 11
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        program([arrays[0], np.array([0, 3, 1, 1]), arrays[2]])


@backends
def test_not_positive_definite(backend: str) -> None:
    """LinAlgError names op and batch index; where does not guard it."""
    x = f8(2, 2)
    bad = np.array([[1.0, 2.0], [2.0, 1.0]])
    program = Program(Graph([x], [op.cholesky(x)]), backend)
    with pytest.raises(np.linalg.LinAlgError, match="cholesky"):
        program([bad])
    np.testing.assert_allclose(
        program([bad + 2 * np.eye(2)])[0], np.linalg.cholesky(bad + 2 * np.eye(2))
    )
    x = f8(3, 2, 2)
    program = Program(Graph([x], [op.sum(op.cholesky(x))]), backend)
    with pytest.raises(LinAlgError, match=r"\(1,\)"):
        program([np.stack([np.eye(2), bad, np.eye(2)])])


@backends
def test_no_check_passes_silently_when_one_of_two_fails(backend: str) -> None:
    """Two checks in one program: either raises its own error."""
    x, i = f8(2, 2), ints(1)
    graph = Graph([x, i], [op.cholesky(x), op.take(op.exp(x), i, axis=1)])
    program = Program(graph, backend)
    good, bad = np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])
    program([good, np.array([1])])
    with pytest.raises(IndexError):
        program([good, np.array([2])])
    with pytest.raises(LinAlgError):
        program([bad, np.array([1])])
