"""Torch functions as callees: differentiated and batched by `torch.func`, run on the CPU.

The cotangents of complex numbers are conjugated on the way in and out, as Torch's convention is the
conjugate of a graph's.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from lazyarr.backends.array.backend import writable
from lazyarr.backends.array.foreign import Framework, Traced
from lazyarr.errors import ArgumentError, LazyArrError
from lazyarr.graph.types import TensorType

_state = threading.local()


def _conj(x: torch.Tensor) -> torch.Tensor:
    return x.conj().resolve_conj() if x.is_complex() else x


def to_torch(array: np.ndarray) -> torch.Tensor:
    """Return a tensor over an array's memory, which the function does not write."""
    array = np.asarray(array)
    if not array.flags.writeable:
        array = writable(array)
    try:
        return torch.from_numpy(array)
    except ValueError:  # strides that Torch cannot describe
        return torch.from_numpy(np.array(array))


class TorchFramework(Framework):
    """What Torch does to flat functions."""

    name = "torch"

    def __reduce__(self):
        return "FRAMEWORK"

    def run(self, callee: Traced, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs, without recording for Torch's own gradients."""
        with torch.no_grad():
            found = callee.flat(*map(to_torch, arrays))
        return [x.resolve_conj().numpy() for x in found]

    def vjp(self, f: Callable, primals: Sequence) -> tuple[tuple, Callable, tuple]:
        """Return the chosen outputs, their pullback, and all outputs."""
        seeded, back, outs = torch.func.vjp(f, *primals, has_aux=True)
        return seeded, lambda cts: tuple(map(_conj, back(tuple(map(_conj, cts))))), outs

    def jvp(self, f: Callable, primals: Sequence, tangents: Sequence) -> tuple[tuple, tuple, tuple]:
        """Return the chosen outputs, their tangents, and all outputs."""
        return torch.func.jvp(f, tuple(primals), tuple(tangents), has_aux=True)

    def vmap(self, f: Callable, axes: tuple) -> Callable:
        """Return f mapped over leading axes."""
        return torch.func.vmap(f, in_dims=axes)

    def ones(self, like: object) -> object:
        """Return ones like a tensor."""
        return torch.ones_like(like)  # type: ignore[arg-type]


FRAMEWORK = TorchFramework()


def flatten(value: object) -> tuple[list, Any]:
    """Return the leaves of a pytree of Torch's and its structure."""
    leaves, tree = pytree.tree_flatten(value)
    return leaves, Structure(tree)


def unflatten(tree: Any, leaves: Sequence) -> object:
    """Rebuild a pytree."""
    return pytree.tree_unflatten(list(leaves), tree.spec)


class Structure:
    """The structure of a pytree, hashable by how it is written."""

    def __init__(self, spec: Any):
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(repr(self.spec))


def inside() -> bool:
    """Tell whether this thread is running a wrapped function."""
    return getattr(_state, "depth", 0) > 0


@dataclass(frozen=True)
class TorchFunction(Traced):
    """A Torch function with the structure of its arguments and its static leaves."""

    function: Callable
    arguments: Any
    name: str = field(default="f", compare=False)
    framework = FRAMEWORK

    def flat(self, *arrays: Any) -> tuple:
        """Return the leaves of the result that are tensors."""
        return self.call(arrays)[0]

    def call(self, arrays: Sequence) -> tuple[tuple, Any, tuple]:
        """Return the tensors of the result, its tree, and its other leaves by place."""
        args, kwargs = self.arguments.build(arrays)
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            out = self.function(*args, **kwargs)
        except LazyArrError:
            raise
        except Exception as error:
            error.add_note(f"raised by the wrapped Torch function {self.name!r}")
            raise
        finally:
            _state.depth -= 1
        leaves, tree = flatten(out)
        found = tuple(_as_tensor(x) for x in leaves if _is_array(x))
        return found, tree, tuple(_ARRAY if _is_array(x) else x for x in leaves)

    def types(self, given: Sequence[TensorType]) -> tuple[list[TensorType], Any, tuple]:
        """Return the types of the tensors, the tree of the result, and its other leaves."""
        if any(not isinstance(s, int) for t in given for s in t.shape):
            raise ArgumentError(
                f"Torch finds result types at known sizes only; give `out=` for {self.name!r}."
            )
        with torch.no_grad():
            meta = [torch.zeros(t.shape, dtype=_dtype(t.dtype), device="meta") for t in given]
            try:
                found, tree, others = self.call(meta)
            except (NotImplementedError, RuntimeError):  # not everything runs without elements
                ones = [torch.ones(t.shape, dtype=_dtype(t.dtype)) for t in given]
                found, tree, others = self.call(ones)
        types = [TensorType(str(x.dtype).removeprefix("torch."), tuple(x.shape)) for x in found]
        return types, tree, others

    def __str__(self) -> str:
        return self.name


class _Array:
    """Stands where a tensor was taken out of a result."""

    def __repr__(self) -> str:
        return "ARRAY"


_ARRAY = _Array()


def _dtype(dtype: np.dtype) -> torch.dtype:
    return torch.from_numpy(np.zeros((), dtype)).dtype


def _is_array(value: object) -> bool:
    return isinstance(value, torch.Tensor | np.ndarray | np.generic)


def _as_tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def assemble(tree: Any, others: tuple, arrays: Sequence) -> object:
    """Return a result with arrays put where they were."""
    rest = iter(arrays)
    return unflatten(tree, [next(rest) if x is _ARRAY else x for x in others])


def callee(function: Callable, arguments: Any, name: str) -> TorchFunction:
    """Return a Torch function, called with a structure of arguments, as a callee."""
    return TorchFunction(function, arguments, name)
