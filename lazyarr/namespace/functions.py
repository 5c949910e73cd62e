"""The functions of the standard, made from the catalogue, and the few that are no op.

A function takes Arrays, XTensors, NumPy arrays and Python numbers; the result is an XTensor when an
operand is one. Signatures are the standard's.
"""

import inspect
from collections.abc import Callable

import numpy as np

from lazyarr.errors import ArgumentError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import UNSET, Variable, data
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.types import TensorType
from lazyarr.namespace import xtensor_functions
from lazyarr.namespace import xtensor_functions
from lazyarr.namespace.array import Array, to_numpy, unwrap
from lazyarr.namespace.xtensor import XTensor, wrap_named
from lazyarr.namespace.xtensor_data import is_labelled

ELEMENTWISE = (
    "abs", "acos", "add", "asin", "atan", "bitwise_and", "bitwise_invert",
    "bitwise_or", "bitwise_xor", "ceil", "clip", "cos", "cosh", "divide",
    "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum",
    "multiply", "negative", "not_equal", "positive", "pow", "remainder", "round", "sign",
    "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
)  # fmt: skip
STATISTICAL = (
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var",
    "all", "any", "argmax", "argmin",
)  # fmt: skip
MANIPULATION = (
    "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose", "permute_dims",
    "reshape", "squeeze", "stack",
)  # fmt: skip
CREATION = ("arange", "eye", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like")
OTHERS = ("astype", "where", "take", "matmul", "tensordot", "vecdot", "tril", "triu")
LINALG = ("cholesky", "solve_triangular", "diagonal", "trace", "matmul", "tensordot", "vecdot",
          "matrix_transpose")  # fmt: skip
SPECIAL = (
    "digamma", "erf", "erfc", "expit", "gammaln", "log_expit", "log_softmax", "logsumexp",
    "softmax", "softplus", "xlog1py", "xlogy",
)  # fmt: skip


def wrap(variable: Variable, operands: tuple) -> object:
    """Return the handle of a result; named results take coords and attrs from the operands."""
    return wrap_named(variable, operands) if variable.type.named else Array(variable)


def _unwrapped(value: object) -> object:
    cls = value.__class__
    if cls is Array:
        return value._v
    if cls in (str, tuple, np.dtype, type(None), type):
        return value
    if cls is not XTensor and is_labelled(value):  # an xr.DataArray keeps its dims
        return XTensor(value)._v
    return unwrap(value)


def function_of(name: str) -> Callable:
    """Make the public function of an op."""
    record = OPS[name]
    if record.kind == "elementwise" and name not in ("astype", "where"):
        return _described(_elementwise(record), name, False)
    lists = name in ("concat", "stack")
    creates = name in CREATION and not name.endswith("_like")

    def call(*args, **kwargs):
        device = kwargs.pop("device", None)
        if device not in (None, "cpu"):
            raise ArgumentError(f"unknown device {device!r}; arrays live on 'cpu'.")
        if creates:
            return Array(record(*(_size_or_value(a) for a in args), **kwargs))
        if lists:
            handles = tuple(args[0])
            if any(isinstance(a, XTensor) for a in handles):
                return getattr(xtensor_functions, name)(handles, *args[1:], **kwargs)
            if any(isinstance(a, XTensor) for a in handles):
                return getattr(xtensor_functions, name)(handles, *args[1:], **kwargs)
            return wrap(record([unwrap(a) for a in handles], *args[1:], **kwargs), handles)
        plain = tuple([_unwrapped(a) for a in args])
        if kwargs and name == "clip":
            kwargs = {k: _unwrapped(v) for k, v in kwargs.items()}
        return wrap(record(*plain, **kwargs), args)

    return _described(call, name, creates)


def _elementwise(record) -> Callable:
    """A function of one or two arrays, by the shortest way."""

    def unary(x, /):
        if x.__class__ is Array:
            return Array(record(x._v))
        return wrap(record(_unwrapped(x)), (x,))

    def binary(x1, x2, /):
        if x1.__class__ is Array and x2.__class__ is Array:
            return Array(record(x1._v, x2._v))
        return wrap(record(_unwrapped(x1), _unwrapped(x2)), (x1, x2))

    return unary if len(inspect.signature(record.prepare).parameters) == 1 else binary


def _described(call: Callable, name: str, creates: bool) -> Callable:
    """Give a function the name, signature and text of its op."""
    record = OPS[name]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = record.doc
    call.__signature__ = _signature(record.prepare, name, creates)
    call.__module__ = "lazyarr"
    return call


def _signature(prepare: Callable, name: str, creates: bool) -> inspect.Signature:
    """The standard's signature: that of the declaration, with `device` for creation functions."""
    found = inspect.signature(prepare)
    if creates or name.endswith("_like") or name == "astype":
        device = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None)
        found = found.replace(parameters=[*found.parameters.values(), device])
    return found


def _size_or_value(value: object) -> object:
    """Return an argument of a creation function: shapes stay as they are, values are unwrapped."""
    if isinstance(value, Array):
        return value._v if value.ndim == 0 and value._v.value is UNSET else value.compute()[()]
    return value


def asarray(obj: object, /, *, dtype=None, device=None, copy=None):
    """Return a lazy array of a number, a nested list, or an array of any library.

    A NumPy array is copied, unless `copy=False` shares it. Lazy arrays inside lists are stacked.
    """
    if device not in (None, "cpu"):
        raise ArgumentError(f"unknown device {device!r}; arrays live on 'cpu'.")
    if isinstance(obj, Array):
        out = obj if copy is not True else Array(obj._v)
        return out if dtype is None or dtype == obj.dtype else Array(op.astype(obj._v, dtype))
    if isinstance(obj, XTensor):
        raise ArgumentError("asarray of an XTensor would drop its dims; use x.data.")
    if isinstance(obj, list | tuple) and _holds_lazy(obj):
        stacked = Array(op.stack([asarray(v)._v for v in obj]))
        return stacked if dtype is None else Array(op.astype(stacked._v, dtype))
    value = _as_numpy(obj, dtype)
    if copy is False:
        if not isinstance(obj, np.ndarray) or value.base is not obj and value is not obj:
            raise ArgumentError("copy=False: this object cannot be shared, only converted.")
        return Array(Variable(TensorType(value.dtype, value.shape), None, value.view()))
    return Array(data(np.array(value)))


def _holds_lazy(values: list | tuple) -> bool:
    return any(
        isinstance(v, Array) or (isinstance(v, list | tuple) and _holds_lazy(v)) for v in values
    )


def _as_numpy(obj: object, dtype: object) -> np.ndarray:
    known = isinstance(obj, np.ndarray | np.generic | int | float | complex | list | tuple)
    value = np.asarray(obj) if known else to_numpy(obj)
    if dtype is not None:
        value = value.astype(dtypes.as_dtype(dtype), copy=False)
    dtypes.as_dtype(value.dtype)
    return value


def from_dlpack(x: object, /, *, device=None, copy=None):
    """Return a lazy array of another library's array, through DLPack."""
    return asarray(to_numpy(x), copy=True)


def array(obj: object, dtype=None) -> Array:
    """Return a lazy array of anything, always copied (NumPy's name for `asarray`)."""
    return asarray(obj, dtype=dtype, copy=True)


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
            raise ArgumentError(f"{kind!r} is no kind of dtype; use one of {', '.join(sets)}.")
        return dtype in sets[kind]
    return dtype == kind


def finfo(type: object, /) -> np.finfo:
    """Return the limits of a floating dtype."""
    return np.finfo(type.dtype if isinstance(type, Array) else type)


def iinfo(type: object, /) -> np.iinfo:
    """Return the limits of an integer dtype."""
    return np.iinfo(type.dtype if isinstance(type, Array) else type)


def broadcast_arrays(*arrays: object) -> list:
    """Return arrays broadcast to their common shape."""
    each = [unwrap(a) for a in arrays]
    shape = shapes.broadcast(*(v.shape for v in each))
    return [Array(op.broadcast_to(v, shape)) for v in each]
