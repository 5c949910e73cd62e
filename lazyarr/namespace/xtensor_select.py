"""Selection methods of XTensor: by position, by label, by what to leave out, to other labels."""

import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from lazyarr.errors import ArgumentError, ChoiceError, ConcretizationError, CoordError, DimError
from lazyarr.graph.registry import op
from lazyarr.namespace import xtensor_index
from lazyarr.namespace.xtensor_data import cast, either
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.xtensor import filling, moving
from lazyarr.xtensor.coords import Coord, Index
from lazyarr.xtensor.joining import join_indexes, positions_in, reindex_coords, take_filled
from lazyarr.xtensor.kinds import outside
from lazyarr.xtensor.naming import unnamed


class Selecting(Handle):
    """Methods that pick elements."""

    __slots__ = ()

    def isel(
        self, indexers=None, drop: bool = False, missing_dims: str = "raise", **kw
    ) -> "Handle":
        """Return the elements at positions along dims.

        A position is an integer, a slice, a list, array or mask (each dim apart), or an XTensor
        or xr.DataArray of integers, whose dims take the place of the dim; those that share a dim
        select point by point. Raises BoundsError for a position outside its dim.
        """
        keys = either(indexers, kw, "isel")
        keys = {d: keys[d] for d in known_dims(keys, self.dims, missing_dims)}
        return self._like(*xtensor_index.select(self._v, self._coords, keys, drop))

    def sel(self, indexers=None, method=None, tolerance=None, drop: bool = False, **kw) -> "Handle":
        """Return the elements at labels along dims; slices include both ends.

        method: None for exact labels, or "nearest", "ffill", "bfill" (needs pandas). Raises
        LabelError for a label that is not there, DimError for a dimension without labels.
        """
        labels = either(indexers, kw, "sel")
        keys = xtensor_index.positions(self._v.type, self._coords, labels, method, tolerance)
        return self._like(*xtensor_index.select(self._v, self._coords, keys, drop))

    @property
    def loc(self) -> "xtensor_index.Loc":
        """Selection by labels: `x.loc["a"]`, `x.loc[dict(obs="a")]`."""
        return xtensor_index.Loc(self)

    @property
    def at(self) -> "xtensor_index.At":
        """Updates that return a new array: `x.at[dict(obs=0)].set(v)`, `.add(v)`."""
        return xtensor_index.At(self)

    def __getitem__(self, key: object):
        if isinstance(key, str):
            return self._coordinate(key)
        return self.isel(xtensor_index.by_dim(key, self.dims))

    def __setitem__(self, key: object, value: object) -> None:
        self._v = self.at[key].set(value)._v

    def _coordinate(self, name: str) -> "Handle | Coord":
        """A coordinate as an array where its dtype allows, or as it is."""
        c = self._coords[name]
        if isinstance(c.values, np.ndarray) and c.values.dtype.kind not in "biufc":
            return c
        return type(self)(c.values, c.dims, self._coords.within(c.dims), name, c.attrs)

    def head(self, indexers=None, **kw) -> "Handle":
        """Return the first elements along dims (5 unless told)."""
        return self.isel({d: slice(n) for d, n in self._counts(indexers, kw).items()})

    def tail(self, indexers=None, **kw) -> "Handle":
        """Return the last elements along dims (5 unless told)."""
        counts = self._counts(indexers, kw)
        return self.isel({d: slice(-n, None) if n else slice(0) for d, n in counts.items()})

    def thin(self, indexers=None, **kw) -> "Handle":
        """Return every n-th element along dims."""
        return self.isel({d: slice(None, None, n) for d, n in self._counts(indexers, kw).items()})

    def _counts(self, given: object, kw: Mapping) -> dict:
        if given is None and not kw:
            return dict.fromkeys(self.dims, 5)
        return dict.fromkeys(self.dims, given) if isinstance(given, int) else either(given, kw, "n")

    # -- selection by what to leave out, order, other labels --------------------------------------

    def drop_isel(self, indexers=None, **kw) -> "Handle":
        """Return the elements without those at positions along dims."""
        keys = {}
        for dim, gone in either(indexers, kw, "drop_isel").items():
            mask = np.ones(self._known_size(dim, "drop_isel"), np.bool_)
            mask[np.asarray(gone)] = False
            keys[dim] = np.flatnonzero(mask)
        return self.isel(keys)

    def drop_sel(self, labels=None, *, errors: str = "raise", **kw) -> "Handle":
        """Return the elements without those at labels along dims."""
        keys = {}
        for dim, gone in either(labels, kw, "drop_sel").items():
            index = self._labels_of(dim)
            wanted = np.asarray(gone).reshape(-1)
            found = index.positions(wanted, missing=errors == "ignore")
            mask = np.ones(len(index), np.bool_)
            mask[found[found >= 0]] = False
            keys[dim] = np.flatnonzero(mask)
        return self.isel(keys)

    def drop_duplicates(self, dim: object, *, keep: object = "first") -> "Handle":
        """Return the elements of which each label along dims occurs once."""
        keys = {}
        for d in [self.dims[i] for i in self._axes(dim)]:
            index = self._coords.index(d)
            if index is not None:
                keys[d] = np.array(sorted(_kept_of(p, keep) for p in index.places().values()))
                keys[d] = keys[d][keys[d] >= 0]
        return self.isel(keys)

    def sortby(self, variables: object, ascending: bool = True) -> "Handle":
        """Return the elements in the order of coordinates (names, or arrays of one dim)."""
        many = variables if isinstance(variables, list | tuple) else [variables]
        keys: dict[str, list] = {}
        for v in [v(self) if callable(v) else v for v in many]:
            dim, values = self._sort_key(v)
            keys.setdefault(dim, []).append(values)
        order = {}
        for dim, arrays in keys.items():
            if arrays[0].__class__ is not np.ndarray:
                picked = op.argsort(unnamed(arrays[0]))
                order[dim] = type(self)._of(op.with_dims(picked, (dim,)), None)
            else:
                order[dim] = np.lexsort(tuple(_sortable(a) for a in reversed(arrays)))
            if not ascending:
                order[dim] = order[dim][::-1]
        return self.isel(order)

    def _sort_key(self, given: object) -> tuple[str, object]:
        """The dim of a sort key, and its values where they are known, otherwise its node."""
        if isinstance(given, str):
            c = self._coord_or_positions(given)
            dims, values = c.dims, c.values
        else:
            x = self._as(given)
            dims = x.dims
            values = x._v.value if x._v.is_data else x._v
            own = x._coords.index(dims[0]) if dims else None
            if own is not None:
                join_indexes("exact", dims[0], [self._coords.index(dims[0]) or own, own])
        if len(dims) != 1:
            raise DimError(f"sortby takes coordinates along one dimension, got one along {dims}.")
        self.get_axis_num(dims[0])
        return dims[0], values

    def reindex(
        self, indexers=None, *, method=None, tolerance=None, copy: bool = True,
        fill_value: object = np.nan, **kw,
    ) -> "Handle":  # fmt: skip
        """Return the elements at other labels along dims, `fill_value` at new ones.

        method: None, "nearest", "ffill" or "bfill" (needs pandas). Filling with NaN makes integers
        floats, whether or not a label is new.
        """
        out = self
        for dim, labels in either(indexers, kw, "reindex").items():
            target = labels if isinstance(labels, Index) else Index(labels)
            self.get_axis_num(dim)
            index = self._coords.index(dim)
            if index is None:
                if self.sizes[dim] != len(target):
                    raise CoordError(
                        f"dimension {dim!r} of size {self.sizes[dim]} has no labels, so it cannot "
                        f"be reindexed to {len(target)}; give it some with assign_coords."
                    )
                out = out.assign_coords({dim: target})
            else:
                out = out._reindexed(dim, target, fill_value, method, tolerance)
        return out

    def reindex_like(
        self, other: object, *, method=None, tolerance=None, fill_value: object = np.nan
    ) -> "Handle":
        """Return the elements at the labels of another array along the dims that both have."""
        other = self._as(other)
        indexers = {d: i for d, i in other.indexes.items() if d in self.dims}
        return self.reindex(indexers, method=method, tolerance=tolerance, fill_value=fill_value)

    def _reindexed(
        self, dim: str, target: Index, fill: object, method=None, tolerance=None
    ) -> "Handle":
        """Bring a dim to other labels; `fill` None says that all of them are there."""
        index = self._coords.index(dim)
        same = index is target or (index is not None and index.equals(target))
        if index is None or (same and fill is None):
            return self
        node = self._v
        if fill is not None and fill is np.nan:
            node = cast(node, moving.nan_dtype(self.dtype))
        if same:
            return self._like(node, self._coords)
        if method is None:
            _refuse_repeated(dim, index)
        where = positions_in(index, target, method, tolerance)
        coords = reindex_coords(self._coords, dim, target, where)
        return self._like(take_filled(node, dim, where, fill), coords)

    # -- what stands between known values ---------------------------------------------------------

    def ffill(self, dim: str, limit: int | None = None) -> "Handle":
        """Return the elements, NaN replaced by the last value before along a dim."""
        return self._like(filling.carried(self._v, dim, True, limit), self._coords)

    def bfill(self, dim: str, limit: int | None = None) -> "Handle":
        """Return the elements, NaN replaced by the first value after along a dim."""
        return self._like(filling.carried(self._v, dim, False, limit), self._coords)

    def interpolate_na(
        self, dim: str, method: str = "linear", *, use_coordinate: bool | str = True
    ) -> "Handle":
        """Return the elements, NaN between known values on lines (or nearest) along a dim.

        use_coordinate: the labels of the dim are positions (True), those of another coordinate,
        or equal distances (False).
        """
        if method not in ("linear", "nearest"):
            raise ChoiceError(f"interpolate_na: method is 'linear' or 'nearest', got {method!r}.")
        name = use_coordinate if isinstance(use_coordinate, str) else dim
        if use_coordinate is False:
            where = np.arange(self._known_size(dim, "interpolate_na"), dtype=np.float64)
        else:
            where = _positions_of(self._coord_or_positions(name), name)
        if np.any(np.diff(where) <= 0):
            raise CoordError(f"interpolate_na: the labels of {name!r} do not rise; sort first.")
        node = cast(self._v, moving.nan_dtype(self.dtype))
        return self._like(filling.bridged(node, dim, where, method), self._coords)

    def rank(self, dim: str, *, pct: bool = False, keep_attrs: bool | None = None) -> "Handle":
        """Return the rank of each element along a dim, from 1 (or as a fraction), ties averaged."""
        return self._like(filling.ranks(self._v, dim, pct), self._coords)

    def interp(
        self, coords=None, method: str = "linear", assume_sorted: bool = False, kwargs=None, **kw
    ) -> "Handle":
        """Return values at other labels along dims, on lines between neighbours; NaN outside.

        method: "linear" or "nearest". The labels must be numbers or dates, and known.
        """
        if method not in ("linear", "nearest"):
            raise ArgumentError(f"interp: method is 'linear' or 'nearest', got {method!r}.")
        out = self
        for dim, wanted in either(coords, kw, "interp").items():
            out = out._interpolated(dim, wanted, method)
        return out

    def _interpolated(self, dim: str, wanted: object, method: str) -> "Handle":
        x = self.sortby(dim)
        labels = x._labels_of(dim).labels
        target = np.asarray(getattr(wanted, "values", wanted))
        dates = labels.dtype.kind == "M"
        if not dates and labels.dtype.kind not in "iuf":
            raise CoordError(f"interp: the labels of {dim!r} have no distances: {labels.dtype}.")
        known, new = (
            a.astype("M8[ns]").astype(np.int64).astype(np.float64) if dates else
            a.astype(np.float64) for a in (labels, target)
        )  # fmt: skip
        node = cast(x._v, moving.nan_dtype(x.dtype))
        node = filling.interpolated(node, dim, known, np.atleast_1d(new), method)
        coords = x._coords.without_dim(dim)
        dims = (dim,) if target.ndim else ()
        if not target.ndim:
            node = moving.squeeze(node, (dim,))
        label = Coord.of(dim, dims, target, x._coords[dim].attrs)
        return x._like(node, coords.assign({dim: label}))

    def interp_like(self, other: object, method: str = "linear", **kw: object) -> "Handle":
        """Return values at the labels of another array along the dims that both have."""
        other = self._as(other)
        wanted = {d: i.labels for d, i in other.indexes.items() if d in self.dims}
        return self.interp(wanted, method)

    def combine_first(self, other: object) -> "Handle":
        """Return the elements that are not NaN, elsewhere those of another array; labels unite."""
        a, b = self._aligned([self, self._as(other)], "outer")
        return a.where(a.notnull(), b)

    def _labels_of(self, dim: str) -> Index:
        self.get_axis_num(dim)
        index = self._coords.index(dim)
        if index is None:
            raise DimError(f"dimension {dim!r} has no labels; give it some with assign_coords.")
        return index

    def _known_size(self, dim: str, what: str) -> int:
        size = self.sizes[dim] if dim in self.dims else self.get_axis_num(dim)
        if not isinstance(size, int):
            raise ConcretizationError(
                f"{what} needs the size of dimension {dim!r}, which a symbol leaves unknown."
            )
        return size

    def _coord_or_positions(self, name: str) -> Coord:
        """A coordinate, or the positions along a dim that has none."""
        if name in self.dims and name not in self._coords:
            return Coord((name,), np.arange(self._known_size(name, "this")))
        return self._coords[name]


def known_dims(wanted: Iterable, dims: tuple, missing: str) -> list:
    """Return names without those that are no dims, as `missing` says: raise, warn or ignore."""
    if missing not in ("raise", "warn", "ignore"):
        raise ChoiceError(f"missing_dims is 'raise', 'warn' or 'ignore', got {missing!r}.")
    if missing == "raise":
        return list(wanted)
    unknown = [d for d in wanted if d is not ... and d not in dims]
    if unknown and missing == "warn":
        warnings.warn(f"{unknown} are none of the dims {dims}.", stacklevel=outside())
    return [d for d in wanted if d not in unknown]


def _positions_of(c: Coord, name: str) -> np.ndarray:
    """Labels as numbers, dates as nanoseconds from the first."""
    values = np.asarray(c.values)
    if values.dtype.kind in "mM":
        whole = values.astype(f"{values.dtype.kind}8[ns]").astype(np.int64)
        return (whole - whole[0]).astype(np.float64)
    if values.dtype.kind not in "biuf":
        raise CoordError(f"the labels of {name!r} have no distances: {values.dtype}.")
    return values.astype(np.float64)


def _kept_of(places: list, keep: object) -> int:
    if keep is False:
        return places[0] if len(places) == 1 else -1
    return places[0] if keep == "first" else places[-1]


def _sortable(values: np.ndarray) -> np.ndarray:
    return values.astype(str) if values.dtype.kind == "O" else values


def _refuse_repeated(dim: str, index: Index) -> None:
    for label, places in index.places().items():
        if len(places) > 1:
            raise CoordError(f"cannot reindex {dim!r}: the label {label!r} occurs more than once.")
