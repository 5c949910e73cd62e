"""Searching, sorting and sets."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import NUMBERS, Row, recipe
from tests.strategies.values import draw


@recipe("sort", "argsort", dtypes=NUMBERS)
def _sort(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    ties = np.array([3, 1, 3, 0, 1, 3, 0], d)
    yield Row("ties", [ties], f, smooth=False)
    yield Row("ties, falling", [ties], lambda x: f(x, descending=True), smooth=False)
    for axis in (0, 1, -1):
        for falling in (False, True):
            yield Row(f"axis {axis} falling {falling}", [draw((3, 4), d)],
                      lambda x, a=axis, k=falling: f(x, axis=a, descending=k))  # fmt: skip
    yield Row("nothing", [draw((0,), d)], f)
    yield Row("one", [draw((1, 1), d)], f)
    if d.kind == "f":
        x = np.array([np.nan, 1, -np.inf, np.inf, np.nan, 0.5], d)
        yield Row("NaN", [x], f, smooth=False)
        yield Row("NaN, falling", [x], lambda x: f(x, descending=True), smooth=False)


@recipe("searchsorted", dtypes=NUMBERS)
def _searchsorted(name: str, d: np.dtype) -> Iterator[Row]:
    x = np.array([1, 2, 2, 5, 7], d)
    v = np.array([[0, 1, 2], [2, 6, 9]], d)
    for side in ("left", "right"):
        yield Row(side, [x, v], lambda x, v, s=side: op.searchsorted(x, v, side=s))
    if d.kind == "f":
        v = np.array([np.nan, np.inf, -np.inf], d)
        for side in ("left", "right"):
            yield Row(f"NaN {side}", [x, v], lambda x, v, s=side: op.searchsorted(x, v, side=s))
    yield Row("in nothing", [x[:0], v], op.searchsorted)
    yield Row("0-d", [x, np.array(2, d)], op.searchsorted)
    yield Row("sorter", [x[::-1], v, np.arange(5)[::-1]],
              lambda x, v, s: op.searchsorted(x, v, sorter=s))  # fmt: skip


@recipe("search_sorted", dtypes=NUMBERS)
def _search_sorted(name: str, d: np.dtype) -> Iterator[Row]:
    x = np.array([1, 2, 2, 5, 7], d)
    for side in ("left", "right"):
        yield Row(side, [x, np.array([0, 2, 9], d)],
                  lambda x, v, s=side: op.search_sorted(x, v, side=s))  # fmt: skip


@recipe("isin", dtypes=NUMBERS)
def _isin(name: str, d: np.dtype) -> Iterator[Row]:
    x, among = np.array([[1, 2], [3, 4]], d), np.array([4, 1, 9], d)
    yield Row("plain", [x, among], op.isin)
    yield Row("inverted", [x, among], lambda x, y: op.isin(x, y, invert=True))
    yield Row("among nothing", [x, among[:0]], op.isin)


@recipe("repeated", dtypes=(np.dtype("int64"),))
def _repeated(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("some", [np.array([0, 2, 1, 0, 3], d)], op.repeated)
    yield Row("none", [np.array([0, 0], d)], op.repeated)


@recipe("spanned", dtypes=(np.dtype("int64"),))
def _spanned(name: str, d: np.dtype) -> Iterator[Row]:
    ends = [np.array(2, d), np.array(30, d)]
    yield Row("clamped", ends, lambda a, b: op.spanned(a, b, 7))
    yield Row("backwards", ends, lambda a, b: op.spanned(b, a, 7, step=-2))
    yield Row("open", ends[:1], lambda a: op.spanned(None, a, 7, step=2))


@recipe("count_nonzero")
def _count_nonzero(name: str, d: np.dtype) -> Iterator[Row]:
    for axis in (None, 0, (0, 1)):
        for keep in (False, True):
            params = {"axis": axis, "keepdims": keep}
            yield Row(f"{params}", [draw((3, 4), d)], lambda x, p=params: op.count_nonzero(x, **p))


@recipe("take_along_axis")
def _take_along_axis(name: str, d: np.dtype) -> Iterator[Row]:
    x = draw((3, 4), d)
    yield Row("last", [x, np.array([[0, 3], [-1, 2], [1, 1]])], op.take_along_axis)
    yield Row("first", [x, np.array([[2, 0, -3, 1]], "int32")],
              lambda x, i: op.take_along_axis(x, i, axis=0))  # fmt: skip


@recipe("diff", dtypes=NUMBERS)
def _diff(name: str, d: np.dtype) -> Iterator[Row]:
    x = draw((3, 4), d)
    yield Row("last", [x], op.diff)
    yield Row("first, twice", [x], lambda x: op.diff(x, axis=0, n=2))
    yield Row("longer", [x, draw((3, 1), d), draw((3, 2), d)],
              lambda x, a, b: op.diff(x, prepend=a, append=b))  # fmt: skip
