"""Loops that store side by side with gaps, which GCC 12 vectorises wrongly.

Two stores into one buffer at a stride above 1 (`m[3*i]` and `m[3*i + 1]`) lose values in loops of
few iterations: with `#pragma omp simd` at -O1 already, without it at -O3. Such a loop is printed so
that no compiler vectorises it.
"""

from collections import Counter

from lazyarr.backends.loop import ir
from lazyarr.graph.scalar import Scalar


def interleaves(loop: ir.For) -> bool:
    """Tell whether a loop stores into one buffer at several places with a stride above 1.

    >>> import numpy as np
    >>> from lazyarr.graph.scalar import const, var
    >>> i = var("i", ir.INT64)
    >>> strides({}, i, const(3, ir.INT64))
    0
    """
    made = {node.local: node.value for node in loop.body if isinstance(node, ir.Let)}
    loaded = {node.local for node in loop.body if isinstance(node, ir.Load)}
    found: Counter = Counter()
    for node in loop.body:
        if isinstance(node, ir.Store | ir.Update):
            step = None if node.offset in loaded else strides(made, loop.counter, node.offset)
            if step is None or abs(step) > 1:
                found[node.buffer] += 1
    return any(n > 1 for n in found.values())


def strides(made: dict[Scalar, Scalar], counter: Scalar, offset: Scalar) -> int | None:
    """Return by how much an offset grows with a counter; None where it is not known."""
    if offset == counter:
        return 1
    if offset.prim == "const":
        return 0
    value = made.get(offset, offset)
    if value.prim == "iadd":
        parts = [strides(made, counter, a) for a in value.args]
        return None if None in parts else sum(parts)  # type: ignore[arg-type]
    if value.prim == "imul":
        a, b = value.args
        steps = strides(made, counter, a), strides(made, counter, b)
        for step, other in (steps, b), (steps[::-1], a):
            if step[0] == 0 and step[1] == 0:
                return 0
            if step[0] is not None and step[1] == 0 and other.prim == "const":
                return step[0] * int(other.args[0])
        return None
    return 0 if value is offset else None  # a local from outside the loop does not change
