"""`composite`: a function of lazy arrays as one op, with an own derivative where one is given."""

import functools
from collections.abc import Callable
from typing import Any

from lazyarr.errors import ArgumentError, GradientError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.foreign_arguments import is_array, positional, split
from lazyarr.namespace.tree import flatten, unflatten

_KNOWN = 256  # bodies that a composite remembers


class _Rule:
    """A user's vjp on nodes; equal for equal functions and structures of arguments."""

    def __init__(self, vjp: Callable, arguments: Any, name: str):
        self.vjp, self.arguments, self.name = vjp, arguments, name

    def __call__(self, g: Variable, y: Variable, *operands: Variable) -> list:
        args, kwargs = self.arguments.build([Array(x) for x in operands])
        found = self.vjp(Array(g), Array(y), *args, **kwargs)
        many = found if isinstance(found, tuple | list) else (found,)
        if len(many) != len(operands):
            raise GradientError(
                f"the vjp of {self.name} gave {len(many)} cotangents for {len(operands)} arrays."
            )
        return [None if v is None else unwrap(v) for v in many]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rule) and (self.vjp, self.arguments) == (
            other.vjp, other.arguments,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.vjp, self.arguments))

    def __repr__(self) -> str:
        return getattr(self.vjp, "__name__", "rule")


def composite(f: Callable | None = None, *, vjp: Callable | None = None, name: str | None = None):
    """Return f as an op: each array that it returns is one node, inlined when it is compiled.

    f is recorded once for each structure and types of its arguments; what it reads must come in as
    arguments. `vjp(g, y, *arrays)` replaces the derivative of f, which then returns one array; it
    gives a cotangent for each array argument, None for none. Also a decorator.

    >>> import lazyarr as xp
    >>> clipped = composite(lambda x: xp.clip(x, -1, 1), vjp=lambda g, y, x: (g,), name="clipped")
    >>> float(xp.grad(lambda x: clipped(x))(xp.asarray(3.0)))
    1.0
    """
    if f is None:
        return functools.partial(composite, vjp=vjp, name=name)
    label = name or getattr(f, "__name__", type(f).__name__)
    bodies: dict = {}

    @functools.wraps(f, updated=())
    def call(*args: object, **kwargs: object):
        arguments, arrays = split(args, kwargs, flatten, unflatten, ())
        operands = [positional(x) for x in arrays]
        key = (arguments, tuple(v.type for v in operands))
        found = bodies.get(key)
        if found is None:
            if len(bodies) > _KNOWN:
                bodies.clear()
            found = bodies[key] = _recorded(f, arguments, [v.type for v in operands], label)
        graphs, others, tree = found
        if vjp is None:
            nodes = [op.composed(operands, body, label) for body in graphs]
        elif len(graphs) == 1:
            rule = _Rule(vjp, arguments, label)
            nodes = [op.composed_with_rule(operands, graphs[0], label, rule)]
        else:
            raise ArgumentError(f"{label} has a vjp and must return one array, not {len(graphs)}.")
        rest = iter(nodes)
        return unflatten(tree, [Array(next(rest)) if x is _ARRAY else x for x in others])

    return call


_ARRAY = object()


def _recorded(f: Callable, arguments: Any, types: list[TensorType], label: str) -> tuple:
    """Return a graph for each array that f returns, the other leaves, and the tree."""
    inside = [symbol(t) for t in types]
    args, kwargs = arguments.build([Array(v) for v in inside])
    leaves, tree = flatten(f(*args, **kwargs))
    graphs = [Graph(inside, [positional(x)]) for x in leaves if is_array(x)]
    for graph in graphs:
        if missing := graph.missing():
            names = ", ".join(repr(v.name) for v in missing)
            raise ArgumentError(f"{label} reads the symbol {names} from outside; pass it in.")
    return graphs, [_ARRAY if is_array(x) else x for x in leaves], tree
