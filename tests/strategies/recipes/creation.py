"""Ops that make arrays."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, Row, recipe
from tests.strategies.values import draw


@recipe("full")
def _full(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("of a value", [draw((), d)], lambda v: op.full((2, 3), v))
    yield Row("raw", [], lambda: op.full((2, 2), d.type(1).item(), dtype=d))
    yield Row("0-d", [draw((), d)], lambda v: op.full((), v))
    yield Row("empty", [draw((), d)], lambda v: op.full((0, 2), v))
    yield Row("cast", [draw((), d)], lambda v: op.full((2,), v, dtype="float32"), smooth=False)
    yield Row("of a size", [draw((2, 3), d), draw((), d)],
              lambda x, v: op.full((x.shape[1], 2, x.shape[0]), v))  # fmt: skip


@recipe("zeros", "ones", "empty")
def _filled(name: str, d: np.dtype) -> Iterator[Row]:
    for shape in ((2, 3), (), (0, 2)):
        yield Row(f"{shape}", [], lambda s=shape: getattr(op, name)(s, dtype=d))
    yield Row("of a size", [draw((2, 3), d)],
              lambda x: getattr(op, name)((x.shape[1], x.shape[0])), smooth=False)  # fmt: skip


@recipe("full_like")
def _full_like(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("raw", [draw((2, 3), d)], lambda x: op.full_like(x, 1), smooth=False)
    yield Row("of a value", [draw((2, 3), d), draw((), d)], op.full_like)
    yield Row("cast", [draw((3,), d)], lambda x: op.full_like(x, 1, dtype="float32"), smooth=False)


@recipe("zeros_like", "ones_like", "empty_like")
def _like(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("same", [draw((2, 3), d)], getattr(op, name), smooth=False)
    yield Row("cast", [draw((0, 3), d)],
              lambda x: getattr(op, name)(x, dtype="int32"), smooth=False)  # fmt: skip


@recipe("arange", dtypes=("float64",))
def _arange(name: str, d: np.dtype) -> Iterator[Row]:
    for args in ((5,), (2, 7), (7, 2, -2), (0,), (0.5, 3.0, 0.25), (3, 1), (1.0, 2.0, 0.1)):
        yield Row(f"{args}", [], lambda args=args: op.arange(*args))
    for dtype in ("float32", "int32", "uint8"):
        yield Row(f"as {dtype}", [], lambda t=dtype: op.arange(1, 9, 3, dtype=t))
    yield Row("of a size", [draw((2, 3), d)], lambda x: op.arange(x.shape[1]), smooth=False)


@recipe("eye", dtypes=("float64", "float32", "int32", "bool"))
def _eye(name: str, d: np.dtype) -> Iterator[Row]:
    for rows, cols, k in ((3, None, 0), (2, 4, 1), (4, 2, -2), (0, 0, 0)):
        yield Row(f"{rows} {cols} {k}", [], lambda r=rows, c=cols, k=k: op.eye(r, c, k=k, dtype=d))
    yield Row("of a size", [draw((2, 3), d)], lambda x: op.eye(x.shape[0], x.shape[1], dtype=d),
              smooth=False)  # fmt: skip


@recipe("size_value", dtypes=("float64",))
def _size_value(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("of an axis", [draw((2, 3), d)], lambda x: op.size_value(x.shape[1]), smooth=False)
    yield Row("of a product", [draw((2, 3), d)],
              lambda x: op.size_value(x.shape[0] * x.shape[1] + 1), smooth=False)  # fmt: skip


@recipe("linspace", dtypes=FLOATS)
def _linspace(name: str, d: np.dtype) -> Iterator[Row]:
    for args in ((0.0, 1.0, 5), (3, -2, 4), (1.0, 1.0, 1)):
        yield Row(f"{args}", [], lambda args=args: op.linspace(*args, dtype=d))
    yield Row("without the end", [], lambda: op.linspace(0, 1, 4, endpoint=False, dtype=d))
