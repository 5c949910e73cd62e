"""XTensor: the handle of an array with named dimensions and coordinates, recorded lazily.

It holds a node of named type, and beside it what the graph does not know: coordinates, name and
attrs. The methods are xarray's; they record, and label work is done at once. `values`,
`to_xarray`, `item` and Python's conversions compute.

>>> x = XTensor([1.0, 2.0, 4.0], dims="obs", coords={"obs": ["a", "b", "c"]})
>>> float((x * 2).sel(obs="c"))
8.0
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazyarr.config import options
from lazyarr.errors import ArgumentError, CoordError, DimError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Call, Variable, data, on_native
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph, leaves
from lazyarr.namespace import xtensor_join
from lazyarr.namespace.array import UFUNCS, Array, safe
from lazyarr.namespace.xtensor_arrange import Arranging
from lazyarr.namespace.xtensor_data import is_labelled, merged_attrs
from lazyarr.namespace.xtensor_group import Grouping
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.namespace.xtensor_reduce import Reducing
from lazyarr.namespace.xtensor_select import Selecting
from lazyarr.namespace.xtensor_window import Windowing
from lazyarr.xtensor import moving, reducing
from lazyarr.xtensor.coords import EMPTY, Coords, same_values
from lazyarr.xtensor.joining import MOVING, merge
from lazyarr.xtensor.lower import lower_named
from lazyarr.xtensor.naming import unnamed


class XTensor(Selecting, Arranging, Reducing, Grouping, Windowing, Handle):
    """A lazy array with named dimensions, coordinates, a name and attributes.

    data: numbers, a NumPy array, a lazyarr Array, an xr.DataArray (whose dims, coords, name and
    attrs are taken) or an XTensor. dims: a name or several. coords: labels by dim, or `(dims,
    values)` by name. Raises DimError for missing, duplicate or unknown dims, CoordError for
    labels that do not fit.
    """

    __slots__ = ()

    def astype(self, dtype: object) -> "XTensor":
        """Return the elements in another dtype."""
        return self._like(op.astype(self._v, dtype), self._coords)

    def where(self, cond: object, other: object = None, drop: bool = False) -> "XTensor":
        """Return the elements where a condition holds, `other` (NaN unless given) elsewhere.

        `drop=True` leaves out the positions where it holds nowhere; the condition must then follow
        from coordinates: `x.where(x["time"] > 3, drop=True)`.
        """
        x, cond = self, cond(self) if callable(cond) else cond
        if drop:
            mask = _known_mask(as_xtensor(cond), self._coords)
            axes = range(mask.ndim)
            keep = {
                d: mask._v.value.any(axis=tuple(k for k in axes if k != i))
                for i, d in enumerate(mask.dims)
            }
            x, cond = x.isel(keep), mask.isel(keep)
        if other is None:
            other, x = np.nan, x.astype(moving.nan_dtype(self.dtype))
        out = _many("where", cond, x, other)
        dims = tuple(dict.fromkeys((*self.dims, *out.dims)))
        return self._of(moving.transpose(out._v, dims), out._coords, self._name, self._attrs)

    def fillna(self, value: object) -> "XTensor":
        """Return the elements, NaN replaced by a value; a labelled one is taken at these labels."""
        if is_labelled(value):
            _, value = xtensor_join.align([self, as_xtensor(value)], "left")
        return self.where(self.notnull(), value)

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

    def round(self, decimals: int = 0) -> "XTensor":
        """Return the elements rounded to a number of decimals, halves to even."""
        if not decimals or self.dtype.kind not in "fc":
            return _unary("round")(self)
        scale = 10.0 ** abs(decimals)
        if decimals < 0:
            return (self / scale).round() * scale
        return (self * scale).round() / scale

    def dot(self, other: object, dim: object = None) -> "XTensor":
        """Return the product summed over dims: those named, `...` for all, or those shared."""
        return dot(self, other, dim=dim)

    def __matmul__(self, other: object) -> "XTensor":
        return dot(self, other)

    def __rmatmul__(self, other: object) -> "XTensor":
        return dot(other, self)

    def isin(self, test_elements: object) -> "XTensor":
        """Return whether each element is among some values."""
        known = as_xtensor(test_elements)._v if is_labelled(test_elements) else test_elements
        known = known if known.__class__ is Variable else operand(np.asarray(known))
        known = unnamed(known) if known.__class__ is Variable else data(known)
        node = op.with_dims(op.isin(unnamed(self._v), known), self.dims)
        return self._like(node, self._coords)

    def argsort(self, axis: int = -1, *, dim: str | None = None) -> "XTensor":
        """Return the positions that sort along a dim (the last one, as in xarray, unless named)."""
        at = axis if dim is None else self.get_axis_num(dim)
        node = op.with_dims(op.argsort(unnamed(self._v), axis=at), self.dims)
        return self._like(node, self._coords)

    # -- comparison as a whole; these compute -----------------------------------------------------

    def array_equal(self, other: object) -> "XTensor":
        """Return, lazily, whether all elements are equal, NaN equal to NaN."""
        other = as_xtensor(other)
        same = (self == other) | (self.isnull() & other.isnull())
        return same.all()

    def equals(self, other: object) -> bool:
        """Tell whether dims, coordinates and elements are equal."""
        other = as_xtensor(other)
        if self.dims != other.dims or self.shape != other.shape or self._coords != other._coords:
            return False
        return bool(self.array_equal(other))

    def broadcast_equals(self, other: object) -> bool:
        """Tell whether two arrays are equal once each has the dims of the other."""
        other = as_xtensor(other)
        if self._coords != other._coords:
            return False
        try:
            a, b = self.broadcast_like(other), other.broadcast_like(self)
            return a.equals(b.transpose(*a.dims))
        except (DimError, CoordError):
            return False

    def identical(self, other: object) -> bool:
        """Tell whether two arrays are equal, with equal names and attributes."""
        other = as_xtensor(other)
        return self._name == other._name and self.attrs == other.attrs and self.equals(other)

    # -- how the methods reach other operands -----------------------------------------------------

    @staticmethod
    def _as(value: object) -> "XTensor":
        return as_xtensor(value)

    @staticmethod
    def _many(name: str, *operands: object) -> "XTensor":
        return _many(name, *operands)

    @staticmethod
    def _aligned(handles: Sequence, join: str, **kw: object) -> list:
        return xtensor_join.align(handles, join, **kw)

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


def _known_mask(cond: XTensor, coords: Coords) -> XTensor:
    """Return the value of a condition that follows from coordinates alone, or raise."""
    for leaf in leaves([cond._v]):
        known = leaf.is_data and (
            not leaf.type.ndim or any(same_values(leaf.value, c.values) for c in coords.values()
                                      if isinstance(c.values, np.ndarray))
        )  # fmt: skip
        if not known:
            raise ArgumentError(
                "where(drop=True) has a size that depends on data; the condition must follow from "
                "coordinates. Use isel with a known mask, or where without drop."
            )
    (value,) = evaluate(lower_named(Graph([], [cond._v])), [])
    return cond._with_value(np.asarray(value))


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
    if options.arithmetic_join in MOVING:
        moved = iter(xtensor_join.aligned([x for x in found if isinstance(x, XTensor)]))
        found = [next(moved) if isinstance(x, XTensor) else x for x in found]
    node = OPS[name](*[x._v if isinstance(x, XTensor) else x for x in found])
    first = next(x for x in found if isinstance(x, XTensor))
    for x in found:
        if isinstance(x, XTensor) and x._coords is not first._coords:
            return wrap_named(node, found)
    return XTensor._of(node, first._coords, first._name, _kept(first._attrs))


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
    return XTensor._of(variable, coords, named[0]._name, _kept(named[0]._attrs))


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
    handles = xtensor_join.aligned([as_xtensor(x) for x in arrays])
    if dim is ...:
        dim = dict.fromkeys(d for x in handles for d in x.dims)
    over = None if dim is None else [dim] if isinstance(dim, str) else list(dim)
    coords = merge([x._coords for x in handles], options.arithmetic_join)  # of summed dims too
    node = moving.dot([x._v for x in handles], over)
    first = handles[0]
    return XTensor._of(node, coords.within(node.type.dims), first._name, _kept(first._attrs))


# -- operators ------------------------------------------------------------------------------------


def _kept(attrs: dict | None) -> dict | None:
    """Return attributes where the options keep them."""
    return attrs if attrs is None or options.keep_attrs else None


def _pair(variable: Variable, a: XTensor, b: XTensor) -> XTensor:
    """Return the handle of a binary result; most often both sides have the same labels."""
    coords, other = a._coords, b._coords
    if coords is not other and other._items:
        coords = merge([coords, other], options.arithmetic_join) if coords._items else other
    attrs = a._attrs
    if attrs is not b._attrs:
        attrs = merged_attrs([attrs, b._attrs])
    name = a._name if a._name == b._name else None
    return XTensor._of(variable, coords, name, _kept(attrs))


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
        b = other if other.__class__ is XTensor else _other_side(other)
        if b.__class__ is XTensor:
            if self._coords is not b._coords and options.arithmetic_join in MOVING:
                self, b = xtensor_join.aligned([self, b])
            return _pair(node(self._v, b._v), self, b)
        if b is None:
            return NotImplemented
        return XTensor._of(node(self._v, b), self._coords, self._name, _kept(self._attrs))

    def backward(self, other):
        b = _other_side(other)
        if b.__class__ is XTensor:
            self, b = xtensor_join.aligned([self, b])
            return _pair(record(b._v, self._v), b, self)
        if b is None:
            return NotImplemented
        return XTensor._of(record(b, self._v), self._coords, self._name, _kept(self._attrs))

    return forward, backward


def _other_side(value: object) -> object:
    """Return an operand of an operator, or None for what is left to the other side."""
    cls = value.__class__
    if cls in (int, float, bool, complex) or cls is Size:
        return value
    known = Array | Variable | np.ndarray | np.generic | int | float | complex
    return operand(value) if isinstance(value, known) or is_labelled(value) else None


def of_one(record: object, x: XTensor) -> XTensor:
    """Return an elementwise op of one array, recorded by the shortest way."""
    v, bare = x._v, record.bare  # type: ignore[attr-defined]
    found = record.memo.get((bare, (v.type,)))  # type: ignore[attr-defined]
    node = record(v) if found is None else Variable(found, (bare, v))  # type: ignore[operator]
    return XTensor._of(node, x._coords, x._name, _kept(x._attrs))


def _unary(name: str):
    record = OPS[name]
    return lambda x: XTensor._of(record(x._v), x._coords, x._name, _kept(x._attrs))


def _joining(name: str, f: Callable) -> Callable:
    """The method of an operator that takes a join of its own."""

    def method(self, other, *, join=None):
        if join is None or not is_labelled(other):
            return f(self, other)
        a, b = xtensor_join.align([self, as_xtensor(other)], join)
        return f(a, b)

    method.__name__ = name
    method.__doc__ = f"Return `{name}` of two arrays, their labels joined as `join` says."
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
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}
_NEVER = 2**31 - 1  # no XTensor is so deep that it is computed


def labelled_recorder(native: Any, python: Callable, only: Call | None = None) -> Callable:
    """Return what records as a Python function of XTensors does, compiled where it is.

    Handles with attributes, and those of different coordinates, are left to the function.
    """
    if native is None:
        return python
    return native.Recorder(
        handle=XTensor, slot="_v", python=python, only=only, deepest=_NEVER, labels="_coords",
        name="_name", notes="_attrs",
    )  # fmt: skip


def _operators() -> dict[str, tuple[Callable, Call]]:
    """Every operator of XTensors, and the call that it records."""
    found: dict[str, tuple[Callable, Call]] = {}
    for method, name in _OPERATORS.items():
        forward, backward = _binary(name)
        found[f"__{method}__"] = forward, OPS[name].bare
        found[f"__r{method}__"] = backward, OPS[name].bare
        setattr(XTensor, name, _joining(name, forward))
    for method, name in _COMPARISONS.items():
        found[f"__{method}__"] = _binary(name)[0], OPS[name].bare
    for method, name in _UNARY.items():
        found[f"__{method}__"] = _unary(name), OPS[name].bare
    return found


_METHODS = _operators()


def _install_operators(native: Any = None) -> None:
    for method, (python, call) in _METHODS.items():
        setattr(XTensor, method, labelled_recorder(native, python, call))


_install_operators()
on_native(_install_operators)
XTensor.conj = XTensor.conjugate = _unary("conj")
XTensor.real = property(_unary("real"), doc="The real parts of the elements.")
XTensor.imag = property(_unary("imag"), doc="The imaginary parts of the elements.")


def from_xarray(array: object) -> XTensor:
    """Return an xr.DataArray as an XTensor: its values, dims, coords, name and attrs."""
    return XTensor(array)
