"""The interpreter: runs the reference of each op, node by node. It is the meaning of a graph.

Every backend is tested against it; checks and their errors are raised here with full detail.
"""

import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lazyarr.errors import GraphError, ShapeError
from lazyarr.graph import scalar, shapes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.shapes import Atom
from lazyarr.graph.traverse import Graph, found_first, map_sizes
from lazyarr.graph.types import TensorType, TupleType


def evaluate(graph: Graph, arrays: Sequence, env: Mapping[Atom, int] | None = None) -> list:
    """Return the values of the outputs; `env` adds sizes that no input shape tells.

    Raises what the ops' checks raise, and GraphError for a symbol that is not an input.
    """
    sizes = dict(env or {})
    tensors = [
        (v.type.shape, np.shape(a))
        for v, a in zip(graph.inputs, arrays, strict=True)
        if hasattr(v.type, "shape")
    ]
    sizes.update(shapes.bind((s for s, _ in tensors), (found for _, found in tensors)))
    values: dict[Variable, object] = dict(zip(graph.inputs, arrays, strict=True))
    order, _ = found_first(graph.toposort(), graph.inputs)
    left = _use_counts(order, graph)
    for node in order:
        if node in values:
            continue
        if node.expr is None:
            if node.is_symbol:
                raise GraphError(f"{node!r} is not an input; made at {node.where_made()}.")
            values[node] = node.value
            continue
        reference = _in_place(node, values, left)
        values[node] = run_node(node, values, sizes, reference)
        if "finds_sizes" in node.op.facts:
            bind_found(node, values[node], sizes)
        for x in node.inputs:  # drop temporaries after their last use
            if x.__class__ is Variable:
                left[x] -= 1
                if not left[x]:
                    del values[x]
    return [values[v] for v in graph.outputs]


def bind_found(node: Variable, result: object, sizes: dict[Atom, int]) -> None:
    """Add the sizes that the result of a node tells, and raise where others told differently."""
    many = isinstance(node.type, TupleType)
    types = node.type.types if many else (node.type,)
    for t, value in zip(types, result if many else (result,), strict=True):
        for expected, found in zip(t.shape, np.shape(value), strict=True):
            atom = shapes.lone_atom(expected)
            if atom is not None and atom.kind == "dim":
                expected = sizes.setdefault(atom, found)
            elif shapes.atoms(expected) <= sizes.keys():
                expected = shapes.evaluate(expected, sizes)
            else:
                continue
            if expected != found:
                raise ShapeError(
                    f"{node.op.name}: a size found while running is {found}, where {expected} is "
                    f"needed beside other arrays; made at {node.where_made()}."
                )


def _use_counts(order: Sequence[Variable], graph: Graph) -> dict[Variable, int]:
    left = dict.fromkeys(order, 0)
    given = set(graph.inputs)
    for node in order:
        if node not in given:
            for x in node.inputs:
                if x.__class__ is Variable:
                    left[x] += 1
    for v in graph.outputs:
        left[v] += 1
    return left


_HELD = 3  # references to a value: the table of values, and two while it is looked at


def _in_place(node: Variable, values: Mapping, left: Mapping[Variable, int]) -> Callable | None:
    """Return the reference that writes into the first operand, where that dies with this node.

    Nobody else may hold the array: no view of it (which would hold a reference), no input, no data.
    """
    overwrite = getattr(node.op.reference, "overwrite", None)
    if overwrite is None:
        return None
    x = node.inputs[0]
    if x.__class__ is not Variable or left[x] != 1 or x.expr is None:
        return None
    array = values[x]
    if type(array) is not np.ndarray or array.base is not None or not array.flags.writeable:
        return None
    return overwrite if sys.getrefcount(array) <= _HELD else None


def run_node(
    node: Variable,
    values: Mapping,
    sizes: Mapping[Atom, int],
    reference: Callable | None = None,
) -> object:
    """Compute one node from the values of its operands, by its reference or another one."""
    args = [
        values[x] if x.__class__ is Variable else shapes.evaluate(x, sizes) for x in node.inputs
    ]
    params = concrete_params(node, sizes)
    return apply_reference(node, args, params, reference)


def concrete_params(node: Variable, sizes: Mapping[Atom, int]) -> dict:
    """Return the parameters of a node with sizes evaluated."""
    params = node.params
    if "finds_sizes" not in node.op.facts:  # the result tells
        for name in node.op.sizes:
            params[name] = _concrete(params[name], sizes)
    return params


def _concrete(value: object, sizes: Mapping[Atom, int]) -> object:
    if isinstance(value, tuple):
        return tuple(_concrete(x, sizes) for x in value)
    if isinstance(value, Graph):
        return map_sizes(value, sizes)
    return shapes.evaluate(value, sizes)


def apply_reference(
    node: Variable, args: Sequence, params: dict, reference: Callable | None = None
) -> object:
    """Run the reference of a node's op on concrete operands; results have the node's dtypes."""
    op = node.op
    if op.reference is None and op.expand is not None:
        return _run_expansion(node, args, params)
    if op.kind == "elementwise":
        args = _cast_operands(node, args)
        if op.check is not None:
            verify(op, args)
    with np.errstate(all="ignore"):
        out = (reference or op.reference)(*args, **params)
    if isinstance(node.type, TupleType):
        return tuple(np.asarray(x, t.dtype) for x, t in zip(out, node.type.types, strict=True))
    if op.name == "pick":
        return out
    return np.asarray(out, node.dtype) if hasattr(node.type, "dtype") else node.type.filter(out)


def _run_expansion(node: Variable, args: Sequence, params: dict) -> object:
    """Compute a composite by the expansion for the concrete shapes of its operands."""
    symbols = [
        symbol(TensorType(x.type.dtype, np.shape(a))) if x.__class__ is Variable else a
        for x, a in zip(node.inputs, args, strict=True)
    ]
    given = [(v, a) for v, a in zip(symbols, args, strict=True) if v.__class__ is Variable]
    out = node.op.expand(*symbols, **params)
    return evaluate(Graph([v for v, _ in given], [out]), [a for _, a in given])[0]


def _cast_operands(node: Variable, args: Sequence) -> list:
    compute = node.op.compute_dtype(node)
    promoted = node.op.promoted
    return [
        np.asarray(a, compute) if promoted is None or i in promoted else np.asarray(a)
        for i, a in enumerate(args)
    ]


def verify(op, args: Sequence) -> None:
    """Raise the error of an op's check when its predicate fails for any element."""
    names = [f"x{i}" for i in range(len(args))]
    holds = op.check.formula(
        *(scalar.var(n, np.asarray(a).dtype) for n, a in zip(names, args, strict=True))
    )
    good = np.asarray(scalar.evaluate(holds, dict(zip(names, args, strict=True))))
    if not good.all():
        wide = np.broadcast_arrays(*args, good)
        first = np.argmin(wide[-1].ravel())
        shown = [a.ravel()[first].item() for a in wide[:-1]]
        raise op.check.error(op.check.message.format(*shown))
