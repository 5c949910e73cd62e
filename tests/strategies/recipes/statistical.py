"""Statistics and special functions over axes."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, Row, recipe
from tests.strategies.values import draw


@recipe("mean", "var", "std", "logsumexp", dtypes=FLOATS)
def _statistic(name: str, d: np.dtype) -> Iterator[Row]:
    x, f = draw((2, 3, 4), d), getattr(op, name)
    for axis in (None, 1, -1, (0, 2)):
        for keep in (False, True):
            yield Row(f"axis {axis} keepdims {keep}", [x],
                      lambda x, a=axis, k=keep: f(x, axis=a, keepdims=k))  # fmt: skip
    yield Row("size 1", [draw((3, 1), d)], lambda x: f(x, axis=0))
    yield Row("one axis of size 1", [draw((3, 1), d)], lambda x: f(x, axis=1), smooth=name != "std")
    if name in ("var", "std"):
        yield Row("correction", [x], lambda x: f(x, axis=1, correction=1))
    if name == "mean":
        yield Row("empty", [draw((0, 2), d)], lambda x: f(x, axis=0), smooth=False)
    if name == "logsumexp":
        far = np.array([[800.0, 799.0, 0.0], [-np.inf, -np.inf, -np.inf],
                        [np.inf, 1.0, 2.0], [-900.0, -901.0, -np.inf]], d)  # fmt: skip
        yield Row("far out", [far], lambda x: f(x, axis=1), smooth=False)


@recipe("softmax", "log_softmax", dtypes=FLOATS)
def _softmax(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    for axis in (None, 0, -1):
        yield Row(f"axis {axis}", [draw((2, 3), d)], lambda x, a=axis: f(x, axis=a))
    far = np.array([[800.0, 799.0, 0.0], [-900.0, -901.0, -np.inf]], d)
    yield Row("far out", [far], lambda x: f(x, axis=1), smooth=False)
