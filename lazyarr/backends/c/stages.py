"""Loops with chains of dear functions, run in stages over a few elements at a time.

In `tanh(tanh(tanh(x)))` each function waits for the one before it, and an iteration is so long
that a processor overlaps hardly two of them. Such a loop is printed as a loop over blocks of
elements, and for each block one short loop per link of the chain, whose iterations overlap; values
that a later stage needs wait in an array on the stack. Five links take 2.3 ns an element so, and
5.5 without.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lazyarr.backends.loop import ir
from lazyarr.graph.scalar import PRIMS, Scalar

BLOCK = 64  # elements that go through all stages together
DEAR = 10  # cost of a primitive from which it counts as a link
LEAST = 32  # elements for which more loops pay
LINKS = 3  # of the longest chain, from which stages pay
SIDE_BY_SIDE = 3  # as many functions for each link keep a processor busy by themselves
WAITING = 32  # values that may wait in arrays


@dataclass
class Stage:
    """A part of a loop's body: what it takes from stages before it, and leaves for later ones."""

    body: list = field(default_factory=list)
    takes: list[Scalar] = field(default_factory=list)
    leaves: list[Scalar] = field(default_factory=list)


def split(loop: ir.For) -> list[Stage] | None:
    """Return the stages of a vector loop, None where it is better in one."""
    simple = ir.Let | ir.Load | ir.Store | ir.Accumulate
    if loop.work is not None or not all(isinstance(n, simple) for n in loop.body):
        return None
    if loop.extent.prim == "const" and loop.extent.args[0] < LEAST:
        return None
    stored = {n.buffer for n in loop.body if isinstance(n, ir.Store)}
    changed = {n.local for n in loop.body if isinstance(n, ir.Accumulate)}
    for n in loop.body:
        if isinstance(n, ir.Load) and n.buffer in stored:
            return None  # what is read may depend on what was written
        if changed.intersection(operands(n)) or getattr(n, "monoid", "") is None:
            return None
    free = _free(loop)
    level, links = _levels(loop, free)
    dear = sum(_is_dear(n) for n in loop.body)
    if links < LINKS or dear > SIDE_BY_SIDE * links:
        return None
    return _stages(loop, free, level)


def operands(node: object) -> tuple[Scalar, ...]:
    """Return the atoms that a statement reads."""
    if isinstance(node, ir.Let):
        return node.value.args if node.value.prim not in ("dim", "const", "var") else (node.value,)
    if isinstance(node, ir.Load):
        return (node.offset,)
    if isinstance(node, ir.Store):
        return (node.offset, node.value)
    return (node.value,)  # type: ignore[attr-defined]


def _is_dear(node: object) -> bool:
    prim = node.value.prim if isinstance(node, ir.Let) else ""
    return prim in PRIMS and PRIMS[prim].cost >= DEAR and node.local.dtype.kind == "f"  # type: ignore[attr-defined]


def _free(loop: ir.For) -> dict[Scalar, object]:
    """The statements that every stage may repeat: index arithmetic, and loads at such indices."""
    inside = {n.local for n in loop.body if isinstance(n, ir.Let | ir.Load)}
    free: dict[Scalar, object] = {}
    indices: set[Scalar] = set()
    for n in loop.body:
        if all(a in indices or a not in inside for a in operands(n)):
            if isinstance(n, ir.Load):
                free[n.local] = n
            elif isinstance(n, ir.Let) and n.local.dtype.kind == "i":
                free[n.local] = n
                indices.add(n.local)
    return free


def _levels(loop: ir.For, free: dict) -> tuple[dict[int, int], int]:
    """The stage of each statement by position, and how many links the longest chain has."""
    of: dict[Scalar, tuple[int, bool]] = {}  # stage, and whether a link lies before it there
    level: dict[int, int] = {}
    for i, n in enumerate(loop.body):
        if getattr(n, "local", None) in free:
            continue
        given = [of[a] for a in operands(n) if a in of]
        if _is_dear(n):
            found = max((stage + after for stage, after in given), default=0), True
        else:
            stage = max((stage for stage, _ in given), default=0)
            found = stage, any(after for s, after in given if s == stage)
        level[i] = found[0]
        if isinstance(n, ir.Let | ir.Load):
            of[n.local] = found
    return level, 1 + max(level.values(), default=0)


def _stages(loop: ir.For, free: dict, level: dict[int, int]) -> list[Stage] | None:
    stages = [Stage() for _ in range(1 + max(level.values()))]
    made = {n.local: level[i] for i, n in enumerate(loop.body) if i in level and _defines(n)}
    waiting: set[Scalar] = set()
    for k, stage in enumerate(stages):
        mine = [n for i, n in enumerate(loop.body) if level.get(i) == k]
        read = _closure((a for n in mine for a in operands(n)), free)
        stage.takes = [a for a in made if a in read and made[a] < k]
        waiting.update(stage.takes)
        own = {id(n) for n in mine} | {id(n) for a, n in free.items() if a in read}
        stage.body = [n for n in loop.body if id(n) in own]
    if len(waiting) > WAITING:
        return None
    for k, stage in enumerate(stages):
        stage.leaves = [a for a in made if a in waiting and made[a] == k]
    return stages


def _defines(node: object) -> bool:
    return isinstance(node, ir.Let | ir.Load)


def _closure(atoms: Iterable[Scalar], free: dict) -> set[Scalar]:
    """Atoms, and what the free statements among them read."""
    found: set[Scalar] = set()
    stack = list(atoms)
    while stack:
        a = stack.pop()
        if a not in found:
            found.add(a)
            if a in free:
                stack.extend(operands(free[a]))
    return found
