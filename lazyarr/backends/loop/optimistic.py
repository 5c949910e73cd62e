"""Loops that multiply first and look for NaN after their last step.

`absorb(g, d)` is the product, or 0 where that is NaN because one factor is 0: a test for each
product of each step back. Where the carries are scalars, a NaN that a product makes stays in them:
through sums and products it reaches a carry that feeds itself. So the loop runs on plain products,
and only where a carry is NaN in the end it runs again, with tests, from what it started with. So do
nests that do nothing but sum up.
"""

from lazyarr.backends.loop.notation import Access, Buffer, Repeat, Statement
from lazyarr.backends.loop.order import count_ops
from lazyarr.backends.loop.schedule import Loop, Placed
from lazyarr.graph.scalar import Scalar

PASSES_NAN = frozenset(
    "add sub mul div neg abs square sqrt exp expm1 log log1p sin cos tan tanh sinh cosh".split()
)
LEAST_STEPS = 16  # steps that are worth a second loop
MOST_OPS = 300  # operations of a step that may be printed twice


def scalar_carries(repeat: Repeat) -> dict[Buffer, Access]:
    """Return the carries of a loop of scalar carries, and where they lie."""
    return {s.buffer: s.target for s in repeat.updates}


def plain_statements(repeat: Repeat) -> set[Statement]:
    """Return the statements of a loop whose products show by NaN; none where it cannot restart."""
    steps = [*repeat.body, *repeat.updates]
    if repeat.stop is not None or not all(_restarts(s) for s in steps):
        return set()
    extent = repeat.axis.extent
    if isinstance(extent, int) and extent < LEAST_STEPS or sum(map(count_ops, steps)) > MOST_OPS:
        return set()
    carries = scalar_carries(repeat)
    if not all(_is_single(b) for b in carries):
        return set()
    chosen = {s for s in steps if not s.axes and not s.reduced and _absorbs(s.value)}
    while chosen:
        sticky = _sticky(steps, carries, chosen)
        kept = {s for s in chosen if s.buffer in sticky and _betrays(s.value)}
        if kept == chosen:
            break
        chosen = kept
    return chosen


def plain_sums(loop: Loop) -> set[Statement]:
    """Return the sums of absorbing products of a nest of sums that all begin around it, else none.

    Where a product is NaN its sum is, so that the nest runs again only then.
    """
    found: list[Placed] = []
    stack = [*loop.items]
    while stack:
        item = stack.pop()
        if isinstance(item, Loop) and not item.starts:
            stack += item.items
        elif isinstance(item, Placed) and item in loop.starts and _is_sum(item.statement):
            found.append(item)
        else:
            return set()
    return {n.statement for n in found if n.statement.value.prim == "absorb"}


def _is_sum(s: Statement) -> bool:
    plain = s.argument is None and s.running is None and not s.update
    return plain and not s.checks and s.combine == "add" and s.value.dtype.kind == "f"


def _restarts(step: object) -> bool:
    """Tell whether a step of a loop can run again: it checks nothing and adds into nothing."""
    return isinstance(step, Statement) and not step.checks and not step.update


def _is_single(buffer: Buffer) -> bool:
    return buffer.kind == "temp" and all(s == 1 for s in buffer.shape)


def _absorbs(value: Scalar) -> bool:
    return any(e.prim == "absorb" for e in _walk(value, lambda e: True))


def _betrays(value: Scalar) -> bool:
    """Tell whether every product of an expression makes it NaN when it is NaN."""
    open_ones = {e for e in _walk(value, lambda e: _open(e, True)) if e.prim == "absorb"}
    return open_ones == {e for e in _walk(value, lambda e: True) if e.prim == "absorb"}


def _open(e: Scalar, plain: bool) -> bool:
    """Tell whether a primitive is NaN where an operand is."""
    if e.prim == "cast":
        return e.dtype.kind == "f"
    return e.prim in PASSES_NAN or (plain and e.prim == "absorb")


def _walk(value: Scalar, enter) -> list[Scalar]:
    """Return an expression and what is below the primitives to enter."""
    found: dict[Scalar, None] = {}
    stack = [value]
    while stack:
        e = stack.pop()
        if e in found:
            continue
        found[e] = None
        if e.prim not in ("var", "const") and enter(e):
            stack.extend(a for a in e.args if isinstance(a, Scalar))
    return list(found)


def _sticky(steps: list, carries: dict[Buffer, Access], chosen: set[Statement]) -> set[Buffer]:
    """Return the buffers from which a NaN reaches a carry that feeds itself."""
    feeds: dict[Buffer, set[Buffer]] = {}
    for s in steps:
        if s.axes or s.reduced:
            continue
        for e in _walk(s.value, lambda e, s=s: _open(e, s in chosen)):
            if e.prim == "var" and isinstance(e.args[0], Access):
                feeds.setdefault(e.args[0].buffer, set()).add(s.buffer)
    after = {b: _reach(b, feeds) for b in {*feeds, *carries}}
    lasting = {b for b in carries if b.dtype.kind == "f" and b in after[b]}
    return lasting | {b for b, found in after.items() if found & lasting}


def _reach(start: Buffer, feeds: dict[Buffer, set[Buffer]]) -> set[Buffer]:
    found: set[Buffer] = set()
    stack = [start]
    while stack:
        for b in feeds.get(stack.pop(), ()):
            if b not in found:
                found.add(b)
                stack.append(b)
    return found
