"""More elementwise functions of floating numbers. Source: Array API standard 2025.12, elementwise.

Inverse hyperbolic functions, angles and lengths of pairs, and what looks at the bits of a float.
"""

import numpy as np

from lazyarr.graph import numeric
from lazyarr.graph import scalar as s
from lazyarr.graph.ops._declare import elementwise, no_gradient
from lazyarr.graph.registry import op

FLOATING = "floating-point"
REAL_FLOATING = "real floating-point"


def _unary(name, formula, reference, partial, doc):
    """Declare f(x) from its partial derivative as a function of (y, x)."""
    elementwise(
        name,
        formula=formula,
        reference=reference,
        accepts=FLOATING,
        vjp=lambda g, y, x: (op.absorb(g, partial(y, x)),),
        doc=doc,
    )


def _one_over_roots(a, b):
    """1 / (sqrt(a) sqrt(b)), the branches of a complex root taken one by one."""
    return op.divide(1, op.multiply(op.sqrt(a), op.sqrt(b)))


_unary(
    "acosh",
    s.acosh,
    numeric.acosh,
    lambda y, x: _one_over_roots(op.subtract(x, 1), op.add(x, 1)),
    "Inverse hyperbolic cosine.",
)
_unary(
    "asinh",
    s.asinh,
    numeric.asinh,
    lambda y, x: op.divide(1, op.sqrt(op.add(op.multiply(x, x), 1))),
    "Inverse hyperbolic sine.",
)
_unary(
    "atanh",
    s.atanh,
    numeric.atanh,
    lambda y, x: op.divide(1, op.multiply(op.subtract(1, x), op.add(x, 1))),
    "Inverse hyperbolic tangent.",
)


def _reciprocal(x):
    """1 / x; a complex 0 has no direction."""
    quotient = s.div(s.const(1, x.dtype), x)
    if x.dtype.kind != "c":
        return quotient
    return s.select(s.eq(x, 0), s.const(complex(np.nan, np.nan), x.dtype), quotient)


_unary(
    "reciprocal",
    _reciprocal,
    np.reciprocal,
    lambda y, x: op.negative(op.multiply(y, y)),
    "The reciprocal, 1 / x.",
)


def _zero_at(condition, value):
    """A partial derivative, and 0 where a condition holds."""
    return op.where(condition, 0, value)


def _atan2_vjp(g, y, x1, x2):
    """x2 / r^2 and -x1 / r^2, 0 at the origin; the lengths are taken by hypot, without overflow."""
    r = op.hypot(x1, x2)
    origin = op.equal(r, 0)
    return (
        op.absorb(g, _zero_at(origin, op.divide(op.divide(x2, r), r))),
        op.absorb(g, _zero_at(origin, op.negative(op.divide(op.divide(x1, r), r)))),
    )


elementwise(
    "atan2",
    formula=s.atan2,
    reference=np.arctan2,
    accepts=REAL_FLOATING,
    vjp=_atan2_vjp,
    doc="Angle of the point (x2, x1), from -pi to pi; its derivative at the origin is 0.",
)


def _hypot_vjp(g, y, x1, x2):
    origin = op.equal(y, 0)
    return (
        op.absorb(g, _zero_at(origin, op.divide(x1, y))),
        op.absorb(g, _zero_at(origin, op.divide(x2, y))),
    )


elementwise(
    "hypot",
    formula=s.hypot,
    reference=np.hypot,
    accepts=REAL_FLOATING,
    vjp=_hypot_vjp,
    facts=frozenset({"commutative"}),
    since="2023.12",
    doc="sqrt(x1**2 + x2**2) without overflow; its derivative at the origin is 0.",
)


def _copysign_vjp(g, y, x1, x2):
    same = op.equal(op.signbit(x1), op.signbit(x2))
    return op.where(same, g, op.negative(g)), None


elementwise(
    "copysign",
    formula=s.copysign,
    reference=np.copysign,
    accepts=REAL_FLOATING,
    vjp=_copysign_vjp,
    since="2023.12",
    doc="The magnitude of x1 with the sign of x2.",
)
elementwise(
    "nextafter",
    formula=s.nextafter,
    reference=np.nextafter,
    accepts=REAL_FLOATING,
    vjp=lambda g, y, x1, x2: (g, None),
    since="2024.12",
    doc="The next floating number after x1 towards x2.",
)
elementwise(
    "signbit",
    formula=s.signbit,
    reference=np.signbit,
    accepts=REAL_FLOATING,
    result="bool",
    vjp=no_gradient("the result is boolean, so it carries no derivative"),
    since="2023.12",
    doc="True where the sign bit is set, also of -0.0 and NaN.",
)

# -- shifts ---------------------------------------------------------------------------------------


def _within(x, n):
    """Whether a shift moves by fewer bits than there are, and such a shift."""
    bits = x.dtype.itemsize * 8
    inside = s.lt(n, bits)
    if x.dtype.kind == "i":
        inside = inside & s.le(s.const(0, n.dtype), n)
    return inside, s.select(inside, n, s.const(0, n.dtype))


def _shift_left(x, n):
    inside, n = _within(x, n)
    return s.select(inside, s.shl(x, n), s.const(0, x.dtype))


def _shift_right(x, n):
    inside, n = _within(x, n)
    nothing = s.const(0, x.dtype)
    if x.dtype.kind == "i":
        nothing = s.select(s.lt(x, nothing), s.const(-1, x.dtype), nothing)
    return s.select(inside, s.shr(x, n), nothing)


for _name, _formula, _reference, _doc in (
    ("bitwise_left_shift", _shift_left, np.left_shift, "Bits of x1 moved left by x2 places."),
    (
        "bitwise_right_shift",
        _shift_right,
        np.right_shift,
        "Bits of x1 moved right by x2 places; the sign is kept.",
    ),
):
    elementwise(
        _name,
        formula=_formula,
        reference=_reference,
        accepts="integer",
        vjp=no_gradient("it works on integers, which carry no derivative"),
        doc=_doc,
    )
