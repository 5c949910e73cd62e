"""Loops."""

from collections.abc import Callable, Iterator

import numpy as np

from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.strategies.recipes.declare import FLOATS, Row, recipe
from tests.strategies.values import draw


def loop(inputs: list, step: Callable, n_carry: int, n_xs: int, length: object = None, **params):
    """Record a scan of `step(*carry, *x, *captures) -> outputs`."""
    inside = [
        symbol(TensorType(v.type.dtype, v.shape[1:] if n_carry <= i < n_carry + n_xs else v.shape))
        for i, v in enumerate(inputs)
    ]
    length = inputs[n_carry].shape[0] if length is None else length
    body = Graph(inside, step(*inside))
    params.setdefault("reverse", False)
    return op.scan(body, tuple(inputs), length=length, n_carry=n_carry, n_xs=n_xs, **params)


@recipe("scan", dtypes=FLOATS)
def _scan(name: str, d: np.dtype) -> Iterator[Row]:
    def filtered(c: Variable, x: Variable, w: Variable) -> list:
        new = op.add(op.multiply(c, w), op.tanh(x))
        return [new, op.multiply(new, c)]

    c, xs, w = draw((), d), draw((4,), d), draw((), d, 0.3)
    yield Row("carry, xs, ys, capture", [c, xs, w], lambda *v: loop(v, filtered, 1, 1))
    yield Row("reverse", [c, xs, w], lambda *v: loop(v, filtered, 1, 1, reverse=True))
    yield Row("no steps", [c, xs[:0], w], lambda *v: loop(v, filtered, 1, 1))
    yield Row("one step", [c, xs[:1], w], lambda *v: loop(v, filtered, 1, 1))
    rows = [draw((3,), d), draw((4, 3), d), draw((3,), d, 0.3)]
    yield Row("vectors", rows, lambda *v: loop(v, filtered, 1, 1), symbolic=False)
    yield Row("no xs", [c], lambda c: loop([c], lambda c: [op.cos(c), c], 1, 0, length=5))
    yield Row("only a carry", [c, xs], lambda *v: loop(v, lambda c, x: [op.add(c, x)], 1, 1))

    def counting(c: Variable, n: Variable, x: Variable) -> list:
        return [op.add(op.multiply(c, 0.5), x), op.add(n, 1), op.multiply(x, n)]

    yield Row("counting", [c, np.array(0), xs], lambda *v: loop(v, counting, 2, 1))

    def product(c: Variable, m: Variable) -> list:
        return [op.matmul(m, c), c]

    matrix = [draw((2,), d), draw((3, 2, 2), d)]
    yield Row("products", matrix, lambda *v: loop(v, product, 1, 1), symbolic=False)


@recipe("pick", dtypes=FLOATS)
def _pick(name: str, d: np.dtype) -> Iterator[Row]:
    def step(c: Variable, x: Variable) -> list:
        return [op.add(c, x), op.multiply(c, x)]

    for i in (0, 1):
        yield Row(f"output {i}", [draw((), d), draw((3,), d)],
                  lambda *v, i=i: op.pick(loop(v, step, 1, 1), i))  # fmt: skip
