"""`with_rule`: values whose derivative is stated by the user, as a graph, instead of found.

Operands are `(*values, *arguments, *captures)`; the outputs are the values. The rule is linear in
its first inputs: with mode "vjp" it makes cotangents of the floating arguments from those of the
floating values, with mode "jvp" tangents of the values from those of the arguments; then it takes
the operands. Each mode serves the other direction too, transposed. Lowering removes the node.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from lazyarr.errors import GradientError
from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.ops.control import picks
from lazyarr.graph.ops.control_reverse import is_float
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline
from lazyarr.graph.types import TupleType


def _refuse(names: list[str]) -> None:
    raise GradientError(
        f"a function with a derivative rule of its own reads {', '.join(names)} from outside, by "
        "which a derivative is taken; pass it as an argument."
    )


def _name(v: Variable) -> str:
    return repr(v.name) if v.name else f"a value made at {v.where_made()}"


def _applied(
    ctx: Any, rule: Graph, y: Variable, operands: Any, given: list[Any], towards: list[Any] | None
) -> Iterator[Any]:
    """The rule on cotangents or tangents; with `towards`, its transpose, from there to there."""
    n_out = len(y.type.types)  # type: ignore[attr-defined]
    inside = [*picks(y), *operands[n_out:]]
    if towards is None:
        return iter(inline(rule, [*given, *inside][: len(rule.inputs)]))
    at_zero = [op.zeros(v.shape, dtype=v.dtype) for v in towards]
    args = [*at_zero, *inside][: len(rule.inputs)]
    return iter(ctx.pullback(rule, args, given, range(len(at_zero))))


def _with_rule_vjp(
    ctx: Any, g: Any, y: Variable, *operands: Any, rule: Graph, mode: str, n_out: int, n_in: int
) -> list[Any]:
    captures = operands[n_out + n_in :]
    taken = [v for v in captures if ctx.alive is not None and ctx.wants(v)]
    if taken:
        _refuse(list(dict.fromkeys(map(_name, taken))))
    arguments = operands[n_out : n_out + n_in]
    floats = [v for v in arguments if is_float(v)]
    given = [g(i) for i, v in enumerate(operands[:n_out]) if is_float(v)]
    found = _applied(ctx, rule, y, operands, given, None if mode == "vjp" else floats)
    back = [next(found) if is_float(v) else None for v in arguments]
    return [None] * n_out + back + [None] * len(captures)


def _with_rule_jvp(
    ctx: Any,
    tangents: list[Any],
    y: Variable,
    *operands: Any,
    rule: Graph,
    mode: str,
    n_out: int,
    n_in: int,
) -> list[Any]:
    moved = [
        v
        for v, t in zip(operands[n_out + n_in :], tangents[n_out + n_in :], strict=True)
        if t is not None
    ]
    if moved:
        _refuse(list(dict.fromkeys(map(_name, moved))))
    values = operands[:n_out]
    given = [
        op.zeros(v.shape, dtype=v.dtype) if t is None else t
        for v, t in zip(operands[n_out:], tangents[n_out : n_out + n_in], strict=False)
        if is_float(v)
    ]
    floats = [v for v in values if is_float(v)]
    found = _applied(ctx, rule, y, operands, given, None if mode == "jvp" else floats)
    return [next(found) if is_float(v) else None for v in values]


@declare(
    "control",
    infer=lambda types, params: TupleType(types[: params["n_out"]]),
    reference=lambda *operands, rule, mode, n_out, n_in: operands[:n_out],
    vjp=_with_rule_vjp,
    jvp=_with_rule_jvp,
    sizes=("rule",),
    public=False,
)
def with_rule(
    values: Sequence[Any], arguments: Sequence[Any], captures: Sequence[Any], rule: Graph, mode: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The given values, whose derivative by the arguments is a rule of the user's."""
    operands = (*values, *arguments, *captures)
    return operands, {"rule": rule, "mode": mode, "n_out": len(values), "n_in": len(arguments)}
