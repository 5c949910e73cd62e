"""Control: `scan`, a loop with carries, and `pick`, which takes one of several outputs.

`scan` holds its body as a `Graph` whose inputs are `(*carry, *x, *captures)` and whose outputs are
`(*new carry, *y)`. Its derivative is another scan that walks back over the stored carries.
"""

import numpy as np

from lazyarr.errors import ArgumentError, ShapeError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType


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


def picks(node: Variable) -> list[Variable]:
    """Return every output of a node with several."""
    return [op.pick(node, i) for i in range(len(node.type.types))]


def _scan_reference(*args, body, length, reverse, n_carry, n_xs):
    carry, xs, captures = args[:n_carry], args[n_carry : n_carry + n_xs], args[n_carry + n_xs :]
    ys = [np.zeros((length, *v.type.shape), v.type.dtype) for v in body.outputs[n_carry:]]
    for t in range(length - 1, -1, -1) if reverse else range(length):
        out = evaluate(body, [*carry, *(x[t] for x in xs), *captures])
        carry = out[:n_carry]
        for store, y in zip(ys, out[n_carry:], strict=True):
            store[t] = y
    return (*carry, *ys)


def _scan_infer(types, params):
    body, n_carry, n_xs = params["body"], params["n_carry"], params["n_xs"]
    outputs = [v.type for v in body.outputs]
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
    ys = [TensorType(t.dtype, (params["length"], *t.shape)) for t in outputs[n_carry:]]
    return TupleType((*types[:n_carry], *ys))


def is_float(v: Variable) -> bool:
    """Tell whether a value can carry a derivative."""
    return v.type.dtype.kind in "fc"


def _scan_vjp(ctx, gs, y, *inputs, body, length, reverse, n_carry, n_xs):
    """Walk back: carries are cotangents of the carries and sums of those of the captures."""
    traced = _with_stored_carries(body, n_carry)
    forward = op.scan(
        traced, inputs, length=length, reverse=reverse, n_carry=n_carry, n_xs=n_xs
    )
    stored = picks(forward)[-n_carry:] if n_carry else []
    varied = [i for i, v in enumerate(body.inputs) if is_float(v)]
    groups = {
        "carry": [i for i in varied if i < n_carry],
        "xs": [i for i in varied if n_carry <= i < n_carry + n_xs],
        "captures": [i for i in varied if i >= n_carry + n_xs],
    }
    seeds = [k for k, v in enumerate(body.outputs) if is_float(v)]
    step = _backward_body(ctx, body, groups, seeds, n_carry, n_xs)
    init = [gs(k) for k in groups["carry"]]
    init += [op.zeros(inputs[i].shape, dtype=inputs[i].dtype) for i in groups["captures"]]
    xs = [*stored, *inputs[n_carry : n_carry + n_xs], *(gs(k) for k in seeds if k >= n_carry)]
    back = op.scan(
        step,
        (*init, *xs, *inputs[n_carry + n_xs :]),
        length=length,
        reverse=not reverse,
        n_carry=len(init),
        n_xs=len(xs),
    )
    out: list = [None] * len(inputs)
    places = [*groups["carry"], *groups["captures"], *groups["xs"]]
    for i, v in zip(places, picks(back), strict=True):
        out[i] = v
    return tuple(out)


def _with_stored_carries(body: Graph, n_carry: int) -> Graph:
    """The body that also returns its carries as they come in."""
    return Graph(body.inputs, [*body.outputs, *body.inputs[:n_carry]])


def _backward_body(
    ctx, body: Graph, groups: dict, seeds: list, n_carry: int, n_xs: int
) -> Graph:
    """One step back: inputs are (cotangents, sums, carries, xs, cotangents of ys, captures)."""
    inside = [symbol(v.type, v.name) for v in body.inputs]
    n_inside = n_carry + n_xs
    carry_bar = {i: symbol(body.inputs[i].type) for i in groups["carry"]}
    sums = [symbol(body.inputs[i].type) for i in groups["captures"]]
    y_bar = {k: symbol(body.outputs[k].type) for k in seeds if k >= n_carry}
    cotangents = [{**carry_bar, **y_bar}.get(k) for k in range(len(body.outputs))]
    wanted = [*groups["carry"], *groups["captures"], *groups["xs"]]
    found = ctx.pullback(body, inside, cotangents, wanted)
    n = len(groups["carry"])
    new_carry = found[:n]
    new_sums = [op.add(a, g) for a, g in zip(sums, found[n : n + len(sums)], strict=True)]
    inputs = [*carry_bar.values(), *sums, *inside[:n_inside], *y_bar.values(), *inside[n_inside:]]
    return Graph(inputs, [*new_carry, *new_sums, *found[n + len(sums) :]])


def _scan_jvp(ctx, tangents, y, *inputs, body, length, reverse, n_carry, n_xs):
    """One joint scan that carries the values and their tangents."""
    moving = [i for i, v in enumerate(body.inputs) if is_float(v)]
    inside = [symbol(v.type, v.name) for v in body.inputs]
    dots = {i: symbol(body.inputs[i].type) for i in moving}
    values, pushed = ctx.pushforward(body, inside, dots)
    bounds = (0, n_carry, n_carry + n_xs, len(inside))
    groups = [range(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]

    def joined(first, second):
        """Values and tangents of each group side by side: carries, xs, captures."""
        return [v for group in groups for part in (first, second) for i in group
                if (v := part.get(i)) is not None]  # fmt: skip

    floats = [k for k, v in enumerate(body.outputs) if is_float(v)]
    carried = [k for k in floats if k < n_carry]
    stacked = [k for k in floats if k >= n_carry]
    outputs = [*values[:n_carry], *(pushed[k] for k in carried)]
    outputs += [*values[n_carry:], *(pushed[k] for k in stacked)]
    given = {
        i: op.zeros(inputs[i].shape, dtype=inputs[i].dtype) if tangents[i] is None else tangents[i]
        for i in moving
    }
    joint = op.scan(
        Graph(joined(dict(enumerate(inside)), dots), outputs),
        joined(dict(enumerate(inputs)), given),
        length=length,
        reverse=reverse,
        n_carry=n_carry + len(carried),
        n_xs=n_xs + sum(i in dots for i in groups[1]),
    )
    n_y = len(body.outputs) - n_carry
    places = [n_carry + j for j in range(len(carried))]
    places += [n_carry + len(carried) + n_y + j for j in range(len(stacked))]
    out: list = [None] * len(body.outputs)
    for k, place in zip([*carried, *stacked], places, strict=True):
        out[k] = op.pick(joint, place)
    return out


@declare(
    "control",
    infer=_scan_infer,
    reference=_scan_reference,
    vjp=_scan_vjp,
    jvp=_scan_jvp,
    sizes=("body", "length"),
    public=False,
)
def scan(body, inputs, *, length, reverse, n_carry, n_xs):
    """A loop of a body over the leading axis of xs, threading carries."""
    params = {
        "body": body,
        "length": length,
        "reverse": bool(reverse),
        "n_carry": n_carry,
        "n_xs": n_xs,
    }
    return tuple(inputs), params
