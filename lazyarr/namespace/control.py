"""Loops in the graph: `scan`, `while_loop`, `fori_loop`, `map`, `associative_scan`, `lagged`."""

from collections.abc import Callable, Sequence

from lazyarr.config import options
from lazyarr.errors import ArgumentError, DimError, ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops._declare import axis_of
from lazyarr.graph.ops.control import COUNT, picks
from lazyarr.graph.ops.control_reverse import UNBOUNDED
from lazyarr.graph.ops.indexing import slice_axis
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.control_checkpoint import segmented
from lazyarr.namespace.control_trace import (
    Leaf,
    Step,
    as_handle,
    node_of,
    record,
    scalar_count,
)
from lazyarr.namespace.tree import flatten, paths, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.xtensor.coords import Coords
from lazyarr.xtensor.joining import merge


def scan(
    body: Callable,
    init: object,
    xs: object = None,
    *,
    length: object = None,
    dim: str | None = None,
    until: Callable | None = None,
    reverse: bool = False,
    checkpoint: object = None,
    unroll: int = 1,
):
    """Run `carry, y = body(carry, x)` along the first axis of xs; return the last carry and all ys.

    carry, xs and ys are pytrees (None for nothing) of Arrays or XTensors; what the body reads from
    outside is captured. length: the number of steps where xs is None, an int or a size. dim: the
    dimension of XTensors in xs to walk over; ys have it in front, with its coordinates. until: a
    predicate of the carry after a step that ends the loop; the result is then `(carry, ys, count)`,
    and ys are zero from count on. reverse: walk from the end; ys stay in the order of xs.
    checkpoint: "sqrt" or a number of steps; the gradient then stores the carry once in so many
    steps and runs the steps between again. unroll: accepted, and of no effect.

    Raises DTypeError or ShapeError when a carry changes type, naming the leaf and both types.

    >>> import lazyarr as xp
    >>> last, sums = xp.scan(lambda c, x: (c + x, c + x), 0.0, xp.asarray([1.0, 2.0, 3.0]))
    >>> float(last), sums.compute()
    (6.0, array([1., 3., 6.]))
    """
    if not isinstance(unroll, int) or unroll < 1:
        raise ArgumentError(f"unroll is an int of 1 or more, not {unroll!r}.")
    leaves, xs_tree = flatten(xs)
    handles = [_walked(as_handle(v), dim) for v in leaves]
    nodes = [node_of(h) for h in handles]
    length = _length(nodes, length)
    kinds = [_element(h, dim) for h in handles]
    symbols = [make_symbol(TensorType(v.dtype, v.shape[1:])) for v in nodes]
    elements = [k.handle(s) for k, s in zip(kinds, symbols, strict=True)]
    _check_carry(init, dim)
    step = record(body, init, elements, lambda x: unflatten(xs_tree, x), until)
    backward = reverse and until is not None  # a loop that stops early runs forward
    if backward:
        nodes = [op.flip(v, axis=0) for v in nodes]
    out = segmented(step, nodes, length, reverse and not backward, until is not None, checkpoint)
    n = len(step.init)
    ys = out[n : n + len(step.ys)]
    if backward:
        ys = [op.flip(y, axis=0) for y in ys]
    labels = _labels(handles, dim)
    stacked = [
        (k.stacked(dim, labels) if dim is not None and k.dims is not None else _positional(k))
        .handle(y)
        for k, y in zip(step.ys, ys, strict=True)
    ]  # fmt: skip
    found = _carry(step, out[:n]), unflatten(step.y_tree, stacked)
    return (*found, Array(out[-1])) if until is not None else found


def _carry(step: Step, nodes: Sequence[Variable]) -> object:
    return unflatten(step.carry_tree, [k.handle(v) for k, v in zip(step.carry, nodes, strict=True)])


def _walked(handle: object, dim: str | None) -> object:
    """Return a handle with what is walked over in front."""
    if dim is None or not isinstance(handle, XTensor):
        if isinstance(handle, XTensor):
            raise ArgumentError("scan walks over a dimension of XTensors: say which with `dim=`.")
        if not handle.ndim:
            raise ShapeError("scan: xs need a leading axis to walk over; a 0-d array has none.")
        return handle
    if dim not in handle.dims:
        raise DimError(
            f"scan: an XTensor in xs has dims {handle.dims}, none is {dim!r}; what every step "
            "shares is captured, not passed in xs."
        )
    return handle.transpose(dim, ...)


def _check_carry(init: object, dim: str | None) -> None:
    """Raise where a carry has the dimension that a loop walks over."""
    for path, v in zip(paths(flatten(init)[1], "carry"), flatten(init)[0], strict=True):
        if isinstance(v, XTensor) and dim in v.dims:
            raise DimError(
                f"scan: {path} has dims {v.dims} with {dim!r}, over which the loop walks; what has "
                "it goes to xs, or is renamed: `x.rename({" + f"{dim!r}: ..." + "})`."
            )


def _element(handle: object, dim: str | None) -> Leaf:
    return Leaf.of(handle) if dim is None or not isinstance(handle, XTensor) else (
        Leaf.of(handle).without(dim)
    )  # fmt: skip


def _positional(kind: Leaf) -> Leaf:
    if kind.dims is not None:
        raise ArgumentError(
            "ys with dims need a name for the axis of the loop: pass `dim=`, or return y.data."
        )
    return kind


def _labels(handles: Sequence[object], dim: str | None) -> Coords:
    """Return the coordinates along the dimension that is walked over."""
    named = [h for h in handles if isinstance(h, XTensor)]
    if dim is None or not named:
        return Coords()
    return merge(
        [h.coords.where(lambda name, c: dim in c.dims) for h in named], options.arithmetic_join
    )


def _length(nodes: Sequence[Variable], length: object) -> object:
    """Return the number of steps that xs and length agree on, an int where one is known."""
    if length is not None and not isinstance(length, int | Size):
        raise ArgumentError(
            f"length is an int or a size (x.sizes[0]), not {type(length).__name__}; a number of "
            "steps that is computed goes to fori_loop."
        )
    sizes = [v.shape[0] for v in nodes] + ([] if length is None else [length])
    if not sizes:
        raise ArgumentError("scan needs `length` when xs is None.")
    known = {s for s in sizes if isinstance(s, int)}
    if len(known) > 1 or any(s < 0 for s in known):
        raise ShapeError(f"scan: xs and length disagree, or are negative: {sizes}.")
    return known.pop() if known else sizes[0]


def while_loop(cond: Callable, body: Callable, init: object, max_steps: int | None = None):
    """Run `carry = body(carry)` as long as `cond(carry)`; return the last carry.

    max_steps bounds the number of steps; with it, the loop has a reverse derivative, which needs
    memory for so many steps.

    >>> import lazyarr as xp
    >>> float(xp.while_loop(lambda c: c < 100.0, lambda c: 2.0 * c, 3.0))
    192.0
    """
    limit = _limit(max_steps)
    step = record(
        lambda c, _: (body(c), None), init, [], lambda x: None, lambda c: ~_boolean(cond(c))
    )
    first = node_of(_boolean(cond(_carry(step, step.init))))
    count = op.where(first, op.full((), limit, dtype=COUNT.dtype), 0)
    return _carry(step, _counted(step, limit, count, until=True))


def _boolean(value: object) -> object:
    handle = as_handle(value)
    if handle.dtype != bool or handle.ndim:
        raise ArgumentError(
            f"the condition is one boolean, not {handle._v.type}; reduce it with xp.all or xp.any."
        )
    return handle


def _limit(max_steps: int | None) -> int:
    if max_steps is None:
        return UNBOUNDED
    if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 0:
        raise ArgumentError(f"max_steps is an int of 0 or more, or None, not {max_steps!r}.")
    return max_steps


def _counted(step: Step, length: object, count: Variable, until: bool = False) -> list[Variable]:
    """Record a loop of a computed number of steps without xs."""
    graph = step.graph
    inputs = (*graph.inputs, make_symbol(COUNT))
    node = op.scan(
        Graph(inputs, graph.outputs),
        (*step.init, *step.captures, count),
        length=length,
        reverse=False,
        n_carry=len(step.init),
        n_xs=0,
        until=until,
        counted=True,
    )
    return picks(node)[: len(step.init)]


def fori_loop(
    lower: object, upper: object, body: Callable, init: object, max_steps: int | None = None
):
    """Run `carry = body(i, carry)` for i from lower below upper; return the last carry.

    The bounds are ints, sizes or integer arrays. With bounds that are arrays, max_steps bounds the
    number of steps; without it such a loop has no reverse derivative.

    >>> import lazyarr as xp
    >>> float(xp.fori_loop(0, 5, lambda i, c: c + i, 0.0))
    10.0
    """
    if all(isinstance(v, int | Size) and not isinstance(v, bool) for v in (lower, upper)):
        length = upper - lower
        length = max(length, 0) if isinstance(length, int) else length
        index = op.add(op.arange(length), lower) if isinstance(lower, Size) or lower else (
            op.arange(length)
        )  # fmt: skip
        return scan(lambda c, i: (body(i, c), None), init, Array(index))[0]
    limit = _limit(max_steps)
    low, high = scalar_count(lower), scalar_count(upper)
    start = (Array(low), init)
    step = record(lambda c, _: ((c[0] + 1, body(c[0], c[1])), None), start, [], lambda x: None)
    count = op.minimum(op.maximum(op.subtract(high, low), 0), limit)
    return _carry(step, _counted(step, limit, count))[1]


def map(f: Callable, xs: object):
    """Return f of each element along the leading axis of xs, one after the other.

    `vectorize` does the same with whole arrays, faster and in more memory.

    >>> import lazyarr as xp
    >>> xp.map(lambda x: x * x, xp.asarray([1.0, 2.0, 3.0])).compute()
    array([1., 4., 9.])
    """
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def associative_scan(f: Callable, xs: object, *, axis: int = 0, reverse: bool = False):
    """Return running combinations of elements along an axis: x0, f(x0, x1), f(f(x0, x1), x2), ...

    xs is a pytree, and f combines two elements of it. It runs one step after the other, on every
    backend; f is not called in another order.

    >>> import lazyarr as xp
    >>> xp.associative_scan(lambda a, b: a * b, xp.asarray([1.0, 2.0, 3.0])).compute()
    array([1., 2., 6.])
    """
    leaves, tree = flatten(xs)
    moved = [op.moveaxis(node_of(as_handle(v)), axis, 0) for v in leaves]
    if reverse:
        moved = [op.flip(v, axis=0) for v in moved]
    if any(isinstance(v.shape[0], int) and v.shape[0] == 0 for v in moved):
        return xs
    first = unflatten(tree, [Array(v)[0] for v in moved])
    rest = unflatten(tree, [Array(v)[1:] for v in moved])

    def step(c: object, x: object):
        new = f(c, x)
        return new, new

    _, ys = scan(step, first, rest)
    heads, tails = flatten(first)[0], flatten(ys)[0]
    out = [
        op.concat([op.expand_dims(h._v, axis=0), t._v], axis=0)
        for h, t in zip(heads, tails, strict=True)
    ]
    if reverse:
        out = [op.flip(v, axis=0) for v in out]
    return unflatten(tree, [Array(op.moveaxis(v, 0, axis)) for v in out])


def lagged(f: Callable, lags: Sequence[int] = (1,)) -> Callable:
    """Return a body for `scan` whose outputs are read again some steps later.

    `f(past, x) -> y` receives a tuple of earlier outputs, one for each lag. The carry is the tuple
    of the last max(lags) outputs, the newest first: start the loop with the outputs before the
    first.

    >>> import lazyarr as xp
    >>> fibonacci = xp.lagged(lambda past, x: past[0] + past[1], lags=(1, 2))
    >>> xp.scan(fibonacci, (1, 0), length=6)[1].compute()
    array([ 1,  2,  3,  5,  8, 13])
    """
    lags = tuple(lags)
    if not lags or any(isinstance(k, bool) or not isinstance(k, int) or k < 1 for k in lags):
        raise ArgumentError(f"lags are ints of 1 or more, not {lags!r}.")
    depth = max(lags)

    def body(window: Sequence, x: object):
        if len(window) != depth:
            raise ArgumentError(f"a lag of {depth} needs {depth} outputs to start with.")
        y = f(tuple(window[k - 1] for k in lags), x)
        return (y, *window[: depth - 1]), y

    return body


def window(x: object, start: object, length: object, *, axis: int = 0):
    """Return a run of elements along an axis from a computed start, clamped to lie inside.

    >>> import lazyarr as xp
    >>> x = xp.asarray([0.0, 1.0, 2.0, 3.0])
    >>> xp.window(x, xp.asarray(2), 2).compute()
    array([2., 3.])
    """
    node = node_of(as_handle(x))
    axis = axis_of(node, axis)
    size = node.shape[axis]
    if isinstance(size, int) and isinstance(length, int) and length > size:
        raise ShapeError(f"a window of {length} elements does not fit an axis of {size}.")
    last = size - length
    first = op.minimum(op.maximum(scalar_count(start), 0), last)
    return Array(slice_axis(node, axis, first, length))
