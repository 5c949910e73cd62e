"""Temporaries of one element as registers: the scalar carries of loops never touch memory.

A C compiler finds that by itself; LLVM behind Numba, which allocates temporaries, does not. What
other functions touch too is read where a function starts and written where it ends.
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
    constant,
    walk,
)
from lazyarr.backends.loop.notation import Buffer
from lazyarr.graph import scalar
from lazyarr.graph.scalar import Scalar


def use_registers(functions: Sequence[Function], kept: dict[Buffer, tuple]) -> None:
    """Replace temporaries of one element, in serial code, by registers."""
    owners: dict[Buffer, set[int]] = {}
    for k, f in enumerate(functions):
        for b in f.buffers:
            owners.setdefault(b, set()).add(k)
    for k, f in enumerate(functions):
        single = {b for b in f.buffers if b.kind == "temp" and all(s == 1 for s in kept[b])}
        single -= _elsewhere(f)
        own = {b for b in single if owners[b] == {k}}
        looped = _in_loops(f)
        shared = sorted((b for b in single - own if b in looped), key=lambda b: b.name)
        if own or shared:
            registers = _replace(f, own | {*shared})
            f.buffers = [b for b in f.buffers if b not in own]
            for n, b in enumerate(shared):
                _keep(f, b, registers[b], n, known=min(owners[b]) < k)


def _in_loops(f: Function) -> set[Buffer]:
    """Return the buffers that loops of a function write."""
    found: set[Buffer] = set()
    for node in f.body:
        if isinstance(node, For):
            found.update(n.buffer for n in walk(node.body) if isinstance(n, Store | Update))
    return found


def _keep(f: Function, b: Buffer, register: Scalar, number: int, known: bool) -> None:
    """Bring a register from memory, where an earlier function left it, and back in the end."""
    zero = constant(0)
    first, last = (scalar.var(Local(f"{x}_{b.name}", -1000 - number, 0), b.dtype) for x in "bv")
    at = next(i for i, n in enumerate(f.body) if isinstance(n, Init) and n.local is register)
    if known:
        f.body[at : at + 1] = [Load(first, b, zero), Init(register, first)]
    f.body += [Let(last, Scalar("copy", (register,), b.dtype)), Store(b, zero, last)]


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


def _replace(f: Function, chosen: set[Buffer]) -> dict[Buffer, Scalar]:
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
    return registers
