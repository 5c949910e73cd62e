"""Selection by position on named nodes: integers, slices, and arrays of integers with dims.

An indexed dim gives its place to the dims of its index. Index arrays that share a dim select
point by point: the indexed axes are merged into one and taken at one joint index. The rules are
xarray's.
"""

from collections.abc import Mapping

import numpy as np

from lazyarr.errors import BoundsError, DTypeError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops.indexing import gather, wrapped
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.xtensor.moving import transpose
from lazyarr.xtensor.naming import unnamed

Key = object  # int | Size | slice | Variable of integers


def isel(x: Variable, keys: Mapping[str, Key]) -> Variable:
    """Record the selection of positions along dims.

    A key is an int, a size, a slice, or a Variable: 0-d, with dims, or one-dimensional without
    names, which keeps the name of the dim. Raises BoundsError for a known position outside its
    dim.
    """
    arrays: dict[str, Variable] = {}
    basic: list = [slice(None)] * x.ndim
    for dim, key in keys.items():
        axis = x.type.axis(dim)
        if key.__class__ is Variable and key.type.ndim:
            arrays[dim] = _named_index(key, dim)
        else:
            basic[axis] = key
    if any(k.__class__ is not slice or k != slice(None) for k in basic):
        x = op.basic_index(x, tuple(basic))
    each = [arrays[d].type.dims if d in arrays else (d,) for d in x.type.dims]
    for group in _groups(x, arrays):
        x = _pointwise(x, group) if len(group) > 1 else _orthogonal(x, group)
    return transpose(x, tuple(dict.fromkeys(d for dims in each for d in dims)))


def _named_index(key: Variable, dim: str) -> Variable:
    """An index array with dims: its own, or the dim that it indexes."""
    if key.type.dtype.kind not in "iu":
        raise DTypeError(f"an index of {dim!r} must hold integers, got {key.type.dtype}.")
    if key.type.named:
        return key
    if key.type.ndim > 1:
        raise BoundsError(
            f"an index of {dim!r} of shape {key.shape} has no names; use XTensor(i, dims=...)."
        )
    return op.with_dims(key, (dim,))


def _groups(x: Variable, arrays: dict[str, Variable]) -> list[dict[str, Variable]]:
    """Split index arrays into groups that share no dim.

    A dim of x that an index of another dim has is walked along with it.
    """
    others = {d for idx in arrays.values() for d in idx.type.dims}
    for dim in x.type.dims:
        named_elsewhere = dim in others and dim not in arrays
        if named_elsewhere:
            size = x.type.sizes[dim]
            arrays = {**arrays, dim: op.with_dims(op.arange(size), (dim,))}
    groups: list[dict[str, Variable]] = []
    for dim in [d for d in x.type.dims if d in arrays]:
        used = set(arrays[dim].type.dims)
        joined = {dim: arrays[dim]}
        apart = []
        for group in groups:
            if any(used & set(idx.type.dims) for idx in group.values()):
                joined = {**group, **joined}
                used |= {d for idx in group.values() for d in idx.type.dims}
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _orthogonal(x: Variable, group: dict[str, Variable]) -> Variable:
    ((dim, indices),) = group.items()
    return op.take(x, indices, axis=x.type.axis(dim))


def _pointwise(x: Variable, group: dict[str, Variable]) -> Variable:
    """Merge the indexed axes where the first of them is, and take there at the joint index."""
    dims = [d for d in x.type.dims if d in group]
    place = x.type.dims.index(dims[0])
    rest = [d for d in x.type.dims if d not in group]
    x = transpose(x, (*rest[:place], *dims, *rest[place:]))
    sizes = x.shape[place : place + len(dims)]
    joint = None
    for dim, size in zip(dims, sizes, strict=True):
        step = wrapped(group[dim], size)
        joint = step if joint is None else op.add(op.multiply(joint, size), step)
    shape = (*x.shape[:place], shapes.product(sizes), *x.shape[place + len(dims) :])
    taken = gather(op.reshape(unnamed(x), shape), unnamed(joint), place)
    return op.with_dims(taken, (*rest[:place], *joint.type.dims, *rest[place:]))


def index_node(key: object) -> Key:
    """Return a plain key as `isel` takes it: NumPy arrays of integers or masks become nodes."""
    if isinstance(key, slice | int | np.integer | Size) or key.__class__ is Variable:
        return int(key) if isinstance(key, int | np.integer) else key
    array = np.asarray(key)
    if array.dtype.kind == "b":
        if array.ndim != 1:
            raise BoundsError(f"a boolean index has one axis, got shape {array.shape}.")
        array = np.flatnonzero(array)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"an index must hold integers, got {array.dtype}.")
    return int(array) if array.ndim == 0 else data(array.copy())
