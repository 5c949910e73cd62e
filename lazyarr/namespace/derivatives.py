"""Derivatives of functions and of expressions: `grad`, `value_and_grad`, `vjp`, `jvp`, `linearize`.

The first argument decides: a function is transformed, an expression is differentiated by the
handles given. Named expressions are lowered first, and a gradient has the dims and coords of what
it is the gradient of. The gradient by a complex z = x + iy is df/dx + i df/dy, the direction of
steepest ascent.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.implicit import HISTORY
from lazyarr.errors import ArgumentError, GradientError, ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import substitute, toposort
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.tree import Tree, flatten, paths, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.namespace.xtensor_data import is_labelled
from lazyarr.xtensor.lower import lower_nodes
from lazyarr.xtensor.naming import unnamed
from lazyarr.xtensor.reducing import warn_of_skipped

UNUSED = ("zero", "warn", "raise")


def _is_handle(value: object) -> bool:
    return isinstance(value, Array | XTensor)


def _node(handle: object, what: str) -> Variable:
    node = unwrap(handle)
    if node.__class__ is not Variable:
        raise GradientError(f"{what} must be an Array or XTensor, got {type(handle).__name__}.")
    return node


def _check_wrt(node: Variable, label: str) -> Variable:
    if node.type.dtype.kind not in "fc":
        raise GradientError(
            f"cannot differentiate by {label}: its dtype is {node.type.dtype}, and only floating "
            "dtypes have derivatives; cast it with astype, or leave it out of `argnums`/`wrt`."
        )
    return node


def positional(nodes: Sequence[Variable]) -> list[Variable]:
    """Return positional counterparts of nodes on the same leaves."""
    return lowered(nodes)[0]


def lowered(nodes: Sequence[Variable]) -> tuple[list[Variable], Callable]:
    """Return positional counterparts of nodes, and how to express results by the nodes again.

    Lowering makes copies. A result that is left on the copies does not depend on the named nodes,
    so that its own derivative by them would be 0.
    """
    if not any(getattr(v.type, "named", False) for v in nodes) and not _below_named(nodes):
        return list(nodes), list
    done = lower_nodes(nodes)
    warn_of_skipped(done)
    return [done[v] for v in nodes], lambda values: _tied(values, done)


def _tied(values: Sequence[Variable | None], done: dict) -> list[Variable | None]:
    """Return results with the copies that lowering made replaced by what they are copies of."""
    kept = {low for v, low in done.items() if low is v}
    sources = {
        low: v
        for v, low in done.items()
        if low not in kept and not (low.op is OPS["drop_dims"] and low.inputs[0] is v)
    }
    mapping: dict[Variable, Variable] = {}
    found = [v for v in values if v is not None]
    seen, stack = set(found), list(found)
    while stack:
        v = stack.pop()
        if v in sources:
            mapping[v] = unnamed(sources[v])
            continue
        fresh = [x for x in v.inputs if x.__class__ is Variable and x not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    rest = iter(substitute(found, mapping))
    return [None if v is None else next(rest) for v in values]


def _below_named(nodes: Sequence[Variable]) -> bool:
    """Tell whether a named node stands somewhere below."""
    seen: set[Variable] = set()
    stack = list(nodes)
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if getattr(v.type, "named", False):
            return True
        stack.extend(x for x in v.inputs if x.__class__ is Variable)
    return False


def relabel(value: Variable, like: object) -> object:
    """Return a handle of a positional result with the dims and coords of another handle."""
    if isinstance(like, XTensor):
        named = op.with_dims(value, like._v.type.dims)
        return XTensor._of(named, like.coords, like.name, like.attrs)
    return Array(value)


def gradients(y: object, wrt: Sequence, unused: str = "zero") -> list:
    """Return the gradient of a 0-d expression by each handle.

    `unused` says what becomes of handles that y does not depend on: "zero", "warn" or "raise".
    """
    if unused not in UNUSED:
        raise ArgumentError(f'unused is "zero", "warn" or "raise", not {unused!r}.')
    y = asarray_like(y)
    top = _node(y, "what is differentiated")
    if top.type.ndim:
        raise GradientError(
            f"the gradient needs one number, the expression has shape {top.type.shape}; take a sum "
            "of it, or use vjp or jacobian."
        )
    _check_wrt(top, "this expression's value")
    if top.type.dtype.kind == "c":
        raise GradientError(
            "the gradient is that of a real number, the expression is complex; take its real part "
            "or abs, or use jvp for the derivative of a holomorphic function."
        )
    nodes = [_check_wrt(_node(h, "wrt"), f"input {i}") for i, h in enumerate(wrt)]
    low, tied = lowered([top, *nodes])
    one = op.full((), 1.0, dtype=low[0].dtype)
    found = tied(pullback([low[0]], low[1:], [one]))
    out = []
    for i, (g, x, h) in enumerate(zip(found, low[1:], wrt, strict=True)):
        if g is None:
            _unconnected(low[0], i, unused)
            g = op.zeros(x.shape, dtype=x.dtype)
        out.append(relabel(conjugate(g), h))
    return out


def _unconnected(y: Variable, i: int, unused: str) -> None:
    """Say that an expression does not depend on an input, as asked; refuse where it may have."""
    if any(v.is_cut for v in toposort([y])):
        raise GradientError(
            f"the expression was computed so long ago that how it depends on input {i} was dropped "
            f"(after {HISTORY} evaluations, or when recorded arrays held too many bytes); "
            "differentiate a function with `grad(f)` instead."
        )
    if unused == "raise":
        raise GradientError(f"the expression does not depend on input {i}.")
    if unused == "warn":
        warnings.warn(f"the expression does not depend on input {i}", stacklevel=4)


def grad(f: object, argnums: object = 0, *, has_aux: bool = False, unused: str = "zero"):
    """Return the gradient of a function, as a function, or of a 0-d expression by handles.

    argnums: the number of an argument, or several; for an expression the handles, a pytree. With
    `has_aux`, f returns a pair (value, aux), and the gradient is a pair with aux. unused: what is
    done about inputs on which the value does not depend: "zero", "warn" or "raise".

    >>> import lazyarr as xp
    >>> x = xp.asarray([1.0, 2.0])
    >>> xp.grad(lambda x: xp.sum(x**2))(x).compute()
    array([2., 4.])
    >>> xp.grad(xp.sum(x**2), x).compute()
    array([2., 4.])
    """
    if _is_handle(f):
        if argnums.__class__ is int:
            raise GradientError("say what to differentiate the expression by: grad(y, x).")
        leaves, tree = flatten(argnums)
        return unflatten(tree, gradients(f, leaves, unused))
    both = value_and_grad(f, argnums, has_aux=has_aux, unused=unused)

    def gradient(*args: object, **kwargs: object):
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


def value_and_grad(f: object, argnums: object = 0, *, has_aux: bool = False, unused: str = "zero"):
    """Return value and gradient: of a function as a function, or of an expression as a pair.

    The parameters are those of `grad`.

    >>> import lazyarr as xp
    >>> x = xp.symbol("x", shape=(3,))
    >>> f = xp.function([x], xp.value_and_grad(xp.sum(x**2), x), backend="interpret")
    >>> f([1.0, 2.0, 3.0])
    (array(14.), array([2., 4., 6.]))
    """
    if _is_handle(f):
        return f, grad(f, argnums, unused=unused)

    def both(*args: object, **kwargs: object):
        value, leaves, build = recorded(f, argnums, args, kwargs)
        y, _ = _with_aux(value, has_aux)
        return value, build(gradients(y, leaves, unused))

    return both


def recorded(f: object, argnums: object, args: Sequence, kwargs: Mapping) -> tuple:
    """Call f on independent handles of chosen arguments.

    Returns its value, the handles, and how to arrange one result for each handle.
    """
    numbers = argnums if isinstance(argnums, tuple | list) else (argnums,)
    fresh, leaves, trees = list(args), [], []
    for i in numbers:
        if not isinstance(i, int) or not -len(args) <= i < len(args):
            raise ArgumentError(f"argnums: there is no argument {i!r} among {len(args)}.")
        found, tree = _independents(args[i], f"argument {i}")
        fresh[i] = unflatten(tree, found)
        leaves.extend(found)
        trees.append(tree)

    def build(results: Sequence) -> object:
        rest = iter(results)
        each = [unflatten(t, [next(rest) for _ in range(t.n_leaves)]) for t in trees]
        return tuple(each) if isinstance(argnums, tuple | list) else each[0]

    return f(*fresh, **kwargs), leaves, build  # type: ignore[operator]


def _independents(value: object, label: str) -> tuple[list, Tree]:
    """Return a handle of its own for every leaf of an argument, so that only uses inside count."""
    leaves, tree = flatten(value)
    return [_independent(x, p) for x, p in zip(leaves, paths(tree, label), strict=True)], tree


def _independent(value: object, label: str = "an argument") -> object:
    if is_labelled(value) and not isinstance(value, XTensor):
        value = XTensor(value)
    if isinstance(value, XTensor):
        _check_wrt(value._v, label)
        return XTensor._of(op.positive(value._v), value.coords, value.name, value.attrs)
    handle = value if isinstance(value, Array) else asarray(value)
    return Array(op.positive(_check_wrt(handle._v, label)))


def _with_aux(value: object, has_aux: bool) -> tuple:
    """Return what is differentiated and what is handed through."""
    if not has_aux:
        return value, ()
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError("with has_aux=True the function returns a pair (value, aux).")
    return value[0], (value[1],)


def vjp(f: Callable, *primals: object, has_aux: bool = False):
    """Return `f(*primals)` and a function from its cotangent to those of the primals.

    Primals and value may be pytrees; cotangents come and go in their structures. With `has_aux`, f
    returns a pair (value, aux), and aux comes third. By complex numbers the cotangents are
    conjugated as gradients are.

    >>> import lazyarr as xp
    >>> y, back = vjp(lambda x: x**2, xp.asarray([1.0, 2.0]))
    >>> back(xp.asarray([1.0, 10.0]))[0].compute()
    array([ 2., 40.])
    """
    leaves, tree = _independents(tuple(primals), "primals")
    y, aux = _with_aux(f(*unflatten(tree, leaves)), has_aux)
    values, y_tree = flatten(y)
    values = [asarray_like(v) for v in values]

    def back(cotangent: object):
        seeds = _seeds(cotangent, values, y_tree, "a cotangent")
        low, tied = lowered([*(v._v for v in values), *(x._v for x in leaves)])
        ys, xs = low[: len(values)], low[len(values) :]
        found = tied(pullback(ys, xs, [conjugate(g) for g in seeds]))
        return unflatten(tree, _filled(map(_conjugate, found), xs, leaves))

    return y, back, *aux


def _conjugate(v: Variable | None) -> Variable | None:
    return None if v is None else conjugate(v)


def _filled(found: Iterable, nodes: Sequence[Variable], like: Sequence) -> list:
    """Return handles of results, zeros for those that are None."""
    return [
        relabel(op.zeros(x.shape, dtype=x.dtype) if v is None else v, h)
        for v, x, h in zip(found, nodes, like, strict=True)
    ]


def jvp(f: Callable, primals: Sequence, tangents: Sequence, *, has_aux: bool = False):
    """Return `f(*primals)` and its tangent along tangents, which have the structure of the primals.

    With `has_aux`, f returns a pair (value, aux), and aux comes third. It is the derivative of
    holomorphic functions.

    >>> import lazyarr as xp
    >>> xp.jvp(lambda x: x**2, (xp.asarray(3.0),), (xp.asarray(1.0),))[1].compute()
    array(6.)
    """
    y, push, *aux = linearize(f, *primals, has_aux=has_aux)
    return y, push(*tangents), *aux


def linearize(f: Callable, *primals: object, has_aux: bool = False):
    """Return `f(*primals)` and the linear function of its tangents there.

    f is recorded and differentiated once, however often the linear function is called. With
    `has_aux`, f returns a pair (value, aux), and aux comes third.

    >>> import lazyarr as xp
    >>> y, push = linearize(xp.sin, xp.asarray(0.0))
    >>> float(push(2.0)), float(push(3.0))
    (2.0, 3.0)
    """
    leaves, tree = _independents(tuple(primals), "primals")
    y, aux = _with_aux(f(*unflatten(tree, leaves)), has_aux)
    values, y_tree = flatten(y)
    values = [asarray_like(v) for v in values]
    low, tied = lowered([*(v._v for v in values), *(x._v for x in leaves)])
    ys, xs = low[: len(values)], low[len(values) :]
    slots = [make_symbol(TensorType(x.dtype, x.shape)) for x in xs]
    found = tied(pushforward(ys, xs, slots))

    def push(*tangents: object):
        seeds = _seeds(tuple(tangents), leaves, tree, "a tangent")
        here = iter(
            substitute([t for t in found if t is not None], dict(zip(slots, seeds, strict=True)))
        )
        moved = [None if t is None else next(here) for t in found]
        return unflatten(y_tree, _filled(moved, ys, values))

    return y, push, *aux


def _seeds(given: object, like: Sequence, tree: Tree, what: str) -> list[Variable]:
    """Return cotangents or tangents as positional nodes of the types of what they belong to."""
    found, other = flatten(given)
    if tree.kind is not None and other != tree:
        raise ArgumentError(f"{what} has not the structure of what it belongs to, {paths(tree)}.")
    if len(found) != len(like):
        raise ArgumentError(f"{len(found)} for {len(like)}: {what} belongs to every leaf.")
    return [unnamed(like_handle(t, h, what)) for t, h in zip(found, like, strict=True)]


def like_handle(value: object, handle: object, what: str = "a tangent") -> Variable:
    """Return a value with the dtype, the order of dims and the shape of a handle."""
    t = asarray_like(value)
    if isinstance(t, XTensor) and isinstance(handle, XTensor):
        t = t.transpose(*handle.dims)
    node, want = t._v, handle._v.type  # type: ignore[attr-defined]
    if node.type.dtype != want.dtype:
        node = op.astype(node, want.dtype)
    if node.type.ndim != want.ndim:
        raise ShapeError(f"{what} of shape {node.type.shape} for a value of shape {want.shape}.")
    return node


def asarray_like(value: object) -> object:
    """Return a handle for anything array-like."""
    if is_labelled(value) and not isinstance(value, XTensor):
        return XTensor(value)
    return value if _is_handle(value) else asarray(value)


def stop_gradient(x: object) -> object:
    """Return x, which derivatives take for a constant.

    >>> import lazyarr as xp
    >>> float(xp.grad(lambda x: x * stop_gradient(x))(3.0))
    3.0
    """
    handle = asarray_like(x)
    node = op.stop_gradient(_node(handle, "x"))
    if isinstance(handle, XTensor):
        return XTensor._of(node, handle.coords, handle.name, handle.attrs)
    return Array(node)
