"""Statistical, utility and cumulative functions. Source: Array API standard 2025.12."""

from lazyarr.errors import AxisError
from lazyarr.graph import shapes
from lazyarr.graph.dtypes import accumulator, as_dtype
from lazyarr.graph.node import symbol
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import (
    axes_of,
    axis_of,
    composite,
    cumulative,
    reduction,
    variable_of,
)
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType


def _reduced(x, axis, keepdims):
    x = variable_of(x)
    return (x,), {"axis": axes_of(x, axis), "keepdims": bool(keepdims)}


def _summed(x, axis, dtype, keepdims):
    (x,), params = _reduced(x, axis, keepdims)
    out = accumulator(x.type.dtype) if dtype is None else as_dtype(dtype)
    return (x,), {**params, "dtype": out}


def spread(v, x, axis, keepdims):
    """Return a reduced value broadcast back over the axes of x that were reduced."""
    if not keepdims:
        v = op.expand_dims(v, axis=axis)
    return op.broadcast_to(v, x.shape)


@reduction(
    combine="add",
    accepts="all",
    vjp=lambda g, y, x, *, axis, keepdims, dtype: (spread(g, x, axis, keepdims),),
    jvp="linear",
    facts=frozenset({"linear"}),
)
def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Sum over axes; small integers accumulate in 64 bits."""
    return _summed(x, axis, dtype, keepdims)


def _prod_vjp(g, y, x, *, axis, keepdims, dtype):
    """Product of the other elements, from both sides, so that zeros need no division."""
    kept = tuple(i for i in range(x.ndim) if i not in axis)
    order = kept + axis
    flat = op.permute_dims(op.astype(x, dtype), order)
    flat = op.reshape(flat, (*(x.shape[i] for i in kept), shapes.product(x.shape[i] for i in axis)))
    last = len(kept)
    before = op.cumulative_prod(flat, axis=last, include_initial=True)
    after = op.cumulative_prod(op.flip(flat, axis=last), axis=last, include_initial=True)
    others = op.multiply(op.drop_end(before, last), op.flip(op.drop_end(after, last), axis=last))
    others = op.reshape(others, tuple(x.shape[i] for i in order))
    others = op.permute_dims(others, tuple(order.index(i) for i in range(x.ndim)))
    return (op.absorb(spread(g, x, axis, keepdims), others),)


@reduction(combine="mul", accepts="all", vjp=_prod_vjp)
def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Product over axes; small integers accumulate in 64 bits."""
    return _summed(x, axis, dtype, keepdims)


def _extreme_vjp(g, y, x, *, axis, keepdims):
    """The k elements that tie share the cotangent, 1/k each."""
    hit = op.equal(x, spread(y, x, axis, keepdims))
    ties = op.sum(op.astype(hit, g.dtype), axis=axis, keepdims=keepdims)
    return (op.where(hit, spread(op.divide(g, ties), x, axis, keepdims), 0),)


@reduction(combine="max", accepts="real numeric", vjp=_extreme_vjp)
def max(x, /, *, axis=None, keepdims=False):
    """Largest element over axes; NaN propagates; an empty axis is an error."""
    return _reduced(x, axis, keepdims)


@reduction(combine="min", accepts="real numeric", vjp=_extreme_vjp)
def min(x, /, *, axis=None, keepdims=False):
    """Smallest element over axes; NaN propagates; an empty axis is an error."""
    return _reduced(x, axis, keepdims)


@reduction(combine="and", vjp=NO_GRADIENT("the result is boolean, so it carries no derivative"))
def all(x, /, *, axis=None, keepdims=False):
    """Whether every element is true (not 0); over an empty axis True."""
    return _reduced(x, axis, keepdims)


@reduction(combine="or", vjp=NO_GRADIENT("the result is boolean, so it carries no derivative"))
def any(x, /, *, axis=None, keepdims=False):
    """Whether some element is true (not 0); over an empty axis False."""
    return _reduced(x, axis, keepdims)


def _located(x, axis, keepdims):
    """One axis, or all of them as one flat index."""
    (x,), params = _reduced(x, axis, keepdims)
    if len(params["axis"]) not in (1, x.type.ndim):
        raise AxisError(f"an index is along one axis, or over all of them, not {axis}.")
    return (x,), params


_INDEX = NO_GRADIENT("the result is an index, which carries no derivative")


@reduction(combine="argmax", accepts="real numeric", vjp=_INDEX)
def argmax(x, /, *, axis=None, keepdims=False):
    """Index of the first largest element; the first NaN where there is one."""
    return _located(x, axis, keepdims)


@reduction(combine="argmin", accepts="real numeric", vjp=_INDEX)
def argmin(x, /, *, axis=None, keepdims=False):
    """Index of the first smallest element; the first NaN where there is one."""
    return _located(x, axis, keepdims)


# -- statistics built of them ---------------------------------------------------------------------


def _count(x, axis):
    return shapes.product(x.shape[i] for i in axis)


def _mean(x, *, axis, keepdims):
    return op.divide(op.sum(x, axis=axis, keepdims=keepdims), _count(x, axis))


@composite(expand=_mean, accepts="floating-point")
def mean(x, /, *, axis=None, keepdims=False):
    """Arithmetic mean over axes; NaN over an empty axis."""
    return _reduced(x, axis, keepdims)


def _var(x, *, axis, correction, keepdims):
    centred = op.subtract(x, op.mean(x, axis=axis, keepdims=True))
    total = op.sum(op.square(centred), axis=axis, keepdims=keepdims)
    return op.divide(total, _freedom(x, axis, correction))


def _freedom(x, axis, correction):
    """Elements less the correction, not below 0, as a plain or symbolic number."""
    n = _count(x, axis)
    if isinstance(n, int):
        return max_of(n - correction, 0)
    return op.astype(op.maximum(op.subtract(op.size_value(n), correction), 0), x.dtype)


def max_of(a, b):
    """Return the larger of two Python numbers (`max` is an op in this file)."""
    return a if a > b else b


def _var_vjp(g, y, x, *, axis, correction, keepdims):
    centred = op.subtract(x, op.mean(x, axis=axis, keepdims=True))
    scale = op.divide(op.multiply(g, 2), _freedom(x, axis, correction))
    return (op.absorb(spread(op.astype(scale, g.dtype), x, axis, keepdims), centred),)


def _corrected(x, axis, correction, keepdims):
    (x,), params = _reduced(x, axis, keepdims)
    axis = params.pop("axis")
    return (x,), {"axis": axis, "correction": correction, **params}


@composite(expand=_var, vjp=_var_vjp, accepts="real floating-point")
def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variance over axes, from squared differences to the mean (two passes)."""
    return _corrected(x, axis, correction, keepdims)


def _std(x, **params):
    return op.sqrt(op.var(x, **params))


def _std_vjp(g, y, x, *, axis, correction, keepdims):
    slope = op.where(op.equal(y, 0), 0, op.divide(0.5, y))
    return _var_vjp(op.absorb(g, slope), y, x, axis=axis, correction=correction, keepdims=keepdims)


@composite(expand=_std, vjp=_std_vjp, accepts="real floating-point")
def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Standard deviation over axes; its derivative where it is 0 is 0."""
    return _corrected(x, axis, correction, keepdims)


# -- cumulative -----------------------------------------------------------------------------------


def _running(x, axis, dtype, include_initial):
    x = variable_of(x)
    if axis is None:
        axis = 0 if x.type.ndim == 1 else None
    dtype = accumulator(x.type.dtype) if dtype is None else as_dtype(dtype)
    params = {"axis": axis_of(x, axis), "dtype": dtype, "include_initial": bool(include_initial)}
    return (x,), params


def _cumulative_sum_vjp(g, y, x, *, axis, dtype, include_initial):
    if include_initial:
        g = op.drop_start(g, axis)
    return (op.flip(op.cumulative_sum(op.flip(g, axis=axis), axis=axis), axis=axis),)


@cumulative(combine="add", accepts="all", vjp=_cumulative_sum_vjp, jvp="linear", since="2023.12")
def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sum along an axis, optionally with a leading 0."""
    return _running(x, axis, dtype, include_initial)


def _cumulative_prod_vjp(g, y, x, *, axis, dtype, include_initial):
    """Exclusive prefix times s, where s_i = g_i + x_(i+1) s_(i+1), from the end: no division."""
    if include_initial:
        g = op.drop_start(g, axis)
    x = op.astype(x, dtype)
    before = op.drop_end(op.cumulative_prod(x, axis=axis, include_initial=True), axis)
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    xs, gs = op.permute_dims(x, order), op.permute_dims(g, order)
    lane = TensorType(dtype, xs.shape[1:])
    carry, g_here, x_here = (symbol(lane) for _ in range(3))
    total = op.add(g_here, carry)
    body = Graph([carry, g_here, x_here], [op.absorb(total, x_here), total])
    start = op.zeros(lane.shape, dtype=dtype)
    loop = op.scan(body, [start, gs, xs], length=xs.shape[0], reverse=True, n_carry=1, n_xs=2)
    sums = op.permute_dims(op.pick(loop, 1), tuple(order.index(i) for i in range(x.ndim)))
    return (op.absorb(sums, before),)


@cumulative(
    combine="mul",
    accepts="all",
    vjp=_cumulative_prod_vjp,
    since="2024.12",
)
def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running product along an axis, optionally with a leading 1."""
    return _running(x, axis, dtype, include_initial)


def _drop(x, *, axis, end):
    """All but one element of an axis."""
    keys = [slice(None)] * x.ndim
    keys[axis] = slice(None, -1) if end else slice(1, None)
    return op.basic_index(x, tuple(keys))


@composite(expand=lambda x, *, axis: _drop(x, axis=axis, end=True), public=False)
def drop_end(x, axis, /):
    """All but the last element of an axis."""
    return (x,), {"axis": axis}


@composite(expand=lambda x, *, axis: _drop(x, axis=axis, end=False), public=False)
def drop_start(x, axis, /):
    """All but the first element of an axis."""
    return (x,), {"axis": axis}
