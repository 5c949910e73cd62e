"""Special functions under SciPy's names. Source: NIST Digital Library of Mathematical Functions.

What can overflow is stable by construction, on every tier, not by a rewrite.
"""

import math

import numpy as np

from lazyarr.errors import DTypeError
from lazyarr.graph import numeric
from lazyarr.graph import scalar as s
from lazyarr.graph.ops._declare import axes_of, by_formula, composite, elementwise, variable_of
from lazyarr.graph.registry import op

REAL = "real floating-point"


def _unary(name, formula, reference, partial, doc):
    elementwise(
        name,
        formula=formula,
        reference=reference,
        accepts=REAL,
        vjp=lambda g, y, x: (op.absorb(g, partial(y, x)),),
        doc=doc,
    )


_unary(
    "gammaln",
    s.lgamma,
    numeric.lgamma,
    lambda y, x: op.digamma(x),
    "Logarithm of the absolute value of the gamma function.",
)
_unary(
    "digamma",
    s.digamma,
    numeric.digamma,
    lambda y, x: op.trigamma(x),
    "Logarithmic derivative of the gamma function.",
)
elementwise(
    "trigamma",
    formula=s.trigamma,
    reference=numeric.trigamma,
    accepts=REAL,
    vjp=lambda g, y, x: (op.absorb(g, op.polygamma(2, x)),),
    public=False,
    doc="Second logarithmic derivative of the gamma function.",
)
_unary(
    "erf",
    s.erf,
    numeric.erf,
    lambda y, x: op.multiply(op.exp(op.negative(op.square(x))), 2 / math.sqrt(math.pi)),
    "Error function.",
)
_unary(
    "erfc",
    s.erfc,
    numeric.erfc,
    lambda y, x: op.multiply(op.exp(op.negative(op.square(x))), -2 / math.sqrt(math.pi)),
    "Complementary error function.",
)


# -- beyond the range of erfc ---------------------------------------------------------------------

_ROOT_PI = math.sqrt(math.pi)


def _exp_square(x):
    """exp(x^2), the square taken apart so that its rounding does not grow."""
    high = s.round_(x * 16.0) / 16.0
    return s.exp(high * high) * s.exp((x + high) * (x - high))


def _erfcx_formula(x):
    """exp(x^2) erfc(x); from 6 on the continued fraction of Laplace."""
    size = s.abs_(x)
    near = s.minimum(size, s.const(6, x.dtype))
    below = s.maximum(size, s.const(6, x.dtype))
    for k in range(9, 0, -1):
        below = size + (0.5 * k) / below
    inside = _exp_square(near) * s.erfc(near)
    right = s.select(s.lt(size, 6), inside, (1 / _ROOT_PI) / below)
    return s.select(s.lt(x, 0), _exp_square(x) * 2.0 - right, s.select(s.isnan(x), x, right))


def _erfcx_slope(y, x):
    return op.subtract(op.multiply(op.multiply(x, y), 2), 2 / _ROOT_PI)


_unary(
    "erfcx",
    _erfcx_formula,
    by_formula(_erfcx_formula),
    _erfcx_slope,
    "Complementary error function times exp(x^2), which neither overflows nor vanishes for x > 0.",
)


def _ndtr_formula(x):
    return s.erfc(x * -math.sqrt(0.5)) * 0.5


_unary(
    "ndtr",
    _ndtr_formula,
    by_formula(_ndtr_formula),
    lambda y, x: op.multiply(op.exp(op.multiply(op.square(x), -0.5)), 1 / math.sqrt(2 * math.pi)),
    "Distribution function of the standard normal distribution.",
)


def _log_ndtr_formula(x):
    z = x * -math.sqrt(0.5)
    low = s.log(_erfcx_formula(s.maximum(z, s.const(0, x.dtype))) * 0.5) - x * x * 0.5
    return s.select(s.lt(x, -1), low, s.log1p(s.erfc(-z) * -0.5))


_unary(
    "log_ndtr",
    _log_ndtr_formula,
    by_formula(_log_ndtr_formula),
    lambda y, x: op.divide(math.sqrt(2 / math.pi), op.erfcx(op.multiply(x, -math.sqrt(0.5)))),
    "Logarithm of the distribution function of the standard normal, without underflow.",
)


def _logit_formula(p):
    """log(p / (1 - p)); near 1/2 by the distance from it."""
    middle = s.log1p((p - 0.5) * 2.0 / (1.0 - p))
    return s.select((p > 0.3) & (p < 0.65), middle, s.log(p) - s.log1p(-p))


_unary(
    "logit",
    _logit_formula,
    by_formula(_logit_formula),
    lambda y, p: op.divide(1, op.multiply(p, op.subtract(1, p))),
    "Logarithm of the odds, log(p / (1 - p)), the inverse of expit.",
)


def _log1mexp_formula(x):
    """log(1 - exp(x)), by Maechler's choice between two forms."""
    return s.select(x > -math.log(2), s.log(-s.expm1(x)), s.log1p(-s.exp(x)))


_unary(
    "log1mexp",
    _log1mexp_formula,
    by_formula(_log1mexp_formula),
    lambda y, x: op.divide(-1, op.expm1(op.negative(x))),
    "log(1 - exp(x)) for x <= 0, exact at both ends.",
)


def _entr_formula(x):
    inside = s.select(s.eq(x, 0), s.const(0, x.dtype), -(x * s.log(x)))
    return s.select(s.lt(x, 0), s.const(-math.inf, x.dtype), inside)


_unary(
    "entr",
    _entr_formula,
    by_formula(_entr_formula),
    lambda y, x: op.subtract(-1, op.log(x)),
    "Entropy -x log(x), 0 at 0, -inf below.",
)


def _rel_entr_formula(x, y):
    inside = x * s.log(x / y)
    zero = s.eq(x, 0) & s.le(s.const(0, y.dtype), y)
    outside = s.const(math.inf, x.dtype)
    bad = s.isnan(x) | s.isnan(y)
    inside = s.select((x > 0) & (y > 0) | bad, inside, outside)
    return s.select(zero, s.const(0, x.dtype), inside)


elementwise(
    "rel_entr",
    formula=_rel_entr_formula,
    reference=by_formula(_rel_entr_formula),
    accepts=REAL,
    vjp=lambda g, out, x, y: (
        op.absorb(g, op.add(op.log(op.divide(x, y)), 1)),
        op.absorb(g, op.negative(_ratio(x, y))),
    ),
    doc="Relative entropy x log(x / y), 0 where x is 0, inf outside.",
)


def _expit_formula(x):
    e = s.exp(-s.abs_(x))
    return s.select(s.lt(x, 0), e / (e + 1), s.const(1, x.dtype) / (e + 1))


def _expit(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e / (e + 1), 1 / (e + 1))


_unary(
    "expit",
    _expit_formula,
    _expit,
    lambda y, x: op.multiply(y, op.expit(op.negative(x))),
    "Logistic sigmoid 1 / (1 + exp(-x)).",
)


def _softplus_formula(x):
    return s.maximum(x, 0) + s.log1p(s.exp(-s.abs_(x)))


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


_unary(
    "softplus",
    _softplus_formula,
    _softplus,
    lambda y, x: op.expit(x),
    "log(1 + exp(x)), without overflow.",
)
_unary(
    "log_expit",
    lambda x: -_softplus_formula(-x),
    lambda x: -_softplus(-x),
    lambda y, x: op.expit(op.negative(x)),
    "Logarithm of the logistic sigmoid.",
)


def _logaddexp_formula(a, b):
    equal = s.eq(a, b)
    return s.select(equal, a + math.log(2), s.maximum(a, b) + s.log1p(s.exp(-s.abs_(a - b))))


def _logaddexp_vjp(g, y, a, b):
    def side(p, q):
        return op.where(op.equal(p, q), 0.5, op.expit(op.subtract(p, q)))

    return op.absorb(g, side(a, b)), op.absorb(g, side(b, a))


elementwise(
    "logaddexp",
    formula=_logaddexp_formula,
    reference=np.logaddexp,
    accepts=REAL,
    vjp=_logaddexp_vjp,
    facts=frozenset({"commutative"}),
    doc="log(exp(x1) + exp(x2)), without overflow.",
)


def _xlogy_formula(x, y):
    return s.select(s.eq(x, 0) & s.not_(s.isnan(y)), s.const(0, x.dtype), x * s.log(y))


def _xlogy(x, y):
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


elementwise(
    "xlogy",
    formula=_xlogy_formula,
    reference=_xlogy,
    accepts=REAL,
    vjp=lambda g, out, x, y: (op.absorb(g, op.log(y)), op.absorb(g, _ratio(x, y))),
    doc="x * log(y), and 0 where x is 0.",
)


def _xlog1py_formula(x, y):
    return s.select(s.eq(x, 0) & s.not_(s.isnan(y)), s.const(0, x.dtype), x * s.log1p(y))


elementwise(
    "xlog1py",
    formula=_xlog1py_formula,
    reference=lambda x, y: np.where((x == 0) & ~np.isnan(y), 0, x * np.log1p(y)),
    accepts=REAL,
    vjp=lambda g, out, x, y: (op.absorb(g, op.log1p(y)), op.absorb(g, _ratio(x, op.add(y, 1)))),
    doc="x * log1p(y), and 0 where x is 0.",
)


def _ratio(x, y):
    """x / y, and 0 where x is 0."""
    return op.where(op.equal(x, 0), 0, op.divide(x, y))


# -- over an axis ---------------------------------------------------------------------------------


def _shifted(x, axis):
    """Return exp(x - m) and m, the largest element, or 0 where that is infinite."""
    top = op.stop_gradient(op.max(x, axis=axis, keepdims=True))
    top = op.where(op.isfinite(top), top, 0)
    return op.exp(op.subtract(x, top)), top


def _logsumexp(x, *, axis, keepdims):
    e, top = _shifted(x, axis)
    out = op.add(op.log(op.sum(e, axis=axis, keepdims=True)), top)
    return out if keepdims else op.squeeze(out, axis)


def _shares(x, axis):
    """The shifted softmax, 0 where every element is -inf."""
    e, _ = _shifted(x, axis)
    total = op.sum(e, axis=axis, keepdims=True)
    return op.where(op.equal(total, 0), 0, op.divide(e, total))


def _logsumexp_vjp(g, y, x, *, axis, keepdims):
    g = g if keepdims else op.expand_dims(g, axis=axis)
    return (op.absorb(g, _shares(x, axis)),)


def _over_axis(x, axis):
    x = variable_of(x)
    if x.type.dtype.kind == "b":
        raise DTypeError("takes numeric dtypes, got bool; cast with astype.")
    x = x if x.type.dtype.kind == "f" else op.astype(x, np.float64)
    return x, axes_of(x, axis)


@composite(expand=_logsumexp, vjp=_logsumexp_vjp, accepts=REAL)
def logsumexp(x, /, *, axis=None, keepdims=False):
    """log(sum(exp(x))) over axes, shifted by the largest element; of -inf alone it is -inf."""
    x, axis = _over_axis(x, axis)
    return (x,), {"axis": axis, "keepdims": bool(keepdims)}


def _softmax(x, *, axis):
    e, _ = _shifted(x, axis)
    return op.divide(e, op.sum(e, axis=axis, keepdims=True))


def _softmax_vjp(g, y, x, *, axis):
    weighted = op.absorb(g, y)
    inner = op.sum(weighted, axis=axis, keepdims=True)
    return (op.subtract(weighted, op.absorb(inner, y)),)


@composite(expand=_softmax, vjp=_softmax_vjp, accepts=REAL)
def softmax(x, /, *, axis=None):
    """exp(x) over its sum along axes."""
    x, axis = _over_axis(x, axis)
    return (x,), {"axis": axis}


def _log_softmax(x, *, axis):
    return op.subtract(x, op.logsumexp(x, axis=axis, keepdims=True))


def _log_softmax_vjp(g, y, x, *, axis):
    total = op.sum(g, axis=axis, keepdims=True)
    return (op.subtract(g, op.absorb(total, op.exp(y))),)


@composite(expand=_log_softmax, vjp=_log_softmax_vjp, accepts=REAL)
def log_softmax(x, /, *, axis=None):
    """Logarithm of the softmax, without overflow."""
    x, axis = _over_axis(x, axis)
    return (x,), {"axis": axis}
