"""Arrangement methods of XTensor: order and names of dims, new dims, shifts, padding, stacking;
and what is written on an array: coordinates, name, attributes.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from lazyarr.config import options
from lazyarr.errors import ArgumentError, CoordError, DimError, near_match
from lazyarr.graph.shapes import Size
from lazyarr.namespace.xtensor_data import cast, either
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.namespace.xtensor_select import known_dims
from lazyarr.xtensor import moving
from lazyarr.xtensor.coords import Coord, Coords, Index, make_coords, shared
from lazyarr.xtensor.joining import merge, take_filled
from lazyarr.xtensor.kinds import joined_sizes
from lazyarr.xtensor.stacking import levels_of, stack_coords, unstack_coords, used_levels
from lazyarr.xtensor.windows import padded


class Arranging(Handle):
    """Methods that move, rename or annotate, and compute no element."""

    __slots__ = ()

    def transpose(self, *dims: object, missing_dims: str = "raise") -> "Handle":
        """Return the dims in another order; `...` stands for those not named."""
        if missing_dims != "raise":
            dims = tuple(known_dims(dims, self.dims, missing_dims))
        v = self._v
        node = moving.again(
            ("transpose", v.type, dims),
            v,
            lambda: moving.transpose(v, moving.complete_order(self.dims, dims)),
        )
        return self._of(node, self._coords, self._name, self._attrs)

    @property
    def T(self) -> "Handle":
        """The dimensions in reverse order."""
        return self.transpose()

    def rename(self, new_name_or_name_dict=None, **names: str) -> "Handle":
        """Return the array under another name, or with other names of dims and coordinates."""
        if not names and not isinstance(new_name_or_name_dict, Mapping):
            return self._of(self._v, self._coords, new_name_or_name_dict, self._attrs)
        names = either(new_name_or_name_dict, names, "rename")
        for old in names:
            if old not in self.dims and old not in self._coords:
                raise DimError(
                    f"rename: there is no dimension or coordinate {old!r} in dims {self.dims}."
                    f"{near_match(old, [*self.dims, *self._coords])}"
                )
        moved = {old: new for old, new in names.items() if old in self.dims}
        node = moving.rename(self._v, moved) if moved else self._v
        return self._like(node, self._coords.rename(names))

    def swap_dims(self, dims=None, **kw: str) -> "Handle":
        """Return the array with a dimension named by another coordinate along it."""
        names = either(dims, kw, "swap_dims")
        node = moving.rename(self._v, names)
        items = {
            k: Coord.of(k, tuple(names.get(d, d) for d in c.dims), c.index or c.values, c.attrs)
            for k, c in self._coords.items()
        }
        plain = {
            k: Coord(c.dims, c.values, None, c.attrs) if k in names else c for k, c in items.items()
        }
        return self._like(node, Coords(plain))

    def expand_dims(self, dim=None, axis: int = 0, **kw) -> "Handle":
        """Return the array with new dims: names, or sizes or labels by name."""
        given = [dim] if isinstance(dim, str) else list(dim or ())
        sizes = {**(dim if isinstance(dim, Mapping) else dict.fromkeys(given, 1)), **kw}
        for d in sizes:
            if d in self.dims:
                raise DimError(f"expand_dims: {d!r} is a dimension already; dims are {self.dims}.")
        counts = {d: s if isinstance(s, int | Size) else len(s) for d, s in sizes.items()}
        start = axis if axis >= 0 else axis + self.ndim + 1
        node = moving.expand(self._v, counts, start)
        labels = {
            d: Coord.of(d, (d,), s) for d, s in sizes.items() if not isinstance(s, int | Size)
        }
        for d in sizes:
            scalar = self._coords._items.get(d)
            if scalar is not None and d not in labels:
                labels[d] = Coord.of(d, (d,), np.repeat(scalar.values, counts[d]), scalar.attrs)
        return self._like(node, self._coords.assign(labels))

    def squeeze(self, dim=None, drop: bool = False) -> "Handle":
        """Return the array without dims of size 1 (of known size 1 when none is named)."""
        if dim is None:
            dims = [d for d, s in self.sizes.items() if s == 1]
        else:
            dims = [self.dims[i] for i in self._axes(dim)]
        node = moving.squeeze(self._v, dims)
        coords = self._coords.isel(dict.fromkeys(dims, 0))
        return self._like(node, coords.drop(set(dims) & set(coords)) if drop else coords)

    def broadcast_like(self, other: "Handle") -> "Handle":
        """Return the array with the missing dims of another one."""
        other = self._as(other)
        sizes = joined_sizes((other._v.type, self._v.type))
        node = moving.broadcast(self._v, sizes)
        indexes = other._coords.where(lambda name, c: c.index is not None)
        return self._like(node, merge([self._coords, indexes], options.arithmetic_join))

    def shift(self, shifts=None, fill_value=None, **kw: int) -> "Handle":
        """Return the elements moved along dims, free places filled (with NaN unless told)."""
        node = self._v
        if fill_value is None:
            fill_value, node = np.nan, cast(node, moving.nan_dtype(self.dtype))
        for dim, n in either(shifts, kw, "shift").items():
            node = moving.shift(node, dim, n, fill_value)
        return self._like(node, self._coords)

    def diff(self, dim: str, n: int = 1, *, label: str = "upper") -> "Handle":
        """Return the n-th differences along a dim, labelled by the upper or lower neighbour."""
        if label not in ("upper", "lower"):
            raise ArgumentError(f"label is 'upper' or 'lower', got {label!r}.")
        kept = slice(n, None) if label == "upper" else slice(None, -n if n else None)
        return self._like(moving.diff(self._v, dim, n), self._coords.isel({dim: kept}))

    def roll(self, shifts=None, roll_coords: bool = False, **kw: int) -> "Handle":
        """Return the elements moved along dims, those beyond an end coming back at the other."""
        node, coords = self._v, self._coords
        for dim, n in either(shifts, kw, "roll").items():
            node = moving.roll(node, dim, n)
            if roll_coords and any(dim in c.dims for c in coords.values()):
                size = self.sizes[dim]
                coords = coords.isel({dim: ((dim,), (np.arange(size) - n) % max(size, 1))})
        return self._like(node, coords)

    def pad(
        self, pad_width=None, mode: str = "constant", *, constant_values: object = None,
        reflect_type: str = "even", keep_attrs: bool | None = None, **kw: object,
    ) -> "Handle":  # fmt: skip
        """Return the elements with more before and after along dims: `x.pad(time=(1, 2))`.

        mode: "constant" (NaN unless `constant_values` is given), "edge", and where the size is
        known "reflect", "symmetric", "wrap". Labels are extended by none of them: a padded dim
        has no labels, give it new ones with assign_coords.
        """
        widths = {
            d: (w, w) if isinstance(w, int | np.integer) else tuple(w)
            for d, w in either(pad_width, kw, "pad").items()
        }
        node = self._v
        if mode == "constant" and constant_values is None and widths:
            constant_values, node = np.nan, cast(node, moving.nan_dtype(self.dtype))
        for dim, width in sorted(widths.items(), key=lambda w: self.get_axis_num(w[0])):
            fill = constant_values
            if isinstance(fill, Mapping):
                fill = fill.get(dim, 0)
            node = padded(node, dim, width, mode, fill, reflect_type)
        return self._like(node, self._coords.without_dim(*widths))

    # -- several dims as one ----------------------------------------------------------------------

    def stack(
        self, dim=None, create_index: bool | None = True, index_cls: object = None, **kw
    ) -> "Handle":
        """Return the array with several dims as one, the last: `x.stack(z=("x", "y"))`.

        Its labels are tuples of one label per dim (positions where a dim has none).
        """
        out = self
        for new, dims in either(dim, kw, "stack").items():
            out = out._stacked(new, tuple(dims), create_index)
        return out

    def _stacked(self, new: str, wanted: tuple, create_index: bool | None) -> "Handle":
        rest = [d for d in self.dims if d not in wanted]
        dims = tuple(d for w in wanted for d in (rest if w is ... else [w]))
        if new in self.dims and new not in dims:
            raise DimError(f"stack: {new!r} is a dimension already; dims are {self.dims}.")
        node = moving.flatten_dims(self._v, dims, new)
        sizes = {d: self.sizes[d] for d in dims}
        if not all(isinstance(s, int) for s in sizes.values()):
            return self._like(node, self._coords.without_dim(*dims))
        labelled = [d for d in dims if self._coords.index(d) is not None]
        makes = create_index is True or (create_index is None and len(labelled) == len(dims))
        return self._like(node, stack_coords(self._coords, sizes, new, makes))

    def unstack(self, dim=None, fill_value: object = np.nan, **sizes) -> "Handle":
        """Return the array with a stacked dim as its dims again, which are the last.

        Without labels the sizes say how: `x.unstack(z={"x": 2, "y": 3})`. Combinations of labels
        that do not occur are filled.
        """
        if sizes or isinstance(dim, Mapping):
            node = self._v
            for d, parts in either(dim, sizes, "unstack").items():
                node = moving.split_dim(node, d, parts)
            return self._like(node, self._coords.within(node.type.dims))
        levelled = [d for d, i in self.indexes.items() if i.levels]
        many = levelled if dim is None else [dim] if isinstance(dim, str) else list(dim)
        out = self
        if not many:
            raise DimError(
                f"unstack: none of the dims {self.dims} has labels of several levels; say the "
                "sizes, as in unstack(z={'x': 2, 'y': 3})."
            )
        for d in many:
            if d not in levelled:
                raise DimError(
                    f"unstack: dimension {d!r} has no labels of several levels; say the sizes, as "
                    f"in unstack({d}={{'x': 2, 'y': 3}})."
                )
            out = out._unstacked(d, fill_value)
        return out

    def _unstacked(self, dim: str, fill: object) -> "Handle":
        index = self._coords.index(dim)
        levels, places = used_levels(index)
        if len(np.unique(places)) < len(places):
            raise CoordError(
                f"unstack: a label of {dim!r} occurs more than once; call drop_duplicates({dim!r})."
            )
        sizes = {name: len(level) for name, level in levels.items()}
        node = self._v
        if len(places) == math.prod(sizes.values()):
            if not np.array_equal(places, np.arange(len(places))):
                node = take_filled(node, dim, np.argsort(places, kind="stable"), None)
            node = moving.split_dim(node, dim, sizes)
        else:
            node = cast(node, moving.nan_dtype(self.dtype)) if fill is np.nan else node
            source = np.full(math.prod(sizes.values()), -1, np.int64)
            source[places] = np.arange(len(places))
            node = moving.split_dim(take_filled(node, dim, source, fill), dim, sizes)
        return self._like(node, unstack_coords(self._coords, dim, levels, places))

    # -- coordinates, name, attrs -----------------------------------------------------------------

    def assign_coords(self, coords=None, **kw) -> "Handle":
        """Return the array with coordinates added or replaced."""
        new = make_coords(either(coords, kw, "assign_coords"), self.dims, self.sizes)
        return self._like(self._v, shared(self._coords.assign(new)))

    def drop_vars(self, names: object, *, errors: str = "raise") -> "Handle":
        """Return the array without some coordinates."""
        many = [names] if isinstance(names, str) else list(names)  # type: ignore[call-overload]
        if errors == "ignore":
            many = [n for n in many if n in self._coords]
        return self._like(self._v, self._coords.drop(many))

    def drop_indexes(self, coord_names: object, *, errors: str = "raise") -> "Handle":
        """Return the array whose coordinates of some dims no longer serve as labels."""
        many = [coord_names] if isinstance(coord_names, str) else list(coord_names)  # type: ignore
        if errors == "ignore":
            many = [n for n in many if n in self.indexes]
        plain = {}
        for name in many:
            c = self._coords[name]
            if c.index is None:
                raise CoordError(f"drop_indexes: coordinate {name!r} has no index.")
            plain[name] = Coord(c.dims, c.values, None, c.attrs)
        return self._like(self._v, self._coords.assign(plain))

    def set_index(self, indexes=None, append: bool = False, **kw: object) -> "Handle":
        """Return the array with dims labelled by other coordinates: `x.set_index(obs="name")`.

        Several coordinates make labels of several levels.
        """
        if append:
            raise ArgumentError("set_index: name all levels instead of append=True.")
        items = dict(self._coords)
        for dim, names in either(indexes, kw, "set_index").items():
            self.get_axis_num(dim)
            many = [names] if isinstance(names, str) else list(names)
            levels = {n: self._coords[n] for n in many}
            for name, c in levels.items():
                if c.dims != (dim,) or not isinstance(c.values, np.ndarray):
                    raise CoordError(f"set_index: {name!r} lies on {c.dims}, not on {dim!r} alone.")
            if len(levels) > 1:
                items.update(levels_of(dim, levels))
                continue
            ((name, c),) = levels.items()
            if name != dim:
                del items[name]
            items[dim] = Coord((dim,), None, Index(c.values), c.attrs)
        return self._like(self._v, Coords(items))

    def reset_index(self, dims_or_levels: object, drop: bool = False) -> "Handle":
        """Return the array whose labels along dims are plain coordinates, or gone with `drop`."""
        many = [dims_or_levels] if isinstance(dims_or_levels, str) else list(dims_or_levels)
        items = dict(self._coords)
        for dim in many:
            c = self._coords[dim]
            if c.index is None:
                raise CoordError(f"reset_index: coordinate {dim!r} has no index.")
            if drop or c.index.levels:
                del items[dim]
            else:
                items[dim] = Coord(c.dims, c.values, None, c.attrs)
            for name, _ in c.index.levels if drop else ():
                del items[name]
        return self._like(self._v, Coords(items))

    def reset_coords(self, names: object = None, *, drop: bool = False) -> "Handle":
        """Return the array without its coordinates that are no index; `drop=True` is needed."""
        if not drop:
            raise ArgumentError("reset_coords makes a Dataset; only drop=True is supported.")
        plain = [k for k, c in self._coords.items() if c.index is None]
        return self.drop_vars(plain if names is None else names)

    def assign_attrs(self, *args: Mapping, **kw) -> "Handle":
        """Return the array with attributes added or replaced."""
        return self._of(self._v, self._coords, self._name, {**self.attrs, **dict(*args, **kw)})

    def copy(self, deep: bool = True, data: object = None) -> "Handle":
        """Return a new handle on the same array, or on other data of the same dims and dtype."""
        if data is None:
            return self._like(self._v, self._coords)
        return self._with_value(self._v.type.filter(data))

    def pipe(self, f: Callable, *args: object, **kw: object):
        """Return `f(self, *args, **kw)`."""
        return f(self, *args, **kw)

    def drop_attrs(self, *, deep: bool = True) -> "Handle":
        """Return the array without attributes, also of its coordinates."""
        coords = Coords(
            {k: Coord.of(k, c.dims, c.index or c.values) for k, c in self._coords.items()}
        )
        return self._of(self._v, coords if deep else self._coords, self._name, None)
