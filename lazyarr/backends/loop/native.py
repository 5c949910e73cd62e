"""Functions of others that a compiled program calls itself, on its own memory.

Operands lie in C-contiguous buffers, results in fresh ones. A function that overwrites an operand
gets the operand itself where it is a temporary that nobody else reads, and a copy otherwise; an
output that may lie in the memory of an operand lies there on the same condition. In the bodies of
loops also what only Python can call is called, through a callback.
"""

import ctypes
import math
from dataclasses import dataclass

import numpy as np

from lazyarr.backends.loop.library import whole
from lazyarr.backends.loop.lower import Scope, View, copy_into
from lazyarr.backends.loop.notation import Buffer, Routine
from lazyarr.errors import LazyArrError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import Callee, Layout, Native


def build_foreign(scope: Scope, node: Variable) -> None:
    """Append the call of a native function."""
    native: Native = node.params["function"].native(node) or called_back(node)
    operands, scratch = [], []
    for k, x in enumerate(node.inputs):
        if k in native.overwrites and not _is_ours(scope, x):
            buffer = _copy(scope, x)
        else:
            buffer = whole(scope, x)
        operands.append(buffer)
        if k in native.overwrites:
            scratch.append(buffer)
    outputs = [_place(scope, node, k, native, operands) for k in range(len(node.type.types))]
    sizes = tuple(scope.sizes.canon(p.of) for p in native.parameters if p.kind == "size")
    message = f"the wrapped function {native.name} returned the code of a failure."
    code = scope.program.code(LazyArrError, message) if native.coded else 0
    scope.steps.append(
        Routine(
            native.name,
            outputs[0],
            tuple(operands),
            sizes,
            code,
            native.name,
            others=tuple(outputs[1:]),
            native=native,
            scratch=tuple(scratch),
        )  # fmt: skip
    )


@dataclass(frozen=True)
class Callback:
    """A function of Python as one of C: it takes sizes and pointers, and returns 1 for an error.

    So loops are compiled around what only Python can call; the interpreter tells the error again.
    """

    callee: Callee
    layout: Layout

    def address(self, native: Native | None = None) -> int:
        """Return the address of the C function, which lives as long as this."""
        kept = self.__dict__.get("kept")
        if kept is None:
            pointers = len(self.layout.inputs) + len(self.layout.outputs)
            types = [ctypes.c_int64] * len(self.layout.sizes) + [ctypes.c_void_p] * pointers
            kept = self.__dict__["kept"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._call)
        return ctypes.cast(kept, ctypes.c_void_p).value or 0

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "kept"}

    def _call(self, *given: int) -> int:
        layout = self.layout
        env = {f"n{i}": n for i, n in enumerate(given[: len(layout.sizes)])}
        pointers = iter(given[len(layout.sizes) :])
        arrays = [
            _array(next(pointers), dtype, [env.get(s, s) for s in shape])
            for dtype, shape in (*layout.inputs, *layout.outputs)
        ]
        n = len(layout.inputs)
        try:
            found = self.callee.run(arrays[:n])
            for out, value in zip(arrays[n:], found, strict=True):
                value = np.asarray(value)
                if value.dtype != out.dtype or value.shape != out.shape:
                    return 1
                out[...] = value
        except BaseException:  # nothing may be raised through C
            return 1
        return 0


def _array(pointer: int, dtype: str, shape: list) -> np.ndarray:
    """Return the array that lies at an address."""
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(pointer)
    return np.frombuffer(memory, dtype).reshape(shape)


def called_back(node: Variable) -> Native:
    """Return how a compiled loop calls a function of Python."""
    layout, function = Layout.of(node), node.params["function"]
    return Native(str(function), layout.parameters(), Callback(function, layout), True)


def _is_ours(scope: Scope, x: Variable) -> bool:
    """Tell whether an operand is a temporary of its own memory that only this call reads."""
    if x.op is None or x not in scope.roots or x in scope.graph.outputs or scope.users[x] != 1:
        return False
    view = scope.views.get(x)
    return view is not None and not view.prefix and view.buffer.kind == "temp"


def _copy(scope: Scope, x: Variable) -> Buffer:
    fresh = View(scope.program.buffer("m", x.dtype, scope.shape(x)), scope.shape(x))
    copy_into(scope, x, fresh, label="copy for a function that overwrites it")
    return fresh.buffer


def _place(scope: Scope, node: Variable, k: int, native: Native, operands: list) -> Buffer:
    """Return where an output goes: where it is wanted, into an operand, or a fresh buffer."""
    type_ = node.type.types[k]
    shape = tuple(map(scope.sizes.canon, type_.shape))
    target = scope.targets.get((node, k))
    if target is not None and not target.prefix:
        scope.views[node, k] = target
        return target.buffer
    count = shapes.product(shape)
    for i in dict(native.aliases).get(k, ()) if target is None else ():
        x, taken = node.inputs[i], _taken(scope, node)
        fits = x.dtype == type_.dtype and shapes.product(scope.shape(x)) == count
        if fits and _is_ours(scope, x) and operands[i] not in taken:
            scope.views[node, k] = View(operands[i], shape)
            return operands[i]
    view = View(scope.program.buffer("m", type_.dtype, shape), shape)
    scope.views[node, k] = view
    if target is not None:  # part of a larger array
        picked = (v for v in scope.order if v.op is not None and v.op.name == "pick")
        mine = [v for v in picked if v.inputs[0] is node and v.params["index"] == k]
        scope.late.extend((v, target) for v in mine[:1])
    return view.buffer


def _taken(scope: Scope, node: Variable) -> list[Buffer]:
    """Return the buffers in which outputs of a node lie already."""
    numbers = range(len(node.type.types))
    return [scope.views[node, k].buffer for k in numbers if (node, k) in scope.views]
