"""Sums of products whose masked rows hold NaN and infinities: the derivatives never see these.

What the masked rows hold makes no difference, so that finite rows give what is expected. All
products are one program for each backend.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.driver import Program
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.backend_params import BACKENDS

ROWS = np.array([True, False, True, False, True])

# name -> (product of data and x, shape of the data whose first axis is masked, shape of x, dtype);
# a row that is masked is a row of the result
PRODUCTS: dict[str, tuple[Callable, tuple, tuple, str]] = {
    "matrix and vector, small": (op.matmul, (5, 3), (3,), "float64"),
    "matrix and vector": (op.matmul, (40, 20), (20,), "float64"),
    "matrix and vector, single": (op.matmul, (40, 20), (20,), "float32"),
    "matrices, small": (op.matmul, (5, 3), (3, 2), "float64"),
    "matrices": (op.matmul, (40, 16), (16, 13), "float64"),
    "matrices, single": (op.matmul, (40, 16), (16, 13), "float32"),
    "matrices, complex": (op.matmul, (40, 16), (16, 13), "complex128"),
    "matrices, small and complex": (op.matmul, (5, 3), (3, 2), "complex128"),
    "vector and matrix": (
        lambda a, x: op.matmul(x, op.matrix_transpose(a)), (40, 20), (20,), "float64"),
    "batches of matrices": (op.matmul, (5, 14, 13), (5, 13, 12), "float64"),
    "batches of small matrices": (op.matmul, (5, 4, 3), (3, 2), "float64"),
    "tensordot": (lambda a, x: op.tensordot(a, x, axes=2), (10, 3, 4), (3, 4, 2), "float64"),
    "tensordot of one axis": (
        lambda a, x: op.tensordot(a, x, axes=([2], [0])), (5, 3, 15), (15, 14), "float64"),
    "vecdot": (op.vecdot, (10, 7), (10, 7), "float64"),
    "vecdot, broadcast": (op.vecdot, (10, 700), (700,), "float64"),
    "a chain": (
        lambda a, x: op.matmul(op.tanh(op.matmul(a, x)), op.matrix_transpose(x)),
        (40, 16), (16, 13), "float64"),
    "labels": (
        lambda a, x: op.contract(a, x, ((0, 1, 2), (2, 0, 1, 3), (3, 0))),
        (5, 3, 4), (4, 5, 3, 2), "float64"),
    "labels, in the order of the result": (
        lambda a, x: op.permute_dims(
            op.contract(a, x, ((0, 1, 2), (2, 1, 3), (3, 0))), (1, 0)),
        (5, 3, 4), (4, 3, 2), "float64"),
}  # fmt: skip
ROW_AXIS = {"labels": -1}
FEW = ("matrix and vector, small", "matrices", "batches of matrices", "vecdot, broadcast", "labels")


def _finite(shape: tuple, dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
    if dtype == "complex128":
        out = out + 1j * rng.uniform(0.5, 1.5, shape)
    return out.astype(dtype)


def _masked(a: np.ndarray) -> np.ndarray:
    """The data with NaN and infinities in rows that are masked."""
    out, odd = a.copy(), np.flatnonzero(~np.resize(ROWS, len(a)))
    out[odd[0]] = np.nan
    out[odd[1:]] = np.inf
    out[odd[1], ..., 0] = -np.inf
    out[odd[-1], ..., -1] = 0
    return out


def _real(x: Variable) -> Variable:
    return op.real(x) if x.dtype.kind == "c" else x


def _chosen(name: str, a: Variable, x: Variable) -> Variable:
    """Half the sum of the squares of the rows that are not masked."""
    product = PRODUCTS[name][0](a, x)
    axis = ROW_AXIS.get(name, 0)
    shape = [1] * product.ndim
    shape[axis] = -1
    kept = np.resize(ROWS, a.shape[0]).reshape(shape)
    taken = op.where(kept, product, op.astype(0.0, product.dtype))
    return op.sum(_real(op.multiply(taken, taken)))


def _derivatives(name: str, a: Variable, x: Variable) -> list[Variable]:
    """Value, both gradients, the tangent and the second derivatives in both modes."""
    y = _chosen(name, a, x)
    one = op.full((), 1.0, dtype=y.dtype)
    ga, gx = pullback([y], [a, x], [one])
    (tangent,) = pushforward([y], [x], [x])
    (again,) = pullback([op.sum(_real(op.multiply(gx, gx)))], [x], [one])
    (forward,) = pushforward([gx], [x], [x])
    return [y, gx, tangent, again, forward, op.where(op.equal(ga, ga), 0.0, 1.0)]


@cache
def all_products(backend: str, masked: bool) -> dict[str, list[np.ndarray]]:
    """The derivatives of every product, with or without what is not finite."""
    given, arrays, outputs, places = [], [], [], {}
    for k, (name, (_, *shapes, dtype)) in enumerate(PRODUCTS.items()):
        if backend == "numba" and name not in FEW:
            continue
        pair = [symbol(TensorType(np.dtype(dtype), s)) for s in shapes]
        values = [_finite(s, dtype, 2 * k + i) for i, s in enumerate(shapes)]
        found = _derivatives(name, *pair)
        given += pair
        arrays += [_masked(values[0]) if masked else values[0], values[1]]
        places[name] = (len(outputs), len(found))
        outputs += found
    with np.errstate(all="ignore"):
        values = Program(Graph(given, outputs), backend)(arrays)
    return {name: values[start : start + n] for name, (start, n) in places.items()}


@pytest.mark.parametrize(("shape", "call"), [((32,), "(gemv_"), ((32, 32), "(gemm_")])
def test_finite_products_are_library_calls(shape: tuple, call: str) -> None:
    """The product of a value and those of its gradient go to BLAS."""
    x, a = xp.symbol("x", shape=shape), xp.symbol("a", shape=(64, 32))
    y = xp.sum((a @ xp.tanh(x)) ** 2)
    run = xp.function([a, x], [y, *xp.grad(y, [a, x])], backend="c")
    number = 2 if len(shape) == 1 else 3  # the gradient by the matrix is an outer product
    assert run.source.count(call) == number
    assert run.explain().count("(library)") == number


def _named(a: np.ndarray, x: object) -> object:
    data = xp.XTensor(a, dims=("row", "k"))
    return data.dot(xp.XTensor(x, dims=("k",))).data


def _row_by_row(a: np.ndarray, x: object) -> object:
    return xp.scan(lambda c, row: (c, row @ x), 0.0, a)[1]


@pytest.mark.parametrize("backend", [None, "c"])
@pytest.mark.parametrize("product", [_named, _row_by_row])
def test_named_products_and_steps_of_a_loop(product: Callable, backend: str | None) -> None:
    a = _masked(_finite((10, 3), "float64", 1))
    kept = np.resize(ROWS, 10)
    found = xp.grad(lambda x: xp.sum(xp.where(kept, product(a, x), 0)))
    found = found if backend is None else xp.jit(found, backend=backend)
    np.testing.assert_allclose(np.asarray(found(np.ones(3))), a[kept].sum(0))


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_masked_rows_make_no_difference(backend: str, name: str) -> None:
    if backend == "numba" and name not in FEW:
        pytest.skip("slow to compile; C runs the same loops")
    rtol = 1e-3 if PRODUCTS[name][3] == "float32" else 1e-9
    expected = all_products("interpret", False)[name]
    for got, want in zip(all_products(backend, True)[name], expected, strict=True):
        assert np.all(np.isfinite(want))
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
