"""Algebra: equations that hold bit for bit, special values included.

So `x + 0` is not `x` (-0.0 + 0 is +0.0), but `x - 0` is; `x * 0` is not 0. Rules with the tag
`rounding` may change the last digits, rules with `fast_math` also NaN, infinities and signs of
zero: those are off unless asked for. Complex products with a real number are left alone: their
special values differ.
"""

import math
from collections.abc import Container
from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import number, of_kind, operand, p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet, rebuilt
from lazyarr.passes.fold import known

ALGEBRA = RuleSet("algebra")
rule = ALGEBRA.rule
x, y, z = var("x"), var("y"), var("z")
a, b, d = operand("a"), operand("b"), operand("d")
cond = var("cond")


def like(value: Variable, node: Variable) -> Variable:
    """Return a value cast and broadcast to the type of the node it stands in for."""
    if value.dtype != node.dtype:
        value = op.astype(value, node.dtype)
    return value if value.shape == node.shape else op.broadcast_to(value, node.shape)


def spread(value: Variable, node: Variable) -> Variable | None:
    """Return a value broadcast to the shape of a node, None where the dtypes differ."""
    return like(value, node) if value.dtype == node.dtype else None


def is_real(node: Variable) -> bool:
    """Tell whether a node holds real numbers."""
    return bool(node.dtype.kind in "iuf")


def is_float(node: Variable) -> bool:
    """Tell whether a node holds real floating-point numbers."""
    return bool(node.dtype.kind == "f")


def finite_nonzero(c: Any) -> bool:
    """Tell whether a number is neither 0, NaN nor infinite."""
    return c.__class__ in (int, float) and c != 0 and math.isfinite(c)


def real_number(c: Any) -> bool:
    """Tell whether a number is an int or a float."""
    return c.__class__ in (int, float)


def power_of_two(c: Any) -> bool:
    """Tell whether division by a number is multiplication by its inverse, exactly.

    >>> power_of_two(0.25), power_of_two(3)
    (True, False)
    """
    return finite_nonzero(c) and abs(math.frexp(c)[0]) == 0.5 and abs(math.frexp(c)[1]) < 64


def minus(c: Any) -> Any:
    """Return -c, with -0.0 for an integer 0."""
    return -float(c) if c == 0 else -c


c = number("c", real_number)

# -- identities -----------------------------------------------------------------------------------


@rule(p.add(x, -0.0))
def add_negative_zero(x: Variable, node: Variable) -> Variable | None:
    """x + (-0.0) -> x for real x"""
    return like(x, node) if is_real(node) else None


@rule(p.add(x, 0))
def add_zero(x: Variable, node: Variable) -> Variable | None:
    """x + 0 -> x for integers"""
    return like(x, node) if node.dtype.kind in "iu" else None


@rule(p.add(x, 0), "fast_math")
def add_zero_fast(x: Variable, node: Variable) -> Variable:
    """x + 0 -> x, which loses -0.0 + 0 = +0.0"""
    return like(x, node)


@rule(p.multiply(x, 0), "fast_math")
def times_zero_fast(node: Variable) -> Variable:
    """x * 0 -> 0, which loses NaN and infinities"""
    return op.full(node.shape, node.dtype.type(0).item(), dtype=node.dtype)  # type: ignore[no-any-return]


@rule(p.subtract(x, 0))
def subtract_zero(x: Variable, node: Variable) -> Variable:
    """x - 0 -> x"""
    return like(x, node)


@rule(p.multiply(x, 1))
def times_one(x: Variable, node: Variable) -> Variable | None:
    """x * 1 -> x for real x"""
    return like(x, node) if is_real(node) else None


@rule(p.divide(x, 1))
def over_one(x: Variable, node: Variable) -> Variable | None:
    """x / 1 -> x for real x"""
    return like(x, node) if is_real(node) else None


@rule(p.positive(x))
def plus(x: Variable) -> Variable:
    """+x -> x"""
    return x


@rule(p.stop_gradient(x))
def stopped(x: Variable) -> Variable:
    """stop_gradient(x) -> x, once derivatives are taken"""
    return x


# -- signs ----------------------------------------------------------------------------------------


@rule(p.negative(p.negative(x)))
def minus_minus(x: Variable) -> Variable:
    """-(-x) -> x"""
    return x


@rule(p.multiply(x, -1))
def times_minus_one(x: Variable, node: Variable) -> Variable | None:
    """x * -1 -> -x for real x"""
    return op.negative(like(x, node)) if is_real(node) else None


@rule(p.divide(x, -1))
def over_minus_one(x: Variable, node: Variable) -> Variable | None:
    """x / -1 -> -x for real x"""
    return op.negative(like(x, node)) if is_real(node) else None


@rule(p.add(a, p.negative(y).named("inner")))
def plus_minus(a: Any, y: Variable, inner: Variable, node: Variable) -> Variable | None:
    """a + (-y) -> a - y"""
    return op.subtract(a, y) if inner.dtype == node.dtype else None


@rule(p.subtract(a, p.negative(y).named("inner")))
def minus_negative(a: Any, y: Variable, inner: Variable, node: Variable) -> Variable | None:
    """a - (-y) -> a + y"""
    return op.add(a, y) if inner.dtype == node.dtype else None


@rule(p.multiply(p.negative(x).named("m"), p.negative(y).named("n")))
def signs_cancel(x: Variable, y: Variable, m: Variable, n: Variable) -> Variable | None:
    """(-x) * (-y) -> x * y for real x, y of one dtype"""
    return op.multiply(x, y) if m.dtype == n.dtype and is_real(m) else None


@rule(p.negative(p.multiply(x, c)))
def minus_product(x: Variable, c: Any, node: Variable) -> Variable | None:
    """-(x * c) -> x * (-c) for floats"""
    return op.multiply(x, minus(c)) if is_float(node) and is_float(x) else None


@rule(p.multiply(p.negative(x), c))
def product_of_minus(x: Variable, c: Any, node: Variable) -> Variable | None:
    """(-x) * c -> x * (-c) for floats"""
    return op.multiply(x, minus(c)) if is_float(node) and is_float(x) else None


@rule(p.negative(p.divide(c, x)))
def minus_quotient(x: Variable, c: Any, node: Variable) -> Variable | None:
    """-(c / x) -> (-c) / x for floats"""
    return op.divide(minus(c), x) if is_float(node) and is_float(x) else None


@rule(p.abs(p.negative(x)))
def abs_of_minus(x: Variable) -> Variable | None:
    """abs(-x) -> abs(x) for signed x"""
    return op.abs(x) if x.dtype.kind != "u" else None


@rule(p.abs(p.abs(x).named("inner")))
def abs_of_abs(inner: Variable) -> Variable | None:
    """abs(abs(x)) -> abs(x) for real x"""
    return inner if is_real(inner) else None


@rule(p.abs(p.square(x).named("inner")))
def abs_of_square(inner: Variable) -> Variable | None:
    """abs(x^2) -> x^2 for floats (an integer square may wrap)"""
    return inner if is_float(inner) else None


# -- powers ---------------------------------------------------------------------------------------


@rule(p.multiply(x, x))
def square_of(x: Variable) -> Variable | None:
    """x * x -> x^2 for real x"""
    return op.square(x) if is_real(x) else None


@rule(p.square(p.abs(x)))
def square_of_abs(x: Variable) -> Variable | None:
    """abs(x)^2 -> x^2 for real x"""
    return op.square(x) if is_real(x) else None


@rule(p.square(p.negative(x)))
def square_of_minus(x: Variable) -> Variable | None:
    """(-x)^2 -> x^2 for real x"""
    return op.square(x) if is_real(x) else None


@rule(p.pow(x, 0))
def power_zero(node: Variable) -> Variable | None:
    """x ** 0 -> 1, also for NaN, for real x"""
    one = node.dtype.type(1).item()
    return op.full(node.shape, one, dtype=node.dtype) if is_real(node) else None


@rule(p.pow(x, 1))
def power_one(x: Variable, node: Variable) -> Variable | None:
    """x ** 1 -> x for real x"""
    return like(x, node) if is_real(node) else None


@rule(p.pow(x, 2), "rounding")
def power_two(x: Variable, node: Variable) -> Variable | None:
    """x ** 2 -> x^2 for real x"""
    return op.square(like(x, node)) if is_real(node) else None


@rule(p.pow(x, 3), "rounding")
def power_three(x: Variable, node: Variable) -> Variable | None:
    """x ** 3 -> x^2 * x for real x"""
    base = like(x, node)
    return op.multiply(op.square(base), base) if is_real(node) else None


@rule(p.pow(x, 4), "rounding")
def power_four(x: Variable, node: Variable) -> Variable | None:
    """x ** 4 -> (x^2)^2 for real x"""
    return op.square(op.square(like(x, node))) if is_real(node) else None


@rule(p.pow(x, -1), "rounding")
def power_minus_one(x: Variable, node: Variable) -> Variable | None:
    """x ** -1 -> 1 / x for floats"""
    return op.divide(1, like(x, node)) if is_float(node) else None


@rule(p.pow(x, 0.5), "rounding", "fast_math")
def power_half(x: Variable, node: Variable) -> Variable | None:
    """x ** 0.5 -> sqrt(x), which differs at -inf and -0.0"""
    return op.sqrt(like(x, node)) if is_float(node) else None


@rule(p.divide(x, number("c", power_of_two)))
def over_power_of_two(x: Variable, c: Any, node: Variable) -> Variable | None:
    """x / 2^k -> x * 2^-k for floats"""
    return op.multiply(x, 1.0 / c) if is_float(node) and abs(c) != 1 else None


# -- products of cotangents -----------------------------------------------------------------------


@rule(p.absorb(x, number("c", finite_nonzero)))
def absorb_number(x: Variable, c: Any) -> Variable:
    """absorb(x, c) -> x * c for a finite number c that is not 0"""
    return op.multiply(x, c)  # type: ignore[no-any-return]


def never_negative_zero(node: Any, assumed: Container[Any] = (), depth: int = 64) -> bool:
    """Tell whether no element of an operand can be -0.0: then adding +0.0 changes nothing.

    `assumed` holds nodes known to be so. A sum is -0.0 only where both of its operands are.
    """
    while depth and node.__class__ is Variable and node not in assumed and node.expr is not None:
        depth -= 1
        if node.dtype.kind == "c":
            return False
        if node.dtype.kind in "biu" or node.op.name in ("square", "exp", "abs", "expit"):
            return True
        if node.op.name in ("add_at", "take_add", "specify_shape", "broadcast_to", "reshape"):
            node = node.inputs[0]
        elif node.op.name == "add":
            return any(never_negative_zero(v, assumed, depth // 2) for v in node.inputs)
        else:
            break
    if node.__class__ is Variable and node in assumed:
        return True
    c = known(node)
    return c.__class__ in (bool, int, float) and (c != 0 or math.copysign(1, c) > 0)


def is_positive_zero(value: Any) -> bool:
    """Tell whether every element of an operand is known to be 0 and not -0.0."""
    c = known(value)
    return c.__class__ in (bool, int, float) and c == 0 and math.copysign(1, c) > 0


ZEROS = operand(None, is_positive_zero)
BASE = var("y", never_negative_zero)


@rule(p.add(BASE, p.add_at(ZEROS, x, ...).named("inner")), "accumulate")
def add_region(y: Variable, inner: Variable, node: Variable) -> Variable | None:
    """y + add_at(0, i, x) -> add_at(y, i, x) for y that is nowhere -0.0"""
    return accumulated(y, inner, node)


@rule(p.add(BASE, p.take_add(ZEROS, var("i"), x).named("inner")), "accumulate", "rounding")
def add_taken(y: Variable, inner: Variable, node: Variable) -> Variable | None:
    """y + take_add(0, i, x) -> take_add(y, i, x) for y that is nowhere -0.0; duplicates regroup"""
    return accumulated(y, inner, node)


def accumulated(base: Variable, inner: Variable, node: Variable) -> Variable | None:
    """Return an update of zeros as the same update of another array of the same type."""
    if base.type is not node.type or inner.type is not node.type:
        return None
    return rebuilt(inner, inner.call, [base, *inner.inputs[1:]])


# -- choices --------------------------------------------------------------------------------------


@rule(p.where(cond, a, a))
def same_choice(a: Any, node: Variable) -> Variable | None:
    """where(c, a, a) -> a"""
    return like(a, node) if a.__class__ is Variable else None


@rule(p.where(var("cond", lambda v: known(v) is True), a, b))
def first_choice(a: Any, node: Variable) -> Variable | None:
    """where(true, a, b) -> a"""
    return like(a, node) if a.__class__ is Variable else None


@rule(p.where(var("cond", lambda v: known(v) is False), a, b))
def second_choice(b: Any, node: Variable) -> Variable | None:
    """where(false, a, b) -> b"""
    return like(b, node) if b.__class__ is Variable else None


@rule(p.where(cond, p.where(cond, a, b).named("inner"), d))
def first_of_first(cond: Variable, a: Any, d: Any, inner: Variable, node: Variable) -> Any:
    """where(c, where(c, a, b), d) -> where(c, a, d)"""
    return spread(op.where(cond, a, d), node) if inner.dtype == node.dtype else None


@rule(p.where(cond, a, p.where(cond, b, d).named("inner")))
def second_of_second(cond: Variable, a: Any, d: Any, inner: Variable, node: Variable) -> Any:
    """where(c, a, where(c, b, d)) -> where(c, a, d)"""
    return spread(op.where(cond, a, d), node) if inner.dtype == node.dtype else None


@rule(p.where(p.logical_not(cond), a, b))
def negated_choice(cond: Variable, a: Any, b: Any) -> Variable:
    """where(not c, a, b) -> where(c, b, a)"""
    return op.where(cond, b, a)  # type: ignore[no-any-return]


@rule(p.logical_not(p.logical_not(x)))
def not_not(x: Variable) -> Variable:
    """not not x -> x"""
    return x


@rule(p.maximum(x, x))
def largest_of_same(x: Variable) -> Variable:
    """maximum(x, x) -> x"""
    return x


@rule(p.minimum(x, x))
def smallest_of_same(x: Variable) -> Variable:
    """minimum(x, x) -> x"""
    return x


# -- operands that broadcasting supplies ----------------------------------------------------------


@rule(of_kind("elementwise"))
def implicit_broadcast(node: Variable) -> Variable | None:
    """f(x, broadcast_to(y)) -> f(x, y) where the shape stays the same"""
    for i, v in enumerate(node.inputs):
        if v.__class__ is Variable and v.op is not None and v.op.name == "broadcast_to":
            inputs = [*node.inputs[:i], v.inputs[0], *node.inputs[i + 1 :]]
            new = rebuilt(node, node.call, inputs)
            if new.type is node.type and _sizes_known(v.inputs[0], v):
                return new
    return None


def _sizes_known(source: Variable, wide: Variable) -> bool:
    """Tell whether a broadcast is certain: each size stays or is 1, so that it checks nothing."""
    lead = wide.ndim - source.ndim
    return all(s == 1 or s == wide.shape[lead + i] for i, s in enumerate(source.shape))
