"""Work that leaves a loop: what is the same for whole arrays is done on whole arrays.

`improved` takes a scan node when it is recorded, so before any derivative; `push` takes a graph. A
counter becomes a walk over its values. A dear part of the body that depends on xs alone is computed
before the loop, and a dear part of a y that the carries do not need, after it; so is the dear part
of what a carry only adds up. Loops that stop early or take a computed number of steps stay as they
are: their arrays may be much longer than that.
"""

from collections.abc import Sequence
from dataclasses import replace

from lazyarr.autodiff.batch import batch_nodes, widened
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.control_cut import dear_cost, elements
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, clients, substitute, toposort
from lazyarr.passes.fold import known
from lazyarr.passes.loop import Loop, Outputs, remade

BATCHABLE = ("elementwise", "reduction", "movement", "creation", "contraction")
LEAST = 3.0  # ns of dear work for each element that is moved before the loop


def push(graph: Graph) -> Graph:
    """Return a graph whose loops do only what is not the same for whole arrays."""
    changed = False

    def remake(v: Variable, inputs: list[Variable]) -> Outputs | None:
        nonlocal changed
        loop = Loop.of(v, inputs)
        if loop.recompute:
            return None
        made = _pushed(loop)
        changed = changed or made is not None
        return made

    out = remade(graph, remake)
    return out if changed else graph


def improved(node: Variable) -> list[Variable]:
    """Return the outputs of a scan just recorded, from a loop that does less."""
    made = _pushed(Loop.of(node, node.inputs))
    if made is None:
        made = [op.pick(node, i) for i in range(len(node.type.types))]
    return made


def _pushed(loop: Loop) -> Outputs | None:
    """Return the outputs of a better loop, None where there is none."""
    if loop.until or loop.counted:  # whole arrays may be much longer than the steps taken
        return None
    before = loop
    ends: dict[int, Variable] = {}
    loop = _counters(loop, ends)
    loop = _before(loop)
    wider, sums = _sums(loop)
    moved = _after(wider)
    sums = {i: j for i, j in sums.items() if j in moved.whole}
    if sums and len(sums) < len(wider.ys) - len(loop.ys):
        wider, sums = _sums(loop, sums)
        moved = _after(wider)
    if not sums:
        wider, moved = loop, _after(loop)
    if loop is before and not moved.whole:
        return None
    if not sums:
        return moved.outputs(ends)
    total = len(loop.new)
    out = moved.outputs(ends)
    for i, j in sums.items():
        out[i] = op.add(loop.init[i], op.sum(out[total + j], axis=0))
    return out[: total + len(loop.ys)]


def _sums(loop: Loop, only: dict[int, int] | None = None) -> tuple[Loop, dict[int, int]]:
    """Take what float carries only add up for further ys; return the number of each."""
    users = clients(toposort((*loop.new, *loop.ys)))
    found: dict[int, int] = {}
    new, ys = list(loop.new), list(loop.ys)
    for i, c in enumerate(loop.carry):
        if (only is not None and i not in only) or c.dtype.kind != "f" or c in loop.ys:
            continue
        if len(users.get(c, ())) != 1 or loop.new[i] in loop.ys or loop.new.count(loop.new[i]) > 1:
            continue
        added = _added(c, loop.new[i], users)
        if added is not None:
            found[i], new[i] = len(ys), c
            ys.append(added)
    return replace(loop, new=tuple(new), ys=tuple(ys)), found


def _added(c: Variable, new: Variable, users: dict) -> Variable | None:
    """Return what a step adds to a carry, None where it does more or something else reads it."""
    terms, way = [], new
    while way is not c:
        if way.op is None or way.op.name != "add" or way.type is not c.type:
            return None
        if way is not new and len(users.get(way, ())) != 1:
            return None
        a, b = way.inputs
        on = [x for x in (a, b) if x.__class__ is Variable and (x is c or _leads(x, c))]
        if len(on) != 1:
            return None
        terms.append(b if on[0] is a else a)
        way = on[0]
    if not terms or any(t.__class__ is not Variable or t.type is not c.type for t in terms):
        return None
    total = terms[-1]
    for t in reversed(terms[:-1]):
        total = op.add(total, t)
    return total


def _leads(v: Variable, c: Variable) -> bool:
    """Tell whether a node is a chain of sums from a carry."""
    while v is not c:
        if v.op is None or v.op.name != "add":
            return False
        on = [x for x in v.inputs if x.__class__ is Variable and c in toposort([x])]
        if len(on) != 1:
            return False
        v = on[0]
    return True


# -- counters -------------------------------------------------------------------------------------


def _counters(loop: Loop, ends: dict[int, Variable]) -> Loop:
    """Walk over the values of integer carries that grow by a number; `ends` gets their last."""
    for i, (c, new) in enumerate(zip(loop.carry, loop.new, strict=True)):
        by = _increment(c, new)
        if by is None or loop.reverse:
            continue
        walk = op.multiply(op.arange(loop.length, dtype=c.dtype), by)
        steps = op.size_value(loop.length) if not isinstance(loop.length, int) else loop.length
        total = op.multiply(op.astype(steps, c.dtype), by) if steps.__class__ is Variable else (
            steps * by
        )  # fmt: skip
        ends[i] = op.add(loop.init[i], total)
        inside = symbol(c.type)
        outputs = substitute((*loop.new, *loop.ys), {c: inside})
        outputs[i] = c
        loop = replace(
            loop.with_outputs(outputs),
            xs=(*loop.xs, op.add(walk, loop.init[i])),
            elements=(*loop.elements, inside),
        )
    return loop


def _increment(c: Variable, new: Variable) -> int | None:
    if c.ndim or c.dtype.kind != "i" or new.op is None or new.op.name != "add" or new is c:
        return None
    a, b = new.inputs
    other = b if a is c else a if b is c else c
    value = other if other.__class__ is int else known(other) if other is not c else None
    return value if value.__class__ is int else None


# -- before the loop ------------------------------------------------------------------------------


def _moves(v: Variable) -> bool:
    return v.op.kind in BATCHABLE and v.op.check is None


def _depends(nodes: Sequence[Variable], roots: Sequence[Variable]) -> set[Variable]:
    found = set(roots)
    for v in nodes:
        if any(x in found for x in v.inputs if x.__class__ is Variable):
            found.add(v)
    return found


def _before(loop: Loop) -> Loop:
    """Compute dear parts of the body that depend on xs alone for all steps at once."""
    outputs = (*loop.new, *loop.ys)
    order = toposort(outputs)
    carried = _depends(order, loop.carry)
    walked = _depends(order, loop.elements) - carried
    movable = set(loop.elements)
    for v in order:
        if v in walked and v.expr is not None and _moves(v):
            if all(x in movable or x not in walked for x in v.inputs if x.__class__ is Variable):
                movable.add(v)
    read = {x for v in order if v not in movable for x in v.inputs if x.__class__ is Variable}
    read.update(outputs)
    chosen = [
        v
        for v in order
        if v in movable and v in read and v.expr is not None and _is_dear(v, loop, movable)
    ]
    if not chosen:
        return loop
    stacks = _batched(loop, chosen, {})
    symbols = [symbol(v.type) for v in chosen]
    return replace(
        loop.with_outputs(substitute(outputs, dict(zip(chosen, symbols, strict=True)))),
        xs=(*loop.xs, *stacks),
        elements=(*loop.elements, *symbols),
    )


def _is_dear(v: Variable, loop: Loop, movable: set[Variable]) -> bool:
    below = [x for x in toposort([v], stop=loop.elements) if x in movable and x.expr is not None]
    return sum(map(dear_cost, below)) >= LEAST * elements(v.type)


def _batched(loop: Loop, nodes: Sequence[Variable], stored: dict[Variable, Variable]) -> list:
    """Return nodes of the body for all steps at once, from xs, captures and what is stored."""
    given = {v: (x, True) for v, x in zip(loop.elements, loop.xs, strict=True)}
    given.update({v: (x, False) for v, x in zip(loop.closed, loop.captures, strict=True)})
    given.update({v: (x, True) for v, x in stored.items()})
    pairs = batch_nodes(nodes, given, loop.length)
    return [widened(v, m, loop.length) for v, m in pairs]


# -- after the loop -------------------------------------------------------------------------------


class _After:
    """A loop, and which of its ys are computed after it from others that it stores."""

    def __init__(self, loop: Loop):
        self.loop = loop
        self.whole: dict[int, Variable] = {}  # number of a y -> its node, computed after the loop
        self.stored: dict[Variable, None] = {}

    def outputs(self, ends: dict[int, Variable]) -> Outputs:
        """Record the loop and return the outputs of the one that it replaces."""
        loop = self.loop
        n = len(loop.new)
        stays = [j for j in range(len(loop.ys)) if j not in self.whole]
        ys = [loop.ys[j] for j in stays]
        node = replace(loop, ys=(*ys, *self.stored)).scan()
        out: Outputs = [ends[i] if i in ends else op.pick(node, i) for i in range(n)]
        out += [None] * len(loop.ys)
        for k, j in enumerate(stays):
            out[n + j] = op.pick(node, n + k)
        stacks = {v: op.pick(node, n + len(stays) + k) for k, v in enumerate(self.stored)}
        found = _batched(loop, list(self.whole.values()), stacks)
        for j, y in zip(self.whole, found, strict=True):
            out[n + j] = y
        return out


def _after(loop: Loop) -> _After:
    """Choose the ys to compute after the loop."""
    out = _After(loop)
    pinned = set(toposort(loop.new))
    order = toposort(loop.ys)
    carried = _depends(order, loop.carry)
    walked = _depends(order, loop.elements)
    free = set(loop.elements)
    for v in order:  # from xs and captures alone, without what may fail
        if v not in carried and v.expr is not None and _moves(v):
            if all(x in free or x not in walked for x in v.inputs if x.__class__ is Variable):
                free.add(v)
    for j, y in enumerate(loop.ys):
        part = _part(y, pinned, free, carried | walked)
        if part is None:
            continue
        inside, stored = part
        new = sum(elements(v.type) for v in stored if v not in out.stored and v not in loop.ys)
        if new <= 4 * elements(y.type) + 8 * sum(map(dear_cost, inside)) / 4 and (
            not stored or sum(map(dear_cost, inside)) >= LEAST * elements(y.type)
        ):
            out.whole[j] = y
            out.stored.update(dict.fromkeys(stored))
    return out


def _part(y: Variable, pinned: set, free: set, moving: set) -> tuple[list, list] | None:
    """Return what of a y is computed after the loop, and what the loop must store for it."""
    if y in free:
        return [], []
    inside, stored, stack, seen = [], [], [y], {y}
    while stack:
        v = stack.pop()
        if v in free or v not in moving:
            continue
        if v.expr is None or v in pinned or not _moves(v):
            if v is y:
                return None
            stored.append(v)
            continue
        inside.append(v)
        for x in v.inputs:
            if x.__class__ is Variable and x not in seen:
                seen.add(x)
                stack.append(x)
    return inside, stored
