"""Index notation -> a tree of loops: which statements share which loops, and in which order.

Statements are placed one by one, producers first. Each walks down from the outermost block and
joins the first loop after its producers that has its extent and its role; it may join the loop of a
producer only if it reads there what the same iteration wrote. So independent statements over one
space fuse, a consumer fuses with its producer where that is valid, and normalisations block by rows
by themselves.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from lazyarr.backends.loop.affine import Axis
from lazyarr.backends.loop.notation import (
    Access,
    Buffer,
    Repeat,
    Routine,
    Statement,
    accesses,
    reads,
    writes,
)
from lazyarr.backends.loop.order import Order, order_of

MOST_OPS = 600  # scalar operations in one loop, beyond which nothing more joins it
MOST_ONCE = 60  # cost of scalar work once a row; dearer work has a vector loop over the rows
MOST_SUMS = 32  # reductions in one loop: each is a register, and what spills is slow to compile


@dataclass(eq=False)
class Loop:
    """A loop of the tree, made by the first statement that needed it."""

    extent: object
    role: str  # "vector" (innermost, may be simd), "serial" (innermost, order matters) or "outer"
    items: list = field(default_factory=list)
    starts: list["Placed"] = field(default_factory=list)  # whose registers live around this loop
    ops: int = 0
    why: str = ""  # why the first statement did not join the loop of what it reads
    tile: "object | None" = None  # its second form, tiles.py

    def has_room(self, ops: int, sums: bool, once: int) -> bool:
        """Tell whether a statement of so many operations, one that sums here or not, may join.

        `once` is its cost where it would stand beside the loops in this one.
        """
        if self.role == "outer" and once > MOST_ONCE:
            return False
        return self.ops + ops <= MOST_OPS and not (sums and len(self.starts) >= MOST_SUMS)


@dataclass(eq=False)
class Placed:
    """A statement, its loops from the outside, and the axes unrolled inside them."""

    statement: Statement
    path: tuple[Loop, ...]
    loops: tuple[Axis, ...]
    unrolled: tuple[Axis, ...]

    def first_reduced(self) -> int | None:
        """Return the depth of the outermost loop that is reduced over (or run along)."""
        over = (*self.statement.reduced, self.statement.running)
        return next((k for k, a in enumerate(self.loops) if a in over), None)


@dataclass(eq=False)
class Call:
    """A library routine in the tree."""

    routine: Routine
    path: tuple = ()


@dataclass(eq=False)
class Cycle:
    """A scan in the tree: its own block, then the block that updates the carries."""

    repeat: Repeat
    body: list
    updates: list
    path: tuple = ()


class Scheduler:
    """Builds one block from the steps of one scope."""

    def __init__(self, steps: Sequence):
        self.steps = steps
        self.block: list = []
        self.nodes: dict[int, object] = {}  # number of a step -> its place in the tree
        self.positions: dict[int, dict[int, int]] = {}  # block -> item -> place
        self.by_shape: dict[tuple, list[int]] = {}  # (block, extent, role) -> places of loops

    def run(self) -> list:
        """Return the block of all steps."""
        before = dependencies(self.steps)
        orders = [order_of(s) if isinstance(s, Statement) else None for s in self.steps]
        for k in topological(before, [o is not None and not o.loops for o in orders]):
            self._place(k, [self.nodes[j] for j in sorted(before[k])], orders[k])
        return self.block

    def _append(self, block: list, item: object) -> None:
        self.positions.setdefault(id(block), {})[id(item)] = len(block)
        block.append(item)

    def _place(self, k: int, producers: list, order: Order | None) -> None:
        step = self.steps[k]
        if isinstance(step, Routine):
            node: object = Call(step)
            self._append(self.block, node)
        elif isinstance(step, Repeat):
            node = Cycle(step, Scheduler(step.body).run(), Scheduler(step.updates).run())
            self._append(self.block, node)
        else:
            node = self._place_statement(step, producers, order)
        self.nodes[k] = node

    def _place_statement(self, s: Statement, producers: list, order: Order) -> Placed:
        block, path = self.block, ()
        for depth, axis in enumerate(order.loops):
            inside = [p for p in producers if p.path[:depth] == path]
            role = order.role if depth == len(order.loops) - 1 else "outer"
            sums = axis in s.reduced and not any(a in s.reduced for a in order.loops[:depth])
            new = order.ops, sums, order.cost if role == "vector" else 0
            loop = self._find(block, inside, depth, axis, role, s, new)
            if loop is None:
                loop = Loop(axis.extent, role)
                loop.why = self._reason(block, inside, depth, axis, role, s, new)
                self._append(block, loop)
                key = (id(block), axis.extent, role)
                self.by_shape.setdefault(key, []).append(len(block) - 1)
            loop.ops += order.ops
            path, block = (*path, loop), loop.items
        node = Placed(s, path, order.loops, order.unrolled)
        self._append(block, node)
        first = node.first_reduced()
        if first is not None:
            path[first].starts.append(node)
        return node

    def _find(
        self, block: list, inside: list, depth: int, axis: Axis, role: str, s: Statement, new: tuple
    ) -> Loop | None:
        """Return the first loop of a block that a statement may join, None when there is none."""
        places = self.positions.get(id(block), {})
        items = {id(p): places[id(p.path[depth] if len(p.path) > depth else p)] for p in inside}
        last = max(items.values(), default=-1)
        if last >= 0:
            loop, own = block[last], [p for p in inside if items[id(p)] == last]
            fits = isinstance(loop, Loop) and loop.extent == axis.extent
            if fits and (loop.role == role or (loop.role == "outer" and role != "outer")):
                if loop.has_room(*new) and all(aligned(p, depth, s, axis) for p in own):
                    return loop
        for place in self.by_shape.get((id(block), axis.extent, role), ()):
            if place > last and block[place].has_room(*new):
                return block[place]
        return None

    def _reason(
        self, block: list, inside: list, depth: int, axis: Axis, role: str, s: Statement, new: tuple
    ) -> str:
        """Say why a statement has a loop of its own, beside those of what it reads."""
        places = self.positions.get(id(block), {})
        loops = [p.path[depth] if len(p.path) > depth else p for p in inside]
        if not loops:
            return ""
        loop = max(loops, key=lambda item: places[id(item)])
        if not isinstance(loop, Loop):
            return "a library routine or a loop with state comes before"
        if loop.extent != axis.extent:
            return f"the loop before runs over {loop.extent}"
        for p in inside:
            if len(p.path) > depth and p.path[depth] is loop and not aligned(p, depth, s, axis):
                if p.loops[depth] in p.statement.reduced:
                    return f"{p.statement.buffer.name} is complete only after the loop before"
                return f"reads {p.statement.buffer.name} where other iterations wrote"
        if loop.role == "outer" and role != "outer" and new[2] > MOST_ONCE:
            return "dear work on many rows"
        if not loop.has_room(*new):
            return f"the loop before has {loop.ops} operations, {len(loop.starts)} of them sums"
        return f"a {role} loop, the one before is {loop.role}"


def aligned(producer: object, depth: int, s: Statement, axis: Axis) -> bool:
    """Tell whether `s` reads in each iteration only what that iteration wrote."""
    if not isinstance(producer, Placed) or len(producer.path) <= depth:
        return False
    p, own = producer.statement, producer.loops[depth]
    if own in p.reduced or p.buffer is s.buffer:
        return False
    place = [d for d, i in enumerate(p.target.index) if i.axis is own]
    if len(place) != 1:
        return False
    return all(
        a.shape == p.target.shape and a.index[place[0]].axis is axis
        for a in accesses(*s.expressions())
        if a.buffer is p.buffer
    )


def dependencies(steps: Sequence) -> list[set[int]]:
    """Return for each step the numbers of the steps that must come before it."""
    writers: dict[Buffer, list[int]] = {}
    out: list[set[int]] = []
    for k, step in enumerate(steps):
        targets = writes(step)
        free = isinstance(step, Statement) and step.disjoint
        need: set[int] = set()
        for buffer in reads(step) | (set() if free else targets):
            need.update(writers.get(buffer, ()))
        out.append(need)
        for buffer in targets:
            writers.setdefault(buffer, []).append(k)
    return out


def topological(before: list[set[int]], first: list[bool]) -> list[int]:
    """Return an order that respects `before`, taking marked steps as soon as they are ready."""
    after: list[list[int]] = [[] for _ in before]
    left = [len(b) for b in before]
    for k, need in enumerate(before):
        for j in need:
            after[j].append(k)
    heap = [(not first[k], k) for k, n in enumerate(left) if n == 0]
    heapq.heapify(heap)
    out = []
    while heap:
        _, k = heapq.heappop(heap)
        out.append(k)
        for j in after[k]:
            left[j] -= 1
            if left[j] == 0:
                heapq.heappush(heap, (not first[j], j))
    return out


def placements(block: list) -> list[Placed]:
    """Return every placed statement of a block, those inside scans included."""
    out, stack = [], list(reversed(block))
    while stack:
        item = stack.pop()
        if isinstance(item, Placed):
            out.append(item)
        elif isinstance(item, Loop):
            stack.extend(reversed(item.items))
        elif isinstance(item, Cycle):
            stack.extend(reversed([*item.body, *item.updates]))
    return out


def shared_dims(block: list) -> dict[Buffer, tuple[int, ...]]:
    """Return the dimensions of temporaries without memory: their loops hold all readers."""
    writers: dict[Buffer, list] = {}
    readers: dict[Buffer, list[tuple[Placed, Access]]] = {}
    for node in placements(block):
        writers.setdefault(node.statement.buffer, []).append(node)
        for a in accesses(*node.statement.expressions()):
            readers.setdefault(a.buffer, []).append((node, a))
    blocked = _used_whole(block)
    out = {}
    for buffer, (writer, *more) in writers.items():
        if more or buffer.kind != "temp" or buffer in blocked:
            continue
        target = writer.statement.target
        uses = readers.get(buffer, [])
        if target.shape != buffer.shape or any(a.shape != target.shape for _, a in uses):
            continue
        dims = []
        for depth, axis in enumerate(writer.loops):
            if any(n.path[: depth + 1] != writer.path[: depth + 1] for n, _ in uses):
                break
            place = [d for d, i in enumerate(target.index) if i.axis is axis]
            if len(place) != 1:
                break
            dims.extend(place)
        out[buffer] = tuple(sorted(dims))
    return out


def _used_whole(block: list) -> set[Buffer]:
    """Return the buffers that library routines and carries use."""
    out: set[Buffer] = set()
    stack = list(block)
    while stack:
        item = stack.pop()
        if isinstance(item, Call):
            out.update((*item.routine.results, *item.routine.operands))
        elif isinstance(item, Cycle):
            r = item.repeat  # what tells the number of steps is read outside statements
            out.update(a.buffer for a in (() if r.count is None else accesses(r.count)))
            out.update(() if r.stop is None else (r.stop.buffer,))
            stack.extend([*item.body, *item.updates])
        elif isinstance(item, Loop):
            stack.extend(item.items)
    return out
