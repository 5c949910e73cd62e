"""Creation functions and the values of sizes. Source: Array API standard 2025.12, creation."""

import math

import numpy as np

from lazyarr.errors import ShapeError
from lazyarr.graph import dtypes
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.node import Variable, as_operand
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import composite, declare, shape_of, variable_of
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size, evaluate
from lazyarr.graph.types import TensorType

_NO_INPUT = NO_GRADIENT("it has no floating operand to differentiate by")


def _dtype_of_value(value: object):
    if value.__class__ is Variable:
        return value.type.dtype
    return dtypes.DEFAULTS[int if isinstance(value, Size) else value.__class__]


@declare(
    "creation",
    infer=lambda types, params: TensorType(params["dtype"], params["shape"]),
    reference=lambda fill_value, *, shape, dtype: np.full(shape, fill_value, dtype),
    vjp=lambda g, y, value, *, shape, dtype: (op.sum(g),),
    jvp="linear",
    sizes=("shape",),
)
def full(shape, fill_value, *, dtype=None):
    """An array of a shape in which every element is one value."""
    value = as_operand(fill_value)
    if value.__class__ is Variable and value.type.ndim:
        raise ShapeError(f"full: the fill value has shape {value.shape}; it must be 0-d.")
    dtype = _dtype_of_value(value) if dtype is None else as_dtype(dtype)
    dtypes.check_fits(value, dtype)
    return (value,), {"shape": shape_of(shape), "dtype": dtype}


@composite(
    expand=lambda value, *, shape, dtype: op.full(shape, value, dtype=dtype), sizes=("shape",)
)
def zeros(shape, *, dtype=None):
    """An array of zeros."""
    dtype = dtypes.float64 if dtype is None else as_dtype(dtype)
    return (dtype.type(0).item(),), {"shape": shape_of(shape), "dtype": dtype}


@composite(
    expand=lambda value, *, shape, dtype: op.full(shape, value, dtype=dtype), sizes=("shape",)
)
def ones(shape, *, dtype=None):
    """An array of ones."""
    dtype = dtypes.float64 if dtype is None else as_dtype(dtype)
    return (dtype.type(1).item(),), {"shape": shape_of(shape), "dtype": dtype}


def _arange_length(start: object, stop: object, step: object) -> object:
    if isinstance(start, Size) or isinstance(stop, Size):
        if step != 1:
            raise ShapeError("arange over a symbolic size needs step 1.")
        return stop - start
    return max(0, math.ceil((stop - start) / step))


def _arange_reference(start, step, *, length, dtype):
    if dtype.kind in "iu":
        return (start + step * np.arange(length)).astype(dtype)
    return (np.float64(start) + np.float64(step) * np.arange(length)).astype(dtype)


@declare(
    "creation",
    infer=lambda types, params: TensorType(params["dtype"], (params["length"],)),
    reference=_arange_reference,
    vjp=_NO_INPUT,
    sizes=("length",),
)
def arange(start, /, stop=None, step=1, *, dtype=None):
    """Evenly spaced values from start (0 when only one number is given) to below stop."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ShapeError("arange: step cannot be 0.")
    for v in (start, stop, step):
        if v.__class__ is Variable:
            raise ShapeError("arange takes numbers and sizes; its length cannot depend on data.")
    if dtype is None:
        kinds = {int if isinstance(v, Size) else type(v) for v in (start, stop, step)}
        dtype = dtypes.float64 if float in kinds else dtypes.int64
    length = _arange_length(start, stop, step)
    return (as_operand(start), as_operand(step)), {"length": length, "dtype": as_dtype(dtype)}


FAR = 2**62  # a diagonal as far as this is outside of every array


def _eye(one, *, n_rows, n_cols, k, dtype):
    rows = op.expand_dims(op.arange(n_rows), axis=1)
    hit = op.equal(op.add(rows, k) if k else rows, op.arange(n_cols))
    return op.astype(hit, dtype)


@composite(expand=_eye, sizes=("n_rows", "n_cols"), vjp=_NO_INPUT)
def eye(n_rows, n_cols=None, /, *, k=0, dtype=None):
    """Ones on the k-th diagonal, zeros elsewhere."""
    (rows,) = shape_of(n_rows)
    (cols,) = (rows,) if n_cols is None else shape_of(n_cols)
    dtype = dtypes.float64 if dtype is None else as_dtype(dtype)
    k = min(max(int(k), -FAR), FAR)
    return (1,), {"n_rows": rows, "n_cols": cols, "k": k, "dtype": dtype}


@declare(
    "creation",
    infer=lambda types, params: TensorType(dtypes.int64, ()),
    reference=lambda *, size: np.int64(evaluate(size, {})),
    vjp=_NO_INPUT,
    sizes=("size",),
    public=False,
)
def size_value(size, /):
    """The value of a size as an integer."""
    return (), {"size": size}


def _like(x: object, dtype: object) -> tuple[Variable, np.dtype]:
    x = variable_of(x)
    return x, x.type.dtype if dtype is None else as_dtype(dtype)


LIKE = frozenset({"dims_of_first"})


@composite(
    expand=lambda x, value, *, dtype: op.full(x.shape, value, dtype=dtype),
    vjp=lambda g, y, x, value, *, dtype: (None, op.sum(g)),
    facts=LIKE,
)
def full_like(x, /, fill_value, *, dtype=None):
    """An array of the shape of x in which every element is one value."""
    x, dtype = _like(x, dtype)
    value = as_operand(fill_value)
    dtypes.check_fits(value, dtype)
    return (x, value), {"dtype": dtype}


@composite(
    expand=lambda x, *, dtype: op.full_like(x, dtype.type(0).item(), dtype=dtype), facts=LIKE
)
def zeros_like(x, /, *, dtype=None):
    """Zeros in the shape of x."""
    x, dtype = _like(x, dtype)
    return (x,), {"dtype": dtype}


@composite(
    expand=lambda x, *, dtype: op.full_like(x, dtype.type(1).item(), dtype=dtype), facts=LIKE
)
def ones_like(x, /, *, dtype=None):
    """Ones in the shape of x."""
    x, dtype = _like(x, dtype)
    return (x,), {"dtype": dtype}


@composite(
    expand=lambda value, *, shape, dtype: op.full(shape, value, dtype=dtype), sizes=("shape",)
)
def empty(shape, *, dtype=None):
    """An array of a shape whose elements may be anything; here they are zeros."""
    dtype = dtypes.float64 if dtype is None else as_dtype(dtype)
    return (dtype.type(0).item(),), {"shape": shape_of(shape), "dtype": dtype}


@composite(
    expand=lambda x, *, dtype: op.full_like(x, dtype.type(0).item(), dtype=dtype), facts=LIKE
)
def empty_like(x, /, *, dtype=None):
    """An array of the shape of x whose elements may be anything; here they are zeros."""
    x, dtype = _like(x, dtype)
    return (x,), {"dtype": dtype}


def _linspace(start, stop, *, num, endpoint, dtype):
    """start + i * step, and exactly stop at the end; computed in double precision."""
    found = dtypes.promote(start.type.dtype, stop.type.dtype)
    work = dtypes.complex128 if found.kind == "c" else dtypes.float64
    start, stop = (op.astype(v, work) for v in (start, stop))
    gaps = num - 1 if endpoint else num
    n = op.maximum(op.size_value(gaps), 1) if isinstance(gaps, Size) else max(gaps, 1)
    i = op.arange(num)
    out = op.add(op.multiply(i, op.divide(op.subtract(stop, start), n)), start)
    if endpoint:
        out = op.where(op.equal(i, gaps), op.where(op.equal(i, 0), start, stop), out)
    return op.astype(out if dtype.kind in "fc" else op.floor(out), dtype)


@composite(expand=_linspace, sizes=("num",))
def linspace(start, stop, /, num, *, dtype=None, endpoint=True):
    """num evenly spaced values from start to stop, the last one unless endpoint is False."""
    start, stop = (variable_of(v) for v in (start, stop))
    (num,) = shape_of(num)
    found = dtypes.promote(start.type.dtype, stop.type.dtype)
    dtype = dtypes.floating(found) if dtype is None else as_dtype(dtype)
    return (start, stop), {"num": num, "endpoint": bool(endpoint), "dtype": dtype}
