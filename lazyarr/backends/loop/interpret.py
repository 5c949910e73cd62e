"""The meaning of the loop IR: runs a plan element by element on NumPy memory. Slow, and the oracle.

`run(plan, arrays)` returns what a compiled program would: outputs and a code.
"""

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np

from lazyarr.backends.loop import ir
from lazyarr.backends.loop.notation import Buffer
from lazyarr.backends.loop.plan import Plan
from lazyarr.backends.loop.routines import ROUTINES
from lazyarr.graph import shapes
from lazyarr.graph.scalar import MONOIDS, PRIMS, Scalar
from lazyarr.graph.shapes import Atom

_SLACK = 1  # elements beyond the end of each temporary, as in the arena


class _Failed(Exception):
    """Carries the code of a failed check out of the loops."""

    def __init__(self, code: int):
        self.code = code


class _Left(Exception):
    """Leaves the innermost loop."""


def run(plan: Plan, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """Return the outputs of a plan and 0, or the code of the check that failed."""
    values = [np.asarray(a, t.dtype, order="C") for a, t in zip(arrays, plan.inputs, strict=True)]
    env = shapes.bind((t.shape for t in plan.inputs), (v.shape for v in values))
    outputs = [
        np.zeros(shape, t.dtype)
        for shape, t in zip(plan.output_shapes(env), plan.outputs, strict=True)
    ]
    machine = Machine(plan, env, values, outputs)
    try:
        for f in plan.functions:
            machine.body(f.body, {})
    except _Failed as failed:
        return outputs, failed.code
    return outputs, 0


class Machine:
    """Memory and sizes of one run."""

    def __init__(self, plan: Plan, env: Mapping[Atom, int], inputs: list, outputs: list):
        self.plan, self.env = plan, env
        self.memory: dict[Buffer, np.ndarray] = {}
        for b in plan.buffers():
            if b.kind == "input":
                self.memory[b] = inputs[b.number].reshape(-1)
            elif b.kind == "output":
                self.memory[b] = outputs[b.number].reshape(-1)
            elif b.kind == "const":
                self.memory[b] = b.value.reshape(-1)
            else:
                count = int(np.prod([shapes.evaluate(s, env) for s in plan.shapes[b]], dtype=int))
                self.memory[b] = np.full(count + _SLACK, 77, b.dtype)  # never read before written

    def body(self, nodes: list, values: dict) -> None:
        """Run the nodes of a body; `values` holds the locals by name."""
        for node in nodes:
            _RUN[type(node)](self, node, values)

    def atom(self, a: Scalar, values: dict) -> object:
        """Return the value of an atom."""
        return a.dtype.type(a.args[0]) if a.prim == "const" else values[a.args[0]]

    def element(self, buffer: Buffer, offset: object) -> object:
        """Return an element."""
        memory = self.memory[buffer]
        if not 0 <= offset < memory.size:
            raise IndexError(f"{buffer}: offset {offset} of {memory.size}")
        return memory[int(offset)]

    def let(self, node: ir.Let, values: dict) -> None:
        """Apply one primitive."""
        e = node.value
        if e.prim == "dim":
            out = self.env[e.args[0]]
        else:
            out = self.apply(e.prim, [self.atom(a, values) for a in e.args])
        values[node.local.args[0]] = np.asarray(out).astype(node.local.dtype)[()]

    def apply(self, prim: str, args: list) -> object:
        """Return a primitive of values."""
        if prim in ("cast", "copy"):
            return args[0]
        if prim in ir.INDEX_PRIMS:
            return ir.INDEX_PRIMS[prim](*map(int, args))
        with np.errstate(all="ignore"):
            return PRIMS[prim].reference(*args)

    def combined(self, monoid: str | None, old: object, new: object) -> object:
        """Return what a register or element becomes."""
        if monoid is None:
            return new
        if monoid in ("rawmax", "rawmin"):
            return new if (new > old if monoid == "rawmax" else new < old) else old
        return self.apply(MONOIDS[monoid], [old, new])

    def accumulate(self, node: ir.Accumulate, values: dict) -> None:
        """Change a register."""
        name = node.local.args[0]
        new = self.combined(node.monoid, values[name], self.atom(node.value, values))
        values[name] = np.asarray(new).astype(node.local.dtype)[()]

    def write(self, node: ir.Store | ir.Update, values: dict) -> None:
        """Change an element."""
        memory, offset = self.memory[node.buffer], int(self.atom(node.offset, values))
        if not 0 <= offset < memory.size:
            raise IndexError(f"{node.buffer}: offset {offset} of {memory.size}")
        monoid = node.monoid if isinstance(node, ir.Update) else None
        with np.errstate(all="ignore"):
            memory[offset] = self.combined(monoid, memory[offset], self.atom(node.value, values))

    def loop(self, node: ir.For, values: dict) -> None:
        """Run a loop; a simd loop runs backwards, since its order must not matter."""
        order = range(int(self.atom(node.extent, values)))
        for i in reversed(order) if node.kind == "simd" else order:
            values[node.counter.args[0]] = np.int64(i)
            try:
                self.body(node.body, values)
            except _Left:
                break

    def fail(self, node: ir.Fail, values: dict) -> None:
        """Leave when a condition holds."""
        if self.atom(node.condition, values):
            raise _Failed(node.code)

    def leave(self, node: ir.Break, values: dict) -> None:
        """Leave the loop when a condition holds."""
        if self.atom(node.condition, values):
            raise _Left

    def invoke(self, node: ir.Invoke, values: dict) -> None:
        """Run a library routine."""
        sizes = [int(self.atom(s, values)) for s in node.sizes]
        if node.native is not None:
            self._native(node, sizes)
            return
        memory = [self.memory[b] for b in node.buffers]
        results, operands = memory[: node.results], memory[node.results :]
        out = results[0] if len(results) == 1 else results
        if not ROUTINES[node.name](out, operands, sizes):
            raise _Failed(node.code)

    def _native(self, node: ir.Invoke, sizes: list[int]) -> None:
        """Call a function of somebody else."""
        given, types, rest = [], [], iter(sizes)
        for p in node.native.parameters:
            scalar_type = np.ctypeslib.as_ctypes_type(np.dtype(p.dtype))
            types.append(scalar_type if p.kind in ("size", "value") else ctypes.c_void_p)
            if p.kind == "size":
                given.append(next(rest))
            else:
                k = p.of + (0 if p.kind == "output" else node.results)
                memory = self.memory[node.buffers[k]]
                given.append(memory[0].item() if p.kind == "value" else memory.ctypes.data)
        result = ctypes.c_int if node.native.coded else None
        function = ctypes.CFUNCTYPE(result, *types)(node.native.code.address(node.native))
        if function(*given):
            raise _Failed(node.code)


def _load(machine: Machine, node: ir.Load, values: dict) -> None:
    offset = machine.atom(node.offset, values)
    values[node.local.args[0]] = machine.element(node.buffer, offset)


def _init(machine: Machine, node: ir.Init, values: dict) -> None:
    values[node.local.args[0]] = machine.atom(node.value, values)


_RUN = {
    ir.Let: Machine.let,
    ir.Load: _load,
    ir.Store: Machine.write,
    ir.Update: Machine.write,
    ir.Init: _init,
    ir.Accumulate: Machine.accumulate,
    ir.For: Machine.loop,
    ir.Break: Machine.leave,
    ir.Fail: Machine.fail,
    ir.Invoke: Machine.invoke,
}
