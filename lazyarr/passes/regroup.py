"""Regroup: the same values by less work, where sizes known beforehand say so.

What is dear is done before elements are multiplied, and sums are taken before products that have
more terms.
"""

import math
from typing import Any

from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.op import operand_types
from lazyarr.graph.pattern import of_kind, p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet, rebuilt

REGROUP = RuleSet("regroup")
DEAR = 6  # the cost of an elementwise function, an addition is 1, from which it is moved
_DEPTH = 8  # functions of one array that are moved together
a, b = var("a"), var("b")
product = p.contract(a, b).named("inner")


@REGROUP.rule(of_kind("elementwise"))
def gathered_last(node: Variable) -> Variable | None:
    """f(take(x, i)) -> take(f(x), i) for a dear f where x has fewer elements than the result"""
    chain: list[Variable] = []
    total, at = 0, node
    while len(chain) < _DEPTH and at.op is not None and at.op.kind == "elementwise":
        wide = [v for v in at.inputs if v.__class__ is Variable and v.ndim]
        if len(wide) != 1 or at.op.check is not None or at.shape != wide[0].shape:
            return None
        chain.append(at)
        total += _cost(at)
        at = wide[0]
    if at.op is None or at.op.name != "take" or total < DEAR:
        return None
    source = at.inputs[0]
    if not _count(source) < _count(at):
        return None
    for part in reversed(chain):
        inputs = [source if v.__class__ is Variable and v.ndim else v for v in part.inputs]
        source = rebuilt(part, part.call, inputs)
    return rebuilt(at, at.call, [source, *at.inputs[1:]])


def _count(x: Variable) -> float:
    """Return the number of elements, NaN where it is not known beforehand."""
    return math.prod(x.shape) if all(s.__class__ is int for s in x.shape) else math.nan


def _cost(node: Variable) -> int:
    """Return the estimated work of an elementwise node for an element."""
    compute, formula = node.op.compute_dtype(node), node.op.formula
    if formula is None or compute.kind not in "biuf":
        return 0
    promoted = node.op.promoted
    args = [
        scalar.var(
            k, compute if promoted is None or k in promoted else getattr(t, "dtype", compute)
        )
        for k, t in enumerate(operand_types(node))
    ]
    return scalar.cost(formula(*args, **node.params))


@REGROUP.rule(p.sum(product), "rounding", "regroup")
def sum_of_product(a: Any, b: Any, inner: Variable, node: Variable) -> Variable | None:
    """sum_k sum_j a_kj b_jl -> sum_j (sum_k a_kj) b_jl for floats"""
    return _summed_first(a, b, inner, node)


@REGROUP.rule(p.sum(p.negative(product)), "rounding", "regroup")
def sum_of_minus_product(a: Any, b: Any, inner: Variable, node: Variable) -> Variable | None:
    """sum_k -(sum_j a_kj b_jl) -> 0 - sum_j (sum_k a_kj) b_jl for floats"""
    new = _summed_first(a, b, inner, node)
    return None if new is None else op.subtract(0.0, new)


def _summed_first(a: Variable, b: Variable, inner: Variable, node: Variable) -> Variable | None:
    """Return a sum of a product with the axes of one operand alone summed before it."""
    of_a, of_b, out = inner.params["spec"]
    if not inner.dtype == node.dtype == a.dtype == b.dtype or node.dtype.kind not in "fc":
        return None
    if any(len(set(labels)) != len(labels) for labels in (of_a, of_b, out)):
        return None
    gone = {out[i] for i in node.params["axis"]}
    alone = gone - set(of_a) | gone - set(of_b)
    if not alone or not (set(of_a) | set(of_b)) - set(out):
        return None
    a, of_a = _without(a, of_a, alone)
    b, of_b = _without(b, of_b, alone)
    spec = of_a, of_b, tuple(k for k in out if k not in gone)
    new: Variable = op.contract(a, b, spec, absorb=inner.params["absorb"])
    return op.expand_dims(new, axis=node.params["axis"]) if node.params["keepdims"] else new


def _without(x: Variable, labels: tuple[int, ...], gone: set[int]) -> tuple[Variable, Any]:
    """Return an operand summed over some of its labels, and the labels that are left."""
    axis = tuple(i for i, k in enumerate(labels) if k in gone)
    return (op.sum(x, axis=axis) if axis else x), tuple(k for k in labels if k not in gone)
