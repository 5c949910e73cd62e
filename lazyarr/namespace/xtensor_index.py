"""Selection on handles: positions and labels by dim become keys of nodes and of coordinates."""

from collections.abc import Mapping

import numpy as np

from lazyarr.errors import BoundsError, DimError, ShapeError, near_match
from lazyarr.graph.node import Variable, as_operand, data
from lazyarr.graph.ops.indexing import update
from lazyarr.graph.shapes import Size
from lazyarr.namespace.array import Array
from lazyarr.namespace.xtensor_data import is_labelled, named_node
from lazyarr.xtensor.coords import EMPTY, Coords
from lazyarr.xtensor.indexing import index_node, isel
from lazyarr.xtensor.joining import merge
from lazyarr.xtensor.moving import broadcast
from lazyarr.xtensor.naming import unnamed
from lazyarr.xtensor.types import XTensorType


def by_dim(key: object, dims: tuple) -> dict:
    """Return a key given by position, or as a dict, as a dict by dim."""
    if isinstance(key, Mapping):
        return dict(key)
    many = list(key) if isinstance(key, tuple) else [key]
    if ... in [k for k in many if k.__class__ is type(...)]:
        i = next(j for j, k in enumerate(many) if k is ...)
        many[i : i + 1] = [slice(None)] * (len(dims) - len(many) + 1)
    if len(many) > len(dims):
        raise BoundsError(f"{len(many)} indices for an array with dims {dims}.")
    pairs = zip(dims, many, strict=False)
    return {d: k for d, k in pairs if not (isinstance(k, slice) and k == slice(None))}


def select(x: Variable, coords: Coords, keys: Mapping, drop: bool) -> tuple[Variable, Coords]:
    """Return the node and the coordinates at positions along dims."""
    nodes, places, brought = {}, {}, []
    for dim, key in keys.items():
        x.type.axis(dim)
        nodes[dim], own = _key(key)
        places[dim] = _places(nodes[dim], dim)
        brought.append(own.without_dim(*keys))
    out = isel(x, nodes)
    kept = coords.isel(places)
    if drop:
        kept = kept.where(lambda name, c: bool(c.dims) or not coords[name].dims)
    many = [kept, *(c.within(out.type.dims) for c in brought if c)]
    return out, kept if len(many) == 1 else merge(many)


def _key(key: object) -> tuple[object, Coords]:
    """Return a key for a node, and the coordinates that it brings."""
    if isinstance(key, Array):
        return key._v, EMPTY
    if isinstance(key, slice):
        return slice(*(_bound(p) for p in (key.start, key.stop, key.step))), EMPTY
    if is_labelled(key):
        node, labels = named_node(key, None)
        if node.type.dtype.kind == "b":
            return index_node(np.asarray(key)), EMPTY
        return node, labels.coords
    return index_node(key), EMPTY


def _bound(part: object) -> object:
    return part if part is None or isinstance(part, Size) else part.__index__()  # type: ignore


def _places(key: object, dim: str) -> object:
    """Return what a coordinate along `dim` is indexed with, None when it is not known."""
    if isinstance(key, slice):
        return None if any(isinstance(p, Size) for p in (key.start, key.stop)) else key
    if key.__class__ is Variable:
        if not key.is_data:
            return None
        if not key.type.ndim:
            return int(key.value)
        return key.type.dims if key.type.named else (dim,), key.value
    return None if isinstance(key, Size) else key


def positions(
    kind: XTensorType, coords: Coords, labels: Mapping, method: object, tolerance: object
) -> dict:
    """Return labels along dims as positions."""
    found = {}
    for dim, label in labels.items():
        if dim not in kind.dims:
            raise DimError(
                f"there is no dimension {dim!r} among {kind.dims}.{near_match(dim, kind.dims)}"
            )
        index = coords.index(dim)
        if index is None:
            raise DimError(
                f"dimension {dim!r} has no labels to select by; give it some with assign_coords, "
                "or use isel for positions."
            )
        if isinstance(label, slice):
            found[dim] = index.find_slice(label)
        elif is_labelled(label):
            where = index.find_all(label.values, method, tolerance)
            kind_of = XTensorType(np.int64, tuple(label.dims), where.shape)
            found[dim] = data(where, kind_of) if where.ndim else int(where)
        elif np.ndim(label):
            found[dim] = index.find_all(label, method, tolerance)
        else:
            found[dim] = index.find(label, method, tolerance)
    return found


class Loc:
    """`x.loc[labels]`."""

    __slots__ = ("handle",)

    def __init__(self, handle: object):
        self.handle = handle

    def __getitem__(self, key: object):
        return self.handle.sel(by_dim(key, self.handle.dims))

    def __setitem__(self, key: object, value: object) -> None:
        x = self.handle
        labels = by_dim(key, x.dims)
        x[positions(x._v.type, x.coords, labels, None, None)] = value


class At:
    """`x.at[key]`: functional updates of a region, the key by position or by dim."""

    __slots__ = ("handle", "key")

    def __init__(self, handle: object, key: object = ...):
        self.handle, self.key = handle, key

    def __getitem__(self, key: object) -> "At":
        return At(self.handle, key)

    def set(self, value: object):
        """Return the array with the region replaced; of duplicate indices the last wins."""
        return self._updated(value, "set")

    def add(self, value: object):
        """Return the array with the region increased; every duplicate index counts."""
        return self._updated(value, "add")

    def multiply(self, value: object):
        """Return the array with the region multiplied; every duplicate index counts."""
        return self._updated(value, "multiply")

    def min(self, value: object):
        """Return the array with the smaller of each element of the region and the value."""
        return self._updated(value, "min")

    def max(self, value: object):
        """Return the array with the larger of each element of the region and the value."""
        return self._updated(value, "max")

    def _updated(self, value: object, how: str):
        x = self.handle._v
        keys = {d: _key(k)[0] for d, k in by_dim(self.key, x.type.dims).items()}
        arrays = [d for d, k in keys.items() if k.__class__ is Variable and k.type.ndim]
        if len(arrays) > 1:
            raise ShapeError(f"an update takes one index array, got some for {arrays}.")
        region = isel(x, keys)
        plain = tuple(_unnamed_key(keys.get(d, slice(None))) for d in x.type.dims)
        out = update(unnamed(x), plain, _fitted(value, region.type), how)
        from_dims = _named_again(out, x.type.dims)
        return self.handle._like(from_dims, self.handle.coords)


def _unnamed_key(key: object) -> object:
    return unnamed(key) if key.__class__ is Variable else key


def _named_again(node: Variable, dims: tuple) -> Variable:
    return named_node(node, dims)[0]


def _fitted(value: object, region: XTensorType) -> object:
    """Return a value positionally, in the region's order of dims."""
    if not is_labelled(value):
        value = getattr(value, "_v", value)
        return as_operand(value)
    node, _ = named_node(value, None)
    for dim in node.type.dims:
        region.axis(dim)
    return unnamed(broadcast(node, region.sizes))
