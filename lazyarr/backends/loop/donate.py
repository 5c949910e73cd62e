"""Which results may be written over which inputs, when the caller gives an input's memory away.

An input's memory holds a result where nothing reads the input after the result is first written:
every read stands in an earlier loop nest, or in the same single loop, before the write, at the
place that its counter tells. And no check may fail once the result is being written, since the
interpreter then wants the inputs as they were. A loop that copies the input to the result changes
nothing when both are one memory, and is left out.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lazyarr.backends.loop.ir import Fail, For, Function, Invoke, Load, Store, Update, atom_name
from lazyarr.backends.loop.notation import Buffer


@dataclass(frozen=True)
class Access:
    """One use of a buffer: by which item of the program, and where within a loop."""

    item: tuple[int, int]  # function, and place in its body
    loop: For | None  # the loop right around it, where that is the only one
    place: int = 0  # in the body of the loop
    offset: str | None = None
    copied: tuple[Buffer, Buffer] | None = None  # the loop only copies the second to the first


def reusable(functions: list[Function], donated: Collection[int]) -> dict[Buffer, Buffer]:
    """Return pairs of an output and the donated input whose memory it may take."""
    reads: dict[Buffer, list[Access]] = {}
    writes: dict[Buffer, list[Access]] = {}
    fails: list[tuple[int, int]] = []
    for access, node in _accesses(functions):
        if isinstance(node, Fail):
            fails.append(access.item)
        elif isinstance(node, Invoke):
            fails += [access.item] if node.code else []
            for b in node.buffers:
                reads.setdefault(b, []).append(access)
            for b in node.buffers[: node.results]:
                writes.setdefault(b, []).append(access)
        elif isinstance(node, Load):
            reads.setdefault(node.buffer, []).append(access)
        else:
            writes.setdefault(node.buffer, []).append(access)
            if isinstance(node, Update):
                reads.setdefault(node.buffer, []).append(access)
    found: dict[Buffer, Buffer] = {}
    inputs = [b for b in reads if b.kind == "input" and b.number in donated]
    outputs = sorted((b for b in writes if b.kind == "output"), key=lambda b: b.number)
    for out in outputs:
        for given in inputs:
            if given in found.values() or given.dtype != out.dtype:
                continue
            changes = [w for w in writes[out] if w.copied != (out, given)]
            seen = [r for r in reads[given] if r.copied != (out, given)]
            late = any(item >= w.item for item in fails for w in changes)
            if not late and all(_before(r, w) for r in seen for w in changes):
                found[out] = given
                break
    return found


def _before(read: Access, write: Access) -> bool:
    """Tell whether a read sees nothing of a write, in any round of any loop."""
    if read.item != write.item:
        return read.item < write.item
    loop = read.loop
    if loop is None or loop is not write.loop:
        return False
    place = atom_name(loop.counter)
    return read.offset == place and write.offset == place and read.place < write.place


def _accesses(functions: list[Function]) -> Iterator[tuple[Access, object]]:
    for k, f in enumerate(functions):
        for i, node in enumerate(f.body):
            if not isinstance(node, For):
                if isinstance(node, Load | Store | Update | Fail | Invoke):
                    yield Access((k, i), None), node
                continue
            copied = copy_of(node)
            stack: list[tuple[For, For | None]] = [(node, node)]
            while stack:
                loop, only = stack.pop()
                for j, inner in enumerate(loop.body):
                    if isinstance(inner, For):
                        stack.append((inner, None))
                    elif isinstance(inner, Load | Store | Update):
                        yield Access((k, i), only, j, atom_name(inner.offset), copied), inner
                    elif isinstance(inner, Fail | Invoke):
                        yield Access((k, i), None), inner


def copy_of(node: For) -> tuple[Buffer, Buffer] | None:
    """Return target and source of a loop that only copies one buffer, place by place."""
    if len(node.body) != 2:
        return None
    load, store = node.body
    if not (isinstance(load, Load) and isinstance(store, Store)):
        return None
    same = atom_name(load.offset) == atom_name(store.offset) == atom_name(node.counter)
    moved = atom_name(store.value) == atom_name(load.local)
    return (store.buffer, load.buffer) if same and moved else None
