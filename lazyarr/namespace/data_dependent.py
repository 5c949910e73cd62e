"""Functions whose shapes depend on data: they compute at once, so that `.shape` is ints.

Their results are read by index from the operand, so derivatives flow through them. For symbolic
operands they raise ConcretizationError.
"""

from collections import namedtuple

import numpy as np

from lazyarr.errors import ShapeError
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops._declare import axis_of
from lazyarr.graph.ops.indexing import gather
from lazyarr.graph.registry import op
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.keys import concrete

UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")


def _node(x: object) -> Variable:
    v = unwrap(x)
    return v if v.__class__ is Variable else data(np.asarray(v))


def nonzero(x, /):
    """Return for each axis the indices of the elements that are not 0, in C order."""
    v = _node(x)
    if not v.type.ndim:
        raise ShapeError("nonzero of a 0-d array; use expand_dims first, or `x != 0`.")
    return tuple([Array(data(i.copy())) for i in np.nonzero(concrete(v, "nonzero"))])


def _unique(x: object, what: str) -> tuple:
    """Return the operand flat, first index, inverse and count of each distinct element."""
    v = _node(x)
    flat = concrete(v, what).reshape(-1)
    order = np.argsort(flat, kind="stable")
    in_order = flat[order]
    new = np.ones(flat.shape, bool)
    new[1:] = in_order[1:] != in_order[:-1]  # NaN differs from itself
    first = order[new]
    inverse = np.empty(flat.shape, np.int64)
    inverse[order] = np.cumsum(new) - 1
    counts = np.diff(np.append(np.flatnonzero(new), flat.size))
    values = gather(op.reshape(v, (-1,)), data(first), 0)
    found = flat[first]
    found.flags.writeable = False
    values.value = found
    shaped = inverse.reshape(v.type.shape)
    return Array(values), *(Array(data(i.astype(np.int64))) for i in (first, shaped, counts))


def unique_all(x, /):
    """Return distinct elements, the first index of each, the inverse and the counts."""
    return UniqueAll(*_unique(x, "unique_all"))


def unique_counts(x, /):
    """Return distinct elements and how often each occurs."""
    values, _, _, counts = _unique(x, "unique_counts")
    return UniqueCounts(values, counts)


def unique_inverse(x, /):
    """Return distinct elements and for each element the index of the one it equals."""
    values, _, inverse, _ = _unique(x, "unique_inverse")
    return UniqueInverse(values, inverse)


def unique_values(x, /):
    """Return the distinct elements; each NaN counts as one of its own."""
    return _unique(x, "unique_values")[0]


def repeat(x, repeats, /, *, axis=None):
    """Return each element repeated along an axis (None: flattened first), by one number or by many.

    An array of numbers needs a value, since the shape depends on it.
    """
    v, times = _node(x), unwrap(repeats)
    if (
        times.__class__ is Variable
        and times.type.ndim == 0
        and np.issubdtype(times.dtype, np.integer)
    ):
        times = int(concrete(times, "repeat"))
    elif isinstance(times, list | tuple):
        times = data(np.asarray(times))
    if times.__class__ is not Variable:
        return Array(op.repeat(v, times, axis=axis))
    if axis is None:
        v, axis = op.reshape(v, (-1,)), 0
    axis = axis_of(v, axis)
    n, many = v.type.shape[axis], concrete(times, "repeat by an array")
    if many.ndim != 1 or many.dtype.kind not in "iu" or (many.size != 1 and many.size != n):
        raise ShapeError(
            f"repeat: repeats of shape {many.shape} and dtype {many.dtype} for an axis of size "
            f"{n}; it takes one integer, or one for each element."
        )
    if many.size == 1:
        return Array(op.repeat(v, int(many[0]), axis=axis))
    return Array(gather(v, data(np.repeat(np.arange(n), many)), axis))
