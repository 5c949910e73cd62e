"""Stabilize: replace an expression by one that keeps the digits an intermediate would lose.

Both sides are equal in exact arithmetic. Where the left side overflows, cancels or gives NaN only
because of an intermediate, the right side gives the exact value; it never turns a number into NaN.
The rules run on every tier, also before interpreting. Those with the tag `composite` make composite
ops, so they stand before the pass that expands them.
"""

import math
from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet

STABILIZE = RuleSet("stabilize")
rule = STABILIZE.rule
x, y = var("x"), var("y")


def one_float(node: Variable, *values: Variable) -> bool:
    """Tell whether values and node are real floats of one dtype, so that nothing is cast."""
    return bool(node.dtype.kind == "f") and all(v.dtype == node.dtype for v in values)


def fitting(out: Any, node: Variable) -> Any:
    """Return a result that has the type of its node, else None."""
    return out if out.type is node.type else None


# -- logarithms near 1 ----------------------------------------------------------------------------


@rule(p.log(p.add(1, x)))
def log_one_plus(x: Variable, node: Variable) -> Variable | None:
    """log(1 + x) -> log1p(x)"""
    return op.log1p(x) if one_float(node, x) else None


@rule(p.log(p.subtract(1, x)))
def log_one_minus(x: Variable, node: Variable) -> Variable | None:
    """log(1 - x) -> log1p(-x)"""
    return op.log1p(op.negative(x)) if one_float(node, x) else None


@rule(p.subtract(p.exp(x), 1))
def exp_minus_one(x: Variable, node: Variable) -> Variable | None:
    """exp(x) - 1 -> expm1(x)"""
    return op.expm1(x) if one_float(node, x) else None


@rule(p.add(p.exp(x), -1))
def exp_plus_minus_one(x: Variable, node: Variable) -> Variable | None:
    """exp(x) + (-1) -> expm1(x)"""
    return op.expm1(x) if one_float(node, x) else None


@rule(p.subtract(1, p.exp(x)))
def one_minus_exp(x: Variable, node: Variable) -> Variable | None:
    """1 - exp(x) -> 0 - expm1(x)"""
    return op.subtract(0, op.expm1(x)) if one_float(node, x) else None


@rule(p.log(p.subtract(0, p.expm1(x))))
def log_one_minus_exp(x: Variable, node: Variable) -> Variable | None:
    """log(0 - expm1(x)) -> log1p(-exp(x)) below -log(2), log(-expm1(x)) above"""
    if not one_float(node, x):
        return None
    far = op.log1p(op.negative(op.exp(x)))
    near = op.log(op.negative(op.expm1(x)))
    return op.where(op.less(x, -math.log(2)), far, near)  # type: ignore[no-any-return]


# -- logarithms of exponentials -------------------------------------------------------------------


@rule(p.log(p.exp(x)))
def log_of_exp(x: Variable, node: Variable) -> Variable | None:
    """log(exp(x)) -> x"""
    return x if one_float(node, x) else None


@rule(p.log1p(p.expm1(x)))
def log1p_of_expm1(x: Variable, node: Variable) -> Variable | None:
    """log1p(expm1(x)) -> x"""
    return x if one_float(node, x) else None


@rule(p.log1p(p.exp(x)))
def log_one_plus_exp(x: Variable, node: Variable) -> Variable | None:
    """log1p(exp(x)) -> softplus(x)"""
    return op.softplus(x) if one_float(node, x) else None


@rule(p.log(p.add(p.exp(x), p.exp(y))))
def log_of_two_exps(x: Variable, y: Variable, node: Variable) -> Variable | None:
    """log(exp(x) + exp(y)) -> logaddexp(x, y)"""
    return fitting(op.logaddexp(x, y), node) if one_float(node, x, y) else None


def is_shifted(x: Variable) -> bool:
    """Tell whether the largest element was subtracted already, as logsumexp and people do."""
    top = x.inputs[1] if x.op is not None and x.op.name == "subtract" else None
    while top.__class__ is Variable and top.op is not None:
        if top.op.name == "max":
            return True
        if top.op.name not in ("stop_gradient", "where", "broadcast_to", "expand_dims"):
            return False
        top = top.inputs[1 if top.op.name == "where" else 0]
    return False


@rule(p.log(p.sum(p.exp(x)).named("total")), "composite")
def log_of_sum_of_exps(x: Variable, total: Variable, node: Variable) -> Variable | None:
    """log(sum(exp(x))) -> logsumexp(x) over axes known not to be empty"""
    axis, keep = total.params["axis"], total.params["keepdims"]
    sizes = [x.shape[i] for i in axis]
    if not axis or not all(isinstance(s, int) and s > 0 for s in sizes) or is_shifted(x):
        return None
    out = op.logsumexp(x, axis=axis, keepdims=keep)
    return fitting(out, node) if one_float(node, x, total) else None


@rule(p.log(p.softmax(x).named("inner")), "composite")
def log_of_softmax(x: Variable, inner: Variable, node: Variable) -> Variable | None:
    """log(softmax(x)) -> log_softmax(x)"""
    return op.log_softmax(x, axis=inner.params["axis"]) if one_float(node, x) else None


# -- the logistic function ------------------------------------------------------------------------


@rule(p.divide(1, p.add(1, p.exp(p.negative(x)))))
def logistic(x: Variable, node: Variable) -> Variable | None:
    """1 / (1 + exp(-x)) -> expit(x)"""
    return op.expit(x) if one_float(node, x) else None


@rule(p.subtract(1, p.expit(x)))
def one_minus_expit(x: Variable, node: Variable) -> Variable | None:
    """1 - expit(x) -> expit(-x)"""
    return op.expit(op.negative(x)) if one_float(node, x) else None


@rule(p.log(p.expit(x)))
def log_of_expit(x: Variable, node: Variable) -> Variable | None:
    """log(expit(x)) -> log_expit(x)"""
    return op.log_expit(x) if one_float(node, x) else None


@rule(p.log1p(p.negative(p.expit(x))))
def log1p_of_minus_expit(x: Variable, node: Variable) -> Variable | None:
    """log1p(-expit(x)) -> log_expit(-x)"""
    return op.log_expit(op.negative(x)) if one_float(node, x) else None


# -- differences and roots ------------------------------------------------------------------------


@rule(p.subtract(1, p.erf(x)))
def one_minus_erf(x: Variable, node: Variable) -> Variable | None:
    """1 - erf(x) -> erfc(x)"""
    return op.erfc(x) if one_float(node, x) else None


@rule(p.subtract(1, p.erfc(x)))
def one_minus_erfc(x: Variable, node: Variable) -> Variable | None:
    """1 - erfc(x) -> erf(x)"""
    return op.erf(x) if one_float(node, x) else None


@rule(p.sqrt(p.square(x)))
def root_of_square(x: Variable, node: Variable) -> Variable | None:
    """sqrt(x^2) -> abs(x)"""
    return op.abs(x) if one_float(node, x) else None
