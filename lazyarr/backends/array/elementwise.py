"""Elementwise ops as expressions: the scalar formula, printed as calls of the namespace's words."""

import numpy as np

from lazyarr.backends.array.text import Scope
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.scalar import PRIMS, Scalar

# Primitives whose word has another name: the standard's.
WORDS = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "neg": "negative",
    "min": "minimum",
    "max": "maximum",
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "not": "bitwise_invert",
    "shl": "bitwise_left_shift",
    "shr": "bitwise_right_shift",
    "select": "where",
}
# Formulas are written for real numbers; complex operands take the standard's function.
COMPLEX = frozenset(
    "abs acos acosh add asin asinh atan atanh conj cos cosh divide equal exp expm1 imag isfinite "
    "isinf isnan log log10 log1p log2 multiply negative not_equal positive pow real reciprocal "
    "sign sin sinh sqrt square subtract tan tanh".split()
)
_NESTING = 20  # parentheses after which an expression is given a name


def elementwise(scope: Scope, node: Variable) -> str:
    """Return the expression of an elementwise node; its check, if any, is written before."""
    op, compute = node.op, node.op.compute_dtype(node)
    operands = []
    for i, x in enumerate(node.inputs):
        dtype = operand_dtype(node, i, compute)
        operands.append((scope.arg(x, dtype), dtype))
    if op.check is not None:
        scope.check(_formula(scope, op.check.formula, operands, {})[0])
    table = scope.module.table
    if op.name in table.rows:
        return row(scope, node, [text for text, _ in operands])
    if compute.kind == "c" and op.name in COMPLEX:
        return scope.call(op.name, *(text for text, _ in operands), over=compute)
    text, used = _formula(scope, op.formula, operands, node.params, node.dtype)
    return _broadcast(scope, node, text, used)


def operand_dtype(node: Variable, i: int, compute: np.dtype) -> np.dtype:
    """Return the dtype that the formula sees of operand i: promoted, or the operand's own."""
    x, promoted = node.inputs[i], node.op.promoted
    if promoted is None or i in promoted:
        return compute
    return x.type.dtype if x.__class__ is Variable else np.asarray(x).dtype


def row(scope: Scope, node: Variable, texts: list[str]) -> str:
    """Return the call of an op's own row in the table."""
    name = f"op_{node.op.name}"
    scope.module.globals[name] = scope.module.table.rows[node.op.name]
    keywords = [f"{k}={scope.module.literal(v)}" for k, v in node.params.items()]
    return f"{name}({', '.join([*texts, *keywords])})"


def _broadcast(scope: Scope, node: Variable, text: str, used: set) -> str:
    """Broadcast a result to the node's shape where what it reads has not all of it."""
    shape = node.type.shape
    have: list = [1] * len(shape)
    for i, x in enumerate(node.inputs):
        if i in used and x.__class__ is Variable:
            for k, s in enumerate(reversed(x.type.shape), 1):
                have[-k] = s if have[-k] == 1 else have[-k]
    if all(a == 1 or b != 1 for a, b in zip(shape, have, strict=True)):
        if any(i in used and x.__class__ is Variable and x.type.ndim == len(shape)
               for i, x in enumerate(node.inputs)) or not shape:  # fmt: skip
            return text
    return scope.move("broadcast_to", text, dtype=node.dtype, shape=shape)


def _formula(scope, formula, operands, params, result=None) -> tuple[str, set]:
    """Print a formula over operands given as (text, dtype); return it and the operands it reads."""
    env = {f"x{i}": operands[i][0] for i in range(len(operands))}
    expr = formula(*(scalar.var(f"x{i}", d) for i, (_, d) in enumerate(operands)), **params)
    if result is not None:
        expr = scalar.cast(expr, result)
    text, used = printed(scope, expr, env)
    return text, {int(name[1:]) for name in used}


def printed(scope: Scope, expr: Scalar, env: dict[str, str]) -> tuple[str, set]:
    """Return a scalar expression as text, with `env` naming its variables, and those it reads.

    A part that is used twice, or nested too deeply, is assigned to a name before.
    """
    uses = _use_counts(expr)
    done: dict[Scalar, tuple[str, int]] = {}
    used: set[str] = set()
    stack = [expr]
    while stack:
        e = stack[-1]
        if e in done:
            stack.pop()
        elif missing := [a for a in _parts(e) if a not in done]:
            stack.extend(missing)
        else:
            text, depth = _one(scope, e, done, env, used)
            if e is not expr and e.prim in PRIMS and (uses[e] > 1 or depth > _NESTING):
                text, depth = scope.temporary(text), 0
            done[e] = text, depth
    return done[expr][0], used


def _parts(e: Scalar) -> tuple:
    return () if e.prim in ("const", "var") else e.args


def _use_counts(expr: Scalar) -> dict[Scalar, int]:
    uses, seen, stack = {expr: 1}, {expr}, [expr]
    while stack:
        for a in _parts(stack.pop()):
            uses[a] = uses.get(a, 0) + 1
            if a not in seen:
                seen.add(a)
                stack.append(a)
    return uses


def _one(scope: Scope, e: Scalar, done: dict, env: dict, used: set) -> tuple[str, int]:
    """Print one primitive whose arguments are printed."""
    if e.prim == "const":
        return scope.module.constant(e.args[0], e.dtype), 0
    if e.prim == "var":
        used.add(e.args[0])
        return env[e.args[0]], 0
    depth = 1 + max(done[a][1] for a in e.args)
    if e.prim == "cast":
        return scope.cast(done[e.args[0]][0], e.args[0].dtype, e.dtype), depth
    args = [(done[a][0], a.dtype) for a in e.args]
    return scope.arithmetic(WORDS.get(e.prim, e.prim), args, e.dtype), depth
