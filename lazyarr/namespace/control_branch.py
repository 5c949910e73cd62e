"""Choices in the graph: `cond` and `switch` run only the branch taken.

A branch is a loop of no or one step that replaces the result of the branches before it, so that
derivatives, batching and every backend have nothing to learn.
"""

from collections.abc import Callable, Sequence

from lazyarr.errors import ArgumentError, DTypeError, ShapeError
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.ops.control import COUNT, picks
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.namespace.control_trace import (
    WEAK,
    Leaf,
    as_handle,
    closed,
    node_of,
    scalar_count,
)
from lazyarr.namespace.tree import Tree, flatten, paths, unflatten


def cond(pred: object, true: Callable, false: Callable, *args: object):
    """Return `true(*args)` where pred is true, else `false(*args)`; only the one taken runs.

    Both return the same structure of arrays of the same types. Unlike `where`, what is not taken
    is not computed, and a check in it does not fail.

    >>> import lazyarr as xp
    >>> x = xp.asarray(4.0)
    >>> float(xp.cond(x > 0, xp.sqrt, lambda x: 0.0 * x, x))
    2.0
    """
    node = node_of(as_handle(pred))
    if node.ndim or node.dtype.kind != "b":
        raise ArgumentError(
            f"the condition is one boolean, not {node.type}; reduce it with xp.all or xp.any, or "
            "choose elements with xp.where."
        )
    taken = op.astype(node, COUNT.dtype)
    return _chosen([taken, op.subtract(1, taken)], [true, false], args, ["true", "false"])


def switch(index: object, branches: Sequence[Callable], *args: object):
    """Return `branches[index](*args)`; only the branch taken runs. The index is clamped.

    >>> import lazyarr as xp
    >>> float(xp.switch(1, [lambda x: x, lambda x: -x], xp.asarray(3.0)))
    -3.0
    """
    if not branches:
        raise ArgumentError("switch needs at least one branch.")
    last = len(branches) - 1
    node = op.minimum(op.maximum(scalar_count(index), 0), last)
    counts = [op.astype(op.equal(node, k), COUNT.dtype) for k in range(last + 1)]
    return _chosen(counts, branches, args, [f"branch {k}" for k in range(last + 1)])


def _chosen(counts: Sequence[Variable], branches: Sequence, args: tuple, names: list):
    """Record the branches as loops of no or one step, each on the result of those before."""
    arrays = [as_handle(v) if isinstance(v, WEAK) else v for v in args]
    marks, results = [], []
    for branch in branches:
        marks.append(_now())
        results.append(flatten(branch(*arrays)))
    trees = [tree for _, tree in results]
    for name, tree in zip(names, trees, strict=True):
        if tree != trees[0]:
            raise ArgumentError(
                f"{names[0]} returns {paths(trees[0])} and {name} returns {paths(tree)}; the "
                "branches return the same structure."
            )
    rows = _common([leaves for leaves, _ in results], trees[0], names)
    kinds = [Leaf.of(h) for h in rows[0]]
    carry = [op.zeros(h._v.shape, dtype=h._v.dtype) for h in rows[0]]
    for count, mark, row in zip(counts, marks, rows, strict=True):
        carry = _branch(count, mark, row, carry)
    return unflatten(trees[0], [k.handle(v) for k, v in zip(kinds, carry, strict=True)])


def _now() -> int:
    """Return a number between those of the nodes made before and after."""
    return make_symbol(COUNT).seq


def _branch(count: Variable, mark: int, row: list, carry: list[Variable]) -> list[Variable]:
    inside = [make_symbol(v.type) for v in carry]
    graph, captures = closed(Graph(inside, []), [node_of(h) for h in row], mark)
    node = op.scan(
        Graph([*graph.inputs, make_symbol(COUNT)], graph.outputs),
        (*carry, *captures, count),
        length=1,
        reverse=False,
        n_carry=len(carry),
        n_xs=0,
        counted=True,
    )
    return picks(node)


def _common(rows: list[list], tree: Tree, names: list) -> list[list]:
    """Return the results of all branches as handles of equal types; weak numbers take a type."""
    columns = []
    for path, column in zip(paths(tree, "the result"), zip(*rows, strict=True), strict=True):
        strong = [as_handle(v) for v in column if not isinstance(v, WEAK)]
        handles = [_fitted(v, strong) for v in column]
        first = node_of(handles[0]).type
        for name, h in zip(names, handles, strict=True):
            t = node_of(h).type
            if t is not first or Leaf.of(h).dims != Leaf.of(handles[0]).dims:
                error = DTypeError if t.dtype != first.dtype else ShapeError
                raise error(
                    f"{path} is {handles[0]._v.type} from {names[0]} and {h._v.type} from {name}; "
                    f"write `xp.astype(..., xp.{first.dtype})`, or broadcast, in one of them."
                )
        columns.append(handles)
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in rows]


def _fitted(value: object, strong: list) -> object:
    if not isinstance(value, WEAK) or not strong:
        return as_handle(value)
    like = node_of(strong[0])
    return Leaf.of(strong[0]).handle(op.full(like.shape, value, dtype=like.dtype))
