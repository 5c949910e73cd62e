"""Arguments and results of wrapped functions: which leaves are arrays, and the types of results.

An argument of a wrapped function is a pytree. Its leaves that are arrays become operands; all other
leaves are static: part of the callee, so equal calls merge and each new value is another callee.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazyarr.errors import ArgumentError
from lazyarr.graph import shapes
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import variable_of
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.xtensor import XTensor
from lazyarr.namespace.xtensor_data import is_labelled

# -- leaves ----------------------------------------------------------------------------------------


class Static:
    """A leaf that is no array. Numbers are equal by class and spelling, arrays by content."""

    __slots__ = ("value", "key")

    def __init__(self, value: object, path: str):
        self.value = value
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            self.key: Any = (str(array.dtype), array.shape, array.tobytes())
        elif isinstance(value, bool | int | float | complex):
            self.key = (value.__class__, repr(value))
        else:
            self.key = (value.__class__, value)
        try:
            hash(self.key)
        except TypeError:
            raise ArgumentError(
                f"{path} is a {type(value).__name__}, which is neither an array nor hashable; "
                "register its class as a pytree, or pass a tuple."
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)

    def __reduce__(self):
        return Static, (self.value, "a leaf")


def is_array(value: object) -> bool:
    """Tell whether a leaf is an operand: a handle or anything that NumPy takes for an array."""
    return isinstance(value, Variable) or hasattr(type(value), "__array__")


def positional(value: object) -> Variable:
    """Return an array leaf as a node without dimension names."""
    node = XTensor(value)._v if is_labelled(value) else unwrap(value)
    node = variable_of(node)
    return op.drop_dims(node) if node.type.named else node


@dataclass(frozen=True)
class Arguments:
    """The structure of a call: trees of positional and named arguments, static leaves by place."""

    trees: tuple
    names: tuple[str, ...]
    leaves: tuple  # a Static, or None where an array stands
    unflatten: Callable

    def build(self, arrays: Sequence) -> tuple[list, dict]:
        """Return positional and named arguments with arrays in their places."""
        rest = iter(arrays)
        values = iter([next(rest) if x is None else x.value for x in self.leaves])
        args = [self.unflatten(tree, [next(values) for _ in range(n)]) for tree, n in self.trees]
        first = len(args) - len(self.names)
        return args[:first], dict(zip(self.names, args[first:], strict=True))


def split(
    args: tuple, kwargs: dict, flatten: Callable, unflatten: Callable, static: Sequence[object]
) -> tuple[Arguments, list]:
    """Return the structure of a call and its array leaves; `static` names static arguments."""
    names = tuple(sorted(kwargs))
    trees, leaves, arrays = [], [], []
    labels = [*range(len(args)), *names]
    for label, value in zip(labels, [*args, *(kwargs[n] for n in names)], strict=True):
        found, tree = flatten(value)
        trees.append((tree, len(found)))
        for x in found:
            if is_array(x) and label not in static:
                leaves.append(None)
                arrays.append(x)
            else:
                leaves.append(Static(x, f"argument {label!r}"))
    return Arguments(tuple(trees), names, tuple(leaves), unflatten), arrays


def static_places(function: Callable, static: object) -> tuple:
    """Return the names and positions of static arguments, from either."""
    given = static if isinstance(static, tuple | list) else (static,)
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return tuple(given)
    places = list(given)
    for s in given:
        if isinstance(s, str) and s in parameters:
            places.append(parameters.index(s))
        elif isinstance(s, int) and s < len(parameters):
            places.append(parameters[s])
    return tuple(places)


# -- types of results ------------------------------------------------------------------------------


def is_spec(value: object) -> bool:
    """Tell whether a value describes the type of one array."""
    if isinstance(value, TensorType | Array | XTensor):
        return True
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], tuple | list):
        return isinstance(value[0], str | np.dtype | type)
    return hasattr(value, "dtype") and hasattr(value, "shape")


def spec_type(value: object, name: str) -> TensorType:
    """Return the type that a spec describes; None in a shape is a fresh unknown size."""
    if isinstance(value, TensorType):
        return value
    if isinstance(value, Array | XTensor):
        return TensorType(value.dtype, value._v.type.shape)
    dtype, shape = value if isinstance(value, tuple) else (value.dtype, value.shape)  # type: ignore[attr-defined]
    sizes = tuple(
        shapes.unknown(f"{name}.{i}", not_one=True) if s is None
        else s if isinstance(s, Size) else int(s)
        for i, s in enumerate(shape)
    )  # fmt: skip
    return TensorType(as_dtype(dtype), sizes)


def declared(out: object, build: Callable, types: Sequence[TensorType]) -> object:
    """Return `out=` with a function called on the types, in the structure of the arguments."""
    if callable(out) and not is_spec(out):
        args, kwargs = build(types)
        return out(*args, **kwargs)
    return out


def named_result(value: Array, dims: object) -> object:
    """Return a result as an XTensor when its dims are declared."""
    if dims is None:
        return value
    names = (dims,) if isinstance(dims, str) else tuple(dims)  # type: ignore[arg-type]
    return XTensor(value, dims=names)
