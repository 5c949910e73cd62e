"""Indexing and functional updates. Source: Array API standard 2025.12, indexing.

`x[key]` becomes at most one `basic_index` (integers, slices, new axes: an index map) followed by
`take` with arrays of indices. Indices are wrapped and checked by `wrap_index`, so `take` and the
scatter ops trust theirs. The updates `set_at`, `add_at` (a basic region) and `take_set`, `take_add`
(index arrays) return a new array; with duplicates the last set wins and every add counts.
"""

import operator
from collections.abc import Callable

import numpy as np

from lazyarr.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable, as_operand, symbol
from lazyarr.graph.op import AxisMap
from lazyarr.graph.ops._declare import axis_of, composite, declare, variable_of
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

# -- keys -----------------------------------------------------------------------------------------


def _is_integer(key: object) -> bool:
    if isinstance(key, bool | np.bool_):
        return False
    if key.__class__ is Variable:
        return key.type.ndim == 0 and key.type.dtype.kind in "iu"
    return isinstance(key, int | np.integer | Size) or (
        isinstance(key, np.ndarray) and key.ndim == 0 and key.dtype.kind in "iu"
    )


def expand_key(key: object, rank: int) -> list:
    """Return a key as one entry per input axis (None entries for new axes stay in place)."""
    many = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(many) if k is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("an index can hold one ellipsis (...).")
    used = sum(k is not None and k is not Ellipsis for k in many)
    if used > rank:
        raise BoundsError(f"too many indices: {used} for an array with {rank} dimensions.")
    i = dots[0] if dots else len(many)
    many[i : i + len(dots)] = [slice(None)] * (rank - used)
    return many


def check_static(index: int, size: object) -> int:
    """Return an integer index counted from the start, or raise BoundsError."""
    if isinstance(size, int):
        if not -size <= index < size:
            raise BoundsError(f"index {index} is out of bounds for an axis of size {size}")
        return index % size
    return index


def _entry(k: object, size: object) -> tuple[tuple, object, object]:
    """Return (spec entry, start, length) of one basic key along an axis of a size."""
    if isinstance(k, slice):
        parts = [p if p is None or isinstance(p, Size) else operator.index(p)
                 for p in (k.start, k.stop, k.step)]  # fmt: skip
        start, length, step = shapes.slice_of(size, slice(*parts))
        return ("slice", step), start, length
    if isinstance(k, Size):
        return ("int",), k, None
    if k.__class__ is Variable:
        return ("int",), op.wrap_index(op.astype(k, dtypes.int64), size), None
    index = check_static(operator.index(k), size)
    if isinstance(size, Size):
        return ("int",), op.wrap_index(variable_of(np.int64(index)), size), None
    return ("int",), index, None


def basic_parts(x: Variable, key: object) -> tuple[tuple, tuple, tuple]:
    """Return (spec, starts, lengths) of a key of integers, slices and new axes.

    `spec` holds ("int",), ("slice", step) or ("new",) entries; there is a start for each of the
    first two and a length for each slice.
    """
    spec, starts, lengths, axis = [], [], [], 0
    for k in expand_key(key, x.ndim):
        if k is None:
            spec.append(("new",))
            continue
        entry, start, length = _entry(k, x.shape[axis])
        spec.append(entry)
        starts.append(start)
        if entry[0] == "slice":
            lengths.append(length)
        axis += 1
    return tuple(spec), tuple(starts), tuple(lengths)


def region_shape(spec: tuple, lengths: tuple) -> tuple:
    """Return the shape of a basic region."""
    rest = iter(lengths)
    return tuple(1 if e[0] == "new" else next(rest) for e in spec if e[0] in ("new", "slice"))


def numpy_key(spec: tuple, lengths: tuple, starts: tuple) -> tuple:
    """Return the NumPy key of a basic region with concrete starts and lengths."""
    begin, rest, key = iter(starts), iter(lengths), []
    for e in spec:
        if e[0] == "new":
            key.append(None)
        elif e[0] == "int":
            key.append(int(next(begin)))
        else:
            start, n, step = int(next(begin)), next(rest), e[1]
            stop = start + n * step
            key.append(slice(start, None if stop < 0 else stop, step) if n else slice(0, 0))
    return tuple(key)


# -- reading --------------------------------------------------------------------------------------


def _basic_map(node: Variable) -> tuple:
    maps, out, starts = [], 0, iter(node.inputs[1:])
    for e in node.params["spec"]:
        if e[0] == "int":
            maps.append(AxisMap(None, 1, next(starts)))
        elif e[0] == "new":
            out += 1
        else:
            maps.append(AxisMap(out, e[1], next(starts)))
            out += 1
    return tuple(maps)


def _basic_vjp(g, y, x, *starts, spec, lengths):
    zeros = op.zeros(x.shape, dtype=g.dtype)
    return op.add_at(zeros, g, *starts, spec=spec, lengths=lengths), *[None] * len(starts)


@declare(
    "movement",
    infer=lambda types, params: TensorType(
        types[0].dtype, region_shape(params["spec"], params["lengths"])
    ),
    reference=lambda x, *starts, spec, lengths: x[numpy_key(spec, lengths, starts)],
    index=_basic_map,
    vjp=_basic_vjp,
    jvp="linear:0",
    sizes=("lengths",),
    public=False,
)
def basic_index(x, key, /):
    """The region of an array that integers, slices and new axes select."""
    spec, starts, lengths = basic_parts(x, key)
    return (x, *starts), {"spec": spec, "lengths": lengths}


def slice_key(x: Variable, axis: int, start: object, length: object) -> tuple:
    """Return (spec, starts, lengths) of `length` elements of one axis from a start."""
    spec = (("slice", 1),) * x.ndim
    starts = tuple(start if i == axis else 0 for i in range(x.ndim))
    lengths = tuple(length if i == axis else s for i, s in enumerate(x.shape))
    return spec, starts, lengths


def slice_axis(x: Variable, axis: int, start: object, length: object) -> Variable:
    """Record a run of elements along one axis, start and length given as trusted sizes."""
    spec, starts, lengths = slice_key(x, axis, start, length)
    return read_region(x, spec, lengths, starts)


def read_region(x: Variable, spec: tuple, lengths: tuple, starts: tuple) -> Variable:
    """Record the basic region of an array, given by its parts."""
    return op.basic_index.record((x, *starts), {"spec": spec, "lengths": lengths})


def _take_infer(types, params):
    x, idx = types
    axis = params["axis"]
    return TensorType(x.dtype, x.shape[:axis] + idx.shape + x.shape[axis + 1 :])


def _take_vjp(g, y, x, idx, *, axis):
    return op.take_add(op.zeros(x.shape, dtype=g.dtype), idx, g, axis=axis), None


@declare(
    "indexing",
    infer=_take_infer,
    reference=lambda x, indices, *, axis: np.take(x, indices, axis=axis),
    vjp=_take_vjp,
    jvp="linear:0",
    since="2022.12",
)
def take(x, indices, /, *, axis=None):
    """Elements along an axis at integer indices; negative ones count from the end."""
    x, indices = variable_of(x), variable_of(indices)
    if axis is None:
        if x.ndim != 1:
            raise ArgumentError(f"take needs `axis` for an array with {x.ndim} dimensions.")
        axis = 0
    axis = axis_of(x, axis)
    return (x, wrapped(indices, x.type.shape[axis])), {"axis": axis}


def _take_along(x, indices, *, axis):
    """Elements read from the flat array: index along the axis, own position along the others."""
    pairs = enumerate(zip(x.shape, indices.shape, strict=True))
    wide = tuple(s if i == axis else shapes.broadcast_size(s, n) for i, (s, n) in pairs)
    if wide != x.shape:
        x = op.broadcast_to(x, wide)
    place = wrapped(indices, x.shape[axis])
    flat = None
    for i, size in enumerate(x.shape):
        shape = [1] * x.ndim
        shape[i] = size
        here = place if i == axis else op.reshape(op.arange(size), tuple(shape))
        flat = here if flat is None else op.add(op.multiply(flat, size), here)
    return gather(op.reshape(x, (-1,)), flat, 0)


@composite(expand=_take_along, since="2024.12")
def take_along_axis(x, indices, /, *, axis=-1):
    """The element of each lane along an axis that an index names; the other axes are matched."""
    x, indices = variable_of(x), variable_of(indices)
    if indices.ndim != x.ndim:
        raise ShapeError(f"take_along_axis: indices of {indices.ndim} axes for {x.ndim}.")
    if indices.type.dtype.kind not in "iu":
        raise DTypeError(f"indices must be integers, got {indices.type.dtype}.")
    axis = axis_of(x, axis)
    check_known(indices, x.shape[axis])
    return (x, indices), {"axis": axis}


def check_known(indices: Variable, size: object) -> None:
    """Raise BoundsError for indices that hold data and leave an axis."""
    if indices.is_data and isinstance(size, int) and indices.value.size:
        for extreme in (int(indices.value.min()), int(indices.value.max())):
            check_static(extreme, size)


def wrapped(indices: Variable, size: object) -> Variable:
    """Return an array of indices as int64 counted from the start, checked against an axis.

    Indices that hold data are checked at once.
    """
    if indices.type.dtype.kind not in "iu":
        raise DTypeError(f"indices must be integers, got {indices.type.dtype}.")
    check_known(indices, size)
    return op.wrap_index(op.astype(indices, dtypes.int64), size)


# -- writing --------------------------------------------------------------------------------------


def _write_infer(types, params):
    return types[0]


def _region_reference(add):
    def overwrite(x, v, *starts, spec, lengths):
        key = numpy_key(spec, lengths, starts)
        if add:
            x[key] += v
        else:
            x[key] = v
        return x

    return _copying(overwrite)


def _copying(overwrite):
    """Return a reference that leaves its first operand alone.

    The interpreter calls `overwrite` itself where nobody reads that operand any more.
    """

    def run(x, *others, **params):
        return overwrite(np.array(x), *others, **params)

    run.overwrite = overwrite
    return run


def _check_addable(x, what):
    """Refuse to add booleans, as `add` does."""
    if variable_of(x).type.dtype == dtypes.bool_:
        raise DTypeError(f"{what} takes numeric dtypes, got bool; cast with astype.")


def _region(x, v, spec, lengths, starts):
    x, v = variable_of(x), variable_of(v)
    shape = region_shape(spec, lengths)
    if v.type.dtype != x.type.dtype:
        v = op.astype(v, x.type.dtype)
    if v.shape != shape:
        v = op.broadcast_to(v, shape)
    return (x, v, *starts), {"spec": spec, "lengths": lengths}


def _add_region_vjp(g, y, x, v, *starts, spec, lengths):
    return g, read_region(g, spec, lengths, starts), *[None] * len(starts)


@declare(
    "indexing",
    name="add_at",
    infer=_write_infer,
    reference=_region_reference(add=True),
    vjp=_add_region_vjp,
    jvp="linear:0,1",
    sizes=("lengths",),
    public=False,
)
def add_at(x, v, *starts, spec, lengths):
    """x with v added to a basic region."""
    _check_addable(x, "add_at")
    return _region(x, v, spec, lengths, starts)


def _set_region_vjp(g, y, x, v, *starts, spec, lengths):
    inner = op.zeros(region_shape(spec, lengths), dtype=g.dtype)
    outside = op.set_at(g, inner, *starts, spec=spec, lengths=lengths)
    return outside, read_region(g, spec, lengths, starts), *[None] * len(starts)


@declare(
    "indexing",
    name="set_at",
    infer=_write_infer,
    reference=_region_reference(add=False),
    vjp=_set_region_vjp,
    jvp="linear:0,1",
    sizes=("lengths",),
    public=False,
)
def set_at(x, v, *starts, spec, lengths):
    """x with a basic region replaced by v."""
    return _region(x, v, spec, lengths, starts)


def _scatter_reference(add):
    def overwrite(x, idx, v, *, axis):
        out = np.moveaxis(x, axis, 0)
        moved = np.moveaxis(v, tuple(range(axis, axis + idx.ndim)), tuple(range(idx.ndim)))
        if add:
            np.add.at(out, idx, moved)
        else:
            flat = moved.reshape(idx.size, *moved.shape[idx.ndim :])
            for i, row in zip(idx.ravel(), flat, strict=True):
                out[i] = row
        return x

    return _copying(overwrite)


def _scattered(x, indices, v, axis):
    x, indices, v = variable_of(x), variable_of(indices), variable_of(v)
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    if v.type.dtype != x.type.dtype:
        v = op.astype(v, x.type.dtype)
    if v.shape != shape:
        v = op.broadcast_to(v, shape)
    return (x, indices, v), {"axis": axis}


@declare(
    "indexing",
    infer=_write_infer,
    reference=_scatter_reference(add=True),
    vjp=lambda g, y, x, idx, v, *, axis: (g, None, gather(g, idx, axis)),
    jvp="linear:0,2",
    public=False,
)
def take_add(x, indices, v, /, *, axis):
    """x with v added at trusted indices along an axis; every duplicate counts."""
    _check_addable(x, "take_add")
    return _scattered(x, indices, v, axis)


def _winners(x, idx, v, axis):
    """True where an element of v is the last one written to its place."""
    order = op.add(op.reshape(op.arange(shapes.product(idx.shape)), idx.shape), 1)
    none = op.full((x.shape[axis],), 0, dtype=dtypes.int64)
    last = op.take_set(none, idx, order, axis=0)
    shape = (1,) * axis + idx.shape + (1,) * (x.ndim - axis - 1)
    return op.broadcast_to(op.reshape(op.equal(gather(last, idx, 0), order), shape), v.shape)


def _take_set_vjp(g, y, x, idx, v, *, axis):
    outside = op.take_set(g, idx, op.zeros(v.shape, dtype=g.dtype), axis=axis)
    inside = op.where(_winners(x, idx, v, axis), gather(g, idx, axis), 0)
    return outside, None, inside


@declare(
    "indexing",
    infer=_write_infer,
    reference=_scatter_reference(add=False),
    vjp=_take_set_vjp,
    public=False,
)
def take_set(x, indices, v, /, *, axis):
    """x with v written at trusted indices along an axis; of duplicates the last wins."""
    return _scattered(x, indices, v, axis)


def gather(x: Variable, indices: Variable, axis: int) -> Variable:
    """Record `take` at trusted indices, without wrapping them again."""
    return op.take.record((x, indices), {"axis": axis})


# -- x[key] and its updates -----------------------------------------------------------------------


def _split_key(x: Variable, key: object) -> tuple[list, list, bool]:
    """Return the basic part of a key (arrays replaced by full slices), [(axis, indices)], and
    whether integers and arrays stand apart, so that the axes of the indices come first.
    """
    basic, arrays, axis = [], [], 0
    places = []
    for place, k in enumerate(expand_key(key, x.ndim)):
        if k is not None and not isinstance(k, slice):
            places.append(place)
        if k is None:
            basic.append(None)
            axis += 1
        elif isinstance(k, slice):
            basic.append(k)
            axis += 1
        elif _is_integer(k):
            basic.append(as_operand(k) if not isinstance(k, int | np.integer) else int(k))
        else:
            indices = variable_of(np.asarray(k) if isinstance(k, list) else k)
            if indices.type.dtype.kind not in "iu":
                raise DTypeError(
                    f"an index array must hold integers, got {indices.type.dtype}; for a boolean "
                    "mask use where, or nonzero of a concrete mask."
                )
            basic.append(slice(None))
            arrays.append((axis, indices))
            axis += 1
    return basic, arrays, bool(arrays) and len(places) <= places[-1] - places[0]


def getitem(x: Variable, key: object) -> Variable:
    """Record `x[key]` for integers, slices, new axes and arrays of integers."""
    basic, arrays, apart = _split_key(x, key)
    y = op.basic_index(x, tuple(basic))
    if not arrays:
        return y
    if len(arrays) == 1:
        axis, indices = arrays[0]
        y = op.take(y, indices, axis=axis)
    else:
        y, axis, indices = _joint(y, arrays)
        y = gather(y, indices, axis)
    if not apart or not axis:
        return y
    front = tuple(range(axis, axis + indices.ndim))
    return op.permute_dims(y, (*front, *(i for i in range(y.ndim) if i not in front)))


def _joint(y: Variable, arrays: list) -> tuple[Variable, int, Variable]:
    """Merge several indexed axes into one: the array, its axis, and the joint index."""
    axes = [a for a, _ in arrays]
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    front = axes[0] if adjacent else 0
    rest = [i for i in range(y.ndim) if i not in axes]
    rest[front:front] = axes
    y = op.permute_dims(y, tuple(rest))
    joint = None
    for (_, indices), size in zip(arrays, y.shape[front : front + len(axes)], strict=True):
        step = wrapped(indices, size)
        joint = step if joint is None else op.add(op.multiply(joint, size), step)
    merged = shapes.product(y.shape[front : front + len(axes)])
    shape = (*y.shape[:front], merged, *y.shape[front + len(axes) :])
    return op.reshape(y, shape), front, joint


COMBINE = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}


def update(x: Variable, key: object, value: object, how: str = "set") -> Variable:
    """Record x with `x[key]` replaced by a value, or combined with it (`how`: see COMBINE)."""
    if how not in ("set", "add"):
        return _combined(x, key, value, op_of(how))
    add = how == "add"
    basic, arrays, apart = _split_key(x, key)
    value = variable_of(value)
    if not arrays:
        spec, starts, lengths = basic_parts(x, tuple(basic))
        write = op.add_at if add else op.set_at
        return write(x, value, *starts, spec=spec, lengths=lengths)
    if any(k is None or not isinstance(k, slice) or k != slice(None) for k in basic):
        region = op.basic_index(x, tuple(basic))
        inner = _update_lanes(region, arrays, value, add, apart)
        return update(x, tuple(basic), inner)
    return _update_lanes(x, arrays, value, add, apart)


def op_of(how: str) -> Callable:
    """Return the op by which an update combines what was there with a value."""
    return getattr(op, COMBINE[how])


def _combined(x: Variable, key: object, value: object, combine: Callable) -> Variable:
    """Record an update that combines; index arrays are walked, so that every duplicate counts."""
    if value.__class__ is Variable and value.type.dtype != x.type.dtype:
        value = op.astype(value, x.type.dtype)
    if not _split_key(x, key)[1]:
        return update(x, key, combine(getitem(x, key), value))
    count = shapes.product(x.shape)
    places = getitem(op.reshape(op.arange(0, count, 1, dtype=dtypes.int64), x.shape), key)
    if value.__class__ is not Variable:
        value = op.full((), value, dtype=x.type.dtype)
    values = op.reshape(op.broadcast_to(value, places.shape), (-1,))
    flat, places = op.reshape(x, (-1,)), op.reshape(places, (-1,))
    carry, i = symbol(flat.type), symbol(TensorType(dtypes.int64, ()))
    v = symbol(TensorType(x.type.dtype, ()))
    changed = op.take_set(carry, i, combine(gather(carry, i, 0), v), axis=0)
    body = Graph([carry, i, v], [changed])
    steps = {"length": places.shape[0], "reverse": False, "n_carry": 1, "n_xs": 2}
    return op.reshape(op.pick(op.scan(body, (flat, places, values), **steps), 0), x.shape)


def _update_lanes(x: Variable, arrays: list, value: Variable, add: bool, apart: bool) -> Variable:
    """Record an update by index arrays alone; the indexed axes are brought first when apart."""
    axes = [a for a, _ in arrays]
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if axes[0] and apart or not adjacent:
        order = (*axes, *(i for i in range(x.ndim) if i not in axes))
        first = list(enumerate(indices for _, indices in arrays))
        out = _update_lanes(op.permute_dims(x, order), first, value, add, False)
        return op.permute_dims(out, tuple(order.index(i) for i in range(x.ndim)))
    write = op.take_add if add else op.take_set
    if len(arrays) == 1:
        axis, indices = arrays[0]
        return write(x, wrapped(indices, x.shape[axis]), value, axis=axis)
    merged, axis, joint = _joint(x, arrays)
    return op.reshape(write(merged, joint, value, axis=axis), x.shape)
