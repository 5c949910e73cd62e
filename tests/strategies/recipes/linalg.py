"""Contractions and linear algebra."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, NUMBERS, Row, recipe
from tests.strategies.values import draw, positive_definite, triangular


@recipe("contract", dtypes=NUMBERS)
def _contract(name: str, d: np.dtype) -> Iterator[Row]:
    for a, b, spec in (
        ((2, 3), (3, 4), ((0, 1), (1, 2), (0, 2))),
        ((2, 3), (2, 3), ((0, 1), (0, 1), ())),
        ((2, 3), (3, 2), ((0, 1), (1, 0), (1, 0))),
        ((3,), (4,), ((0,), (1,), (1, 0))),
        ((2, 3, 4), (4, 2), ((0, 1, 2), (2, 0), (0, 1))),
        ((2, 0), (0, 3), ((0, 1), (1, 2), (0, 2))),
        ((), (3,), ((), (0,), (0,))),
        ((1, 3), (3, 1), ((0, 1), (1, 2), (0, 2))),
    ):
        yield Row(f"{a} {b} {spec[2]}", [draw(a, d), draw(b, d, 0.4)],
                  lambda a, b, s=spec: op.contract(a, b, s))  # fmt: skip


@recipe("matmul", dtypes=NUMBERS)
def _matmul(name: str, d: np.dtype) -> Iterator[Row]:
    for a, b in (
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((3, 0), (0, 2)),
        ((1, 1), (1, 1)),
    ):
        batched = len(a) > 3
        yield Row(f"{a} {b}", [draw(a, d), draw(b, d, 0.4)], op.matmul, symbolic=not batched)
    mixed = "float32" if d == np.float64 else "float64"
    yield Row("mixed", [draw((2, 2), d), draw((2, 2), mixed)], op.matmul, smooth=False)


@recipe("tensordot", dtypes=NUMBERS)
def _tensordot(name: str, d: np.dtype) -> Iterator[Row]:
    for a, b, axes in (
        ((2, 3), (3, 4), 1),
        ((2, 3), (2, 3), 2),
        ((2,), (3,), 0),
        ((2,), (7, 3, 2), ((-1,), (-1,))),
        ((2, 3, 4), (4, 5, 2), ((0, 2), (2, 0))),
    ):
        yield Row(f"{a} {b} {axes}", [draw(a, d), draw(b, d, 0.4)],
                  lambda a, b, k=axes: op.tensordot(a, b, axes=k))  # fmt: skip


@recipe("vecdot", dtypes=NUMBERS)
def _vecdot(name: str, d: np.dtype) -> Iterator[Row]:
    for a, b, axis in (((3,), (3,), -1), ((2, 3), (2, 3), -1), ((2, 3), (3,), -1),
                       ((2, 3), (2, 3), -2), ((2, 1, 3), (4, 3), -1)):  # fmt: skip
        batched = len(a) > 2
        yield Row(f"{a} {b} {axis}", [draw(a, d), draw(b, d, 0.4)],
                  lambda a, b, k=axis: op.vecdot(a, b, axis=k), symbolic=not batched)  # fmt: skip


def symmetric(x: Variable) -> Variable:
    """The symmetric part of x: derivatives of matrix functions see both triangles."""
    return op.multiply(op.add(x, op.matrix_transpose(x)), 0.5)


@recipe("cholesky", "cholesky_lower", dtypes=FLOATS)
def _cholesky(name: str, d: np.dtype) -> Iterator[Row]:
    factor = getattr(op, name)
    for n, batch in ((3, ()), (2, (2,)), (1, ()), (0, ()), (2, (0,)), (2, (2, 1))):
        yield Row(f"{n} {batch}", [positive_definite(n, batch, d)], lambda x: factor(symmetric(x)))
    if name == "cholesky":
        yield Row("upper", [positive_definite(3, (), d)],
                  lambda x: op.cholesky(symmetric(x), upper=True))  # fmt: skip


@recipe("solve_triangular", dtypes=FLOATS)
def _solve(name: str, d: np.dtype) -> Iterator[Row]:
    for label, params in (
        ("lower", {}),
        ("upper", {"lower": False}),
        ("lower, transposed", {"trans": True}),
        ("upper, transposed", {"lower": False, "trans": True}),
        ("unit diagonal", {"unit_diagonal": True}),
    ):
        yield Row(label, [triangular(3, (), d), draw((3, 2), d)],
                  lambda a, b, p=params: op.solve_triangular(a, b, **p))  # fmt: skip
    yield Row("vector", [triangular(3, (), d), draw((3,), d)], op.solve_triangular)
    yield Row("batched", [triangular(2, (2,), d), draw((2, 2, 1), d)], op.solve_triangular)
    yield Row("one matrix", [triangular(2, (), d), draw((3, 2, 2), d)], op.solve_triangular)
    yield Row("no columns", [triangular(2, (), d), draw((2, 0), d)], op.solve_triangular)


@recipe("solve_matrix", dtypes=FLOATS)
def _solve_matrix(name: str, d: np.dtype) -> Iterator[Row]:
    for lower in (True, False):
        for trans in (False, True):
            yield Row(f"lower {lower} trans {trans}", [triangular(3, (2,), d), draw((2, 3, 2), d)],
                      lambda a, b, lo=lower, t=trans:
                      op.solve_matrix(a, b, lower=lo, trans=t, unit=False))  # fmt: skip
    yield Row("unit", [triangular(3, (), d), draw((3, 1), d)],
              lambda a, b: op.solve_matrix(a, b, lower=True, trans=False, unit=True))  # fmt: skip
