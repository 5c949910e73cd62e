"""Functions of several XTensors whose dims the ops alone do not tell: joins, broadcast, where."""

from collections.abc import Sequence

import numpy as np

from lazyarr.config import options
from lazyarr.errors import ArgumentError, DimError
from lazyarr.namespace.xtensor import XTensor, as_xtensor, elementwise, merged_attrs, wrap_named
from lazyarr.xtensor import moving
from lazyarr.xtensor.coords import Coord, Coords
from lazyarr.xtensor.joining import merge


def _common(arrays: Sequence, axis: object, what: str) -> tuple[list[XTensor], str]:
    handles = [as_xtensor(x) for x in arrays]
    if not handles:
        raise ArgumentError(f"{what} needs at least one array.")
    if not isinstance(axis, str):
        raise DimError(f"{what} of named arrays takes the name of a dimension, not {axis!r}.")
    return handles, axis


def stack(arrays: Sequence, /, *, axis: str) -> XTensor:
    """Return arrays side by side along a new first dimension; missing dims are broadcast."""
    handles, dim = _common(arrays, axis, "stack")
    node = moving.stack_new([x._v for x in handles], dim)
    return wrap_named(node, handles)


def concat(arrays: Sequence, /, *, axis: str) -> XTensor:
    """Return arrays one after the other along a dimension that all of them have, labels joined."""
    handles, dim = _common(arrays, axis, "concat")
    node = moving.concat([x._v for x in handles], dim)
    off = merge([x._coords.without_dim(dim) for x in handles], options.arithmetic_join)
    coords = off.assign(_joined_along(handles, dim))
    names = {x.name for x in handles}
    attrs = merged_attrs([x._attrs for x in handles])
    return XTensor._of(node, coords, names.pop() if len(names) == 1 else None, attrs)


def _joined_along(handles: Sequence[XTensor], dim: str) -> dict[str, Coord]:
    """The coordinates along the joined dim that every array has."""
    out = {}
    first: Coords = handles[0]._coords
    for name, c in first.items():
        others = [x._coords._items.get(name) for x in handles]
        if c.dims == (dim,) and all(o is not None and o.dims == (dim,) for o in others):
            values = np.concatenate([np.asarray(o.values) for o in others])
            out[name] = Coord.of(name, (dim,), values, c.attrs)
    return out


def broadcast(*arrays: object) -> tuple[XTensor, ...]:
    """Return arrays with all of their dims, in order of first appearance."""
    handles = [as_xtensor(x) for x in arrays]
    sizes = moving.joined_sizes(tuple(x._v.type for x in handles))
    indexes = [x._coords.where(lambda name, c: c.index is not None) for x in handles]
    shared = merge(indexes, options.arithmetic_join)
    return tuple(x._like(moving.broadcast(x._v, sizes), x._coords.assign(shared)) for x in handles)


def where(cond: object, x: object, y: object, /) -> XTensor:
    """Return x where a condition holds and y elsewhere; attributes are those of x."""
    out = elementwise("where", cond, x, y)
    return XTensor._of(out._v, out._coords, out.name, getattr(x, "attrs", None) or None)
