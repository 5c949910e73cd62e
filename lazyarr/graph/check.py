"""Check: what must hold of every graph, verified node by node.

A pass that breaks an invariant is found where it did so, not in the machine code that follows. With
`lowered=True` a graph must also be one that a backend may see: positional and free of composites.
"""

from collections.abc import Callable
from typing import Any

from lazyarr.errors import GraphError, LazyArrError
from lazyarr.graph.node import Variable
from lazyarr.graph.op import KINDS, Op, operand_types
from lazyarr.graph.registry import OPS
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType, Type

RAW = (bool, int, float, complex, Size)
JOINS = ("reshape", "concat", "stack")


def check(graph: Graph, lowered: bool = False) -> Graph:
    """Return the graph when every invariant holds, else raise GraphError naming the node."""
    _check_ends(graph)
    for v in graph.toposort():
        if v.expr is None:
            _check_leaf(v)
            continue
        for verify in (_check_inputs, _check_fields, _check_params, _check_type):
            verify(v)
        if lowered:
            _check_lowered(v)
        if v.op.kind == "control" and "body" in v.params:
            _check_body(v, v.params["body"], lowered)
    return graph


def _fail(v: Variable, problem: str) -> None:
    made = f", made at {v.where_made()}" if v.site is not None else ""
    raise GraphError(f"{v!r}: {problem}{made}.")


def _check_ends(graph: Graph) -> None:
    for v in (*graph.inputs, *graph.outputs):
        if v.__class__ is not Variable:
            raise GraphError(f"inputs and outputs of a graph are Variables, not {v!r}.")
    for v in graph.inputs:
        if v.expr is not None:
            _fail(v, "is an input but not a leaf; replace it by a symbol first")
    if len(set(graph.inputs)) != len(graph.inputs):
        raise GraphError("a leaf is an input of the graph twice; give every input once.")
    for v in graph.missing():
        _fail(v, "is a symbol that outputs depend on, and no input; add it to the inputs")


def _check_leaf(v: Variable) -> None:
    if not v.is_data or not isinstance(v.type, TensorType):
        return
    dtype, shape = getattr(v.value, "dtype", None), getattr(v.value, "shape", ())
    if dtype != v.dtype or len(shape) != v.ndim:
        _fail(v, f"holds an array of dtype {dtype} and shape {shape}")


def _check_inputs(v: Variable) -> None:
    for x in v.inputs:
        if x.__class__ is Variable:
            if x.seq >= v.seq:
                _fail(v, f"is older than its operand {x!r}; build nodes from the leaves up")
            if isinstance(x.type, TupleType) and v.op.name != "pick":
                _fail(v, f"reads {x!r}, which has several outputs; read them by pick")
        elif x.__class__ not in RAW:
            _fail(v, f"has an operand of class {type(x).__name__}, not a Variable or plain number")


_NEEDS: dict[str, Callable[[Op], bool]] = {
    "elementwise": lambda op: op.formula is not None or "by_reference" in op.facts,
    "reduction": lambda op: op.combine is not None,
    "cumulative": lambda op: op.combine is not None,
    "movement": lambda op: op.index is not None or op.name in JOINS,
    "composite": lambda op: op.expand is not None,
}


def _check_fields(v: Variable) -> None:
    op = v.op
    if OPS.get(op.name) is not op:
        _fail(v, f"applies {op!r}, which is not the op of that name in the catalogue")
    if op.kind not in KINDS:
        _fail(v, f"has the kind {op.kind!r}, which is none of {', '.join(KINDS)}")
    needed = _NEEDS.get(op.kind)
    if needed is not None and not needed(op):
        _fail(v, f"its op lacks a field that {op.kind} ops need")


def _check_params(v: Variable) -> None:
    params = v.params
    try:
        hash(tuple(params.items()))
    except TypeError:
        _fail(v, "has parameters that cannot be hashed; use tuples for lists and slices")
    if v.op.kind in ("reduction", "cumulative"):
        axes = params["axis"] if v.op.kind == "reduction" else (params["axis"],)
        rank = v.inputs[0].ndim
        if list(axes) != sorted(set(axes)) or not all(0 <= a < rank for a in axes):
            _fail(v, f"has axis {params['axis']}, not sorted axes of {rank} dimensions")


def _check_type(v: Variable) -> None:
    types = operand_types(v)
    infer: Any = v.op.infer
    for t in types:
        if getattr(t, "named", False):
            infer = t.infer
            break
    try:
        found = infer(v.op, types, v.params)
    except LazyArrError as error:
        _fail(v, f"its operands {types} are not what {v.op.name} takes: {error}")
    if not compatible(found, v.type):
        _fail(v, f"has type {v.type}, but its operands give {found}")


def compatible(a: Type, b: Type) -> bool:
    """Tell whether two types are equal, or may be once their unknown sizes are bound."""
    if a is b:
        return True
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        same = len(a.types) == len(b.types)
        return same and all(compatible(x, y) for x, y in zip(a.types, b.types, strict=True))
    if not (isinstance(a, TensorType) and isinstance(b, TensorType)):
        return False
    return (
        a.dtype == b.dtype
        and a.ndim == b.ndim
        and all(
            m == n or isinstance(m, Size) or isinstance(n, Size)
            for m, n in zip(a.shape, b.shape, strict=True)
        )
    )


def _check_lowered(v: Variable) -> None:
    if v.op.kind == "composite":
        _fail(v, "is composite; expand it before a backend sees the graph")
    if getattr(v.type, "named", False):
        _fail(v, "has named dims; lower it to positions before a backend sees the graph")


def _check_body(v: Variable, body: Graph, lowered: bool) -> None:
    try:
        check(body, lowered)
    except GraphError as error:
        raise GraphError(f"in the body of {v!r}: {error}") from None
    given: list[Any] = [x.type if x.__class__ is Variable else None for x in v.inputs]
    n, m = v.params["n_carry"], v.params["n_carry"] + v.params["n_xs"]
    taken = [
        t.with_shape(t.shape[1:]) if t is not None and n <= i < m else t
        for i, t in enumerate(given)
    ]
    for inside, outside in zip(body.inputs, taken, strict=True):
        if outside is not None and not compatible(inside.type, outside):
            _fail(v, f"gives {outside} to {inside!r} of its body")
