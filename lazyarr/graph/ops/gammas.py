"""Polygamma functions, the beta function, regularised incomplete gamma and beta functions.

Names and order of arguments are SciPy's. `polygamma` and `betaln` are formulas that every backend
compiles. The incomplete functions are computed by their reference on every backend: series whose
length depends on the values. Source: NIST Digital Library of Mathematical Functions, 5, 8.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from lazyarr.errors import ArgumentError
from lazyarr.graph import incomplete
from lazyarr.graph import scalar as s
from lazyarr.graph.incomplete import Values
from lazyarr.graph.ops._declare import by_formula, elementwise, operands_of
from lazyarr.graph.registry import op
from lazyarr.graph.scalar import Scalar

REAL = "real floating-point"
HOST = frozenset({"by_reference"})  # no formula: runs on the host on every backend


# -- polygamma ------------------------------------------------------------------------------------

LARGEST = 170  # the factorial of an order above it is no double


def _polygamma_formula(x: Scalar, *, order: int) -> Any:
    """(-1)^(n + 1) n! zeta(n + 1, x) for x > 0; by reflection, of x and 1 - x, below."""
    if order < 2:
        return s.trigamma(x) if order else s.digamma(x)
    below = s.lt(x, 0)
    off = x - s.round_(x)
    sign = -1.0 if order % 2 == 0 else 1.0
    positive = incomplete.zeta(order + 1, s.select(below, 1.0 - x, x))
    positive = positive * (sign * math.factorial(order))
    angle = off * math.pi
    slopes = incomplete.cotangent_slope(order, s.cos(angle) / s.sin(angle))
    negative = positive * (-sign) - slopes
    pole = s.const(math.inf if order % 2 else math.nan, x.dtype)
    negative = s.select(s.eq(off, 0), pole, negative)
    return s.select(below, negative, positive)


def _prepare_polygamma(n: Any, x: object, /) -> tuple[Any, dict[str, Any]]:
    try:
        order = n.__index__()
    except AttributeError:
        raise ArgumentError(
            f"polygamma: the order is a Python int, got {type(n).__name__}; write polygamma(2, x)."
        ) from None
    if not 0 <= order <= LARGEST:
        raise ArgumentError(f"polygamma: the order is from 0 to {LARGEST}, got {order}.")
    return operands_of(x), {"order": order}


elementwise(
    "polygamma",
    formula=_polygamma_formula,
    reference=by_formula(_polygamma_formula),
    prepare=_prepare_polygamma,
    accepts=REAL,
    vjp=lambda g, y, x, *, order: (op.absorb(g, op.polygamma(order + 1, x)),),
    doc="The derivative of order n of the digamma function, n a Python int.",
)

# -- beta -----------------------------------------------------------------------------------------


def _betaln_formula(a: Scalar, b: Scalar) -> Any:
    """By sums where both are small; elsewhere by Stirling's series, whose large parts cancel."""
    p, q = s.minimum(a, b), s.maximum(a, b)
    total = a + b
    share = s.log1p(-(p / total))
    plain = s.lgamma(a) + s.lgamma(b) - s.lgamma(total)
    rest = incomplete.stirling_rest(q) - incomplete.stirling_rest(total)
    one = s.lgamma(p) + rest + p - p * s.log(total) + (q - 0.5) * share
    both = incomplete.stirling_rest(p) + rest + 0.5 * math.log(2 * math.pi) - 0.5 * s.log(q)
    both = both + (p - 0.5) * s.log(p / total) + q * share
    large = s.select(s.lt(p, 8), one, both)
    large = s.select(s.isinf(q), s.const(-math.inf, a.dtype), large)
    return s.select((q >= 8) & (total >= 8), large, plain)


def _betaln_vjp(g: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
    total = op.digamma(op.add(a, b))
    return tuple(op.absorb(g, op.subtract(op.digamma(v), total)) for v in (a, b))


elementwise(
    "betaln",
    formula=_betaln_formula,
    reference=by_formula(_betaln_formula),
    accepts=REAL,
    vjp=_betaln_vjp,
    facts=frozenset({"commutative"}),
    doc="Logarithm of the absolute value of the beta function, gamma(a) gamma(b) / gamma(a + b).",
)


def _beta_vjp(g: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
    total = op.digamma(op.add(a, b))
    return tuple(op.absorb(g, op.multiply(y, op.subtract(op.digamma(v), total))) for v in (a, b))


def _sign_of_gamma(x: Scalar) -> Any:
    """The sign of the gamma function; NaN at its poles below 0."""
    low, one = s.floor(x), s.const(1, x.dtype)
    even = s.eq(s.floor(low * 0.5) * 2.0, low)
    below = s.select(even, one, s.const(-1, x.dtype))
    below = s.select(s.eq(low, x), s.const(math.nan, x.dtype), below)
    return s.select(s.lt(x, 0), below, s.select(s.eq(x, 0), s.copysign(one, x), one))


def _gamma_formula(x: Scalar) -> Any:
    """Stirling's series from 8 on, the recurrence below, reflection below 1/2."""
    one, below = s.const(1, x.dtype), s.lt(x, 0.5)
    z = s.select(below, 1.0 - x, x)
    small = s.lt(z, 8)
    y = s.select(small, z + 8.0, z)
    root = s.pow_(y, y * 0.5 - 0.25)  # squared later: the power itself would overflow
    value = s.exp(-y) * root * root * s.exp(incomplete.stirling_rest(y)) * math.sqrt(2 * math.pi)
    product = z
    for k in range(1, 8):
        product = product * (z + float(k))
    value = s.select(small, value / product, value)
    off = x - s.round_(x)
    turned = s.abs_(math.pi / (s.sin(off * math.pi) * value)) * _sign_of_gamma(x)
    value = s.select(below, turned, value)
    value = s.select(s.eq(x, math.inf), x, value)
    return s.select(s.eq(x, 0), one / x, value)


def _beta_formula(a: Scalar, b: Scalar) -> Any:
    sign = _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b)
    return s.exp(_betaln_formula(a, b)) * sign


elementwise(
    "gamma",
    formula=_gamma_formula,
    reference=by_formula(_gamma_formula),
    accepts=REAL,
    vjp=lambda g, y, x: (op.absorb(g, op.multiply(y, op.digamma(x))),),
    doc="The gamma function; NaN at its poles below 0.",
)
elementwise(
    "beta",
    formula=_beta_formula,
    reference=by_formula(_beta_formula),
    accepts=REAL,
    vjp=_beta_vjp,
    facts=frozenset({"commutative"}),
    doc="The beta function, gamma(a) gamma(b) / gamma(a + b).",
)

# -- incomplete gamma -----------------------------------------------------------------------------


def grown(value: Any, slopes: Callable[[int, int], Any], orders: tuple[int, int]) -> Any:
    """Return a derivative of exp(L) as an expression, from its value and the derivatives of L.

    `slopes(i, j)` is the derivative of L of orders i and j by two parameters.
    """
    known = {(0, 0): value}
    for i in range(orders[0] + 1):
        for j in range(orders[1] + 1):
            if not (i or j):
                continue
            first = 1 if i else 0  # the parameter that the last derivative is taken by
            n, m = (i - 1, j) if first else (i, j - 1)
            terms = [
                op.multiply(
                    op.multiply(known[p, q], slopes(i - p, j - q)),
                    float(math.comb(n, p) * math.comb(m, q)),
                )
                for p in range(n + 1)
                for q in range(m + 1)
            ]
            known[i, j] = reduce(op.add, terms)
    return known[orders]


def gamma_density(a: Any, x: Any, order: int) -> Any:
    """The derivative by x of P(a, x), differentiated by a as often as `order` says."""
    log = op.subtract(op.subtract(op.xlogy(op.subtract(a, 1), x), x), op.gammaln(a))

    def slopes(i: int, _: int) -> Any:
        return op.subtract(op.log(x), op.digamma(a)) if i == 1 else op.negative(
            op.polygamma(i - 1, a))  # fmt: skip

    return grown(op.exp(log), slopes, (order, 0))


def _gamma_reference_of(upper: bool) -> Callable[..., Values]:
    def reference(a: Any, x: Any, *, order: int = 0) -> Values:
        dtype = np.result_type(a, x)
        return incomplete.gammainc(a, x, order, upper).astype(dtype)

    return reference


def _declare_incomplete(name: str, sign: float, doc: str) -> None:
    slope = f"{name}_slope"

    def cotangents(g: Any, a: Any, x: Any, order: int) -> tuple[Any, ...]:
        by_x = gamma_density(a, x, order)
        by_x = by_x if sign > 0 else op.negative(by_x)
        return op.absorb(g, getattr(op, slope)(a, x, order=order + 1)), op.absorb(g, by_x)

    elementwise(
        name,
        formula=None,
        reference=_gamma_reference_of(sign < 0),
        prepare=lambda a, x, /: (operands_of(a, x), {}),
        accepts=REAL,
        facts=HOST,
        vjp=lambda g, y, a, x: cotangents(g, a, x, 0),
        doc=doc,
    )
    elementwise(
        slope,
        formula=None,
        reference=_gamma_reference_of(sign < 0),
        prepare=lambda a, x, /, *, order: (operands_of(a, x), {"order": order}),
        accepts=REAL,
        facts=HOST,
        public=False,
        vjp=lambda g, y, a, x, *, order: cotangents(g, a, x, order),
        doc=f"A derivative by a of {name}, by Taylor arithmetic.",
    )


_declare_incomplete(
    "gammainc", 1.0, "Regularised lower incomplete gamma function P(a, x), for a > 0 and x >= 0."
)
_declare_incomplete(
    "gammaincc", -1.0, "Regularised upper incomplete gamma function, 1 - P(a, x) without its loss."
)

# -- incomplete beta ------------------------------------------------------------------------------


def beta_density(a: Any, b: Any, x: Any, orders: tuple[int, int]) -> Any:
    """The derivative by x of I_x(a, b), differentiated by a and b as often as `orders` says."""
    log = op.add(op.xlogy(op.subtract(a, 1), x), op.xlog1py(op.subtract(b, 1), op.negative(x)))
    total = op.add(a, b)

    def slopes(i: int, j: int) -> Any:
        out = op.polygamma(i + j - 1, total)
        if i and j:
            return out
        out = op.subtract(out, op.polygamma(i + j - 1, a if i else b))
        if i + j > 1:
            return out
        return op.add(out, op.log(x) if i else op.log1p(op.negative(x)))

    return grown(op.exp(op.subtract(log, op.betaln(a, b))), slopes, orders)


def _betainc_cotangents(g: Any, a: Any, b: Any, x: Any, orders: tuple[int, int]) -> tuple[Any, ...]:
    i, j = orders
    return (
        op.absorb(g, op.betainc_slope(a, b, x, orders=(i + 1, j))),
        op.absorb(g, op.betainc_slope(a, b, x, orders=(i, j + 1))),
        op.absorb(g, beta_density(a, b, x, orders)),
    )


def _betainc(a: Any, b: Any, x: Any, *, orders: tuple[int, int] = (0, 0)) -> Values:
    return incomplete.betainc(a, b, x, orders).astype(np.result_type(a, b, x))


elementwise(
    "betainc",
    formula=None,
    reference=_betainc,
    prepare=lambda a, b, x, /: (operands_of(a, b, x), {}),
    accepts=REAL,
    facts=HOST,
    vjp=lambda g, y, a, b, x: _betainc_cotangents(g, a, b, x, (0, 0)),
    doc="Regularised incomplete beta function I_x(a, b), for positive a, b and x from 0 to 1.",
)
elementwise(
    "betainc_slope",
    formula=None,
    reference=_betainc,
    prepare=lambda a, b, x, /, *, orders: (operands_of(a, b, x), {"orders": orders}),
    accepts=REAL,
    facts=HOST,
    public=False,
    vjp=lambda g, y, a, b, x, *, orders: _betainc_cotangents(g, a, b, x, orders),
    doc="A derivative by a and b of betainc, by Taylor arithmetic.",
)
