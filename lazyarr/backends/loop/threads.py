"""Which loops may run on several threads: those whose iterations touch nothing of each other.

An outermost loop qualifies when each of its statements writes, in every iteration, elements of its
own. Temporaries that only live within an iteration become private to each thread. A sum in a
register may be split as well when its loop holds nothing else.
"""

from collections.abc import Mapping

from lazyarr.backends.loop.ir import Accumulate, Break, Fail, For, Init, Invoke, walk
from lazyarr.backends.loop.notation import Buffer
from lazyarr.backends.loop.order import count_ops
from lazyarr.backends.loop.schedule import Loop, Placed, placements
from lazyarr.graph import shapes

LEAST_WORK = 300_000  # scalar operations below which one thread is as fast


def private_buffers(loop: Loop, drop: Mapping[Buffer, tuple[int, ...]]) -> set[Buffer] | None:
    """Return the temporaries that each thread needs for itself; None where iterations depend."""
    private: set[Buffer] = set()
    for node in placements([loop]):
        s, own = node.statement, node.loops[node.path.index(loop)]
        if s.checks or own is s.running or s.update:
            return None
        if own in s.reduced:
            if not _whole_sum(node, loop):
                return None
            continue
        places = [d for d, i in enumerate(s.target.index) if i.axis is own]
        if len(places) != 1:
            return None
        if places[0] in drop.get(s.buffer, ()):
            private.add(s.buffer)
    return private


def _whole_sum(node: Placed, loop: Loop) -> bool:
    """Tell whether a statement adds up along one loop, alone in it, in a register."""
    s = node.statement
    alone = len(loop.items) == 1 and len(node.path) == 1 and loop.role == "vector"
    return alone and s.combine == "add" and s.argument is None


def splits(node: For) -> bool:
    """Tell whether the body of an emitted loop changes no register but its own reductions."""
    own = {n.local for n in walk(node.body) if isinstance(n, Init)}
    own |= {local for local, _ in node.reductions}
    for n in walk(node.body):
        if isinstance(n, Fail | Break | Invoke):
            return False
        if isinstance(n, Accumulate) and n.local not in own:
            return False
    return True


def work(loop: Loop) -> object:
    """Return the number of scalar operations in a loop, as a size."""
    total = 0
    for node in placements([loop]):
        s = node.statement
        total = total + shapes.product(a.extent for a in s.axes) * count_ops(s)
    return total
