"""Searching and counting. Source: Array API standard 2025.12, searching and utility functions.

`argmax`, `argmin` stand with the reductions, `where` with the elementwise functions. All that has
a shape that depends on data (`nonzero`, boolean masks, `unique_*`, `repeat` by an array) is made of
one op, `repeated`, whose result has a size that only running it finds.
"""

import numpy as np

from lazyarr.errors import ArgumentError, ChoiceError, DTypeError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import as_operand
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import axes_of, axis_of, composite, declare, variable_of
from lazyarr.graph.ops.indexing import gather
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType

_INDEX = NO_GRADIENT("the result is an index, which carries no derivative")


def _count_nonzero(x, *, axis, keepdims):
    hit = x if x.type.dtype == dtypes.bool_ else op.not_equal(x, 0)
    return op.sum(hit, axis=axis, dtype=dtypes.int64, keepdims=keepdims)


@composite(expand=_count_nonzero, since="2024.12", vjp=_INDEX)
def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements over axes are not 0."""
    x = variable_of(x)
    return (x,), {"axis": axes_of(x, axis), "keepdims": bool(keepdims)}


def _searchsorted_infer(types, params):
    return TensorType(dtypes.int64, types[1].shape)


@declare(
    "library",
    infer=_searchsorted_infer,
    reference=lambda x1, x2, *, side: np.searchsorted(x1, x2, side=side),
    vjp=_INDEX,
    public=False,
)
def search_sorted(x1, x2, /, *, side):
    """Where values of one dtype would be inserted into a sorted array of one axis."""
    return (x1, x2), {"side": side}


def _searchsorted(x1, x2, *sorter, side):
    dtype = dtypes.promote(x1.type.dtype, x2.type.dtype)
    if sorter:
        x1 = op.take(x1, sorter[0], axis=0)
    x1, x2 = (x if x.type.dtype == dtype else op.astype(x, dtype) for x in (x1, x2))
    return op.search_sorted(x1, x2, side=side)


@composite(expand=_searchsorted, vjp=_INDEX, since="2023.12")
def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where each value would be inserted into a sorted array, before or after equal elements."""
    x1, x2 = variable_of(x1), as_operand(x2)
    if side not in ("left", "right"):
        raise ChoiceError(f"searchsorted: side is 'left' or 'right', not {side!r}.")
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted array has shape {x1.shape}, not one axis.")
    if x2.__class__ in (bool, int, float, complex):  # a number takes the dtype of the array
        dtypes.check_fits(x2, dtypes.weak(x1.type.dtype, x2.__class__))
        x2 = op.full((), x2, dtype=dtypes.weak(x1.type.dtype, x2.__class__))
    for x in (x1, x2):
        if x.type.dtype not in dtypes.CATEGORIES["real"]:
            raise DTypeError(f"searchsorted takes real dtypes, got {x.type.dtype}.")
    operands = (x1, x2) if sorter is None else (x1, x2, variable_of(sorter))
    return operands, {"side": side}


# -- sizes that depend on data --------------------------------------------------------------------


def _repeated_reference(counts, *, length):
    return np.repeat(np.arange(counts.size), counts)


def _found_batch(node, args, moved, size):
    raise ShapeError(
        "a batched function finds sizes that depend on data, which can differ between the elements "
        "of the batch; state a bound with `size=`."
    )


_FINDS = {  # indices as many as only running tells
    "infer": lambda types, params: TensorType(dtypes.int64, (params["length"],)),
    "vjp": _INDEX,
    "batch": _found_batch,
    "facts": frozenset({"finds_sizes"}),
    "sizes": ("length",),
    "public": False,
}


@declare("library", reference=_repeated_reference, **_FINDS)
def repeated(counts, /, *, length=None):
    """Each position i of an axis counts[i] times, in order; the length is known when it ran."""
    counts = variable_of(counts)
    if counts.type.dtype != dtypes.int64:
        counts = op.astype(counts, dtypes.int64)
    return (counts,), {"length": shapes.unknown("found") if length is None else length}


def _spanned_reference(start, stop, size, *, given, step, length):
    ends = (int(x) if there else None for x, there in zip((start, stop), given, strict=True))
    return np.arange(*slice(*ends, step).indices(int(size)))


@declare("library", reference=_spanned_reference, **_FINDS)
def spanned(start, stop, size, /, *, step=1, length=None):
    """The indices of a slice with ends known while running, clamped to an axis as Python does."""
    parts = [0 if x is None else x for x in (start, stop, size)]
    given = start is not None, stop is not None
    operands = tuple([op.astype(_count(x), dtypes.int64) for x in parts])
    found = shapes.unknown("found") if length is None else length
    return operands, {"given": given, "step": step, "length": found}


def _count(x):
    """An integer or a size as a node."""
    return op.size_value(x) if isinstance(x, int | shapes.Size) else variable_of(x)


def positions(counts, size=None):
    """Record `repeated`; with a size, what is over it is left out and what lacks is -1.

    counts: int64 or bool [n]. Returns int64 [unknown] or [size].
    """
    if size is None:
        return op.repeated(counts)
    ends = op.cumulative_sum(op.astype(counts, dtypes.int64), axis=0)
    places = op.arange(0, size, 1, dtype=dtypes.int64)
    found = op.search_sorted(ends, places, side="right")
    return op.where(op.less(found, shapes.product(counts.shape)), found, -1)


def indices_of(mask, size=None):
    """Record for each axis of a mask the indices of what is true, in C order.

    mask: bool [...]. With a size, what lacks has index 0.
    """
    found = positions(op.reshape(mask, (-1,)), size)
    left = found if size is None else op.maximum(found, 0)
    out = []
    for n in reversed(mask.shape[1:]):
        out.append(op.remainder(left, n))
        left = op.floor_divide(left, n)
    return [left, *reversed(out)]


# -- differences ----------------------------------------------------------------------------------


def _diff(x, *ends, axis, n, prepend, append):
    ends = list(ends)
    parts = ([ends.pop(0)] if prepend else []) + [x] + ([ends.pop(0)] if append else [])
    if len(parts) > 1:
        x = op.concat(parts, axis=axis)
    for _ in range(n):
        x = op.subtract(op.drop_start(x, axis), op.drop_end(x, axis))
    return x


@composite(expand=_diff, accepts="numeric", since="2024.12")
def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The n-th difference of neighbours along an axis, after arrays joined at its ends."""
    x = variable_of(x)
    if n < 0:
        raise ChoiceError(f"diff: n is {n}; it cannot be below 0.")
    ends = tuple([variable_of(v) for v in (prepend, append) if v is not None])
    given = {"prepend": prepend is not None, "append": append is not None}
    return (x, *ends), {"axis": axis_of(x, axis), "n": int(n), **given}


# -- membership -----------------------------------------------------------------------------------


def _isin(x1, x2, *, invert):
    dtype = dtypes.promote(x1.type.dtype, x2.type.dtype)
    x1, x2 = (x if x.type.dtype == dtype else op.astype(x, dtype) for x in (x1, x2))
    known, n = op.reshape(x2, (-1,)), shapes.product(x2.shape)
    known = op.sort(known)
    place = op.search_sorted(known, x1, side="left")
    # one more element, so that also an empty array has one to compare with
    known = op.concat([known, op.full((1,), 0, dtype=dtype)])
    hit = op.logical_and(op.less(place, n), op.equal(gather(known, place, 0), x1))
    return op.logical_not(hit) if invert else hit


@composite(expand=_isin, since="2025.12",
           vjp=NO_GRADIENT("the result is boolean, so it carries no derivative"))  # fmt: skip
def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is among those of x2."""
    x1, x2 = as_operand(x1), as_operand(x2)
    strong = [x.type.dtype for x in (x1, x2) if x.__class__ not in (bool, int, float, complex)]
    if not strong:
        raise ArgumentError("isin needs at least one array.")
    x1, x2 = (
        op.full((), x, dtype=dtypes.weak(strong[0], x.__class__))
        if x.__class__ in (bool, int, float, complex)
        else x
        for x in (x1, x2)
    )
    return (x1, x2), {"invert": bool(invert)}
