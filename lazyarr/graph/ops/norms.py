"""Norms and products of vectors. Source: Array API standard 2025.12, linear algebra extension."""

import math

from lazyarr.errors import ArgumentError, ChoiceError, DTypeError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import (
    axes_of,
    axis_of,
    check_category,
    composite,
    operands_of,
    variable_of,
)
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.ops.decompositions import matrix_operand
from lazyarr.graph.ops.indexing import slice_axis
from lazyarr.graph.registry import op

# -- vectors --------------------------------------------------------------------------------------


def _length(x, axis, keepdims):
    """sqrt(sum(|x|^2)), of elements divided by their mean size, so that squares do not overflow."""
    size = op.abs(x)
    n = shapes.product(x.shape[i] for i in axis)
    share = op.divide(size, n if isinstance(n, int) and n else _at_least_one(n, size.dtype))
    scale = op.stop_gradient(op.sum(share, axis=axis, keepdims=True))
    scale = op.where(op.logical_and(op.isfinite(scale), op.greater(scale, 0)), scale, 1)
    total = op.sum(op.square(op.divide(size, scale)), axis=axis, keepdims=True)
    out = op.multiply(op.sqrt(total), scale)
    return out if keepdims else op.squeeze(out, axis)


def _at_least_one(n, dtype):
    return op.astype(op.maximum(op.size_value(n), 1), dtype)


def _vector_norm(x, *, axis, keepdims, ord):
    if ord == 2:
        return _length(x, axis, keepdims)
    size = op.abs(x)
    if ord == math.inf:
        return op.max(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return op.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        hit = op.astype(op.not_equal(x, 0), size.type.dtype)
        return op.sum(hit, axis=axis, keepdims=keepdims)
    if ord == 1:
        return op.sum(size, axis=axis, keepdims=keepdims)
    total = op.sum(op.pow(size, ord), axis=axis, keepdims=keepdims)
    return op.pow(total, 1 / ord)


def _vector_norm_vjp(g, y, x, *, axis, keepdims, ord):
    """x / norm for the length, 0 where it is 0; other orders by their expressions."""
    if not keepdims:
        g, y = op.expand_dims(g, axis=axis), op.expand_dims(y, axis=axis)
    if ord == 2:
        slope = op.where(op.equal(y, 0), 0, op.divide(conjugate(x), y))
    else:
        slope = _slope(x, y, ord, axis)
    return (op.absorb(g, slope),)


def _slope(x, y, ord, axis):
    """The derivative of a norm that is not the length, 0 at 0."""
    size, unit = op.abs(x), conjugate(op.sign(x))
    if ord == 0:
        return op.multiply(unit, 0)
    if ord == 1:
        return unit
    if abs(ord) == math.inf:
        hit = op.equal(size, y)
        ties = op.sum(op.astype(hit, y.type.dtype), axis=axis, keepdims=True)
        return op.where(hit, op.divide(unit, ties), 0)
    ratio = op.pow(op.divide(size, op.where(op.equal(y, 0), 1, y)), ord - 1)
    return op.where(op.equal(size, 0), 0, op.multiply(ratio, unit))


@composite(expand=_vector_norm, vjp=_vector_norm_vjp)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of vectors over axes (None: all); its derivative at 0 is 0."""
    x = variable_of(x)
    check_category(x.type.dtype, "floating-point")
    if not isinstance(ord, int | float):
        raise ArgumentError(f"vector_norm: ord is a number, not {ord!r}.")
    axis = tuple(axis_of(x, a) for a in axis) if isinstance(axis, tuple | list) else axis
    return (x,), {"axis": axes_of(x, axis), "keepdims": bool(keepdims), "ord": ord}


# -- matrices -------------------------------------------------------------------------------------

_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def _matrix_norm(x, *, keepdims, ord):
    last = (x.ndim - 2, x.ndim - 1)
    if ord == "fro":
        return op.vector_norm(x, axis=last, keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = op.svdvals(x)
        axis = values.ndim - 1
        reduce = {"nuc": op.sum, 2: op.max, -2: op.min}[ord]
        out = reduce(values, axis=axis)
    else:
        over, then = last if abs(ord) == 1 else (last[1], last[0])
        sums = op.sum(op.abs(x), axis=over, keepdims=True)
        out = op.squeeze((op.max if ord > 0 else op.min)(sums, axis=then, keepdims=True), last)
    return op.expand_dims(out, axis=last) if keepdims else out


@composite(expand=_matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of matrices over the last two axes."""
    x = matrix_operand(x, "matrix_norm")
    if ord not in _ORDERS:
        raise ChoiceError(f"matrix_norm: ord is one of {_ORDERS}, not {ord!r}.")
    return (x,), {"keepdims": bool(keepdims), "ord": ord}


# -- products -------------------------------------------------------------------------------------


def _numeric(*values):
    found = tuple([variable_of(v) for v in operands_of(*values)])
    for x in found:
        if x.type.dtype == dtypes.bool_:
            raise DTypeError("takes numeric dtypes, got bool; cast with astype.")
    return found


@composite(
    expand=lambda a, b: op.multiply(op.expand_dims(a, axis=1), b), facts=frozenset({"positional"})
)
def outer(x1, x2, /):
    """The products of every pair of elements of two vectors."""
    x1, x2 = _numeric(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"outer takes two vectors, got shapes {x1.shape} and {x2.shape}.")
    return (x1, x2), {}


def _component(x: Variable, i: int, axis: int) -> Variable:
    return slice_axis(x, axis, i, 1)


def _cross(a, b, *, axis):
    def term(i, j):
        left = op.multiply(_component(a, i, a.ndim + axis), _component(b, j, b.ndim + axis))
        right = op.multiply(_component(a, j, a.ndim + axis), _component(b, i, b.ndim + axis))
        return op.subtract(left, right)

    parts = [term(1, 2), term(2, 0), term(0, 1)]
    return op.concat(parts, axis=parts[0].ndim + axis)


@composite(expand=_cross, facts=frozenset({"positional"}))
def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of three elements along an axis."""
    x1, x2 = _numeric(x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        if axis < 0 or x1.ndim != x2.ndim:
            raise ShapeError(f"cross: axis {axis} is no axis of {x1.shape} and {x2.shape}.")
        axis = axis_of(x1, axis) - x1.ndim
    for x in (x1, x2):
        if isinstance(x.shape[axis], int) and x.shape[axis] != 3:
            raise ShapeError(f"cross: axis {axis} of shape {x.shape} needs 3 elements.")
    return (x1, x2), {"axis": axis}
