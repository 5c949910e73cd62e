"""Named nodes in another arrangement: order, new dims, broadcasting, joins, shifts, and dot.

Where a positional op does not say which dims its result has, the names are taken off, the op is
recorded, and the names of the result are put on; lowering removes both steps.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lazyarr.errors import DimError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.indexing import gather, slice_axis
from lazyarr.graph.registry import op
from lazyarr.xtensor.kinds import agree, joined_sizes
from lazyarr.xtensor.naming import unnamed


def complete_order(dims: tuple, wanted: Sequence) -> tuple[str, ...]:
    """Return an order of dims in which `...` stands for those not named; none given reverses."""
    if not wanted:
        return dims[::-1]
    if ... in wanted:
        rest = [d for d in dims if d not in wanted]
        i = list(wanted).index(...)
        wanted = (*wanted[:i], *rest, *wanted[i + 1 :])
    if sorted(map(str, wanted)) != sorted(dims):
        raise DimError(f"{tuple(wanted)} is no order of dims {dims}; `...` stands for the others.")
    return tuple(wanted)


def transpose(x: Variable, dims: tuple) -> Variable:
    """Record x with its dims in another order."""
    if x.type.dims == dims:
        return x
    return again(
        ("transpose", x.type, dims),
        x,
        lambda: op.permute_dims(x, tuple(x.type.dims.index(d) for d in dims)),
    )


_known: dict[tuple, tuple] = {}
_MOST = 4096


def again(key: tuple, x: Variable, record: Callable[[], Variable]) -> Variable:
    """Record at once what was recorded before for the same key, which holds the type of x."""
    found = _known.get(key)
    if found is not None:
        return Variable(found[1], (found[0], x))
    node = record()
    if node.expr is not None and node.expr[1:] == (x,):
        if len(_known) > _MOST:
            _known.clear()
        _known[key] = (node.expr[0], node.type)
    return node


def expand(x: Variable, new: Mapping[str, object], axis: int = 0) -> Variable:
    """Record x with new dims of given sizes, inserted before an axis."""
    dims = (*x.type.dims[:axis], *new, *x.type.dims[axis:])
    out = op.expand_dims(unnamed(x), axis=tuple(range(axis, axis + len(new))))
    shape = (*x.shape[:axis], *new.values(), *x.shape[axis:])
    if out.shape != shape:
        out = op.broadcast_to(out, shape)
    return op.with_dims(out, dims)


def broadcast(x: Variable, sizes: Mapping[str, object]) -> Variable:
    """Record x repeated along missing dims, in the order of `sizes`, which holds all its dims."""
    missing = {d: s for d, s in sizes.items() if d not in x.type.dims}
    wide = expand(x, missing) if missing else x
    return transpose(wide, tuple(sizes))


def squeeze(x: Variable, dims: Sequence[str]) -> Variable:
    """Record x without dims of size 1."""
    return op.squeeze(x, tuple(dims)) if dims else x


def rename(x: Variable, names: Mapping[str, str]) -> Variable:
    """Record x with other names for some dims."""
    for old in names:
        x.type.axis(old)
    return op.with_dims(x, tuple(names.get(d, d) for d in x.type.dims))


def stack_new(arrays: Sequence[Variable], dim: str) -> Variable:
    """Record arrays side by side along a new first dim, broadcast to all their dims."""
    sizes = joined_sizes(tuple(v.type for v in arrays))
    if dim in sizes:
        raise DimError(
            f"stack needs a new dimension, {dim!r} is one of {tuple(sizes)}; use concat."
        )
    wide = [unnamed(broadcast(v, sizes)) for v in arrays]
    return op.with_dims(op.stack(wide, axis=0), (dim, *sizes))


def concat(arrays: Sequence[Variable], dim: str) -> Variable:
    """Record arrays one after the other along a dim that all of them have."""
    for v in arrays:
        if dim not in v.type.dims:
            raise DimError(
                f"an array with dims {v.type.dims} has no {dim!r} to be joined along; "
                "give it one with expand_dims first."
            )
    return op.concat(arrays, axis=arrays[0].type.axis(dim))


def shift(x: Variable, dim: str, n: int, fill: object) -> Variable:
    """Record x moved by n positions along a dim, the free places filled."""
    axis, size = x.type.axis(dim), x.type.sizes[dim]
    if not n:
        return x
    count = min(abs(n), size) if isinstance(size, int) else abs(n)
    shape = tuple(count if i == axis else s for i, s in enumerate(x.shape))
    gap = op.with_dims(op.full(shape, fill, dtype=x.type.dtype), x.type.dims)
    kept = slice_axis(x, axis, 0 if n > 0 else count, size - count)
    return op.concat([gap, kept] if n > 0 else [kept, gap], axis=axis)


def roll(x: Variable, dim: str, n: int) -> Variable:
    """Record x moved by n positions along a dim, what leaves one end entering at the other."""
    axis, size = x.type.axis(dim), x.type.sizes[dim]
    if isinstance(size, int):
        n = n % size if size else 0
        if not n:
            return x
        parts = [slice_axis(x, axis, size - n, n), slice_axis(x, axis, 0, size - n)]
        return op.concat(parts, axis=axis)
    places = op.remainder(op.subtract(op.arange(size), n), size)
    return op.with_dims(gather(unnamed(x), places, axis), x.type.dims)


def flatten_dims(x: Variable, dims: tuple, new: str) -> Variable:
    """Record x with several dims, in the given order, as one dim at the end."""
    for d in dims:
        x.type.axis(d)
    rest = tuple(d for d in x.type.dims if d not in dims)
    moved = transpose(x, (*rest, *dims))
    total = shapes.product(moved.shape[len(rest) :])
    flat = op.reshape(unnamed(moved), (*moved.shape[: len(rest)], total))
    return op.with_dims(flat, (*rest, new))


def split_dim(x: Variable, dim: str, sizes: Mapping[str, object]) -> Variable:
    """Record x with a dim as several, in C order, at the end."""
    x.type.axis(dim)
    rest = tuple(d for d in x.type.dims if d != dim)
    moved = transpose(x, (*rest, dim))
    wide = op.reshape(unnamed(moved), (*moved.shape[:-1], *sizes.values()))
    return op.with_dims(wide, (*rest, *sizes))


def diff(x: Variable, dim: str, n: int) -> Variable:
    """Record the n-th difference of neighbours along a dim."""
    axis = x.type.axis(dim)
    for _ in range(n):
        size = x.shape[axis]
        length = max(size - 1, 0) if isinstance(size, int) else size - 1
        x = op.subtract(
            slice_axis(x, axis, 0 if size == 0 else 1, length), slice_axis(x, axis, 0, length)
        )
    return x


_SMALL = (dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16)


def nan_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype that holds a dtype's values and NaN; it depends on nothing else."""
    if dtype.kind in "fc":
        return dtype
    return dtypes.float32 if dtype in _SMALL else dtypes.float64


def dot(arrays: Sequence[Variable], over: Sequence[str] | None) -> Variable:
    """Record the product of arrays summed over dims (None: those that several of them have).

    The other dims stay in order of first appearance; those that several arrays have are batch dims.
    """
    sizes: dict[str, object] = {}
    uses: dict[str, int] = {}
    for v in arrays:
        for d, s in v.type.sizes.items():
            sizes[d] = agree(d, sizes[d], s) if d in sizes else s
            uses[d] = uses.get(d, 0) + 1
    gone = [d for d in sizes if uses[d] > 1] if over is None else list(over)
    for d in gone:
        if d not in sizes:
            raise DimError(f"dot: no operand has dimension {d!r}; they have {tuple(sizes)}.")
    out, *rest = arrays
    for i, v in enumerate(rest):
        later = {d for w in rest[i + 1 :] for d in w.type.dims}
        out = _product(out, v, [d for d in gone if d not in later])
    left = [d for d in out.type.dims if d in gone]
    if left:
        out = op.sum(out, axis=tuple(left), dtype=out.type.dtype)
    return transpose(out, tuple(d for d in sizes if d not in gone))


def _product(a: Variable, b: Variable, gone: Sequence[str]) -> Variable:
    """Contract two arrays over what both have of some dims; sum first what only one has."""
    dtype = dtypes.promote(a.type.dtype, b.type.dtype)
    a, b = _summed(a, b, gone, dtype), _summed(b, a, gone, dtype)
    dims = tuple(dict.fromkeys((*a.type.dims, *b.type.dims)))
    label = {d: i for i, d in enumerate(dims)}
    kept = tuple(label[d] for d in dims if d not in gone)
    own = [tuple(label[d] for d in v.type.dims) for v in (a, b)]
    if len(kept) == len(dims):
        return op.multiply(a, b)
    return op.contract(a, b, (*own, kept))


def _summed(v: Variable, other: Variable, gone: Sequence[str], dtype: np.dtype) -> Variable:
    alone = tuple(d for d in v.type.dims if d in gone and d not in other.type.dims)
    if v.type.dtype != dtype:
        v = op.astype(v, dtype)
    return op.sum(v, axis=alone, dtype=dtype) if alone else v
