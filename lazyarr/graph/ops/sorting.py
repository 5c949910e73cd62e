"""Sorting. Source: Array API standard 2025.12, sorting functions.

NaN counts as the largest element. Equal elements keep their order, also in descending order.
"""

import numpy as np

from lazyarr.graph import dtypes
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import axis_of, check_category, declare, variable_of
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType


def _order(x, axis, descending):
    """The stable order of the elements; a descending one is that of the flipped array, flipped."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


def _sort_reference(x, *, axis, descending):
    out = np.sort(x, axis=axis, kind="stable")
    return np.flip(out, axis) if descending else out


def _sort_vjp(g, y, x, *, axis, descending):
    order = op.argsort(x, axis=axis, descending=descending)
    return (op.take_along_axis(g, op.argsort(order, axis=axis), axis=axis),)


def _sort_jvp(tangents, y, x, *, axis, descending):
    order = op.argsort(x, axis=axis, descending=descending)
    return op.take_along_axis(tangents[0], order, axis=axis)


def _prepared(x, axis, descending):
    x = variable_of(x)
    check_category(x.type.dtype, "real")
    return (x,), {"axis": axis_of(x, axis), "descending": bool(descending)}


@declare(
    "library",
    infer=lambda types, params: types[0],
    reference=_sort_reference,
    vjp=_sort_vjp,
    jvp=_sort_jvp,
    accepts="real",
    facts=frozenset({"along_axis"}),
)
def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements in rising (or falling) order along an axis; NaN is the largest."""
    return _prepared(x, axis, descending)


@declare(
    "library",
    infer=lambda types, params: TensorType(dtypes.int64, types[0].shape),
    reference=lambda x, *, axis, descending: _order(x, axis, descending),
    vjp=NO_GRADIENT("the result is an index, which carries no derivative"),
    accepts="real",
    facts=frozenset({"along_axis"}),
)
def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort along an axis; equal elements keep their order."""
    return _prepared(x, axis, descending)
