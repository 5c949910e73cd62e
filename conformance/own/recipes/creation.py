"""Creation functions, dtype functions that make arrays, and constants of a shape."""

import numpy as np

from conformance.own.recipes._recipe import Case, DType, recipe


def _dtype(d, category: str = "numeric") -> DType | None:
    """A dtype argument, or none."""
    return DType(d.dtype(category)) if d.boolean() else None


def _numpy(dtype: str | None) -> np.dtype:
    return np.dtype(dtype or "float64")


@recipe("zeros", "ones", "empty")
def filled(d, name):
    """A shape, or a size, and perhaps a dtype."""
    shape, dtype = d.shape(), _dtype(d, "any")
    if len(shape) == 1 and d.boolean():
        shape = shape[0]
    if name == "empty":
        return Case([shape], {"dtype": dtype}, np.zeros(shape), verify=lambda out: None)
    return Case([shape], {"dtype": dtype}, getattr(np, name)(shape, dtype=_numpy(dtype)))


@recipe("zeros_like", "ones_like", "empty_like")
def filled_like(d, name):
    """The shape and dtype of an array, unless a dtype is given."""
    x, dtype = d.array(d.dtype("any"), d.shape()), _dtype(d, "any")
    if name == "empty_like":
        return Case([x], {"dtype": dtype}, np.zeros(x.shape), verify=lambda out: None)
    return Case([x], {"dtype": dtype}, getattr(np, name)(x, dtype=dtype or x.dtype))


@recipe("full")
def full(d):
    """The dtype of the number, unless one is given."""
    shape, dtype = d.shape(), d.dtype("any")
    value = d.number(dtype)
    given = DType(dtype) if d.boolean() else None
    kind = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}[type(value)]
    answer = np.full(shape, value, given or kind)
    return Case([shape, value], {"dtype": given}, answer, dtypes=(kind,))


@recipe("full_like")
def full_like(d):
    """The dtype of the array, unless one is given."""
    x = d.array(d.dtype("any"), d.shape())
    value = d.number(str(x.dtype))
    return Case([x, value], {}, np.full(x.shape, value, x.dtype))


@recipe("arange")
def arange(d):
    """One to three numbers; the dtype of the numbers, unless one is given."""
    floats = d.boolean()
    numbers = [d.integer(-9, 9) / (2 if floats else 1) for _ in range(3)]
    start, stop, step = (n if floats else int(n) for n in numbers)
    step = step or 1
    args = d.choice([(stop,), (start, stop), (start, stop, step)])
    dtype = None
    if d.boolean():
        dtype = DType(d.dtype("real_floating" if floats else "numeric"))
        if dtype.startswith("uint"):
            args = tuple(abs(a) for a in args)
        if dtype.startswith("complex"):
            dtype = None
    answer = np.arange(*args, dtype=dtype)
    kind = "float64" if floats else "int64"
    return Case(list(args), {"dtype": dtype}, answer, dtypes=(kind,), scale=10)


@recipe("linspace")
def linspace(d):
    """Both ends real or complex."""
    start, stop = d.integer(-20, 20) / 2, d.integer(-20, 20) / 2
    num, endpoint = d.integer(0, 9), d.boolean()
    dtype = DType(d.dtype("real_floating")) if d.boolean() else None
    answer = np.linspace(start, stop, num, endpoint=endpoint)
    kwargs = {"endpoint": endpoint, "dtype": dtype}
    return Case([start, stop, num], kwargs, answer, dtypes=("float64",), scale=20)


@recipe("eye")
def eye(d):
    """Any rectangle, any diagonal."""
    n, m, k = d.integer(0, 4), d.choice([None, d.integer(0, 4)]), d.integer(-5, 5)
    dtype = _dtype(d)
    return Case([n, m], {"k": k, "dtype": dtype}, np.eye(n, m, k, _numpy(dtype)))


@recipe("tril", "triu")
def triangle(d, name):
    """A triangle of each matrix."""
    x = d.array(d.dtype("numeric"), d.shape(2, 4, 3))
    k = d.integer(-3, 3)
    return Case([x], {"k": k}, getattr(np, name)(x, k))


@recipe("meshgrid")
def meshgrid(d):
    """Vectors of one dtype."""
    dtype = d.dtype("numeric")
    vectors = [d.array(dtype, (d.integer(1, 3),)) for _ in range(d.integer(1, 3))]
    indexing = d.choice(["xy", "ij"])
    answer = tuple(np.meshgrid(*vectors, indexing=indexing))
    return Case(vectors, {"indexing": indexing}, answer, dtypes=(dtype,) * len(vectors))


@recipe("asarray")
def asarray(d):
    """A number, a nested list, or an array."""
    dtype = d.dtype("any")
    x = d.array(dtype, d.shape(least=1))
    how = d.choice(["array", "list"])
    if how == "array":
        return Case([x], {}, x, call=_asarray_of_array, dtypes=(dtype,))
    return Case([x.tolist()], {"dtype": DType(dtype)}, x, call=_asarray_of_list, dtypes=(dtype,))


def _asarray_of_array(xp, x, **kwargs):
    return xp.asarray(x, **kwargs)


def _asarray_of_list(xp, values, **kwargs):
    return xp.asarray(values, **kwargs)


@recipe("from_dlpack")
def from_dlpack(d):
    """An array of the library itself."""
    x = d.array(d.dtype("any"), d.shape(least=1))
    return Case([x], {}, x, data_dependent=True)


@recipe("astype")
def astype(d):
    """Any dtype to any other, but complex to real."""
    source, target = d.dtype("any"), d.dtype("any")
    if source.startswith("complex") and not target.startswith("complex"):
        target = source
    x = d.array(source, d.shape(), 0, 100)
    kwargs = {"copy": False} if d.boolean() else {}
    return Case([x, DType(target)], kwargs, x.astype(target), dtypes=(target,))


@recipe("broadcast_shapes")
def broadcast_shapes(d):
    """Shapes as tuples; the answer is a tuple."""
    shapes = d.broadcastable(d.integer(1, 3))
    return Case(shapes, {}, np.broadcast_shapes(*shapes), plain=True)
