"""Elementwise functions of the standard. Source: Array API standard 2025.12, elementwise functions.

Each declaration holds the scalar formula, the NumPy reference and the derivative; broadcasting,
dtypes, batching, named dims and all backends follow from the kind.
"""

import math

import numpy as np

from lazyarr.errors import BoundsError, DTypeError, MissingDataError
from lazyarr.graph import numeric
from lazyarr.graph import scalar as s
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.node import Variable
from lazyarr.graph.op import Check
from lazyarr.graph.ops._declare import composite, elementwise, no_gradient, operands_of
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.registry import op

FLOATING = "floating-point"
REAL_FLOATING = "real floating-point"
BOOLEAN = no_gradient("the result is boolean, so it carries no derivative")
INTEGER = no_gradient("it works on integers, which carry no derivative")


def _flat(g, y, *xs):
    """Piecewise constant: the derivative is 0 everywhere."""
    return (None,) * len(xs)


def _unary(name, formula, reference, partial, doc, accepts=FLOATING, **fields):
    """Declare f(x) from its partial derivative as a function of (y, x)."""
    return elementwise(
        name,
        formula=formula,
        reference=reference,
        accepts=accepts,
        vjp=lambda g, y, x: (op.absorb(g, partial(y, x)),),
        doc=doc,
        **fields,
    )


def _log(x):
    """Natural logarithm of an operand, which may be a Python number."""
    if x.__class__ is Variable:
        return op.log(x)
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


# -- the product of a cotangent and a partial derivative ------------------------------------------


def _absorb_formula(g, d):
    product = g * d
    one_is_zero = s.eq(g, 0) | s.eq(d, 0)
    return s.select(s.ne(product, product) & one_is_zero, s.const(0, product.dtype), product)


def _absorb_reference(g, d):
    product = np.multiply(g, d)
    return np.where(np.isnan(product) & ((g == 0) | (d == 0)), np.zeros((), product.dtype), product)


elementwise(
    "absorb",
    formula=_absorb_formula,
    reference=_absorb_reference,
    accepts="numeric",
    vjp=lambda h, y, g, d: (op.absorb(h, d), op.absorb(h, g)),
    facts=frozenset({"commutative", "bilinear"}),
    public=False,
    doc="Product that is 0 when either factor is 0, even if the other is infinite or NaN.",
)

elementwise(
    "stop_gradient",
    formula=lambda x: x,
    reference=lambda x: x,
    vjp=_flat,
    jvp="zero",
    public=False,
    doc="The value itself, which derivatives take for a constant.",
)

# -- arithmetic -----------------------------------------------------------------------------------

elementwise(
    "add",
    formula=s.add,
    reference=np.add,
    accepts="numeric",
    vjp=lambda g, y, x1, x2: (g, g),
    facts=frozenset({"commutative", "associative"}),
    doc="Sum of two arrays.",
)
elementwise(
    "subtract",
    formula=s.sub,
    reference=np.subtract,
    accepts="numeric",
    vjp=lambda g, y, x1, x2: (g, op.negative(g)),
    doc="Difference of two arrays.",
)
elementwise(
    "multiply",
    formula=s.mul,
    reference=np.multiply,
    accepts="numeric",
    vjp=lambda g, y, x1, x2: (op.absorb(g, x2), op.absorb(g, x1)),
    facts=frozenset({"commutative", "associative", "bilinear"}),
    doc="Product of two arrays.",
)


def _divide_vjp(g, y, x1, x2):
    """The cotangent of the divisor reuses that of the dividend: no second division."""
    gx = op.absorb(g, op.divide(1, x2))
    return gx, op.negative(op.absorb(gx, y))


elementwise(
    "divide",
    formula=s.div,
    reference=np.true_divide,
    accepts=FLOATING,
    vjp=_divide_vjp,
    doc="Quotient of two arrays; integers are divided as float64.",
)
elementwise(
    "floor_divide",
    formula=s.floordiv,
    reference=numeric.floor_divide,
    accepts="real numeric",
    vjp=_flat,
    doc="Quotient rounded down; an integer divided by 0 gives 0.",
)
elementwise(
    "remainder",
    formula=s.mod,
    reference=numeric.remainder,
    accepts="real numeric",
    vjp=lambda g, y, x1, x2: (g, op.absorb(g, op.negative(op.floor(op.divide(x1, x2))))),
    doc="Remainder with the sign of the divisor; an integer modulo 0 gives 0.",
)


def _pow_prepare(x1, x2, /):
    x1, x2 = operands_of(x1, x2)
    integer = x1.__class__ is Variable and x1.type.dtype.kind in "iu"
    if integer and x2.__class__ is int and x2 < 0:
        raise DTypeError(
            f"pow: an integer array to the negative power {x2} has no integer result; "
            "cast the array to a floating dtype first."
        )
    return (x1, x2), {}


def _pow_vjp(g, y, x, p):
    if p.__class__ is int or (p.__class__ is float and p.is_integer() and abs(p) < 2**31):
        power = int(p)
        if power in (0, 1, 2):
            return (None if power == 0 else g if power == 1 else op.absorb(g, op.multiply(x, 2)),
                    None)  # fmt: skip
    zero = op.equal(p, 0) if p.__class__ is Variable else None
    dx = op.multiply(op.pow(x, op.subtract(p, 1) if p.__class__ is Variable else p - 1), p)
    dx = dx if zero is None else op.where(zero, 0, dx)
    dp = None
    if p.__class__ is Variable:
        rising = op.greater(op.real(p) if p.type.dtype.kind == "c" else p, 0)
        base_zero = op.logical_and(op.equal(x, 0), rising)
        if y.type.dtype.kind == "c":
            x = op.astype(x, y.type.dtype)
        dp = op.absorb(g, op.where(base_zero, 0, op.multiply(y, _log(x))))
    return op.absorb(g, dx), dp


elementwise(
    "pow",
    prepare=_pow_prepare,
    formula=s.pow_,
    reference=numeric.power,
    accepts="numeric",
    vjp=_pow_vjp,
    doc="Power; a negative Python integer exponent of an integer array is refused.",
)
elementwise(
    "negative",
    formula=s.neg,
    reference=np.negative,
    accepts="numeric",
    vjp=lambda g, y, x: (op.negative(g),),
    facts=frozenset({"linear"}),
    doc="The array with its sign changed.",
)
elementwise(
    "positive",
    formula=lambda x: x,
    reference=np.positive,
    accepts="numeric",
    vjp=lambda g, y, x: (g,),
    facts=frozenset({"linear"}),
    doc="The array itself.",
)


def _abs_jvp(tangents, y, x):
    (t,) = tangents
    along = op.absorb(t, conjugate(op.sign(x)))
    return op.real(along) if x.type.dtype.kind == "c" else along


def _turned(g, y, x, out):
    """A sign is piecewise constant for real numbers, an angle alone for complex ones."""
    if x.type.dtype.kind != "c":
        return None
    turn = op.imag(op.multiply(g, y))
    rate = op.where(op.equal(x, 0), 0, op.divide(turn, op.abs(x)))
    return op.multiply(op.multiply(rate, 1j), out)


elementwise(
    "abs",
    formula=s.abs_,
    reference=np.abs,
    accepts="numeric",
    result="real",
    vjp=lambda g, y, x: (op.absorb(g, conjugate(op.sign(x))),),
    jvp=_abs_jvp,
    doc="Absolute value; its derivative at 0 is 0.",
)
elementwise(
    "sign",
    formula=s.sign,
    reference=numeric.sign,
    accepts="numeric",
    vjp=lambda g, y, x: (_turned(g, y, x, conjugate(y)),),
    jvp=lambda tangents, y, x: _turned(tangents[0], conjugate(y), x, y),
    doc="-1, 0 or 1 by the sign of the elements; x / abs(x) for complex ones.",
)
_unary(
    "square",
    lambda x: x * x,
    np.square,
    lambda y, x: op.multiply(x, 2),
    "The square.",
    accepts="numeric",
)
_unary(
    "sqrt",
    s.sqrt,
    np.sqrt,
    lambda y, x: op.divide(0.5, y),
    "Square root; its derivative at 0 is inf.",
)

# -- exponentials, logarithms, trigonometric and hyperbolic functions -----------------------------

_unary("exp", s.exp, np.exp, lambda y, x: y, "Exponential.")
_unary("expm1", s.expm1, numeric.expm1, lambda y, x: op.exp(x), "exp(x) - 1, accurate near 0.")
_unary("log", s.log, np.log, lambda y, x: op.divide(1, x), "Natural logarithm.")
_unary(
    "log1p",
    s.log1p,
    np.log1p,
    lambda y, x: op.divide(1, op.add(x, 1)),
    "log(1 + x), accurate near 0.",
)
_unary(
    "log2",
    s.log2,
    np.log2,
    lambda y, x: op.divide(1 / math.log(2), x),
    "Logarithm to base 2.",
)
_unary(
    "log10",
    s.log10,
    np.log10,
    lambda y, x: op.divide(1 / math.log(10), x),
    "Logarithm to base 10.",
)
_unary("sin", s.sin, np.sin, lambda y, x: op.cos(x), "Sine of an angle in radians.")
_unary("cos", s.cos, np.cos, lambda y, x: op.negative(op.sin(x)), "Cosine of an angle in radians.")
_unary(
    "tan",
    s.tan,
    np.tan,
    lambda y, x: op.add(op.multiply(y, y), 1),
    "Tangent of an angle in radians.",
)
_unary("sinh", s.sinh, np.sinh, lambda y, x: op.cosh(x), "Hyperbolic sine.")
_unary("cosh", s.cosh, np.cosh, lambda y, x: op.sinh(x), "Hyperbolic cosine.")
_unary(
    "tanh",
    s.tanh,
    numeric.tanh,
    lambda y, x: op.subtract(1, op.multiply(y, y)),
    "Hyperbolic tangent.",
)
_unary(
    "asin",
    s.asin,
    np.arcsin,
    lambda y, x: op.divide(1, op.sqrt(op.multiply(op.subtract(1, x), op.add(x, 1)))),
    "Inverse sine.",
)
_unary(
    "acos",
    s.acos,
    np.arccos,
    lambda y, x: op.divide(-1, op.sqrt(op.multiply(op.subtract(1, x), op.add(x, 1)))),
    "Inverse cosine.",
)
_unary(
    "atan",
    s.atan,
    np.arctan,
    lambda y, x: op.divide(1, op.add(op.multiply(x, x), 1)),
    "Inverse tangent.",
)

# -- rounding -------------------------------------------------------------------------------------

for _name, _formula, _reference, _accepts, _doc in (
    ("floor", s.floor, np.floor, "real numeric", "Largest integer not above x."),
    ("ceil", s.ceil, np.ceil, "real numeric", "Smallest integer not below x."),
    ("trunc", s.trunc, np.trunc, "real numeric", "x rounded towards 0."),
    ("round", s.round_, np.rint, "numeric", "x rounded to the nearest integer, halves to even."),
):
    elementwise(
        _name,
        formula=lambda x, f=_formula: f(x) if x.dtype.kind in "fc" else x,
        prepare=lambda x, /: (operands_of(x), {}),
        reference=lambda x, f=_reference: f(x) if x.dtype.kind in "fc" else x,
        accepts=_accepts,
        vjp=_flat,
        doc=_doc,
    )

# -- comparisons, logic, tests --------------------------------------------------------------------

for _name, _formula, _reference, _accepts in (
    ("less", s.lt, np.less, "real"),
    ("less_equal", s.le, np.less_equal, "real"),
    ("greater", lambda a, b: s.lt(b, a), np.greater, "real"),
    ("greater_equal", lambda a, b: s.le(b, a), np.greater_equal, "real"),
    ("equal", s.eq, np.equal, "all"),
    ("not_equal", s.ne, np.not_equal, "all"),
):
    elementwise(
        _name,
        formula=_formula,
        reference=_reference,
        accepts=_accepts,
        result="bool",
        vjp=BOOLEAN,
        doc=f"Elementwise comparison: {_name.replace('_', ' ')}.",
    )

for _name, _formula, _reference in (
    ("logical_and", s.and_, np.logical_and),
    ("logical_or", s.or_, np.logical_or),
    ("logical_xor", s.xor, np.logical_xor),
):
    elementwise(
        _name,
        formula=_formula,
        reference=_reference,
        accepts="boolean",
        result="bool",
        vjp=BOOLEAN,
        facts=frozenset({"commutative"}),
        doc=f"{_name.replace('_', ' ').capitalize()} of boolean arrays.",
    )
elementwise(
    "logical_not",
    formula=s.not_,
    reference=np.logical_not,
    accepts="boolean",
    vjp=BOOLEAN,
    doc="Logical not of a boolean array.",
)
for _name, _formula, _reference in (
    ("bitwise_and", s.and_, np.bitwise_and),
    ("bitwise_or", s.or_, np.bitwise_or),
    ("bitwise_xor", s.xor, np.bitwise_xor),
):
    elementwise(
        _name,
        formula=_formula,
        reference=_reference,
        accepts="integer or boolean",
        vjp=INTEGER,
        facts=frozenset({"commutative"}),
        doc=f"{_name.replace('_', ' ').capitalize()} of integers or booleans.",
    )
elementwise(
    "bitwise_invert",
    formula=s.not_,
    reference=np.invert,
    accepts="integer or boolean",
    vjp=INTEGER,
    doc="Every bit changed.",
)


def _float_test(test, otherwise):
    """A test of floats, constant for integers and booleans."""
    return lambda x: test(x) if x.dtype.kind in "fc" else s.const(otherwise, s.BOOL)


for _name, _formula, _reference in (
    ("isnan", _float_test(s.isnan, False), np.isnan),
    ("isinf", _float_test(s.isinf, False), np.isinf),
    ("isfinite", _float_test(s.isfinite, True), np.isfinite),
):
    elementwise(
        _name,
        formula=_formula,
        reference=_reference,
        result="bool",
        vjp=BOOLEAN,
        doc=f"True where the elements are {_name[2:]}.",
    )

# -- choosing -------------------------------------------------------------------------------------


def _take_side(condition, g):
    """The cotangent where a condition holds, half of it where both sides are equal."""
    return op.where(condition, g, 0)


def _extreme_vjp(first_wins):
    def vjp(g, y, x1, x2):
        half = op.where(op.equal(x1, x2), op.multiply(g, 0.5), 0)
        return (
            op.where(first_wins(x1, x2), g, half),
            op.where(first_wins(x2, x1), g, half),
        )

    return vjp


elementwise(
    "maximum",
    formula=s.maximum,
    reference=np.maximum,
    accepts="real numeric",
    vjp=_extreme_vjp(lambda a, b: op.greater(a, b)),
    facts=frozenset({"commutative", "associative", "idempotent"}),
    since="2023.12",
    doc="The larger of two elements; NaN propagates, ties share the derivative.",
)
elementwise(
    "minimum",
    formula=s.minimum,
    reference=np.minimum,
    accepts="real numeric",
    vjp=_extreme_vjp(lambda a, b: op.less(a, b)),
    facts=frozenset({"commutative", "associative", "idempotent"}),
    since="2023.12",
    doc="The smaller of two elements; NaN propagates, ties share the derivative.",
)
elementwise(
    "clip_low",
    formula=s.maximum,
    reference=np.maximum,
    accepts="real numeric",
    vjp=lambda g, y, x, low: (
        _take_side(op.greater_equal(x, low), g),
        _take_side(op.less(x, low), g),
    ),
    public=False,
    doc="x, but not below a bound; at the bound the derivative belongs to x.",
)
elementwise(
    "clip_high",
    formula=s.minimum,
    reference=np.minimum,
    accepts="real numeric",
    vjp=lambda g, y, x, high: (
        _take_side(op.less_equal(x, high), g),
        _take_side(op.greater(x, high), g),
    ),
    public=False,
    doc="x, but not above a bound; at the bound the derivative belongs to x.",
)


def _clip(x, *bounds, low, high):
    bounds = list(bounds)
    if low:
        x = op.clip_low(x, bounds.pop(0))
    return op.clip_high(x, bounds.pop(0)) if high else op.positive(x) if not low else x


@composite(expand=_clip, accepts="real numeric", facts=frozenset({"weak_numbers"}))
def clip(x, /, min=None, max=None):
    """x kept within bounds, either of which may be None; at a bound the derivative is x's."""
    operands = operands_of(x, *(b for b in (min, max) if b is not None))
    return operands, {"low": min is not None, "high": max is not None}


def _where_prepare(condition, x1, x2, /):
    condition, x1, x2 = operands_of(condition, x1, x2)
    if condition.__class__ is Variable and condition.type.dtype != np.bool_:
        raise DTypeError(
            f"where: the condition is {condition.type.dtype}, not bool; write `condition != 0`."
        )
    return (condition, x1, x2), {}


elementwise(
    "where",
    prepare=_where_prepare,
    formula=s.select,
    reference=np.where,
    promoted=(1, 2),
    vjp=lambda g, y, c, x1, x2: (None, op.where(c, g, 0), op.where(c, 0, g)),
    doc="x1 where a condition holds, x2 elsewhere; no NaN passes from the branch not taken.",
)


def _astype_prepare(x, dtype, /, *, copy=True):
    (x,), dtype = operands_of(x), as_dtype(dtype)
    if x.type.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"astype: {x.type.dtype} to {dtype} would drop the imaginary part; "
                         "write real(x) or abs(x) first.")  # fmt: skip
    return (x,), {"dtype": dtype}


def _cast_back(g, x):
    """A cotangent in the dtype of an operand."""
    dtype = x.type.dtype
    if g.type.dtype.kind == "c" and dtype.kind == "f":
        g = op.real(g)
    return op.astype(g, dtype) if dtype.kind in "fc" else None


elementwise(
    "astype",
    prepare=_astype_prepare,
    formula=lambda x, *, dtype: s.cast(x, dtype),
    reference=lambda x, *, dtype: x.astype(dtype),
    result="given",
    vjp=lambda g, y, x, *, dtype: (_cast_back(g, x) if dtype.kind in "fc" else None,),
    jvp="linear",
    doc="The elements in another dtype.",
)

elementwise(
    "wrap_index",
    formula=lambda i, n: s.select(s.lt(i, 0), i + n, i),
    reference=lambda i, n: np.where(i < 0, i + n, i),
    accepts="integer",
    vjp=INTEGER,
    check=Check(
        lambda i, n: s.le(-n, i) & s.lt(i, n),
        BoundsError,
        "index {0} is out of bounds for an axis of size {1}",
    ),
    public=False,
    doc="An index counted from the start; it must be within an axis of a size.",
)

elementwise(
    "place_among",
    formula=lambda place, there: place,
    reference=lambda place, there: np.broadcast_arrays(place, there)[0].copy(),
    promoted=(0,),
    accepts="integer",
    vjp=INTEGER,
    check=Check(
        lambda place, there: there,
        MissingDataError,
        "the largest or smallest of NaN alone has no position; fill NaN first (with fillna), or "
        "pass skipna=False for the position of the first NaN",
    ),
    public=False,
    doc="A position among elements, of which some must be there.",
)
