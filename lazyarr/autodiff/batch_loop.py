"""A loop whose number of steps differs between the elements of a batch, as one that masks them.

The loop runs as long as any element does; an element that has ended keeps its carries, and its ys
are zero from then on. The masked body is written for one element and then batched like any other.
"""

from dataclasses import dataclass

from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.control import COUNT, STOP
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline

EXTRA = 3  # carries added: whether the element has ended, the number of the step, its own count


@dataclass
class Masked:
    """The masked loop of one element: its body, and its operands beside those of the loop."""

    graph: Graph
    init: list[Variable]
    n_carry: int

    def outputs(self, found: list, n_y: int, until: bool) -> list:
        """Return the outputs of the loop from those of the masked one."""
        n = self.n_carry
        out = found[:n] + found[n + EXTRA : n + EXTRA + n_y]
        return out + ([found[n + EXTRA - 1]] if until else [])


def masked(node: Variable) -> Masked:
    """Return the masked form of a scan that stops early or takes a computed number of steps.

    Its last two captures are the element's number of steps and that of the whole batch.
    """
    p = node.params
    body, n, until, counted = p["body"], p["n_carry"], p["until"], p["counted"]
    inside = [symbol(v.type, v.name) for v in body.inputs]
    outputs = inline(body, inside)
    ended, step, taken = symbol(STOP), symbol(COUNT), symbol(COUNT)
    own, longest = inside[-1] if counted else symbol(COUNT), symbol(COUNT)
    place = op.subtract(op.subtract(longest, 1), step) if p["reverse"] else step
    active = op.logical_and(op.logical_not(ended), op.less(place, own))
    n_out = len(outputs) - until
    new = [op.where(active, a, c) for a, c in zip(outputs[:n], inside[:n], strict=True)]
    ys = [op.where(active, y, op.zeros((), dtype=y.dtype)) for y in outputs[n:n_out]]
    done = ended
    if until:
        done = op.logical_or(done, op.logical_and(active, outputs[-1]))
    if not p["reverse"]:
        done = op.logical_or(done, op.greater_equal(op.add(step, 1), own))
    count = op.add(taken, op.astype(active, COUNT.dtype))
    held = inside[n : len(inside) - counted]
    inputs = [*inside[:n], ended, step, taken, *held, own, longest]
    results = [*new, done, op.add(step, 1), count, *ys, *([done] if until else [])]
    zero = op.full((), 0, dtype=COUNT.dtype)
    return Masked(Graph(inputs, results), [op.full((), False, dtype="bool"), zero, zero], n)
