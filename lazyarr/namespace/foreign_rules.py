"""Foreign functions that no framework differentiates: their rules are given when wrapping them.

Rules are called with lazy arrays and record, so a derivative is part of the graph: it may use the
functions of the namespace, NumPy's, or other wrapped functions, and can be differentiated again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lazyarr.autodiff.batch import batch_nodes, widened
from lazyarr.errors import ArgumentError, GradientError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops._declare import variable_of
from lazyarr.graph.ops.control import picks
from lazyarr.graph.ops.foreign import Callee, Native, call_foreign, knows_sizes
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.foreign import flatten_specs
from lazyarr.namespace.foreign_arguments import (
    Arguments,
    declared,
    named_result,
    positional,
    spec_type,
    split,
    static_places,
)
from lazyarr.namespace.foreign_dims import Signature, read_dims
from lazyarr.namespace.tree import flatten, unflatten


@dataclass(frozen=True)
class Rules:
    """What is known of a function beside its values; each may be missing.

    vjp: `(g, y, *arguments)` gives a cotangent for each argument, None where there is none.
    jvp: `(tangents, y, *arguments)` gives a tangent for each output.
    batch: True when the function takes stacks of its arguments and gives stacks, or another
    function that does; without it, a loop calls the function once for each element.
    overwrites: operands, by number, that the function may write.
    aliases: pairs of an output and the operands in whose memory it may be.
    """

    vjp: Callable | None = None
    jvp: Callable | None = None
    batch: Any = None
    overwrites: tuple[int, ...] = ()
    aliases: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Ruled(Callee):
    """A function on NumPy arrays, `run(arrays)`, with rules."""

    code: Any  # what makes `(arguments, arrays) -> outputs`: hashable, with `execute`
    arguments: Arguments
    rules: Rules
    name: str = field(default="f", compare=False)
    stacked: int = 0  # how many leading axes were added

    def run(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the outputs for NumPy arrays; what may be written is a copy."""
        written = self.rules.overwrites
        arrays = [np.array(a) if i in written else a for i, a in enumerate(arrays)]
        try:
            return self.code.execute(self.arguments, arrays, self)
        except Exception as error:
            error.add_note(f"raised by the wrapped function {self.name!r}")
            raise

    def native(self, node: Variable) -> Native | None:
        """Return how compiled programs call the function, None where Python must."""
        make = getattr(self.code, "native", None)
        return None if make is None else make(self.arguments, node, self)

    def pullback(self, wants: Sequence[bool], seeds: dict, node: Variable) -> Sequence:
        """Return cotangents by the rule."""
        if self.stacked:
            return self._stacked_pullback(wants, seeds, node)
        if self.rules.vjp is None:
            raise GradientError(f"{self.name} has no derivative; give it a `vjp` when wrapping it.")
        outs = picks(node)
        given = [Array(seeds[i] if i in seeds else _zeros(y)) for i, y in enumerate(outs)]
        args, kwargs = self.arguments.build([Array(x) for x in node.inputs])
        found = self.rules.vjp(_alone(given), _alone([Array(y) for y in outs]), *args, **kwargs)
        return self._per_operand(found, node)

    def _per_operand(self, found: object, node: Variable) -> list:
        """Return what a rule gave as one node, or None, for each operand."""
        trees = self.arguments.trees
        many = found if isinstance(found, tuple | list) else (found,)
        if len(many) != len(trees):
            raise GradientError(
                f"the vjp of {self.name} gave {len(many)} cotangents for {len(trees)} arguments."
            )
        leaves: list = []
        for part, (_, n) in zip(many, trees, strict=True):
            each = [None] * n if part is None else [part] if n == 1 else flatten(part)[0]
            if len(each) != n:
                raise GradientError(f"the vjp of {self.name}: {len(each)} arrays for {n}.")
            leaves.extend(each)
        if len(trees) and len(leaves) != len(self.arguments.leaves):
            raise GradientError(f"the vjp of {self.name} does not have the form of its arguments.")
        kept = [g for g, s in zip(leaves, self.arguments.leaves, strict=True) if s is None]
        return [
            None if g is None else _fitted(g, x) for g, x in zip(kept, node.inputs, strict=True)
        ]

    def pushforward(self, tangents: Sequence, node: Variable) -> Any:
        """Return tangents by the rule; without one they are made from the vjp."""
        if self.rules.jvp is None or self.stacked:
            return NotImplemented
        filled = [
            Array(_zeros(x) if t is None else t) for t, x in zip(tangents, node.inputs, strict=True)
        ]
        args, kwargs = self.arguments.build([Array(x) for x in node.inputs])
        along = self.arguments.build(filled)[0]
        found = self.rules.jvp(
            tuple(along), _alone([Array(y) for y in picks(node)]), *args, **kwargs
        )
        many = found if isinstance(found, tuple | list) else (found,)
        return [
            None if t is None else _fitted(t, y) for t, y in zip(many, picks(node), strict=True)
        ]

    def batched(
        self, args: Sequence, moved: Sequence[bool], size: object, node: Variable
    ) -> Variable | None:
        """Return the node on stacks, where the function has a way to take them."""
        if self.rules.batch is None or not knows_sizes(node):
            return None
        operands = [widened(a, m, size) for a, m in zip(args, moved, strict=True)]
        more = Ruled(self.code, self.arguments, self.rules, self.name, self.stacked + 1)
        shapes = tuple((size, *shape) for shape in node.params["shapes"])
        return node.op.record(tuple(operands), {**node.params, "function": more, "shapes": shapes})

    def _stacked_pullback(self, wants: Sequence[bool], seeds: dict, node: Variable) -> list:
        """The derivative of a stacked call: the rule for one element, batched."""
        size = node.inputs[0].type.shape[0]
        one = Ruled(self.code, self.arguments, self.rules, self.name, self.stacked - 1)
        inside = [symbol(_element(x.type)) for x in node.inputs]
        found = call_foreign(one, inside, [_element(t) for t in node.type.types])
        slots = {i: symbol(_element(g.type)) for i, g in seeds.items()}
        back = one.pullback(wants, slots, found[0].inputs[0])
        given = {s: (x, True) for s, x in zip(inside, node.inputs, strict=True)}
        given |= {slots[i]: (g, True) for i, g in seeds.items()}
        pairs = iter(batch_nodes([g for g in back if g is not None], given, size))
        return [None if g is None else widened(*next(pairs), size) for g in back]

    def __str__(self) -> str:
        return self.name


def _element(t: TensorType) -> TensorType:
    return t.with_shape(t.shape[1:])


def _zeros(x: Variable) -> Variable:
    return op.zeros(x.type.shape, dtype=x.type.dtype)


def _alone(values: list) -> object:
    return values[0] if len(values) == 1 else values


def _fitted(g: object, x: Variable) -> Variable:
    """Return what a rule gave for x in its shape."""
    node = variable_of(unwrap(g))
    if x.type.dtype.kind not in "fc":
        return node
    return node if node.type.ndim == x.type.ndim else op.broadcast_to(node, x.type.shape)


class Declared:
    """A function with declared types that records when it is called on arrays."""

    def __init__(
        self, code: Any, out: Callable, rules: Rules, name: str, static: object, dims: object
    ):
        self.code, self.out, self.rules, self.dims = code, out, rules, read_dims(dims)
        self.name, self.__name__ = name, name
        self.static = static_places(getattr(code, "function", code), static)

    def __call__(self, *args: object, **kwargs: object):
        """Record a call."""
        if isinstance(self.dims, Signature):
            return self.dims.call(self._record, args, kwargs)
        return self._record(*args, **kwargs)

    def _record(self, *args: object, **kwargs: object):
        arguments, arrays = split(self.code.taken(args), kwargs, flatten, unflatten, self.static)
        operands = [positional(x) for x in arrays]
        types = [v.type for v in operands]
        out = self.out(arguments.build, types)
        specs, tree = flatten_specs(_by_number(out, types))
        names = [f"{self.name}.{i}" for i in range(len(specs))]
        results = [spec_type(s, n) for s, n in zip(specs, names, strict=True)]
        callee = Ruled(self.code, arguments, self.rules, self.name)
        found = call_foreign(callee, operands, results)
        dims = None if isinstance(self.dims, Signature) else self.dims
        several = isinstance(dims, list)
        handles = [
            named_result(Array(v), dims[i] if several else dims)  # type: ignore[index]
            for i, v in enumerate(found)
        ]
        return unflatten(tree, handles)

    def __repr__(self) -> str:
        return f"<wrapped function {self.name}>"


def _by_number(out: object, types: Sequence[TensorType]) -> object:
    """Replace the number of an operand by its type."""
    if isinstance(out, int) and not isinstance(out, bool):
        return types[out]
    if isinstance(out, list | tuple) and any(isinstance(x, int) for x in out):
        if all(isinstance(x, int) or not isinstance(x, str | np.dtype | type) for x in out):
            return type(out)(_by_number(x, types) for x in out)
    return out


# -- NumPy -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumpyCode:
    """A Python function of NumPy arrays."""

    function: Callable
    batch: Any = None
    guarded = True

    def taken(self, args: tuple) -> tuple:
        """Return arguments as they are given."""
        return args

    def execute(self, arguments: Arguments, arrays: Sequence, callee: Ruled) -> list:
        """Return the array leaves of the result; operands cannot be written but as declared."""
        if self.guarded:
            written = callee.rules.overwrites
            arrays = [a if i in written else _guarded(a) for i, a in enumerate(arrays)]
        args, kwargs = arguments.build(arrays)
        f = self.batch if callee.stacked and callable(self.batch) else self.function
        return [np.asarray(x) for x in flatten(f(*args, **kwargs))[0]]


def _guarded(array: np.ndarray) -> np.ndarray:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def wrap_numpy(
    f: Callable | None = None,
    out: object = None,
    name: str | None = None,
    *,
    vjp: Callable | None = None,
    jvp: Callable | None = None,
    batch: object = None,
    static: object = (),
    dims: object = None,
    overwrites: Sequence[int] = (),
    aliases: Mapping[int, Sequence[int]] | None = None,
):
    """Return a function of NumPy arrays as one of lazy arrays, on every backend; also a decorator.

    `out` gives the types of the result: the number of the array argument that has the same, a type,
    a pair (dtype, shape) with None for sizes that only the function knows, a pytree of these, or a
    function from the types of the arguments to it. The function must be pure. It cannot write its
    arguments, but for the array arguments whose numbers `overwrites` lists: they are copies, or
    temporaries that nobody else reads; `aliases={0: [1, 2]}` says that result 0 may be put into
    the memory of argument 1 or 2, where programs call the function themselves. `vjp(g, y,
    *arguments)` returns a cotangent for each argument, None for none; `jvp(tangents, y,
    *arguments)` a tangent for each output. Both get lazy arrays. `batch` is True when f takes
    stacks of all its arguments, or another function that does.

    >>> import lazyarr as xp
    >>> root = wrap_numpy(np.cbrt, out=0, vjp=lambda g, y, x: (g / (3 * y * y),), batch=True)
    >>> float(xp.grad(lambda x: root(x))(xp.asarray(8.0)))
    0.08333333333333333
    """
    if f is None:
        return lambda g: wrap_numpy(
            g, out, name, vjp=vjp, jvp=jvp, batch=batch, static=static, dims=dims,
            overwrites=overwrites, aliases=aliases,
        )  # fmt: skip
    if out is None:
        raise ArgumentError("wrap_numpy needs `out=`, the types of the result.")
    name = name or getattr(f, "__name__", type(f).__name__)
    code = NumpyCode(f, batch)

    def types(build: Callable, given: Sequence[TensorType]) -> object:
        return declared(out, build, given)

    shared = tuple((k, tuple(v)) for k, v in (aliases or {}).items())
    rules = Rules(vjp, jvp, batch, tuple(overwrites), shared)
    return Declared(code, types, rules, name, static, dims)
