"""Reductions of named nodes that skip NaN, as xarray does for floats.

Skipping means: NaN is replaced by what leaves the reduction unchanged, means divide by the number
of the others, and where nothing is left the answer is NaN (0 for sums, 1 for products).
"""

import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lazyarr.config import options
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import leaves
from lazyarr.xtensor.kinds import outside
from lazyarr.xtensor.naming import unnamed


class SkippedNaNWarning(UserWarning):
    """A derivative goes through a reduction that skips NaN because nobody said otherwise."""


_warned: list[bool] = []


def warn_of_skipped(nodes: Iterable[Variable]) -> None:
    """Warn once when an expression of symbols skips NaN by default."""
    if _warned or options.skipna is not None:
        return
    for v in nodes:
        if _skips(v) and any(x.is_symbol for x in leaves([v])):
            _warned.append(True)
            warnings.warn(
                "a named reduction under this derivative skips NaN, as xarray does by default; "
                "in a log density that hides undefined terms. Begin with "
                "set_options(skipna=False), or set_options(skipna=True) to say that it is meant.",
                SkippedNaNWarning,
                stacklevel=outside(),
            )
            return


def _skips(v: Variable) -> bool:
    """Tell whether a node is what `_filled` records."""
    if v.op is None or v.op.name != "where" or v.inputs[1].__class__ is Variable:
        return False
    mask, _, x = v.inputs
    return mask.__class__ is Variable and mask.op is OPS["isnan"] and mask.inputs[0] is x


def isnull(x: Variable) -> Variable:
    """Record where x is NaN; other dtypes than floats hold none."""
    return op.isnan(x) if x.type.dtype.kind in "fc" else op.zeros_like(x, dtype=np.bool_)


def notnull(x: Variable) -> Variable:
    """Record where x is not NaN."""
    return op.logical_not(isnull(x))


def count(x: Variable, axis: tuple) -> Variable:
    """Record the number of elements that are not NaN."""
    return op.sum(op.astype(notnull(x), np.int64), axis=axis)


def _filled(x: Variable, value: object) -> Variable:
    return op.where(op.isnan(x), value, x)


def _sum(x: Variable, axis: tuple, **_: object) -> Variable:
    return op.sum(_filled(x, 0), axis=axis, dtype=x.type.dtype)


def _prod(x: Variable, axis: tuple, **_: object) -> Variable:
    return op.prod(_filled(x, 1), axis=axis, dtype=x.type.dtype)


def _mean(x: Variable, axis: tuple, **_: object) -> Variable:
    return op.divide(_sum(x, axis), op.astype(count(x, axis), x.type.dtype))


def _var(x: Variable, axis: tuple, ddof: float = 0, **_: object) -> Variable:
    """Two passes: squared differences from the mean of what is there."""
    centred = op.subtract(x, _mean(x, axis))
    squares = squared(centred)  # NaN also where x is infinite
    dtype = squares.type.dtype
    total = op.sum(op.where(op.isnan(x), 0, squares), axis=_same(x, axis))
    freedom = op.subtract(op.astype(count(x, axis), dtype), float(ddof))
    return op.where(op.greater(freedom, 0), op.divide(total, freedom), np.nan)


def _spread(name: str, x: Variable, axis: tuple, ddof: float) -> Variable:
    """Record a variance or standard deviation that skips nothing."""
    if x.type.dtype.kind != "c":
        return getattr(op, name)(x, axis=axis, correction=ddof)
    centred = op.subtract(x, op.mean(x, axis=axis))
    size = shapes.product(x.shape[i] for i in axis)
    total = op.sum(squared(centred), axis=_same(x, axis))
    freedom = op.subtract(op.astype(op.size_value(size), total.type.dtype), ddof)
    out = op.divide(total, op.maximum(freedom, 0))
    return op.sqrt(out) if name == "std" else out


def squared(x: Variable) -> Variable:
    """Record the square of the magnitude."""
    if x.type.dtype.kind != "c":
        return op.square(x)
    return op.add(op.square(op.real(x)), op.square(op.imag(x)))


def _same(x: Variable, axis: tuple) -> tuple:
    return tuple(x.type.dims[i] for i in axis)


def _std(x: Variable, axis: tuple, ddof: float = 0, **_: object) -> Variable:
    return op.sqrt(_var(x, axis, ddof))


def _extreme(name: str, empty: float) -> Callable:
    def run(x: Variable, axis: tuple, **_: object) -> Variable:
        best = getattr(op, name)(_filled(x, empty), axis=axis)
        return op.where(op.any(notnull(x), axis=axis), best, np.nan)

    return run


def first_place(name: str, x: Variable, axis: tuple, skipna: bool) -> Variable:
    """Record the position of the first extreme, 0 where all elements are NaN."""
    if skipna and x.type.dtype.kind == "f":
        x = _filled(x, {"argmax": -np.inf, "argmin": np.inf}[name])
    return getattr(op, name)(x, axis=axis)


def _arg(name: str) -> Callable:
    """The position of an extreme; a check tells where all elements are NaN."""

    def run(x: Variable, axis: tuple, **_: object) -> Variable:
        there = op.any(notnull(x), axis=axis)
        return op.place_among(first_place(name, x, axis, True), there)

    return run


SKIPPING: dict[str, Callable] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "max": _extreme("max", -np.inf),
    "min": _extreme("min", np.inf),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
}

# What an extreme of booleans is.
OF_TRUTH = {"max": "any", "min": "all", "argmax": "argmax", "argmin": "argmin"}

# What leaves an array as it is when it reduces no dim.
UNCHANGED = frozenset({"sum", "prod", "mean", "max", "min"})


def reduce(
    name: str,
    x: Variable,
    axis: tuple,
    skipna: bool,
    min_count: int | None = None,
    ddof: float | None = None,
) -> Variable:
    """Record a reduction over axes, skipping NaN of floats when asked.

    `min_count`: NaN where fewer elements than that are there. `ddof`: what a variance takes off the
    number of elements.
    """
    if x.type.dtype.kind == "b" and name in OF_TRUTH:
        name, x = OF_TRUTH[name], op.astype(x, np.int8) if name.startswith("arg") else x
    if name == "median":
        return _median(x, axis, skipna or x.type.dtype.kind not in "fc")
    skips = skipna and x.type.dtype.kind in "fc" and name in SKIPPING
    if skips:
        out = SKIPPING[name](x, axis, **({} if ddof is None else {"ddof": ddof}))
    elif ddof is not None:
        out = _spread(name, _floating(x), axis, float(ddof))
    else:
        out = getattr(op, name)(_floating(x) if name == "mean" else x, axis=axis)
    if min_count is None or not skips:
        return out
    return op.where(op.greater_equal(count(x, axis), min_count), out, np.nan)


# -- order statistics -----------------------------------------------------------------------------

METHODS: dict[str, Callable] = {
    "linear": lambda low, high, part: op.add(low, op.multiply(op.subtract(high, low), part)),
    "lower": lambda low, high, part: low,
    "higher": lambda low, high, part: high,
    "midpoint": lambda low, high, part: op.where(
        op.equal(part, 0), low, op.divide(op.add(low, high), 2)
    ),
    "nearest": lambda low, high, part: op.where(op.less_equal(part, 0.5), low, high),
}


def quantile(x: Variable, axis: tuple, q: np.ndarray, skipna: bool, method: str) -> Variable:
    """Record the elements at fractions q of the order over axes; the dims of q come first.

    The answer is NaN where a NaN is among the elements, with `skipna` where nothing else is.
    """
    whole = method in ("lower", "higher", "nearest") and x.type.dtype.kind in "iu"
    if method in ("linear", "midpoint") and x.type.dtype.kind == "f":
        x = op.astype(x, np.float64)  # as the fractions are
    x = x if whole else _floating(x)
    kept = [d for i, d in enumerate(x.type.dims) if i not in axis]
    order = [x.type.dims.index(d) for d in kept] + list(axis)
    flat = op.permute_dims(unnamed(x), tuple(order))
    flat = op.reshape(flat, (*flat.shape[: len(kept)], shapes.product(x.shape[i] for i in axis)))
    ordered, last = op.sort(flat, axis=len(kept)), len(kept)
    missing = op.zeros_like(ordered, dtype=np.bool_) if whole else op.isnan(ordered)
    there = op.sum(op.astype(op.logical_not(missing), np.float64), axis=last, keepdims=True)
    place = op.multiply(op.maximum(op.subtract(there, 1), 0), data(q.reshape(-1)))
    low = op.floor(place)
    ends = [op.astype(p, np.int64) for p in (low, op.ceil(place))]
    below, above = (op.take_along_axis(ordered, p, axis=last) for p in ends)
    part = op.astype(op.subtract(place, low), np.float64 if whole else x.type.dtype)
    found = op.where(op.equal(below, above), below, METHODS[method](below, above, part))
    if not skipna and not whole:
        found = op.where(op.any(missing, axis=last, keepdims=True), np.nan, found)
    out = op.permute_dims(found, (last, *range(last)))
    if not q.ndim:
        return op.with_dims(op.squeeze(out, 0), tuple(kept))
    return op.with_dims(out, ("quantile", *kept))


def _median(x: Variable, axis: tuple, skipna: bool) -> Variable:
    out = quantile(x, axis, np.array(0.5), skipna, "midpoint")
    return op.astype(out, x.type.dtype) if x.type.dtype.kind == "f" else out


def _floating(x: Variable) -> Variable:
    return x if x.type.dtype.kind in "fc" else op.astype(x, np.float64)


def cumulative(name: str, x: Variable, dims: Sequence[str], skipna: bool) -> Variable:
    """Record running sums or products along dims, one dim after the other."""
    if dims and skipna and x.type.dtype.kind in "fc":
        x = _filled(x, 0 if name == "cumulative_sum" else 1)
    for dim in dims:
        x = getattr(op, name)(x, axis=x.type.axis(dim))
    return x
