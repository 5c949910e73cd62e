"""Windows and blocks of named nodes: padding, sliding windows, blocks, their reductions.

A window reduction is a reduction over a dim that holds the elements of each window. Where every
window must be full, NaN stands in for what lies outside and propagates by itself; otherwise what is
there is counted.
"""

from collections.abc import Mapping

import numpy as np

from lazyarr.errors import ArgumentError, ConcretizationError
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops.indexing import gather, slice_axis
from lazyarr.graph.registry import op
from lazyarr.xtensor import reducing
from lazyarr.xtensor.moving import nan_dtype
from lazyarr.xtensor.naming import unnamed

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def padded(
    x: Variable, dim: str, width: tuple, mode: str, fill: object, reflect_type: str = "even"
) -> Variable:
    """Record x with `width` more elements before and after along a dim."""
    axis, size = x.type.axis(dim), x.type.sizes[dim]
    if mode not in MODES or (mode in MODES[2:4] and reflect_type != "even"):
        raise ArgumentError(f"pad: mode is one of {', '.join(MODES)} (even), got {mode!r}.")
    before, after = (int(w) for w in width)
    if mode == "constant":
        first, last = fill if isinstance(fill, tuple | list) else (fill, fill)
        gaps = [_gap(x, axis, before, first), x, _gap(x, axis, after, last)]
        parts = [g for g in gaps if g is not None]
        return op.concat(parts, axis=axis) if len(parts) > 1 else x
    if isinstance(size, int):
        places = data(np.pad(np.arange(size), (before, after), mode=mode))
    elif mode == "edge":
        places = op.arange(size + before + after)
        places = op.minimum(op.maximum(op.subtract(places, before), 0), op.subtract(size, 1))
    else:
        raise ConcretizationError(f"pad: mode {mode!r} needs the size of dimension {dim!r}.")
    return op.with_dims(gather(unnamed(x), places, axis), x.type.dims)


def _gap(x: Variable, axis: int, count: int, fill: object) -> Variable | None:
    if not count:
        return None
    shape = tuple(count if i == axis else s for i, s in enumerate(x.shape))
    return op.with_dims(op.full(shape, fill, dtype=x.type.dtype), x.type.dims)


def sliding(x: Variable, dim: str, window: object, new: str, center: bool, fill: object):
    """Record the window that ends at (or is around) each position, along a new last dim."""
    size, axis = x.type.sizes[dim], x.type.axis(dim)
    before = window // 2 if center else window - 1
    if isinstance(window, int):
        x = padded(x, dim, (before, window - 1 - before), "constant", fill)
    else:  # a window as long as the dim
        gap = tuple(before if i == axis else s for i, s in enumerate(x.shape))
        blank = op.with_dims(op.full(gap, fill, dtype=x.type.dtype), x.type.dims)
        x = op.concat([blank, x], axis=axis)
    return _windows(x, dim, window, size, new)


def _windows(x: Variable, dim: str, window: object, count: object, new: str) -> Variable:
    """Record the windows that start at the first `count` positions, along a new last dim."""
    axis = x.type.axis(dim)
    starts = op.expand_dims(op.arange(count), axis=1)
    places = op.add(starts, op.expand_dims(op.arange(window), axis=0))
    taken = gather(unnamed(x), places, axis)
    order = [i for i in range(taken.ndim) if i != axis + 1]
    dims = (*x.type.dims, new)
    return op.with_dims(op.permute_dims(taken, (*order, axis + 1)), dims)


def whole_windows(name: str, x: Variable, sizes: Mapping, center: Mapping, **kw: object):
    """Record a reduction over windows of which only full ones count; NaN for the others.

    Every dim is at least as long as its window.
    """
    new = {d: f"_window_{d}" for d in sizes}
    for dim, n in sizes.items():
        x = _windows(x, dim, n, x.type.sizes[dim] - n + 1, new[dim])
    out = reducing.reduce(name, x, tuple(x.type.axis(d) for d in new.values()), False, **kw)
    for dim, n in sizes.items():
        before = n // 2 if center[dim] else n - 1
        out = padded(out, dim, (before, n - 1 - before), "constant", np.nan)
    return out


def blocks(x: Variable, dim: str, window: int, new: str) -> Variable:
    """Record a dim as blocks of `window` elements, which lie along a new dim after it."""
    axis, size = x.type.axis(dim), x.type.sizes[dim]
    shape = (*x.shape[:axis], size // window, window, *x.shape[axis + 1 :])
    dims = (*x.type.dims[: axis + 1], new, *x.type.dims[axis + 1 :])
    return op.with_dims(op.reshape(unnamed(x), shape), dims)


def trimmed(x: Variable, dim: str, start: int, length: int) -> Variable:
    """Record a run of elements along a dim."""
    return slice_axis(x, x.type.axis(dim), start, length)


def window_reduce(name: str, x: Variable, axis: tuple, full: int | None, least: int, **kw: object):
    """Record a reduction over windows: NaN where fewer than `least` elements are there.

    `full`: the size of a window when it is known.
    """
    if least == full and name not in ("argmax", "argmin"):
        return reducing.reduce(name, x, axis, False, **kw)
    out = reducing.reduce(name, x, axis, True, **kw)
    return op.where(op.greater_equal(reducing.count(x, axis), least), out, np.nan)


def as_float(x: Variable) -> Variable:
    """Record x in a dtype that holds NaN."""
    dtype = nan_dtype(x.type.dtype)
    return x if x.type.dtype == dtype else op.astype(x, dtype)
