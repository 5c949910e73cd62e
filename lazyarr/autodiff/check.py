"""Analytic continuation: a recorded graph on complex operands, for derivatives by a complex step.

The imaginary part of f(x + ih) over h is f'(x) without any difference, so exact to rounding. What
looks at a value without a derivative (comparisons, rounding, indices) looks at its real part.

>>> import numpy as np
>>> import lazyarr.graph.ops
>>> from lazyarr.graph.evaluate import evaluate
>>> x = symbol(TensorType("float64", ()), "x")
>>> (z,), found = continued([op.exp(op.abs(x))], [x])
>>> float(evaluate(Graph([z], found), [np.array(-1 + 1e-30j)])[0].imag / 1e-30)  # -exp(1)
-2.718281828459045
"""

from collections.abc import Callable, Sequence
from typing import Any

from lazyarr.graph import dtypes
from lazyarr.graph.node import Call, Variable, symbol
from lazyarr.graph.op import NoGradient
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, toposort, with_inputs
from lazyarr.graph.types import TensorType, TupleType

__all__ = ["Graph", "continued"]

_ANALYTIC = ("numeric", "floating-point", "all")
_FLAT = frozenset({"floor", "ceil", "trunc", "round", "sign", "floor_divide"})
_PARTS = frozenset({"conj", "real", "imag"})
_KINDS = frozenset({"movement", "creation", "indexing", "contraction", "reduction", "cumulative"})
_SOLVERS = frozenset({"solve_matrix", "solve_system", "inv", "det"})


class _NoContinuation(Exception):
    """An op that is not analytic, or not known to be."""


def continued(
    outputs: Sequence[Variable], wrt: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]] | None:
    """Return complex symbols for real ones, and the outputs on them; None where an op has no
    continuation. The graph is positional.
    """
    symbols = [symbol(TensorType(_complex(v), v.shape), v.name) for v in wrt]
    done: dict[Variable, Any] = dict(zip(wrt, symbols, strict=True))
    work: list[Any] = list(reversed(toposort(outputs, stop=wrt)))
    try:
        while work:
            v = work.pop()
            if v.__class__ is tuple:  # a composite whose expansion is continued by now
                done[v[0]] = done[v[1]]
            elif v not in done:
                _visit(v, done, work)
    except _NoContinuation:
        return None
    return symbols, [done[v] for v in outputs]


def _complex(v: Variable) -> Any:
    return dtypes.promote(v.dtype, dtypes.complex64)


def _visit(v: Variable, done: dict[Variable, Any], work: list[Any]) -> None:
    if v.expr is None:
        done[v] = v
        return
    args = [done[x] if x.__class__ is Variable else x for x in v.inputs]
    if v.op.name == "with_rule":
        done[v] = args[: v.params["n_out"]]
    elif v.op.name == "pick" and isinstance(args[0], list):
        done[v] = args[0][v.params["index"]]
    elif not any(_is_complex(a) for a in args):
        done[v] = with_inputs(v, args)
    elif v.op.kind == "composite":
        expansion = v.op.expand(*v.inputs, **v.params)
        work.append((v, expansion))
        below = [x for x in v.inputs if x.__class__ is Variable]
        work.extend(reversed(toposort([expansion], stop=below)))
    else:
        done[v] = _continuation(v, args)


def _is_complex(a: Any) -> bool:
    return a.__class__ is Variable and not isinstance(a.type, TupleType) and a.dtype.kind == "c"


def _continuation(v: Variable, args: list[Any]) -> Any:
    if isinstance(v.type, TupleType):
        raise _NoContinuation
    if v.dtype.kind not in "fc" or v.op.name in _FLAT or isinstance(v.op.vjp, NoGradient):
        return v.op.apply(v.call, tuple(op.real(a) if _is_complex(a) else a for a in args))
    rule = _RULES.get(v.op.name)
    if rule is not None:
        return rule(*args)
    if v.op.combine in ("max", "min"):
        return _extreme(v, *args)
    elementwise = v.op.kind == "elementwise" and v.op.accepts in _ANALYTIC
    combining = v.op.combine in (None, "add", "mul")
    if v.op.name in _PARTS and v.inputs[0].dtype.kind == "f":
        return op.multiply(args[0], 0 if v.op.name == "imag" else 1)
    if v.op.name in _PARTS or not combining:
        raise _NoContinuation
    if not (elementwise or v.op.kind in _KINDS or v.op.name in _SOLVERS):
        raise _NoContinuation
    return _applied(v, args)


def _applied(v: Variable, args: list[Any]) -> Any:
    """The op itself, all its floating operands complex."""
    wide = next(a.dtype for a in args if _is_complex(a))
    args = [
        op.astype(a, wide) if a.__class__ is Variable and a.dtype.kind == "f" else a for a in args
    ]
    params = tuple(
        (k, _complex(v) if k == "dtype" and p is not None and p.kind == "f" else p)
        for k, p in v.params.items()
    )
    return v.op.apply(Call(v.op, params), tuple(args))


def _extreme(v: Variable, x: Any) -> Any:
    """The mean of the elements whose real part is the extreme one."""
    axis, keepdims = v.params["axis"], v.params["keepdims"]
    top = v.op.record((op.real(x),), {"axis": axis, "keepdims": True})
    hit = op.equal(op.real(x), top)
    total = op.sum(op.where(hit, x, 0), axis=axis, keepdims=keepdims)
    return op.divide(total, op.sum(op.astype(hit, top.dtype), axis=axis, keepdims=keepdims))


def _real(x: Any) -> Any:
    return op.real(x) if _is_complex(x) else x


def _chosen(first_wins: Callable[..., Any]) -> Callable[..., Any]:
    def rule(a: Any, b: Any) -> Any:
        return op.where(first_wins(_real(a), _real(b)), a, b)

    return rule


def _softplus(x: Any) -> Any:
    above = op.add(x, op.log1p(op.exp(op.negative(x))))
    return op.where(op.greater(_real(x), 0), above, op.log1p(op.exp(x)))


_RULES: dict[str, Callable[..., Any]] = {
    "abs": lambda x: op.where(op.less(op.real(x), 0), op.negative(x), x),
    "maximum": _chosen(lambda a, b: op.greater(a, b)),
    "clip_low": _chosen(lambda a, b: op.greater_equal(a, b)),
    "minimum": _chosen(lambda a, b: op.less(a, b)),
    "clip_high": _chosen(lambda a, b: op.less_equal(a, b)),
    "remainder": lambda x, y: op.subtract(
        x, op.multiply(y, op.floor(op.divide(_real(x), _real(y))))
    ),
    "xlogy": lambda x, y: op.multiply(x, op.log(y)),
    "xlog1py": lambda x, y: op.multiply(x, op.log1p(y)),
    "softplus": _softplus,
    "expit": lambda x: op.divide(1, op.add(op.exp(op.negative(x)), 1)),
    "log_expit": lambda x: op.negative(_softplus(op.negative(x))),
    "logaddexp": lambda x, y: op.add(y, _softplus(op.subtract(x, y))),
    "hypot": lambda x, y: op.sqrt(op.add(op.square(x), op.square(y))),
}
