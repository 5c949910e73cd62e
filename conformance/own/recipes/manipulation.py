"""Manipulation functions: answers are exact."""

import numpy as np

from conformance.own.recipes._recipe import Case, recipe


def _any(d, low: int = 0, high: int = 3, side: int = 3, least: int = 0) -> np.ndarray:
    return d.array(d.dtype("any"), d.shape(low, high, side, least))


@recipe("broadcast_arrays")
def broadcast_arrays(d):
    """Each keeps its dtype."""
    shapes = d.broadcastable(d.integer(1, 3))
    arrays = [d.array(d.dtype("any"), s) for s in shapes]
    return Case(arrays, {}, tuple(np.broadcast_arrays(*arrays)))


@recipe("broadcast_to")
def broadcast_to(d):
    """A larger shape."""
    small, other = d.broadcastable(2)
    shape = np.broadcast_shapes(small, other)
    x = d.array(d.dtype("any"), small)
    return Case([x, shape], {}, np.broadcast_to(x, shape))


@recipe("concat")
def concat(d):
    """Arrays that differ along one axis, or all flattened."""
    a, b = d.pair("any")
    flat = d.integer(0, 3) == 0
    if flat:
        arrays = [d.array(a, d.shape()), d.array(b, d.shape())]
        answer = np.concatenate([x.ravel() for x in arrays])
        return Case([arrays], {"axis": None}, answer)
    shape = list(d.shape(1, 3, 3))
    axis = d.axis(len(shape))
    first = d.array(a, tuple(shape))
    shape[axis] = d.integer(0, 3)
    arrays = [first, d.array(b, tuple(shape))]
    return Case([arrays], {"axis": axis}, np.concatenate(arrays, axis))


@recipe("stack")
def stack(d):
    """Arrays of one shape, along a new axis."""
    a, b = d.pair("any")
    shape = d.shape(0, 2, 3)
    arrays = [d.array(a, shape), d.array(b, shape)]
    axis = d.integer(-len(shape) - 1, len(shape))
    return Case([arrays], {"axis": axis}, np.stack(arrays, axis))


@recipe("unstack")
def unstack(d):
    """The arrays along an axis."""
    x = _any(d, 1, least=1)
    axis = d.axis(x.ndim)
    return Case([x], {"axis": axis}, tuple(np.moveaxis(x, axis, 0)))


@recipe("expand_dims")
def expand_dims(d):
    """A new axis anywhere, or several."""
    x = _any(d)
    axis: object = d.integer(-x.ndim - 1, x.ndim)
    if d.integer(0, 3) == 0:
        axis = (0, x.ndim + 1)
    return Case([x], {"axis": axis}, np.expand_dims(x, axis))


@recipe("squeeze")
def squeeze(d):
    """Axes of size 1."""
    x = _any(d, 0, 2)
    at = d.integer(0, x.ndim)
    x = np.expand_dims(x, at)
    axis: object = d.choice([at, at - x.ndim, (at,)])
    return Case([x], {"axis": axis}, np.squeeze(x, axis))


@recipe("flip")
def flip(d):
    """One axis, several, or all."""
    x = _any(d)
    axis = d.axes(x.ndim)
    return Case([x], {"axis": axis}, np.flip(x, axis))


@recipe("roll")
def roll(d):
    """A shift along one axis, several, or of all elements."""
    x = _any(d)
    shift: object = d.integer(-9, 9)
    axis = None
    if x.ndim and d.boolean():
        axis = d.axis(x.ndim)
        if d.boolean():
            shift, axis = (shift,), (axis,)
    return Case([x, shift], {"axis": axis}, np.roll(x, shift, axis))


@recipe("moveaxis")
def moveaxis(d):
    """One axis, or several."""
    x = _any(d, 1)
    source, target = d.axis(x.ndim), d.axis(x.ndim)
    if d.boolean():
        n = d.integer(1, x.ndim)
        source, target = d.permutation(x.ndim)[:n], d.permutation(x.ndim)[:n]
    return Case([x, source, target], {}, np.moveaxis(x, source, target))


@recipe("permute_dims")
def permute_dims(d):
    """Any order of the axes."""
    x = _any(d)
    axes = d.permutation(x.ndim)
    return Case([x, axes], {}, np.transpose(x, axes))


@recipe("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(d, name):
    """The last two axes exchanged."""
    x = _any(d, 2, 4)
    return Case([x], {}, np.swapaxes(x, -1, -2))


@recipe("reshape")
def reshape(d):
    """Another shape of the same size, with -1 for one side."""
    x = _any(d, side=4)
    shapes = [(x.size,), x.shape[::-1], (1, *x.shape), (x.size, 1)]
    if x.size:
        shapes += [(-1,), (*x.shape, -1)]
    shape = d.choice(shapes)
    kwargs = {"copy": True} if d.integer(0, 3) == 0 else {}
    return Case([x, shape], kwargs, np.reshape(x, shape))


@recipe("repeat")
def repeat(d):
    """A number, or an array of numbers, of repetitions."""
    x = _any(d)
    axis = d.axis(x.ndim) if x.ndim and d.boolean() else None
    repeats: object = d.integer(0, 3)
    many = x.ndim > 0 and d.integer(0, 2) == 0
    if many:
        n = x.size if axis is None else x.shape[axis]
        repeats = d.array("int64", (n,), 0, 3)
    answer = np.repeat(x, repeats, axis)
    kwargs = {"axis": axis}
    return Case([x, repeats], kwargs, answer, data_dependent=many, dtypes=(str(x.dtype),))


@recipe("tile")
def tile(d):
    """Repetitions for fewer, as many or more axes."""
    x = _any(d, 0, 2)
    n = tuple(d.integer(0, 2) for _ in range(d.integer(0, 3)))
    return Case([x, n], {}, np.tile(x, n))


@recipe("diff")
def diff(d):
    """Differences, with values put before and after."""
    dtype = d.dtype("numeric")
    x = d.array(dtype, d.shape(1, 3, 4, 1), 0, 50)
    axis, n = d.axis(x.ndim), d.integer(1, 2)
    side = list(x.shape)
    side[axis] = d.integer(1, 2)
    kwargs = {"axis": axis, "n": n}
    if d.boolean():
        kwargs["prepend"] = d.array(dtype, tuple(side), 0, 50)
    if d.boolean():
        kwargs["append"] = d.array(dtype, tuple(side), 0, 50)
    return Case([x], kwargs, np.diff(x, **kwargs), scale=50)
