"""Stacks of a loop that are one stack, shifted: what the lags of a series are.

Where a carry is stored and becomes a value that is stored too, `c[t + 1] = y[t]`: the stack of the
carry is that of the value behind the first carry. So a chain of lags is stored once, with its
starts in front, and each stack is a part of it.
"""

from dataclasses import replace

from lazyarr.graph.node import Variable
from lazyarr.graph.ops.indexing import slice_axis
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.passes.loop import Loop, Outputs, remade


def shift(graph: Graph) -> Graph:
    """Return a graph whose loops store one stack for a carry and what it becomes."""
    changed = False

    def remake(v: Variable, inputs: list[Variable]) -> Outputs | None:
        nonlocal changed
        made = _shifted(Loop.of(v, inputs))
        changed = changed or made is not None
        return made

    out = remade(graph, remake)
    return out if changed else graph


def _shifted(loop: Loop) -> Outputs | None:
    """Return the outputs of a loop that stores less; None where every stack is its own.

    A loop that stops early leaves zeros where the shifted stack does not.
    """
    if loop.until or loop.counted:
        return None
    chains = _chains(loop)
    if not chains:
        return None
    n, dropped = len(loop.new), {j for chain in chains.values() for j, _ in chain}
    kept = [j for j in range(len(loop.ys)) if j not in dropped]
    node = replace(loop, ys=tuple(loop.ys[j] for j in kept)).scan()
    out: Outputs = [op.pick(node, i) for i in range(n)] + [None] * len(loop.ys)
    for place, j in enumerate(kept, start=n):
        out[n + j] = op.pick(node, place)
    for first, chain in chains.items():
        starts = [op.expand_dims(loop.init[i], axis=0) for _, i in chain]
        parts = [out[n + first], *starts] if loop.reverse else [*starts[::-1], out[n + first]]
        whole = op.concat(parts, axis=0)
        for lag, (j, _) in enumerate(chain, start=1):
            begin = lag if loop.reverse else len(chain) - lag
            out[n + j] = slice_axis(whole, 0, begin, loop.length)
    return out


def _chains(loop: Loop) -> dict[int, list[tuple[int, int]]]:
    """Return stacks that others are shifts of, with (number of the stack, of the carry) of each."""
    numbers = {y: j for j, y in reversed(list(enumerate(loop.ys)))}
    later: dict[Variable, tuple[int, int]] = {}  # a value -> the stored carry that becomes it
    for i, (c, new) in enumerate(zip(loop.carry, loop.new, strict=True)):
        if c in numbers and new in numbers and new is not c:
            later.setdefault(new, (numbers[c], i))
    shifts = {loop.carry[i] for _, i in later.values()}
    chains: dict[int, list[tuple[int, int]]] = {}
    for first in [v for v in later if v not in shifts]:  # a ring of carries has no first
        chain, v = [], first
        while v in later:
            chain.append(later[v])
            v = loop.carry[later[v][1]]
        chains[numbers[first]] = chain
    return chains
