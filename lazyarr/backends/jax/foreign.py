"""JAX functions as callees: traced, differentiated, batched and compiled by JAX.

64-bit arrays are 64-bit inside the function whatever JAX's global flag says, by a context that ends
with the call; a call without 64-bit operands runs in JAX's 32-bit mode.
"""

import functools
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lazyarr.backends.array.foreign import Framework, Tangent, Traced
from lazyarr.errors import ArgumentError, LazyArrError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType

_state = threading.local()
_COMPILED = 512  # callees whose compiled functions are kept


def sixty_four(on: bool = True):
    """Return a thread-local context of 64 or 32 bits, by the name it has in this version."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    from jax.experimental import enable_x64  # until JAX 0.8

    return enable_x64(on)


def is_wide(dtypes: Sequence) -> bool:
    """Tell whether any dtype needs JAX's 64-bit mode."""
    return not dtypes or any(np.dtype(d).itemsize >= (16 if d.kind == "c" else 8) for d in dtypes)


class JaxFramework(Framework):
    """What JAX does to flat functions."""

    name = "jax"

    def __reduce__(self):
        return "FRAMEWORK"

    def run(self, callee: Traced, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs; they are ready, so the arguments may be written again."""
        with sixty_four(is_wide([a.dtype for a in arrays])):
            return [np.asarray(x) for x in compiled(callee)(*arrays)]

    def inline(self, callee: Traced) -> Callable:
        """Return the flat function, in the mode that its operands need."""

        def call(*arrays):
            with sixty_four(is_wide([a.dtype for a in arrays])):
                return callee.flat(*arrays)

        return call

    def vjp(self, f: Callable, primals: Sequence) -> tuple[tuple, Callable, tuple]:
        """Return the chosen outputs, their pullback, and all outputs."""
        return jax.vjp(f, *primals, has_aux=True)

    def jvp(self, f: Callable, primals: Sequence, tangents: Sequence) -> tuple[tuple, tuple, tuple]:
        """Return the chosen outputs, their tangents, and all outputs."""
        return jax.jvp(f, tuple(primals), tuple(tangents), has_aux=True)

    def vmap(self, f: Callable, axes: tuple) -> Callable:
        """Return f mapped over leading axes."""
        return jax.vmap(f, in_axes=axes)

    def ones(self, like: object) -> object:
        """Return ones like an array."""
        return jnp.ones_like(like)

    def has_jvp(self, callee: Traced, node: Variable, wrt: tuple[int, ...]) -> bool:
        """Tell whether forward mode works; functions with a `custom_vjp` have only reverse mode."""
        outs = node.type.types
        moved = tuple(i for i, t in enumerate(outs) if t.dtype.kind in "fc")
        tangent = Tangent(callee, wrt, moved, len(node.inputs))
        types = [x.type for x in node.inputs]
        try:
            traced = abstract(tangent.flat, [*types, *(types[i] for i in wrt)], jax.make_jaxpr)[0]
        except Exception:  # said better when the function is run
            return True
        return "custom_lin[" not in str(traced)  # what JAX writes for a rule it cannot turn round


FRAMEWORK = JaxFramework()


@functools.lru_cache(_COMPILED)
def compiled(callee: Traced) -> Callable:
    """Return the flat function of a callee under jit."""
    return jax.jit(callee.flat)


def inside() -> bool:
    """Tell whether this thread is running a wrapped function."""
    return getattr(_state, "depth", 0) > 0


@dataclass(frozen=True)
class JaxFunction(Traced):
    """A JAX function with the structure of its arguments and its static leaves."""

    function: Callable
    arguments: Any  # puts arrays and static leaves together: `build(arrays) -> args, kwargs`
    name: str = field(default="f", compare=False)
    framework = FRAMEWORK

    def flat(self, *arrays: Any) -> tuple:
        """Return the leaves of the result that are arrays."""
        return self.call(arrays)[0]

    def call(self, arrays: Sequence) -> tuple[tuple, Any, tuple]:
        """Return the array leaves of the result, its tree, and the other leaves by place."""
        args, kwargs = self.arguments.build(arrays)
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            out = self.function(*args, **kwargs)
        except LazyArrError:
            raise
        except Exception as error:
            error.add_note(f"raised by the wrapped JAX function {self.name!r}")
            raise
        finally:
            _state.depth -= 1
        leaves, tree = jax.tree_util.tree_flatten(out)
        found = tuple(jnp.asarray(x) for x in leaves if _is_array(x))
        others = tuple(_ARRAY if _is_array(x) else x for x in leaves)
        return found, tree, others

    def types(self, given: Sequence[TensorType]) -> tuple[list[TensorType], Any, tuple]:
        """Return the types of the array results, the tree of the result, and its other leaves."""
        box: list = []

        def traced(*arrays):
            found, *rest = self.call(arrays)
            box[:] = rest
            return found

        found, sizes = abstract(traced, given)
        return [TensorType(x.dtype, tuple(map(sizes, x.shape))) for x in found], *box

    def __str__(self) -> str:
        return self.name


class _Array:
    """Stands where an array was taken out of a result."""

    def __repr__(self) -> str:
        return "ARRAY"


_ARRAY = _Array()


def assemble(tree: Any, others: tuple, arrays: Sequence) -> object:
    """Return a result with arrays put where they were."""
    rest = iter(arrays)
    return jax.tree_util.tree_unflatten(tree, [next(rest) if x is _ARRAY else x for x in others])


def _is_array(value: object) -> bool:
    return isinstance(value, jax.Array | np.ndarray | np.generic)


# -- abstract evaluation, also at unknown sizes ----------------------------------------------------


def abstract(
    f: Callable, types: Sequence[TensorType], trace: Callable | None = None
) -> tuple[Any, Callable]:
    """Return the abstract results of f, and a function from their sizes to sizes of ours.

    `trace` is another way to trace f, by default `jax.eval_shape`.
    """
    known: dict = {}
    for t in types:
        for s in t.shape:
            for atom in shapes.atoms(s):
                known.setdefault(atom, f"n{len(known)}")
    names = dict(zip(known.values(), known, strict=True))
    dims = {}
    if known:
        found = jax.export.symbolic_shape(", ".join(names))
        dims = dict(zip(known, found, strict=True))
    given = [
        jax.ShapeDtypeStruct(tuple(_symbolic(s, dims) for s in t.shape), t.dtype) for t in types
    ]
    with sixty_four(is_wide([t.dtype for t in types])):
        out = trace(f)(*given) if trace else jax.eval_shape(f, *given)
    return out, lambda size: _ours(size, names)


def _symbolic(size: object, dims: dict) -> Any:
    """Return a size of ours as JAX writes it."""
    if not isinstance(size, Size):
        return size
    total: Any = 0
    for mono, factor in size.terms:
        term: Any = factor
        for atom in mono:
            term = term * dims[atom]
        total = total + term
    return total


def _ours(size: object, names: dict) -> Any:
    """Return a size of JAX's as one of ours, read from how it is written."""
    if isinstance(size, int):
        return size
    words: dict = {name: shapes.unit(atom) for name, atom in names.items()}
    words |= {"floordiv": shapes.floordiv, "max": shapes.maximum, "mod": _mod}
    text = re.sub(r"(\w+)\^(\d+)", lambda m: "*".join([m[1]] * int(m[2])), str(size))
    try:
        return eval(text, {"__builtins__": {}}, words)
    except (NameError, TypeError) as error:
        raise ArgumentError(
            f"the size {size} of a result cannot be written; give `out=`."
        ) from error


def _mod(a: Any, b: Any) -> Any:
    return a - shapes.floordiv(a, b) * b


# -- what the front end asks -----------------------------------------------------------------------


def flatten(value: object) -> tuple[list, Any]:
    """Return the leaves of a pytree of JAX's and its structure."""
    return jax.tree_util.tree_flatten(value)


def unflatten(tree: Any, leaves: Sequence) -> object:
    """Rebuild a pytree."""
    return jax.tree_util.tree_unflatten(tree, leaves)


def callee(function: Callable, arguments: Any, name: str) -> JaxFunction:
    """Return a JAX function, called with a structure of arguments, as a callee."""
    return JaxFunction(function, arguments, name)
