"""XTensor: the handle of an array with named dimensions and coordinates, recorded lazily.

It holds a node of named type, and beside it what the graph does not know: coordinates, name and
attrs. The methods are xarray's; they record, and label work is done at once. `values`,
`to_xarray`, `item` and Python's conversions compute.

>>> x = XTensor([1.0, 2.0, 4.0], dims="obs", coords={"obs": ["a", "b", "c"]})
>>> float((x * 2).sel(obs="c"))
8.0
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lazyarr.backends.implicit import register_handle
from lazyarr.config import options
from lazyarr.errors import ArgumentError, DimError, near_match
from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import axes_of
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.shapes import Size
from lazyarr.namespace import xtensor_index
from lazyarr.namespace.array import UFUNCS, Array, safe
from lazyarr.namespace.xtensor_data import either, is_labelled, merged_attrs
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.xtensor import moving, reducing
from lazyarr.xtensor.coords import EMPTY, Coord, Coords, make_coords
from lazyarr.xtensor.joining import merge


@register_handle
class XTensor(Handle):
    """A lazy array with named dimensions, coordinates, a name and attributes.

    data: numbers, a NumPy array, a lazyarr Array, an xr.DataArray (whose dims, coords, name and
    attrs are taken) or an XTensor. dims: a name or several. coords: labels by dim, or `(dims,
    values)` by name. Raises DimError for missing, duplicate or unknown dims, CoordError for
    labels that do not fit.
    """

    __slots__ = ()

    # -- selection --------------------------------------------------------------------------------

    def isel(
        self, indexers=None, drop: bool = False, missing_dims: str = "raise", **kw
    ) -> "XTensor":
        """Return the elements at positions along dims.

        A position is an integer, a slice, a list, array or mask (each dim apart), or an XTensor
        or xr.DataArray of integers, whose dims take the place of the dim; those that share a dim
        select point by point. Raises BoundsError for a position outside its dim.
        """
        keys = either(indexers, kw, "isel")
        if missing_dims == "ignore":
            keys = {d: k for d, k in keys.items() if d in self.dims}
        return self._like(*xtensor_index.select(self._v, self._coords, keys, drop))

    def sel(
        self, indexers=None, method=None, tolerance=None, drop: bool = False, **kw
    ) -> "XTensor":
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

    def _coordinate(self, name: str) -> "XTensor | Coord":
        """A coordinate as an array where its dtype allows, or as it is."""
        c = self._coords[name]
        if isinstance(c.values, np.ndarray) and c.values.dtype.kind not in "biufc":
            return c
        return XTensor(c.values, c.dims, self._coords.within(c.dims), name, c.attrs)

    def head(self, indexers=None, **kw) -> "XTensor":
        """Return the first elements along dims (5 unless told)."""
        return self.isel({d: slice(n) for d, n in self._counts(indexers, kw).items()})

    def tail(self, indexers=None, **kw) -> "XTensor":
        """Return the last elements along dims (5 unless told)."""
        counts = self._counts(indexers, kw)
        return self.isel({d: slice(-n, None) if n else slice(0) for d, n in counts.items()})

    def thin(self, indexers=None, **kw) -> "XTensor":
        """Return every n-th element along dims."""
        return self.isel({d: slice(None, None, n) for d, n in self._counts(indexers, kw).items()})

    def _counts(self, given: object, kw: Mapping) -> dict:
        if given is None and not kw:
            return dict.fromkeys(self.dims, 5)
        return dict.fromkeys(self.dims, given) if isinstance(given, int) else either(given, kw, "n")

    # -- arrangement ------------------------------------------------------------------------------

    def transpose(self, *dims: object, missing_dims: str = "raise") -> "XTensor":
        """Return the dims in another order; `...` stands for those not named."""
        if missing_dims == "ignore":
            dims = tuple(d for d in dims if d is ... or d in self.dims)
        order = moving.complete_order(self.dims, dims)
        return self._like(moving.transpose(self._v, order), self._coords)

    @property
    def T(self) -> "XTensor":
        """The dimensions in reverse order."""
        return self.transpose()

    def rename(self, new_name_or_name_dict=None, **names: str) -> "XTensor":
        """Return the array under another name, or with other names of dims and coordinates."""
        if not names and not isinstance(new_name_or_name_dict, Mapping):
            return XTensor._of(self._v, self._coords, new_name_or_name_dict, self._attrs)
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

    def swap_dims(self, dims=None, **kw: str) -> "XTensor":
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

    def expand_dims(self, dim=None, axis: int = 0, **kw) -> "XTensor":
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

    def squeeze(self, dim=None, drop: bool = False) -> "XTensor":
        """Return the array without dims of size 1 (of known size 1 when none is named)."""
        if dim is None:
            dims = [d for d, s in self.sizes.items() if s == 1]
        else:
            dims = [self.dims[i] for i in self._axes(dim)]
        node = moving.squeeze(self._v, dims)
        coords = self._coords.isel(dict.fromkeys(dims, 0))
        return self._like(node, coords.drop(set(dims) & set(coords)) if drop else coords)

    def broadcast_like(self, other: "XTensor") -> "XTensor":
        """Return the array with the missing dims of another one."""
        other = as_xtensor(other)
        sizes = moving.joined_sizes((other._v.type, self._v.type))
        node = moving.broadcast(self._v, sizes)
        indexes = other._coords.where(lambda name, c: c.index is not None)
        return self._like(node, merge([self._coords, indexes], options.arithmetic_join))

    def shift(self, shifts=None, fill_value=None, **kw: int) -> "XTensor":
        """Return the elements moved along dims, free places filled (with NaN unless told)."""
        node = self._v
        if fill_value is None:
            fill_value, node = np.nan, _as_dtype(node, moving.nan_dtype(self.dtype))
        for dim, n in either(shifts, kw, "shift").items():
            node = moving.shift(node, dim, n, fill_value)
        return self._like(node, self._coords)

    def diff(self, dim: str, n: int = 1, *, label: str = "upper") -> "XTensor":
        """Return the n-th differences along a dim, labelled by the upper or lower neighbour."""
        if label not in ("upper", "lower"):
            raise ArgumentError(f"label is 'upper' or 'lower', got {label!r}.")
        kept = slice(n, None) if label == "upper" else slice(None, -n if n else None)
        return self._like(moving.diff(self._v, dim, n), self._coords.isel({dim: kept}))

    # -- coordinates, name, attrs -----------------------------------------------------------------

    def assign_coords(self, coords=None, **kw) -> "XTensor":
        """Return the array with coordinates added or replaced."""
        new = make_coords(either(coords, kw, "assign_coords"), self.dims, self.sizes)
        return self._like(self._v, self._coords.assign(new))

    def drop_vars(self, names: object, *, errors: str = "raise") -> "XTensor":
        """Return the array without some coordinates."""
        many = [names] if isinstance(names, str) else list(names)  # type: ignore[call-overload]
        if errors == "ignore":
            many = [n for n in many if n in self._coords]
        return self._like(self._v, self._coords.drop(many))

    drop_indexes = drop_vars

    def reset_coords(self, names: object = None, *, drop: bool = False) -> "XTensor":
        """Return the array without its coordinates that are no index; `drop=True` is needed."""
        if not drop:
            raise ArgumentError("reset_coords makes a Dataset; only drop=True is supported.")
        plain = [k for k, c in self._coords.items() if c.index is None]
        return self.drop_vars(plain if names is None else names)

    def assign_attrs(self, *args: Mapping, **kw) -> "XTensor":
        """Return the array with attributes added or replaced."""
        return XTensor._of(self._v, self._coords, self._name, {**self.attrs, **dict(*args, **kw)})

    def copy(self, deep: bool = True, data: object = None) -> "XTensor":
        """Return a new handle on the same array, or on other data of the same dims and dtype."""
        if data is None:
            return self._like(self._v, self._coords)
        return self._with_value(self._v.type.filter(data))

    def pipe(self, f: Callable, *args: object, **kw: object):
        """Return `f(self, *args, **kw)`."""
        return f(self, *args, **kw)

    # -- elements ---------------------------------------------------------------------------------

    def astype(self, dtype: object) -> "XTensor":
        """Return the elements in another dtype."""
        return self._like(op.astype(self._v, dtype), self._coords)

    def where(self, cond: object, other: object = None, drop: bool = False) -> "XTensor":
        """Return the elements where a condition holds, `other` (NaN unless given) elsewhere."""
        if drop:
            raise ArgumentError(
                "where(drop=True) has a size that depends on data; use isel with a known mask."
            )
        x = self
        if other is None:
            other, x = np.nan, self.astype(moving.nan_dtype(self.dtype))
        out = _many("where", cond(x) if callable(cond) else cond, x, other)
        dims = tuple(dict.fromkeys((*self.dims, *out.dims)))
        return XTensor._of(moving.transpose(out._v, dims), out._coords, self._name, self._attrs)

    def fillna(self, value: object) -> "XTensor":
        """Return the elements, NaN replaced by a value."""
        return self.where(self.notnull(), value) if self.dtype.kind in "fc" else self.copy()

    def isnull(self) -> "XTensor":
        """Return where the elements are NaN."""
        return self._like(reducing.isnull(self._v), self._coords)

    def notnull(self) -> "XTensor":
        """Return where the elements are not NaN."""
        return self._like(reducing.notnull(self._v), self._coords)

    def clip(self, min: object = None, max: object = None) -> "XTensor":
        """Return the elements within bounds; a bound with dims adds them to the result."""
        bounds = [None if b is None else operand(b) for b in (min, max)]
        nodes = [b._v if isinstance(b, XTensor) else b for b in bounds]
        return wrap_named(op.clip(self._v, *nodes), (self, *bounds))

    def dot(self, other: object, dim: object = None) -> "XTensor":
        """Return the product summed over dims: those named, `...` for all, or those shared."""
        return dot(self, other, dim=dim)

    def __matmul__(self, other: object) -> "XTensor":
        return dot(self, other)

    def __rmatmul__(self, other: object) -> "XTensor":
        return dot(other, self)

    # -- reductions -------------------------------------------------------------------------------

    def _axes(self, dim: object) -> tuple[int, ...]:
        """Return dims (None or ...: all; a name or several) as positions."""
        if dim is not None and dim is not ... and not isinstance(dim, str):
            dim = list(dim)  # type: ignore[call-overload]
        for d in [dim] if isinstance(dim, str) else dim if isinstance(dim, list) else ():
            if not isinstance(d, str):
                raise DimError(f"a dimension is named by a str, not {d!r}; dims are {self.dims}.")
        return axes_of(self._v, dim)

    def _reduced(
        self, name: str, dim: object, skipna: object, keep_attrs: object, **kw
    ) -> "XTensor":
        skip = options.skipna is not False if skipna is None else bool(skipna)
        axes = self._axes(dim)
        if axes or dim is None or dim is ... or name not in reducing.UNCHANGED:
            node = reducing.reduce(name, self._v, axes, skip, **kw)
        else:  # an empty list of dims
            node = self._v
        keep = options.keep_attrs if keep_attrs is None else keep_attrs
        coords = self._coords.within(node.type.dims)
        return XTensor._of(node, coords, self._name, self._attrs if keep else None)

    def sum(self, dim=None, *, skipna=None, min_count=None, keep_attrs=None) -> "XTensor":
        """Return the sum over dims; NaN where fewer than `min_count` elements are there."""
        return self._reduced("sum", dim, skipna, keep_attrs, min_count=min_count)

    def prod(self, dim=None, *, skipna=None, min_count=None, keep_attrs=None) -> "XTensor":
        """Return the product over dims; NaN where fewer than `min_count` elements are there."""
        return self._reduced("prod", dim, skipna, keep_attrs, min_count=min_count)

    def var(self, dim=None, *, skipna=None, ddof=0, keep_attrs=None) -> "XTensor":
        """Return the variance over dims, `ddof` taken off the number of elements."""
        return self._reduced("var", dim, skipna, keep_attrs, ddof=ddof)

    def std(self, dim=None, *, skipna=None, ddof=0, keep_attrs=None) -> "XTensor":
        """Return the standard deviation over dims."""
        return self._reduced("std", dim, skipna, keep_attrs, ddof=ddof)

    def argmax(self, dim=None, *, skipna=None, keep_attrs=None) -> "XTensor":
        """Return the position of the first largest element along a dim (None: among all)."""
        return self._reduced("argmax", self._one(dim), skipna, keep_attrs)

    def argmin(self, dim=None, *, skipna=None, keep_attrs=None) -> "XTensor":
        """Return the position of the first smallest element along a dim (None: among all)."""
        return self._reduced("argmin", self._one(dim), skipna, keep_attrs)

    def _one(self, dim: object) -> object:
        if dim is not None and not isinstance(dim, str):
            raise DimError(f"one dimension is needed, got {dim!r}; dims are {self.dims}.")
        return dim

    def count(self, dim=None, *, keep_attrs=None) -> "XTensor":
        """Return the number of elements that are not NaN over dims."""
        return self._like(reducing.count(self._v, self._axes(dim)))

    def _running(self, name: str, dim: object, skipna: object) -> "XTensor":
        skip = options.skipna is not False if skipna is None else bool(skipna)
        dims = [self.dims[i] for i in self._axes(dim)]
        return self._like(reducing.cumulative(name, self._v, dims, skip), self._coords)

    def cumsum(self, dim=None, *, skipna=None) -> "XTensor":
        """Return the running sum along dims."""
        return self._running("cumulative_sum", dim, skipna)

    def cumprod(self, dim=None, *, skipna=None) -> "XTensor":
        """Return the running product along dims."""
        return self._running("cumulative_prod", dim, skipna)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        name = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or name is None or kwargs:
            return NotImplemented
        for x in inputs:
            if isinstance(x, np.ndarray) and x.ndim:
                raise DimError(
                    f"a NumPy array of shape {x.shape} meets an XTensor with dims {self.dims}: "
                    "name its axes with XTensor(a, dims=...). An xr.DataArray on the left of an "
                    "operator arrives here without its dims: write from_xarray(a) instead of a."
                )
        return _many(name, *inputs)


def _as_dtype(v: Variable, dtype: np.dtype) -> Variable:
    return v if v.type.dtype == dtype else op.astype(v, dtype)


# -- several operands -----------------------------------------------------------------------------


def as_xtensor(value: object) -> XTensor:
    """Return anything with dims (an xr.DataArray), or a number, as an XTensor."""
    return value if value.__class__ is XTensor else XTensor(value)


def operand(value: object) -> object:
    """Return an operand: an XTensor for what has dims, a node or a raw number for the rest."""
    if isinstance(value, XTensor) or value.__class__ in (int, float, bool, complex, Size, Variable):
        return value
    if isinstance(value, Array):
        return value._v
    return XTensor(value) if is_labelled(value) else np.asarray(value)


def _many(name: str, *operands: object) -> XTensor:
    """Record an op of the catalogue on operands of which some have dims."""
    found = [operand(x) for x in operands]
    return wrap_named(OPS[name](*(x._v if isinstance(x, XTensor) else x for x in found)), found)


elementwise = _many


def wrap_named(variable: Variable, operands: Sequence) -> XTensor:
    """Return the handle of a named result, with what its operands' handles say.

    Indexes are joined as `arithmetic_join` says; coordinates of dims that are gone or have
    another size are dropped; name and attributes are those of the first, as in functions of
    xarray.
    """
    named = [as_xtensor(x) for x in operands if x.__class__ is XTensor or is_labelled(x)]
    if not named:
        return XTensor._of(variable, EMPTY)
    expr = variable.expr if variable.op is not None and variable.op.kind == "elementwise" else ()
    many = [x._coords if x._v in expr else _surviving(variable, x) for x in named]
    coords = many[0] if len(many) == 1 else merge(many, options.arithmetic_join)
    attrs = named[0]._attrs if options.keep_attrs else None
    return XTensor._of(variable, coords, named[0]._name, attrs)


def _surviving(variable: Variable, x: XTensor) -> Coords:
    """The coordinates of an operand that also describe the result."""
    coords = x._coords
    if not coords:
        return coords
    sizes, own = variable.type.sizes, x._v.type.sizes
    coords = coords.where(
        lambda name, c: all(d in sizes and (sizes[d] == own[d] or c.index is None) for d in c.dims)
    )
    record, params = variable.op, variable.params
    if record.name == "flip":
        turned = [variable.type.dims[i] for i in params["axis"]]
        return coords.isel(dict.fromkeys(turned, slice(None, None, -1)))
    if record.kind == "indexing" and variable.inputs[0] is x._v:
        return coords.without_dim(x.dims[params["axis"]])
    changed = [d for d in own if d in sizes and sizes[d] is not own[d] and sizes[d] != own[d]]
    return coords.without_dim(*changed) if changed else coords


def dot(*arrays: object, dim: object = None) -> XTensor:
    """Return the product of arrays summed over dims: those named, `...` for all, or shared ones."""
    handles = [as_xtensor(x) for x in arrays]
    if dim is ...:
        dim = dict.fromkeys(d for x in handles for d in x.dims)
    over = None if dim is None else [dim] if isinstance(dim, str) else list(dim)
    return wrap_named(moving.dot([x._v for x in handles], over), handles)


# -- operators ------------------------------------------------------------------------------------


def _pair(variable: Variable, a: XTensor, b: XTensor) -> XTensor:
    """Return the handle of a binary result; most often both sides have the same labels."""
    coords, other = a._coords, b._coords
    if coords is not other and other._items:
        coords = merge([coords, other], options.arithmetic_join) if coords._items else other
    attrs = a._attrs
    if attrs is not b._attrs:
        attrs = merged_attrs([attrs, b._attrs])
    return XTensor._of(variable, coords, a._name if a._name == b._name else None, attrs)


def _binary(name: str):
    """Return an operator and its reflection, recording known types by the shortest way."""
    record = OPS[name]
    call = record.bare
    known: dict = {}

    def node(a: Variable, b: object) -> Variable:
        key = (a.type, b.type if b.__class__ is Variable else b.__class__)
        found = known.get(key)
        if found is not None:
            return Variable(found, (call, a, b))
        out = record(a, b)
        if out.call is call and (b.__class__ is Variable or safe(a.type, b)):
            if len(known) > _MEMO_LIMIT:
                known.clear()
            known[key] = out.type
        return out

    def forward(self, other):
        if other.__class__ is XTensor:
            return _pair(node(self._v, other._v), self, other)
        b = _other_side(other)
        if b.__class__ is XTensor:
            return _pair(node(self._v, b._v), self, b)
        if b is None:
            return NotImplemented
        return XTensor._of(node(self._v, b), self._coords, self._name, self._attrs)

    def backward(self, other):
        b = _other_side(other)
        if b.__class__ is XTensor:
            return _pair(record(b._v, self._v), b, self)
        if b is None:
            return NotImplemented
        return XTensor._of(record(b, self._v), self._coords, self._name, self._attrs)

    return forward, backward


def _other_side(value: object) -> object:
    """Return an operand of an operator, or None for what is left to the other side."""
    cls = value.__class__
    if cls in (int, float, bool, complex) or cls is Size:
        return value
    known = Array | Variable | np.ndarray | np.generic | int | float | complex
    return operand(value) if isinstance(value, known) or is_labelled(value) else None


def _unary(name: str):
    record = OPS[name]
    return lambda self: XTensor._of(record(self._v), self._coords, self._name, self._attrs)


def _reduction(name: str, doc: str):
    def method(self, dim=None, *, skipna=None, keep_attrs=None):
        return self._reduced(name, dim, skipna, keep_attrs)

    method.__name__, method.__doc__ = name, doc
    method.__qualname__ = f"XTensor.{name}"
    return method


_MEMO_LIMIT = 4096
_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
_REDUCTIONS = {
    "mean": "Return the mean over dims.",
    "max": "Return the largest element over dims.",
    "min": "Return the smallest element over dims.",
    "all": "Return whether all elements over dims are true.",
    "any": "Return whether some element over dims is true.",
}
for _method, _name in _OPERATORS.items():
    _forward, _backward = _binary(_name)
    setattr(XTensor, f"__{_method}__", _forward)
    setattr(XTensor, f"__r{_method}__", _backward)
for _method, _name in _COMPARISONS.items():
    setattr(XTensor, f"__{_method}__", _binary(_name)[0])
for _method, _name in (("neg", "negative"), ("pos", "positive"), ("abs", "abs"),
                       ("invert", "bitwise_invert")):  # fmt: skip
    setattr(XTensor, f"__{_method}__", _unary(_name))
XTensor.round = _unary("round")
for _name, _doc in _REDUCTIONS.items():
    setattr(XTensor, _name, _reduction(_name, _doc))


def from_xarray(array: object) -> XTensor:
    """Return an xr.DataArray as an XTensor: its values, dims, coords, name and attrs."""
    return XTensor(array)
