"""What stands between known values: the last one carried on, lines between neighbours, ranks."""

import numpy as np

from lazyarr.errors import ConcretizationError
from lazyarr.graph.node import Variable, data
from lazyarr.graph.registry import op
from lazyarr.xtensor import reducing
from lazyarr.xtensor.joining import take_filled
from lazyarr.xtensor.moving import shift, transpose
from lazyarr.xtensor.types import XTensorType


def carried(x: Variable, dim: str, forward: bool, limit: int | None) -> Variable:
    """Record x with NaN replaced by the nearest value before (or after) it along a dim.

    The distance doubles at each step: what a place cannot reach, a place near it may have reached.
    """
    size = x.type.sizes[dim]
    most = limit if limit is not None else size - 1
    if not isinstance(most, int):
        raise ConcretizationError(f"the size of {dim!r} is not known while recording; give limit.")
    reached = 0
    while reached < most:
        step = min(reached + 1, most - reached)
        moved = shift(x, dim, step if forward else -step, np.nan)
        x = op.where(reducing.isnull(x), moved, x)
        reached += step
    return x


def bridged(x: Variable, dim: str, positions: np.ndarray, method: str) -> Variable:
    """Record x with NaN replaced by values on lines between the known neighbours along a dim.

    positions: where the elements lie, rising. Before the first and after the last known value NaN
    stays.
    """
    kind = XTensorType(positions.dtype, (dim,), positions.shape)
    at = transpose(op.where(reducing.isnull(x), np.nan, data(positions, kind)), x.type.dims)
    low, high = (carried(at, dim, forward, None) for forward in (True, False))
    first, last = (carried(x, dim, forward, None) for forward in (True, False))
    part = op.divide(op.subtract(data(positions, kind), low), op.subtract(high, low))
    if method == "nearest":
        found = op.where(op.less_equal(part, 0.5), first, last)
        found = op.where(op.isnan(part), np.nan, found)
    else:
        part = op.astype(part, x.type.dtype)
        found = op.add(first, op.multiply(op.subtract(last, first), part))
    return transpose(op.where(reducing.isnull(x), found, x), x.type.dims)


def interpolated(
    x: Variable, dim: str, known: np.ndarray, wanted: np.ndarray, method: str
) -> Variable:
    """Record values at positions between those of rising labels; NaN outside of them."""
    high = np.clip(np.searchsorted(known, wanted), 1, max(len(known) - 1, 1))
    low = high - 1
    high = np.minimum(high, len(known) - 1)
    width = known[high] - known[low]
    part = np.where(width > 0, (wanted - known[low]) / np.where(width > 0, width, 1), 0.0)
    inside = (wanted >= known[0]) & (wanted <= known[-1])
    if method == "nearest":
        return take_filled(x, dim, np.where(inside, np.where(part > 0.5, high, low), -1), np.nan)
    # At a known position nothing of the neighbours enters, were they NaN or infinite.
    low, high = np.where(part == 1, high, low), np.where(part == 0, low, high)
    part = np.where(low == high, 0.5, part)
    kind = XTensorType(x.type.dtype, (dim,), part.shape)
    first = take_filled(x, dim, np.where(inside, low, -1), np.nan)
    last = take_filled(x, dim, high, None)
    weights = [data(w.astype(x.type.dtype), kind) for w in (1 - part, part)]
    out = op.add(op.multiply(first, weights[0]), op.multiply(last, weights[1]))
    return transpose(out, x.type.dims)


def ranks(x: Variable, dim: str, fraction: bool) -> Variable:
    """Record the rank of each element along a dim, from 1, ties averaged; NaN has none."""
    other = op.with_dims(x, tuple("_other" if d == dim else d for d in x.type.dims))
    axis = "_other"
    below = op.astype(op.less(other, x), np.float64)
    equal = op.astype(op.equal(other, x), np.float64)
    rank = op.add(op.sum(below, axis=axis), op.divide(op.add(op.sum(equal, axis=axis), 1), 2))
    rank = op.where(reducing.notnull(x), transpose(rank, x.type.dims), np.nan)
    if not fraction:
        return rank
    counts = op.astype(reducing.count(x, (x.type.axis(dim),)), np.float64)
    return transpose(op.divide(rank, counts), x.type.dims)
