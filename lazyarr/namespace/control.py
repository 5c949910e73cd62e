"""Loops in the graph: `scan`."""

from collections.abc import Callable, Sequence

from lazyarr.errors import ArgumentError, ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, substitute, toposort
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.tree import flatten, paths, unflatten
from lazyarr.namespace.xtensor import XTensor


def scan(
    body: Callable,
    init: object,
    xs: object = None,
    *,
    length: int | None = None,
    reverse: bool = False,
):
    """Run `carry, y = body(carry, x)` over the leading axis of xs; return the last carry and all ys.

    carry, xs and ys are pytrees of Arrays (None for nothing); what the body reads from outside is
    captured. `length` is needed when xs is None. The gradient is another scan.

    Raises ArgumentError when a carry changes type, naming the leaf and both types.

    >>> import lazyarr as xp
    >>> last, sums = xp.scan(lambda c, x: (c + x, c + x), 0.0, xp.asarray([1.0, 2.0, 3.0]))
    >>> float(last), sums.compute()
    (6.0, array([1., 3., 6.]))
    """
    carry, carry_tree = flatten(init)
    stacked, xs_tree = flatten(xs)
    carry = [_array(v) for v in carry]
    stacked = [_array(v) for v in stacked]
    length = _length(stacked, length)
    steps = [make_symbol(_element(v._v.type)) for v in stacked]
    graph, y_tree, n_carry = _trace(body, carry, carry_tree, steps, xs_tree)
    captures = _captures(graph)
    inner = [make_symbol(v.type) for v in captures]
    closed = _close(graph, captures, inner)
    node = op.scan(
        closed,
        (*(v._v for v in (*carry, *stacked)), *captures),
        length=length,
        reverse=reverse,
        n_carry=n_carry,
        n_xs=len(stacked),
    )
    out = [Array(v) for v in picks(node)]
    return unflatten(carry_tree, out[:n_carry]), unflatten(y_tree, out[n_carry:])


def _array(value: object) -> Array:
    if isinstance(value, XTensor):
        raise ArgumentError("scan takes positional Arrays for now; pass x.data of an XTensor.")
    return value if isinstance(value, Array) else asarray(value)


def _element(t: TensorType) -> TensorType:
    if not t.ndim:
        raise ShapeError("scan: xs need a leading axis to walk over; a 0-d array has none.")
    return TensorType(t.dtype, t.shape[1:])


def _length(stacked: Sequence[Array], length: object) -> object:
    sizes = [v._v.type.shape[0] for v in stacked if v.ndim] + ([] if length is None else [length])
    if not sizes:
        raise ArgumentError("scan needs `length` when xs is None.")
    for s in sizes:
        if isinstance(s, int) and isinstance(sizes[0], int) and s != sizes[0]:
            raise ShapeError(f"scan: xs and length disagree: {sizes}.")
    return sizes[0]


def _trace(body, carry, carry_tree, steps, xs_tree) -> tuple[Graph, object, int]:
    """Record one step of the body; a weak initial number takes the body's dtype in one pass."""
    for attempt in range(2):
        symbols = [make_symbol(c._v.type) for c in carry]
        out = body(
            unflatten(carry_tree, [Array(v) for v in symbols]),
            unflatten(xs_tree, [Array(v) for v in steps]),
        )
        if not isinstance(out, tuple) or len(out) != 2:
            raise ArgumentError("the body of scan returns a pair `(carry, y)`.")
        new, new_tree = flatten(out[0])
        ys, y_tree = flatten(out[1])
        if new_tree != carry_tree:
            raise ArgumentError(
                f"the carry changes structure: {paths(carry_tree)} becomes {paths(new_tree)}."
            )
        new = [_array(v) for v in new]
        wider = [_widened(c, n) for c, n in zip(carry, new, strict=True)]
        if attempt == 0 and any(w is not c for w, c in zip(wider, carry, strict=True)):
            carry[:] = wider
            continue
        _check_types(carry, new, carry_tree)
        outputs = [v._v for v in new] + [_array(y)._v for y in ys]
        return Graph([*symbols, *steps], outputs), y_tree, len(carry)
    raise AssertionError("unreachable: the second attempt returns or raises")


def _widened(start: Array, new: Array) -> Array:
    """A 0-d constant that starts a carry takes the dtype and shape that the body gives it."""
    node = start._v
    same = node.type is new._v.type
    if same or not node.is_data or node.type.ndim:
        return start
    cast = op.astype(node, new.dtype)
    return Array(op.broadcast_to(cast, new._v.type.shape) if new.ndim else cast)


def _check_types(carry: Sequence[Array], new: Sequence[Array], tree: object) -> None:
    for path, a, b in zip(paths(tree), carry, new, strict=True):
        if a._v.type is not b._v.type:
            raise ArgumentError(
                f"carry {path} starts as {a._v.type} and becomes {b._v.type} after a step; write "
                f"`xp.astype(..., xp.{a.dtype})` in the body, or start it as {b._v.type}."
            )


def _captures(graph: Graph) -> list[Variable]:
    """Return the maximal nodes of a step that do not depend on the loop: they are hoisted."""
    order = toposort(graph.outputs)
    inside = set(graph.inputs)
    for v in order:
        if any(x in inside for x in v.inputs if x.__class__ is Variable):
            inside.add(v)
    read = {x for v in order if v in inside for x in v.inputs if x.__class__ is Variable}
    read.update(graph.outputs)
    return [v for v in order if v in read and v not in inside]


def _close(graph: Graph, captures: Sequence[Variable], inner: Sequence[Variable]) -> Graph:
    """Return the step with its captures as inputs."""
    mapping = dict(zip(captures, inner, strict=True))
    return Graph([*graph.inputs, *inner], substitute(graph.outputs, mapping))
