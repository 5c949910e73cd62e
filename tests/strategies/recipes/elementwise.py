"""Elementwise ops whose values must fit together, and composites of them."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import EVERY, FLOATS, NUMBERS, Row, recipe
from tests.strategies.values import draw, special


@recipe("astype", others=20)
def _astype(name: str, d: np.dtype) -> Iterator[Row]:
    for target in (*EVERY, "int8", "uint32"):
        wide = target in FLOATS or target == "bool" or d.kind != "f"
        x = special(d) if wide and d.kind == "f" else draw((2, 3), d)
        if target in ("uint8", "uint32") and d.kind == "f":
            x = np.abs(x)
        yield Row(f"to {target}", [x], lambda x, t=target: op.astype(x, t), smooth=False)
    yield Row("smooth", [draw((2, 3), d)], lambda x: op.astype(x, "float64"))
    yield Row("of nothing", [draw((0, 2), d)], lambda x: op.astype(x, "float32"))


@recipe("wrap_index", dtypes=("int64", "int32"))
def _wrap_index(name: str, d: np.dtype) -> Iterator[Row]:
    i = np.array([0, 4, -1, -5, 2], d)
    yield Row("raw size", [i], lambda i: op.wrap_index(i, 5))
    yield Row("size as array", [i, np.array(5, d)], op.wrap_index)
    yield Row("0-d", [np.array(-2, d)], lambda i: op.wrap_index(i, 3))
    yield Row("none", [i[:0]], lambda i: op.wrap_index(i, 0))


@recipe("place_among", dtypes=("int64", "int32"))
def _place_among(name: str, d: np.dtype) -> Iterator[Row]:
    place, there = np.array([0, 4, 1], d), np.ones(3, np.bool_)
    yield Row("one", [place, there], op.place_among)
    yield Row("0-d", [place[0], there[0]], op.place_among)
    yield Row("broadcast", [place, there[0]], op.place_among)
    yield Row("none", [place[:0], there[:0]], op.place_among)


@recipe("clip", dtypes=NUMBERS)
def _clip(name: str, d: np.dtype) -> Iterator[Row]:
    x = draw((3, 4), d)
    yield Row("both raw", [x], lambda x: op.clip(x, 1, 2))
    yield Row("special", [special(d)], lambda x: op.clip(x, 0, 3), smooth=False)
    yield Row("low", [x], lambda x: op.clip(x, min=1))
    yield Row("high", [x], lambda x: op.clip(x, max=1))
    yield Row("neither", [x], op.clip)
    low, high = draw((4,), d, 0.3), draw((3, 1), d, 0.7)
    yield Row("arrays", [x, low, high], op.clip)
    yield Row("of nothing", [x[:0]], lambda x: op.clip(x, 0, 1))
