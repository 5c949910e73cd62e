"""Derivatives of functions and of expressions: `grad`, `value_and_grad`, `vjp`, `jvp`.

The first argument decides: a function is transformed, an expression is differentiated by the
handles given. Named expressions are lowered first, and a gradient has the dims and coords of what it
is the gradient of. The gradient by a complex z = x + iy is df/dx + i df/dy, the direction of steepest
ascent.
"""

import warnings
from collections.abc import Callable, Sequence

from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.implicit import HISTORY
from lazyarr.errors import GradientError
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import substitute, toposort
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.tree import flatten, tree_map, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.xtensor.lower import lower_nodes
from lazyarr.xtensor.naming import unnamed


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
    top = _node(y, "what is differentiated")
    if top.type.ndim:
        raise GradientError(
            f"the gradient needs one number, the expression has shape {top.type.shape}; take a sum "
            "of it, or use vjp or jacobian."
        )
    _check_wrt(top, "this expression's value")
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


def grad(f: object, argnums: object = 0, *, has_aux: bool = False):
    """Return the gradient of a function, as a function, or of a 0-d expression by handles.

    >>> import lazyarr as xp
    >>> x = xp.asarray([1.0, 2.0])
    >>> xp.grad(lambda x: xp.sum(x**2))(x).compute()
    array([2., 4.])
    >>> xp.grad(xp.sum(x**2), x).compute()
    array([2., 4.])
    """
    if _is_handle(f):
        leaves, tree = flatten(argnums)
        return unflatten(tree, gradients(f, leaves))
    both = value_and_grad(f, argnums, has_aux=has_aux)

    def gradient(*args: object, **kwargs: object):
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


def value_and_grad(f: object, argnums: object = 0, *, has_aux: bool = False):
    """Return value and gradient: of a function as a function, or of an expression as a pair.

    >>> import lazyarr as xp
    >>> x = xp.symbol("x", shape=(3,))
    >>> f = xp.function([x], xp.value_and_grad(xp.sum(x**2), x), backend="interpret")
    >>> f([1.0, 2.0, 3.0])
    (array(14.), array([2., 4., 6.]))
    """
    if _is_handle(f):
        return f, grad(f, argnums)

    def both(*args: object, **kwargs: object):
        numbers = argnums if isinstance(argnums, tuple | list) else (argnums,)
        fresh = list(args)
        leaves, trees = [], []
        for i in numbers:
            fresh[i] = tree_map(_independent, args[i])
            found, tree = flatten(fresh[i])
            leaves.append(found)
            trees.append(tree)
        value = f(*fresh, **kwargs)  # type: ignore[operator]
        y = value[0] if has_aux else value
        found = iter(gradients(y, [x for group in leaves for x in group]))
        each = [
            unflatten(tree, [next(found) for _ in group])
            for tree, group in zip(trees, leaves, strict=True)
        ]
        return value, (tuple(each) if isinstance(argnums, tuple | list) else each[0])

    return both


def _independent(value: object) -> object:
    """Return a handle of its own for an argument, so that only its uses inside f count."""
    if isinstance(value, XTensor):
        return XTensor._of(op.positive(value._v), value.coords, value.name, value.attrs)
    handle = value if isinstance(value, Array) else asarray(value)
    if handle.dtype.kind not in "fc":
        _check_wrt(handle._v, "an argument")
    return Array(op.positive(handle._v))


def vjp(f: Callable, *primals: object):
    """Return `f(*primals)` and a function from its cotangent to those of the primals."""
    fresh = [_independent(x) for x in primals]
    y = f(*fresh)

    def back(cotangent: object):
        low, tied = lowered([_node(y, "the result"), *(x._v for x in fresh)])
        g = unnamed(_node(asarray_like(cotangent), "the cotangent"))
        found = tied(pullback([low[0]], low[1:], [conjugate(g)]))
        return tuple(
            relabel(op.zeros(x.shape, dtype=x.dtype) if v is None else conjugate(v), h)
            for v, x, h in zip(found, low[1:], fresh, strict=True)
        )

    return y, back


def jvp(f: Callable, primals: Sequence, tangents: Sequence):
    """Return `f(*primals)` and its tangent along tangents."""
    fresh = [_independent(x) for x in primals]
    y = f(*fresh)
    low, tied = lowered([_node(y, "the result"), *(x._v for x in fresh)])
    seeds = [unnamed(_node(asarray_like(t), "a tangent")) for t in tangents]
    (found,) = tied(pushforward([low[0]], low[1:], seeds))
    if found is None:
        found = op.zeros(low[0].shape, dtype=low[0].dtype)
    return y, relabel(found, y)


def asarray_like(value: object) -> object:
    """Return a handle for anything array-like."""
    return value if _is_handle(value) else asarray(value)


def stop_gradient(x: object) -> object:
    """Return x, which derivatives take for a constant."""
    node = op.stop_gradient(_node(asarray_like(x), "x"))
    if isinstance(x, XTensor):
        return XTensor._of(node, x.coords, x.name, x.attrs)
    return Array(node)


