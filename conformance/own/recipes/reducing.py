"""Statistical functions and the reductions of the other chapters."""

import numpy as np

from conformance.own.recipes._recipe import Case, DType, recipe, size_of


def accumulated(dtype: str) -> str:
    """The dtype of a sum: integers widen to 64 bits, floats stay."""
    kind = np.dtype(dtype).kind
    return "int64" if kind == "i" else "uint64" if kind == "u" else dtype


def wider(x: np.ndarray) -> np.ndarray:
    """The array in the precision of the oracle."""
    kind = {"f": "float64", "c": "complex128"}.get(x.dtype.kind, accumulated(str(x.dtype)))
    return x.astype(kind) if x.dtype.kind != "b" else x


@recipe("sum", "prod")
def sums(d, name):
    """Over any axes, perhaps in another dtype."""
    dtype = d.dtype("numeric")
    x = d.array(dtype, d.shape(side=3), *((0, 3) if name == "prod" else (None, None)))
    axis, keep = d.axes(x.ndim), d.boolean()
    kwargs = {"axis": axis, "keepdims": keep}
    if d.integer(0, 3) == 0:
        kwargs["dtype"] = DType("float64" if dtype.startswith("float") else accumulated(dtype))
    answer = getattr(np, name)(wider(x), axis=axis, keepdims=keep)
    return Case([x], kwargs, answer, scale=size_of(x, answer) * max(1, x.size))


@recipe("mean", "var", "std")
def moments(d, name):
    """Over any axes that are not empty."""
    x = d.array(d.dtype("floating" if name == "mean" else "real_floating"), d.shape(least=1))
    axis, keep = d.axes(x.ndim), d.boolean()
    kwargs = {"axis": axis, "keepdims": keep}
    out = wider(x)
    if name == "mean":
        return Case([x], kwargs, np.mean(out, axis=axis, keepdims=keep), scale=size_of(x))
    n = np.prod([x.shape[a] for a in _all(axis, x.ndim)], dtype=int)
    correction = d.choice([0, 1, 0.5]) if n > 1 else 0
    answer = getattr(np, name)(out, axis=axis, keepdims=keep, ddof=correction)
    scale = size_of(x) if name == "std" else size_of(x) ** 2
    # A root of a variance near 0 has no digits to compare.
    scale = scale * 1e3 if name == "std" and x.dtype.itemsize == 4 else scale * 10
    return Case([x], {**kwargs, "correction": correction}, answer, scale=scale)


def _all(axis: object, ndim: int) -> tuple:
    return tuple(range(ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


@recipe("max", "min")
def extremes(d, name):
    """Over axes that are not empty."""
    x = d.array(d.dtype("real"), d.shape(least=1))
    axis, keep = d.axes(x.ndim), d.boolean()
    return Case([x], {"axis": axis, "keepdims": keep}, getattr(np, name)(x, axis, keepdims=keep))


@recipe("argmax", "argmin")
def places(d, name):
    """The first of equal extremes."""
    x = d.array(d.dtype("real"), d.shape(least=1), 0, 4)
    axis = d.axis(x.ndim) if x.ndim and d.boolean() else None
    keep = d.boolean()
    return Case([x], {"axis": axis, "keepdims": keep}, getattr(np, name)(x, axis, keepdims=keep))


@recipe("all", "any")
def truth(d, name):
    """Any dtype; empty is all and not any."""
    x = d.array(d.dtype("any"), d.shape(), 0, 1)
    axis, keep = d.axes(x.ndim), d.boolean()
    return Case([x], {"axis": axis, "keepdims": keep}, getattr(np, name)(x, axis, keepdims=keep))


@recipe("count_nonzero")
def count_nonzero(d):
    """Any dtype, any axes."""
    x = d.array(d.dtype("any"), d.shape(), 0, 1)
    axis, keep = d.axes(x.ndim), d.boolean()
    answer = np.sum(x != 0, axis=axis, keepdims=keep, dtype=np.int64)
    return Case([x], {"axis": axis, "keepdims": keep}, answer)


@recipe("cumulative_sum", "cumulative_prod")
def cumulative(d, name):
    """Along an axis, with or without the initial value."""
    dtype = d.dtype("numeric")
    x = d.array(dtype, d.shape(1, 3, 3), *((0, 3) if name.endswith("prod") else (None, None)))
    axis: object = d.axis(x.ndim)
    if x.ndim == 1 and d.boolean():
        axis = None
    initial = d.boolean()
    whole = wider(x)
    along = 0 if axis is None else axis
    function = np.cumsum if name.endswith("sum") else np.cumprod
    answer = function(whole, axis=along)
    if initial:
        shape = list(x.shape)
        shape[along] = 1
        first = np.full(shape, 0 if name.endswith("sum") else 1, answer.dtype)
        answer = np.concatenate([first, answer], along)
    kwargs = {"axis": axis, "include_initial": initial}
    return Case([x], kwargs, answer, scale=size_of(x, answer) * 10)
