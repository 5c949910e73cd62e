"""Foreign functions: one op whose meaning is somebody else's function.

`foreign` takes arrays and gives several outputs, read by `pick`. Its parameter `function` is a
`Callee`: a hashable description of the function, which knows how to run it on NumPy arrays, how to
differentiate and batch it, and in which namespaces it can be inlined. The dtypes and shapes of the
outputs are found when the call is recorded and stand beside it, so that nothing asks again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyarr.errors import ArgumentError, GradientError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable, as_operand
from lazyarr.graph.ops._declare import declare
from lazyarr.graph.ops.control_reverse import picks
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType, TupleType

__all__ = ["Callee", "Native", "Parameter", "call_foreign", "foreign", "knows_sizes"]


@dataclass(frozen=True)
class Parameter:
    """What a native function takes at one place.

    `kind` is "size" (an int64 by value, `of` a size), "value" (a number by value, `of` an operand),
    "input" or "output" (a C-contiguous buffer, `of` its number).
    """

    kind: str
    of: Any
    dtype: str = "int64"


@dataclass(frozen=True)
class Native:
    """A foreign function as compiled programs call it: memory is theirs, results go to buffers.

    `code` is the function: its class says in which language it can be part of a program, and
    `code.address(native)` is a C function of the parameters, which returns nonzero for a failure
    where `coded` says so. `overwrites` are operands that it may write; `aliases` holds pairs of an
    output and operands in whose memory it may be.
    """

    name: str
    parameters: tuple[Parameter, ...]
    code: Any
    coded: bool = False
    overwrites: tuple[int, ...] = ()
    aliases: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Layout:
    """The arrays of a call: dtype and shape of each; shapes hold ints and "n0", "n1" for sizes."""

    inputs: tuple[tuple[str, tuple], ...]
    outputs: tuple[tuple[str, tuple], ...]
    sizes: tuple[Size, ...]

    @classmethod
    def of(cls, node: Variable) -> "Layout":
        """Return the layout of a node."""
        sizes: dict[Size, str] = {}

        def entry(dtype: Any, shape: tuple) -> tuple[str, tuple]:
            words = [
                sizes.setdefault(s, f"n{len(sizes)}") if isinstance(s, Size) else s for s in shape
            ]
            return str(dtype), tuple(words)

        ins = tuple(entry(x.type.dtype, x.type.shape) for x in node.inputs)
        outs = tuple(entry(t.dtype, t.shape) for t in node.type.types)
        return cls(ins, outs, tuple(sizes))

    def parameters(self) -> tuple[Parameter, ...]:
        """Return sizes, inputs and outputs as parameters of a native function."""
        return (
            *(Parameter("size", s) for s in self.sizes),
            *(Parameter("input", i, dtype) for i, (dtype, _) in enumerate(self.inputs)),
            *(Parameter("output", i, dtype) for i, (dtype, _) in enumerate(self.outputs)),
        )


class Callee:
    """A foreign function; equal callees compute equal things. Subclasses say what they can do."""

    name = "foreign"

    def run(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the outputs for NumPy arrays, which must not be written."""
        raise NotImplementedError

    def inlined(self, namespace: str) -> Callable | None:
        """Return a function on arrays of a namespace ("jax", "torch"), None where there is none."""
        return None

    def native(self, node: Variable) -> "Native | None":
        """Return how compiled programs call the function, None where Python must."""
        return None

    def covers(self) -> "tuple[Callee, int] | None":
        """Return whose outputs a derivative also computes, and on how many operands."""
        return None

    def pullback(
        self, wants: Sequence[bool], seeds: dict[int, Variable], node: Variable
    ) -> Sequence:
        """Return a cotangent per operand (None: not wanted) from cotangents by output number."""
        raise GradientError(f"{self.name} has no derivative; give it a `vjp` when wrapping it.")

    def pushforward(self, tangents: Sequence, node: Variable) -> Any:
        """Return a tangent per output, or NotImplemented: it is then made from `pullback`."""
        return NotImplemented

    def batched(
        self, args: Sequence, moved: Sequence[bool], size: object, node: Variable
    ) -> Variable | None:
        """Return the node with a leading axis more on the moved operands and on every output.

        None: a loop calls the function once for each element.
        """
        return None

    def joined(self, other: "Callee", n: int) -> "tuple[Callee, list[int], list[int]] | None":
        """Return a derivative that computes what this, with n outputs, and another one do.

        With it, for each output of this and of the other, at which of its outputs the same is.
        """
        return None

    def __str__(self) -> str:
        return self.name


def _infer(types: tuple, params: dict) -> TupleType:
    if any(isinstance(t, type) for t in types):
        raise ArgumentError("operands of foreign functions are arrays; use asarray.")
    return TupleType(
        tuple(TensorType(d, s) for d, s in zip(params["dtypes"], params["shapes"], strict=True))
    )


def _reference(*arrays, function, dtypes, shapes):
    found = function.run(arrays)
    if len(found) != len(dtypes):
        raise ArgumentError(f"{function} gave {len(found)} arrays, declared are {len(dtypes)}.")
    out = []
    for i, (value, dtype, shape) in enumerate(zip(found, dtypes, shapes, strict=True)):
        array = np.asarray(value)
        known = len(shape) == array.ndim and all(
            isinstance(s, Size) or s == n for s, n in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not known:
            raise ArgumentError(
                f"output {i} of {function} is {array.dtype}{list(array.shape)}, declared is "
                f"{dtype}{list(shape)}; correct `out=`."
            )
        out.append(array)
    return tuple(out)


def _vjp(ctx, g, y, *inputs, **params):
    has = getattr(g, "has", lambda i: True)
    seeds = {i: g(i) for i, t in enumerate(y.type.types) if t.dtype.kind in "fc" and has(i)}
    wants = [x.type.dtype.kind in "fc" and ctx.wants(x) for x in inputs]
    if not seeds or not any(wants):
        return [None] * len(inputs)
    return params["function"].pullback(wants, seeds, y)


def _jvp(tangents, y, *inputs, **params):
    moving = [
        t if x.type.dtype.kind in "fc" else None for t, x in zip(tangents, inputs, strict=True)
    ]
    if all(t is None for t in moving):
        return [None] * len(y.type.types)
    return params["function"].pushforward(moving, y)


def _batch(node, args, moved, size):
    return node.params["function"].batched(args, moved, size, node)


@declare(
    "library",
    infer=_infer,
    reference=_reference,
    vjp=_vjp,
    jvp=_jvp,
    batch=_batch,
    facts=frozenset({"finds_sizes"}),
    sizes=("shapes",),
    public=False,
)
def foreign(*operands, function, dtypes, shapes):
    """A function of arrays that is not made of the catalogue's ops, with several outputs."""
    names = tuple(np.dtype(d).name for d in dtypes)
    params = {"function": function, "dtypes": names, "shapes": tuple(shapes)}
    return tuple(as_operand(x) for x in operands), params


def call_foreign(function: Callee, operands: Sequence, types: Sequence[TensorType]) -> list:
    """Record a call of a callee and return its outputs, one Variable each."""
    node = op.foreign(
        *operands,
        function=function,
        dtypes=tuple(t.dtype.name for t in types),
        shapes=tuple(t.shape for t in types),
    )
    return picks(node)


def knows_sizes(node: Variable) -> bool:
    """Tell whether the operands of a foreign node tell all sizes of its outputs."""
    told: set = set()
    for x in node.inputs:
        for s in x.type.shape:
            told |= shapes.atoms(s)
    return all(shapes.atoms(s) <= told for shape in node.params["shapes"] for s in shape)
