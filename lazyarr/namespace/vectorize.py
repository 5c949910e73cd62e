"""`vectorize`, and the derivatives made with it: `jacobian`, `hessian` and `hvp`.

A function is recorded once, on symbols without the axis, and the recorded graph is batched by the
kinds of its ops, so what runs is whole-array code. XTensors are mapped over a named dimension.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lazyarr.autodiff.batch import batch_nodes, fronted, widened
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.config import options
from lazyarr.errors import ArgumentError, AxisError, DimError, GradientError, ShapeError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.derivatives import (
    _check_wrt,
    _independents,
    _is_handle,
    _node,
    _with_aux,
    asarray_like,
    gradients,
    like_handle,
    lowered,
    recorded,
    relabel,
)
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.tree import Tree, flatten, tree_map, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.namespace.xtensor_data import is_labelled
from lazyarr.xtensor.coords import Coords
from lazyarr.xtensor.joining import merge
from lazyarr.xtensor.naming import unnamed
from lazyarr.xtensor.types import XTensorType

# -- vectorize ------------------------------------------------------------------------------------


def vectorize(
    f: Callable | None = None,
    in_axes: object = 0,
    out_axes: object = 0,
    *,
    dim: str | None = None,
):
    """Return f mapped over an axis of its arguments, recorded once and run on all elements at once.

    in_axes: the mapped axis of every argument, or a tuple with an entry per argument: an axis, None
    for an argument that every call shares, or a pytree of these. out_axes: where results have the
    axis, in the form of the result. Keyword arguments are shared. With `dim`, every XTensor that
    has the dimension is mapped over it, in keyword arguments too, and results have it in front,
    with its coordinates. Raises ShapeError when the mapped axes differ in size.

    >>> import lazyarr as xp
    >>> x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> vectorize(lambda row, s: xp.sum(row) * s, in_axes=(0, None))(x, 10.0).compute()
    array([30., 70.])
    """
    if f is None:
        return functools.partial(vectorize, in_axes=in_axes, out_axes=out_axes, dim=dim)

    @functools.wraps(f)
    def mapped(*args: object, **kwargs: object):
        values, tree = flatten((args, kwargs))
        if dim is None:
            axes = _spread(_per_argument(in_axes, args), tree.children[0], "in_axes")
            axes += [None] * tree.children[1].n_leaves
            found = [_by_axis(v, axis) for v, axis in zip(values, axes, strict=True)]
        else:
            found = [_by_dim(v, dim) for v in values]
        moved = [m for m in found if m is not None]
        size = _common_size(moved, dim)
        inner = [v if m is None else m.handle for v, m in zip(values, found, strict=True)]
        inner_args, inner_kwargs = unflatten(tree, inner)
        results, out_tree = flatten(f(*inner_args, **inner_kwargs))
        places = _spread(0 if dim is not None else out_axes, out_tree, "out_axes")
        labels = _labels(moved, dim)
        return unflatten(out_tree, _mapped_results(results, places, moved, size, dim, labels))

    return mapped


@dataclass(frozen=True)
class _Moved:
    """A mapped argument: the given handle, the axis, and the handle of one element of it."""

    given: object
    axis: int
    handle: object


def _per_argument(in_axes: object, args: tuple) -> object:
    """Return in_axes as one axis for all arguments or an entry for each."""
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != len(args):
            raise ArgumentError(f"in_axes has {len(in_axes)} entries for {len(args)} arguments.")
        return tuple(in_axes)
    return in_axes


def _spread(axes: object, tree: Tree, what: str) -> list:
    """Return the axis of each leaf from a pytree of axes, whose leaves may stand for subtrees."""
    if axes is None or isinstance(axes, int):
        return [axes] * tree.n_leaves
    if isinstance(axes, Mapping) and tree.kind is dict and set(axes) == set(tree.keys):
        entries = [axes[k] for k in tree.keys]
    elif isinstance(axes, tuple | list) and len(axes) == len(tree.children):
        entries = list(axes)
    else:
        raise ArgumentError(f"{what}: {axes!r} does not have the structure of what it describes.")
    return [
        axis
        for entry, child in zip(entries, tree.children, strict=True)
        for axis in _spread(entry, child, what)
    ]


def _by_axis(value: object, axis: int | None) -> _Moved | None:
    """Map an argument over an axis; what is no array is passed on as it is."""
    if axis is None or isinstance(value, str) or callable(value):
        return None
    if isinstance(value, XTensor) or is_labelled(value):
        raise ArgumentError(
            "vectorize maps arrays with names over a dimension: say which with `dim=`, or keep the "
            "argument whole with None in in_axes."
        )
    handle = asarray(value)
    if not -handle.ndim <= axis < handle.ndim:
        raise AxisError(
            f"an argument of shape {handle.shape} has no axis {axis} to map over; use None in "
            "in_axes for what every call shares."
        )
    axis %= handle.ndim
    t = handle._v.type
    element = TensorType(t.dtype, t.shape[:axis] + t.shape[axis + 1 :])
    return _Moved(handle, axis, Array(make_symbol(element, handle._v.name)))


def _by_dim(value: object, dim: str) -> _Moved | None:
    """Map an argument over a dimension; what has it not is passed on as it is."""
    handle = XTensor(value) if is_labelled(value) and not isinstance(value, XTensor) else value
    if not isinstance(handle, XTensor) or dim not in handle.dims:
        return None
    t, axis = handle._v.type, handle.dims.index(dim)
    dims = t.dims[:axis] + t.dims[axis + 1 :]
    node = make_symbol(
        XTensorType(t.dtype, dims, t.shape[:axis] + t.shape[axis + 1 :]), handle._v.name
    )
    inner = XTensor._of(node, handle.coords.without_dim(dim), handle.name, handle.attrs)
    return _Moved(handle, axis, inner)


def _common_size(moved: Sequence[_Moved], dim: str | None) -> object:
    """Return the size of the mapped axis, a known one where there is one."""
    sizes = [m.given._v.type.shape[m.axis] for m in moved]
    if not sizes:
        what = "an axis" if dim is None else f"dimension {dim!r}"
        raise ArgumentError(f"vectorize: no argument has {what} to map over.")
    known = [s for s in sizes if isinstance(s, int)]
    if len(set(known)) > 1:
        raise ShapeError(f"vectorize: the mapped axes have sizes {sizes}; they must be equal.")
    return known[0] if known else sizes[0]


def _front(m: _Moved, size: object) -> Variable:
    """Return a mapped argument as a positional node, the mapped axis in front, of a given size."""
    node = m.given._v
    if isinstance(m.given, XTensor):
        node = op.drop_dims(node)
    node = fronted(node, m.axis)
    shape = (size, *node.shape[1:])
    return node if node.shape == shape else op.specify_shape(node, shape)


def _labels(moved: Sequence[_Moved], dim: str | None) -> Coords:
    """Return the coordinates that lie on the mapped dimension, the same in every argument."""
    if dim is None:
        return Coords()
    return merge(
        [m.given.coords.where(lambda name, c: dim in c.dims) for m in moved],
        options.arithmetic_join,
    )


def _mapped_results(results, places, moved, size, dim, labels) -> list:
    """Batch what f recorded and return its results with the axis; others stay as they are."""
    arrays = [i for i, r in enumerate(results) if _is_array(r)]
    handles = [asarray_like(results[i]) for i in arrays]
    nodes, tied = lowered([*(h._v for h in handles), *(m.handle._v for m in moved)])
    symbols = nodes[len(handles) :]
    given = {s: (_front(m, size), True) for s, m in zip(symbols, moved, strict=True)}
    pairs = batch_nodes(nodes[: len(handles)], given, size)
    rows = tied([node for node, _ in pairs])
    out = list(results)
    for i, h, node, (_, batched) in zip(arrays, handles, rows, pairs, strict=True):
        out[i] = _placed(h, node, batched, places[i], size, dim, labels)
    return out


def _is_array(value: object) -> bool:
    known = Array | XTensor | np.ndarray | np.generic | bool | int | float | complex
    return isinstance(value, known) or is_labelled(value)


def _placed(handle, node: Variable, batched: bool, place, size, dim, labels: Coords):
    """Return a result with the mapped axis at its place."""
    if place is None:
        if batched:
            raise ArgumentError("out_axes is None for a result that differs between the calls.")
        return handle
    node = widened(node, batched, size)
    if isinstance(handle, XTensor):
        return _named_result(handle, node, dim, labels)
    if not -node.ndim <= place < node.ndim:
        raise AxisError(f"out_axes: a result with {node.ndim} axes has no axis {place}.")
    order = list(range(1, node.ndim))
    order.insert(place % node.ndim, 0)
    return Array(node if not place else op.permute_dims(node, tuple(order)))


def _named_result(handle: XTensor, node: Variable, dim: str | None, labels: Coords) -> XTensor:
    if dim is None:
        raise ArgumentError(
            "a result with names needs a name for the mapped axis: say which with `dim=`."
        )
    if dim in handle.dims:
        raise DimError(
            f"a result has dimension {dim!r} already, from something that is not an argument; "
            "pass it as an argument, so that it is mapped too."
        )
    dims = (dim, *handle.dims)
    new = labels.within(dims)
    coords = handle.coords.assign({name: new[name] for name in new})
    return XTensor._of(op.with_dims(node, dims), coords, handle.name, handle.attrs)


# -- jacobian -------------------------------------------------------------------------------------


def jacobian(f: object, argnums: object = 0, *, mode: str | None = None, has_aux: bool = False):
    """Return the Jacobian of a function, as a function, or of an expression by handles.

    Its shape is that of the value followed by that of the argument. For XTensors its dims are those
    of the value, then those of the argument, with a trailing underscore where both have the name.
    Values and arguments may be pytrees: the result has the tree of the value, in it the argument's.
    mode: "forward" (one pass for each element of the argument), "reverse" (for each element of the
    value), or None for the cheaper. With `has_aux`, f returns a pair (value, aux), and the result
    is a pair with aux. By a complex z = x + iy every row is the gradient of a real value,
    df/dx + i df/dy; a complex value has a Jacobian by real arguments only, else GradientError.

    >>> import lazyarr as xp
    >>> jacobian(lambda x: x**2)(xp.asarray([1.0, 2.0])).compute()
    array([[2., 0.],
           [0., 4.]])
    """
    if mode not in (None, "forward", "reverse"):
        raise ArgumentError(f'mode is "forward", "reverse" or None, got {mode!r}.')
    if _is_handle(f):
        leaves, tree = flatten(argnums)
        return unflatten(tree, _jacobians(f, leaves, mode))

    def derivative(*args: object, **kwargs: object):
        value, leaves, build = recorded(f, argnums, args, kwargs)
        value, aux = _with_aux(value, has_aux)
        out = tree_map(lambda y: build(_jacobians(y, leaves, mode)), value)
        return (out, *aux) if has_aux else out

    return derivative


def _jacobians(y: object, wrt: Sequence, mode: str | None) -> list:
    """Return the Jacobian of an expression by each handle."""
    y = asarray_like(y)
    top = _check_wrt(_node(y, "what is differentiated"), "this expression's value")
    nodes = [_check_wrt(_node(h, "wrt"), f"input {i}") for i, h in enumerate(wrt)]
    if top.type.dtype.kind == "c" and any(v.type.dtype.kind == "c" for v in nodes):
        raise GradientError(
            "the Jacobian of a complex value by a complex argument is not one array; take real and "
            "imaginary parts apart, or use jvp."
        )
    (value, *xs), tied = lowered([top, *nodes])
    modes = [mode or _cheaper(value, x) for x in xs]
    if value.dtype.kind == "c":
        parts = [_by_mode(part, xs, modes) for part in (op.real(value), op.imag(value))]
        found = [_complex(re, im) for re, im in zip(*parts, strict=True)]
    else:
        found = _by_mode(value, xs, modes)
    return [_between(v, y, h) for v, h in zip(tied(found), wrt, strict=True)]


def _by_mode(value: Variable, xs: Sequence[Variable], modes: Sequence[str]) -> list[Variable]:
    """Return the Jacobians of a real value, each by its mode; all rows are made by one pullback."""
    by_rows = [x for x, m in zip(xs, modes, strict=True) if m == "reverse"]
    rows = iter(_rows(value, by_rows) if by_rows else ())
    return [
        next(rows) if m == "reverse" else _columns(value, x) for x, m in zip(xs, modes, strict=True)
    ]


def _complex(real: Variable, imaginary: Variable) -> Variable:
    return op.add(real, op.multiply(imaginary, 1j))


def _cheaper(y: Variable, x: Variable) -> str:
    """The mode with fewer passes, where the sizes are known; else the one right for a number."""
    rows, columns = shapes.product(y.shape), shapes.product(x.shape)
    if x.dtype.kind == "c":
        return "reverse"
    if isinstance(rows, int) and isinstance(columns, int):
        return "forward" if columns < rows else "reverse"
    return "forward" if x.ndim == 0 and y.ndim else "reverse"


def _identity(x: Variable) -> tuple[Variable, object]:
    """Every element of the standard basis of a node's shape, stacked, and their number."""
    size = shapes.product(x.shape)
    return op.reshape(op.eye(size, dtype=x.dtype), (size, *x.shape)), size


def _rows(y: Variable, xs: Sequence[Variable]) -> list[Variable]:
    """The Jacobians by reverse mode: the pullback of every basis element at once."""
    seed = make_symbol(TensorType(y.dtype, y.shape))
    back = pullback([y], xs, [seed])
    back = [
        op.zeros(x.shape, dtype=x.dtype) if g is None else g for g, x in zip(back, xs, strict=True)
    ]
    basis, size = _identity(y)
    found = batch_nodes(back, {seed: (basis, True)}, size)
    return [
        op.reshape(conjugate(widened(g, batched, size)), (*y.shape, *x.shape))
        for (g, batched), x in zip(found, xs, strict=True)
    ]


def _columns(y: Variable, x: Variable) -> Variable:
    """The Jacobian by forward mode: the pushforward of every basis element at once."""
    seed = make_symbol(TensorType(x.dtype, x.shape))
    (push,) = pushforward([y], [x], [seed])
    if push is None:
        return op.zeros((*y.shape, *x.shape), dtype=y.dtype)
    basis, size = _identity(x)

    def along(directions: Variable) -> Variable:
        ((out, batched),) = batch_nodes([push], {seed: (directions, True)}, size)
        out = widened(out, batched, size)
        return op.reshape(op.permute_dims(out, (*range(1, out.ndim), 0)), (*y.shape, *x.shape))

    if x.dtype.kind != "c":
        return along(basis)
    return _complex(op.real(along(basis)), op.real(along(op.multiply(basis, 1j))))


def _between(value: Variable, y: object, x: object) -> object:
    """Return the handle of a Jacobian, named where every axis of the value and of x has a name."""
    sides = [h for h in (y, x) if h.ndim]
    if not any(isinstance(h, XTensor) for h in (y, x)):
        return Array(value)
    if not all(isinstance(h, XTensor) for h in sides):
        return Array(value)
    dims, coords = (y.dims, y.coords) if isinstance(y, XTensor) else ((), Coords())
    if isinstance(x, XTensor):
        taken = {*dims, *coords}
        names = {n: _free(n, taken) for n in (*x.dims, *x.coords) if n in taken}
        own = x.coords.where(lambda name, c: bool(c.dims) or name not in taken).rename(names)
        dims = (*dims, *(names.get(d, d) for d in x.dims))
        coords = coords.assign({name: own[name] for name in own})
    return XTensor._of(op.with_dims(value, dims), coords)


def _free(name: str, taken: set) -> str:
    """Return a name with as many underscores behind it as make it new."""
    while name in taken:
        name += "_"
    return name


# -- second derivatives ---------------------------------------------------------------------------


def hessian(f: object, argnums: object = 0, *, has_aux: bool = False):
    """Return the matrix of second derivatives of a 0-d function or expression.

    Its shape is that of the argument twice; for XTensors the second dims have a trailing
    underscore. By several arguments it is a pytree in a pytree. It is forward over reverse mode.
    With `has_aux`, f returns a pair (value, aux), and the result is a pair with aux.

    >>> import lazyarr as xp
    >>> hessian(lambda x: xp.sum(x**3))(xp.asarray([1.0, 2.0])).compute()
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    if _is_handle(f):
        leaves, tree = flatten(argnums)
        return unflatten(tree, [unflatten(tree, row) for row in _hessians(f, leaves)])

    def derivative(*args: object, **kwargs: object):
        value, leaves, build = recorded(f, argnums, args, kwargs)
        value, aux = _with_aux(value, has_aux)
        out = build([build(row) for row in _hessians(value, leaves)])
        return (out, *aux) if has_aux else out

    return derivative


def _hessians(y: object, wrt: Sequence) -> list[list]:
    return [_jacobians(g, wrt, "forward") for g in gradients(y, wrt)]


def hvp(f: object, primals: object, tangents: object):
    """Return the Hessian of a 0-d function at primals, times tangents, without making the Hessian.

    primals and tangents are tuples with an entry, a pytree, for each argument of f; the result has
    their structure. For an expression, primals are the handles to differentiate by, a pytree.

    >>> import lazyarr as xp
    >>> x, v = xp.asarray([1.0, 2.0]), xp.asarray([1.0, 1.0])
    >>> hvp(lambda x: xp.sum(x**3), (x,), (v,))[0].compute()
    array([ 6., 12.])
    """
    if _is_handle(f):
        y = f
        leaves, tree = flatten(primals)
    else:
        leaves, tree = _independents(tuple(primals), "primals")
        y = f(*unflatten(tree, leaves))
    directions, other = flatten(tangents if _is_handle(f) else tuple(tangents))
    if len(directions) != len(leaves) or (other != tree and tree.kind is not None):
        raise ArgumentError("hvp: primals and tangents differ in structure.")
    first = gradients(y, leaves)
    low, tied = lowered([*(g._v for g in first), *(x._v for x in leaves)])
    grads, xs = low[: len(first)], low[len(first) :]
    seeds = [unnamed(like_handle(t, h)) for t, h in zip(directions, leaves, strict=True)]
    found = tied(pushforward(grads, xs, seeds))
    return unflatten(
        tree,
        [
            relabel(op.zeros(x.shape, dtype=x.dtype) if v is None else v, h)
            for v, x, h in zip(found, xs, leaves, strict=True)
        ],
    )


__all__ = ["hessian", "hvp", "jacobian", "vectorize"]
