"""What random draws are made of: bits of a key, and quantile functions."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, Row, recipe

P = np.array([[0.01, 0.3, 0.5], [0.8, 0.97, 0.5]])


@recipe("threefry", dtypes=("uint64",))
def _threefry(name: str, d: np.dtype) -> Iterator[Row]:
    keys, counters = np.array([0, 5, 2**63 + 11], d), np.arange(4, dtype=d)
    yield Row("each", [keys[:, None], counters], op.threefry)
    yield Row("0-d", [keys[0], counters[1]], op.threefry)
    yield Row("of nothing", [keys[0], counters[:0]], op.threefry)


@recipe("ndtri", dtypes=FLOATS)
def _ndtri(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("each", [P.astype(d)], op.ndtri)
    ends = np.array([0, 1, -0.1, 1.1, np.nan, 1e-30], d)
    yield Row("ends", [ends], op.ndtri, smooth=False)
    yield Row("of nothing", [P[:0].astype(d)], op.ndtri)


@recipe("erfinv", dtypes=FLOATS)
def _erfinv(name: str, d: np.dtype) -> Iterator[Row]:
    yield Row("each", [(2 * P - 1).astype(d)], op.erfinv)
    ends = np.array([-1, 1, -1.1, 1.1, np.nan, 1e-30, -0.0], d)
    yield Row("ends", [ends], op.erfinv, smooth=False)
    yield Row("of nothing", [P[:0].astype(d)], op.erfinv)
