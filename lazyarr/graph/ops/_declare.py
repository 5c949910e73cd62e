"""One call declares an op; the kinds supply what their ops have in common.

Each function here is a kind: it fills the fields of `Op` that follow from the kind (how types are
inferred, how arguments are prepared) and registers the record.
"""

import inspect
from collections.abc import Callable

import numpy as np

from lazyarr.errors import AxisError, DTypeError, ShapeError
from lazyarr.graph import dtypes, numeric, scalar, shapes
from lazyarr.graph.node import Variable, as_operand, symbol
from lazyarr.graph.op import NoGradient, Op, common_dtype
from lazyarr.graph.registry import op, register
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType


def operands_of(*values: object) -> tuple:
    """Return values as operands, at least one of them a Variable."""
    out = tuple([as_operand(v) for v in values])
    if not any(v.__class__ is Variable for v in out):
        out = (number(out[0]), *out[1:])
    return out


def number(value: object) -> Variable:
    """Return a Python number as a node of its own, which passes may fold (unlike data)."""
    return op.full((), value)


def variable_of(value: object) -> Variable:
    """Return a value as a Variable."""
    out = as_operand(value)
    return out if out.__class__ is Variable else number(out)


def axis_of(x: Variable, axis: object, extra: int = 0) -> int:
    """Return one axis as an int >= 0; a dimension name is taken for named types."""
    rank = x.type.ndim + extra
    if isinstance(axis, str) and x.type.named:
        return x.type.axis(axis)
    try:
        index = axis.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        raise AxisError(f"an axis is an int, not {axis!r}.") from None
    if not -rank <= index < rank:
        raise AxisError(f"axis {index} is out of bounds for an array with {rank} dimensions.")
    return index % rank


def axes_of(x: Variable, axis: object) -> tuple[int, ...]:
    """Return axes (None: all; an int, a name, or several) as a sorted tuple of ints >= 0."""
    if axis is None or axis is ...:
        return tuple(range(x.type.ndim))
    many = axis if isinstance(axis, tuple | list) else (axis,)
    found = [axis_of(x, a) for a in many]
    if len(set(found)) != len(found):
        raise AxisError(f"axis {axis} names a dimension twice.")
    return tuple(sorted(found))


def shape_of(shape: object, inferred: bool = False) -> tuple:
    """Return a shape given as an int, a Size or a sequence of them; None is refused.

    A size below 0 is refused, unless one may be inferred (-1).
    """
    many = shape if isinstance(shape, tuple | list) else (shape,)
    out = []
    for s in many:
        if s is None:
            raise ShapeError(
                "a shape with None cannot be used as a size; use `x.sizes` instead of `x.shape`."
            )
        size = s if isinstance(s, Size) else int(s.__index__())
        if isinstance(size, int) and size < 0 and not (inferred and size == -1):
            raise ShapeError(f"a size cannot be {size}, as in shape {shape}.")
        out.append(size)
    return tuple(out)


def check_category(dtype, accepts: str) -> None:
    """Raise DTypeError when a dtype is outside a category of the standard."""
    if dtype not in dtypes.CATEGORIES[accepts]:
        raise DTypeError(f"takes {accepts} dtypes, got {dtype}; cast with astype.")


def _infer_elementwise(op: Op, types: tuple, params: dict) -> TensorType:
    dtype = common_dtype(op, types)
    check_category(dtype, op.accepts)
    shape = shapes.broadcast(*(t.shape for t in types if not isinstance(t, type)))
    return TensorType(result_dtype(op, dtype, params), shape)


def result_dtype(op: Op, dtype, params: dict):
    """Return the dtype of an elementwise result from the dtype it computes in."""
    if op.result == "bool":
        return dtypes.bool_
    if op.result == "real":
        return dtypes.real_of(dtype)
    return params["dtype"] if op.result == "given" else dtype


def _prepare1(x, /):
    return ((x,) if x.__class__ is Variable else operands_of(x)), {}


def _prepare2(x1, x2, /):
    if x1.__class__ is Variable and x2.__class__ is Variable:
        return (x1, x2), {}
    return operands_of(x1, x2), {}


def _prepare3(x1, x2, x3, /):
    return operands_of(x1, x2, x3), {}


_PREPARE = {1: _prepare1, 2: _prepare2, 3: _prepare3}


def _arity(formula: Callable) -> int:
    """The number of scalars that a formula takes."""
    known = getattr(formula, "arity", None)
    if known is not None:
        return known
    signature = inspect.signature(formula)
    return sum(p.kind is not p.KEYWORD_ONLY for p in signature.parameters.values())


def by_formula(formula: Callable) -> Callable:
    """Return the meaning in NumPy of a formula, with its parameters."""

    def reference(*arrays, **params):
        arrays = [np.asarray(a) for a in arrays]
        names = [scalar.var(i, a.dtype) for i, a in enumerate(arrays)]
        expression = formula(*names, **params)
        return np.asarray(scalar.evaluate(expression, dict(enumerate(arrays))))

    return reference


def elementwise(name: str, *, formula: Callable | None, doc: str, **fields: object) -> Op:
    """Declare an op that maps each element by a scalar formula, with broadcasting.

    A formula None with the fact "by_reference" runs on the host on every backend. `accepts` is the
    standard's category of the dtype it computes in; `result` is "promote", "bool",
    "real" or "given" (parameter dtype); `vjp(g, y, *operands)` gives cotangents before `sum_to`.
    """
    if "prepare" not in fields:
        fields["prepare"] = _PREPARE[_arity(formula)]
    return register(
        Op(name, "elementwise", infer=_infer_elementwise, formula=formula, doc=doc, **fields)
    )


def _infer_reduction(op: Op, types: tuple, params: dict) -> TensorType:
    (t,) = types
    check_category(t.dtype, op.accepts)
    axis, keep = params["axis"], params["keepdims"]
    if op.combine in ("max", "min", "argmax", "argmin"):
        for a in axis:
            if t.shape[a] == 0:
                raise AxisError(f"axis {a} of shape {t.shape} is empty; it has no {op.combine}.")
    dtype = params.get("dtype") or {"and": dtypes.bool_, "or": dtypes.bool_}.get(op.combine)
    if op.combine in ("argmax", "argmin"):
        dtype = dtypes.int64
    shape = tuple(1 if i in axis else s for i, s in enumerate(t.shape) if keep or i not in axis)
    return TensorType(dtype or t.dtype, shape)


def reduction(**fields: object) -> Callable:
    """Declare a reduction: the decorated function is its signature and normalises its arguments."""

    def declare(prepare: Callable) -> Op:
        name = fields.pop("name", prepare.__name__)
        fields.setdefault("reference", numeric.REDUCE[fields["combine"]])
        return register(
            Op(name, "reduction", prepare, _infer_reduction, inspect.getdoc(prepare), **fields)
        )

    return declare


def _infer_cumulative(op: Op, types: tuple, params: dict) -> TensorType:
    (t,) = types
    check_category(t.dtype, op.accepts)
    shape = list(t.shape)
    if params["include_initial"]:
        shape[params["axis"]] = shape[params["axis"]] + 1
    return TensorType(params["dtype"] or t.dtype, tuple(shape))


def cumulative(**fields: object) -> Callable:
    """Declare a cumulative op: running combination along one axis."""

    def declare(prepare: Callable) -> Op:
        doc = inspect.getdoc(prepare)
        fields.setdefault("reference", numeric.ACCUMULATE[fields["combine"]])
        return register(
            Op(prepare.__name__, "cumulative", prepare, _infer_cumulative, doc, **fields)
        )

    return declare


def declare(kind: str, **fields: object) -> Callable:
    """Declare an op of any other kind; `infer` is `(types, params) -> Type` without the op."""
    infer = fields.pop("infer")

    def run(prepare: Callable) -> Op:
        name = fields.pop("name", prepare.__name__)
        return register(
            Op(
                name,
                kind,
                prepare,
                lambda op, types, params: infer(types, params),
                inspect.getdoc(prepare),
                **fields,
            )
        )

    return run


def _infer_composite(record: Op, types: tuple, params: dict):
    """The type of the expansion, found by expanding symbols of the operand types once."""
    args = [t(1) if isinstance(t, type) and t in dtypes.SCALARS else symbol(t) for t in types]
    if record.accepts != "all":
        dtype = types[0].dtype
        floats = record.accepts.endswith("floating-point")
        check_category(dtypes.floating(dtype) if floats else dtype, record.accepts)
    return record.expand(*args, **params).type


def composite(*, expand: Callable, **fields: object) -> Callable:
    """Declare an op by its expansion `expand(*operands, **params) -> Variable`."""

    def declare(prepare: Callable) -> Op:
        name = fields.pop("name", prepare.__name__)
        doc = inspect.getdoc(prepare)
        return register(
            Op(name, "composite", prepare, _infer_composite, doc, expand=expand, **fields)
        )

    return declare


def no_gradient(reason: str) -> NoGradient:
    """State why an op has no derivative."""
    return NoGradient(reason)
