"""Several XTensors in one: alignment of labels, concatenation, stacking, functions by name."""

from collections.abc import Mapping, Sequence

import numpy as np

from lazyarr.config import options
from lazyarr.errors import CoordError
from lazyarr.graph.node import Variable
from lazyarr.namespace.xtensor_data import merged_attrs
from lazyarr.namespace.xtensor_handle import Handle
from lazyarr.xtensor import moving
from lazyarr.xtensor.coords import Coord, Coords, Index
from lazyarr.xtensor.joining import FILLING, MOVING, join_indexes, merge, shared_dims

# -- alignment ------------------------------------------------------------------------------------


def aligned(handles: Sequence[Handle], join: str | None = None) -> list[Handle]:
    """Return operands at common labels where the join in force moves elements."""
    join = options.arithmetic_join if join is None else join
    if join not in MOVING:
        return list(handles)
    return align(handles, join)


def align(
    handles: Sequence[Handle],
    join: str,
    exclude: Sequence[str] = (),
    fill: object = np.nan,
    tolerance: object = None,
    indexes: Mapping[str, object] | None = None,
) -> list[Handle]:
    """Return arrays whose labels along every shared dim are the same."""
    out = list(handles)
    for dim, found in shared_dims([h._coords for h in handles]).items():
        if dim in exclude:
            continue
        if indexes and dim in indexes:
            given = indexes[dim]
            target = given if isinstance(given, Index) else Index(given)
        else:
            target = join_indexes(join, dim, found, tolerance)
        alone = len(found) == 1 and not (indexes and dim in indexes)
        for i, h in enumerate(out):
            if dim not in h.dims:
                continue
            if h._coords.index(dim) is None:
                _check_size(h, dim, target)
            elif not alone:
                out[i] = _moved(h, dim, target, join, _fill(fill, i, len(out), join))
    return out


def _fill(fill: object, i: int, n: int, join: str) -> object:
    """What stands where an operand lacks a label; None where it cannot lack one."""
    kept = 0 if join == "left" else n - 1 if join == "right" else -1
    return fill if join in FILLING and i != kept else None


def _moved(h: Handle, dim: str, target: Index, join: str, fill: object) -> Handle:
    index = h._coords.index(dim)
    if join in ("exact", "override") and len(index) == len(target):
        if index is target:
            return h
        attrs = h._coords[dim].attrs
        return h._like(h._v, h._coords.assign({dim: Coord((dim,), None, target, attrs)}))
    return h._reindexed(dim, target, fill)


def _check_size(h: Handle, dim: str, target: Index) -> None:
    size = h.sizes[dim]
    if isinstance(size, int) and size != len(target):
        raise CoordError(
            f"dimension {dim!r} has {len(target)} labels in one operand, and size {size} without "
            "labels in another; give it labels with assign_coords."
        )


# -- concatenation --------------------------------------------------------------------------------


def concat(handles: Sequence[Handle], dim: str, labels: object = None) -> Handle:
    """Return arrays one after the other along a dim that all of them have, labels joined."""
    node = moving.concat([x._v for x in handles], dim)
    off = merge([x._coords.without_dim(dim) for x in handles], options.arithmetic_join)
    coords = off.assign(joined_along(handles, dim))
    if labels is not None:
        coords = coords.assign({dim: Coord.of(dim, (dim,), labels)})
    return _combined(handles, node, coords)


def stack(handles: Sequence[Handle], dim: str, labels: object = None) -> Handle:
    """Return arrays side by side along a new first dim; missing dims are broadcast."""
    handles = aligned(handles)
    node = moving.stack_new([x._v for x in handles], dim)
    coords = merge([x._coords for x in handles], options.arithmetic_join)
    if labels is not None:
        coords = coords.assign({dim: Coord.of(dim, (dim,), labels)})
    elif dim in coords:
        scalars = [x._coords._items.get(dim) for x in handles]
        values = [None if c is None or c.dims else c.values for c in scalars]
        coords = coords.drop([dim])
        if all(v is not None for v in values):
            coords = coords.assign({dim: Coord.of(dim, (dim,), np.array(values))})
    return _combined(handles, node, coords)


def _combined(handles: Sequence[Handle], node: Variable, coords: Coords) -> Handle:
    names = {x.name for x in handles}
    attrs = merged_attrs([x._attrs for x in handles])
    return handles[0]._of(node, coords, names.pop() if len(names) == 1 else None, attrs)


def joined_along(handles: Sequence[Handle], dim: str) -> dict[str, Coord]:
    """The coordinates along the joined dim that every array has."""
    out = {}
    first: Coords = handles[0]._coords
    for name, c in first.items():
        others = [x._coords._items.get(name) for x in handles]
        if c.dims == (dim,) and all(o is not None and o.dims == (dim,) for o in others):
            values = np.concatenate([np.asarray(o.values) for o in others])
            out[name] = Coord.of(name, (dim,), values, c.attrs)
    return out
