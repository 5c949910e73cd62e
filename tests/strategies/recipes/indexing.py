"""Reading and writing at places."""

from collections.abc import Callable, Iterator

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import NUMBERS, Row, recipe
from tests.strategies.values import draw


@recipe("take")
def _take(name: str, d: np.dtype) -> Iterator[Row]:
    x = draw((3, 4), d)
    for index, axis in (
        (np.array([2, 0, -1, 2]), 0),
        (np.array([[1, -4], [3, 3]], "int32"), 1),
        (np.array(2, "int8"), -1),
        (np.array([], "int64"), 0),
        (np.array([3, 0], "uint8"), 1),
    ):
        yield Row(f"{index.dtype}{index.shape} axis {axis}", [x, index],
                  lambda x, i, a=axis: op.take(x, i, axis=a))  # fmt: skip
    yield Row("no axis", [draw((5,), d), np.array([4, -5])], op.take)
    yield Row("known", [x], lambda x: op.take(x, np.array([0, -1]), axis=1))


@recipe("set_at")
@recipe("add_at", dtypes=NUMBERS)
def _region(name: str, d: np.dtype) -> Iterator[Row]:
    def write(x: Variable, v: Variable, *starts: object, spec: tuple, lengths: tuple) -> Variable:
        return getattr(op, name)(x, v, *starts, spec=spec, lengths=lengths)

    x, run = draw((4, 5), d), ("slice", 1)
    yield Row("block", [x, draw((2, 3), d, 0.4)],
              lambda x, v: write(x, v, 1, 2, spec=(run, run), lengths=(2, 3)))  # fmt: skip
    yield Row("row", [x, draw((5,), d, 0.4)],
              lambda x, v: write(x, v, 3, 0, spec=(("int",), run), lengths=(5,)))  # fmt: skip
    back = (("slice", -2), run)
    yield Row("back", [x, draw((2, 5), d, 0.4)],
              lambda x, v: write(x, v, 3, 0, spec=back, lengths=(2, 5)))  # fmt: skip
    yield Row("one value", [x, draw((), d, 0.4)],
              lambda x, v: write(x, v, 0, 1, spec=(run, ("slice", 2)), lengths=(4, 2)))  # fmt: skip
    yield Row("nothing", [x, draw((0, 5), d)],
              lambda x, v: write(x, v, 2, 0, spec=(run, run), lengths=(0, 5)))  # fmt: skip
    yield Row("run-time place", [x, draw((), d, 0.4), np.array(2), np.array(4)],
              lambda x, v, i, j: write(x, v, i, j, spec=(("int",),) * 2, lengths=()))  # fmt: skip


@recipe("take_set")
@recipe("take_add", dtypes=NUMBERS)
def _scatter(name: str, d: np.dtype) -> Iterator[Row]:
    def write(axis: int) -> Callable:
        return lambda x, i, v: getattr(op, name)(x, i, v, axis=axis)

    x = draw((3, 4), d)
    twice, table = np.array([2, 0, 2]), np.array([[1, 3], [3, 0]])
    yield Row("rows, one twice", [x, twice, draw((3, 4), d, 0.6)], write(0))
    yield Row("a table of columns", [x, table, draw((3, 2, 2), d, 0.6)], write(1))
    yield Row("one row", [x, np.array(1), draw((4,), d, 0.6)], write(0))
    yield Row("a value for all", [x, twice, draw((), d, 0.6)], write(1))
    yield Row("nothing", [x, twice[:0], draw((0, 4), d)], write(0))
