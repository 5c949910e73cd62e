"""Batching: the same computation with one more leading axis, by the kind of each op.

A rule is `(node, operands, moved, size) -> Variable`: the operands are those of the node after
batching, `moved` tells which of them have the batch axis; it is in front, also in the result. Nodes
that depend on no batched input stay as they are. The result is an ordinary graph: batching nests.

>>> import lazyarr.graph.ops
>>> from lazyarr.graph.node import symbol
>>> x = symbol(TensorType("float64", (3,)))
>>> batch(Graph([x], [op.sum(op.exp(x))]), [0], 5).outputs[0].type
float64[5]
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazyarr.autodiff.batch_index import BATCH_INDEXING, by_index_map, fronted, indexed, widened
from lazyarr.autodiff.batch_loop import EXTRA, masked
from lazyarr.errors import ArgumentError, GraphError, LazyArrError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import AxisMap
from lazyarr.graph.ops.control import COUNT, picks
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, toposort, with_inputs
from lazyarr.graph.types import TensorType, TupleType

Args = list[Any]
Flags = list[bool]  # which operands have the batch axis
Pair = tuple[Any, bool]  # (node after batching, whether it has the batch axis)


def batch(graph: Graph, axes: Sequence[int | None], size: object) -> Graph:
    """Return the graph with an axis of a size more on inputs and outputs.

    `axes` holds for each input the position of its new axis, or None for an input that stays as it
    is. Every output has the new axis in front. The graph is positional.
    """
    if len(axes) != len(graph.inputs):
        raise ArgumentError(f"{len(graph.inputs)} inputs need as many axes, got {len(axes)}.")
    inputs, given = [], {}
    for v, axis in zip(graph.inputs, axes, strict=True):
        if axis is None:
            inputs.append(v)
            given[v] = (v, False)
            continue
        if not -v.ndim - 1 <= axis <= v.ndim:
            raise ArgumentError(f"axis {axis} is out of bounds for one axis more than {v.type}.")
        axis %= v.ndim + 1
        new = symbol(TensorType(v.dtype, (*v.shape[:axis], size, *v.shape[axis:])), v.name)
        inputs.append(new)
        given[v] = (fronted(new, axis), True)
    found = batch_nodes(graph.outputs, given, size)
    return Graph(inputs, [widened(y, moved, size) for y, moved in found])


def batch_nodes(
    outputs: Sequence[Variable], given: Mapping[Variable, Pair], size: object
) -> list[Pair]:
    """Return each output after batching, and whether it has the batch axis, which is in front.

    `given` maps nodes to what stands in their place, in the same form; they need not be leaves.
    """
    done: dict[Variable, Any] = dict(given)
    work: list[Any] = list(reversed(toposort(outputs, stop=given)))
    while work:
        v = work.pop()
        if v.__class__ is tuple:  # a composite whose expansion is batched by now
            done[v[0]] = done[v[1]]
        elif v in done:
            continue
        elif v.expr is None:
            done[v] = (v, False)
        elif v.op.name == "pick" and isinstance(done[v.inputs[0]], list):
            done[v] = done[v.inputs[0]][v.params["index"]]
        else:
            pairs = [done[x] if x.__class__ is Variable else (x, False) for x in v.inputs]
            args, moved = [a for a, _ in pairs], [m for _, m in pairs]
            if not any(moved):
                done[v] = (with_inputs(v, args), False)
            elif v.op.kind == "composite" and not _keeps_axes(v):
                expansion = v.op.expand(*v.inputs, **v.params)
                work.append((v, expansion))
                operands = [x for x in v.inputs if x.__class__ is Variable]
                work.extend(reversed(toposort([expansion], stop=operands)))
            else:
                done[v] = _batched(v, args, moved, size)
    return [done[v] for v in outputs]


def _batched(v: Variable, args: Args, moved: Flags, size: object) -> Any:
    """Return the pair of a node with batched operands, a list of pairs for several outputs."""
    if getattr(v.type, "named", False):
        raise GraphError(f"batching is positional, {v!r} has names; lower the graph first.")
    out = v.op.batch(v, args, moved, size) if v.op.batch is not None else None
    if out is None:
        out = BATCH[v.op.kind](v, args, moved, size)
    if isinstance(v.type, TupleType):
        return out if isinstance(out, list) else [(y, True) for y in picks(out)]
    if out.expr is not None and not any(out is a for a in args):
        out.name, out.site = v.name, v.site
    return out, True


# -- parameters -----------------------------------------------------------------------------------

# What one more leading axis does to a parameter, by its name.
SHIFTED: dict[str, Callable[..., Any]] = {
    "axis": lambda value, size: (
        value + 1 if isinstance(value, int) else tuple(a + 1 for a in value)
    ),
    "axes": lambda value, size: (0, *(a + 1 for a in value)),
    "shape": lambda value, size: (size, *value),
    "dims": lambda value, size: ("", *value) if value else value,
    "spec": lambda value, size: (("slice", 1), *value),
    "lengths": lambda value, size: (size, *value),
}


def same_op(node: Variable, args: Sequence[Any], size: object) -> Any:
    """Record the op of a node on batched operands, with its parameters shifted by one axis."""
    params = {k: SHIFTED[k](v, size) if k in SHIFTED else v for k, v in node.params.items()}
    return node.op.record(tuple(args), params)


def _keeps_axes(node: Variable) -> bool:
    """Tell whether a composite works along axes of its only array, by a derivative rule of its own.

    Such an op stays, so that its rule holds; others are batched through their expansion.
    """
    arrays = sum(x.__class__ is Variable for x in node.inputs)
    own = node.op.vjp is not None or node.op.jvp is not None
    return own and arrays == 1 and "axis" in node.params and "shape" not in node.params


# -- the kinds ------------------------------------------------------------------------------------


def aligned(x: Variable, rank: int) -> Any:
    """Return a batched operand with size-1 axes behind the batch axis, up to a rank without it."""
    missing = rank + 1 - x.ndim
    return op.expand_dims(x, axis=tuple(range(1, missing + 1))) if missing > 0 else x


def _elementwise(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    rank = node.ndim
    operands = [aligned(a, rank) if m else a for a, m in zip(args, moved, strict=True)]
    return node.op.apply(node.call, tuple(operands))


def _reduction(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    if not node.op.combine.startswith("arg") or len(node.params["axis"]) == 1:
        return same_op(node, args, size)
    # An index into all axes in C order: they become one, which may be new.
    (x,) = args
    flat = op.reshape(x, (size, shapes.product(x.shape[1:])))
    out = node.op.record((flat,), {**node.params, "axis": (1,), "keepdims": False})
    return op.reshape(out, (size, *node.shape))


def _cumulative(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    return same_op(node, args, size)


def _composite(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    return same_op(node, args, size)


def _movement(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    """Shift the axes; where the op's index map shows that this is wrong, read by an index array."""
    if node.op.index is None:
        return _reshape_or_join(node, args, moved, size)
    if any(moved[1:]):
        return indexed(node, args, moved, size)
    if node.op.name == "broadcast_to":
        args = [aligned(args[0], node.ndim)]
    elif "spec" in node.params:
        args = [args[0], 0, *args[1:]]
    try:
        out = same_op(node, args, size)
    except LazyArrError:
        out = None
    if out is not None and out.ndim == node.ndim + 1 and _is_shifted(node, out, args):
        return out
    return by_index_map(node, args, moved, size)


def _is_shifted(node: Variable, out: Variable, args: Sequence[Any]) -> bool:
    """Tell whether a movement reads as another does, behind one more axis that stays."""
    starts = dict(zip(node.inputs[1:], args[-len(node.inputs[1:]) :], strict=False))
    want = [AxisMap(0)]
    for m in node.op.index(node):
        start = starts.get(m.start, m.start) if m.start.__class__ is Variable else m.start
        want.append(AxisMap(None if m.out_axis is None else m.out_axis + 1, m.step, start))
    have = out.op.index(out)
    if node.op.name == "broadcast_to":  # aligned by axes of size 1
        have = (have[0], *have[len(have) - len(want) + 1 :])
    return tuple(have) == tuple(want)


def _reshape_or_join(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    operands = [widened(a, m, size) for a, m in zip(args, moved, strict=True)]
    return same_op(node, operands, size)


def _creation(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    if "shape" not in node.params:
        return one_by_one(node, args, moved, size)
    (value,) = args
    value = value if value.dtype == node.dtype else op.astype(value, node.dtype)
    return op.broadcast_to(aligned(value, node.ndim), (size, *node.shape))


def _indexing(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    rule: Callable[..., Any] = BATCH_INDEXING.get(node.op.name, one_by_one)
    return rule(node, args, moved, size)


def _contraction(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    *labels, out = node.params["spec"]
    fresh = max((k for group in (*labels, out) for k in group), default=-1) + 1
    batched = [(fresh, *group) if m else group for group, m in zip(labels, moved, strict=True)]
    return node.op.record(tuple(args), {**node.params, "spec": (*batched, (fresh, *out))})


def _library(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    """Ops on matrices are batched over leading axes; others run once for each element."""
    if "along_axis" in node.op.facts:
        return same_op(node, args, size)
    if "matrix" not in node.op.facts:
        return one_by_one(node, args, moved, size)
    if node.op.name == "solve_matrix" and not moved[0]:
        return _solve_columns(node, args, size)
    operands = [widened(a, m, size) for a, m in zip(args, moved, strict=True)]
    return node.op.apply(node.call, tuple(operands))


def _solve_columns(node: Variable, args: Args, size: object) -> Any:
    """One matrix for the whole batch: the batch axis joins the columns of the right-hand side."""
    a, b = args
    last = b.ndim - 1
    columns = op.permute_dims(b, (*range(1, last), 0, last))
    shape = columns.shape
    merged = op.reshape(columns, (*shape[: last - 1], shape[last - 1] * shape[last]))
    out = op.reshape(node.op.apply(node.call, (a, merged)), shape)
    return op.permute_dims(out, (last - 1, *range(last - 1), last))


# -- control --------------------------------------------------------------------------------------


def _control(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    if node.op.name == "scan":
        return _scan(node, args, moved, size)
    if node.op.name == "with_rule":
        rule = node.params["rule"]
        batched = batch(rule, [0] * len(rule.inputs), size)
        operands = [widened(a, m, size) for a, m in zip(args, moved, strict=True)]
        return node.op.record(tuple(operands), {**node.params, "rule": batched})
    return one_by_one(node, args, moved, size)


def _scan(node: Variable, args: list, moved: list, size: object) -> list[Pair]:
    """Batch the body. A carry is batched when it starts so, or becomes so in a step."""
    params = node.params
    n_carry = params["n_carry"]
    carried, body = _batched_body(params["body"], moved, n_carry, size)
    if (params["counted"] and moved[-1]) or (params["until"] and body.pairs[-1][1]):
        return _ragged(node, args, moved, size)
    return _looped(node, body, carried, params, args, moved, size)


def _looped(node: Variable, body, carried, params: dict, args, moved, size) -> list[Pair]:
    n_carry, n_xs, until = params["n_carry"], params["n_xs"], params["until"]
    operands = []
    for i, (a, m) in enumerate(zip(args, moved, strict=True)):
        if i < n_carry:
            operands.append(widened(a, m, size) if carried[i] else a)
        else:
            operands.append(_swapped(a) if m and i < n_carry + n_xs else a)
    flags = [*carried, *(m for _, m in body.pairs[n_carry:])]
    found = picks(node.op.record(tuple(operands), {**params, "body": body.graph}))
    last = len(found) - until
    return [
        (_swapped(y) if m and n_carry <= k < last else y, m and k < last)
        for k, (y, m) in enumerate(zip(found, flags, strict=True))
    ]


def _ragged(node: Variable, args: list, moved: list, size: object) -> list[Pair]:
    """Batch a loop whose number of steps differs between elements: the longest one, masked."""
    params, loop = node.params, masked(node)
    n, length = params["n_carry"], params["length"]
    own, own_moved = args[-1], moved[-1]
    held = len(args) - params["counted"]
    if not params["counted"]:
        own = op.size_value(length) if not isinstance(length, int) else op.full((), length)
        own, own_moved = op.astype(own, COUNT.dtype), False
    longest = op.max(own, axis=0) if own_moved else own
    args = [*args[:n], *loop.init, *args[n:held], own, longest]
    moved = [*moved[:n], *[False] * EXTRA, *moved[n:held], own_moved, False]
    params = {**params, "body": loop.graph, "n_carry": n + EXTRA, "counted": True}
    carried, body = _batched_body(loop.graph, moved, n + EXTRA, size)
    if params["until"] and body.pairs[-1][1]:
        graph = body.graph
        body = _Body(
            Graph(graph.inputs, [*graph.outputs[:-1], op.all(graph.outputs[-1], axis=0)]),
            body.pairs,
        )
    found = _looped(node, body, carried, params, args, moved, size)
    n_y = len(loop.graph.outputs) - n - EXTRA - params["until"]
    return loop.outputs(found, n_y, params["until"])


def _swapped(x: Variable) -> Any:
    """The first two axes exchanged: the axis of the loop is the first of xs and ys."""
    return op.permute_dims(x, (1, 0, *range(2, x.ndim)))


class _Body:
    """A batched body and the pairs of its outputs."""

    __slots__ = ("graph", "pairs")

    def __init__(self, graph: Graph, pairs: list[Pair]):
        self.graph, self.pairs = graph, pairs


def _batched_body(body: Graph, moved: Flags, n_carry: int, size: object) -> tuple[Flags, _Body]:
    """Return which carries are batched, a fixpoint, and the body for them."""
    flags = list(moved)
    while True:
        inside = [_loop_symbol(v, m, size) for v, m in zip(body.inputs, flags, strict=True)]
        given = dict(zip(body.inputs, zip(inside, flags, strict=True), strict=True))
        pairs = batch_nodes(body.outputs, given, size)
        wider = [c or m for c, (_, m) in zip(flags[:n_carry], pairs, strict=False)]
        if wider == flags[:n_carry]:
            break
        flags[:n_carry] = wider
    outputs = [
        _carry(y, m, v, size) if k < n_carry and flags[k] else y
        for k, ((y, m), v) in enumerate(zip(pairs, body.outputs, strict=True))
    ]
    return wider, _Body(Graph(inside, outputs), pairs)


def _loop_symbol(v: Variable, moved: bool, size: object) -> Variable:
    return symbol(TensorType(v.dtype, (size, *v.shape)) if moved else v.type, v.name)


def _carry(y: Variable, moved: bool, before: Variable, size: object) -> Any:
    """A new carry in exactly the type that it has before the step."""
    out, shape = widened(y, moved, size), (size, *before.shape)
    return out if out.shape == shape else op.specify_shape(out, shape)


def one_by_one(node: Variable, args: Args, moved: Flags, size: object) -> Any:
    """Run a node for each element of the batch in a loop: right for every op, fast for none."""
    inside = [
        symbol(TensorType(a.dtype, a.shape[1:]) if m else a.type) if a.__class__ is Variable else a
        for a, m in zip(args, moved, strict=True)
    ]
    out = node.op.apply(node.call, tuple(inside))
    several = isinstance(node.type, TupleType)
    operands = [(v, a, m) for v, a, m in zip(inside, args, moved, strict=True) if v is not a]
    operands.sort(key=lambda row: not row[2])  # what is walked over comes first
    loop = op.scan(
        Graph([v for v, _, _ in operands], picks(out) if several else [out]),
        [a for _, a, _ in operands],
        length=size,
        reverse=False,
        n_carry=0,
        n_xs=sum(moved),
    )
    return loop if several else op.pick(loop, 0)


BATCH: dict[str, Callable[..., Any]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "cumulative": _cumulative,
    "movement": _movement,
    "creation": _creation,
    "indexing": _indexing,
    "contraction": _contraction,
    "library": _library,
    "control": _control,
    "composite": _composite,
}
