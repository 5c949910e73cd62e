"""Indexing: take, and the square brackets in all their forms."""

import numpy as np

from conformance.own.recipes._recipe import Case, recipe


@recipe("take")
def take(d):
    """Indices along an axis, also from the end."""
    x = d.array(d.dtype("any"), d.shape(1, 3, 3, 1))
    axis: object = d.axis(x.ndim)
    if x.ndim == 1 and d.boolean():
        axis = None
    n = x.shape[0 if axis is None else axis]
    indices = d.array(d.choice(["int64", "int32"]), (d.integer(0, 4),), -n, n - 1)
    dtypes = (str(x.dtype),)
    return Case([x, indices], {"axis": axis}, np.take(x, indices, axis or 0), dtypes=dtypes)


@recipe("take_along_axis")
def take_along_axis(d):
    """An index for every place but along one axis."""
    x = d.array(d.dtype("any"), d.shape(1, 3, 3, 1))
    axis = d.axis(x.ndim)
    shape = list(x.shape)
    shape[axis] = d.integer(1, 3)
    n = x.shape[axis]
    indices = d.array("int64", tuple(shape), -n, n - 1)
    answer = np.take_along_axis(x, indices, axis)
    return Case([x, indices], {"axis": axis}, answer, dtypes=(str(x.dtype),))


def basic_key(d, shape: tuple, new_axes: bool = True) -> tuple:
    """Integers, slices, new axes and an ellipsis."""
    key: list = []
    for n in shape:
        how = d.integer(0, 2)
        if how == 0 and n:
            key.append(d.integer(-n, n - 1))
        else:
            start, stop = (d.choice([None, *range(-n, n + 1)]) for _ in range(2))
            step = d.choice([None, 1, 2, -1])
            if step == -1:  # the standard leaves other bounds of negative steps open
                start = stop = None
            key.append(slice(start, stop, step))
        if new_axes and d.integer(0, 4) == 0:
            key.append(None)
    if d.boolean():
        cut = d.integer(0, len(key))
        used = sum(k is not None for k in key[:cut])
        key = [*key[:cut], ...] if used <= len(shape) else key
    return tuple(key)


@recipe("__getitem__")
def getitem(d):
    """Basic keys, integer arrays and masks."""
    x = d.array(d.dtype("any"), d.shape(1, 3, 3, 1))
    how = d.choice(["basic", "basic", "arrays", "mask"])
    dtypes = (str(x.dtype),)
    if how == "mask":
        mask = d.array("bool", x.shape)
        call = _getitem
        return Case([x, mask], {}, x[mask], call=call, data_dependent=True, dtypes=dtypes)
    if how == "arrays":
        arrays = [d.array("int64", (d.integer(1, 3),), -n, n - 1) for n in x.shape]
        arrays = [a[:1] if a.size != arrays[0].size else a for a in arrays]
        return Case([x, *arrays], {}, x[tuple(arrays)], call=_getitem_arrays, dtypes=dtypes)
    key = basic_key(d, x.shape)
    return Case([x, key], {}, np.array(x[key]), call=_getitem, dtypes=dtypes)


def _getitem(xp, x, key):
    return x[key]


def _getitem_arrays(xp, x, *keys):
    return x[keys]


@recipe("__setitem__")
def setitem(d):
    """A number or an array put where a key says; other names keep their values."""
    dtype = d.dtype("any")
    x = d.array(dtype, d.shape(1, 3, 3, 1))
    answer = x.copy()
    if d.integer(0, 2) == 0:
        key: object = d.array("bool", x.shape)
        value: object = d.number(dtype)
    else:
        key = basic_key(d, x.shape, new_axes=False)
        value = d.choice([d.number(dtype), d.array(dtype, x[key].shape)])
    answer[key] = value
    return Case([x, key, value], {}, answer, call=_setitem, dtypes=(dtype,))


def _setitem(xp, x, key, value):
    out = xp.asarray(x, copy=True)
    out[key] = value
    return out
