"""Recording the step of a loop: handles in and out, what it reads from outside, and its types.

A loop is positional inside. `Leaf` says how a handle of the carry, of xs or of a result comes back
from its positional node, with dims and coordinates where it had them.
"""

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lazyarr.errors import ArgumentError, DimError, DTypeError, ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph, substitute, toposort
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.tree import Tree, flatten, paths, unflatten
from lazyarr.namespace.xtensor import XTensor
from lazyarr.xtensor.coords import Coords
from lazyarr.xtensor.lower import lower_nodes
from lazyarr.xtensor.naming import unnamed

WEAK = (bool, int, float, complex)


@dataclass(frozen=True)
class Leaf:
    """What a handle has beside its elements: dims (None for an Array), coords, name, attrs."""

    dims: tuple[str, ...] | None = None
    coords: Coords | None = None
    name: object = None
    attrs: object = None

    @classmethod
    def of(cls, handle: object) -> "Leaf":
        """Return what a handle has."""
        if isinstance(handle, XTensor):
            return cls(handle.dims, handle.coords, handle.name, handle.attrs)
        return cls()

    def handle(self, node: Variable) -> object:
        """Return a handle of a positional node."""
        if self.dims is None:
            return Array(node)
        return XTensor._of(op.with_dims(node, self.dims), self.coords, self.name, self.attrs)

    def without(self, dim: str) -> "Leaf":
        """Return the leaf of one element along a dimension, which is the first."""
        return Leaf(self.dims[1:], self.coords.without_dim(dim), self.name, self.attrs)

    def stacked(self, dim: str, labels: Coords) -> "Leaf":
        """Return the leaf of elements stacked along a dimension, with its coordinates."""
        if dim in self.dims:
            raise DimError(f"scan: a y has dimension {dim!r} already, which the loop adds.")
        dims = (dim, *self.dims)
        here = labels.within(dims)
        coords = self.coords.assign({name: here[name] for name in here})
        return Leaf(dims, coords, self.name, self.attrs)


def as_handle(value: object) -> object:
    """Return an Array or XTensor for anything array-like."""
    if isinstance(value, Array | XTensor):
        return value
    return Array(op.size_value(value)) if isinstance(value, Size) else asarray(value)


def node_of(handle: object) -> Variable:
    """Return the positional node of a handle."""
    return unnamed(handle._v)


@dataclass
class Step:
    """A recorded step: a positional graph of (*carry, *x, *captures), and what its handles are."""

    graph: Graph
    init: list[Variable]
    captures: list[Variable]
    carry: list[Leaf]
    carry_tree: Tree
    ys: list[Leaf]
    y_tree: Tree


def record(
    body: Callable,
    init: object,
    xs: Sequence[object],
    unflatten_xs: Callable,
    until: Callable | None = None,
) -> Step:
    """Record one step of `body(carry, x) -> (carry, y)`; xs are handles of one element each.

    A weak Python number among the initial values takes the type that the body gives it.
    """
    leaves, tree = flatten(init)
    weak = [isinstance(v, WEAK) for v in leaves]
    x = unflatten_xs(xs)
    if any(weak):
        leaves = _strengthened(body, leaves, weak, tree, x)
    start = [as_handle(v) for v in leaves]
    kinds = [Leaf.of(h) for h in start]
    symbols = [make_symbol(node_of(h).type) for h in start]
    inside = [k.handle(v) for k, v in zip(kinds, symbols, strict=True)]
    out = _pair(body(unflatten(tree, inside), x))
    new, ys, y_tree = _results(out, tree)
    new = [_arranged(k, h) for k, h in zip(kinds, new, strict=True)]
    outputs = [node_of(h) for h in new]
    _check_types(tree, [node_of(h) for h in start], outputs)
    outputs += [node_of(y) for y in ys]
    if until is not None:
        stop = until(
            unflatten(tree, [k.handle(node_of(h)) for k, h in zip(kinds, new, strict=True)])
        )
        outputs.append(_truth(stop, "until"))
    inputs = [*symbols, *(v for h in xs for v in _symbols(h))]
    graph, captures = closed(Graph(inputs, []), outputs)
    return Step(
        graph, [node_of(h) for h in start], captures, kinds, tree, [Leaf.of(y) for y in ys], y_tree
    )


def _symbols(handle: object) -> list[Variable]:
    """Return the symbol below the handle of an element."""
    node = handle._v
    return [node if node.expr is None else node.inputs[0]]


def _pair(out: object) -> tuple:
    if not isinstance(out, tuple) or len(out) != 2:
        raise ArgumentError("the body of scan returns a pair `(carry, y)`; y may be None.")
    return out


def _results(out: tuple, tree: Tree) -> tuple[list, list, Tree]:
    new, new_tree = flatten(out[0])
    if new_tree != tree:
        raise ArgumentError(
            f"the carry changes structure: {paths(tree)} becomes {paths(new_tree)} after a step; "
            "return the carry in the structure that it starts with."
        )
    ys, y_tree = flatten(out[1])
    return [as_handle(v) for v in new], [as_handle(y) for y in ys], y_tree


def _strengthened(body, leaves: list, weak: list, tree: Tree, x: object) -> list:
    """Give weak initial numbers the type that one step makes of them."""
    start = [v if w else as_handle(v) for v, w in zip(leaves, weak, strict=True)]
    inside = [
        v if w else Leaf.of(v).handle(make_symbol(node_of(v).type))
        for v, w in zip(start, weak, strict=True)
    ]
    try:
        new, _, _ = _results(_pair(body(unflatten(tree, inside), x)), tree)
    except Exception:  # a body that needs an array: the number's default type then
        inside = [as_handle(v) if w else h for v, h, w in zip(start, inside, weak, strict=True)]
        new, _, _ = _results(_pair(body(unflatten(tree, inside), x)), tree)
    return [_typed(v, n) if w else v for v, n, w in zip(start, new, weak, strict=True)]


def _typed(value: object, like: object) -> object:
    """Return a number in the type of a handle, if that can hold it."""
    node = node_of(like)
    default = asarray(value)
    if "biufc".index(default.dtype.kind) > "biufc".index(node.dtype.kind):
        return default
    kind = Leaf.of(like)
    return kind.handle(op.full(node.shape, value, dtype=node.dtype))


def _arranged(kind: Leaf, handle: object) -> object:
    """Return a new carry with its dims in the order of the old one."""
    if kind.dims is None or not isinstance(handle, XTensor) or handle.dims == kind.dims:
        return handle
    if set(handle.dims) == set(kind.dims):
        return handle.transpose(*kind.dims)
    raise DimError(f"a carry with dims {kind.dims} becomes one with dims {handle.dims} in a step.")


def _truth(value: object, what: str) -> Variable:
    node = node_of(as_handle(value))
    if node.type is not TensorType("bool", ()):
        raise ArgumentError(
            f"{what} gives one boolean, not {node.type}; reduce it with xp.all or xp.any."
        )
    return node


def _check_types(tree: Tree, start: Sequence[Variable], new: Sequence[Variable]) -> None:
    for path, a, b in zip(paths(tree, "carry"), start, new, strict=True):
        if a.type is b.type:
            continue
        text = f"{path} starts as {a.type} and becomes {b.type} after a step; "
        if a.dtype != b.dtype:
            raise DTypeError(
                f"{text}start it as `xp.astype(..., xp.{b.dtype})`, or write `xp.astype(..., "
                f"xp.{a.dtype})` for it in the body."
            )
        raise ShapeError(f"{text}start it as `xp.broadcast_to(..., {b.shape})`, or reduce it.")


def closed(
    graph: Graph, outputs: Sequence[Variable], born: int | None = None
) -> tuple[Graph, list[Variable]]:
    """Return a step with what it reads from outside as further inputs, and those nodes.

    Outside are the maximal nodes that do not depend on the loop; what can fail stays inside. With
    `born`, everything younger is inside: what a branch computes, it computes itself.
    """
    order = toposort(outputs)
    inside, held = set(graph.inputs), set()
    for v in order:
        below = [x for x in v.inputs if x.__class__ is Variable]
        if born is not None:
            if v.expr is not None and v.seq > born:
                inside.add(v)
        elif any(x in inside for x in below):
            inside.add(v)
        elif v.expr is not None and (_can_fail(v) or any(x in held for x in below)):
            held.add(v)
    inside |= held
    read = {x for v in order if v in inside for x in v.inputs if x.__class__ is Variable}
    read.update(outputs)
    captures = [v for v in order if v in read and v not in inside and not _constant(v)]
    inner = [make_symbol(unnamed(v).type) for v in captures]
    mapping = {
        v: op.with_dims(s, v.type.dims) if v.type.named else s
        for v, s in zip(captures, inner, strict=True)
    }
    found = substitute(outputs, mapping)
    if any(v.type.named for v in toposort(found) if hasattr(v.type, "named")):
        done = lower_nodes(found)
        found = [done[v] for v in found]
    return Graph([*graph.inputs, *inner], found), [unnamed(v) for v in captures]


def _constant(v: Variable) -> bool:
    """Tell whether a node is made of numbers alone: it stays where it is used."""
    return v.expr is not None and not any(x.__class__ is Variable for x in v.inputs)


def _can_fail(v: Variable) -> bool:
    return v.op.check is not None or v.op.kind == "library"


def scalar_count(value: object) -> Variable:
    """Return a number of steps as an int64 node."""
    node = node_of(as_handle(value))
    if node.ndim or node.dtype.kind not in "iu":
        raise ArgumentError(f"a number of steps is one integer, not {node.type}.")
    return node if node.dtype.name == "int64" else op.astype(node, builtins.int)
