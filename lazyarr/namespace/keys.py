"""Keys of `x[key]` and `x[key] = value`: handles are unwrapped, boolean masks become indices.

A mask is turned into the indices of its true elements: at once where it can have a value, so that
the shape of the result is known, else with a size that is found when the program runs. Setting by a
mask alone needs neither: it is a choice between two arrays.
"""

import numpy as np

from lazyarr.errors import BoundsError, ConcretizationError
from lazyarr.graph.node import UNSET, Variable, compute_values, data
from lazyarr.graph.ops.indexing import expand_key, gather, getitem, op_of, update
from lazyarr.graph.ops.searching import indices_of
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size

_PLAIN = (int, slice, type(None), type(...), Size, Variable)
_NONE, _FIRST = np.zeros(0, np.int64), np.zeros(1, np.int64)


def concrete(variable: Variable, what: str = "this") -> np.ndarray:
    """Return the value of a node, computing it when every leaf has one."""
    if variable.value is not UNSET:
        return variable.value
    try:
        return compute_values([variable])[0]
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{what} needs a value, but {error}. Pass the expression through `function`, or write "
            "`where`, `cond` or `while_loop` instead of Python's if and while."
        ) from None


def _plain(key: object) -> object:
    """Return one entry of a key without handles and lists."""
    if isinstance(key, slice):
        parts = (key.start, key.stop, key.step)
        if all(p is None or p.__class__ is int for p in parts):
            return key
        return slice(*(_slice_part(p) for p in parts))
    if key.__class__ in _PLAIN:
        return key
    inner = getattr(key, "_v", None)
    if inner.__class__ is Variable:
        return inner
    return np.asarray(key) if isinstance(key, list | tuple) else key


def _slice_part(part: object) -> object:
    """Return an end of a slice: what can have a value has one, a symbolic integer stays."""
    if part is None or isinstance(part, Size):
        return part
    inner = getattr(part, "_v", part)
    if inner.__class__ is Variable and inner.symbolic:
        if inner.type.ndim or inner.type.dtype.kind not in "iu":
            raise BoundsError(f"an end of a slice is one integer, not {inner.type}.")
        return inner
    return part.__index__()  # type: ignore[attr-defined]


def _is_open(key: object) -> bool:
    """Tell whether a key is a slice with ends that are known only while running."""
    return isinstance(key, slice) and Variable in (key.start.__class__, key.stop.__class__)


def _open_slice(x: Variable, many: list) -> tuple[int, Variable, list]:
    """Return the axis of the first open slice, its indices, and the key without it."""
    many = expand_key(tuple(many), x.ndim)
    place = next(i for i, k in enumerate(many) if _is_open(k))
    axis = sum(k is not None for k in many[:place])
    ends = many[place]
    step = 1 if ends.step is None else _step(ends.step)
    indices = op.spanned(ends.start, ends.stop, x.shape[axis], step=step)
    return axis, indices, [*many[:place], slice(None), *many[place + 1 :]]


def _step(step: object) -> int:
    if isinstance(step, int) and step:
        return step
    raise BoundsError(f"the step of a slice is an integer but 0, known while recording; not {step}")


def _is_mask(key: object) -> bool:
    if isinstance(key, bool | np.bool_):
        return True
    return getattr(key, "dtype", None) == np.bool_


def entries(key: object) -> list:
    """Return the entries of a key without handles; masks stay."""
    return [_plain(k) for k in (key if isinstance(key, tuple) else (key,))]


def _check_mask(mask: object, shape: tuple, first: int) -> None:
    """Each side of a mask equals its axis, or is 0."""
    have = mask.shape  # type: ignore[attr-defined]
    axes = shape[first : first + len(have)]
    known = zip(have, axes, strict=False)
    fits = all(m in (n, 0) for m, n in known if isinstance(m, int) and isinstance(n, int))
    if len(axes) < len(have) or not fits:
        raise BoundsError(f"a mask of shape {have} does not fit the axes {axes} of {shape}.")


def _masks_replaced(x: Variable, many: list) -> tuple[Variable, tuple]:
    """Return an array and a key for it without masks; a 0-d mask gets an axis of its own."""
    taken = sum(_rank(k) for k in many if k is not Ellipsis)
    out: list = []
    axis = 0
    for k in many:
        if not _is_mask(k):
            out.append(k)
            axis += x.ndim - taken if k is Ellipsis else _rank(k)
            continue
        mask = k if k.__class__ is Variable else np.asarray(k)
        _check_mask(mask, x.shape, axis)
        if mask.__class__ is Variable and mask.symbolic and mask.ndim:
            out.extend(indices_of(mask))
            axis += mask.ndim
            continue
        value = concrete(mask, "a boolean mask") if mask.__class__ is Variable else mask
        if value.ndim:
            out.extend(data(i.copy()) for i in np.nonzero(value))
            axis += value.ndim
        else:
            x = op.expand_dims(x, axis=axis)
            out.append(_FIRST if value else _NONE)
            axis += 1
    return x, tuple(out)


def _rank(k: object) -> int:
    """How many axes an entry of a key takes."""
    if k is None:
        return 0
    return getattr(k, "ndim", 0) if _is_mask(k) else 1


def read(x: Variable, key: object) -> Variable:
    """Record `x[key]`."""
    many = entries(key)
    if any(map(_is_mask, many)):
        x, many = _masks_replaced(x, many)
    while any(map(_is_open, many)):
        axis, indices, many = _open_slice(x, list(many))
        x = gather(x, indices, axis)
    return getitem(x, tuple(many))


def write(x: Variable, key: object, value: object, how: str = "set") -> Variable:
    """Record x with `x[key]` replaced by a value, or combined with it (`how`, as in `update`)."""
    many = entries(key)
    if any(map(_is_open, many)):
        return _write_open(x, many, value, how)
    if not any(map(_is_mask, many)):
        return update(x, tuple(many), value, how)
    mask = many[0]
    rest = x.ndim - _rank(mask)
    if len(many) == 1 and getattr(value, "ndim", 0) <= rest:
        _check_mask(mask if hasattr(mask, "shape") else np.asarray(mask), x.shape, 0)
        if 0 not in np.shape(mask):
            return _chosen(x, mask, value, rest, how)
    wide, key = _masks_replaced(x, many)
    out = update(wide, key, value, how)
    return out if wide is x else op.reshape(out, x.shape)


def _write_open(x: Variable, many: list, value: object, how: str) -> Variable:
    """Record an update of a region with ends known while running: of its lanes, then of x."""
    if any(map(_is_mask, many)):
        raise BoundsError("a mask beside a slice with symbolic ends; write to x[start:stop] first.")
    axis, indices, rest = _open_slice(x, many)
    lanes = write(gather(x, indices, axis), tuple(rest), value, how)
    return op.take_set(x, indices, lanes, axis=axis)


def _chosen(x: Variable, mask: object, value: object, rest: int, how: str) -> Variable:
    """x where a mask is false, a value (or x combined with it) where it is true."""
    mask = mask if mask.__class__ is Variable else data(np.array(mask))
    if rest:
        mask = op.reshape(mask, (*mask.shape, *(1,) * rest))  # type: ignore[attr-defined]
    new = value if how == "set" else op_of(how)(x, value)
    if new.__class__ is Variable and new.type.dtype != x.type.dtype:
        new = op.astype(new, x.type.dtype)
    out = op.where(mask, new, x)
    return out if out.type is x.type else op.broadcast_to(op.astype(out, x.type.dtype), x.shape)


# -- values handed out without a copy --------------------------------------------------------------


def shared_capsule(value: np.ndarray, options: dict) -> object:
    """Return a DLPack capsule on the memory of a value, which is read-only.

    Consumers of older versions cannot be told so; the memory is theirs to respect.
    """
    chain = [value]
    while isinstance(chain[-1].base, np.ndarray):
        chain.append(chain[-1].base)
    closed = [a for a in reversed(chain) if not a.flags.writeable]
    try:
        for a in closed:
            a.flags.writeable = True
        return value.__dlpack__(**options, copy=False)
    except ValueError:  # the memory is somebody else's, who does not let it be written
        raise BufferError("__dlpack__ with copy=False: the memory is read-only.") from None
    finally:
        for a in reversed(closed):
            a.flags.writeable = False
