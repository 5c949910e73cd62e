"""The loop node of a recorded step, whole or in segments whose inside is run again for gradients.

In segments, an outer loop walks over them and an inner one over the steps of one; what is walked
over is captured and indexed, so that its gradient costs a slice a step. The inner loop is marked:
what it stacks is never stored by the outer one, which keeps the carries at the segments' starts.
"""

import math
from collections.abc import Sequence

from lazyarr.errors import ArgumentError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops.control import COUNT, STOP, picks
from lazyarr.graph.ops.indexing import read_region, slice_axis
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline
from lazyarr.namespace.control_trace import Step
from lazyarr.passes.loops_push import improved


def segmented(
    step: Step,
    xs: Sequence[Variable],
    length: object,
    reverse: bool,
    until: bool,
    checkpoint: object,
) -> list[Variable]:
    """Record the loop and return the nodes of its last carries, its ys, and its count."""
    size = _segment(checkpoint, length)
    if size is None or (isinstance(length, int) and size >= length):
        node = op.scan(
            step.graph,
            (*step.init, *xs, *step.captures),
            length=length,
            reverse=reverse,
            n_carry=len(step.init),
            n_xs=len(xs),
            until=until,
        )
        return improved(node)
    if reverse:
        xs = [op.flip(v, axis=0) for v in xs]
    carry, ys, count = _outer(step, xs, length, size, until)
    if reverse:
        ys = [op.flip(y, axis=0) for y in ys]
    return [*carry, *ys, *count]


def _segment(checkpoint: object, length: object) -> int | None:
    """Return the number of steps of a segment."""
    if checkpoint is None:
        return None
    if checkpoint == "sqrt":
        if not isinstance(length, int):
            raise ArgumentError(
                'checkpoint="sqrt" needs a number of steps that is known; give an int instead.'
            )
        return max(1, math.isqrt(max(length - 1, 0)) + 1)
    if isinstance(checkpoint, bool) or not isinstance(checkpoint, int) or checkpoint < 1:
        raise ArgumentError(
            f'checkpoint is "sqrt" or a number of steps of 1 or more, not {checkpoint!r}.'
        )
    return checkpoint


def _outer(
    step: Step, xs: Sequence[Variable], length: object, size: int, until: bool
) -> tuple[list, list, list]:
    """Record both loops; return the last carries, the ys, and the count where it is one."""
    segments = shapes.floordiv(length + (size - 1), size)
    carry = [make_symbol(v.type) for v in step.init]
    whole = [make_symbol(v.type) for v in xs]
    outside = [make_symbol(v.type) for v in step.captures]
    base, total = make_symbol(COUNT), make_symbol(COUNT)
    exact = isinstance(length, int) and length % size == 0
    number = None if exact else op.minimum(op.subtract(_number(length), base), size)
    last, ys, stopped, count = _inner(step, carry, whole, outside, base, size, number, until)
    outputs = [*last, *([op.add(total, count)] if until else []), *ys, *stopped]
    inner = [*carry, *([total] if until else []), base, *whole, *outside]
    start = [op.full((), 0, dtype=COUNT.dtype)] if until else []
    n = len(carry) + len(start)
    starts = op.multiply(op.arange(segments), size)
    node = op.scan(
        Graph(inner, outputs),
        (*step.init, *start, starts, *xs, *step.captures),
        length=segments,
        reverse=False,
        n_carry=n,
        n_xs=1,
        until=until,
    )
    out = picks(node)
    stacked = [_joined(y, length) for y in out[n : n + len(ys)]]
    return out[: len(carry)], stacked, out[len(carry) : n]


def _number(size: object) -> Variable:
    return op.size_value(size) if not isinstance(size, int) else op.full((), size, dtype="int64")


def _inner(step, carry, whole, outside, base, size, number, until) -> tuple:
    """Record the loop over one segment, inside the outer one."""
    n = len(carry)
    t, first = make_symbol(COUNT), make_symbol(COUNT)
    held = [make_symbol(v.type) for v in whole]
    place = op.add(first, t)
    slices = [_row(v, place) for v in held]
    inside = [make_symbol(v.type) for v in carry]
    closed = [make_symbol(v.type) for v in outside]
    mapping = [*inside, *slices, *closed]
    outputs = inline(step.graph, mapping)
    body_inputs = [*inside, *([make_symbol(STOP)] if until else []), t, first, *held, *closed]
    if number is not None:
        body_inputs.append(make_symbol(COUNT))
    stop = outputs[-1:] if until else []
    ys = outputs[n : len(outputs) - until]
    init = [*carry, *([op.full((), False, dtype="bool")] if until else [])]
    node = op.scan(
        Graph(body_inputs, [*outputs[:n], *stop, *ys, *stop]),
        (*init, op.arange(size), base, *whole, *outside, *([] if number is None else [number])),
        length=size,
        reverse=False,
        n_carry=len(init),
        n_xs=1,
        until=until,
        counted=number is not None,
        recompute=True,
    )
    out = picks(node)
    k = len(init)
    return out[:n], out[k : k + len(ys)], out[n:k], out[-1] if until else None


def _row(x: Variable, i: Variable) -> Variable:
    """Return one element along the first axis, at an index in bounds."""
    spec = (("int",), *(("slice", 1),) * (x.ndim - 1))
    return read_region(x, spec, x.shape[1:], (i, *(0,) * (x.ndim - 1)))


def _joined(y: Variable, length: object) -> Variable:
    """Return what segments stacked, one after the other, without what is beyond the last step."""
    flat = op.reshape(y, (y.shape[0] * y.shape[1], *y.shape[2:]))
    return flat if flat.shape[0] == length else slice_axis(flat, 0, 0, length)
