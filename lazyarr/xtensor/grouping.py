"""Reductions by group of named nodes: each position along a dim belongs to a group known by number.

Sums add into zeros at the group numbers (a scatter). Reductions without a scatter gather each
group's elements side by side first, short groups filled up with what changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops.indexing import gather
from lazyarr.graph.registry import op
from lazyarr.xtensor import reducing
from lazyarr.xtensor.joining import take_filled
from lazyarr.xtensor.moving import nan_dtype
from lazyarr.xtensor.naming import unnamed
from lazyarr.xtensor.types import XTensorType


@dataclass(frozen=True)
class Groups:
    """The group number of each position along a dim, -1 for none, and the name of the new dim."""

    dim: str
    codes: np.ndarray
    count: int
    name: str

    @property
    def members(self) -> list[np.ndarray]:
        """The positions of each group."""
        order = np.argsort(self.codes, kind="stable")
        bounds = np.searchsorted(self.codes[order], np.arange(self.count + 1))
        return [order[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]

    def uneven(self) -> bool:
        """Tell whether laying groups side by side would take much more than the elements do."""
        return self.count * int(self.sizes.max(initial=0)) > 4 * len(self.codes) + 256

    @property
    def sizes(self) -> np.ndarray:
        """The number of positions of each group."""
        return np.bincount(self.codes[self.codes >= 0], minlength=self.count)

    def kept(self, x: Variable) -> tuple[Variable, np.ndarray]:
        """Return x and the numbers without the positions that belong to no group."""
        where = np.flatnonzero(self.codes >= 0)
        if len(where) == len(self.codes):
            return x, self.codes
        taken = gather(unnamed(x), data(where), x.type.axis(self.dim))
        return op.with_dims(taken, x.type.dims), self.codes[where]


def added(x: Variable, groups: Groups, over: tuple = ()) -> Variable:
    """Record the sum of each group, and over further dims."""
    if over:
        x = op.sum(x, axis=over, dtype=x.type.dtype)
    x, codes = groups.kept(x)
    axis = x.type.axis(groups.dim)
    shape = tuple(groups.count if i == axis else s for i, s in enumerate(x.shape))
    out = op.take_add(op.zeros(shape, dtype=x.type.dtype), data(codes), unnamed(x), axis=axis)
    return op.with_dims(out, _renamed(x.type.dims, groups))


def spread(y: Variable, groups: Groups) -> Variable:
    """Record each group's value at each of its positions (the first's where there is none)."""
    axis = y.type.axis(groups.name)
    taken = gather(unnamed(y), data(np.maximum(groups.codes, 0)), axis)
    dims = tuple(groups.dim if d == groups.name else d for d in y.type.dims)
    return op.with_dims(taken, dims)


def _renamed(dims: tuple, groups: Groups) -> tuple:
    return tuple(groups.name if d == groups.dim else d for d in dims)


def side_by_side(x: Variable, groups: Groups, fill: object, inner: str) -> Variable:
    """Record each group's elements along a new dim, short groups filled up."""
    members = groups.members
    most = max([len(m) for m in members], default=0)
    places = np.zeros((groups.count, max(most, 1)), np.int64)
    there = np.zeros(places.shape, np.bool_)
    for i, m in enumerate(members):
        places[i, : len(m)], there[i, : len(m)] = m, True
    axis = x.type.axis(groups.dim)
    taken = gather(unnamed(x), data(places), axis)
    dims = (*x.type.dims[:axis], groups.name, inner, *x.type.dims[axis + 1 :])
    wide = op.with_dims(taken, dims)
    if there.all():
        return wide
    mask = data(there, XTensorType(np.bool_, (groups.name, inner), there.shape))
    out = op.where(mask, wide, fill)
    order = tuple(out.type.dims.index(d) for d in dims)
    return op.permute_dims(out, order) if order != tuple(range(len(order))) else out


# -- reductions -----------------------------------------------------------------------------------


def _count(x: Variable, groups: Groups, over: tuple, skipna: bool) -> Variable:
    """The number of elements of each group that count."""
    if skipna and x.type.dtype.kind in "fc":
        return added(op.astype(reducing.notnull(x), np.int64), groups, over)
    return op.multiply(_known_sizes(groups), shapes.product(x.type.sizes[d] for d in over))


def _known_sizes(groups: Groups) -> Variable:
    kind = XTensorType(np.int64, (groups.name,), (groups.count,))
    return data(groups.sizes.astype(np.int64), kind)


def _zeroed(x: Variable, skipna: bool, value: object = 0) -> Variable:
    if not skipna or x.type.dtype.kind not in "fc":
        return x
    return op.where(op.isnan(x), value, x)


def _sum(x: Variable, groups: Groups, over: tuple, skipna: bool, **_: object) -> Variable:
    if x.type.dtype.kind in "biu":
        x = op.astype(x, dtypes.accumulator(x.type.dtype))
    return added(_zeroed(x, skipna), groups, over)


def _floating(x: Variable) -> Variable:
    return x if x.type.dtype.kind in "fc" else op.astype(x, np.float64)


def _mean(x: Variable, groups: Groups, over: tuple, skipna: bool, **_: object) -> Variable:
    x = _floating(x)
    counts = op.astype(_count(x, groups, over, skipna), x.type.dtype)
    return _ordered(op.divide(_sum(x, groups, over, skipna), counts), x, groups, over)


def _ordered(out: Variable, x: Variable, groups: Groups, over: tuple) -> Variable:
    """Bring dims into the order of x, the group's dim in place of the one that it partitions."""
    dims = tuple(d for d in _renamed(x.type.dims, groups) if d in out.type.dims)
    order = tuple(out.type.dims.index(d) for d in dims)
    return op.permute_dims(out, order) if order != tuple(range(len(order))) else out


def _var(
    x: Variable, groups: Groups, over: tuple, skipna: bool, ddof: float = 0, **_: object
) -> Variable:
    x = _floating(x)
    centred = op.subtract(x, spread(_mean(x, groups, over, skipna), groups))
    squares = reducing.squared(centred)  # NaN also where x is infinite
    if skipna and x.type.dtype.kind in "fc":
        squares = op.where(op.isnan(x), 0, squares)
    total = added(squares, groups, over)
    counts = op.astype(_count(x, groups, over, skipna), squares.type.dtype)
    freedom = op.subtract(counts, float(ddof))
    ratio = op.where(op.greater(freedom, 0), op.divide(total, freedom), np.nan)
    return _ordered(ratio, x, groups, over)


def _std(x: Variable, groups: Groups, over: tuple, skipna: bool, **kw: object) -> Variable:
    return op.sqrt(_var(x, groups, over, skipna, **kw))


def _any(x: Variable, groups: Groups, over: tuple, skipna: bool, **_: object) -> Variable:
    hits = op.astype(op.not_equal(x, 0) if x.type.dtype.kind != "b" else x, np.int64)
    return op.greater(added(hits, groups, over), 0)


def _all(x: Variable, groups: Groups, over: tuple, skipna: bool, **_: object) -> Variable:
    return op.logical_not(_any(op.equal(x, 0) if x.type.dtype.kind != "b" else op.logical_not(x),
                               groups, over, skipna))  # fmt: skip


def _gathered(name: str) -> Callable:
    """A reduction of the elements side by side."""

    def run(x: Variable, groups: Groups, over: tuple, skipna: bool, **kw: object) -> Variable:
        if x.type.dtype.kind == "b":
            x = op.astype(x, np.int64)
        if name == "median":
            x = _floating(x)
        if name in ("max", "min") and not groups.sizes.all():
            x = op.astype(x, nan_dtype(x.type.dtype))
        if name in COMBINE and groups.uneven():
            return _halved(name, x, groups, over, skipna)
        wide = side_by_side(x, groups, _neutral(name, x.type.dtype, skipna), "_member")
        axis = tuple(wide.type.dims.index(d) for d in ("_member", *over))
        if name != "median":
            out = reducing.reduce(name, wide, tuple(sorted(axis)), skipna, **kw)
            if skipna or name == "prod" or groups.sizes.all():
                return out
            return _ordered(
                op.where(op.greater(_known_sizes(groups), 0), out, np.nan), x, groups, over
            )
        out = reducing.reduce(name, wide, tuple(sorted(axis)), True, **kw)
        if skipna:
            return out
        broken = _any(reducing.isnull(x), groups, over, False)
        return _ordered(op.where(broken, np.nan, out), x, groups, over)

    return run


COMBINE = {"max": "maximum", "min": "minimum", "prod": "multiply"}


def _halved(name: str, x: Variable, groups: Groups, over: tuple, skipna: bool) -> Variable:
    """Combine the first half of each group with the second, until one element is left of each.

    For groups of very different sizes: the work stays in proportion to the number of elements.
    """
    neutral = {"max": -np.inf, "min": np.inf, "prod": 1}[name]
    if x.type.dtype.kind in "iu" and name != "prod":
        neutral = _neutral(name, x.type.dtype, skipna)
    if over:
        x = reducing.reduce(name, x, tuple(x.type.axis(d) for d in over), skipna)
    floats = x.type.dtype.kind in "fc"
    there = added(op.astype(reducing.notnull(x), np.int64), groups) if skipna and floats else None
    y = _zeroed(x, skipna, neutral)
    y = op.with_dims(y, _renamed(y.type.dims, groups))
    parts = [m if len(m) else np.array([-1]) for m in groups.members]
    first = True
    while first or max(map(len, parts)) > 1:
        cut = [(len(p) + 1) // 2 for p in parts]
        left = [p[:c] for p, c in zip(parts, cut, strict=True)]
        right = [
            np.concatenate([p[c:], np.full(2 * c - len(p), -1)])
            for p, c in zip(parts, cut, strict=True)
        ]
        a, b = (take_filled(y, groups.name, np.concatenate(s), neutral) for s in (left, right))
        y = getattr(op, COMBINE[name])(a, b)
        bounds = np.cumsum([0, *cut])
        parts = [np.arange(s, e) for s, e in zip(bounds[:-1], bounds[1:], strict=True)]
        first = False
    if name == "prod" or not floats:
        return y
    if there is None:
        there = _known_sizes(groups)
    return _ordered(op.where(op.greater(there, 0), y, np.nan), x, groups, ())


def _neutral(name: str, dtype: np.dtype, skipna: bool) -> object:
    if name == "prod":
        return 1
    if dtype.kind == "f":
        if skipna or name == "median":
            return np.nan
        return -np.inf if name == "max" else np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if name == "max" else limits.max)


SEGMENTED: dict[str, Callable] = {
    "sum": _sum,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "any": _any,
    "all": _all,
    "count": lambda x, groups, over, skipna, **_: added(
        op.astype(reducing.notnull(x), np.int64), groups, over
    ),
    "max": _gathered("max"),
    "min": _gathered("min"),
    "prod": _gathered("prod"),
    "median": _gathered("median"),
}


def segment_reduce(
    name: str,
    x: Variable,
    groups: Groups,
    over: tuple,
    skipna: bool,
    min_count: int | None = None,
    **kw: object,
) -> Variable:
    """Record a reduction of each group, and over further dims; the groups replace their dim.

    An empty group gives 0 for sums, 1 for products, NaN for the rest.
    """
    out = SEGMENTED[name](x, groups, over, skipna, **kw)
    if min_count is not None and skipna and x.type.dtype.kind in "fc":
        enough = op.greater_equal(_count(x, groups, over, skipna), min_count)
        out = _ordered(op.where(enough, _floating(out), np.nan), x, groups, over)
    return out
