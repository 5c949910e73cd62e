"""Foreign functions that a framework can trace: differentiated, batched and inlined by it.

A `Traced` callee has a flat function, arrays in and a tuple of arrays out, and a `Framework` that
transforms such functions. Its derivatives are traced callees again, so that every order works. Each
derivative also returns the values, so that a value and a derivative asked together are one call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import Callee, call_foreign, knows_sizes
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType


class Framework:
    """What a framework does to flat functions; one instance for each framework."""

    name: str

    def run(self, callee: "Traced", arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs of a callee for NumPy arrays."""
        raise NotImplementedError

    def inline(self, callee: "Traced") -> Callable:
        """Return the callee as a function to be called within a program of the framework."""
        return callee.flat

    def vjp(self, f: Callable, primals: Sequence) -> tuple[tuple, Callable, tuple]:
        """Return `seeded, back, outs` for f with `f(*primals) = (seeded, outs)`."""
        raise NotImplementedError

    def jvp(self, f: Callable, primals: Sequence, tangents: Sequence) -> tuple[tuple, tuple, tuple]:
        """Return `moved, dots, outs` for f with `f(*primals) = (moved, outs)`."""
        raise NotImplementedError

    def vmap(self, f: Callable, axes: tuple) -> Callable:
        """Return f mapped over leading axes (0 or None for each argument)."""
        raise NotImplementedError

    def ones(self, like: object) -> object:
        """Return ones in the shape and dtype of an array."""
        raise NotImplementedError

    def has_jvp(self, callee: "Traced", node: Variable, wrt: tuple[int, ...]) -> bool:
        """Tell whether forward mode goes through a callee."""
        return True


class Traced(Callee):
    """A callee that its framework can trace."""

    framework: Framework

    def flat(self, *arrays: Any) -> tuple:
        """Return the outputs for arrays of the framework."""
        raise NotImplementedError

    def run(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the outputs for NumPy arrays."""
        return self.framework.run(self, arrays)

    def inlined(self, namespace: str) -> Callable | None:
        """Return a function on arrays of the framework, None for another namespace."""
        return self.framework.inline(self) if namespace == self.framework.name else None

    def pullback(self, wants: Sequence[bool], seeds: dict[int, Variable], node: Variable) -> list:
        """Return cotangents of the operands; of one number, its gradient times the cotangent."""
        wrt = tuple(i for i, wanted in enumerate(wants) if wanted)
        moved = [node.inputs[i].type for i in wrt]
        outs = node.type.types
        unit = _is_number(seeds, outs, moved)
        joint = Joint(self, wrt, tuple(seeds), unit, len(node.inputs))
        operands = node.inputs if unit else (*node.inputs, *seeds.values())
        found = call_foreign(joint, operands, (*outs, *moved))[len(outs) :]
        if unit:
            (g,) = seeds.values()
            found = [op.absorb(g, partial) for partial in found]
        back: list = [None] * len(node.inputs)
        for i, g in zip(wrt, found, strict=True):
            back[i] = g
        return back

    def pushforward(self, tangents: Sequence, node: Variable) -> Any:
        """Return tangents of the outputs."""
        wrt = tuple(i for i, t in enumerate(tangents) if t is not None)
        outs = node.type.types
        moved = tuple(i for i, t in enumerate(outs) if t.dtype.kind in "fc")
        if not self.framework.has_jvp(self, node, wrt):
            return NotImplemented
        given = [tangents[i] for i in wrt]
        types = (*outs, *(outs[i] for i in moved))
        callee = Tangent(self, wrt, moved, len(node.inputs))
        found = call_foreign(callee, (*node.inputs, *given), types)[len(outs) :]
        out: list = [None] * len(outs)
        for i, t in zip(moved, found, strict=True):
            out[i] = t
        return out

    def batched(
        self, args: Sequence, moved: Sequence[bool], size: object, node: Variable
    ) -> Variable | None:
        """Return the node with the function mapped over the leading axis."""
        if not knows_sizes(node):
            return None
        axes = tuple(0 if m else None for m in moved)
        shapes = tuple((size, *shape) for shape in node.params["shapes"])
        return node.op.record(
            tuple(args), {**node.params, "function": Mapped(self, axes), "shapes": shapes}
        )


def _is_number(seeds: dict, outs: Sequence[TensorType], moved: Sequence[TensorType]) -> bool:
    """Tell whether one real number is differentiated: its gradient needs no cotangent."""
    if len(seeds) != 1:
        return False
    (i,) = seeds
    return outs[i].shape == () and all(t.dtype.kind == "f" for t in (outs[i], *moved))


def _split(args: tuple, n: int, wrt: tuple[int, ...], f: Callable, chosen: tuple[int, ...]):
    """Return a function of the operands `wrt` alone, giving the chosen outputs and all of them."""
    primals = list(args[:n])

    def partial(*moved):
        full = list(primals)
        for i, x in zip(wrt, moved, strict=True):
            full[i] = x
        outs = f(*full)
        return tuple(outs[i] for i in chosen), tuple(outs)

    return partial, [primals[i] for i in wrt], args[n:]


@dataclass(frozen=True)
class Joint(Traced):
    """Values and cotangents: `(*operands, *cotangents) -> (*outputs, *cotangents of operands)`.

    With `unit` the one output that is differentiated is a number, and its cotangent is 1.
    """

    base: Traced
    wrt: tuple[int, ...]
    seeds: tuple[int, ...]
    unit: bool
    primals: int

    @property
    def framework(self) -> Framework:  # type: ignore[override]
        """The framework of the function."""
        return self.base.framework

    def covers(self) -> tuple[Callee, int]:
        """Return the function and how many operands it has."""
        return self.base, self.primals

    @property
    def name(self) -> str:  # type: ignore[override]
        """What is computed."""
        return f"value_and_vjp({self.base.name}, {self.wrt})"

    def flat(self, *args: Any) -> tuple:
        """Return values and cotangents."""
        f, primals, cotangents = _split(args, self.primals, self.wrt, self.base.flat, self.seeds)
        seeded, back, outs = self.framework.vjp(f, primals)
        given = tuple(map(self.framework.ones, seeded)) if self.unit else tuple(cotangents)
        return (*outs, *back(given))

    def joined(self, other: Callee, n: int) -> tuple[Callee, list[int], list[int]] | None:
        """Return the derivative by the operands of both."""
        same = isinstance(other, Joint) and (self.base, self.seeds, self.unit, self.primals) == (
            other.base, other.seeds, other.unit, other.primals,
        )  # fmt: skip
        if not same:
            return None
        wrt = tuple(sorted({*self.wrt, *other.wrt}))
        values = list(range(n - len(self.wrt)))
        mine, others = (
            values + [len(values) + wrt.index(i) for i in each.wrt] for each in (self, other)
        )
        return Joint(self.base, wrt, self.seeds, self.unit, self.primals), mine, others

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Tangent(Traced):
    """Values and tangents: `(*operands, *tangents) -> (*outputs, *tangents of outputs)`."""

    base: Traced
    wrt: tuple[int, ...]
    moved: tuple[int, ...]
    primals: int

    @property
    def framework(self) -> Framework:  # type: ignore[override]
        """The framework of the function."""
        return self.base.framework

    def covers(self) -> tuple[Callee, int]:
        """Return the function and how many operands it has."""
        return self.base, self.primals

    @property
    def name(self) -> str:  # type: ignore[override]
        """What is computed."""
        return f"value_and_jvp({self.base.name}, {self.wrt})"

    def flat(self, *args: Any) -> tuple:
        """Return values and tangents."""
        f, primals, tangents = _split(args, self.primals, self.wrt, self.base.flat, self.moved)
        _, dots, outs = self.framework.jvp(f, primals, tangents)
        return (*outs, *dots)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Mapped(Traced):
    """A function over leading axes of some operands."""

    mapped: Traced
    axes: tuple

    @property
    def framework(self) -> Framework:  # type: ignore[override]
        """The framework of the function."""
        return self.mapped.framework

    @property
    def name(self) -> str:  # type: ignore[override]
        """What is computed."""
        return f"vmap({self.mapped.name})"

    def covers(self) -> tuple[Callee, int] | None:
        """A batched derivative holds the batched values, when an operand of theirs is batched."""
        inner = self.mapped.covers()
        if inner is None:
            return None
        function, n = inner
        axes = self.axes[:n]
        return (Mapped(function, axes), n) if any(a == 0 for a in axes) else None  # type: ignore[arg-type]

    def flat(self, *args: Any) -> tuple:
        """Return the outputs, the mapped axis in front."""
        return tuple(self.framework.vmap(self.mapped.flat, self.axes)(*args))

    def __str__(self) -> str:
        return self.name
