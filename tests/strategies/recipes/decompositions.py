"""Decompositions, solvers and norms; what is unique only up to signs is put together again."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, NUMBERS, Row, recipe
from tests.strategies.recipes.linalg import symmetric
from tests.strategies.values import draw, positive_definite, triangular


def columns(v: Variable) -> Variable:
    """A vector that scales columns."""
    return op.expand_dims(v, axis=v.ndim - 1)


@recipe("inv", "det", "slogdet", "cofactor", "matrix_rank", dtypes=FLOATS)
def _of_square(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    for n, batch in ((3, ()), (2, (2,)), (1, ()), (4, ())):
        yield Row(f"{n} {batch}", [triangular(n, batch, d)], f)
    if name in ("det", "cofactor"):
        singular = np.array([[1, 2], [2, 4]], d)
        yield Row("singular", [singular], f, smooth=name == "det")


@recipe("solve_system", "solve", dtypes=FLOATS)
def _solve(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    yield Row("columns", [triangular(3, (), d), draw((3, 2), d)], f)
    yield Row("batched", [triangular(2, (2,), d), draw((2, 2, 1), d)], f)
    if name == "solve":
        yield Row("vector", [triangular(3, (), d), draw((3,), d)], f)


@recipe("eigh", "eigvalsh", dtypes=FLOATS)
def _eigh(name: str, d: np.dtype) -> Iterator[Row]:
    def whole(x: Variable) -> Variable:
        values, vectors = picks(op.eigh(symmetric(x)))
        scaled = op.multiply(vectors, columns(op.exp(op.multiply(values, 0.1))))
        return op.matmul(scaled, op.matrix_transpose(vectors))

    for n, batch in ((3, ()), (2, (2,)), (1, ())):
        x = [positive_definite(n, batch, d)]
        yield Row(
            f"{n} {batch}", x, whole if name == "eigh" else lambda x: op.eigvalsh(symmetric(x))
        )


@recipe("eig", "eigvals", dtypes=FLOATS)
def _eig(name: str, d: np.dtype) -> Iterator[Row]:
    def summed(x: Variable) -> Variable:
        values = op.eigvals(x) if name == "eigvals" else op.pick(op.eig(x), 0)
        return op.real(op.sum(op.multiply(values, values), axis=-1))

    for n, batch in ((3, ()), (2, (2,))):
        yield Row(f"{n} {batch}", [triangular(n, batch, d)], summed)


@recipe("svd", "svdvals", dtypes=FLOATS)
def _svd(name: str, d: np.dtype) -> Iterator[Row]:
    def whole(x: Variable) -> Variable:
        u, s, vh = picks(op.svd(x, full_matrices=False))
        return op.matmul(op.multiply(u, columns(op.multiply(s, s))), vh)

    for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 2)):
        yield Row(f"{shape}", [draw(shape, d)], whole if name == "svd" else op.svdvals)


@recipe("qr", dtypes=FLOATS)
def _qr(name: str, d: np.dtype) -> Iterator[Row]:
    def whole(x: Variable) -> Variable:
        q, r = picks(op.qr(x))
        return op.add(op.matmul(q, op.multiply(r, 2)), op.matmul(op.matrix_transpose(r), r))

    for shape in ((3, 3), (2, 3, 3)):
        yield Row(f"{shape}", [triangular(shape[-1], shape[:-2], d)], whole)


@recipe("pinv", dtypes=FLOATS)
def _pinv(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("square", [triangular(3, (), d)], op.pinv)
    for shape in ((2, 4), (4, 2)):
        yield Row(f"{shape}", [draw(shape, d)], op.pinv)


@recipe("matrix_power", dtypes=FLOATS)
def _matrix_power(name: str, d: np.dtype) -> Iterator[Row]:
    for n in (0, 1, 3, -2):
        yield Row(f"power {n}", [triangular(3, (), d)], lambda x, n=n: op.matrix_power(x, n))


@recipe("vector_norm", dtypes=FLOATS)
def _vector_norm(name: str, d: np.dtype) -> Iterator[Row]:
    x = [draw((3, 4), d)]
    for order in (2, 1, 0, 3, float("inf"), float("-inf")):
        for axis in (None, 1):
            params = {"ord": order, "axis": axis, "keepdims": axis == 1}
            smooth = order != 0
            yield Row(f"{params}", x, lambda x, p=params: op.vector_norm(x, **p), smooth)


@recipe("matrix_norm", dtypes=FLOATS)
def _matrix_norm(name: str, d: np.dtype) -> Iterator[Row]:
    for order in ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf")):
        yield Row(f"{order}", [draw((2, 3, 4), d)], lambda x, o=order: op.matrix_norm(x, ord=o))


@recipe("outer", dtypes=NUMBERS)
def _outer(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("vectors", [draw((3,), d), draw((2,), d, 0.5)], op.outer)


@recipe("cross", dtypes=NUMBERS)
def _cross(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("vectors", [draw((3,), d), draw((3,), d, 0.5)], op.cross)
    yield Row("rows", [draw((2, 3), d), draw((2, 3), d, 0.5)], op.cross)
    yield Row("columns", [draw((3, 2), d), draw((3, 2), d, 0.5)],
              lambda a, b: op.cross(a, b, axis=0))  # fmt: skip
