"""The plan of a graph: functions of loop IR over one arena, ready for a printer.

>>> plan(graph).explain()  # doctest: +SKIP
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lazyarr.backends.loop.apart import is_large, needed_apart
from lazyarr.backends.loop.build import lower
from lazyarr.backends.loop.collapse import collapse
from lazyarr.backends.loop.emit import Emitter
from lazyarr.backends.loop.externals import externals_of
from lazyarr.backends.loop.ir import For, Function, Invoke, Let, Load, Store, Update, walk
from lazyarr.backends.loop.lower import Program
from lazyarr.backends.loop.notation import Buffer, writes
from lazyarr.backends.loop.order import choose_layouts, count_ops
from lazyarr.backends.loop.registers import use_registers
from lazyarr.backends.loop.roots import SHARE_COST
from lazyarr.backends.loop.schedule import (
    Call,
    Cycle,
    Loop,
    Placed,
    Scheduler,
    placements,
    shared_dims,
)
from lazyarr.backends.loop.tiles import add_tiles
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import Native
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

SEGMENT = 400  # scalar operations in one function
ON_STACK = 4096  # bytes of a static temporary that a function keeps on its stack
STACK = 65536  # bytes of all of them in one function
ROUNDS = 3  # of planning again with shared values stored


@dataclass(repr=False)
class Plan:
    """Everything a printer or a toolchain needs; see README.md for the meaning of each field."""

    graph: Graph
    program: Program
    functions: list[Function]
    local: dict[Buffer, Function]  # temporaries that live on the stack of one function
    slots: dict[Buffer, int]  # temporaries in the arena
    slot_bytes: list[object]  # sizes of the slots, in bytes
    shapes: dict[Buffer, tuple]  # what is stored of each temporary
    atoms: tuple[Atom, ...]
    externals: tuple[str, ...]
    codes: dict[int, tuple] = field(default_factory=dict)
    threads: int = 1
    reuse: dict[Buffer, Buffer] = field(default_factory=dict)  # output -> donated input, donate.py

    @property
    def natives(self) -> list[Native]:
        """The functions of others that the program calls, each once."""
        found = (n.native for f in self.functions for n in walk(f.body) if isinstance(n, Invoke))
        return list(dict.fromkeys(n for n in found if n is not None))

    @property
    def inputs(self) -> tuple[TensorType, ...]:
        """The types of the inputs."""
        return tuple(v.type for v in self.graph.inputs)

    @property
    def outputs(self) -> tuple[TensorType, ...]:
        """The types of the outputs."""
        return tuple(v.type for v in self.graph.outputs)

    def arena_bytes(self, env: Mapping[Atom, int] | None = None) -> int:
        """Return the scratch that a call needs under an assignment of the atoms."""
        return 64 + sum(round_up(shapes.evaluate(b, env or {})) for b in self.slot_bytes)

    def output_shapes(self, env: Mapping[Atom, int] | None = None) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the outputs under an assignment of the atoms."""
        canon = self.program.sizes.canon
        return tuple(
            tuple(shapes.evaluate(canon(s), env or {}) for s in t.shape) for t in self.outputs
        )

    def buffers(self) -> list[Buffer]:
        """Return every buffer that the functions touch."""
        return list(dict.fromkeys(b for f in self.functions for b in f.buffers))

    def explain(self) -> str:
        """Return the plan as text: kernels, loops, what is computed where, memory, externals."""
        lines = []
        for f in self.functions:
            lines.append(f"{f.name}: {', '.join(map(repr, f.buffers))}")
            lines.extend(f"  {line}" for line in f.labels)
        for b in self.local:
            why = self.program.why.get(b, "")
            text = f"stack: {b.name} {b.dtype}{list(self.shapes[b])}"
            lines.append(f"{text}: {why}" if why else text)
        for b, slot in self.slots.items():
            users = [f.name for f in self.functions if b in f.buffers]
            life = users[0] if users[0] == users[-1] else f"{users[0]} to {users[-1]}"
            shape = list(self.shapes[b])
            why = self.program.why.get(b, "")
            text = f"arena slot {slot}: {b.name} {b.dtype}{shape}, in {life}"
            lines.append(f"{text}: {why}" if why else text)
        lines += [f"donated: {out.name} in the memory of {b.name}" for out, b in self.reuse.items()]
        shared = [n for f in self.functions for n in walk(f.body) if isinstance(n, For) and n.work]
        if shared:
            lines.append(f"threads: {self.threads} share {len(shared)} of the loops")
        if self.externals:
            lines.append(f"externals: {', '.join(self.externals)}")
        return "\n".join(lines)


def round_up(n: int) -> int:
    """Return a number of bytes rounded up to whole cache lines, and one more."""
    return (n + 63) // 64 * 64 + 64


def plan(
    graph: Graph,
    precise: bool = False,
    threads: int = 1,
    *,
    by_length: bool = True,
    segment: int = SEGMENT,
) -> Plan:
    """Lower, schedule and emit a graph of ops that the loop family supports.

    `precise` keeps divisions that could be products with a reciprocal; loops whose iterations are
    independent are marked where there are more `threads` than one. `by_length`: rows of unknown
    length get loops of their own for short ones. `segment`: the scalar operations
    after which a function ends.
    """
    program, block = _scheduled(graph)
    drop = shared_dims(block)
    if by_length:
        add_tiles(block, drop, program.buffer, precise)
    many = _written_often(block)
    twins = not is_large(graph)
    functions = [
        _function(
            f"part{k}",
            items,
            Emitter(many, drop, program.buffer, precise, threads > 1, by_length, twins),
        )
        for k, items in enumerate(_segments(block, segment))
    ]
    kept = {
        b: tuple(s for d, s in enumerate(b.shape) if d not in drop.get(b, ()))
        for b in program.buffers
    }
    _drop_dead_stores(functions)
    for f in functions:
        f.buffers = _touched(f)
    use_registers(functions, kept)
    local, slots, slot_bytes = _allocate(functions, kept)
    _multiply(functions, slots, slot_bytes, threads)
    return Plan(
        graph, program, functions, local, slots, slot_bytes, kept,
        _atoms(program, functions, slot_bytes), _externals(functions),
        {k + 1: check for k, check in enumerate(program.checks)}, threads,
    )  # fmt: skip


def _scheduled(graph: Graph) -> tuple[Program, list]:
    """Lower and schedule, again while dear values are computed in several loops."""
    forced = needed_apart(graph)
    for _ in range(ROUNDS):
        program = lower(graph, forced)
        collapse(program.steps)
        choose_layouts(program.steps)
        block = Scheduler(program.steps).run()
        more = _repeated(program, block) - forced
        if not more:
            break
        forced |= more
    return program, block


def _repeated(program: Program, block: list) -> set[Variable]:
    """Return the nodes worth storing: dear, and computed inline in more than one loop."""
    loops: dict[Variable, set] = {}
    for placed in placements(block):
        home = placed.path[-1] if placed.path else None
        for node in placed.statement.nodes:
            if home is not None and node.op is not None and node.ndim:
                loops.setdefault(node, set()).add(id(home))
    shared = {v: at for v, at in loops.items() if len(at) > 1}
    users: dict[Variable, list[Variable]] = {}
    for v in shared:
        for x in v.inputs:
            if x in shared:
                users.setdefault(x, []).append(v)
    costs = program.costs
    return {
        v
        for v, at in shared.items()
        if costs.get(v, 0) >= SHARE_COST and not any(shared[u] >= at for u in users.get(v, ()))
    }


def _ops(item: object) -> int:
    if isinstance(item, Placed):
        return count_ops(item.statement)
    if isinstance(item, Loop):
        return sum(map(_ops, item.items))
    if isinstance(item, Cycle):
        return sum(map(_ops, [*item.body, *item.updates]))
    return 1


def _segments(block: list, segment: int) -> list[list]:
    """Return a block cut into runs of items that become functions."""
    out: list[list] = [[]]
    size = 0
    for item in block:
        ops = _ops(item)
        if out[-1] and size + ops > segment:
            out.append([])
            size = 0
        out[-1].append(item)
        size += ops
    return out


def _function(name: str, items: list, emitter: Emitter) -> Function:
    emitter.block(items)
    return Function(name, emitter.scopes[0].body, labels=list(_describe(items, "")))


def _describe(items: Iterable, indent: str):
    for item in items:
        if isinstance(item, Loop):
            why = f"  -- apart: {item.why}" if item.why else ""
            why += f"  -- {item.tile}" if item.tile is not None else ""
            yield f"{indent}for {item.extent} ({item.role}){why}"
            yield from _describe(item.items, indent + "  ")
        elif isinstance(item, Placed):
            s = item.statement
            inline = [v.op.name for v in s.nodes if v.op is not None and v.op.name != s.label]
            text = f": {', '.join(inline)}" if inline else ""
            over = " in a register" if item.first_reduced() is not None and _one(item) else ""
            yield f"{indent}{s.buffer.name} = {s.label}{text}{over}"
        elif isinstance(item, Cycle):
            yield f"{indent}scan for {item.repeat.axis.extent}"
            yield from _describe([*item.body, *item.updates], indent + "  ")
        elif isinstance(item, Call):
            names = ", ".join(b.name for b in item.routine.results)
            yield f"{indent}{names} = {item.routine.name} (library)"


def _one(node: Placed) -> bool:
    """Tell whether a reduction has one element inside its outermost reduced loop."""
    inner = node.loops[node.first_reduced() :]
    return all(a in node.statement.reduced for a in inner)


def _written_often(block: list) -> set[Buffer]:
    """Return the buffers of which an element may be written by more than one statement."""
    count: dict[Buffer, int] = {}
    stack = list(block)
    while stack:
        item = stack.pop()
        if isinstance(item, Loop):
            stack.extend(item.items)
        elif isinstance(item, Cycle):
            stack.extend([*item.body, *item.updates])
        else:
            own = isinstance(item, Placed)
            buffers = writes(item.statement if own else item.routine)
            for buffer in buffers:
                count[buffer] = count.get(buffer, 0) + (not (own and item.statement.disjoint))
    return {b for b, n in count.items() if n > 1}


def _drop_dead_stores(functions: Sequence[Function]) -> None:
    """Remove writes of temporaries that nobody reads."""
    while True:
        read: set[Buffer] = set()
        for f in functions:
            for node in walk(f.body):
                if isinstance(node, Load):
                    read.add(node.buffer)
                elif isinstance(node, Invoke):
                    read.update(node.buffers)
        dead = False
        for f in functions:
            dead |= _filter(f, read)
        if not dead:
            return


def _filter(f: Function, read: set[Buffer]) -> bool:
    """Keep what writes a buffer in `read` or an output, and the values that something uses."""
    changed = False

    def keep(node: object) -> bool:
        if isinstance(node, Store | Update):
            return node.buffer.kind != "temp" or node.buffer in read
        if isinstance(node, For):
            return bool(node.body)
        return not (isinstance(node, Let | Load) and node.local not in used)

    used = _used(f)
    bodies = [f.body]
    while bodies:
        body = bodies.pop()
        kept = [n for n in body if keep(n)]
        changed |= len(kept) != len(body)
        body[:] = kept
        bodies.extend(n.body for n in kept if isinstance(n, For))
    return changed


def _used(f: Function) -> set:
    used: set = set()
    for node in walk(f.body):
        if isinstance(node, Let):
            used.update(node.value.args)
        elif isinstance(node, For):
            used.update((node.extent, node.work))
        elif isinstance(node, Invoke):
            used.update(node.sizes)
        else:
            for name in ("offset", "value", "condition"):
                if hasattr(node, name):
                    used.add(getattr(node, name))
    return used


def _touched(f: Function) -> list[Buffer]:
    found: dict[Buffer, None] = {}
    for node in walk(f.body):
        if isinstance(node, Load | Store | Update):
            found[node.buffer] = None
        elif isinstance(node, Invoke):
            found.update(dict.fromkeys(node.buffers))
    return list(found)


def _allocate(functions: Sequence[Function], kept: dict) -> tuple[dict, dict, list]:
    """Return stack temporaries, arena slots and their sizes; later functions reuse slots."""
    life: dict[Buffer, list[int]] = {}
    for k, f in enumerate(functions):
        for b in f.buffers:
            if b.kind == "temp":
                life.setdefault(b, []).append(k)
    local: dict[Buffer, Function] = {}
    slots: dict[Buffer, int] = {}
    sizes: list[object] = []
    free: dict[object, list[int]] = {}
    ends: dict[int, list[Buffer]] = {}
    used: dict[int, int] = {}
    for b in sorted(life, key=lambda b: life[b][0]):
        first, last = life[b][0], life[b][-1]
        need = shapes.product(kept[b]) * b.dtype.itemsize
        room = STACK - used.get(first, 0)
        if first == last and isinstance(need, int) and need <= min(ON_STACK, room):
            local[b] = functions[first]
            used[first] = used.get(first, 0) + max(64, need)
            continue
        for k in [k for k in ends if k < first]:
            for old in ends.pop(k):
                free.setdefault(sizes[slots[old]], []).append(slots[old])
        if free.get(need):
            slots[b] = free[need].pop()
        else:
            slots[b] = len(sizes)
            sizes.append(need)
        ends.setdefault(last, []).append(b)
    return local, slots, sizes


def _multiply(functions: Sequence[Function], slots: dict, sizes: list, threads: int) -> None:
    """Make room in the arena for every thread's own copy of the buffers that threads have."""
    private = {b for f in functions for n in walk(f.body) if isinstance(n, For) for b in n.private}
    for slot in {slots[b] for b in private if b in slots}:
        sizes[slot] = (sizes[slot] + 64) * threads


def _atoms(program: Program, functions: Sequence[Function], sizes: Iterable) -> tuple[Atom, ...]:
    """Return the free atoms that the program, its scratch and its result shapes depend on."""
    found: dict[Atom, None] = {}
    for f in functions:
        for node in walk(f.body):
            if isinstance(node, Let) and node.value.prim == "dim":
                found[node.value.args[0]] = None
    every = [*sizes]
    for v in program.graph.outputs:
        every.extend(program.sizes.canon(s) for s in v.type.shape)
    for size in every:
        if isinstance(size, Size):
            found.update(dict.fromkeys(shapes.atoms(size)))
    return tuple(sorted(found, key=lambda a: a.uid))


def _externals(functions: Sequence[Function]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for f in functions:
        for node in walk(f.body):
            if isinstance(node, Invoke) and node.native is None:
                names.update(dict.fromkeys(externals_of(node.name, node.dtype)))
    return tuple(names)
