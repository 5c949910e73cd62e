"""Elementwise work over whole arrays walks them as one long axis, whatever their rank.

A statement collapses when every array that it touches is walked in C order by all its axes; and
only together with all statements that touch the same arrays, so that what would share loops still
does. Rows of three elements then cost what rows of a thousand do.
"""

from collections.abc import Callable

from lazyarr.backends.loop.affine import Axis, of
from lazyarr.backends.loop.notation import (
    Access,
    Buffer,
    Repeat,
    Statement,
    accesses,
    reads,
    writes,
)
from lazyarr.backends.loop.order import walk
from lazyarr.graph import shapes
from lazyarr.graph.scalar import Scalar


def collapse(steps: list) -> None:
    """Collapse statements of a list of steps, and of the loops in it, in place."""
    chosen = _together(steps)
    for s in chosen:
        _flatten(s)
    for step in steps:
        if isinstance(step, Repeat):
            collapse(step.body)


def _together(steps: list) -> list[Statement]:
    """Return the statements that may collapse: none shares an array with one that may not."""
    touched = {id(step): _arrays(step) for step in steps}
    users: dict[Buffer, list] = {}
    for step in steps:
        for b in touched[id(step)]:
            users.setdefault(b, []).append(step)
    fine = {id(s) for s in steps if isinstance(s, Statement) and _walks_whole(s)}
    spread = [step for step in steps if id(step) not in fine]
    while spread:
        for b in touched[id(spread.pop())]:
            for other in users.pop(b, ()):
                if id(other) in fine:
                    fine.discard(id(other))
                    spread.append(other)
    return [s for s in steps if id(s) in fine]


def _arrays(step: object) -> set[Buffer]:
    """Return the buffers with axes that a step touches."""
    return {b for b in reads(step) | writes(step) if any(s != 1 for s in b.shape)}


def _walks_whole(s: Statement) -> bool:
    """Tell whether a statement only stores, and its axes walk every array that it touches."""
    if len(s.axes) < 2 or s.reduced or s.combine is not None or s.checks:
        return False
    for e in walk(s.expressions()):
        if e.prim == "var" and not isinstance(e.args[0], Access):
            return False
    return all(_is_whole(a, s) for a in (s.target, *accesses(*s.expressions())))


def _is_whole(a: Access, s: Statement) -> bool:
    """Tell whether an access is one element for all axes, or the whole array in order."""
    if all(not i.terms and i.const == 0 for i in a.index):
        return all(size == 1 for size in a.shape)
    axes = [i.axis for i, size in zip(a.index, a.shape, strict=True) if size != 1]
    sizes = [size for size in a.shape if size != 1]
    return tuple(axes) == s.axes and all(
        axis.extent is size or axis.extent == size for axis, size in zip(s.axes, sizes, strict=True)
    )


def _flatten(s: Statement) -> None:
    extent = shapes.product(a.extent for a in s.axes)
    axis = Axis(extent, "e")

    def flat(a: Access) -> Access:
        if not any(i.terms for i in a.index):
            return a
        return Access(a.buffer, (of(axis),), (extent,))

    s.axes = (axis,)
    s.target = flat(s.target)
    s.value = with_accesses(s.value, flat)


def with_accesses(root: Scalar, change: Callable[[Access], Access]) -> Scalar:
    """Return an expression with every read changed, shared parts staying shared."""
    done: dict[int, Scalar] = {}
    stack = [root]
    while stack:
        e = stack[-1]
        if id(e) in done:
            stack.pop()
        elif e.prim == "const":
            done[id(e)] = e
        elif e.prim == "var":
            done[id(e)] = Scalar("var", (change(e.args[0]),), e.dtype)
        elif missing := [a for a in e.args if id(a) not in done]:
            stack.extend(missing)
        else:
            done[id(e)] = Scalar(e.prim, tuple(done[id(a)] for a in e.args), e.dtype)
    return done[id(root)]
