"""Special functions with parameters, and those that are defined for part of the numbers."""

from collections.abc import Iterator

import numpy as np

from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, Row, recipe
from tests.strategies.values import special

POSITIVE = np.array([0.3, 1.0, 2.5, 9.0])


@recipe("polygamma", dtypes=FLOATS)
def _polygamma(name: str, d: np.dtype) -> Iterator[Row]:
    x = np.array([[0.3, 2.5, 14.0], [-0.7, -2.4, 1.0]], d)
    for order in (0, 1, 2, 5):
        yield Row(f"order {order}", [x], lambda x, n=order: op.polygamma(n, x))
    for order in (2, 3):
        values = special(d)
        values = values[(np.abs(values) > 1e-30) | (values == 0) | np.isnan(values)]
        yield Row("special", [values], lambda x, n=order: op.polygamma(n, x), smooth=False)
    yield Row("of nothing", [x[:0]], lambda x: op.polygamma(2, x))


@recipe("gammainc_slope", "gammaincc_slope", dtypes=FLOATS)
def _gamma_slope(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    a, x = POSITIVE.astype(d)[:, None], np.array([0.2, 1.5, 12.0], d)
    for order in (1, 2):
        yield Row(f"order {order}", [a, x], lambda a, x, n=order: f(a, x, order=n))


@recipe("gammainc", "gammaincc", dtypes=FLOATS)
def _gamma(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    yield Row("each", [POSITIVE.astype(d)[:, None], np.array([0.2, 1.5, 12.0], d)], f)
    values = special(d)
    yield Row("special", [values[:, None], values], f, smooth=False)
    yield Row("a number", [np.array([0.2, 3.0], d)], lambda x: f(2.5, x))
    yield Row("of nothing", [POSITIVE[:0].astype(d), np.array([1.0], d)], f)


@recipe("betainc", dtypes=FLOATS)
def _beta(name: str, d: np.dtype) -> Iterator[Row]:
    p = POSITIVE.astype(d)
    yield Row("each", [p[:, None], p[::-1].copy(), np.array(0.35, d)], op.betainc)
    values = special(d)
    yield Row("special", [values[:, None], p[:1], values], op.betainc, smooth=False)
    yield Row("of nothing", [p[:0], p[:1], np.array([0.5], d)], op.betainc)


@recipe("betainc_slope", dtypes=FLOATS)
def _beta_slope(name: str, d: np.dtype) -> Iterator[Row]:
    p = POSITIVE.astype(d)
    for orders in ((1, 0), (0, 1), (1, 1)):
        arrays = [p[:, None], p[1:], np.array(0.35, d)]
        yield Row(f"orders {orders}", arrays, lambda a, b, x, n=orders: op.betainc_slope(
            a, b, x, orders=n))  # fmt: skip


@recipe("beta", "betaln", dtypes=FLOATS)
def _whole_beta(name: str, d: np.dtype) -> Iterator[Row]:
    f, p = getattr(op, name), POSITIVE.astype(d)
    yield Row("each", [p[:, None], p[1:]], f)
    yield Row("large", [p[:, None] * 30, p * 7], f)
    yield Row("below 0", [np.array([-0.3, -1.6], d), np.array([2.2, 20.0], d)], f)
    ends = np.array([0, np.inf, np.nan, 1e-30, 1e30], d)
    yield Row("ends", [ends[:, None], ends], f, smooth=False)
    yield Row("of nothing", [p[:0], p[:1]], f)
