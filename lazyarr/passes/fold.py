"""Fold: compute what rules and programs wrote as numbers. Data is never read.

A known value is a raw number, or a `full` of one: it is kept as one number with a shape, however
large the array is.
"""

from typing import Any

import numpy as np

from lazyarr.graph.evaluate import apply_reference
from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import NUMBERS, number, of_kind, p, same_number, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet
from lazyarr.graph.shapes import Size

FOLD = RuleSet("fold")
x, c = var("x"), number("c")
filled = p.full(c).named("inner")


def known(value: Any) -> Any:
    """Return the number that every element of an operand is, None where it is not known.

    A `full` casts its number to its dtype; that is the number returned.
    """
    if value.__class__ is not Variable:
        return value if value.__class__ in NUMBERS else None
    if value.expr is None or value.op.name != "full" or value.inputs[0].__class__ not in NUMBERS:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(value.inputs[0]).astype(value.dtype).item()


def filled_like(node: Variable, value: Any) -> Variable:
    """Return the `full` of a number in the shape and dtype of a node."""
    out: Variable = op.full(node.shape, value, dtype=node.dtype)
    return out


@FOLD.rule(of_kind("elementwise"))
def numbers(node: Variable) -> Variable | None:
    """f(full(a), b) -> full(f(a, b)) for numbers a, b"""
    values = [known(v) for v in node.inputs]
    if any(v is None for v in values):
        return None
    args = [
        np.asarray(v, a.dtype if a.__class__ is Variable else None)
        for v, a in zip(values, node.inputs, strict=True)
    ]
    if node.op.check is not None:
        return None
    return filled_like(node, apply_reference(node, args, node.params).item())  # type: ignore[attr-defined]


@FOLD.rule(of_kind("elementwise"))
def plain_operands(node: Variable) -> Variable | None:
    """f(x, full(c)) -> f(x, c) where dtype and shape stay the same"""
    for i, v in enumerate(node.inputs):
        value = known(v) if v.__class__ is Variable else None
        if value is None or (node.op.promoted is not None and i not in node.op.promoted):
            continue
        new = _with_operand(node, i, value)
        if new is not None:
            return new
    return None


def _with_operand(node: Variable, i: int, value: object) -> Variable | None:
    """Return a node with one operand replaced, None where its type or dtype would change."""
    inputs = [*node.inputs[:i], value, *node.inputs[i + 1 :]]
    types = [v.type if v.__class__ is Variable else v.__class__ for v in inputs]
    strong = [
        t for j, t in enumerate(types)
        if not isinstance(t, type) and (node.op.promoted is None or j in node.op.promoted)
    ]  # fmt: skip
    if not strong or node.op.compute_dtype_of(tuple(types)) != node.op.compute_dtype(node):
        return None
    new: Variable = node.op.apply(node.call, tuple(inputs))
    return new if new.type is node.type else None


def _moves(value: Variable) -> bool:
    """Tell whether a movement reads only elements of its first input, at trusted places."""
    return all(v.__class__ is not Variable for v in value.inputs[1:])


@FOLD.rule(of_kind("movement"))
def moved(node: Variable) -> Variable | None:
    """move(full(c)) -> full(c) for reshape, permute_dims, basic_index, concat, ..."""
    if node.op.name in ("concat", "stack"):
        values = [known(v) for v in node.inputs]
        same = values[0] is not None and all(
            v is not None and same_number(values[0], v) for v in values
        )
        return filled_like(node, values[0]) if same else None
    value = known(node.inputs[0])
    return None if value is None or not _moves(node) else filled_like(node, value)


@FOLD.rule(p.full(filled))
def full_of_full(inner: Variable, node: Variable) -> Variable:
    """full(full(c)) -> full(c)"""
    value = np.asarray(known(inner), inner.dtype).astype(node.dtype).item()
    return filled_like(node, value)


@FOLD.rule(of_kind("creation"))
def size_number(node: Variable) -> Variable | None:
    """size_value(n) -> full((), n) for a known size n"""
    if node.op.name != "size_value" or isinstance(node.params["size"], Size):
        return None
    return filled_like(node, node.params["size"])
