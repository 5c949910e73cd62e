"""Manipulation functions: elements move, none is computed. Source: Array API standard 2025.12.

Most are index maps: for each input axis, which output axis it follows, with a step and a start. A
lowering composes them and they vanish; `reshape` and the joins `concat` and `stack` stay.
"""

import numpy as np

from lazyarr.errors import AxisError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable, as_operand
from lazyarr.graph.op import AxisMap
from lazyarr.graph.ops._declare import (
    axes_of,
    axis_of,
    composite,
    declare,
    shape_of,
    variable_of,
)
from lazyarr.graph.ops.indexing import gather, slice_axis
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType

# -- reshape, broadcast ---------------------------------------------------------------------------


def _resolve(x: Variable, shape: tuple) -> tuple:
    """Replace -1 in a target shape and check the number of elements where it is known."""
    total = shapes.product(x.shape)
    free = sum(1 for s in shape if s.__class__ is int and s == -1)
    if free > 1:
        raise ShapeError(f"reshape: {shape} holds -1 more than once.")
    if free:
        i = shape.index(-1)
        rest = shapes.product(s for j, s in enumerate(shape) if j != i)
        if isinstance(total, int) and isinstance(rest, int):
            if rest == 0 or total % rest:
                raise ShapeError(f"reshape: {x.shape} does not fit {shape}.")
        shape = (*shape[:i], shapes.floordiv(total, rest), *shape[i + 1 :])
    new = shapes.product(shape)
    if isinstance(total, int) and isinstance(new, int) and total != new:
        raise ShapeError(f"reshape: {x.shape} has {total} elements, {shape} has {new}.")
    return shape


@declare(
    "movement",
    infer=lambda types, params: TensorType(types[0].dtype, params["shape"]),
    reference=lambda x, *, shape: np.reshape(x, shape),
    vjp=lambda g, y, x, *, shape: (op.reshape(g, x.shape),),
    jvp="linear",
    sizes=("shape",),
)
def reshape(x, /, shape, *, copy=None):
    """The same elements in another shape, in C order; one size may be -1."""
    x = variable_of(x)
    return (x,), {"shape": _resolve(x, shape_of(shape, inferred=True))}


def _broadcast_index(node: Variable) -> tuple:
    source, shape = node.inputs[0].shape, node.shape
    lead = len(shape) - len(source)
    return tuple(
        AxisMap(None) if s == 1 and shape[lead + i] != 1 else AxisMap(lead + i)
        for i, s in enumerate(source)
    )


def _infer_broadcast(types, params):
    source, target = types[0].shape, params["shape"]
    if shapes.broadcast(source, target) != target or len(source) > len(target):
        unknown = any(isinstance(s, Size) for s in (*source, *target))
        if not unknown or len(source) > len(target):
            raise ShapeError(f"an array of shape {source} does not broadcast to {target}.")
    return TensorType(types[0].dtype, target)


@declare(
    "movement",
    infer=_infer_broadcast,
    reference=lambda x, *, shape: np.broadcast_to(x, shape),
    index=_broadcast_index,
    vjp=lambda g, y, x, *, shape: (op.sum_to(g, x.shape),),
    jvp="linear",
    sizes=("shape",),
)
def broadcast_to(x, /, shape):
    """The array repeated along new axes and axes of size 1 to a shape."""
    return (variable_of(x),), {"shape": shape_of(shape)}


def _identity_index(node: Variable) -> tuple:
    return tuple(AxisMap(i) for i in range(node.ndim))


@declare(
    "movement",
    infer=lambda types, params: types[0].with_shape(params["shape"]),
    reference=lambda x, *, shape, dims: x,
    index=_identity_index,
    vjp=lambda g, y, x, *, shape, dims: (op.specify_shape(g, x.shape, dims),),
    jvp="linear",
    sizes=("shape",),
    public=False,
)
def specify_shape(x, shape, dims=(), /):
    """The array itself, whose sizes must be the given ones (checked when sizes are bound).

    `dims` names the axes in the error.
    """
    for have, want in zip(x.shape, shape, strict=True):
        if isinstance(have, int) and isinstance(want, int) and have != want:
            raise ShapeError(f"expected shape {shape}, got {x.shape}.")
    return (x,), {"shape": tuple(shape), "dims": tuple(dims)}


def _sum_to(x, *, shape):
    lead = x.ndim - len(shape)
    if lead:
        x = op.sum(x, axis=tuple(range(lead)), dtype=x.dtype)
    ones = tuple(i for i, s in enumerate(shape) if s == 1 and x.shape[i] != 1)
    if ones:
        x = op.sum(x, axis=ones, keepdims=True, dtype=x.dtype)
    same = all(a is b or a == b for a, b in zip(x.shape, shape, strict=True))
    return x if same else op.specify_shape(x, shape)


@composite(
    expand=_sum_to,
    vjp=lambda g, y, x, *, shape: (op.broadcast_to(g, x.shape),),
    jvp="linear",
    sizes=("shape",),
    public=False,
)
def sum_to(x, shape, /):
    """The sum over the axes along which `shape` was broadcast to the shape of x."""
    return (x,), {"shape": tuple(shape)}


# -- axes -----------------------------------------------------------------------------------------


def _permute_index(node: Variable) -> tuple:
    order = node.params["axes"]
    return tuple(AxisMap(order.index(i)) for i in range(node.ndim))


@declare(
    "movement",
    infer=lambda types, params: TensorType(
        types[0].dtype, tuple(types[0].shape[i] for i in params["axes"])
    ),
    reference=lambda x, *, axes: np.transpose(x, axes),
    index=_permute_index,
    vjp=lambda g, y, x, *, axes: (
        op.permute_dims(g, tuple(axes.index(i) for i in range(len(axes)))),
    ),
    jvp="linear",
)
def permute_dims(x, /, axes):
    """The axes in another order."""
    x = variable_of(x)
    order = tuple(axis_of(x, a) for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise AxisError(f"permute_dims: {axes} is no permutation of {x.ndim} axes.")
    return (x,), {"axes": order}


def _swap_last(x):
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs at least 2 dimensions, got shape {x.shape}.")
    return op.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@composite(expand=_swap_last)
def matrix_transpose(x, /):
    """The last two axes exchanged."""
    return (variable_of(x),), {}


def _expand_infer(types, params):
    rank = types[0].ndim + len(params["axis"])
    source = iter(types[0].shape)
    shape = tuple(1 if i in params["axis"] else next(source) for i in range(rank))
    return TensorType(types[0].dtype, shape)


def _expand_index(node: Variable) -> tuple:
    kept = [i for i in range(node.ndim) if i not in node.params["axis"]]
    return tuple(AxisMap(i) for i in kept)


@declare(
    "movement",
    infer=_expand_infer,
    reference=lambda x, *, axis: np.expand_dims(x, axis),
    index=_expand_index,
    vjp=lambda g, y, x, *, axis: (op.squeeze(g, axis),),
    jvp="linear",
)
def expand_dims(x, /, axis):
    """New axes of size 1 at positions of the result."""
    x = variable_of(x)
    many = axis if isinstance(axis, tuple | list) else (axis,)
    found = tuple(sorted(axis_of(x, a, extra=len(many)) for a in many))
    if len(set(found)) != len(found):
        raise AxisError(f"expand_dims: axis {axis} names a position twice.")
    return (x,), {"axis": found}


def _squeeze_index(node: Variable) -> tuple:
    dropped, maps, out = node.params["axis"], [], 0
    for i in range(node.inputs[0].ndim):
        if i in dropped:
            maps.append(AxisMap(None))
        else:
            maps.append(AxisMap(out))
            out += 1
    return tuple(maps)


def _squeeze_infer(types, params):
    for a in params["axis"]:
        if isinstance(types[0].shape[a], int) and types[0].shape[a] != 1:
            raise ShapeError(f"axis {a} of shape {types[0].shape} has not size 1.")
    kept = tuple(s for i, s in enumerate(types[0].shape) if i not in params["axis"])
    return TensorType(types[0].dtype, kept)


@declare(
    "movement",
    infer=_squeeze_infer,
    reference=lambda x, *, axis: np.squeeze(x, axis),
    index=_squeeze_index,
    vjp=lambda g, y, x, *, axis: (op.expand_dims(g, axis=axis),),
    jvp="linear",
)
def squeeze(x, /, axis):
    """The array without axes of size 1."""
    x = variable_of(x)
    return (x,), {"axis": axes_of(x, axis)}


def _flip_index(node: Variable) -> tuple:
    flipped = node.params["axis"]
    return tuple(
        AxisMap(i, -1, s - 1) if i in flipped else AxisMap(i) for i, s in enumerate(node.shape)
    )


@declare(
    "movement",
    infer=lambda types, params: types[0],
    reference=lambda x, *, axis: np.flip(x, axis),
    index=_flip_index,
    vjp=lambda g, y, x, *, axis: (op.flip(g, axis=axis),),
    jvp="linear",
)
def flip(x, /, *, axis=None):
    """The elements in reverse order along axes."""
    x = variable_of(x)
    return (x,), {"axis": axes_of(x, axis)}


def _diagonal_index(node: Variable) -> tuple:
    last = node.ndim - 1
    return tuple(AxisMap(i) for i in range(last)) + (AxisMap(last), AxisMap(last))


def _diagonal_infer(types, params):
    *batch, n, m = types[0].shape
    if n is not m and n != m:
        n = min(n, m) if isinstance(n, int) and isinstance(m, int) else n
    return TensorType(types[0].dtype, (*batch, n))


def _diagonal_vjp(g, y, x):
    on = op.eye(*x.shape[-2:], dtype=dtypes.bool_)
    return (op.where(on, op.expand_dims(g, axis=g.ndim), 0),)


@declare(
    "movement",
    infer=_diagonal_infer,
    reference=lambda x: np.diagonal(x, axis1=-2, axis2=-1),
    index=_diagonal_index,
    vjp=_diagonal_vjp,
    jvp="linear",
    public=False,
)
def main_diagonal(x, /):
    """The main diagonal of the last two axes, which have equal sizes."""
    return (x,), {}


# -- joins ----------------------------------------------------------------------------------------


def _common(arrays, what) -> tuple[tuple, object]:
    arrays = tuple(variable_of(a) for a in arrays)
    if not arrays:
        raise ShapeError(f"{what} needs at least one array.")
    dtype = arrays[0].type.dtype
    for a in arrays[1:]:
        dtype = dtypes.promote(dtype, a.type.dtype)
    return tuple(a if a.type.dtype == dtype else op.astype(a, dtype) for a in arrays), dtype


def _concat_infer(types, params):
    axis, total = params["axis"], 0
    shape = list(types[0].shape)
    for t in types:
        if t.ndim != len(shape):
            raise ShapeError(f"arrays of rank {t.ndim} and {len(shape)} cannot be joined.")
        for i, s in enumerate(t.shape):
            known = isinstance(s, int) and isinstance(shape[i], int)
            if i != axis and known and s != shape[i]:
                raise ShapeError(f"shapes {types[0].shape} and {t.shape} differ off axis {axis}.")
            if i != axis and isinstance(s, int):
                shape[i] = s
        total = total + t.shape[axis]
    shape[axis] = total
    return TensorType(types[0].dtype, tuple(shape))


def _concat_vjp(g, y, *arrays, axis):
    out, start = [], 0
    for a in arrays:
        size = a.shape[axis]
        out.append(slice_axis(g, axis, start, size))
        start = start + size
    return tuple(out)


@declare(
    "movement",
    infer=_concat_infer,
    reference=lambda *arrays, axis: np.concatenate(arrays, axis=axis),
    vjp=_concat_vjp,
    jvp="linear",
)
def concat(arrays, /, *, axis=0):
    """Arrays laid one after the other along an existing axis (None: flattened first)."""
    if axis is None:
        arrays, axis = [op.reshape(a, (-1,)) for a in map(variable_of, arrays)], 0
    operands, _ = _common(arrays, "concat")
    return operands, {"axis": axis_of(operands[0], axis)}


def _stack_infer(types, params):
    axis = params["axis"]
    for t in types:
        if t.shape != types[0].shape and all(isinstance(s, int) for s in t.shape):
            raise ShapeError(f"shapes {types[0].shape} and {t.shape} differ.")
    shape = types[0].shape
    return TensorType(types[0].dtype, (*shape[:axis], len(types), *shape[axis:]))


def _stack_vjp(g, y, *arrays, axis):
    return tuple(op.squeeze(slice_axis(g, axis, i, 1), axis) for i in range(len(arrays)))


@declare(
    "movement",
    infer=_stack_infer,
    reference=lambda *arrays, axis: np.stack(arrays, axis=axis),
    vjp=_stack_vjp,
    jvp="linear",
)
def stack(arrays, /, *, axis=0):
    """Arrays of one shape laid side by side along a new axis."""
    operands, _ = _common(arrays, "stack")
    return operands, {"axis": axis_of(operands[0], axis, extra=1)}


# -- expressions of the above ---------------------------------------------------------------------


@composite(expand=lambda x, *, axes: op.permute_dims(x, axes), since="2023.12")
def moveaxis(x, source, destination, /):
    """The axes at `source` moved to `destination`, the others in their order."""
    x = variable_of(x)
    many = [v if isinstance(v, tuple | list) else (v,) for v in (source, destination)]
    start, end = ([axis_of(x, a) for a in v] for v in many)
    if len(start) != len(end) or len(set(start)) != len(start) or len(set(end)) != len(end):
        raise AxisError(f"moveaxis: {source} cannot be moved to {destination}.")
    order = [i for i in range(x.ndim) if i not in start]
    for to, of in sorted(zip(end, start, strict=True)):
        order.insert(to, of)
    return (x,), {"axes": tuple(order)}


def _roll(x, *shifts, axis):
    for shift, a in zip(shifts, axis, strict=True):
        n = x.shape[a]
        x = gather(x, op.remainder(op.subtract(op.arange(n), shift), n), a)
    return x


def _roll_vjp(g, y, x, *shifts, axis):
    back = [op.negative(v) if v.__class__ is Variable else -v for v in shifts]
    return op.roll_axes.record((g, *back), {"axis": axis}), *[None] * len(shifts)


@composite(expand=_roll, vjp=_roll_vjp, jvp="linear:0", name="roll_axes", public=False)
def roll_axes(x, shifts, axis, /):
    """The elements moved along axes, those that leave at one end entering at the other."""
    return (x, *shifts), {"axis": tuple(axis)}


def _roll_any(x, *shifts, axis):
    if axis is not None:
        return op.roll_axes(x, shifts, axis)
    return op.reshape(op.roll_axes(op.reshape(x, (-1,)), shifts, (0,)), x.shape)


@composite(expand=_roll_any)
def roll(x, /, shift, *, axis=None):
    """The elements moved along axes (None: in C order) and wrapped around."""
    x = variable_of(x)
    shifts = tuple(shift) if isinstance(shift, tuple | list) else (shift,)
    shifts = tuple([as_operand(s) for s in shifts])
    if axis is None:
        if len(shifts) != 1:
            raise AxisError("roll: several shifts need as many axes.")
        return (x, *shifts), {"axis": None}
    axes = [axis_of(x, a) for a in (axis if isinstance(axis, tuple | list) else (axis,))]
    if len(axes) != len(shifts):
        if len(shifts) > 1:
            raise AxisError(f"roll: {len(shifts)} shifts for {len(axes)} axes.")
        shifts = shifts * len(axes)
    return (x, *shifts), {"axis": tuple(axes)}


def _tile(x, *, repetitions):
    lead = len(repetitions) - x.ndim
    shape = (1,) * lead + x.shape if lead > 0 else x.shape
    times = (1,) * -lead + repetitions if lead < 0 else repetitions
    split = op.reshape(x, tuple(n for s in shape for n in (1, s)))
    wide = op.broadcast_to(split, tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return op.reshape(wide, tuple(r * s for r, s in zip(times, shape, strict=True)))


@composite(expand=_tile, sizes=("repetitions",), since="2023.12")
def tile(x, repetitions, /):
    """The array repeated along each axis."""
    return (variable_of(x),), {"repetitions": shape_of(repetitions)}


def _repeat(x, *, repeats, axis):
    if axis is None:
        x, axis = op.reshape(x, (-1,)), 0
    wide = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    spread = op.broadcast_to(op.expand_dims(x, axis=axis + 1), wide)
    return op.reshape(spread, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


@composite(expand=_repeat, sizes=("repeats",), since="2023.12")
def repeat(x, repeats, /, *, axis=None):
    """Each element repeated a number of times along an axis (None: flattened first)."""
    x, (repeats,) = variable_of(x), shape_of(repeats)
    return (x,), {"repeats": repeats, "axis": None if axis is None else axis_of(x, axis)}


def _resized(x, *, size, axis):
    i, n = op.arange(size), x.shape[axis]
    read = gather(x, op.minimum(i, n - 1), axis)
    shape = [1] * x.ndim
    shape[axis] = size
    return op.where(op.reshape(op.less(i, n), tuple(shape)), read, 0)


@composite(
    expand=_resized,
    vjp=lambda g, y, x, *, size, axis: (op.resize_axis(g, x.shape[axis], axis),),
    jvp="linear",
    sizes=("size",),
    public=False,
)
def resize_axis(x, size, axis, /):
    """An axis cut, or filled with zeros at its end, to a size; it is not empty."""
    return (x,), {"size": size, "axis": axis}
