"""Loops: `scan`s that walk together become one, and what a loop does not need is dropped.

The derivative of a scan records its forward loop a second time, with more stored values; joined
with the first, value and gradient hold one loop forward and one back. Nested loops come first.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet, Walk, rewrite
from lazyarr.graph.traverse import Graph, clients, leaves, substitute
from lazyarr.passes.algebra import ZEROS, add_region, add_taken, never_negative_zero
from lazyarr.passes.fold import filled_like, known
from lazyarr.passes.loop import Loop, Outputs, is_scan, remade
from lazyarr.passes.loops_push import push
from lazyarr.passes.loops_shift import shift

_ROUNDS = 10
_NONE = RuleSet("join")


def loops(graph: Graph) -> Graph:
    """Return a graph with the fewest and smallest loops, in its loop bodies too."""
    if not any(is_scan(v) for v in graph.toposort()):
        return graph
    for _ in range(_ROUNDS):
        before = graph
        graph = join(trim(graph))
        if graph is before:
            graph = shift(push(graph))
            if graph is before:
                break
    return graph


def _readers(graph: Graph) -> dict[Variable, list[int]]:
    """Return, for each scan read by picks alone, the outputs that are read."""
    order = graph.toposort()
    readers = clients(order)
    return {
        v: sorted({r.params["index"] for r in readers.get(v, [])})
        for v in order
        if is_scan(v)
        and v not in graph.outputs
        and all(r.op.name == "pick" for r in readers.get(v, []))
    }


# -- joining --------------------------------------------------------------------------------------


def join(graph: Graph) -> Graph:
    """Join scans over equal operands whose carries step alike into one with the ys of all."""
    groups: dict[tuple[Any, ...], list[Variable]] = {}
    for v in _readers(graph):
        q = v.params
        flags = (q["reverse"], q["until"], q["counted"], q["recompute"])
        key = (v.inputs, q["length"], q["n_carry"], q["n_xs"], flags)
        groups.setdefault(key, []).append(v)
    plans: dict[Variable, tuple[Graph, list[int], list[Variable]]] = {}
    for group in groups.values():
        for members, body, places in _joined(group):
            plans.update({v: (body, places[v], members) for v in members})
    if not plans:
        return graph
    made: dict[Variable, Variable] = {}

    def remake(v: Variable, inputs: list[Variable]) -> Outputs | None:
        if v not in plans:
            return None
        body, places, members = plans[v]
        loop = Loop.of(v, inputs)
        if members[0] not in made:
            inside = body.inputs
            n, m = len(loop.init), len(loop.init) + len(loop.xs)
            whole = replace(
                loop, carry=inside[:n], elements=inside[n:m], closed=inside[m:]
            ).with_outputs(body.outputs)
            made[members[0]] = whole.scan()
        return [op.pick(made[members[0]], i) for i in places]

    return remade(graph, remake)


Joined = tuple[list[Variable], Graph, dict[Variable, list[int]]]


def _joined(group: list[Variable]) -> list[Joined]:
    """Return the joinable subsets of scans over equal operands, each with its joint body."""
    if len(group) < 2:
        return []
    inside = group[0].params["body"].inputs
    walk = Walk(_NONE)
    sets: dict[tuple[tuple[Variable, ...], ...], list[tuple[Variable, list[Variable]]]] = {}
    for v in group:
        body = v.params["body"]
        outputs = substitute(body.outputs, dict(zip(body.inputs, inside, strict=True)))
        outputs = list(walk.graph(Graph(inside, outputs)).outputs)
        n, stop = v.params["n_carry"], outputs[-1:] if v.params["until"] else []
        same = (tuple(outputs[:n]), tuple(stop))
        sets.setdefault(same, []).append((v, outputs[n : len(outputs) - len(stop)]))
    found: list[Joined] = []
    for (carries, stop), members in sets.items():
        if len(members) > 1:
            ys = list(dict.fromkeys(y for _, own in members for y in own))
            n = len(carries)
            count = [n + len(ys)] * len(stop)
            places = {v: [*range(n), *(n + ys.index(y) for y in own), *count] for v, own in members}
            body = Graph(inside, [*carries, *ys, *stop])
            found.append(([v for v, _ in members], body, places))
    return found


# -- trimming -------------------------------------------------------------------------------------


def trim(graph: Graph) -> Graph:
    """Drop outputs and operands that nobody reads, and carries that never change."""
    readers = _readers(graph)
    changed = False

    def remake(v: Variable, inputs: list[Variable]) -> Outputs | None:
        nonlocal changed
        if v not in readers:
            return None
        loop = Loop.of(v, inputs)
        smaller, places = _trimmed(loop, readers[v])
        if smaller is loop:
            return None
        changed = True
        node = smaller.scan()
        return [
            place if place is None or place.__class__ is Variable else op.pick(node, place)
            for place in places
        ]

    out = remade(graph, remake)
    return out if changed else graph


Places = list[Any]  # by old index: the new index, a Variable that is known, or None


def _trimmed(loop: Loop, read: Sequence[int]) -> tuple[Loop, Places]:
    """Return a loop without what is not needed, and where its outputs are now."""
    start = loop
    n = len(loop.carry)
    inner = loops(loop.body)
    if inner.outputs != loop.body.outputs:
        loop = loop.with_outputs(inner.outputs)
    loop = _known_inputs(_accumulating(loop))
    fixed = [i for i in range(n) if loop.new[i] is loop.carry[i]]
    alive = _alive(loop, [*read, n + len(loop.ys) - 1] if loop.until else read)
    kept = [i for i in range(n) if i in alive and i not in fixed]
    places: Places = [None] * (n + len(loop.ys))
    for i in fixed:
        places[i] = loop.init[i]
    for new, i in enumerate(kept):
        places[i] = new
    ys, number = [], {}
    for j, y in enumerate(loop.ys):
        if n + j in alive:
            stop = loop.until and j == len(loop.ys) - 1
            if stop or y not in number:  # equal ys are stored once
                number[y] = len(kept) + len(ys)
                ys.append(j)
            places[n + j] = number[y]
    invariant = [i for i in fixed if i in alive]
    needed = set(leaves([loop.new[i] for i in kept] + [loop.ys[j] for j in ys]))
    xs = [i for i, v in enumerate(loop.elements) if v in needed]
    closed = [
        (loop.closed[i], loop.captures[i])
        for i, v in enumerate(loop.closed[: len(loop.closed) - loop.counted])
        if v in needed
    ] + [(loop.carry[i], loop.init[i]) for i in invariant if loop.carry[i] in needed]
    if loop.counted:
        closed.append((loop.closed[-1], loop.captures[-1]))
    smaller = replace(
        loop,
        init=tuple(loop.init[i] for i in kept),
        carry=tuple(loop.carry[i] for i in kept),
        new=tuple(loop.new[i] for i in kept),
        xs=tuple(loop.xs[i] for i in xs),
        elements=tuple(loop.elements[i] for i in xs),
        captures=tuple(outer for _, outer in closed),
        closed=tuple(inside for inside, _ in closed),
        ys=tuple(loop.ys[j] for j in ys),
    )
    return (start, places) if smaller == start else (smaller, places)


def _alive(loop: Loop, read: Sequence[int]) -> set[int]:
    """Return the outputs that are read, or whose carry a living output needs, by fixpoint."""
    outputs = (*loop.new, *loop.ys)
    alive, work = set(read), list(read)
    number = {v: i for i, v in enumerate(loop.carry)}
    while work:
        for v in leaves([outputs[work.pop()]]):
            i = number.get(v)
            if i is not None and i not in alive:
                alive.add(i)
                work.append(i)
    return alive


def _known_inputs(loop: Loop) -> Loop:
    """Write numbers that a loop is given into its body, and read what it is given twice once."""
    mapping: dict[Variable, Variable] = {}
    first: dict[Variable, Variable] = {}
    inputs = (*loop.elements, *loop.closed)
    for inside, outer in zip(inputs, (*loop.xs, *loop.captures), strict=True):
        value = known(outer)
        if value is not None:
            mapping[inside] = filled_like(inside, value)
        elif first.setdefault(outer, inside).type is inside.type and first[outer] is not inside:
            mapping[inside] = first[outer]
    used = set(leaves(loop.body.outputs)) if mapping else set()
    mapping = {k: v for k, v in mapping.items() if k in used}
    if not mapping:
        return loop
    return loop.with_outputs(substitute(loop.body.outputs, mapping))


def _accumulating(loop: Loop) -> Loop:
    """Turn carry + add_at(0, i, v) into add_at(carry, i, v) where the carry is never -0.0.

    A carry is so when its start is, and a step keeps it so.
    """
    starts = [never_negative_zero(v) for v in loop.init]
    assumed = {v for v, good in zip(loop.carry, starts, strict=True) if good}
    while True:
        lost = {
            v
            for v, new in zip(loop.carry, loop.new, strict=True)
            if v in assumed and not never_negative_zero(new, assumed)
        }
        if not lost:
            break
        assumed -= lost
    if not assumed:
        return loop
    base, rules = var("y", assumed.__contains__), RuleSet("accumulate")
    rules.rule(p.add(base, p.add_at(ZEROS, var(), ...).named("inner")))(add_region)
    rules.rule(p.add(base, p.take_add(ZEROS, var(), var()).named("inner")))(add_taken)
    body = rewrite(loop.body, rules)
    return loop.with_outputs(body.outputs)
