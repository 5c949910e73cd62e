"""`groupby`, `groupby_bins`, `resample`: groups of positions known by a coordinate's labels.

Labels become group numbers while recording, so a group reduction is a scatter at constant places,
and arithmetic with a group's value is a gather.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lazyarr.config import options
from lazyarr.errors import ArgumentError, ConcretizationError, CoordError, DimError
from lazyarr.namespace.xtensor_data import either, is_labelled
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.namespace.xtensor_join import concat, stack
from lazyarr.xtensor import moving
from lazyarr.xtensor.coords import Coord, Index, date_part
from lazyarr.xtensor.grouping import Groups, segment_reduce
from lazyarr.xtensor.joining import positions_in, take_filled


@dataclass(frozen=True)
class Grouper:
    """A partition of a dim: a number for each position (-1: no group), a label for each group."""

    name: str
    dim: str
    codes: np.ndarray
    labels: Index
    attrs: dict = field(default_factory=dict)


def unique_grouper(name: str, dim: str, values: np.ndarray, attrs: Mapping) -> Grouper:
    """Return the groups of equal values, in order; NaN belongs to none."""
    if values.dtype.kind == "O":
        known = {v for v in values.tolist() if v == v and v is not None}
        labels = np.empty(len(known), object)
        labels[:] = sorted(known)
        places = {v: i for i, v in enumerate(labels.tolist())}
        codes = np.array([places.get(v, -1) for v in values.tolist()], np.int64)
    else:
        labels, codes = np.unique(values, return_inverse=True)
        keep = ~np.isnat(labels) if labels.dtype.kind in "mM" else labels == labels
        labels, codes = labels[keep], np.where(codes < keep.sum(), codes, -1)
    return Grouper(name, dim, codes.astype(np.int64), Index(labels), dict(attrs))


def bin_grouper(name: str, dim: str, values: np.ndarray, bins: object, attrs: Mapping, **how):
    """Return the groups of values between edges, as `pandas.cut` makes them."""
    import pandas as pd

    cut = pd.cut(values, bins, **how)
    labels = np.empty(len(cut.categories), object)
    labels[:] = list(cut.categories)
    if how.get("labels") is not None:
        labels = np.asarray(cut.categories)
    return Grouper(f"{name}_bins", dim, np.asarray(cut.codes, np.int64), Index(labels), dict(attrs))


def time_grouper(dim: str, index: Index, freq: object, attrs: Mapping, **how: object) -> Grouper:
    """Return the groups of dates in periods of a frequency, as `pandas.Grouper` makes them."""
    import pandas as pd

    dates = pd.DatetimeIndex(index.labels)
    if not dates.is_monotonic_increasing:
        raise CoordError(f"resample needs dates in rising order along {dim!r}; use sortby first.")
    ordinal = pd.Series(np.arange(len(dates)), index=dates)
    first = ordinal.groupby(pd.Grouper(freq=freq, **how)).first()
    starts = first.dropna().to_numpy(np.int64)
    full = np.flatnonzero(first.notna().to_numpy())
    codes = full[np.searchsorted(starts, np.arange(len(dates)), side="right") - 1]
    labels = first.index.to_numpy().astype(index.labels.dtype)
    return Grouper(dim, dim, codes.astype(np.int64), Index(labels), dict(attrs))


class GroupBy:
    """Groups of an array along a dim; its methods combine each group's elements.

    >>> from lazyarr import XTensor
    >>> x = XTensor([1.0, 2.0, 3.0], dims="obs", coords={"g": ("obs", ["a", "b", "a"])})
    >>> x.groupby("g").sum().values.tolist()
    [4.0, 2.0]
    """

    def __init__(self, x: Handle, groupers: Sequence[Grouper]):
        self.x, self.groupers = x, tuple(groupers)
        dims = {g.dim for g in groupers}
        if len(dims) != 1:
            raise DimError(f"groupby takes coordinates along one dimension, got {sorted(dims)}.")
        (self.dim,) = dims
        codes = np.zeros(len(groupers[0].codes), np.int64)
        missing = np.zeros(len(codes), np.bool_)
        total = 1
        for g in groupers:
            codes = codes * len(g.labels) + np.maximum(g.codes, 0)
            missing |= g.codes < 0
            total *= len(g.labels)
        if not total or missing.all():
            raise CoordError(f"groupby: no position along {self.dim!r} belongs to a group.")
        name = groupers[0].name if len(groupers) == 1 else "_groups"
        self._groups = Groups(self.dim, np.where(missing, -1, codes), total, name)

    @property
    def groups(self) -> dict:
        """The positions of each group by label."""
        return dict(zip(self._labels(), (m.tolist() for m in self._groups.members), strict=True))

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims of a group."""
        return self.x.dims

    def _labels(self) -> list:
        each = [g.labels.labels.tolist() for g in self.groupers]
        if len(each) == 1:
            return each[0]
        return [tuple(e[i] for e, i in zip(each, place, strict=True)) for place in np.ndindex(
            tuple(len(e) for e in each))]  # fmt: skip

    def __len__(self) -> int:
        return self._groups.count

    def __iter__(self) -> Iterator[tuple[object, Handle]]:
        pairs = zip(self._labels(), self._groups.members, strict=True)
        return ((k, self.x.isel({self.dim: m})) for k, m in pairs if len(m))

    def __getitem__(self, label: object) -> Handle:
        return self.x.isel({self.dim: np.array(self.groups[label], np.int64)})

    # -- reductions -------------------------------------------------------------------------------

    def _reduced(self, name: str, dim: object, skipna: object, keep_attrs: object, **kw: object):
        x = self.x
        over = [self.dim] if dim is None else [x.dims[i] for i in x._axes(dim)]
        if self.dim not in over:
            raise DimError(
                f"groupby over {self.dim!r} reduces that dimension; dim={dim!r} does not hold it. "
                f"Write x.{name}({dim!r}) to reduce others without groups."
            )
        others = tuple(d for d in over if d != self.dim)
        node = segment_reduce(name, x._v, self._groups, others, x._skips(skipna), **kw)
        return self._named(node, keep_attrs)

    def _named(self, node: object, keep_attrs: object) -> Handle:
        """The handle of a result whose dim of groups stands where the grouped one stood."""
        x, groups = self.x, self._groups
        if len(self.groupers) > 1:
            sizes = {g.name: len(g.labels) for g in self.groupers}
            node = moving.split_dim(node, groups.name, sizes)
        coords = x._coords.without_dim(self.dim).within(node.type.dims)  # type: ignore
        labels = {g.name: Coord((g.name,), None, g.labels, g.attrs) for g in self.groupers}
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        return x._of(node, coords.assign(labels), x._name, x._attrs if keep else None)

    def sum(self, dim=None, *, skipna=None, min_count=None, keep_attrs=None) -> Handle:
        """Return the sum of each group (0 for an empty one)."""
        return self._reduced("sum", dim, skipna, keep_attrs, min_count=min_count)

    def prod(self, dim=None, *, skipna=None, min_count=None, keep_attrs=None) -> Handle:
        """Return the product of each group (1 for an empty one)."""
        return self._reduced("prod", dim, skipna, keep_attrs, min_count=min_count)

    def var(self, dim=None, *, skipna=None, ddof=0, keep_attrs=None) -> Handle:
        """Return the variance of each group."""
        return self._reduced("var", dim, skipna, keep_attrs, ddof=ddof)

    def std(self, dim=None, *, skipna=None, ddof=0, keep_attrs=None) -> Handle:
        """Return the standard deviation of each group."""
        return self._reduced("std", dim, skipna, keep_attrs, ddof=ddof)

    def map(self, func: Callable, args: tuple = (), **kwargs: object) -> Handle:
        """Return `func` of each group, joined along the grouped dim, or along the dim of groups."""
        if len(self.groupers) > 1:
            raise ArgumentError("map takes one coordinate; group by one, or reduce.")
        members = [m for m in self._groups.members if len(m)]
        parts = [func(self.x.isel({self.dim: m}), *args, **kwargs) for m in members]
        if all(self.dim in p.dims for p in parts):
            joined = concat(parts, self.dim)
            order = np.concatenate(members)
            if sum(p.sizes[self.dim] for p in parts) != len(order):
                return joined
            return self._in_order(joined.isel({self.dim: np.argsort(order, kind="stable")}))
        (g,) = self.groupers
        plain = [p.drop_vars([g.name]) if g.name in p._coords else p for p in parts]
        out = stack(plain, g.name)
        used = np.flatnonzero(self._groups.sizes)
        labels = Index(g.labels.labels[used])
        coords = out._coords.assign({g.name: Coord((g.name,), None, labels, g.attrs)})
        return self._in_order(out._like(out._v, coords))

    def _in_order(self, out: Handle) -> Handle:
        """Bring dims into the order of the array, the dim of groups in place of the grouped one."""
        known = [self._groups.name if d == self.dim else d for d in self.x.dims]
        rest = [d for d in out.dims if d not in known and d != self.dim]
        first = [d for d in (*known, self.dim) if d in out.dims]
        if self.dim in out.dims:
            first = [d for d in self.x.dims if d in out.dims]
        return out.transpose(*dict.fromkeys((*first, *rest)))

    def first(self, skipna: bool | None = None, keep_attrs=None) -> Handle:
        """Return the first element of each group that is not NaN (with skipna=False the first)."""
        return self._end(True, skipna)

    def last(self, skipna: bool | None = None, keep_attrs=None) -> Handle:
        """Return the last element of each group that is not NaN (with skipna=False the last)."""
        return self._end(False, skipna)

    def _end(self, first: bool, skipna: bool | None) -> Handle:
        dim, fills = self.dim, self.x._skips(skipna) and self.x.dtype.kind in "fc"

        def end(part: Handle) -> Handle:
            if fills:
                part = part.bfill(dim) if first else part.ffill(dim)
            return part.isel({dim: 0 if first else -1}, drop=True)

        return self.map(end)

    def quantile(self, q: object, dim=None, *, method: str = "linear", skipna=None) -> Handle:
        """Return the elements at fractions q of the order of each group."""
        over = self.dim if dim is None else dim
        return self.map(lambda part: part.quantile(q, over, method=method, skipna=skipna))

    def cumsum(self, dim=None, *, skipna=None) -> Handle:
        """Return the running sum within each group."""
        return self.map(lambda part: part.cumsum(dim or self.dim, skipna=skipna))

    def cumprod(self, dim=None, *, skipna=None) -> Handle:
        """Return the running product within each group."""
        return self.map(lambda part: part.cumprod(dim or self.dim, skipna=skipna))

    def fillna(self, value: object) -> Handle:
        """Return the elements, NaN replaced by the value of their group."""
        if not is_labelled(value):
            return self.x.fillna(value)
        return self._with(value, lambda x, v: x.fillna(v))

    def where(self, cond: object, other: object = None) -> Handle:
        """Return the elements where the condition of their group holds."""
        return self._with(cond, lambda x, c: x.where(c, other))

    def assign_coords(self, coords=None, **kw: object) -> Handle:
        """Return the array with coordinates added or replaced."""
        return self.x.assign_coords(coords, **kw)

    def reduce(self, func: Callable, dim=None, *, keep_attrs=None, **kw: object) -> Handle:
        """Return `func(array, axis=...)` of each group."""
        over = self.dim if dim is None else dim
        return self.map(lambda part: part.reduce(func, over, **kw))

    # -- arithmetic -------------------------------------------------------------------------------

    def _with(self, other: object, f: Callable) -> Handle:
        """Combine each position with the value that its group has in another array."""
        if not is_labelled(other):
            return NotImplemented
        other = self.x._as(other)
        for g in self.groupers:
            if g.name not in other.dims:
                raise DimError(
                    f"arithmetic with groups needs the dimension {g.name!r}, the other operand "
                    f"has dims {other.dims}."
                )
            index = other._coords.index(g.name) or g.labels
            where = positions_in(index, g.labels)
            places = np.where(g.codes >= 0, where[np.maximum(g.codes, 0)], -1)
            fill = np.nan if (places < 0).any() else None
            node = take_filled(other._v, g.name, places, fill)
            node = moving.rename(node, {g.name: g.dim})
            other = other._like(node, other._coords.without_dim(g.name))
        return f(self.x, other)


def _reduction(name: str, doc: str) -> Callable:
    def method(self, dim=None, *, skipna=None, keep_attrs=None):
        return self._reduced(name, dim, skipna, keep_attrs)

    method.__name__, method.__doc__ = name, doc
    return method


_REDUCTIONS = {
    "mean": "Return the mean of each group (NaN for an empty one).",
    "max": "Return the largest element of each group.",
    "min": "Return the smallest element of each group.",
    "any": "Return whether some element of each group is true.",
    "all": "Return whether all elements of each group are true.",
    "count": "Return the number of elements of each group that are not NaN.",
    "median": "Return the median of each group.",
}
for _name, _doc in _REDUCTIONS.items():
    setattr(GroupBy, _name, _reduction(_name, _doc))


def _operator(f: Callable) -> Callable:
    return lambda self, other: self._with(other, f)


for _method in ("add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(GroupBy, f"__{_method}__", _operator(getattr(operator, _method)))


class Grouping(Handle):
    """The methods of XTensor that make groups."""

    __slots__ = ()

    def groupby(self, group: object = None, squeeze: bool = False, **groupers: object) -> GroupBy:
        """Return groups of equal values of a coordinate: `x.groupby("city").mean()`.

        group: the name of a coordinate, a part of a date ("time.month"), several names, or an
        array of labels along one dim; its values must be known while recording.
        """
        if groupers or isinstance(group, Mapping):
            given = either(group, groupers, "groupby")
            return GroupBy(self, [self._grouper(k, kind) for k, kind in given.items()])
        many = group if isinstance(group, list | tuple) else [group]
        return GroupBy(self, [unique_grouper(*self._group_values(g)) for g in many])

    def groupby_bins(
        self, group: object, bins: object, right: bool = True, labels: object = None,
        precision: int = 3, include_lowest: bool = False, **kw: object,
    ) -> GroupBy:  # fmt: skip
        """Return groups of values of a coordinate between edges (needs pandas)."""
        name, dim, values, attrs = self._group_values(group)
        how = {"right": right, "labels": labels, "precision": precision}
        made = bin_grouper(name, dim, values, bins, attrs, include_lowest=include_lowest, **how)
        return GroupBy(self, [made])

    def resample(self, indexer=None, *, closed=None, label=None, offset=None, origin="start_day",
                 **kw) -> GroupBy:  # fmt: skip
        """Return groups of dates in periods: `x.resample(time="ME").mean()` (needs pandas)."""
        given = either(indexer, kw, "resample")
        if len(given) != 1:
            raise ArgumentError(f"resample takes one dimension, got {list(given)}.")
        ((dim, freq),) = given.items()
        index, attrs = self._labels_of(dim), self._coords[dim].attrs
        how = {"closed": closed, "label": label, "offset": offset, "origin": origin}
        return GroupBy(self, [time_grouper(dim, index, freq, attrs, **how)])

    def _grouper(self, name: str, kind: object) -> Grouper:
        """A group object of xarray (UniqueGrouper, BinGrouper, TimeResampler), by what it holds."""
        found = self._group_values(name)
        if hasattr(kind, "bins"):
            how = {k: getattr(kind, k) for k in ("right", "labels", "precision", "include_lowest")}
            return bin_grouper(*found[:3], kind.bins, found[3], **how)
        if hasattr(kind, "freq"):
            how = {k: getattr(kind, k) for k in ("closed", "label", "origin", "offset")}
            return time_grouper(name, self._labels_of(name), kind.freq, found[3], **how)
        return unique_grouper(*found)

    def _group_values(self, group: object) -> tuple[str, str, np.ndarray, dict]:
        """The name, dim, values and attrs of what is grouped by."""
        if isinstance(group, str):
            base, _, part = group.partition(".")
            if part and group not in self._coords:
                c, name = date_part(self._coord_or_positions(base), part), part
            else:
                c, name = self._coord_or_positions(group), group
            dims, values, attrs = c.dims, c.values, c.attrs
        elif isinstance(group, Coord):
            dims, values, attrs, name = group.dims, group.values, group.attrs, group.name or "group"
        elif hasattr(group, "dims"):
            dims, attrs, name = tuple(group.dims), dict(group.attrs), group.name or "group"
            lazy = isinstance(group, Handle) and not group._v.is_data
            values = None if lazy else np.asarray(group.values)
        else:
            raise ArgumentError(f"groupby takes the name of a coordinate or labels, got {group!r}.")
        if not isinstance(values, np.ndarray):
            raise ConcretizationError(
                f"groupby needs the values of {name!r} while recording; compute them first."
            )
        if len(dims) != 1:
            raise DimError(
                f"groupby takes labels along one dimension, {name!r} lies on {dims}; stack first."
            )
        self.get_axis_num(dims[0])
        return name, dims[0], values, attrs
