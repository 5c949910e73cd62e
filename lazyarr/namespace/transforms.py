"""`symbol`, `function`, `jit` and `compute`: from expressions to values.

`function` takes pytrees of symbols and of expressions and returns a compiled callable on NumPy arrays
and, for named inputs and outputs, `xr.DataArray`s. `jit` traces a Python function by the types of its
arguments and returns what the function returns, already computed.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lazyarr.backends.driver import Program
from lazyarr.backends.implicit import compute_nodes
from lazyarr.errors import ArgumentError, ConcretizationError, GraphError, near_match
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.traverse import Graph, leaves, substitute
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.tree import flatten, tree_map, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.xtensor.types import XTensorType, as_dims

_named_sizes: dict[str, shapes.Size] = {}


def _size(entry: object, name: str) -> object:
    """Return the size of one entry of `shape=`: an int, None (fresh unknown), a name, or a Size."""
    if entry is None:
        return shapes.unknown(name)
    if isinstance(entry, str):
        return _named_sizes.setdefault(entry, shapes.unknown(entry))
    return entry if isinstance(entry, shapes.Size) else int(entry)  # type: ignore[call-overload]


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
    return XTensor._of(node, None, name, None).assign_coords(labels) if labels else XTensor._of(
        node, None, name, None
    )


class Input:
    """One array argument of a compiled function."""

    def __init__(self, handle: object, label: str):
        node = unwrap(handle)
        if node.__class__ is not Variable or not node.is_symbol:
            raise GraphError(
                f"input {label} is not a symbol but {handle!r}; make inputs with `symbol`."
            )
        self.node, self.label, self.handle = node, node.name or label, handle
        self.dtype, self.ndim = node.type.dtype, node.type.ndim
        self.plain = not node.type.named

    def _fits(self, shape: tuple) -> bool:
        """Tell whether a shape has the rank and the known sizes of this input."""
        sizes = self.node.type.shape
        return len(shape) == self.ndim and all(
            isinstance(s, shapes.Size) or s == n for s, n in zip(sizes, shape, strict=True)
        )

    def convert(self, value: object) -> np.ndarray:
        """Return a value as an array of this input's type, or raise an error that names it."""
        if self.plain and value.__class__ is np.ndarray and value.dtype is self.dtype:
            if value.shape == self.node.type.shape or self._fits(value.shape):
                return value
        inner = getattr(value, "_v", None)
        if inner is not None:
            if isinstance(value, Array):
                value = compute_nodes([inner])[0]
            elif self.plain:
                raise ArgumentError(
                    f"input {self.label!r} is positional, got an XTensor; pass x.data."
                )
        try:
            return self.node.type.filter(value)
        except Exception as error:
            raise type(error)(f"input {self.label!r}: {error}") from None


class Function:
    """A compiled function; `explain()`, `fallbacks()` and `source` show what it became."""

    def __init__(self, inputs: object, outputs: object, backend: str | None, givens: Sequence):
        self.top = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        flat, self.in_tree = flatten(self.top)
        self.inputs = [Input(h, str(i)) for i, h in enumerate(flat)]
        self.results, self.out_tree = flatten(outputs)
        nodes = [_output_node(h) for h in self.results]
        if givens:
            nodes = substitute(nodes, {unwrap(a): unwrap(b) for a, b in givens})
        graph = Graph([i.node for i in self.inputs], nodes)
        _check_inputs(graph)
        self.program = Program(graph, backend or "auto")
        self.flat = all(_is_leaf(h) for h in self.top)
        self.named = [isinstance(h, XTensor) for h in self.results]
        self.single = self.out_tree.kind is None and not self.named[0]
        self.pair = self.out_tree.kind is tuple and not any(self.named) and all(
            c.kind is None for c in self.out_tree.children
        )

        self.fast = self._launcher()

    def _launcher(self) -> Callable | None:
        """The shortest way to call, for flat positional inputs and unnamed flat outputs."""
        plain = self.flat and all(i.plain for i in self.inputs)
        if not plain or any(self.named):
            return None
        flat = all(c.kind is None for c in self.out_tree.children)
        if self.out_tree.kind in (list, tuple) and flat:
            return self.program.launcher(self.out_tree.kind.__name__, self._call)
        return self.program.launcher("single", self._call) if self.single else None

    def __call__(self, *args: object, **kwargs: object):
        """Compute the outputs for values of the inputs, given in order or by name."""
        if self.fast is None or kwargs:
            return self._call(*args, **kwargs)
        return self.fast(*args)

    def _call(self, *args: object, **kwargs: object):
        """The call that takes everything: names, pytrees, other dtypes and layouts."""
        if kwargs or len(args) != len(self.top):
            args = self._bind(args, kwargs)
        if not self.flat:
            args = self._flatten(args)
        out = self.program([i.convert(a) for i, a in zip(self.inputs, args, strict=True)])
        if self.single:
            return out[0]
        if self.pair:
            return tuple(out)
        return unflatten(
            self.out_tree,
            [
                _labelled(a, h) if named else a
                for a, h, named in zip(out, self.results, self.named, strict=True)
            ],
        )

    def _bind(self, args: Sequence, kwargs: dict) -> list:
        """Return arguments in order, from positional ones and those given by name."""
        names = [getattr(unwrap(h), "name", None) if _is_leaf(h) else None for h in self.top]
        bound = list(args)
        for name in names[len(args) :]:
            if name not in kwargs:
                raise ArgumentError(f"missing input {name!r}; the inputs are {names}.")
            bound.append(kwargs.pop(name))
        if kwargs or len(args) > len(names):
            extra = next(iter(kwargs), f"number {len(args)}")
            hint = near_match(str(extra), [n for n in names if n])
            raise ArgumentError(f"unexpected input {extra!r}; the inputs are {names}.{hint}")
        return bound

    def _flatten(self, args: Sequence) -> list:
        found: list = []
        for i, (value, tree) in enumerate(zip(args, self.in_tree.children, strict=True)):
            found.extend(_matching(value, tree, f"argument {i}"))
        return found

    def explain(self) -> str:
        """Return what the function became: passes, steps, kernels, buffers, fallbacks."""
        return self.program.explain()

    def fallbacks(self) -> list[str]:
        """Return the operations that run by their NumPy reference on this backend."""
        return self.program.fallbacks()

    @property
    def source(self) -> str:
        """The generated code."""
        return self.program.source


def _is_leaf(h: object) -> bool:
    return isinstance(h, Array | XTensor)


def _matching(value: object, tree, path: str) -> list:
    """Return the leaves of an argument that must have the structure of its input."""
    if tree.kind is None:
        return [value]
    if tree.kind == "none":
        return []
    if tree.kind is dict:
        if not isinstance(value, Mapping) or set(value) != set(tree.keys):
            have = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
            raise ArgumentError(f"{path}: expected a dict of {list(tree.keys)}, got {have}.")
        children = [value[k] for k in tree.keys]
    elif tree.keys:
        children = [getattr(value, k) for k in tree.keys]
    else:
        children = list(value)  # type: ignore[call-overload]
        if len(children) != len(tree.children):
            raise ArgumentError(
                f"{path}: expected {len(tree.children)} entries, got {len(children)}."
            )
    keys = tree.keys or range(len(children))
    return [
        leaf
        for k, v, c in zip(keys, children, tree.children, strict=True)
        for leaf in _matching(v, c, f"{path}[{k!r}]")
    ]


def _output_node(handle: object) -> Variable:
    node = unwrap(handle)
    return node if node.__class__ is Variable else asarray(handle)._v


def _check_inputs(graph: Graph) -> None:
    missing = graph.missing()
    if missing:
        names = ", ".join(
            f"{v.name or v.type!r} (made at {v.where_made()})" for v in missing[:5]
        )
        raise GraphError(f"the outputs also depend on {names}; add it to the inputs.")
    if len(set(graph.inputs)) != len(graph.inputs):
        raise GraphError("an input is given twice.")


def _labelled(value: np.ndarray, handle: XTensor) -> object:
    """Return a named result as `xr.DataArray`, or as an XTensor where xarray is not installed."""
    out = handle._with_value(value)
    try:
        return out.to_xarray()
    except ImportError:
        return out


def function(inputs: object, outputs: object, *, givens: Sequence = (), backend: str | None = None):
    """Compile outputs as a function of inputs.

    inputs: a symbol, or a list of symbols and pytrees of symbols; outputs: a pytree of expressions;
    givens: pairs (node, replacement); backend: "c", "numba", "jax", "torch", "interpret" or "auto".
    Raises GraphError for a missing input, BackendError for a backend that is not there.

    >>> x = symbol("x", shape=(None,))
    >>> f = function([x], {"double": x * 2}, backend="interpret")
    >>> f(np.array([1.0, 2.0]))
    {'double': array([2., 4.])}
    """
    return Function(inputs, outputs, backend, givens)


def jit(f: Callable | None = None, *, backend: str | None = None):
    """Compile a Python function when it is called, once for each structure of its arguments.

    Arrays among the arguments (NumPy, Array, XTensor, xr.DataArray, in pytrees) become symbols, other
    values are part of the structure. The result is what f returns, computed.
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
            entry = cache[key] = _trace(f, tree, handles, found, backend)
        return entry([h for h in handles if h is not None])

    return compiled


def _handle(value: object) -> object:
    """Return a handle for an array argument, None for any other value."""
    if _is_leaf(value):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return asarray(value, copy=False) if isinstance(value, np.ndarray) else asarray(value)
    if hasattr(value, "dims") and hasattr(value, "coords"):
        return XTensor(value)
    return None


def _signature(handle: object, value: object) -> object:
    if handle is None:
        return value
    coords = handle.coords if isinstance(handle, XTensor) else None
    return (type(handle), handle._v.type, coords if coords is None else hash(coords))


def _trace(f: Callable, tree, handles: list, values: list, backend: str | None) -> Callable:
    """Record f on symbols of the arguments' types and compile what it returns."""
    symbols = [None if h is None else _symbol_like(h, i) for i, h in enumerate(handles)]
    args, kwargs = unflatten(
        tree, [v if s is None else s for s, v in zip(symbols, values, strict=True)]
    )
    found, out_tree = flatten(f(*args, **kwargs))
    arrays = [x for x in found if _is_leaf(x)]
    graph = Graph(
        [s._v for s in symbols if s is not None], [x._v for x in arrays]
    )
    _check_inputs(graph)
    program = Program(graph, backend or "auto")

    def run(given: Sequence):
        out = iter(program([np.asarray(v) for v in compute_nodes([h._v for h in given])]))
        return unflatten(
            out_tree, [_with_value(x, next(out)) if _is_leaf(x) else x for x in found]
        )

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
    nodes = [_output_node(h) for h in found]
    for v in leaves(nodes):
        if v.is_symbol:
            raise ConcretizationError(
                f"compute needs values, but an expression depends on the symbol {v.name!r} (made at "
                f"{v.where_made()}); compile it with `function`."
            )
    values = [np.array(v) for v in compute_nodes(nodes)]
    return unflatten(
        tree,
        [
            _labelled(v, h) if isinstance(h, XTensor) else v
            for v, h in zip(values, found, strict=True)
        ],
    )


__all__ = ["Function", "compute", "function", "jit", "symbol", "tree_map"]
