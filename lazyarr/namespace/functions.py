"""The functions of the standard, made from the catalogue, and the few that are no op.

A function takes Arrays, XTensors, NumPy arrays and Python numbers; the result is an XTensor when an
operand is one. Signatures are the standard's.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyarr.errors import ArgumentError, ChoiceError, ConcretizationError, ShapeError
from lazyarr.graph import dtypes
from lazyarr.graph.node import UNSET, Variable, on_native
from lazyarr.graph.ops._declare import axis_of, shape_of
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.shapes import Size, broadcast
from lazyarr.namespace import xtensor_functions
from lazyarr.namespace.array import Array, recorder, unwrap
from lazyarr.namespace.conversion import asarray  # noqa: F401 - found here too
from lazyarr.namespace.xtensor import XTensor, elementwise, labelled_recorder, of_one, wrap_named
from lazyarr.namespace.xtensor_data import is_labelled

ELEMENTWISE = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor",
    "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan",
    "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
)  # fmt: skip
STATISTICAL = (
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var",
    "all", "any", "argmax", "argmin", "count_nonzero", "diff",
)  # fmt: skip
MANIPULATION = (
    "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims",
    "reshape", "roll", "squeeze", "stack", "tile",
)  # fmt: skip
CREATION = ("arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones",
            "ones_like", "zeros", "zeros_like")  # fmt: skip
OTHERS = ("argsort", "astype", "isin", "matmul", "searchsorted", "sort", "take", "take_along_axis",
          "tensordot", "tril", "triu", "vecdot", "where")  # fmt: skip
LINALG = (
    "cholesky", "cross", "det", "diagonal", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "solve", "solve_triangular",
    "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
)  # fmt: skip
FFT = (
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
)  # fmt: skip
SPECIAL = (
    "beta", "betainc", "betaln", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "expit",
    "gamma", "gammainc", "gammaincc", "gammaln", "log1mexp", "log_expit", "log_ndtr",
    "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "polygamma", "rel_entr", "softmax",
    "softplus", "xlog1py", "xlogy",
)  # fmt: skip
# Keywords that may hold arrays.
_VALUES = frozenset({"min", "max", "prepend", "append", "sorter", "rtol", "shift", "d"})
_NO_OPERAND = frozenset(n for n in CREATION if not n.endswith("_like")) | {"fftfreq", "rfftfreq"}


def wrap(variable: Variable, operands: tuple) -> object:
    """Return the handle of a result; named results take coords and attrs from the operands."""
    return wrap_named(variable, operands) if variable.type.named else Array(variable)


def _unwrapped(value: object) -> object:
    cls = value.__class__
    if cls is Array:
        return value._v
    if cls in (str, tuple, int, type(None), type) or isinstance(value, np.dtype):
        return value
    if cls is list and value and all(v.__class__ is int for v in value):
        return value  # axes, sizes; an operand that is a list is converted by the op
    if cls is not XTensor and is_labelled(value):  # an xr.DataArray keeps its dims
        return XTensor(value)._v
    return unwrap(value)


def function_of(name: str) -> Callable:
    """Make the public function of an op."""
    record = OPS[name]
    if record.kind == "elementwise" and name not in ("astype", "where", "polygamma", "betainc"):
        return described(_elementwise(record), name)
    if name in _NO_OPERAND:
        return described(_creating(record), name)
    if name in ("concat", "stack"):
        return described(_joining(record), name)

    def call(*args, **kwargs):
        if kwargs:
            if "device" in kwargs:
                _check_device(kwargs.pop("device"))
            if kwargs.get("out", ...) is None:  # NumPy's words
                del kwargs["out"]
            if "ddof" in kwargs:
                kwargs["correction"] = kwargs.pop("ddof")
            for k in _VALUES.intersection(kwargs):
                kwargs[k] = _unwrapped(kwargs[k])
        elif name == "where" and any(a.__class__ is XTensor for a in args):
            return xtensor_functions.where(*args)
        return wrap(record(*[_unwrapped(a) for a in args], **kwargs), args)

    return described(_remembered(call) if record.kind in _OF_ONE_ARRAY else call, name)


_OF_ONE_ARRAY = frozenset({"reduction", "cumulative", "movement"})
_MEMO_LIMIT = 4096


def _remembered(call: Callable) -> Callable:
    """A function of one array that records at once what it has recorded for the same type."""
    known: dict = {}

    def remembered(x, /, *args, **kwargs):
        if x.__class__ is not Array:
            return call(x, *args, **kwargs)
        v = x._v
        key = (v.type, args, tuple(kwargs.items())) if args or kwargs else v.type
        try:
            found = known.get(key)
        except TypeError:  # an argument that is no static value
            return call(x, *args, **kwargs)
        if found is not None:
            return Array(Variable(found[1], (found[0], v)))
        out = call(x, *args, **kwargs)
        if out.__class__ is Array and out._v.expr is not None and out._v.expr[1:] == (v,):
            if len(known) > _MEMO_LIMIT:
                known.clear()
            known[key] = (out._v.expr[0], out._v.type)
        return out

    return _recorded(remembered)


def _recorded(python: Callable, labelled: bool = False) -> Callable:
    """A function of arrays alone that compiled code records for, once it is there.

    labelled: of an XTensor too.
    """
    record = python

    def install(native: Any) -> None:
        nonlocal record
        record = recorder(native, labelled_recorder(native, python) if labelled else python)

    def unary(x, /):
        return record(x)

    def binary(x1, x2, /):
        return record(x1, x2)

    def unary_with_more(x, /, *args, **kwargs):
        return python(x, *args, **kwargs) if args or kwargs else record(x)

    on_native(install)
    count = python.__code__.co_posonlyargcount
    if python.__code__.co_flags & inspect.CO_VARARGS:
        return unary_with_more
    return unary if count == 1 else binary


def _check_device(device: object) -> None:
    if device not in (None, "cpu"):
        raise ChoiceError(f"unknown device {device!r}; arrays live on 'cpu'.")


def _creating(record) -> Callable:
    """A function of shapes and values, on a device."""

    def create(*args, device=None, **kwargs):
        _check_device(device)
        kwargs = {k: _size_or_value(v) for k, v in kwargs.items()}
        return Array(record(*(_size_or_value(a) for a in args), **kwargs))

    return create


def _joining(record) -> Callable:
    """A function of a sequence of arrays."""

    def join(arrays, /, **kwargs):
        handles = tuple(arrays)
        if any(isinstance(a, XTensor) for a in handles):
            return getattr(xtensor_functions, record.name)(handles, **kwargs)
        return wrap(record([unwrap(a) for a in handles], **kwargs), handles)

    return join


def _elementwise(record) -> Callable:
    """A function of one or two arrays, by the shortest way."""

    bare, memo = record.bare, record.memo

    def unary(x, /):
        if x.__class__ is Array:
            v = x._v
            found = memo.get((bare, (v.type,)))
            if found is not None:
                return Array(Variable(found, (bare, v)))
            return Array(record(v))
        if x.__class__ is XTensor:
            return of_one(record, x)
        return wrap(record(_unwrapped(x)), (x,))

    def binary(x1, x2, /):
        if x1.__class__ is Array and x2.__class__ is Array:
            a, b = x1._v, x2._v
            found = memo.get((bare, (a.type, b.type)))
            if found is not None:
                return Array(Variable(found, (bare, a, b)))
            return Array(record(a, b))
        if x1.__class__ is XTensor or x2.__class__ is XTensor:  # labels may have to be joined
            return elementwise(record.name, x1, x2)
        return wrap(record(_unwrapped(x1), _unwrapped(x2)), (x1, x2))

    one = len(inspect.signature(record.prepare).parameters) == 1
    return _recorded(unary, labelled=True) if one else _recorded(binary)


def described(call: Callable, name: str) -> Callable:
    """Give a function the name, signature and text of its op."""
    record = OPS[name]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = record.doc
    call.__signature__ = _signature(record.prepare, name)
    call.__module__ = "lazyarr"
    return call


def _signature(prepare: Callable, name: str) -> inspect.Signature:
    """The standard's signature: that of the declaration, with `device` for creation functions."""
    found = inspect.signature(prepare)
    if name in CREATION or name in _NO_OPERAND or name == "astype":
        device = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None)
        found = found.replace(parameters=[*found.parameters.values(), device])
    return found


def _size_or_value(value: object) -> object:
    """Return an argument of a creation function: shapes stay as they are, values are unwrapped."""
    if isinstance(value, Array):
        return value._v if value.ndim == 0 and value._v.value is UNSET else value.compute()[()]
    return value


def result_type(*arrays_and_dtypes: object) -> np.dtype:
    """Return the dtype that promotion gives."""
    strong, weak = [], []
    for x in arrays_and_dtypes:
        if isinstance(x, Array | XTensor | np.ndarray | np.generic):
            strong.append(x.dtype)
        elif isinstance(x, bool | int | float | complex):
            weak.append(type(x))
        else:
            strong.append(dtypes.as_dtype(x))
    if not strong:
        raise ArgumentError("result_type needs at least one array or dtype.")
    out = strong[0]
    for d in strong[1:]:
        out = dtypes.promote(out, d)
    for kind in weak:
        out = dtypes.weak(out, kind)
    return out


def can_cast(from_: object, to: object, /) -> bool:
    """Tell whether promotion could turn one dtype into another."""
    source = from_.dtype if isinstance(from_, Array) else dtypes.as_dtype(from_)
    return dtypes.promote(source, dtypes.as_dtype(to)) == to


def isdtype(dtype: object, kind: object) -> bool:
    """Tell whether a dtype is another, or of a kind of the standard."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        sets = {
            "bool": (dtypes.bool_,),
            "signed integer": dtypes.SIGNED,
            "unsigned integer": dtypes.UNSIGNED,
            "integral": dtypes.SIGNED + dtypes.UNSIGNED,
            "real floating": dtypes.REAL,
            "complex floating": dtypes.COMPLEX,
            "numeric": dtypes.ALL[1:],
        }
        if kind not in sets:
            raise ChoiceError(f"{kind!r} is no kind of dtype; use one of {', '.join(sets)}.")
        return dtype in sets[kind]
    return dtype == kind


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: object, /) -> FloatInfo:
    """Return the limits of a floating dtype; of a complex one those of its parts."""
    found = np.finfo(type.dtype if isinstance(type, Array) else dtypes.as_dtype(type))
    limits = (found.eps, found.max, found.min, found.smallest_normal)
    return FloatInfo(found.bits, *map(float, limits), found.dtype)


def iinfo(type: object, /) -> IntegerInfo:
    """Return the limits of an integer dtype."""
    found = np.iinfo(type.dtype if isinstance(type, Array) else dtypes.as_dtype(type))
    return IntegerInfo(found.bits, int(found.max), int(found.min), found.dtype)


def broadcast_arrays(*arrays: object) -> tuple:
    """Return arrays broadcast to their common shape."""
    each = [unwrap(a) for a in arrays]
    shape = broadcast(*(v.shape for v in each))
    return tuple([Array(op.broadcast_to(v, shape)) for v in each])


def broadcast_shapes(*shapes: tuple) -> tuple:
    """Return the shape that arrays of shapes have when broadcast together."""
    return broadcast(*(shape_of(s) for s in shapes))


def unstack(x, /, *, axis=0) -> tuple:
    """Return the arrays of which x is the stack along an axis."""
    v = unwrap(x)
    axis = axis_of(v, axis)
    n = v.type.shape[axis]
    if isinstance(n, Size):
        raise ConcretizationError(
            f"unstack needs a size that is known while recording; axis {axis} of {v!r} is symbolic."
        )
    return tuple([Array(op.basic_index(v, (*[slice(None)] * axis, i))) for i in range(n)])


def meshgrid(*arrays: object, indexing: str = "xy") -> tuple:
    """Return coordinate arrays of a grid from vectors; "xy" exchanges the first two axes."""
    if indexing not in ("xy", "ij"):
        raise ChoiceError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}.")
    each = [unwrap(a) for a in arrays]
    if any(v.type.ndim > 1 for v in each):
        raise ShapeError("meshgrid takes vectors.")
    n = len(each)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[:2] = [1, 0]
    each = [op.reshape(v, (-1,)) for v in each]
    wide = [
        op.reshape(v, tuple(v.type.shape[0] if k == order[i] else 1 for k in range(n)))
        for i, v in enumerate(each)
    ]
    shape = broadcast(*(v.type.shape for v in wide))
    return tuple([Array(op.broadcast_to(v, shape)) for v in wide])
