"""Control: `scan`, a loop with carries, and `pick`, which takes one of several outputs.

`scan` holds its body as a `Graph` whose inputs are `(*carry, *x, *captures)` and whose outputs are
`(*new carry, *y)`. Two flags make its number of steps a value: `counted`, where the last capture is
the number of steps (an int64 between 0 and `length`), and `until`, where the body has one more
output, a boolean that ends the loop after its step; the loop then has one more output, how many
steps it took. Every other loop is made of this one: a choice is a loop of no or one step.
"""

import numpy as np

from lazyarr.errors import ArgumentError, ShapeError
from lazyarr.graph import shapes
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import symbol
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.ops.control_reverse import is_float, picks, reached, scan_vjp
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph, sizes_spoken_of
from lazyarr.graph.types import TensorType, TupleType

__all__ = ["pick", "picks", "scan"]

COUNT = TensorType("int64", ())
STOP = TensorType("bool", ())


@declare(
    "control",
    infer=lambda types, params: types[0].types[params["index"]],
    reference=lambda x, *, index: x[index],
    vjp=lambda g, y, x, *, index: (("pick", index, g),),
    jvp="pick",
    public=False,
)
def pick(x, index, /):
    """One output of a node with several."""
    return (x,), {"index": index}


def _scan_reference(*args, body, length, reverse, n_carry, n_xs, until, counted, recompute):
    carry, xs, captures = args[:n_carry], args[n_carry : n_carry + n_xs], args[n_carry + n_xs :]
    n_y = len(body.outputs) - until
    ys = [np.zeros((length, *v.type.shape), v.type.dtype) for v in body.outputs[n_carry:n_y]]
    total = int(captures[-1]) if counted else length
    count = 0
    for t in range(total - 1, -1, -1) if reverse else range(total):
        out = evaluate(body, [*carry, *(x[t] for x in xs), *captures])
        carry, count = out[:n_carry], count + 1
        for store, y in zip(ys, out[n_carry:n_y], strict=True):
            store[t] = y
        if until and out[-1]:
            break
    return (*carry, *ys, *([np.asarray(count, np.int64)] if until else []))


def _scan_infer(types, params):
    body, n_carry, n_xs = params["body"], params["n_carry"], params["n_xs"]
    outputs = [v.type for v in body.outputs]
    count = ()
    if params.get("until"):
        if outputs.pop() is not STOP:
            raise ArgumentError("`until` gives one boolean; reduce it with all or any.")
        count = (COUNT,)
    if params.get("counted") and types[-1] is not COUNT:
        raise ArgumentError(f"a number of steps is an int64, not {types[-1]}.")
    for i in range(n_carry):
        if outputs[i] is not types[i]:
            raise ArgumentError(
                f"carry {i} starts as {types[i]} and becomes {outputs[i]} after a step; cast or "
                "reshape one of them so that they are equal."
            )
    for t in types[n_carry : n_carry + n_xs]:
        known = isinstance(t.shape[0], int) and isinstance(params["length"], int)
        if known and t.shape[0] != params["length"]:
            raise ShapeError(f"xs have {t.shape[0]} elements, the loop has {params['length']}.")
    _check_stackable(params["body"], outputs[n_carry:])
    ys = [TensorType(t.dtype, (params["length"], *t.shape)) for t in outputs[n_carry:]]
    return TupleType((*types[:n_carry], *ys, *count))


def _check_stackable(body, types):
    """Refuse to stack values whose size each step finds by itself."""
    if not any(isinstance(s, Size) for t in types for s in t.shape):
        return
    told = set().union(*(sizes_spoken_of(v) for v in body.inputs))
    for v in body.toposort():
        if v.expr is None or "finds_sizes" not in v.op.facts:
            continue
        found = sizes_spoken_of(v) - told
        if any(shapes.atoms(s) & found for t in types for s in t.shape if isinstance(s, Size)):
            raise ShapeError(
                f"a size is found in each step ({v.op.name}, made at {v.where_made()}), so values "
                "of it cannot be stacked, nor kept for a derivative. For a window of fixed length "
                "write take(x, i + arange(k)) instead of x[i:i+k]."
            )


def _scan_jvp(ctx, tangents, y, *inputs, **params):
    """One joint scan that carries the values and their tangents."""
    body, n_carry, n_xs = params["body"], params["n_carry"], params["n_xs"]
    until = params["until"]
    moving = _moving(body, tangents, n_carry, until)
    inside = [symbol(v.type, v.name) for v in body.inputs]
    dots = {i: symbol(body.inputs[i].type) for i in moving}
    values, pushed = ctx.pushforward(body, inside, dots)
    bounds = (0, n_carry, n_carry + n_xs, len(inside) - params["counted"], len(inside))
    groups = [range(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]

    def joined(first, second):
        """Values and tangents of each group side by side: carries, xs, captures, count."""
        return [v for group in groups for part in (first, second) for i in group
                if (v := part.get(i)) is not None]  # fmt: skip

    n_out = len(body.outputs) - until
    carried = [k for k in moving if k < n_carry]
    stacked = [k for k in range(n_carry, n_out) if is_float(body.outputs[k])]
    outputs = [*values[:n_carry], *(pushed[k] for k in carried)]
    outputs += [*values[n_carry:n_out], *(pushed[k] for k in stacked), *values[n_out:]]
    given = {
        i: op.zeros(inputs[i].shape, dtype=inputs[i].dtype) if tangents[i] is None else tangents[i]
        for i in moving
    }
    joint = op.scan(
        inputs=joined(dict(enumerate(inputs)), given),
        **{
            **params,
            "body": Graph(joined(dict(enumerate(inside)), dots), outputs),
            "n_carry": n_carry + len(carried),
            "n_xs": n_xs + sum(i in dots for i in groups[1]),
        },
    )
    n_y = n_out - n_carry
    places = [n_carry + j for j in range(len(carried))]
    places += [n_carry + len(carried) + n_y + j for j in range(len(stacked))]
    out: list = [None] * len(body.outputs)
    for k, place in zip([*carried, *stacked], places, strict=True):
        out[k] = op.pick(joint, place)
    return out


def _moving(body: Graph, tangents: list, n_carry: int, until: bool) -> list[int]:
    """Return the inputs of a body that have a tangent: a fixpoint over its carries."""
    depends = reached(body.inputs, body.outputs)
    moving = {i for i, v in enumerate(body.inputs) if is_float(v) and tangents[i] is not None}
    while True:
        more = {k for k in range(n_carry) if is_float(body.inputs[k]) and depends[k] & moving}
        if more <= moving:
            return sorted(moving)
        moving |= more


@declare(
    "control",
    infer=_scan_infer,
    reference=_scan_reference,
    vjp=scan_vjp,
    jvp=_scan_jvp,
    sizes=("body", "length"),
    public=False,
)
def scan(
    body,
    inputs,
    *,
    length,
    reverse,
    n_carry,
    n_xs,
    until=False,
    counted=False,
    recompute=False,
):
    """A loop of a body over the leading axis of xs, threading carries."""
    params = {
        "body": body,
        "length": length,
        "reverse": bool(reverse),
        "n_carry": n_carry,
        "n_xs": n_xs,
        "until": bool(until),
        "counted": bool(counted),
        "recompute": bool(recompute),
    }
    return tuple(inputs), params
