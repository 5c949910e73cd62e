"""Temporaries of one element as registers: the scalar carries of loops never touch memory.

A C compiler finds that by itself; LLVM behind Numba, which allocates temporaries, does not.
"""

from collections.abc import Sequence

from lazyarr.backends.loop.ir import (
    Accumulate,
    For,
    Function,
    Init,
    Invoke,
    Let,
    Load,
    Local,
    Store,
    Update,
    walk,
)
from lazyarr.backends.loop.notation import Buffer
from lazyarr.graph import scalar
from lazyarr.graph.scalar import Scalar


def use_registers(functions: Sequence[Function], kept: dict[Buffer, tuple]) -> None:
    """Replace temporaries of one element, each of one function and serial code, by registers."""
    owners: dict[Buffer, set[int]] = {}
    for k, f in enumerate(functions):
        for b in f.buffers:
            owners.setdefault(b, set()).add(k)
    for k, f in enumerate(functions):
        chosen = {
            b
            for b in f.buffers
            if b.kind == "temp" and owners[b] == {k} and all(s == 1 for s in kept[b])
        } - _elsewhere(f)
        if chosen:
            _replace(f, chosen)


def _elsewhere(f: Function) -> set[Buffer]:
    """Return the buffers that routines or threads touch, or that vector loops write."""
    found: set[Buffer] = set()
    for node in walk(f.body):
        if isinstance(node, Invoke):
            found.update(node.buffers)
        elif isinstance(node, For) and node.work is not None:
            found.update(n.buffer for n in walk(node.body) if isinstance(n, Load | Store | Update))
        elif isinstance(node, For) and node.kind == "simd":
            found.update(n.buffer for n in walk(node.body) if isinstance(n, Store | Update))
    return found


def _replace(f: Function, chosen: set[Buffer]) -> None:
    registers: dict[Buffer, Scalar] = {
        b: scalar.var(Local(f"r_{b.name}", -1 - k, 0, mutable=True), b.dtype)
        for k, b in enumerate(sorted(chosen, key=lambda b: b.name))
    }
    bodies = [f.body]
    while bodies:
        body = bodies.pop()
        for i, node in enumerate(body):
            if isinstance(node, For):
                bodies.append(node.body)
            elif isinstance(node, Load) and node.buffer in chosen:
                value = registers[node.buffer]
                body[i] = Let(node.local, Scalar("copy", (value,), value.dtype))
            elif isinstance(node, Store) and node.buffer in chosen:
                body[i] = Accumulate(registers[node.buffer], None, node.value)
            elif isinstance(node, Update) and node.buffer in chosen:
                body[i] = Accumulate(registers[node.buffer], node.monoid, node.value)
    f.body[:0] = [Init(r, scalar.const(0, r.dtype)) for r in registers.values()]
    f.buffers = [b for b in f.buffers if b not in chosen]
