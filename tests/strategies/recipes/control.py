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

    yield from _of_a_computed_number(d, c, xs)
    yield from _in_place(d, xs)

    def product(c: Variable, m: Variable) -> list:
        return [op.matmul(m, c), c]

    matrix = [draw((2,), d), draw((3, 2, 2), d)]
    yield Row("products", matrix, lambda *v: loop(v, product, 1, 1), symbolic=False)


def _of_a_computed_number(d: np.dtype, c: np.ndarray, xs: np.ndarray) -> Iterator[Row]:
    """Loops that stop early or take a number of steps that is a value, forward and back."""

    def stopping(c: Variable, x: Variable) -> list:
        new = op.add(op.multiply(c, 0.5), op.square(x))
        return [new, op.multiply(c, x), op.greater(new, 0.4)]

    def counted(c: Variable, x: Variable, n: Variable) -> list:
        return [op.sin(op.add(c, x)), op.multiply(c, x)]

    def both(c: Variable, x: Variable, n: Variable) -> list:
        return [*stopping(c, x)]

    yield Row("until", [c, xs], lambda *v: loop(v, stopping, 1, 1, until=True))
    yield Row("until, no steps", [c, xs[:0]], lambda *v: loop(v, stopping, 1, 1, until=True))
    never = [c, 0.0 * xs]
    yield Row("until never", never, lambda *v: loop(v, stopping, 1, 1, until=True))
    for n in (0, 1, 3, 4):
        given = [c, xs, np.array(n)]
        yield Row(f"counted, {n} steps", given, lambda *v: loop(v, counted, 1, 1, counted=True))
    given = [c, xs, np.array(3)]
    back = {"counted": True, "reverse": True}
    yield Row("counted back", given, lambda *v: loop(v, counted, 1, 1, **back))
    stops = {"counted": True, "until": True}
    yield Row("counted until", given, lambda *v: loop(v, both, 1, 1, **stops))


def _in_place(d: np.dtype, xs: np.ndarray) -> Iterator[Row]:
    """A history that is written where it lies, lags of a series, and a loop in a loop."""

    def history(h: Variable, x: Variable, i: Variable) -> list:
        new = op.set_at(h, op.add(op.sum(h), x), i, spec=(("int",),), lengths=())
        return [new, op.multiply(x, 2.0)]

    def lags(a: Variable, b: Variable, x: Variable) -> list:
        new = op.subtract(op.multiply(a, x), b)
        return [new, a, new, a, b]

    def outer(c: Variable, row: Variable) -> list:
        inner = loop([c, row], lambda s, e: [op.add(op.multiply(s, 0.5), e), s], 1, 1)
        return [op.pick(inner, 0), op.sum(op.pick(inner, 1))]

    start = draw((4,), d)
    yield Row("history", [start, xs, np.arange(4)], lambda *v: loop(v, history, 1, 2))
    two = [draw((), d), draw((), d), xs]
    yield Row("lags", two, lambda *v: loop(v, lags, 2, 1))
    yield Row("lags back", two, lambda *v: loop(v, lags, 2, 1, reverse=True))
    nested = [draw((), d), draw((3, 2), d)]
    yield Row("nested", nested, lambda *v: loop(v, outer, 1, 1), symbolic=False)


@recipe("pick", dtypes=FLOATS)
def _pick(name: str, d: np.dtype) -> Iterator[Row]:
    def step(c: Variable, x: Variable) -> list:
        return [op.add(c, x), op.multiply(c, x)]

    for i in (0, 1):
        yield Row(f"output {i}", [draw((), d), draw((3,), d)],
                  lambda *v, i=i: op.pick(loop(v, step, 1, 1), i))  # fmt: skip
