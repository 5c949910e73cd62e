"""Functions whose shapes depend on data: they compute at once, so that `.shape` is ints.

Their results are read by index from the operand, so derivatives flow through them. For symbolic
operands the same is recorded, with a size that is found when the program runs or stated by `size=`.
"""

from collections import namedtuple

import numpy as np

from lazyarr.errors import ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops._declare import axis_of
from lazyarr.graph.ops.indexing import gather
from lazyarr.graph.ops.searching import indices_of, positions
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.keys import concrete

UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")


def _node(x: object) -> Variable:
    v = unwrap(x)
    return v if v.__class__ is Variable else data(np.asarray(v))


def _found(counts: Variable, size: object) -> Variable:
    """Return positions of counts; where a stated size is not reached, position 0."""
    found = positions(counts, size)
    return found if size is None else op.maximum(found, 0)


def nonzero(x, /, *, size=None):
    """Return for each axis the indices of the elements that are not 0, in C order.

    size: the number of results (an int), for backends that compile every size (JAX within its own
    transforms): more are left out, missing ones have index 0. Without it symbolic operands give a
    size that is known when the program runs.
    """
    v = _node(x)
    if not v.type.ndim:
        raise ShapeError("nonzero of a 0-d array; use expand_dims first, or `x != 0`.")
    if size is not None or v.symbolic:
        hit = v if v.type.dtype == dtypes.bool_ else op.not_equal(v, 0)
        return tuple(map(Array, indices_of(hit, size)))
    return tuple([Array(data(i.copy())) for i in np.nonzero(concrete(v, "nonzero"))])


def _unique(x: object, what: str, size: object) -> tuple:
    """Return the operand flat, first index, inverse and count of each distinct element."""
    v = _node(x)
    if size is not None or v.symbolic:
        return _unique_symbolic(v, size)
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


def _unique_symbolic(v: Variable, size: object) -> tuple:
    """The same recorded: the size is found when the program runs, or stated."""
    flat, n = op.reshape(v, (-1,)), shapes.product(v.type.shape)
    if v.type.dtype in dtypes.COMPLEX:
        order = op.argsort(op.imag(flat))
        order = gather(order, op.argsort(gather(op.real(flat), order, 0)), 0)
    else:
        order = op.argsort(flat)
    in_order, places = gather(flat, order, 0), op.arange(0, n, 1, dtype=dtypes.int64)
    before = gather(in_order, op.maximum(op.subtract(places, 1), 0), 0)
    new = op.logical_or(op.equal(places, 0), op.not_equal(in_order, before))
    start = positions(new, None if size is None else size + 1)  # and where the next one starts
    bounds = op.where(op.less(start, 0), n, start)
    if size is None:
        bounds = op.concat([bounds, op.full((1,), n, dtype=dtypes.int64)])
    else:
        start = op.drop_end(start, 0)
    first = gather(order, op.maximum(start, 0), 0)
    number = op.subtract(op.cumulative_sum(op.astype(new, dtypes.int64), axis=0), 1)
    inverse = op.take_set(op.zeros_like(order), order, number, axis=0)
    counts = op.subtract(op.drop_start(bounds, 0), op.drop_end(bounds, 0))
    shaped = op.reshape(inverse, v.type.shape)
    return tuple(map(Array, (gather(flat, first, 0), first, shaped, counts)))


def unique_all(x, /, *, size=None):
    """Return distinct elements, the first index of each, the inverse and the counts.

    size: as in `nonzero`; missing ones have the smallest element and a count of 0.
    """
    return UniqueAll(*_unique(x, "unique_all", size))


def unique_counts(x, /, *, size=None):
    """Return distinct elements and how often each occurs; size: as in `unique_all`."""
    values, _, _, counts = _unique(x, "unique_counts", size)
    return UniqueCounts(values, counts)


def unique_inverse(x, /, *, size=None):
    """Return distinct elements and for each the index of its equal; size: as in `unique_all`."""
    values, _, inverse, _ = _unique(x, "unique_inverse", size)
    return UniqueInverse(values, inverse)


def unique_values(x, /, *, size=None):
    """Return the distinct elements; each NaN is one of its own; size: as in `unique_all`."""
    return _unique(x, "unique_values", size)[0]


def repeat(x, repeats, /, *, axis=None, size=None):
    """Return each element repeated along an axis (None: flattened first), by one number or by many.

    size: the length of the result, as in `nonzero`, when repeats is an array.
    """
    v, times = _node(x), unwrap(repeats)
    single = times.__class__ is Variable and times.type.ndim == 0
    if single and np.issubdtype(times.dtype, np.integer) and not times.symbolic:
        times = int(concrete(times, "repeat"))
    elif isinstance(times, list | tuple):
        times = data(np.asarray(times))
    if times.__class__ is not Variable:
        return Array(op.repeat(v, times, axis=axis))
    if axis is None:
        v, axis = op.reshape(v, (-1,)), 0
    axis = axis_of(v, axis)
    n = v.type.shape[axis]
    _check_repeats(times.type, n)
    if size is not None or times.symbolic:
        return Array(gather(v, _found(op.broadcast_to(times, (n,)), size), axis))
    many = concrete(times, "repeat by an array")
    if many.size == 1:
        return Array(op.repeat(v, int(many.reshape(())), axis=axis))
    return Array(gather(v, data(np.repeat(np.arange(n), many)), axis))


def _check_repeats(t: TensorType, n: object) -> None:
    known = all(isinstance(s, int) for s in (*t.shape, n))
    if t.ndim > 1 or t.dtype.kind not in "iu" or (known and t.shape not in ((), (1,), (n,))):
        raise ShapeError(
            f"repeat: repeats of shape {t.shape} and dtype {t.dtype} for an axis of size "
            f"{n}; it takes one integer, or one for each element."
        )
