"""LOWER: from named nodes to positional ones, the first pass of the pipeline.

Most named nodes become the same call on positional operands; elementwise ops, joins and
contractions first bring their operands into the result's order of dims. After it no type has
names.

Sizes of one dim that are not provably equal are unified by `specify_shape`; `size_checks` lists
them with the dim and both operands, for the driver to verify once sizes are bound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import lazyarr.xtensor.kinds
import lazyarr.xtensor.naming  # noqa: F401  (declares with_dims and drop_dims)
from lazyarr.errors import DimError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import operand_types
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, toposort, with_inputs
from lazyarr.xtensor.kinds import follows_axis, is_named, positional
from lazyarr.xtensor.types import XTensorType


def lower_named(graph: Graph) -> Graph:
    """Return the positional graph: inputs in the same order, of the same shapes and dtypes.

    A graph without named types is returned as it is.
    """
    nodes = toposort([*graph.outputs, *graph.inputs], stop=graph.inputs)
    if not any(is_named(v.type) for v in nodes):
        return graph
    done = _lower(nodes, _plain_leaf, {v: _plain_leaf(v) for v in graph.inputs})
    return Graph([done[v] for v in graph.inputs], [done[v] for v in graph.outputs])


def lower_nodes(outputs: Sequence[Variable]) -> dict[Variable, Variable]:
    """Return the positional node of every node below outputs, on the same leaves.

    A named leaf stays, seen through `drop_dims`, so that results still depend on it: this is what
    derivatives of expressions work on.
    """
    return _lower(toposort(outputs), op.drop_dims, {})


def _plain_leaf(v: Variable) -> Variable:
    """A positional leaf in place of a leaf, or of an input that is no leaf."""
    if v.is_data:
        return Variable(positional(v.type), None, v.value, v.name) if is_named(v.type) else v
    return v if v.is_symbol and not is_named(v.type) else symbol(positional(v.type), v.name)


def _lower(nodes: Sequence[Variable], leaf: Callable, done: dict) -> dict:
    """Lower nodes in order; a named composite is replaced by its expansion on the way."""
    work: list = list(reversed(nodes))
    while work:
        v = work.pop()
        if v.__class__ is tuple:  # a composite whose expansion is lowered by now
            done[v[0]] = done[v[1]]
        elif v in done:
            continue
        elif v.expr is None:
            done[v] = leaf(v) if is_named(v.type) else v
        elif _expands(v):
            expansion = v.op.expand(*v.inputs, **v.params)
            work.append((v, expansion))
            operands = [x for x in v.inputs if x.__class__ is Variable]
            work.extend(reversed(toposort([expansion], stop=operands)))
        else:
            done[v] = _lower_node(v, done)
    return done


def _has_names(v: Variable) -> bool:
    return is_named(v.type) or any(map(is_named, operand_types(v)))


def _expands(v: Variable) -> bool:
    """Tell whether a node is a named composite with no positional form of its own."""
    if v.op.kind != "composite" or not _has_names(v):
        return False
    by_axis = follows_axis(v.op, operand_types(v), v.params)
    return not by_axis and "dims_of_first" not in v.op.facts


def _lower_node(v: Variable, done: Mapping) -> Variable:
    args = [done[x] if x.__class__ is Variable else x for x in v.inputs]
    if not _has_names(v):
        return with_inputs(v, args)
    out = LOWER.get(v.op.kind, _same_call)(v, args)
    if is_named(v.type) and out.shape != v.shape:
        out = op.specify_shape(out, v.shape, v.type.dims)
    if out.expr is not None and not any(out is a for a in args):
        out.name, out.site = v.name, v.site
    return out


# -- the kinds ------------------------------------------------------------------------------------


def aligned(x: Variable, dims: tuple, target: XTensorType) -> Variable:
    """Return a positional x, whose axes are `dims`, so that it broadcasts to a target's axes."""
    wanted = target.sizes
    shape = tuple(wanted.get(d, s) for d, s in zip(dims, x.shape, strict=True))
    if x.shape != shape:
        x = op.specify_shape(x, shape, dims)
    places = [target.dims.index(d) for d in dims]
    if places != sorted(places):
        x = op.permute_dims(x, tuple(sorted(range(x.ndim), key=places.__getitem__)))
    if not places:
        return x
    first = min(places)
    missing = tuple(i - first for i in range(first, target.ndim) if i not in places)
    return op.expand_dims(x, axis=missing) if missing else x


def _same_call(v: Variable, args: Sequence) -> Variable:
    return v.op.apply(v.call, tuple(args))


def _lower_elementwise(v: Variable, args: Sequence) -> Variable:
    operands = [
        aligned(a, x.type.dims, v.type) if x.__class__ is Variable and is_named(x.type) else a
        for x, a in zip(v.inputs, args, strict=True)
    ]
    return _same_call(v, operands)


def _lower_contraction(v: Variable, args: Sequence) -> Variable:
    """Give the two sizes of a shared dim one name; a known size stays."""
    sizes = dict(_dim_sizes(v))
    operands = []
    for x, a in zip(v.inputs, args, strict=True):
        shape = tuple(sizes[d] for d in x.type.dims)
        operands.append(a if a.shape == shape else op.specify_shape(a, shape, x.type.dims))
    return _same_call(v, operands)


def _dim_sizes(v: Variable) -> dict:
    """The size of each dim among the operands, known ones first."""
    sizes: dict = {}
    for t in operand_types(v):
        for dim, size in t.sizes.items():
            if not isinstance(sizes.get(dim), int):
                sizes[dim] = sizes[dim] if dim in sizes and not isinstance(size, int) else size
    return sizes


def _lower_movement(v: Variable, args: Sequence) -> Variable:
    if "naming" in v.op.facts:
        return args[0]
    if v.op.name == "concat":
        return _same_call(v, [_like_first(v, x, a) for x, a in zip(v.inputs, args, strict=True)])
    return _same_call(v, args)


def _like_first(v: Variable, x: Variable, a: Variable) -> Variable:
    """An operand of a join in the first one's order of dims."""
    joined = v.type.dims[v.params["axis"]]
    sizes = {**v.type.sizes, joined: x.type.sizes[joined]}
    return aligned(a, x.type.dims, XTensorType(x.type.dtype, v.type.dims, tuple(sizes.values())))


LOWER: dict[str, Callable] = {
    "elementwise": _lower_elementwise,
    "contraction": _lower_contraction,
    "movement": _lower_movement,
}


# -- sizes that must agree ------------------------------------------------------------------------


@dataclass(frozen=True)
class SizeCheck:
    """Two operands that must have one size along a dim."""

    dim: str
    sizes: tuple
    producers: tuple[Variable, Variable]

    def verify(self, env: Mapping) -> None:
        """Raise DimError when the sizes differ under an assignment of unknown sizes."""
        a, b = (shapes.evaluate(s, env) for s in self.sizes)
        if a != b:
            first, second = (
                f"{_label(v)} has {n}" for v, n in zip(self.producers, (a, b), strict=True)
            )
            raise DimError(f"dimension {self.dim!r} has two sizes: {first}, {second}.")


def _label(v: Variable) -> str:
    name = repr(v.name) if v.name else f"the {v.op.name}" if v.op is not None else "an array"
    return f"{name} ({v.type}, made at {v.where_made()})"


JOINED = frozenset({"elementwise", "contraction"})


def size_checks(outputs: Sequence[Variable]) -> list[SizeCheck]:
    """Return the sizes of named dims that must agree at run time, each pair once."""
    found: dict[tuple, SizeCheck] = {}
    for v in toposort(outputs):
        if v.expr is None or not (v.op.kind in JOINED or v.op.name == "concat"):
            continue
        seen: dict[str, tuple] = {}
        joined = (
            v.type.dims[v.params["axis"]] if v.op.name == "concat" and is_named(v.type) else None
        )
        for x in v.inputs:
            if x.__class__ is not Variable or not is_named(x.type):
                continue
            for dim, size in x.type.sizes.items():
                have, first = seen.setdefault(dim, (size, x))
                if have is not size and have != size and dim != joined:
                    key = (dim, have, size)
                    found.setdefault(key, SizeCheck(dim, (have, size), (first, x)))
    return list(found.values())
