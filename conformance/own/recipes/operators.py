"""Operators of arrays: as the functions they stand for, reflected, and in place."""

import operator
from dataclasses import replace

import numpy as np

from conformance import spec
from conformance.own.recipes import elementwise, linear
from conformance.own.recipes._recipe import Case, recipe

BINARY = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow", "__and__":
    "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__lshift__":
    "bitwise_left_shift", "__rshift__": "bitwise_right_shift", "__lt__": "less",
    "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal", "__eq__": "equal",
    "__ne__": "not_equal",
}  # fmt: skip
UNARY = {
    "__abs__": "abs", "__neg__": "negative", "__pos__": "positive", "__invert__": "bitwise_invert"
}  # fmt: skip
REFLECTED = [n for n in BINARY if n not in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__",
                                            "__ne__")]  # fmt: skip
PYTHON = {"__and__": operator.and_, "__or__": operator.or_}


def python(name: str):
    """Return Python's operator for a method."""
    return PYTHON.get(name) or getattr(operator, name.strip("_"))


@recipe(*BINARY)
def binary(d, name):
    """Two arrays."""
    case = elementwise.binary(d, BINARY[name], equal=name.endswith("shift__"))
    act = python(name)
    return replace(case, call=lambda xp, a, b: act(a, b))


@recipe(*UNARY)
def unary(d, name):
    """One array."""
    case = elementwise.unary(d, UNARY[name])
    act = python(name)
    return replace(case, call=lambda xp, a: act(a))


@recipe(*(f"__r{n[2:]}" for n in REFLECTED))
def reflected(d, name):
    """A Python number on the left: it takes the array's dtype."""
    function = BINARY[f"__{name[3:]}"]
    category = spec.function(function).params[0]["dtypes"]
    if function == "divide":
        category = "floating"
    dtype = d.dtype(category)
    number = d.integer(2, 5) if dtype != "bool" else d.boolean()
    if np.dtype(dtype).kind in "fc" and d.boolean():
        number = number + 0.5
    x = d.array(dtype, d.shape(), 1, 2)
    if dtype == "bool":
        x = x.astype(bool)
    with np.errstate(all="ignore"):
        answer = elementwise.oracle(function)(np.asarray(number, dtype), x)
    act = python(f"__{name[3:]}")
    return Case([x], {}, answer, call=lambda xp, a: act(number, a), scale=20)


@recipe("__imatmul__")
def in_place_matmul(d):
    """A square matrix on the right."""
    dtype, n = d.dtype("numeric"), d.integer(1, 3)
    x1, x2 = d.array(dtype, (n, n), 0, 3), d.array(dtype, (n, n), 0, 3)
    return Case([x1, x2], {}, x1 @ x2, call=_in_place("__matmul__"), dtypes=(dtype,), scale=50)


@recipe(*(f"__i{n[2:]}" for n in REFLECTED))
def in_place(d, name):
    """The result keeps shape and dtype of the left."""
    function = BINARY[f"__{name[3:]}"]
    category = spec.function(function).params[0]["dtypes"]
    if function == "divide":
        category = "floating"
    dtype, shape = d.dtype(category), d.shape(least=1)
    x1 = d.array(dtype, shape, 1, 9)
    x2 = d.array(dtype, d.choice([shape, ()]), 1, 3)
    if function.endswith("shift"):
        x1, x2 = x1 % 4, x2 % 3
    if function == "pow":
        x1 = np.minimum(np.real(x1), 3).astype(dtype)
    if function == "subtract":
        x1 = x1 + x2
    with np.errstate(all="ignore"):
        answer = elementwise.oracle(function)(*elementwise.wide([x1, x2]))
    call = _in_place(f"__{name[3:]}")
    return Case([x1, x2], {}, answer, call=call, dtypes=(dtype,), scale=100)


def _in_place(name: str):
    act = getattr(operator, f"__i{name[2:]}")

    def call(xp, x1, x2):
        out = xp.asarray(x1, copy=True)
        return act(out, x2)

    return call


@recipe("__matmul__")
def matmul(d):
    """The operator of matrices."""
    return replace(linear.matmul(d, "matmul"), call=lambda xp, a, b: a @ b)


@recipe("__rmatmul__")
def reflected_matmul(d):
    """Called by name: no Python number stands on the left of `@`."""
    case = linear.matmul(d, "matmul")
    return replace(case, call=lambda xp, a, b: type(b).__rmatmul__(b, a))


@recipe("T", "mT")
def transposes(d, name):
    """The axes of a matrix exchanged; for mT also of stacks."""
    x = d.array(d.dtype("any"), d.shape(2, 2 if name == "T" else 4, 3))
    answer = np.swapaxes(x, -1, -2)
    return Case([x], {}, answer, call=lambda xp, a: getattr(a, name), dtypes=(str(x.dtype),))


@recipe("__bool__", "__int__", "__float__", "__complex__", "__index__")
def numbers(d, name):
    """A 0-d array as a Python number."""
    category = {"__bool__": "any", "__index__": "integer", "__complex__": "any"}.get(
        name, "bool_or_real"
    )
    x = d.array(d.dtype(category), ())
    act = {"__bool__": bool, "__int__": int, "__float__": float, "__complex__": complex}.get(
        name, operator.index
    )
    return Case([x], {}, act(x[()]), call=lambda xp, a: act(a), plain=True, data_dependent=True)


@recipe("to_device")
def to_device(d):
    """The device it is on."""
    x = d.array(d.dtype("any"), d.shape())
    dtypes = (str(x.dtype),)
    return Case([x], {}, x, call=lambda xp, a: a.to_device(a.device), dtypes=dtypes)


@recipe("__dlpack__")
def dlpack(d):
    """NumPy reads the array's memory."""
    x = d.array(d.dtype("any"), d.shape(least=1))
    return Case([x], {}, x, call=lambda xp, a: np.from_dlpack(a), data_dependent=True, plain=True)


@recipe("__dlpack_device__")
def dlpack_device(d):
    """A pair of integers."""
    x = d.array(d.dtype("any"), d.shape())

    def call(xp, a):
        kind, number = a.__dlpack_device__()
        return int(kind) >= 1 and int(number) >= 0

    return Case([x], {}, True, call=call, plain=True)


@recipe("shape", "ndim", "size", "dtype", "device")
def attributes(d, name):
    """What an array says of itself."""
    x = d.array(d.dtype("any"), d.shape())

    def call(xp, a):
        if name == "dtype":
            return a.dtype == getattr(xp, str(x.dtype), xp.asarray(a).dtype)
        if name == "device":
            return a.device is not None
        found = getattr(a, name)
        return tuple(found) if name == "shape" else found

    expected = {"shape": x.shape, "ndim": x.ndim, "size": x.size}.get(name, True)
    return Case([x], {}, expected, call=call, plain=True)
