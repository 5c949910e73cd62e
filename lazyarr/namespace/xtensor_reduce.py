"""Reduction methods of XTensor, cumulative ones, order statistics, integrals and differences."""

from collections.abc import Callable, Mapping

import numpy as np

from lazyarr.config import get_options, options
from lazyarr.errors import ArgumentError, CoordError, DimError
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops._declare import axes_of
from lazyarr.graph.registry import op
from lazyarr.namespace.xtensor_data import cast
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.xtensor import moving, reducing, slopes
from lazyarr.xtensor.coords import Coord
from lazyarr.xtensor.naming import unnamed


class Reducing(Handle):
    """Methods that combine elements along dims."""

    __slots__ = ()

    def _axes(self, dim: object) -> tuple[int, ...]:
        """Return dims (None or ...: all; a name or several) as positions."""
        if dim is not None and dim is not ... and not isinstance(dim, str):
            dim = list(dim)  # type: ignore[call-overload]
        for d in [dim] if isinstance(dim, str) else dim if isinstance(dim, list) else ():
            if not isinstance(d, str):
                raise DimError(f"a dimension is named by a str, not {d!r}; dims are {self.dims}.")
        return axes_of(self._v, dim)

    def _named(self, dim: object, axis: object, words: Mapping) -> object:
        """Return axes as dims. NumPy's functions also pass its words, which must have no value."""
        for word, value in words.items():
            if value is not None and value is not np._NoValue:
                raise ArgumentError(f"a reduction by name takes no {word}=, got {value!r}.")
        if axis is None:
            return dim
        if dim is not None:
            raise ArgumentError("a reduction takes dim or axis, not both.")
        if not isinstance(axis, tuple | list):
            return self.dims[axis]  # type: ignore[index]
        return [self.dims[i] for i in axis]

    def _kept(self, keep_attrs: bool | None) -> dict | None:
        """The attributes of a result."""
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        return self._attrs if keep else None

    def _reduced(
        self, name: str, dim: object, skipna: object, keep_attrs: object, **kw
    ) -> "Handle":
        now = get_options()
        skip = now.skipna is not False if skipna is None else bool(skipna)
        keep = now.keep_attrs if keep_attrs is None else keep_attrs
        v = self._v
        named = dim if dim.__class__ is str else (dim.__class__, repr(dim))
        key = (name, v.type, named, skip, skipna, *kw.items())
        node = moving.again(key, v, lambda: self._reduction(name, dim, skip, skipna, kw))
        coords = self._coords.within(node.type.dims)
        return self._of(node, coords, self._name, self._attrs if keep else None)

    def _reduction(self, name: str, dim: object, skip: bool, skipna: object, kw: dict) -> Variable:
        axes = self._axes(dim)
        if axes or dim is None or dim is ... or name not in reducing.UNCHANGED:
            x = self._v
            if skipna and kw.get("min_count") is not None and self.dtype.kind in "biu":
                x = cast(x, np.dtype(np.float64))  # as xarray: NaN must fit
            return reducing.reduce(name, x, axes, skip, **kw)
        return self._v  # an empty list of dims

    def _skips(self, skipna: object) -> bool:
        return options.skipna is not False if skipna is None else bool(skipna)

    def sum(
        self, dim=None, *, axis=None, skipna=None, min_count=None, keep_attrs=None, **words
    ) -> "Handle":
        """Return the sum over dims; NaN where fewer than `min_count` elements are there."""
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._reduced("sum", dim, skipna, keep_attrs, min_count=min_count)

    def prod(
        self, dim=None, *, axis=None, skipna=None, min_count=None, keep_attrs=None, **words
    ) -> "Handle":
        """Return the product over dims; NaN where fewer than `min_count` elements are there."""
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._reduced("prod", dim, skipna, keep_attrs, min_count=min_count)

    def var(
        self, dim=None, *, axis=None, skipna=None, ddof=0, keep_attrs=None, **words
    ) -> "Handle":
        """Return the variance over dims, `ddof` taken off the number of elements."""
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._reduced("var", dim, skipna, keep_attrs, ddof=ddof)

    def std(
        self, dim=None, *, axis=None, skipna=None, ddof=0, keep_attrs=None, **words
    ) -> "Handle":
        """Return the standard deviation over dims."""
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._reduced("std", dim, skipna, keep_attrs, ddof=ddof)

    def argmax(self, dim=None, *, axis=None, skipna=None, keep_attrs=None, **words):
        """Return the position of the first largest element along a dim (None: among all).

        Of several dims a dict of positions by dim.
        """
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._placed("argmax", dim, skipna, keep_attrs)

    def argmin(self, dim=None, *, axis=None, skipna=None, keep_attrs=None, **words):
        """Return the position of the first smallest element along a dim, as `argmax`."""
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._placed("argmin", dim, skipna, keep_attrs)

    def _placed(self, name: str, dim: object, skipna: object, keep_attrs: object):
        if dim is None or isinstance(dim, str):
            return self._reduced(name, dim, skipna, keep_attrs)
        dims = tuple(self.dims[i] for i in self._axes(dim))
        if dim is not ...:
            dims = tuple(dim)
        flat = moving.flatten_dims(self._v, dims, "_all")
        skip = self._skips(skipna)
        place = reducing.reduce(name, flat, (flat.type.axis("_all"),), skip)
        found = {}
        for d in reversed(dims):
            size = self.sizes[d]
            found[d] = self._like(op.remainder(place, size))
            place = op.floor_divide(place, size)
        return {d: found[d] for d in dims}

    def idxmax(self, dim=None, *, skipna=None, fill_value=np.nan, keep_attrs=None) -> "Handle":
        """Return the label of the first largest element along a dim; NaN where all are NaN."""
        return self._label_at("argmax", dim, skipna, fill_value, keep_attrs)

    def idxmin(self, dim=None, *, skipna=None, fill_value=np.nan, keep_attrs=None) -> "Handle":
        """Return the label of the first smallest element along a dim; NaN where all are NaN."""
        return self._label_at("argmin", dim, skipna, fill_value, keep_attrs)

    def _label_at(
        self, name: str, dim: object, skipna: object, fill: object, keep_attrs: object
    ) -> "Handle":
        if dim is None and self.ndim == 1:
            dim = self.dims[0]
        if not isinstance(dim, str):
            raise DimError(f"idxmax and idxmin need one of the dims {self.dims}, got {dim!r}.")
        labels = self._labels_of(dim).labels
        if labels.dtype.kind not in "iuf":
            raise CoordError(
                f"the labels of {dim!r} have dtype {labels.dtype}, which no lazy array holds; take "
                "argmax or argmin and look its result up in x.coords."
            )
        axes = (self._v.type.axis(dim),)
        place = reducing.first_place(name, self._v, axes, self._skips(skipna))
        node = op.with_dims(op.take(data(labels), unnamed(place), axis=0), place.type.dims)
        if self.dtype.kind in "fc" and self._skips(skipna):
            full = op.any(reducing.notnull(self._v), axis=axes)
            node = op.where(full, cast(node, moving.nan_dtype(labels.dtype)), fill)
        coords = self._coords.within(node.type.dims)
        return self._of(node, coords, dim, self._kept(keep_attrs))

    def count(self, dim=None, *, keep_attrs=None) -> "Handle":
        """Return the number of elements that are not NaN over dims."""
        node = reducing.count(self._v, self._axes(dim))
        coords = self._coords.within(node.type.dims)
        return self._of(node, coords, self._name, self._kept(keep_attrs))

    def _running(self, name: str, dim: object, skipna: object, keep_attrs) -> "Handle":
        skip = self._skips(skipna)
        dims = [self.dims[i] for i in self._axes(dim)]
        node = reducing.cumulative(name, self._v, dims, skip)
        return self._of(node, self._coords, self._name, self._kept(keep_attrs))

    def cumsum(self, dim=None, *, skipna=None, keep_attrs=None) -> "Handle":
        """Return the running sum along dims."""
        return self._running("cumulative_sum", dim, skipna, keep_attrs)

    def cumprod(self, dim=None, *, skipna=None, keep_attrs=None) -> "Handle":
        """Return the running product along dims."""
        return self._running("cumulative_prod", dim, skipna, keep_attrs)

    def reduce(
        self, func: Callable, dim=None, *, axis=None, keep_attrs=None, keepdims=False, **kw
    ) -> "Handle":
        """Return `func(array, axis=...)` over dims; func works on lazy positional arrays."""
        if axis is not None:
            dim = [self.dims[i] for i in np.atleast_1d(axis)]
        axes = self._axes(dim)
        places: object = axes if len(axes) != 1 else axes[0]
        out = func(self.data, axis=places, **kw) if dim is not None else func(self.data, **kw)
        dims = tuple(d for i, d in enumerate(self.dims) if i not in axes)
        node = op.with_dims(out._v, dims)
        if keepdims:
            node = moving.transpose(moving.expand(node, {self.dims[i]: 1 for i in axes}), self.dims)
            changed = [d for d in (self.dims[i] for i in axes) if self.sizes[d] != 1]
            return self._like(node, self._coords.without_dim(*changed))
        return self._like(node)

    # -- order statistics -------------------------------------------------------------------------

    def median(self, dim=None, *, axis=None, skipna=None, keep_attrs=None) -> "Handle":
        """Return the median over dims."""
        dim = dim if axis is None else self._named(dim, axis, {})
        return self._reduced("median", dim, skipna, keep_attrs)

    def quantile(
        self, q: object, dim=None, *, method: str = "linear", keep_attrs=None, skipna=None
    ) -> "Handle":
        """Return the elements at fractions q of the order over dims; several q are a first dim.

        method: "linear", "lower", "higher", "midpoint" or "nearest".
        """
        fractions = np.asarray(q, np.float64)
        if fractions.ndim > 1 or np.any((fractions < 0) | (fractions > 1)):
            raise ArgumentError(f"quantile takes fractions between 0 and 1, got {q!r}.")
        if method not in reducing.METHODS:
            known = ", ".join(reducing.METHODS)
            raise ArgumentError(f"quantile: method is one of {known}; got {method!r}.")
        skip = self._skips(skipna)
        node = reducing.quantile(self._v, self._axes(dim), fractions, skip, method)
        dims = ("quantile",) if fractions.ndim else ()
        kept = self._coords.where(lambda name, c: bool(c.dims))  # as xarray's quantile
        coords = kept.within(node.type.dims).assign(
            {"quantile": Coord.of("quantile", dims, fractions)}
        )
        return self._of(node, coords, self._name, self._kept(keep_attrs))

    # -- integrals and derivatives ----------------------------------------------------------------

    def _steps(self, coord: str, unit: str | None) -> tuple[str, np.ndarray]:
        """The dim that a coordinate lies on, and its distances."""
        c = self._coord_or_positions(coord)
        if len(c.dims) != 1:
            raise DimError(f"coordinate {coord!r} lies on dims {c.dims}; one is needed.")
        return c.dims[0], slopes.spacing(c.values, coord, unit)

    def integrate(self, coord=None, datetime_unit: str | None = None) -> "Handle":
        """Return the integral along coordinates by the trapezoidal rule."""
        out = self
        for name in [coord] if isinstance(coord, str) else coord:
            dim, steps = out._steps(name, datetime_unit)
            out = out._like(slopes.integrate(out._v, dim, steps))
        return out._of(out._v, out._coords, self._name)

    def cumulative_integrate(self, coord=None, datetime_unit: str | None = None) -> "Handle":
        """Return the integral along coordinates up to each position."""
        out = self
        for name in [coord] if isinstance(coord, str) else coord:
            dim, steps = out._steps(name, datetime_unit)
            out = out._like(slopes.cumulative_integrate(out._v, dim, steps), out._coords)
        return out._of(out._v, out._coords, self._name)

    def differentiate(
        self, coord: str, edge_order: int = 1, datetime_unit: str | None = None
    ) -> "Handle":
        """Return the derivative along a coordinate, one-sided of order 1 or 2 at the ends."""
        if edge_order not in (1, 2):
            raise ArgumentError(f"differentiate: edge_order is 1 or 2, got {edge_order!r}.")
        dim, steps = self._steps(coord, datetime_unit)
        node = slopes.differentiate(self._v, dim, steps, edge_order)
        return self._of(node, self._coords, self._name)


def _reduction(name: str, doc: str):
    def method(self, dim=None, *, axis=None, skipna=None, keep_attrs=None, **words):
        dim = self._named(dim, axis, words) if words or axis is not None else dim
        return self._reduced(name, dim, skipna, keep_attrs)

    method.__name__, method.__doc__ = name, doc
    method.__qualname__ = f"XTensor.{name}"
    return method


_REDUCTIONS = {
    "mean": "Return the mean over dims.",
    "max": "Return the largest element over dims.",
    "min": "Return the smallest element over dims.",
    "all": "Return whether all elements over dims are true.",
    "any": "Return whether some element over dims is true.",
}
for _name, _doc in _REDUCTIONS.items():
    setattr(Reducing, _name, _reduction(_name, _doc))
