"""Wrapping functions of others: `wrap_jax` and `wrap_torch`, which differentiate by themselves.

A wrapped function records one node when it is called on arrays. Frameworks are imported when the
first wrapped function is called.
"""

import functools
import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lazyarr.errors import ArgumentError, BackendError
from lazyarr.graph.ops.foreign import Callee, call_foreign
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.foreign_arguments import (
    declared,
    is_spec,
    named_result,
    positional,
    spec_type,
    split,
    static_places,
)
from lazyarr.namespace.foreign_dims import Signature, read_dims
from lazyarr.namespace.tree import flatten, unflatten

_KNOWN = 1024  # result types that a wrapped function remembers


def _module(name: str) -> ModuleType:
    """Return the module that knows a framework, or say how to install it."""
    if importlib.util.find_spec(name) is None:
        raise BackendError(
            f"wrap_{name} needs the package {name}; install it with `pip install lazyarr[{name}]`."
        )
    return importlib.import_module(f"lazyarr.backends.{name}.foreign")


class Wrapped:
    """A function of a framework that records when it is called on arrays."""

    def __init__(
        self,
        function: Callable,
        framework: str,
        out: object = None,
        name: str | None = None,
        static: object = (),
        dims: object = None,
    ):
        self.function, self.framework, self.out = function, framework, out
        self.dims = read_dims(dims)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.static = static_places(function, static)
        self._types: dict = {}
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: object, **kwargs: object):
        """Record a call; within another wrapped function, call the function itself."""
        module = _module(self.framework)
        if module.inside():
            return self.function(*args, **kwargs)
        if isinstance(self.dims, Signature):
            return self.dims.call(self._record, args, kwargs)
        return self._record(*args, **kwargs)

    def _record(self, *args: object, **kwargs: object):
        module = _module(self.framework)
        arguments, arrays = split(args, kwargs, module.flatten, module.unflatten, self.static)
        operands = [positional(x) for x in arrays]
        callee = module.callee(self.function, arguments, self.name)
        types, assemble = self._results(callee, [v.type for v in operands])
        found = call_foreign(callee, operands, types) if types else []
        return assemble([self._handle(v, i) for i, v in enumerate(found)])

    def _handle(self, v: Any, i: int) -> object:
        if self.dims is None or isinstance(self.dims, Signature):
            return Array(v)
        several = isinstance(self.dims, list)
        return named_result(Array(v), self.dims[i] if several else self.dims)

    def _results(self, callee: Callee, given: list[TensorType]) -> tuple[list, Callable]:
        """Return the types of the array results and how to build the result from arrays."""
        if self.out is not None:
            out = declared(self.out, callee.arguments.build, given)  # type: ignore[attr-defined]
            specs, tree = flatten_specs(out)
            names = [f"{self.name}.{i}" for i in range(len(specs))]
            types = [spec_type(s, n) for s, n in zip(specs, names, strict=True)]
            return types, lambda arrays: unflatten(tree, arrays)
        key = (callee, tuple(given))
        found = self._types.get(key)
        if found is None:
            if len(self._types) > _KNOWN:
                self._types.clear()
            found = self._types[key] = self._traced(callee, given)
        types, tree, others = found
        return types, lambda arrays: _module(self.framework).assemble(tree, others, arrays)

    def _traced(self, callee: Any, given: list[TensorType]) -> tuple:
        try:
            return callee.types(given)
        except Exception as error:
            if any(not isinstance(s, int) for t in given for s in t.shape):
                error.add_note(
                    f"while finding the result types of {self.name!r} at unknown sizes; say them "
                    "with `out=`, or give the inputs known sizes"
                )
            raise

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wrapped) and (self.function, self.framework) == (
            other.function, other.framework,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.function, self.framework))

    def __repr__(self) -> str:
        return f"<wrapped {self.framework} function {self.name}>"


def flatten_specs(out: object) -> tuple[list, Any]:
    """Return the specs of results and the tree they stand in."""
    found: list = []

    def marked(value: object) -> object:
        if is_spec(value):
            found.append(value)
            return _SPEC
        if isinstance(value, dict):
            return {k: marked(value[k]) for k in sorted(value, key=str)}
        if isinstance(value, list | tuple):
            children = [marked(v) for v in value]
            return type(value)(*children) if hasattr(value, "_fields") else type(value)(children)
        raise ArgumentError(f"`out=` holds {value!r}; write a type, or a pair (dtype, shape).")

    tree = flatten(marked(out))[1]
    return found, tree


_SPEC = object()


def _decorator(framework: str, f: Callable | None, **options: Any):
    if f is None:
        return lambda function: Wrapped(function, framework, **options)
    if not callable(f):
        raise ArgumentError(f"wrap_{framework} takes a function, not {f!r}.")
    return Wrapped(f, framework, **options)


def wrap_jax(
    f: Callable | None = None,
    out: object = None,
    name: str | None = None,
    *,
    static: object = (),
    dims: object = None,
):
    """Return a JAX function as a function of lazy arrays, on every backend; also a decorator.

    Arguments and results are pytrees. Leaves that are arrays, symbolic or not, are operands; the
    rest, as numbers and functions, is static and must be hashable, as are the arguments that
    `static` names. `out` gives the types of the result where JAX cannot find them: a type, a pair
    (dtype, shape) with None for unknown sizes, a pytree of these, or a function from the types of
    the arguments to it. `dims` names the axes of a result, or of arguments and results: with
    `dims="(time, site), (site) -> (time)"` named arguments are given to f in that order of axes, f
    is mapped over their other dims, and results have the coordinates of the arguments. Results that
    are no arrays are returned as they are. Value and gradient asked for together are one call.

    >>> import jax.numpy as jnp                                          # doctest: +SKIP
    >>> @wrap_jax
    ... def energy(x, scale):
    ...     return jnp.sum(jnp.tanh(x["a"]) * scale)
    >>> a = xp.symbol("a", shape=(None,))                                # doctest: +SKIP
    >>> value = energy({"a": a}, 2.0)                                    # doctest: +SKIP
    >>> f = xp.function([a], xp.value_and_grad(value, a), backend="c")   # doctest: +SKIP
    """
    return _decorator("jax", f, out=out, name=name, static=static, dims=dims)


def wrap_torch(
    f: Callable | None = None,
    out: object = None,
    name: str | None = None,
    *,
    static: object = (),
    dims: object = None,
):
    """Return a Torch function as a function of lazy arrays, on every backend; also a decorator.

    As `wrap_jax`. The function must be one that `torch.func` can transform: it gives new tensors
    and does not write its arguments. Types at unknown sizes must be given by `out`.
    """
    return _decorator("torch", f, out=out, name=name, static=static, dims=dims)


__all__ = ["Wrapped", "flatten_specs", "wrap_jax", "wrap_torch"]
