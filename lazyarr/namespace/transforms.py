"""`symbol`, `jit` and `compute`: from expressions to values.

`jit` traces a Python function by the types of its
arguments and returns what the function returns, already computed.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lazyarr.backends.driver import Program
from lazyarr.backends.implicit import compute_nodes
from lazyarr.errors import ConcretizationError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import data
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.traverse import Graph, leaves
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.compiled import check_inputs, is_leaf, labelled, output_node
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.programs import runner, shared_program
from lazyarr.namespace.tree import flatten, tree_map, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.namespace.xtensor_dataset import as_labelled, is_foreign
from lazyarr.xtensor.types import XTensorType, as_dims

_NUMBER = int | float | complex
_MOST = 1024  # records of a jitted function that are kept
_named_sizes: dict[str, shapes.Size] = {}


def _size(entry: object, name: str) -> object:
    """Return the size of one entry of `shape=`: an int, None (fresh unknown), a name, or a Size."""
    if entry is None:
        return shapes.unknown(name)
    if isinstance(entry, str):
        return _named_sizes.setdefault(entry, shapes.unknown(entry))
    if isinstance(entry, shapes.Size):
        return entry
    size = int(entry)  # type: ignore[call-overload]
    if size < 0:
        raise ShapeError(f"symbol {name!r}: a size cannot be {size}; an unknown one is None.")
    return size


def symbol(name: str, *, shape=None, dims=None, coords=None, dtype=dtypes.float64):
    """Return a named input of functions: an Array, or an XTensor when dims are given.

    An entry of `shape` is an int, None for an unknown size, or a name (equal names are one size).
    `dims` is a name, several, or a dict from name to size; `coords` gives labels, and so sizes.

    >>> symbol("x", shape=(None, 3)).shape
    (None, 3)
    """
    dtype = dtypes.as_dtype(dtype)
    if dims is None:
        entries = () if shape is None else shape if isinstance(shape, tuple | list) else (shape,)
        sizes = tuple(_size(s, f"{name}.{i}") for i, s in enumerate(entries))
        return Array(make_symbol(TensorType(dtype, sizes), name))
    if isinstance(dims, Mapping):
        dims, shape = tuple(dims), tuple(dims.values())
    dims = as_dims(dims)
    labels = dict(coords or {})
    if shape is None:
        shape = tuple(len(labels[d]) if d in labels else None for d in dims)
    if not isinstance(shape, tuple | list):
        shape = (shape,)
    sizes = tuple(_size(s, d) for s, d in zip(shape, dims, strict=True))
    node = make_symbol(XTensorType(dtype, dims, sizes), name)
    return (
        XTensor._of(node, None, name, None).assign_coords(labels)
        if labels
        else XTensor._of(node, None, name, None)
    )


def jit(f: Callable | None = None, *, backend: str | None = None):
    """Compile a Python function when it is called, once for each structure of its arguments.

    Arrays among the arguments (NumPy, Array, XTensor, xr.DataArray, xr.Dataset, in pytrees) become
    symbols, other values are part of the structure. Other labels of the same sizes and other
    numbers record f again, and compile nothing (unless a number is used as an axis, a size or an
    exponent like 2). The result is what f returns, computed, and xarray's where arguments were.
    """
    if f is None:
        return functools.partial(jit, backend=backend)
    cache: dict = {}

    @functools.wraps(f)
    def compiled(*args: object, **kwargs: object):
        found, tree = flatten((args, kwargs))
        handles = [_handle(v) for v in found]
        key = (tree, tuple(_signature(h, v) for h, v in zip(handles, found, strict=True)))
        entry = cache.get(key)
        if entry is None:
            if len(cache) >= _MOST:
                cache.clear()
            entry = cache[key] = _trace(f, tree, handles, found, backend)
        out = entry([h for h in handles if h is not None])
        return tree_map(as_labelled, out) if any(map(is_foreign, found)) else out

    return compiled


def _handle(value: object) -> object:
    """Return a handle for an array argument, None for any other value."""
    if is_leaf(value):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return asarray(value, copy=False) if isinstance(value, np.ndarray) else asarray(value)
    return XTensor(value) if is_foreign(value) else None


def _signature(handle: object, value: object) -> object:
    if handle is None:  # 1, 1.0 and True are equal, and not the same
        return (value.__class__, repr(value)) if isinstance(value, _NUMBER) else value
    if not isinstance(handle, XTensor):
        return type(handle), handle._v.type
    attrs = repr(handle._attrs) if handle._attrs else None
    return XTensor, handle._v.type, handle._coords, handle._name, attrs


def _trace(f: Callable, tree, handles: list, values: list, backend: str | None) -> Callable:
    """Record f on symbols of the arguments' types and compile what it returns."""
    symbols = [None if h is None else _symbol_like(h, i) for i, h in enumerate(handles)]
    args, kwargs = unflatten(
        tree, [v if s is None else s for s, v in zip(symbols, values, strict=True)]
    )
    found, out_tree = flatten(f(*args, **kwargs))
    arrays = [x for x in found if is_leaf(x)]
    graph = Graph([s._v for s in symbols if s is not None], [x._v for x in arrays])
    check_inputs(graph)
    held: list = []
    pairs = zip(handles, values, strict=True)
    numbers = [v for h, v in pairs if h is None and isinstance(v, _NUMBER)]
    if numbers or any(isinstance(h, XTensor) and h._coords for h in handles):
        program, held = shared_program(graph, backend or "auto", numbers)
    else:
        program = runner(Program(graph, backend or "auto"))

    def run(given: Sequence):
        values = compute_nodes([h._v for h in given])
        out = iter(program(*values, *held))
        return unflatten(out_tree, [_with_value(x, next(out)) if is_leaf(x) else x for x in found])

    return run


def _symbol_like(handle, i: int):
    node = make_symbol(handle._v.type, handle._v.name or f"argument {i}")
    if isinstance(handle, XTensor):
        return XTensor._of(node, handle.coords, handle.name, handle.attrs)
    return Array(node)


def _with_value(handle, value: np.ndarray):
    return handle._with_value(value) if isinstance(handle, XTensor) else Array(data(value))


def compute(*things: object):
    """Compute handles, or pytrees of them, in one program; NumPy arrays or xr.DataArrays come back.

    Raises ConcretizationError when an expression depends on a symbol.
    """
    found, tree = flatten(things if len(things) != 1 else things[0])
    nodes = [output_node(h) for h in found]
    for v in leaves(nodes):
        if v.is_symbol:
            raise ConcretizationError(
                f"compute needs values, but an expression depends on the symbol {v.name!r} (from "
                f"{v.where_made()}); compile it with `function`."
            )
    values = [np.array(v) for v in compute_nodes(nodes)]
    return unflatten(
        tree,
        [
            labelled(v, h) if isinstance(h, XTensor) else v
            for v, h in zip(values, found, strict=True)
        ],
    )
