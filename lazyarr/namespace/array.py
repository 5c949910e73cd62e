"""Array: the handle that users hold, a thin reference to a node of a graph.

Operations record. `x[key] = value` makes the handle refer to an updated array, so every name for
the handle sees it and other handles keep their value. Asking for a number computes, when every leaf
has a value; a symbolic leaf raises ConcretizationError.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lazyarr.graph.ops  # noqa: F401 - declares the catalogue
from lazyarr.backends.implicit import DEPTH, flush, register_handle
from lazyarr.errors import ArgumentError, ConcretizationError, ShapeError
from lazyarr.graph import show
from lazyarr.graph.node import Call, Variable, as_operand, data, on_native
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import leaves
from lazyarr.namespace import numpy_protocol
from lazyarr.namespace.keys import concrete, read, shared_capsule, write


def unwrap(value: object) -> object:
    """Return the Variable, or raw scalar, behind anything that a function takes."""
    cls = value.__class__
    if cls is Array:
        return value._v
    if cls in (int, float, bool, complex) or cls is Variable or cls is Size:
        return value
    inner = getattr(value, "_v", None)
    if inner.__class__ is Variable:
        return inner
    if isinstance(value, np.ndarray | np.generic | int | float | complex):
        return as_operand(value)
    if isinstance(value, list | tuple):
        return [unwrap(v) for v in value] if _has_handle(value) else data(np.array(value))
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return data(np.array(to_numpy(value)))
    return as_operand(value)


def _has_handle(values: list | tuple) -> bool:
    return any(
        isinstance(v, Array) or (isinstance(v, list | tuple) and _has_handle(v)) for v in values
    )


def to_numpy(value: object) -> np.ndarray:
    """Return the array of another library as NumPy's, through DLPack or `__array__`."""
    try:
        return np.from_dlpack(value)  # type: ignore[arg-type]
    except Exception:  # any library may refuse in its own way; __array__ then answers or raises
        return np.asarray(value)


def _binary(name: str):
    """Return an operator and its reflection, recording by the shortest way for known types."""
    record = OPS[name]
    call = record.bare
    known: dict = {}

    def forward(self, other):
        a = self._v
        if other.__class__ is Array:
            b = other._v
            key = (a.type, b.type)
        else:
            b = _operand_or_none(other)
            if b is None:
                return NotImplemented
            key = (a.type, b.__class__)
        found = known.get(key)
        if found is not None:
            return Array(Variable(found, (call, a, b)))
        out = record(a, b)
        if out.call is call and (b.__class__ is Variable or safe(a.type, b)):
            if len(known) > _MEMO_LIMIT:
                known.clear()
            known[key] = out.type
        return Array(out)

    def backward(self, other):
        b = _operand_or_none(other)
        return NotImplemented if b is None else Array(record(b, self._v))

    return forward, backward


def safe(t: object, value: object) -> bool:
    """Tell whether every number of a Python type can be recorded against a dtype unseen."""
    return value.__class__ is float or (value.__class__ is int and t.dtype.kind == "f")


def _operand_or_none(value: object) -> object:
    """Return an operand, or None for what an operator leaves to the other side."""
    cls = value.__class__
    if cls in (int, float, bool, complex) or cls is Size:
        return value
    if isinstance(value, Array):
        return value._v
    if isinstance(value, np.ndarray | np.generic | int | float | complex | Variable):
        return as_operand(value)
    return None


_MEMO_LIMIT = 4096


@register_handle
class Array:
    """A lazy array of the standard: dtype and shape are known, elements are computed when asked.

    >>> import lazyarr as xp
    >>> x = xp.asarray([1.0, 2.0])
    >>> float(xp.sum(x * x))
    5.0
    """

    __slots__ = ("_v", "__weakref__")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, variable: Variable):
        self._v = variable
        if variable.depth > DEPTH and not variable.symbolic:
            flush(variable)

    # -- attributes -------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._v.type.dtype

    @property
    def shape(self) -> tuple:
        """The sizes of the axes: ints, and None where a symbol leaves one unknown (see `sizes`)."""
        return tuple(s if s.__class__ is int else None for s in self._v.type.shape)

    @property
    def sizes(self) -> tuple:
        """The sizes of the axes, unknown ones as symbols that count as integer operands."""
        return self._v.type.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._v.type.ndim

    @property
    def size(self) -> int | None:
        """The number of elements, None when a size is unknown."""
        shape = self.shape
        return None if None in shape else int(np.prod(shape, dtype=np.int64))

    @property
    def device(self) -> str:
        """Where the elements live."""
        return "cpu"

    @property
    def T(self) -> "Array":
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ShapeError(f"T needs 2 dimensions, got {self.ndim}; use permute_dims.")
        return Array(op.matrix_transpose(self._v))

    @property
    def mT(self) -> "Array":
        """The last two axes exchanged."""
        return Array(op.matrix_transpose(self._v))

    @property
    def real(self) -> "Array":
        """The real parts of the elements."""
        return self if self.dtype.kind == "b" else Array(op.real(self._v))

    @property
    def imag(self) -> "Array":
        """The imaginary parts of the elements."""
        return Array((op.zeros_like if self.dtype.kind == "b" else op.imag)(self._v))

    def conj(self) -> "Array":
        """Return the complex conjugates of the elements."""
        return Array(op.conj(self._v))

    def argsort(self, axis: int = -1) -> "Array":
        """Return the indices that sort along an axis."""
        return Array(op.argsort(self._v, axis=axis))

    def searchsorted(self, v: object, side: str = "left", sorter: object = None) -> "Array":
        """Return where values would be inserted into this sorted array."""
        return Array(op.searchsorted(self._v, unwrap(v), side=side, sorter=sorter))

    def transpose(self, *axes: int) -> "Array":
        """Return the axes in another order (reversed unless given)."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return Array(op.permute_dims(self._v, tuple(order or range(self.ndim)[::-1])))

    @property
    def at(self) -> "At":
        """Updates that give a new array: `x.at[i].set(v)`, `.add`, `.multiply`, `.min`, `.max`."""
        return At(self)

    def to_device(self, device: object, /, *, stream: object = None) -> "Array":
        """Return the array on a device; the host is the only one for now."""
        if device != "cpu":
            raise ArgumentError(f"unknown device {device!r}; arrays live on 'cpu'.")
        return self

    def __array_namespace__(self, *, api_version: str | None = None):
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ArgumentError(f"version {api_version!r} of the standard is not known.")
        return sys.modules["lazyarr"]

    # -- indexing ---------------------------------------------------------------------------------

    def __getitem__(self, key):
        return Array(read(self._v, key))

    def __setitem__(self, key, value):
        self._v = write(self._v, key, unwrap(value))

    def __len__(self) -> int:
        return self._leading("len()")

    def __iter__(self) -> Iterator["Array"]:
        return (self[i] for i in range(self._leading("iteration")))

    def _leading(self, what: str) -> int:
        if not self.ndim:
            raise ArgumentError(f"{what} of a 0-d array.")
        size = self._v.shape[0]
        if isinstance(size, Size):
            raise ConcretizationError(
                f"{what} needs a size that is known while recording; the first axis of {self!r} is "
                "symbolic. Use scan or vectorize over it."
            )
        return size

    # -- numbers: these compute -------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self._item("bool()"))

    def __int__(self) -> int:
        return int(self._item("int()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise ArgumentError(f"only integer arrays can be an index, this is {self.dtype}.")
        return int(self._item("operator.index()"))

    def __float__(self) -> float:
        return float(self._item("float()"))

    def __complex__(self) -> complex:
        return complex(self._item("complex()"))

    def item(self):
        """Return the only element as a Python number."""
        return self._item("item()").item()

    def _item(self, what: str) -> np.ndarray:
        if self._v.type.shape not in ((), (1,)) and self.size != 1:
            raise ArgumentError(f"{what} needs one element, the array has shape {self.shape}.")
        return concrete(self._v, what).reshape(())

    def compute(self) -> np.ndarray:
        """Return the elements as a NumPy array of their own."""
        return np.array(concrete(self._v, "compute()"))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        out = concrete(self._v, "conversion to NumPy")
        return np.array(out, dtype=dtype) if copy is not False else np.asarray(out, dtype=dtype)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        value = concrete(self._v, "__dlpack__")
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        if copy is False:
            return shared_capsule(value, options)
        return np.array(value).__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)  # the CPU

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        record = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or record is None or kwargs:
            return numpy_protocol.call_ufunc(ufunc, method, inputs, kwargs)
        return Array(OPS[record](*(unwrap(x) for x in inputs)))

    def __array_function__(self, function, types, args, kwargs):
        return numpy_protocol.call_function(function, args, kwargs)

    def __copy__(self) -> "Array":
        return Array(self._v)

    def __deepcopy__(self, memo: dict) -> "Array":
        return Array(self._v)

    def __reduce__(self):
        if any(v.is_symbol for v in leaves([self._v])):
            return Array, (self._v,)
        return _from_value, (self.compute(),)

    def __repr__(self) -> str:
        return f"Array({show.expression(self._v)}, shape={_shown(self)}, dtype={self.dtype})"


def _shown(x: Array) -> str:
    sizes = ", ".join(map(str, x.sizes))
    return f"({sizes},)" if x.ndim == 1 else f"({sizes})"


def _from_value(value: np.ndarray) -> Array:
    return Array(data(value))


class At:
    """`x.at[key]`: functional updates of a region."""

    __slots__ = ("handle", "key")

    def __init__(self, handle: Array, key: object = ...):
        self.handle, self.key = handle, key

    def __getitem__(self, key: object) -> "At":
        return At(self.handle, key)

    def set(self, value: object) -> Array:
        """Return the array with the region replaced; of duplicate indices the last wins."""
        return Array(write(self.handle._v, self.key, unwrap(value)))

    def add(self, value: object) -> Array:
        """Return the array with the region increased; every duplicate index counts."""
        return self._combined(value, "add")

    def multiply(self, value: object) -> Array:
        """Return the array with the region multiplied; every duplicate index counts."""
        return self._combined(value, "multiply")

    def min(self, value: object) -> Array:
        """Return the array with the smaller of each element of the region and the value."""
        return self._combined(value, "min")

    def max(self, value: object) -> Array:
        """Return the array with the larger of each element of the region and the value."""
        return self._combined(value, "max")

    def _combined(self, value: object, how: str) -> Array:
        return Array(write(self.handle._v, self.key, unwrap(value), how))


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "matmul": "matmul",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}

UFUNCS = {
    **{name: name for name in OPS if hasattr(np, name) and isinstance(getattr(np, name), np.ufunc)},
    "absolute": "abs", "power": "pow", "true_divide": "divide", "invert": "bitwise_invert",
    "arctan": "atan", "arcsin": "asin", "arccos": "acos", "rint": "round", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "conjugate": "conj",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip


# Beside the standard: methods that NumPy's, JAX's and Torch's arrays share, and callers rely on.
_REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")


def _method(name: str):
    def method(self, axis=None, **options):
        return getattr(sys.modules["lazyarr"], name)(self, axis=axis, **options)

    method.__name__ = name
    method.__doc__ = f"Return `lazyarr.{name}` of the array, over all axes or some."
    return method


def _unary(name: str):
    record = OPS[name]
    return lambda self: Array(record(self._v))


def recorder(native: Any, python: Callable, only: Call | None = None) -> Callable:
    """Return what records as a Python function of Arrays and numbers does, compiled where it is.

    What was recorded for some types is recorded for them again, without asking the function, when
    it is `only` (or any call) of exactly the operands given.
    """
    if native is None:
        return python
    return native.Recorder(handle=Array, slot="_v", python=python, only=only, deepest=DEPTH)


def _operators() -> dict[str, tuple[Callable, Call]]:
    """Every operator of Arrays, and the call that it records."""
    found = {}
    for method, name in _OPERATORS.items():
        forward, backward = _binary(name)
        found[f"__{method}__"] = forward, OPS[name].bare
        found[f"__r{method}__"] = backward, OPS[name].bare
    for method, name in _COMPARISONS.items():
        found[f"__{method}__"] = _binary(name)[0], OPS[name].bare
    for method, name in _UNARY.items():
        found[f"__{method}__"] = _unary(name), OPS[name].bare
    return found


_METHODS = _operators()


def _install_operators(native: Any = None) -> None:
    for method, (python, call) in _METHODS.items():
        setattr(Array, method, recorder(native, python, call))


def _reshape(self, *shape):
    """Return `lazyarr.reshape` to a shape, given as a tuple or as its sizes."""
    whole = len(shape) == 1 and isinstance(shape[0], tuple | list)
    return sys.modules["lazyarr"].reshape(self, tuple(shape[0]) if whole else shape)


def _clip(self, min=None, max=None):
    """Return `lazyarr.clip` of the array between two bounds."""
    return sys.modules["lazyarr"].clip(self, min, max)


for _name in _REDUCTIONS:
    setattr(Array, _name, _method(_name))
Array.reshape, Array.clip = _reshape, _clip  # type: ignore[attr-defined]
_install_operators()
on_native(_install_operators)
