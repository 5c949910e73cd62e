"""Which nodes the loop family can lower."""

from collections.abc import Callable, Set

import numpy as np

from lazyarr.backends.loop.build import BUILDERS
from lazyarr.backends.loop.library import ROWS
from lazyarr.backends.loop.rules import rule_of
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import knows_sizes
from lazyarr.graph.types import TensorType, TupleType, Type

REAL = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
COMPLEX = frozenset(("complex64", "complex128"))


def supports(
    node: Variable,
    has_routine: Callable[[str, np.dtype], bool],
    complex_prims: Set[str] = frozenset(),
) -> bool:
    """Tell whether a node can be part of a compiled program: dtypes with a C type, a rule for it.

    `has_routine(name, dtype)` tells which library routines there are. `complex_prims` are the
    primitives that the printer has for complex numbers; without any it takes none.
    """
    op = node.op
    known = REAL | COMPLEX if complex_prims else REAL
    if op is None or op.name == "pick":
        return plain(node.type, known)
    operands = [x.type for x in node.inputs if isinstance(x, Variable)]
    if not all(plain(t, known) for t in (node.type, *operands)):
        return False
    if any(isinstance(x, complex) for x in node.inputs) and not complex_prims:
        return False
    if op.kind == "control":
        steps = node.params["body"].toposort() if "body" in node.params else ()
        return op.name in BUILDERS and all(
            called_back(v) or supports(v, has_routine, complex_prims) for v in steps
        )
    if op.name == "foreign":
        real = all(map(plain, (node.type, *operands)))
        return real and node.params["function"].native(node) is not None
    if op.kind == "library":
        row = ROWS.get(op.name)
        return row is not None and has_routine(row.routine, node.inputs[0].dtype)
    if op.kind == "elementwise":
        return op.formula is not None and (
            op.compute_dtype(node).kind != "c" or complex_prims >= _prims(node)
        )
    if op.kind == "movement" and op.name not in BUILDERS:
        return op.name == "reshape" or op.index is not None
    return op.name in BUILDERS or op.kind in BUILDERS or rule_of(node) is not None


def called_back(node: Variable) -> bool:
    """Tell whether the body of a loop may hold a node as a call of Python."""
    if node.op is None or node.op.name != "foreign":
        return False
    types = (node.type, *(x.type for x in node.inputs if isinstance(x, Variable)))
    return all(map(plain, types)) and knows_sizes(node)


def _prims(node: Variable) -> set[str]:
    """Return the primitives that an elementwise node applies to complex numbers."""
    op, args = node.op, []
    compute = op.compute_dtype(node)
    for k, x in enumerate(node.inputs):
        own = x.dtype if x.__class__ is Variable else compute
        args.append(scalar.var(k, compute if op.promoted is None or k in op.promoted else own))
    found, seen, stack = set(), set(), [op.formula(*args, **node.params)]
    while stack:
        e = stack.pop()
        if e.prim not in ("var", "const") and e not in seen:
            seen.add(e)
            if any(a.dtype.kind == "c" for a in e.args):
                found.add(e.prim)
            stack.extend(e.args)
    return found


def plain(type_: Type, known: Set[str] = REAL) -> bool:
    """Tell whether a type is a positional array of a known dtype, or a tuple of such."""
    if isinstance(type_, TupleType):
        return all(plain(t, known) for t in type_.types)
    return isinstance(type_, TensorType) and type_.dtype.name in known
