"""Every kind but elementwise and indexing against the interpreter."""

import numpy as np
import pytest

from lazyarr.graph import shapes
from lazyarr.graph.registry import op
from tests.backends.array.family import FAMILY, agrees, backend, expanded, leaf, sizes

pytestmark = pytest.mark.backends
RNG = np.random.default_rng(0)
NAN = np.array([[1.0, np.nan, -np.inf, 2.0], [3.0, 3.0, np.inf, -0.0], [np.nan, 1.0, np.inf, 0.0]])


def sums(x) -> list:
    found = []
    for name in ("sum", "prod", "all", "any"):
        found += [getattr(op, name)(x, axis=axis) for axis in (None, 0, (0, 1), ())]
        found.append(getattr(op, name)(x, axis=1, keepdims=True))
    return found


def extremes(x) -> list:
    found = []
    for name in ("max", "min"):
        found += [getattr(op, name)(x, axis=a) for a in (None, 0, (0, 1), ())]
        found.append(getattr(op, name)(x, axis=(0, 1), keepdims=True))
    for name in ("argmax", "argmin"):
        found += [
            getattr(op, name)(x, axis=a, keepdims=k) for a in (None, 1) for k in (True, False)
        ]
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("name", FAMILY)
def test_reductions(name: str, dtype: str) -> None:
    x = leaf(dtype, 3, 4)
    values = NAN if dtype.startswith("float") else RNG.integers(0, 100, (3, 4))
    outputs = sums(x) + ([] if dtype == "bool" else extremes(x))
    outputs += [op.sum(x, axis=0, dtype="float32"), op.mean(op.astype(x, "float64"))]
    partly = name == "torch" and dtype == "uint64"
    agrees(name, [x], outputs, [values.astype(dtype)], partly=partly)


@pytest.mark.parametrize("name", FAMILY)
def test_reductions_of_nothing_and_of_scalars(name: str) -> None:
    x, y = leaf("float64", 0, 3), leaf("float64")
    outputs = [*sums(x), op.max(x, axis=1), op.sum(y), op.max(y), op.argmax(y), op.all(y)]
    agrees(name, [x, y], outputs, [np.zeros((0, 3)), np.array(2.5)])


@pytest.mark.parametrize("name", FAMILY)
def test_argmax_takes_the_first(name: str) -> None:
    x = leaf("float64", 1001)
    values = np.zeros(1001)
    for at in ([100, 900], [17, 18], [0, 1000]):
        for extreme in (np.nan, 5.0):
            values[:] = 0
            values[at] = extreme
            agrees(name, [x], [op.argmax(x), op.argmin(op.negative(x))], [values])


@pytest.mark.parametrize("dtype", ["float64", "int16", "uint16", "bool"])
@pytest.mark.parametrize("name", FAMILY)
def test_cumulative(name: str, dtype: str) -> None:
    x = leaf(dtype, 2, 5)
    outputs = [
        getattr(op, f)(x, axis=a, include_initial=i)
        for f in ("cumulative_sum", "cumulative_prod")
        for a in (0, 1)
        for i in (False, True)
    ]
    agrees(name, [x], outputs, [RNG.integers(0, 9, (2, 5)).astype(dtype)])


def moved(x, y) -> list:
    return [
        op.permute_dims(x, (2, 0, 1)),
        op.expand_dims(x, axis=(0, 2)),
        op.squeeze(op.expand_dims(x, axis=(0, 2)), axis=(0, 2)),
        op.flip(x),
        op.flip(x, axis=1),
        op.broadcast_to(y, (2, 3, 4)),
        op.reshape(op.permute_dims(x, (2, 0, 1)), (6, -1)),
        op.main_diagonal(op.broadcast_to(y, (2, 4, 4))),
        op.concat((x, x, op.flip(x, axis=0)), axis=1),
        op.stack((x, x), axis=3),
        op.specify_shape(x, (2, 3, 4)),
        op.add(op.specify_shape(x, (2, 3, 4)), 1) if x.dtype.kind == "f" else op.positive(x),
    ]


@pytest.mark.parametrize("dtype", ["float64", "uint32", "uint8", "complex64"])
@pytest.mark.parametrize("name", FAMILY)
def test_movement(name: str, dtype: str) -> None:
    x, y = leaf(dtype, 2, 3, 4), leaf(dtype, 4)
    arrays = [RNG.integers(0, 99, s).astype(dtype) for s in ((2, 3, 4), (4,))]
    agrees(name, [x, y], moved(x, y), arrays)


@pytest.mark.parametrize("name", FAMILY)
def test_creation(name: str) -> None:
    n = sizes("n")[0]
    x, v = leaf("float64", n), leaf("float32")
    outputs = [
        op.full((2, 3), 7, dtype="int8"),
        op.full((n,), v, dtype="float64"),
        op.full((n, 2), 0.5),
        op.zeros((0, 2)),
        op.ones((2,), dtype="bool"),
        op.arange(n),
        op.arange(2, n),
        op.arange(1, 10, 3, dtype="uint8"),
        op.arange(0.5, 3.0, 0.25, dtype="float32"),
        op.arange(5, -5, -2),
        op.eye(3, 4, k=1),
        op.size_value(n * 2 + 1),
        op.divide(op.sum(x), n),
        op.tril(op.broadcast_to(x, (3, n))),
    ]
    run = agrees(name, [x, v], outputs, [np.arange(5.0), np.array(1.5, "float32")])
    assert "def program(sizes, " in run.source


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint32", "complex64"])
@pytest.mark.parametrize("name", FAMILY)
def test_contraction(name: str, dtype: str) -> None:
    specs = [
        ((0, 1), (1, 2), (0, 2)),
        ((0, 1), (1, 2), (2, 0)),
        ((1, 0), (2, 1), (0, 2)),
        ((0,), (0,), ()),
        ((0, 1), (1,), (0,)),
        ((1,), (1, 0), (0,)),
        ((0, 1, 2), (0, 2, 3), (0, 1, 3)),
        ((1, 0, 2), (2, 0, 3), (3, 0, 1)),
        ((0, 1), (0, 1), (0,)),
        ((0, 1), (0, 1), ()),
        ((0,), (1,), (0, 1)),
        ((0,), (1,), (1, 0)),
        ((0, 1), (1, 0), (0, 1)),
        ((0, 1, 2), (3, 1, 2), (0, 3)),
        ((0, 1, 2), (2, 1, 3, 4), (3, 0, 4)),
        ((0, 0), (0, 1), (1,)),
        ((), (0, 1), (1, 0)),
    ]
    extent = {0: 2, 1: 3, 2: 4, 3: 5, 4: 2}
    inputs, outputs, arrays = [], [], []
    for spec in specs:
        pair = [leaf(dtype, *(extent[k] for k in labels)) for labels in spec[:2]]
        inputs += pair
        outputs.append(op.contract(*pair, spec))
        arrays += [np.asarray(RNG.integers(0, 9, v.shape)).astype(dtype) for v in pair]
    agrees(name, inputs, outputs, arrays)


@pytest.mark.parametrize("name", FAMILY)
def test_product_over_nothing(name: str) -> None:
    x, y = leaf("float64", 2, 0), leaf("float64", 0, 3)
    agrees(name, [x, y], [op.matmul(x, y)], [np.zeros((2, 0)), np.zeros((0, 3))])


@pytest.mark.parametrize("name", FAMILY)
def test_triangular_solves(name: str) -> None:
    a, b = leaf("float64", 2, 3, 3), leaf("float64", 2, 3, 2)
    outputs = [
        op.solve_matrix(a, b, lower=lower, trans=trans, unit=unit)
        for lower in (False, True)
        for trans in (False, True)
        for unit in (False, True)
    ]
    arrays = [RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3), RNG.normal(size=(2, 3, 2))]
    agrees(name, [a, b], outputs, arrays)


@pytest.mark.parametrize("name", FAMILY)
def test_cholesky_and_its_failure(name: str) -> None:
    a = leaf("float64", 2, 3, 3)
    good = np.stack([np.eye(3) * 4, np.eye(3) + 0.1])
    good[:, 0, 2] = np.nan  # the upper triangle is not read
    run = agrees(name, [a], [op.cholesky(a)], [good])
    assert run([-good])[1] == 1
    bad = good.copy()
    bad[1, 2, 2] = np.nan
    assert run([bad])[1] == 1


@pytest.mark.parametrize("name", FAMILY)
def test_one_program_for_all_sizes(name: str) -> None:
    n, m = sizes("n", "m")
    x, y = leaf("float64", n, m), leaf("float64", 2 * m)
    flat = op.reshape(x, (n * m,))
    outputs = [
        op.sum(x, axis=0),
        op.divide(op.sum(flat), shapes.product((n, m))),
        op.concat((flat, y), axis=0),
        op.basic_index(y, slice(None, m, None)),
        op.basic_index(y, slice(None, None, -2)),
        op.reshape(y, (2, -1)),
    ]
    graph = expanded([x, y], outputs)
    run = agrees(name, [x, y], outputs, [np.ones((2, 3)), np.arange(6.0)])
    for k in (2, 5):
        got, _ = run([np.ones((k, 4)), np.arange(8.0)])
        want, _ = backend("numpy").compile(graph)([np.ones((k, 4)), np.arange(8.0)])
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b)
