"""Functions of others in programs of Numba, and functions of Numba in programs of C.

Both get the parameters of a `Native` in order, buffers as flat arrays or pointers, and return a
code that is not 0 where the function raised or gave something else than was declared.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types as T
from numba.core.errors import NumbaError
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, overload

from lazyarr.graph.ops.foreign import Native


def type_of(dtype: object) -> T.Type:
    """Return Numba's type of an element."""
    return numba.from_dtype(np.dtype(dtype))


# -- a C function in a program of Numba ------------------------------------------------------------


def by_pointer(native: Native) -> Callable:
    """Return a C function as one that Numba compiles: the call of its address."""
    address, names = native.code.address(native), [f"a{i}" for i in range(len(native.parameters))]

    def build(context, builder, signature, args):
        values = []
        for p, type_, value in zip(native.parameters, signature.args, args, strict=True):
            if p.kind in ("size", "value"):
                values.append(_number(context, builder, value, type_, type_of(p.dtype)))
            else:
                data = context.make_array(type_)(context, builder, value).data
                values.append(builder.bitcast(data, ir.IntType(8).as_pointer()))
        result = ir.IntType(32) if native.coded else ir.VoidType()
        function = ir.FunctionType(result, [v.type for v in values]).as_pointer()
        pointer = builder.inttoptr(ir.Constant(ir.IntType(64), address), function)
        code = builder.call(pointer, values)
        return (
            builder.sext(code, ir.IntType(64)) if native.coded else ir.Constant(ir.IntType(64), 0)
        )

    scope = {"intrinsic": intrinsic, "build": build, "T": T}
    listed = ", ".join(names)
    text = (
        f"@intrinsic\ndef call(context, {listed}):\n    return T.int64({listed}), build\n"
        f"def function({listed}):\n    return call({listed})\n"
    )
    exec(text, scope)
    return numba.njit(scope["function"])


def _number(context: Any, builder: Any, value: Any, given: T.Type, wanted: T.Type) -> Any:
    """Return a number as C passes it: small integers in 32 bits."""
    value = context.cast(builder, value, given, wanted)
    if isinstance(value.type, ir.IntType) and value.type.width < 32:
        extend = builder.sext if getattr(wanted, "signed", False) else builder.zext
        value = extend(value, ir.IntType(32))
    return value


# -- a function of Numba ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Jitted:
    """A function compiled by Numba with its static arguments and the shapes of its arrays.

    `places` has an entry for each argument: the number of an operand, or a static value in a tuple.
    Shapes hold ints, and "n0", "n1", ... for the sizes that are given.
    """

    dispatcher: Any
    places: tuple
    inputs: tuple[tuple[str, tuple], ...]  # dtype and shape of each operand
    outputs: tuple[tuple[str, tuple], ...]
    sizes: int

    def fits(self) -> bool:
        """Tell whether the function takes the operands and gives what is declared."""
        places = tuple((*p, type(p[0])) if isinstance(p, tuple) else p for p in self.places)
        given = tuple((dtype, len(shape)) for dtype, shape in self.inputs)
        found = tuple((dtype, len(shape)) for dtype, shape in self.outputs)
        return _fits(self.dispatcher, places, given, found)

    def function(self) -> Callable:
        """Return `(sizes, flat inputs, flat outputs) -> code` as Numba compiles it."""
        names = self._names()
        ins = [
            f"mutable({n}[:{_count(s)}]).reshape({s})" for n, s in self._arrays("x", self.inputs)
        ]
        outs = self._arrays("y", self.outputs)
        return numba.njit(self._made(names, ins, outs, {"mutable": mutable}))

    def address(self, native: Native | None = None) -> int:
        """Return the address of a C function of sizes and pointers, which lives as long as this."""
        entry = self.__dict__["kept"] = _entry(self)
        return entry.address

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "kept"}

    def _names(self) -> list[str]:
        return [
            *(f"n{i}" for i in range(self.sizes)),
            *(f"x{i}" for i in range(len(self.inputs))),
            *(f"y{i}" for i in range(len(self.outputs))),
        ]

    def _arrays(self, letter: str, arrays: Sequence) -> list[tuple[str, str]]:
        """Return names, and shapes as text."""
        texts = ("".join(f"{s}, " for s in shape) for _, shape in arrays)
        return [(f"{letter}{k}", f"({text})") for k, text in enumerate(texts)]

    def _made(self, names: list, ins: list, outs: list, scope: dict) -> Callable:
        arguments = [ins[p] if isinstance(p, int) else repr(p[0]) for p in self.places]
        lines = [f"def function({', '.join(names)}):", "    try:"]
        lines.append(f"        found = f({', '.join(arguments)})")
        for k, (name, shape) in enumerate(outs):
            part = "found" if len(outs) == 1 else f"found[{k}]"
            lines.append(f"        if not put({name}, {part}, {shape}):")
            lines.append("            return 1")
        lines += ["    except Exception:", "        return 1", "    return 0"]
        scope = {**scope, "f": self.dispatcher, "put": put}
        exec("\n".join(lines), scope)
        return scope["function"]

    def entry(self) -> Any:
        """Return the C function, compiled."""
        counted = dict(self._arrays("y", self.outputs))
        names = self._names()
        ins = [f"carray({n}, {s})" for n, s in self._arrays("x", self.inputs)]
        ins = [i if "()" not in i else f"{i.replace('()', '(1,)')}.reshape(())" for i in ins]
        outs = [(f"carray({n}, (max(1, {_count(s)}),))", s) for n, s in counted.items()]
        pointers = [T.CPointer(type_of(d)) for d, _ in (*self.inputs, *self.outputs)]
        signature = T.int32(*[T.int64] * self.sizes, *pointers)
        return numba.cfunc(signature)(self._made(names, ins, outs, {"carray": numba.carray}))


_entry = functools.lru_cache(256)(Jitted.entry)


def _count(shape: str) -> str:
    """Return the number of elements of a shape, as text."""
    return "*".join(s for s in shape.strip("()").replace(" ", "").split(",") if s) or "1"


@functools.lru_cache(512)
def _fits(dispatcher: Any, places: tuple, given: tuple, found: tuple) -> bool:
    types = [T.Array(type_of(dtype), ndim, "C") for dtype, ndim in given]
    args = tuple(types[p] if isinstance(p, int) else numba.typeof(p[0]) for p in places)
    try:
        if args not in dispatcher.overloads:
            dispatcher.compile(args)
        result = dispatcher.overloads[args].signature.return_type
    except (NumbaError, KeyError, TypeError, RuntimeError):
        return False
    parts = list(result.types) if isinstance(result, T.BaseTuple) else [result]
    if len(parts) != len(found) or (isinstance(result, T.BaseTuple) and len(parts) == 1):
        return False
    return all(_is(part, *wanted) for part, wanted in zip(parts, found, strict=True))


def _is(part: T.Type, dtype: str, ndim: int) -> bool:
    """Tell whether a type of Numba's is an array of a dtype and rank, or a number for rank 0."""
    if isinstance(part, T.Array):
        return part.ndim == ndim and part.dtype == type_of(dtype)
    return ndim == 0 and part == type_of(dtype)


@intrinsic
def mutable(context, array):
    """An array as one that may be written, as functions with declared types want it."""
    wanted = array.copy(readonly=False)

    def build(context, builder, signature, args):
        return impl_ret_borrowed(context, builder, signature.return_type, args[0])

    return wanted(array), build


def put(out: Any, value: Any, shape: tuple) -> bool:
    """Store a result in a flat buffer; False where its shape is another."""
    raise NotImplementedError("called in compiled code only")


@overload(put)
def _put(out, value, shape):
    if isinstance(value, T.Array) and value.ndim:

        def store(out, value, shape):
            if value.shape != shape:
                return False
            i = 0
            for v in value.flat:
                out[i] = v
                i += 1
            return True

    elif isinstance(value, T.Array):

        def store(out, value, shape):
            out[0] = value[()]
            return True

    else:

        def store(out, value, shape):
            out[0] = value
            return True

    return store


def is_jitted(native: Native) -> bool:
    """Tell whether a native function is one of Numba's."""
    return isinstance(native.code, Jitted)


def function_of(native: Native) -> Callable:
    """Return a native function as a program of Numba calls it."""
    return native.code.function() if is_jitted(native) else by_pointer(native)


# -- a program of lazyarr's in a program of Numba's ------------------------------------------------


def held(array: np.ndarray) -> Callable:
    """Return a function that Numba compiles, which gives a flat array that lies at one place."""
    place, count, kept = array.ctypes.data, array.size, [array]
    kind = type_of(array.dtype)

    @intrinsic
    def pointer(context):
        def build(context, builder, signature, args):
            word = ir.Constant(ir.IntType(64), place)
            return builder.inttoptr(word, context.get_value_type(T.CPointer(kind)))

        return T.CPointer(kind)(), build

    @numba.njit
    def found():
        return numba.carray(pointer(), (count,))

    found.kept = kept
    return found


def flat(array: Any, dtype: Any) -> Any:
    """Return an array as a flat one of a dtype, copied where it is not laid out like that."""
    raise NotImplementedError("called in compiled code only")


@overload(flat)
def _flat(array, dtype):
    wanted = dtype.dtype
    if isinstance(array, T.Array) and array.dtype == wanted and array.layout == "C":
        return lambda array, dtype: array.reshape(-1)
    if isinstance(array, T.Array) and array.dtype == wanted:
        return lambda array, dtype: np.ascontiguousarray(array).reshape(-1)
    return lambda array, dtype: np.ascontiguousarray(array).astype(dtype).reshape(-1)
