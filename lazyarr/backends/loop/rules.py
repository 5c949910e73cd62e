"""How one element of a node follows from elements of its operands: a rule per kind.

A rule is a generator: it yields requests `(operand, index)`, receives the scalar of each, and
returns the scalar of the node at its own index. So nothing recurses, however deep the graph is, and
a gather may ask for its indices before it knows which element of its source it wants.
"""

from collections.abc import Generator

import numpy as np

from lazyarr.backends.loop.affine import ZERO, Affine, Dynamic, of
from lazyarr.backends.loop.notation import Position
from lazyarr.graph import dtypes, scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.scalar import Scalar
from lazyarr.graph.shapes import Size

INT64 = np.dtype("int64")
Rule = Generator[tuple, Scalar, Scalar]


def position(index: Affine) -> Scalar:
    """Return the int64 scalar of an index; a constant where it is one."""
    if not index.terms and isinstance(index.const, int):
        return scalar.const(index.const, INT64)
    if len(index.terms) == 1 and index.const == 0 and index.terms[0][1] == 1:
        key = index.terms[0][0]
        if isinstance(key, Dynamic):
            return key.value
    return scalar.var(Position(index), INT64)


def as_index(value: Scalar) -> Affine:
    """Return an int scalar as an index; positions stay affine."""
    value = scalar.cast(value, INT64)
    if value.prim == "const":
        return of(value.args[0])
    if value.prim == "var" and isinstance(value.args[0], Position):
        return value.args[0].index
    return of(Dynamic(value))


def raw(value: object, dtype: np.dtype | None) -> Scalar:
    """Return a Python number or a size as a scalar of a dtype (None: its default)."""
    if isinstance(value, Size):
        out = position(of(value))
        return out if dtype is None else scalar.cast(out, dtype)
    return scalar.const(value, dtype or dtypes.DEFAULTS[value.__class__])


def aligned(scope, operand: Variable, index: tuple, shape: tuple) -> tuple:
    """Return the index of a broadcast operand for an index of the result."""
    own = scope.shape(operand)
    tail = index[len(shape) - len(own) :]
    return tuple(ZERO if s == 1 else i for s, i in zip(own, tail, strict=True))


def elementwise(scope, node: Variable, index: tuple) -> Rule:
    """The formula of the op on the operands at the same place, broadcast."""
    op, shape, args = node.op, scope.shape(node), []
    compute = op.compute_dtype(node)
    for k, x in enumerate(node.inputs):
        target = compute if op.promoted is None or k in op.promoted else None
        if x.__class__ is not Variable:
            args.append(raw(x, target))
            continue
        value = yield x, aligned(scope, x, index, shape)
        args.append(value if target is None else scalar.cast(value, target))
    if op.name == "absorb" and compute.kind == "f":
        out = scalar.absorb(*args)  # a branch in serial code, comparisons in vectors
    else:
        out = op.formula(*args, **node.params)
    if op.check is not None:
        holds = op.check.formula(*args)
        scope.add_check(holds, op.check)
        out = scalar.select(holds, out, scalar.const(0, out.dtype))
    return scalar.cast(out, node.dtype)


def movement(scope, node: Variable, index: tuple) -> Rule:
    """The operand at the place that the index map tells."""
    inner = []
    for m in node.op.index(node):
        form = yield from _amount(m.start)
        if m.out_axis is not None:
            step = yield from _amount(m.step)
            outer = index[m.out_axis]
            if step.terms:
                form = form + as_index(scalar.mul(position(outer), position(step)))
            else:
                form = form + outer * scope.sizes.canon(step.const)
        inner.append(Affine(form.terms, scope.sizes.canon(form.const)))
    operand = node.inputs[0]
    inner = tuple(
        ZERO if s == 1 and node.op.name == "broadcast_to" else i
        for s, i in zip(scope.shape(operand), inner, strict=True)
    )
    return (yield operand, inner)


def _amount(value: object) -> Generator[tuple, Scalar, Affine]:
    if value.__class__ is Variable:
        return as_index((yield value, ()))
    return of(value)


def relabel(scope, node: Variable, index: tuple) -> Rule:
    """A reshape that only adds or drops axes of size 1."""
    operand = node.inputs[0]
    kept = iter(i for i, s in zip(index, scope.shape(node), strict=True) if s != 1)
    return (yield operand, tuple(ZERO if s == 1 else next(kept) for s in scope.shape(operand)))


def take(scope, node: Variable, index: tuple) -> Rule:
    """The source at an index that is itself an element."""
    source, indices = node.inputs[:2]
    axis, rank = node.params["axis"], indices.ndim
    where = yield indices, index[axis : axis + rank]
    return (yield source, (*index[:axis], as_index(where), *index[axis + rank :]))


def full(scope, node: Variable, index: tuple) -> Rule:
    """The fill value."""
    value = node.inputs[0]
    if value.__class__ is Variable:
        return scalar.cast((yield value, ()), node.dtype)
    return raw(value, node.dtype)


def arange(scope, node: Variable, index: tuple) -> Rule:
    """start + step * i, computed in int64 or float64 and cast."""
    start, step = node.inputs[:2]
    if node.dtype.kind in "iu" and isinstance(step, int) and isinstance(start, int | Size):
        return scalar.cast(position(index[0] * step + scope.sizes.canon(start)), node.dtype)
    wide = INT64 if node.dtype.kind in "iu" else np.dtype("float64")
    i = scalar.cast(position(index[0]), wide)
    first = (yield start, ()) if start.__class__ is Variable else raw(start, wide)
    width = (yield step, ()) if step.__class__ is Variable else raw(step, wide)
    out = scalar.add(scalar.cast(first, wide), scalar.mul(scalar.cast(width, wide), i))
    return scalar.cast(out, node.dtype)


def size_value(scope, node: Variable, index: tuple) -> Rule:
    """A size as an integer."""
    return position(of(scope.sizes.canon(node.params["size"])))
    yield


BY_NAME = {
    "reshape": relabel,
    "take": take,
    "full": full,
    "arange": arange,
    "size_value": size_value,
}
BY_KIND = {"elementwise": elementwise, "movement": movement}


def rule_of(node: Variable):
    """Return the rule of a node, None when its kind cannot be computed inline."""
    return BY_NAME.get(node.op.name) or BY_KIND.get(node.op.kind)
