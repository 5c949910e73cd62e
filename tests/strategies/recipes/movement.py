"""Ops that move elements, and names of axes."""

from collections.abc import Callable, Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import NUMBERS, Row, recipe
from tests.strategies.values import draw


def strided(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array that is not contiguous: every second element of reversed axes."""
    wide = draw(tuple(2 * n for n in reversed(shape)), dtype)
    return wide[tuple(slice(None, None, 2) for _ in shape)].T[::-1]


@recipe("reshape")
def _reshape(name: str, d: np.dtype) -> Iterator[Row]:
    x = draw((2, 3, 4), d)
    yield Row("two axes", [x], lambda x: op.reshape(x, (6, 4)))
    yield Row("one unknown", [strided((3, 4), d)], lambda x: op.reshape(x, (2, -1)))
    yield Row("flat", [x], lambda x: op.reshape(x, (-1,)))
    yield Row("more axes", [draw((6,), d)], lambda x: op.reshape(x, (1, 3, 2, 1)))
    yield Row("to 0-d", [draw((1, 1), d)], lambda x: op.reshape(x, ()))
    yield Row("from 0-d", [draw((), d)], lambda x: op.reshape(x, (1, 1)))
    yield Row("empty", [draw((0, 3), d)], lambda x: op.reshape(x, (3, 0, 2)))


@recipe("broadcast_to")
def _broadcast_to(name: str, d: np.dtype) -> Iterator[Row]:
    for source, target in (
        ((3,), (2, 3)),
        ((2, 1), (2, 3)),
        ((), (2, 2)),
        ((1, 1), (4, 3)),
        ((2, 3), (2, 3)),
        ((3, 1), (2, 3, 0)),
        ((1,), (0,)),
        ((1, 3, 1), (2, 1, 3, 4)),
    ):
        yield Row(f"{source} to {target}", [draw(source, d)],
                  lambda x, t=target: op.broadcast_to(x, t))  # fmt: skip


@recipe("specify_shape")
def _specify_shape(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("known", [draw((2, 3), d)], lambda x: op.specify_shape(x, (2, 3)))
    yield Row("with names", [draw((4,), d)], lambda x: op.specify_shape(x, (4,), ("city",)))


@recipe("sum_to", dtypes=NUMBERS)
def _sum_to(name: str, d: np.dtype) -> Iterator[Row]:
    for source, target in (
        ((2, 3), (3,)),
        ((2, 3), (2, 1)),
        ((2, 3, 4), (1, 4)),
        ((2, 3), ()),
        ((2, 3), (2, 3)),
        ((0, 3), (3,)),
        ((1, 3), (1, 1)),
    ):
        yield Row(f"{source} to {target}", [draw(source, d)],
                  lambda x, t=target: op.sum_to(x, t))  # fmt: skip


@recipe("permute_dims")
def _permute_dims(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("turn", [draw((2, 3, 4), d)], lambda x: op.permute_dims(x, (2, 0, 1)))
    yield Row("strided", [strided((2, 3), d)], lambda x: op.permute_dims(x, (1, 0)))
    yield Row("negative", [draw((2, 3), d)], lambda x: op.permute_dims(x, (-1, -2)))
    yield Row("identity", [draw((2, 3), d)], lambda x: op.permute_dims(x, (0, 1)))
    yield Row("0-d", [draw((), d)], lambda x: op.permute_dims(x, ()))
    yield Row("empty", [draw((0, 3), d)], lambda x: op.permute_dims(x, (1, 0)))


@recipe("matrix_transpose")
def _matrix_transpose(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("matrix", [draw((2, 3), d)], op.matrix_transpose)
    yield Row("batched", [draw((2, 3, 4), d)], op.matrix_transpose)
    yield Row("empty", [draw((0, 4), d)], op.matrix_transpose)


@recipe("expand_dims")
def _expand_dims(name: str, d: np.dtype) -> Iterator[Row]:
    for axis in (0, -1, 1, (0, 2), (-1, -3)):
        x = draw((2, 3), d)
        yield Row(f"axis {axis}", [x], lambda x, a=axis: op.expand_dims(x, axis=a))
    yield Row("0-d", [draw((), d)], lambda x: op.expand_dims(x, axis=(0, 1)))


@recipe("squeeze")
def _squeeze(name: str, d: np.dtype) -> Iterator[Row]:
    x = draw((1, 3, 1), d)
    for axis in (0, -1, (0, 2)):
        yield Row(f"axis {axis}", [x], lambda x, a=axis: op.squeeze(x, a))
    yield Row("to 0-d", [draw((1,), d)], lambda x: op.squeeze(x, 0))
    yield Row("empty", [draw((1, 0), d)], lambda x: op.squeeze(x, 0))


@recipe("flip")
def _flip(name: str, d: np.dtype) -> Iterator[Row]:
    for axis in (None, 0, -1, (0, 1)):
        yield Row(f"axis {axis}", [draw((3, 2), d)], lambda x, a=axis: op.flip(x, axis=a))
    yield Row("strided", [strided((2, 3), d)], op.flip)
    yield Row("0-d", [draw((), d)], op.flip)
    yield Row("empty", [draw((0, 2), d)], op.flip)


@recipe("basic_index")
def _basic_index(name: str, d: np.dtype) -> Iterator[Row]:
    keys = (
        (slice(1, None), 2),
        (..., slice(None, None, -2)),
        (0,),
        (-1, -1),
        (None, slice(3, 0, -1), None),
        (slice(5, 2), 1),
        (slice(-100, 100), ..., slice(1, -1)),
        (slice(None, None, 3), slice(4, None, -3)),
        (slice(0, -3, -1),),
    )
    for key in keys:
        yield Row(f"{key}", [draw((4, 5), d)], lambda x, k=key: op.basic_index(x, k))
    yield Row("0-d", [draw((), d)], lambda x: op.basic_index(x, (None, ...)))
    i = np.array(-2, "int32")
    yield Row("run-time index", [draw((4, 5), d), i],
              lambda x, i: op.basic_index(x, (slice(1, 3), i)))  # fmt: skip
    yield Row("run-time, twice", [draw((4, 5), d), i, np.array(1)],
              lambda x, i, j: op.basic_index(x, (j, i)))  # fmt: skip


@recipe("main_diagonal")
def _main_diagonal(name: str, d: np.dtype) -> Iterator[Row]:
    for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0)):
        yield Row(f"{shape}", [draw(shape, d)], op.main_diagonal)


@recipe("diagonal")
def _diagonal(name: str, d: np.dtype) -> Iterator[Row]:
    for shape, offset in (((3, 3), 0), ((3, 4), 1), ((4, 3), -1), ((2, 3, 3), 2), ((3, 3), 3)):
        yield Row(f"{shape} offset {offset}", [draw(shape, d)],
                  lambda x, k=offset: op.diagonal(x, offset=k))  # fmt: skip


@recipe("trace", dtypes=NUMBERS)
def _trace(name: str, d: np.dtype) -> Iterator[Row]:
    for shape, offset in (((3, 3), 0), ((2, 3, 3), 1), ((0, 0), 0)):
        yield Row(f"{shape} offset {offset}", [draw(shape, d)],
                  lambda x, k=offset: op.trace(x, offset=k))  # fmt: skip


@recipe("tril", "triu")
def _triangle(name: str, d: np.dtype) -> Iterator[Row]:
    for shape, k in (((3, 3), 0), ((2, 4), 1), ((4, 2), -1), ((2, 3, 3), -5), ((0, 2), 0)):
        yield Row(f"{shape} k {k}", [draw(shape, d)], lambda x, k=k: getattr(op, name)(x, k=k))


@recipe("drop_end", "drop_start")
def _drop(name: str, d: np.dtype) -> Iterator[Row]:
    for shape, axis in (((4,), 0), ((2, 3), 1), ((1, 2), 0)):
        yield Row(f"{shape} axis {axis}", [draw(shape, d)],
                  lambda x, a=axis: getattr(op, name)(x, a))  # fmt: skip


@recipe("concat")
def _concat(name: str, d: np.dtype) -> Iterator[Row]:
    def join(axis: object) -> Callable:
        return lambda *xs: op.concat(list(xs), axis=axis)

    x, y = draw((2, 3), d), draw((1, 3), d, 0.5)
    yield Row("axis 0", [x, y], join(0))
    yield Row("axis -1", [x, draw((2, 1), d), draw((2, 4), d)], join(-1))
    yield Row("flat", [x, y[0]], join(None))
    yield Row("one", [x], join(1))
    yield Row("with nothing", [x, draw((0, 3), d), y], join(0))
    yield Row("promoting", [x, draw((2, 3), "int32")], join(0), smooth=False)
    yield Row("twice the same", [x], lambda x: op.concat([x, x, x], axis=1))


@recipe("stack")
def _stack(name: str, d: np.dtype) -> Iterator[Row]:
    def join(axis: int) -> Callable:
        return lambda *xs: op.stack(list(xs), axis=axis)

    x, y = draw((2, 3), d), draw((2, 3), d, 0.5)
    yield Row("axis 0", [x, y], join(0))
    yield Row("axis -1", [x, y, y[::-1]], join(-1))
    yield Row("axis 1", [x, y], join(1))
    yield Row("0-d", [draw((), d), draw((), d, 2.0)], join(0))
    yield Row("empty", [draw((0, 2), d), draw((0, 2), d)], join(2))


@recipe("with_dims", "drop_dims")
def _naming(name: str, d: np.dtype) -> Iterator[Row]:
    for shape, dims in (((2, 3), ("a", "b")), ((), ()), ((0,), ("a",))):
        yield Row(f"{dims}", [draw(shape, d)],
                  lambda x, dims=dims: op.drop_dims(op.with_dims(x, dims)))  # fmt: skip


@recipe("moveaxis")
def _moveaxis(name: str, d: np.dtype) -> Iterator[Row]:
    for source, target in ((0, 2), (-1, 0), ((0, 1), (2, 0))):
        yield Row(f"{source} to {target}", [draw((2, 3, 4), d)],
                  lambda x, s=source, t=target: op.moveaxis(x, s, t))  # fmt: skip


@recipe("roll")
def _roll(name: str, d: np.dtype) -> Iterator[Row]:
    for shift, axis in ((1, None), (-2, 1), (5, 0), ((1, -1), (0, 1))):
        yield Row(f"{shift} axis {axis}", [draw((3, 4), d)],
                  lambda x, s=shift, a=axis: op.roll(x, s, axis=a))  # fmt: skip
    yield Row("nothing", [draw((0, 2), d)], lambda x: op.roll(x, 1, axis=0))


@recipe("roll_axes")
def _roll_axes(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("both", [draw((3, 4), d)], lambda x: op.roll_axes(x, (1, -1), (0, 1)))


@recipe("tile")
def _tile(name: str, d: np.dtype) -> Iterator[Row]:
    for shape, many in (((2, 3), (2, 1)), ((3,), (2, 2)), ((2, 3), (2,)), ((), (3,)), ((2,), (0,))):
        yield Row(f"{shape} by {many}", [draw(shape, d)], lambda x, m=many: op.tile(x, m))


@recipe("repeat")
def _repeat(name: str, d: np.dtype) -> Iterator[Row]:
    for many, axis in ((2, None), (3, 1), (1, 0), (0, 1)):
        yield Row(f"{many} axis {axis}", [draw((2, 3), d)],
                  lambda x, m=many, a=axis: op.repeat(x, m, axis=a))  # fmt: skip


@recipe("resize_axis")
def _resize_axis(name: str, d: np.dtype) -> Iterator[Row]:
    for size in (2, 5, 3):
        yield Row(f"to {size}", [draw((3, 2), d)], lambda x, n=size: op.resize_axis(x, n, 0))
