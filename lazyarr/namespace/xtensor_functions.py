"""Functions of several XTensors: joins, alignment, broadcasting, statistics of pairs, extension."""

from collections.abc import Sequence

import numpy as np

from lazyarr.config import options
from lazyarr.errors import ArgumentError, DimError
from lazyarr.graph.registry import op
from lazyarr.namespace import xtensor_join
from lazyarr.namespace.xtensor import XTensor, as_xtensor, elementwise
from lazyarr.xtensor import moving
from lazyarr.xtensor.joining import merge
from lazyarr.xtensor.kinds import agree


def _common(arrays: Sequence, axis: object, what: str) -> tuple[list[XTensor], str, object]:
    handles = [as_xtensor(x) for x in arrays]
    if not handles:
        raise ArgumentError(f"{what} needs at least one array.")
    labels = None
    if isinstance(axis, tuple):
        axis, labels = axis
    if not isinstance(axis, str):
        raise DimError(f"{what} of named arrays takes the name of a dimension, not {axis!r}.")
    return handles, axis, labels


def stack(arrays: Sequence, /, *, axis: object) -> XTensor:
    """Return arrays side by side along a new first dimension; missing dims are broadcast.

    axis: a name, or a name and labels: `("model", ["a", "b"])`.
    """
    return xtensor_join.stack(*_common(arrays, axis, "stack"))


def concat(arrays: Sequence, /, *, axis: object) -> XTensor:
    """Return arrays one after the other along a dimension, labels joined.

    A dimension that none of them has is a new first one: a name, or a name and labels.
    """
    handles, dim, labels = _common(arrays, axis, "concat")
    if not any(dim in x.dims for x in handles):
        return xtensor_join.stack(handles, dim, labels)
    return xtensor_join.concat(handles, dim, labels)


def align(
    *objects: object, join: str = "exact", exclude: object = frozenset(), indexes=None,
    fill_value: object = np.nan, tolerance: object = None, copy: bool = True,
) -> tuple[XTensor, ...]:  # fmt: skip
    """Return arrays at common labels along every dimension that several of them label.

    join: "exact" (the labels must be equal, up to `tolerance`), "inner" (what all have), "outer"
    (what some has, sorted), "left", "right", or "override" (the first array's, by position).
    Where an array lacks a label, `fill_value` stands; NaN makes integers floats.
    """
    out = (exclude,) if isinstance(exclude, str) else tuple(exclude)  # type: ignore[arg-type]
    handles = [as_xtensor(x) for x in objects]
    return tuple(xtensor_join.align(handles, join, out, fill_value, tolerance, indexes))


def broadcast(*arrays: object, exclude: object = ()) -> tuple[XTensor, ...]:
    """Return arrays with all of their dims, in order of first appearance."""
    handles = xtensor_join.aligned([as_xtensor(x) for x in arrays])
    kept = {exclude} if isinstance(exclude, str) else set(exclude)  # type: ignore[call-overload]
    sizes: dict = {}
    for x in handles:
        for d, s in x.sizes.items():
            if d not in kept:
                sizes[d] = agree(d, sizes[d], s) if d in sizes else s
    indexes = [
        x._coords.where(lambda name, c: c.index is not None and name not in kept) for x in handles
    ]
    shared = merge(indexes, options.arithmetic_join)
    return tuple(
        x._like(
            moving.broadcast(x._v, {**sizes, **{d: s for d, s in x.sizes.items() if d in kept}}),
            x._coords.assign(shared),
        )
        for x in handles
    )


def where(cond: object, x: object, y: object, /) -> XTensor:
    """Return x where a condition holds and y elsewhere; attributes are those of x."""
    out = elementwise("where", cond, x, y)
    attrs = x._attrs if isinstance(x, XTensor) else getattr(x, "attrs", None) or None
    return XTensor._of(out._v, out._coords, out._name, attrs)


# -- statistics of pairs --------------------------------------------------------------------------


def _paired(a: object, b: object) -> tuple[XTensor, XTensor]:
    """Two arrays with NaN wherever either has one."""
    a, b = xtensor_join.aligned([as_xtensor(a), as_xtensor(b)])
    there = a.notnull() & b.notnull()
    return a.where(there), b.where(there)


def _covariance(a: XTensor, b: XTensor, dim: object, ddof: float) -> XTensor:
    products = (a - a.mean(dim, skipna=True)) * (b - b.mean(dim, skipna=True))
    counts = (a.notnull() & b.notnull()).astype(products.dtype).sum(dim) - ddof
    total = products.sum(dim, skipna=True, min_count=1) / counts
    return total.where(counts > 0)


def cov(a: object, b: object, dim: object = None, ddof: float = 1) -> XTensor:
    """Return the covariance over dims of the pairs in which neither is NaN."""
    x, y = _paired(a, b)
    return _covariance(x, y, dim, ddof)


def corr(a: object, b: object, dim: object = None) -> XTensor:
    """Return Pearson's correlation over dims of the pairs in which neither is NaN."""
    x, y = _paired(a, b)
    scale = x.std(dim, skipna=True) * y.std(dim, skipna=True)
    return _covariance(x, y, dim, 0) / scale


def polyval(coord: object, coeffs: object, degree_dim: str = "degree") -> XTensor:
    """Return a polynomial at positions; `coeffs` is labelled by degree along `degree_dim`."""
    x, c = as_xtensor(coord), as_xtensor(coeffs)
    index = c._labels_of(degree_dim)
    known = {int(d): i for i, d in enumerate(index.labels)}
    out = None
    for degree in range(max(known), -1, -1):
        term = c.isel({degree_dim: known[degree]}, drop=True) if degree in known else None
        if out is None:
            out = x._like(op.zeros_like(x._v), x._coords) + term
        else:
            out = out * x if term is None else out * x + term
    return out


def cross(a: object, b: object, *, dim: str) -> XTensor:
    """Return the cross product of vectors of 3 (or 2) along a dim."""
    x, y = xtensor_join.aligned([as_xtensor(a), as_xtensor(b)])
    parts = []
    for v in (x, y):
        size = v._known_size(dim, "cross")
        if size not in (2, 3):
            raise DimError(f"cross needs 2 or 3 elements along {dim!r}, got {size}.")
        own = v.drop_vars([dim], errors="ignore")
        parts.append([own.isel({dim: i}) for i in range(size)])
    (p, q) = parts
    if len(p) == len(q) == 2:
        out = p[0] * q[1] - p[1] * q[0]
        return x._like(out._v, out._coords)
    p, q = ([*v, 0.0] if len(v) == 2 else v for v in (p, q))
    pairs = ((1, 2), (2, 0), (0, 1))
    rows = [p[i] * q[j] - p[j] * q[i] for i, j in pairs]
    out = xtensor_join.stack([as_xtensor(r) for r in rows], dim)
    order = [d for d in dict.fromkeys((*x.dims, *y.dims)) if d in out.dims]
    out = out.transpose(*order)
    return x._like(out._v, out._coords)
