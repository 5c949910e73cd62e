"""NumPy's names beside the standard's, for libraries that wrap arrays (xarray first of all).

Each is the named method on axes with made-up names, so that what NaN, windows and padding mean is
written once. Axes and keywords are NumPy's.
"""

import builtins
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from lazyarr.errors import ArgumentError
from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import axes_of
from lazyarr.graph.ops.indexing import gather
from lazyarr.graph.registry import op
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.conversion import asarray
from lazyarr.namespace.xtensor import XTensor, dot
from lazyarr.xtensor import slopes
from lazyarr.xtensor.windows import padded


def _named(x: object) -> XTensor:
    x = asarray(x)
    return XTensor(x, dims=tuple(f"axis {i}" for i in range(x.ndim)))


def _dims(x: XTensor, axis: object) -> list[str]:
    return [x.dims[i] for i in axes_of(unwrap(x.data), axis)]


def _reduction(name: str, skipna: bool) -> Callable:
    def call(a, axis=None, dtype=None, *, keepdims=False, ddof=0, out=None):
        x = _named(a)
        if dtype is not None:
            x = x.astype(dtype)
        dims = _dims(x, axis)
        kw = {"ddof": ddof} if name in ("var", "std") else {}
        if name.startswith("arg"):
            reduced = getattr(x, name)(dims[0] if axis is not None else None, skipna=skipna)
        else:
            reduced = getattr(x, name)(dims, skipna=skipna, **kw)
        if keepdims:
            places = tuple(x.get_axis_num(d) for d in dims)
            return Array(op.expand_dims(unwrap(reduced.data), axis=places))
        return reduced.data

    what = "skipping NaN" if skipna else "NaN where one is among the elements"
    call.__name__ = f"nan{name}" if skipna else name
    call.__doc__ = f"Return the {name} over axes, {what}."
    return call


nansum, nanprod, nanmean = (_reduction(n, True) for n in ("sum", "prod", "mean"))
nanmax, nanmin = _reduction("max", True), _reduction("min", True)
nanvar, nanstd = _reduction("var", True), _reduction("std", True)
nanargmax, nanargmin = _reduction("argmax", True), _reduction("argmin", True)
nanmedian, median = _reduction("median", True), _reduction("median", False)


def _cumulative(name: str, skipna: bool) -> Callable:
    def call(a, axis=None, dtype=None, out=None):
        x = _named(a)
        if axis is None:
            x = _named(Array(op.reshape(unwrap(x.data), (-1,))))
        return getattr(x, name)(_dims(x, 0 if axis is None else axis), skipna=skipna).data

    call.__name__ = f"nan{name}" if skipna else name
    call.__doc__ = f"Return the running {name[3:]} along an axis (None: of all elements)."
    return call


cumsum, cumprod = _cumulative("cumsum", False), _cumulative("cumprod", False)
nancumsum, nancumprod = _cumulative("cumsum", True), _cumulative("cumprod", True)


def _quantile(skipna: bool) -> Callable:
    def call(a, q, axis=None, *, method="linear", keepdims=False, out=None):
        x = _named(a)
        dims = _dims(x, axis)
        found = x.quantile(np.asarray(q), dims, method=method, skipna=skipna)
        if keepdims:
            lead = np.ndim(q)
            places = tuple(lead + x.get_axis_num(d) for d in dims)
            return Array(op.expand_dims(unwrap(found.data), axis=places))
        return found.data

    call.__name__ = "nanquantile" if skipna else "quantile"
    call.__doc__ = "Return the elements at fractions q of the order over axes, q's axis first."
    return call


quantile, nanquantile = _quantile(False), _quantile(True)


def transpose(a: object, axes: Sequence[int] | None = None) -> Array:
    """Return the axes in another order (reversed unless given)."""
    x = asarray(a)
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple(axes)
    return Array(op.permute_dims(x._v, order))


def pad(
    a: object, pad_width: object, mode: str = "constant", *, constant_values: object = 0, **kw
) -> Array:
    """Return the array with more elements before and after each axis."""
    x = _named(a)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    fills = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)).tolist()
    node = x._v
    for dim, width, fill in zip(x.dims, widths, fills, strict=True):
        if builtins.any(width):
            node = padded(
                node, dim, tuple(width), mode, tuple(fill), kw.get("reflect_type", "even")
            )
    return XTensor._of(node, None).data


def gradient(f: object, *varargs: object, axis: object = None, edge_order: int = 1) -> object:
    """Return derivatives by differences along axes, at unit distances or known positions."""
    x = _named(f)
    places = axes_of(unwrap(x.data), axis)
    given = list(varargs) or [1.0]
    given = given * len(places) if len(given) == 1 else given
    out = []
    for i, place in zip(places, given, strict=True):
        at = np.asarray(place, np.float64)
        size = x._known_size(x.dims[i], "gradient")
        steps = np.diff(at) if at.ndim else np.full(size - 1, float(at))
        node = slopes.differentiate(x._v, x.dims[i], steps, edge_order)
        out.append(XTensor._of(node, None).data)
    return out[0] if len(out) == 1 else out


def einsum(subscripts: str, *operands: object, **kw: object) -> Array:
    """Return the sum of products by subscripts, one letter an axis: `einsum("ij,jk->ik", a, b)`."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    if "." in subscripts or len(parts) != len(operands):
        parts, right, arrow = _without_ellipsis(parts, right, arrow, operands)
    for part in parts:
        if len(set(part)) != len(part):
            raise ArgumentError(f"einsum: {part!r} holds a letter twice; take the diagonal first.")
    if not arrow:
        letters = "".join(parts)
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    named = [XTensor(asarray(a), dims=tuple(p)) for p, a in zip(parts, operands, strict=True)]
    gone = [c for c in dict.fromkeys("".join(parts)) if c not in right]
    return dot(*named, dim=gone).transpose(*right).data


def _without_ellipsis(parts: list, right: str, arrow: str, operands: Sequence) -> tuple:
    """Write letters for the axes that `...` stands for."""
    if len(parts) != len(operands):
        raise ArgumentError(f"einsum: {len(parts)} subscripts for {len(operands)} operands.")
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in "".join(parts)]
    ranks = [
        asarray(a).ndim - len(p.replace("...", "")) for p, a in zip(parts, operands, strict=True)
    ]
    most = builtins.max([n for n, p in zip(ranks, parts, strict=True) if "..." in p], default=0)
    letters = "".join(free[:most])
    written = [
        p.replace("...", letters[most - n :]) if "..." in p else p
        for n, p in zip(ranks, parts, strict=True)
    ]
    return written, right.replace("...", letters), arrow


def cross(a: object, b: object, axisa=-1, axisb=-1, axisc=-1, axis: int | None = None) -> Array:
    """Return the cross product of vectors of 2 or 3 along an axis."""
    first, second = asarray(a), asarray(b)
    if axis is None and (axisa, axisb, axisc) != (-1, -1, -1):
        raise ArgumentError("cross takes one axis for all operands: axis=.")
    i = -1 if axis is None else axis
    sizes = [first.shape[i], second.shape[i]]
    if sizes == [3, 3]:
        return Array(op.cross(first._v, second._v, axis=i))
    rows = [
        [Array(op.take(v._v, unwrap(asarray(np.int64(k))), axis=i)) for k in range(v.shape[i])]
        for v in (first, second)
    ]
    (p, q) = rows
    if sizes == [2, 2]:
        return p[0] * q[1] - p[1] * q[0]
    p, q = ([*v, v[0] * 0.0] if len(v) == 2 else v for v in (p, q))
    many = [p[j] * q[k] - p[k] * q[j] for j, k in ((1, 2), (2, 0), (0, 1))]
    return Array(op.stack([v._v for v in many], axis=i))


def sliding_window_view(x: object, window_shape: object, axis: object = None, **kw) -> Array:
    """Return each run of elements along axes, which lies along new last axes."""
    v = asarray(x)._v
    windows = [window_shape] if isinstance(window_shape, int | np.integer) else list(window_shape)
    places = list(range(v.ndim)) if axis is None else list(np.atleast_1d(axis))
    rank = v.ndim
    for window, place in zip(windows, places, strict=True):
        v = _windows(v, int(window), int(place) % rank)
    return Array(v)


def _windows(v: Variable, window: int, axis: int) -> Variable:
    count = v.shape[axis] - window + 1
    starts = op.expand_dims(op.arange(count), axis=1)
    places = op.add(starts, op.expand_dims(op.arange(window), axis=0))
    taken = gather(v, places, axis)
    order = [i for i in range(taken.ndim) if i != axis + 1]
    return op.permute_dims(taken, (*order, axis + 1))


lib = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=sliding_window_view))

__all__ = [
    "cross", "cumprod", "cumsum", "einsum", "gradient", "lib", "median", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanquantile",
    "nanstd", "nansum", "nanvar", "pad", "quantile", "sliding_window_view", "transpose",
]  # fmt: skip
