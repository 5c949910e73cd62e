"""Which nodes the loop family can lower."""

from lazyarr.backends.loop.build import BUILDERS
from lazyarr.backends.loop.rules import rule_of
from lazyarr.graph.node import Variable
from lazyarr.graph.types import TensorType, TupleType, Type

DTYPES = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())


def supports(node: Variable) -> bool:
    """Tell whether a node can be part of a compiled program: real dtypes, a rule for it."""
    op = node.op
    if op is None or op.name == "pick":
        return plain(node.type)
    operands = [x.type for x in node.inputs if isinstance(x, Variable)]
    if not all(map(plain, (node.type, *operands))):
        return False
    if any(isinstance(x, complex) for x in node.inputs):
        return False
    if op.kind == "control":
        body = node.params.get("body")
        return op.name in BUILDERS and all(map(supports, body.toposort()))
    if op.kind == "elementwise":
        return op.formula is not None
    if op.kind == "movement" and op.name not in BUILDERS:
        return op.name == "reshape" or op.index is not None
    return op.name in BUILDERS or op.kind in BUILDERS or rule_of(node) is not None


def plain(type_: Type) -> bool:
    """Tell whether a type is a positional array of a dtype with a C type, or a tuple of such."""
    if isinstance(type_, TupleType):
        return all(map(plain, type_.types))
    return isinstance(type_, TensorType) and type_.dtype.name in DTYPES
