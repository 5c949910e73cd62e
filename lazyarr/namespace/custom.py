"""`custom_vjp` and `custom_jvp`: functions that bring their own derivative.

The rule is recorded with the call, as a graph, so it runs on every backend, is batched, pickled and
differentiated again as everything else is.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from lazyarr.errors import GradientError
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.ops.control import picks
from lazyarr.graph.ops.control_reverse import is_float
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline
from lazyarr.namespace.control_trace import Leaf, as_handle, closed, node_of
from lazyarr.namespace.derivatives import asarray_like
from lazyarr.namespace.tree import Tree, flatten, paths, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.namespace.xtensor_data import is_labelled


class _Custom:
    """A function with a derivative rule of its own; `_mode` is the direction of the rule."""

    _mode = ""
    _turn = staticmethod(conjugate)  # what makes a public cotangent of one inside, and back

    def __init__(self, f: Callable, rule: Callable | None = None):
        functools.update_wrapper(self, f)
        self._f, self._rule = f, rule

    def _set(self, rule: Callable) -> Callable:
        self._rule = rule
        return rule

    def __call__(self, *args: object, **kwargs: object):
        if self._rule is None:
            raise GradientError(f"{self.__name__} has no rule yet; give it one by def{self._mode}.")
        leaves, tree = flatten(args)
        arrays = [i for i, v in enumerate(leaves) if _is_array(v)]
        given = [asarray_like(leaves[i]) for i in arrays]
        kinds = [Leaf.of(h) for h in given]
        symbols = [make_symbol(node_of(h).type) for h in given]
        inside = list(leaves)
        for i, kind, v in zip(arrays, kinds, symbols, strict=True):
            inside[i] = kind.handle(v)
        inner = unflatten(tree, inside)
        outputs, out_tree = flatten(self._f(*inner, **kwargs))
        outputs = [as_handle(v) for v in outputs]
        body, captures = closed(Graph(symbols, []), [node_of(h) for h in outputs])
        out_kinds = [Leaf.of(h) for h in outputs]
        ys = [make_symbol(v.type) for v in body.outputs]
        values = unflatten(out_tree, [k.handle(v) for k, v in zip(out_kinds, ys, strict=True)])
        sides = (_Side(inner, tree, symbols, arrays), _Side(values, out_tree, ys, range(len(ys))))
        rule, more = self._recorded(*sides, kwargs)
        nodes = [node_of(h) for h in given]
        now = inline(body, [*nodes, *captures])
        made = op.with_rule(
            [op.stop_gradient(v) for v in now], nodes, [*more, *captures], rule, self._mode
        )
        found = [k.handle(v) for k, v in zip(out_kinds, picks(made), strict=True)]
        return unflatten(out_tree, found)

    def _recorded(self, arguments: "_Side", values: "_Side", kwargs: dict) -> tuple:
        """Record the rule on symbols; return its graph and what it reads from outside."""
        source, target = (values, arguments) if self._mode == "vjp" else (arguments, values)
        seeds = {i: make_symbol(v.type) for i, v in enumerate(source.nodes) if is_float(v)}
        found = self._rule(source.with_leaves(seeds, self._turn), values.value, *arguments.value,
                           **kwargs)  # fmt: skip
        results = [self._turn(v) for v in target.nodes_of(found, self.__name__)]
        inputs = [*seeds.values(), *values.nodes, *arguments.nodes]
        return closed(Graph(inputs, []), results)


class _Side:
    """The arguments or the values of a function, on symbols: a pytree and the places of arrays."""

    def __init__(self, value: object, tree: Tree, nodes: list[Variable], places: Sequence[int]):
        self.value, self.tree, self.nodes, self.places = value, tree, nodes, list(places)

    def with_leaves(self, seeds: dict, turn: Callable) -> object:
        """Return the pytree with seeds at the floating arrays and None elsewhere."""
        leaves, _ = flatten(self.value)
        out: list = [None] * len(leaves)
        for k, node in seeds.items():
            out[self.places[k]] = Leaf.of(leaves[self.places[k]]).handle(turn(node))
        return unflatten(self.tree, out)

    def nodes_of(self, found: object, name: str) -> list[Variable]:
        """Return what a rule gave as a node for every floating array, zeros for None."""
        if isinstance(self.value, tuple) and len(self.value) == 1 and not isinstance(found, tuple):
            found = (found,)
        rows = _aligned(found, self.tree, name)
        leaves, _ = flatten(self.value)
        out = []
        for path, row, i in zip(paths(self.tree), rows, range(len(leaves)), strict=True):
            if i in self.places and is_float(self.nodes[self.places.index(i)]):
                out.append(_fitted(row, leaves[i], self.nodes[self.places.index(i)], path, name))
        return out


def _aligned(found: object, tree: Tree, name: str) -> list:
    """Return the leaves of a result; None may stand for a subtree."""
    if found is None:
        return [None] * tree.n_leaves
    if tree.kind is None:
        return [found]
    if tree.kind == "none":
        return []
    parts = (
        [found[k] for k in tree.keys]
        if tree.kind is dict
        else (
            [getattr(found, k) for k in tree.keys] if tree.keys else list(found)  # type: ignore[call-overload]
        )
    )
    if len(parts) != len(tree.children):
        raise GradientError(
            f"the rule of {name} returns {len(parts)} results for {len(tree.children)}."
        )
    return [v for part, child in zip(parts, tree.children, strict=True)
            for v in _aligned(part, child, name)]  # fmt: skip


def _fitted(value: object, like: object, node: Variable, path: str, name: str) -> Variable:
    """Return a result of a rule in the type of what it belongs to."""
    if value is None:
        return op.zeros(node.shape, dtype=node.dtype)
    handle = asarray_like(value)
    if isinstance(handle, XTensor) and isinstance(like, XTensor):
        out = node_of(handle.transpose(*like.dims))
    elif not handle.ndim:
        out = op.broadcast_to(node_of(handle), node.shape)
    else:
        out = node_of(asarray_like(handle))
    if out.ndim != node.ndim:
        raise GradientError(
            f"the rule of {name} returns shape {out.shape} for {path}, of shape {node.shape}."
        )
    if out.dtype.kind == "c" and node.dtype.kind != "c":
        out = op.real(out)
    out = out if out.dtype == node.dtype else op.astype(out, node.dtype)
    return out if out.shape == node.shape else op.specify_shape(out, node.shape)


def _is_array(value: object) -> bool:
    known = np.ndarray | np.generic | float | complex
    return isinstance(value, known) or hasattr(value, "_v") or is_labelled(value)


class custom_vjp(_Custom):
    """Decorate a function that brings its own reverse derivative.

    `defvjp` sets the rule `(g, y, *args) -> cotangents`: from the cotangent of the value, the value
    and the arguments, one cotangent for each argument (a tuple when there are several), None for
    zero. Integers, booleans and strings are handed through and take part in nothing. Forward mode
    is the transpose. A derivative by what the function reads from outside is refused.

    >>> import lazyarr as xp
    >>> @custom_vjp
    ... def bounded(x):
    ...     return x
    >>> @bounded.defvjp
    ... def _(g, y, x):
    ...     return xp.clip(g, -1, 1)
    >>> xp.grad(lambda x: xp.sum(bounded(x) * 5))(xp.asarray([1.0, 2.0])).compute()
    array([1., 1.])
    """

    _mode = "vjp"

    def defvjp(self, rule: Callable) -> Callable:
        """Set the rule, `(g, y, *args) -> cotangents`."""
        return self._set(rule)


class custom_jvp(_Custom):
    """Decorate a function that brings its own forward derivative.

    `defjvp` sets the rule `(tangents, y, *args) -> tangent`: from a tuple with the tangent of each
    argument (None for what is not floating), the value and the arguments, the tangent of the value,
    linear in the tangents. Reverse mode is the transpose. A derivative by what the function reads
    from outside is refused.

    >>> import lazyarr as xp
    >>> @custom_jvp
    ... def square(x):
    ...     return x * x
    >>> @square.defjvp
    ... def _(tangents, y, x):
    ...     return 3 * x * tangents[0]
    >>> float(xp.grad(square)(2.0))
    6.0
    """

    _mode = "jvp"
    _turn = staticmethod(lambda v: v)

    def defjvp(self, rule: Callable) -> Callable:
        """Set the rule, `(tangents, y, *args) -> tangent`."""
        return self._set(rule)
