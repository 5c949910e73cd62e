"""`rolling`, `cumulative`, `coarsen`, `weighted`: reductions over windows, blocks, with weights."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from lazyarr.config import options
from lazyarr.errors import ArgumentError, CoordError, DimError
from lazyarr.graph.registry import op
from lazyarr.namespace.xtensor_data import either
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.xtensor import moving, reducing, windows
from lazyarr.xtensor.coords import Coord, Coords


class Rolling:
    """Windows that move along dims, each ending at (or centred on) a position."""

    def __init__(self, x: Handle, sizes: Mapping, min_periods: int | None, center: object):
        self.x, self.sizes = x, dict(sizes)
        for dim, n in self.sizes.items():
            x.get_axis_num(dim)
            if isinstance(n, int | np.integer) and n < 1:
                raise ArgumentError(f"rolling: the window of {dim!r} is {n}; it must be positive.")
        known = all(isinstance(n, int | np.integer) for n in self.sizes.values())
        self.full = math.prod(int(n) for n in self.sizes.values()) if known else None
        if min_periods is not None and min_periods < 1:
            raise ArgumentError(f"rolling: min_periods is {min_periods}; it must be positive.")
        self.least = self.full if min_periods is None else min_periods
        self.center = center if isinstance(center, Mapping) else dict.fromkeys(sizes, center)

    def construct(
        self, window_dim=None, *, stride: object = 1, fill_value: object = np.nan,
        keep_attrs=None, **kw: str,
    ) -> Handle:  # fmt: skip
        """Return the windows along new last dims: `x.rolling(time=3).construct("window")`."""
        names = window_dim
        if isinstance(window_dim, str):
            names = dict.fromkeys(self.sizes, window_dim)
        elif not isinstance(window_dim, Mapping):
            names = dict(zip(self.sizes, window_dim, strict=True)) if window_dim else kw
        node, keys = self.x._v, {}
        if fill_value is np.nan:
            node = windows.as_float(node)
        for dim, n in self.sizes.items():
            new = names[dim]
            if new in node.type.dims:
                raise DimError(f"construct: {new!r} is a dimension already: {node.type.dims}.")
            node = windows.sliding(node, dim, n, new, bool(self.center[dim]), fill_value)
            step = stride.get(dim, 1) if isinstance(stride, Mapping) else stride
            if step != 1:
                keys[dim] = slice(None, None, step)
        out = self.x._like(node, self.x._coords)
        return out.isel(keys) if keys else out

    def _reduced(self, name: str, keep_attrs: object, **kw: object) -> Handle:
        node = windows.as_float(self.x._v)
        if self._only_full(name):
            out = windows.whole_windows(name, node, self.sizes, self.center, **kw)
            return self._handle(out, keep_attrs)
        new = {d: f"_window_{d}" for d in self.sizes}
        for dim, n in self.sizes.items():
            node = windows.sliding(node, dim, n, new[dim], bool(self.center[dim]), np.nan)
        axis = tuple(node.type.axis(d) for d in new.values())
        if name == "count":
            out = op.astype(reducing.count(node, axis), np.float64)
            out = op.where(op.greater_equal(out, self.least), out, np.nan)
        else:
            out = windows.window_reduce(name, node, axis, self.full, self.least, **kw)
        return self._handle(out, keep_attrs)

    def _only_full(self, name: str) -> bool:
        """Tell whether windows that reach beyond an end need not be made: they give NaN."""
        if self.least != self.full or name == "count":
            return False
        known = self.x.sizes
        return all(isinstance(known[d], int) and known[d] >= n for d, n in self.sizes.items())

    def _handle(self, node: object, keep_attrs: object) -> Handle:
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        return self.x._of(node, self.x._coords, self.x._name, self.x._attrs if keep else None)

    def var(self, ddof: float = 0, *, keep_attrs=None) -> Handle:
        """Return the variance of each window."""
        return self._reduced("var", keep_attrs, ddof=ddof)

    def std(self, ddof: float = 0, *, keep_attrs=None) -> Handle:
        """Return the standard deviation of each window."""
        return self._reduced("std", keep_attrs, ddof=ddof)

    def reduce(self, func: Callable, *, keep_attrs=None, **kw: object) -> Handle:
        """Return `func(windows, axis=...)` of a lazy array of windows; NaN for short windows."""
        new = {d: f"_window_{d}" for d in self.sizes}
        wide = self.construct(new)
        out = wide.reduce(func, list(new.values()), **kw)
        axis = tuple(wide.get_axis_num(d) for d in new.values())
        enough = op.greater_equal(reducing.count(wide._v, axis), self.least)
        return self._handle(op.where(enough, out._v, np.nan), keep_attrs)


class Cumulative(Rolling):
    """Windows from the start of a dim to each position; sums and means without windows."""

    def _reduced(self, name: str, keep_attrs: object, **kw: object) -> Handle:
        if name not in ("sum", "mean", "count", "prod"):
            return super()._reduced(name, keep_attrs, **kw)
        x, dims = windows.as_float(self.x._v), list(self.sizes)
        there = op.astype(reducing.notnull(x), x.type.dtype)
        counts = reducing.cumulative("cumulative_sum", there, dims, False)
        if name == "count":
            out = op.astype(counts, np.float64)
        else:
            run = "cumulative_prod" if name == "prod" else "cumulative_sum"
            out = reducing.cumulative(run, x, dims, True)
            out = op.divide(out, counts) if name == "mean" else out
        return self._handle(op.where(op.greater_equal(counts, self.least), out, np.nan), keep_attrs)


class Coarsen:
    """Blocks of neighbouring positions along dims."""

    def __init__(self, x: Handle, sizes: Mapping, boundary: object, side: object, coord_func):
        self.x, self.sizes, self.coord_func = x, dict(sizes), coord_func
        self.boundary = _each(boundary, self.sizes)
        self.side = _each(side, self.sizes)
        for dim in self.sizes:
            x._known_size(dim, "coarsen")

    def _fitted(self) -> Handle:
        """The array with sizes that the blocks divide."""
        x = self.x
        for dim, n in self.sizes.items():
            size, how, left = x.sizes[dim], self.boundary[dim], self.side[dim] == "left"
            excess = size % n
            if how == "exact" and excess:
                raise ArgumentError(
                    f"coarsen: dimension {dim!r} of size {size} is no multiple of {n}; ask for "
                    "boundary='trim' or 'pad'."
                )
            if how == "trim" and excess:
                keep = slice(0, size - excess) if left else slice(excess, None)
                x = x.isel({dim: keep})
            elif how == "pad" and excess:
                width = (0, n - excess) if left else (n - excess, 0)
                coords = _padded_coords(x._coords, dim, width)
                node = windows.padded(windows.as_float(x._v), dim, width, "constant", np.nan)
                x = x._like(node, coords)
            elif how not in ("exact", "trim", "pad"):
                raise ArgumentError(f"coarsen: boundary is exact, trim or pad, got {how!r}.")
        return x

    def construct(self, window_dim=None, *, keep_attrs=None, **kw: object) -> Handle:
        """Return each block along two dims, as in `construct(time=("week", "day"))`."""
        x = self._fitted()
        node, names = x._v, either(window_dim, kw, "construct")
        coords = x._coords
        for dim, (outer, inner) in names.items():
            node = windows.blocks(node, dim, self.sizes[dim], inner)
            node = moving.rename(node, {dim: outer}) if outer != dim else node
            coords = _block_coords(coords, dim, outer, inner, self.sizes[dim])
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        return x._of(node, coords, x._name, x._attrs if keep else None)

    def _reduced(self, name: str, keep_attrs: object, skipna=None, **kw: object) -> Handle:
        x = self._fitted()
        node, new = x._v, {d: f"_block_{d}" for d in self.sizes}
        coords = x._coords
        for dim, n in self.sizes.items():
            node = windows.blocks(node, dim, n, new[dim])
            coords = self._coarse_coords(coords, dim, n)
        axis = tuple(node.type.axis(d) for d in new.values())
        if name == "count":
            out = reducing.count(node, axis)
        else:
            out = reducing.reduce(name, node, axis, x._skips(skipna), **kw)
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        return x._of(out, coords, x._name, x._attrs if keep else None)

    def reduce(self, func: Callable, *, keep_attrs=None, **kw: object) -> Handle:
        """Return `func(blocks, axis=...)` of a lazy array whose blocks lie along axes."""
        x, new = self._fitted(), {d: f"_block_{d}" for d in self.sizes}
        node, coords = x._v, x._coords
        for dim, n in self.sizes.items():
            node = windows.blocks(node, dim, n, new[dim])
            coords = self._coarse_coords(coords, dim, n)
        axes = tuple(node.type.axis(d) for d in new.values())
        out = func(x._of(node, None).data, axis=axes, **kw)
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        named = op.with_dims(out._v, tuple(d for d in node.type.dims if d not in new.values()))
        return x._of(named, coords, x._name, x._attrs if keep else None)

    def _coarse_coords(self, coords: Coords, dim: str, n: int) -> Coords:
        """The coordinates of blocks: by `coord_func`, the mean unless told."""
        out = {}
        for name, c in coords.items():
            if dim not in c.dims or not isinstance(c.values, np.ndarray):
                if dim not in c.dims:
                    out[name] = c
                continue
            axis = c.dims.index(dim)
            shape = (*c.shape[:axis], c.shape[axis] // n, n, *c.shape[axis + 1 :])
            how = self.coord_func
            how = how.get(name, "mean") if isinstance(how, Mapping) else how
            values = _coarse(c.values.reshape(shape), axis + 1, how)
            out[name] = Coord.of(name, c.dims, values, c.attrs)
        return Coords(out)

    def var(self, ddof: float = 0, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the variance of each block."""
        return self._reduced("var", keep_attrs, skipna, ddof=ddof)

    def std(self, ddof: float = 0, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the standard deviation of each block."""
        return self._reduced("std", keep_attrs, skipna, ddof=ddof)


def _each(value: object, sizes: Mapping) -> dict:
    return dict(value) if isinstance(value, Mapping) else dict.fromkeys(sizes, value)


def _coarse(values: np.ndarray, axis: int, how: object) -> np.ndarray:
    if callable(how):
        return np.asarray(how(values, axis=axis))
    if values.dtype.kind in "mM":
        if how != "mean":
            return getattr(np, f"nan{how}")(values, axis=axis)
        first = np.nanmin(values, axis=axis, keepdims=True)
        apart, there = (values - first).view("i8"), ~np.isnat(values)
        total = np.sum(np.where(there, apart, 0), axis=axis)
        mean = (total / there.sum(axis=axis)).astype("i8").view(first.dtype.str.replace("M", "m"))
        return np.squeeze(first, axis) + mean
    if values.dtype.kind not in "biuf":
        raise ArgumentError(
            f"coarsen: labels of dtype {values.dtype} have no {how}; give coord_func, or drop them "
            "with drop_vars."
        )
    return getattr(np, f"nan{how}", getattr(np, str(how)))(values, axis=axis)


def _padded_coords(coords: Coords, dim: str, width: tuple) -> Coords:
    out = {}
    for name, c in coords.items():
        if dim in c.dims:
            pads = [width if d == dim else (0, 0) for d in c.dims]
            floats = c.values.dtype.kind in "biuf"
            blank = np.nan if floats else np.array("NaT", c.values.dtype)
            values = c.values.astype(np.result_type(c.values, np.float64)) if floats else c.values
            values = np.pad(values, pads, constant_values=blank)
            c = Coord.of(name, c.dims, values, c.attrs)
        out[name] = c
    return Coords(out)


def _block_coords(coords: Coords, dim: str, outer: str, inner: str, n: int) -> Coords:
    out = {}
    for name, c in coords.items():
        if dim in c.dims and isinstance(c.values, np.ndarray):
            axis = c.dims.index(dim)
            shape = (*c.shape[:axis], c.shape[axis] // n, n, *c.shape[axis + 1 :])
            dims = (*c.dims[:axis], outer, inner, *c.dims[axis + 1 :])
            c = Coord(dims, c.values.reshape(shape), None, c.attrs)
        out[name] = c
    return Coords(out)


_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "count", "median")
_OVER_BLOCKS = (*_REDUCTIONS, "any", "all")
_TEXT = {"max": "largest element", "min": "smallest element", "prod": "product",
         "count": "number of elements that are not NaN", "any": "whether some is true,",
         "all": "whether all are true,"}  # fmt: skip


def _method(name: str, what: str, skips: bool) -> Callable:
    def over_window(self, *, keep_attrs=None):
        return self._reduced(name, keep_attrs)

    def over_block(self, *, skipna=None, keep_attrs=None):
        return self._reduced(name, keep_attrs, skipna)

    method = over_block if skips else over_window
    method.__name__, method.__doc__ = name, f"Return the {_TEXT.get(name, name)} of each {what}."
    return method


for _name in _REDUCTIONS:
    setattr(Rolling, _name, _method(_name, "window", False))
for _name in _OVER_BLOCKS:
    setattr(Coarsen, _name, _method(_name, "block", True))


class Weighted:
    """An array with weights for its elements; NaN elements take no part, with their weights."""

    def __init__(self, x: Handle, weights: Handle):
        self.x, self.weights = x, weights
        if weights.dtype.kind not in "biuf":
            raise ArgumentError(f"weights are real numbers, got dtype {weights.dtype}.")

    def _total(self, x: Handle, dim: object) -> Handle:
        return x.dot(self.weights, dim=[d for d in dict.fromkeys((*x.dims, *self.weights.dims))
                                        if d in self._over(dim)])  # fmt: skip

    def _over(self, dim: object) -> tuple[str, ...]:
        every = tuple(dict.fromkeys((*self.x.dims, *self.weights.dims)))
        dims = every if dim is None or dim is ... else (dim,) if isinstance(dim, str) else dim
        for d in dims:
            if d not in every:
                self.x.get_axis_num(d)
        return tuple(dims)

    def _filled(self, x: Handle, skipna: object) -> Handle:
        return x.fillna(0.0) if x._skips(skipna) and x.dtype.kind in "fc" else x

    def _result(self, out: Handle, keep_attrs: object, name: object = None) -> Handle:
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        return out._of(out._v, out._coords, self.x._name, self.x._attrs if keep else None)

    def _weight(self, dim: object) -> Handle:
        there = self.x.notnull().astype(np.float64 if self.weights.dtype.kind != "f"
                                        else self.weights.dtype)  # fmt: skip
        total = self._total(there, dim)
        return total.where(total != 0)

    def _mean(self, dim: object, skipna: object) -> Handle:
        return self._total(self._filled(self.x, skipna), dim) / self._weight(dim)

    def _squares(self, dim: object, skipna: object) -> Handle:
        centred = self.x - self._mean(dim, skipna)
        return self._total(self._filled(centred**2, skipna), dim)

    def sum_of_weights(self, dim=None, *, keep_attrs=None) -> Handle:
        """Return the sum of the weights of elements that are not NaN; NaN where it is 0."""
        return self._result(self._weight(dim), keep_attrs)

    def sum(self, dim=None, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the weighted sum over dims."""
        return self._result(self._total(self._filled(self.x, skipna), dim), keep_attrs)

    def mean(self, dim=None, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the weighted mean over dims."""
        return self._result(self._mean(dim, skipna), keep_attrs)

    def sum_of_squares(self, dim=None, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the weighted sum of squared differences from the weighted mean."""
        return self._result(self._squares(dim, skipna), keep_attrs)

    def var(self, dim=None, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the weighted variance over dims."""
        return self._result(self._squares(dim, skipna) / self._weight(dim), keep_attrs)

    def std(self, dim=None, *, skipna=None, keep_attrs=None) -> Handle:
        """Return the weighted standard deviation over dims."""
        out = self._squares(dim, skipna) / self._weight(dim)
        return self._result(out._like(op.sqrt(out._v), out._coords), keep_attrs)


class Windowing(Handle):
    """The methods of XTensor that make windows and blocks."""

    __slots__ = ()

    def rolling(self, dim=None, min_periods=None, center: object = False, **kw: int) -> Rolling:
        """Return windows along dims: `x.rolling(time=7, center=True).mean()`.

        A window with fewer than `min_periods` elements (all of them unless told) gives NaN.
        """
        sizes = {d: n if not isinstance(n, np.integer) else int(n)
                 for d, n in either(dim, kw, "rolling").items()}  # fmt: skip
        return Rolling(self, sizes, min_periods, center)

    def cumulative(self, dim: object, min_periods: int = 1) -> Rolling:
        """Return windows from the start of dims to each position."""
        dims = [dim] if isinstance(dim, str) else list(dim)  # type: ignore[call-overload]
        sizes = {d: self.sizes[d] if d in self.dims else self.get_axis_num(d) for d in dims}
        return Cumulative(self, sizes, min_periods, False)

    def coarsen(
        self, dim=None, boundary: object = "exact", side: object = "left",
        coord_func: object = "mean", **kw: int,
    ) -> Coarsen:  # fmt: skip
        """Return blocks along dims: `x.coarsen(time=7, boundary="trim").mean()`."""
        return Coarsen(self, either(dim, kw, "coarsen"), boundary, side, coord_func)

    def weighted(self, weights: object) -> Weighted:
        """Return the array with weights for its elements; weights must hold no NaN."""
        w = self._as(weights)
        if w._v.is_data and w.dtype.kind == "f" and np.isnan(w._v.value).any():
            raise CoordError("weights hold NaN; fill them with weights.fillna(0).")
        return Weighted(self, w)
