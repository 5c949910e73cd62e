"""Functions of others that a compiled program calls itself, on its own memory.

Operands lie in C-contiguous buffers, results in fresh ones. A function that overwrites an operand
gets the operand itself where it is a temporary that nobody else reads, and a copy otherwise; an
output that may lie in the memory of an operand lies there on the same condition.
"""

from lazyarr.backends.loop.library import whole
from lazyarr.backends.loop.lower import Scope, View, copy_into
from lazyarr.backends.loop.notation import Buffer, Routine
from lazyarr.errors import LazyArrError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import Native


def build_foreign(scope: Scope, node: Variable) -> None:
    """Append the call of a native function."""
    native: Native = node.params["function"].native(node)
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
