"""C functions in expressions: a source text and a typed signature of sizes and buffers.

The signature lists the parameters of the C function in order: a bare name is a size (`int64_t` by
value), a typed name with brackets a buffer, one without brackets a number by value; outputs follow
as buffers. All memory is lazyarr's: inputs are C-contiguous and must not be written, outputs are
C-contiguous and uninitialised.
"""

import ctypes
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lazyarr.backends.c.foreign import Source
from lazyarr.errors import ArgumentError, LazyArrError, ShapeError
from lazyarr.graph import shapes
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import Native
from lazyarr.graph.ops.foreign import Parameter as Taken
from lazyarr.graph.types import TensorType
from lazyarr.namespace.foreign_arguments import Arguments
from lazyarr.namespace.foreign_rules import Declared, Ruled, Rules

_SIGNATURE = re.compile(r"\s*(?:(void|int)\s+)?(\w+)\s*\((.*)\)\s*->\s*(.*?)\s*$", re.DOTALL)
_ENTRY = re.compile(r"\s*(\w+)\s*(?::\s*(\w+)\s*(\[[^\]]*\])?)?\s*(?:,|$)")
INCLUDES = ("stdint.h", "math.h")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a C function: a size (no dtype), a number (no shape) or a buffer."""

    name: str
    dtype: str | None = None
    shape: tuple[str | int, ...] | None = None

    def declaration(self, written: bool) -> str:
        """How C declares it as an input."""
        if self.dtype is None:
            return f"int64_t {self.name}"
        kind = c_type(self.dtype)
        mark = "" if written else "const "
        return f"{kind} {self.name}" if self.shape is None else f"{mark}{kind} *{self.name}"


@dataclass(frozen=True)
class Signature:
    """The C function: its name, parameters, outputs, and whether it returns an error code."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    coded: bool
    overwrites: tuple[str, ...] = ()

    @property
    def arrays(self) -> tuple[Parameter, ...]:
        """The parameters that callers give."""
        return tuple(p for p in self.inputs if p.dtype is not None)

    @property
    def prototype(self) -> str:
        """The declaration in C."""
        outs = [f"{c_type(p.dtype)} *{p.name}" for p in self.outputs]
        ins = [p.declaration(p.name in self.overwrites) for p in self.inputs]
        listed = ", ".join([*ins, *outs])
        return f"{'int' if self.coded else 'void'} {self.name}({listed})"


def c_type(dtype: str | None) -> str:
    """Return how C writes a dtype."""
    name = as_dtype(dtype).name
    known = {"float64": "double", "float32": "float", "bool": "_Bool"}
    if name in known:
        return known[name]
    if name.startswith("complex"):
        raise ArgumentError("complex buffers have no type in C here; pass the two parts.")
    return f"{name}_t"


def parse(text: str) -> Signature:
    """Return the signature that a text describes.

    >>> parse("scale(n, k: float64, x: float64[n]) -> y: float64[n]").prototype
    'void scale(int64_t n, double k, const double *x, double *y)'
    """
    match = _SIGNATURE.match(text)
    if match is None:
        raise ArgumentError(
            f"cannot read the signature {text!r}; write `name(n, x: float64[n]) -> y: float64[n]`."
        )
    kind, name, inside, outs = match.groups()
    outs = outs[1:-1] if outs.startswith("(") and outs.endswith(")") else outs
    inputs, outputs = _parameters(inside, text), _parameters(outs, text)
    if not outputs or any(p.shape is None for p in outputs):
        raise ArgumentError(f"the outputs of {text!r} must be buffers, such as y: float64[n].")
    return Signature(name, inputs, outputs, kind == "int")


def _parameters(text: str, whole: str) -> tuple[Parameter, ...]:
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = _ENTRY.match(text, at)
        if match is None:
            raise ArgumentError(f"cannot read {text[at:]!r} in the signature {whole!r}.")
        name, dtype, shape = match.groups()
        sizes = None
        if shape is not None:
            words = [w.strip() for w in shape[1:-1].split(",") if w.strip()]
            sizes = tuple(int(w) if w.isdigit() else w for w in words)
        found.append(Parameter(name, dtype and as_dtype(dtype).name, sizes))
        at = match.end()
    return tuple(found)


@dataclass(frozen=True)
class Address:
    """A function that is compiled already: anything that has an address."""

    function: Any

    def address(self, native: Native | None = None) -> int:
        """Return the address."""
        return self.function.address


@dataclass(frozen=True)
class CCode:
    """A C function; the text with everything that it is built from is the key."""

    source: Source | Address
    signature: Signature

    def taken(self, args: tuple) -> tuple:
        """Return arguments as arrays of the signature's dtypes, where they are numbers or lists."""
        wanted = self.signature.arrays
        if len(args) != len(wanted):
            raise ArgumentError(
                f"{self.signature.name} takes {len(wanted)} arrays, got {len(args)}."
            )
        return tuple(
            np.asarray(x, p.dtype) if isinstance(x, bool | int | float | list) else x
            for x, p in zip(args, wanted, strict=True)
        )

    def out(self, types: Sequence[TensorType]) -> object:
        """Return the types of the outputs from those of the operands."""
        sizes = self._sizes([t.shape for t in types], [t.dtype.name for t in types])
        found = tuple(
            TensorType(p.dtype, tuple(_size(s, sizes) for s in p.shape or ()))
            for p in self.signature.outputs
        )
        return found[0] if len(found) == 1 else found

    def _sizes(self, given: Sequence[tuple], dtypes: Sequence[str]) -> dict[str, Any]:
        """Return the sizes by name; raise where operands do not fit the signature."""
        wanted, name = self.signature.arrays, self.signature.name
        sizes: dict[str, Any] = {}
        for p, shape, dtype in zip(wanted, given, dtypes, strict=True):
            if dtype != p.dtype or len(shape) != len(p.shape or ()):
                raise ArgumentError(
                    f"{name}: {p.name} is {p.dtype}[{len(p.shape or ())} axes], "
                    f"got {dtype}[{len(shape)} axes]; cast or reshape it."
                )
            for word, n in zip(p.shape or (), shape, strict=True):
                known = word if isinstance(word, int) else sizes.setdefault(word, n)
                if isinstance(known, int) and isinstance(n, int) and known != n:
                    raise ShapeError(f"{name}: {p.name} has size {n} where {word} is {known}.")
        return sizes

    def native(self, arguments: Arguments, node: Variable, callee: Ruled) -> Native:
        """Return how compiled programs call the function."""
        types, found = [x.type for x in node.inputs], []
        sizes = self._sizes([t.shape for t in types], [t.dtype.name for t in types])
        numbers = iter(range(len(types)))
        for p in self.signature.inputs:
            if p.dtype is None:
                found.append(Taken("size", _size(p.name, sizes)))
            else:
                kind = "value" if p.shape is None else "input"
                found.append(Taken(kind, next(numbers), p.dtype))
        found += [Taken("output", i, p.dtype) for i, p in enumerate(self.signature.outputs)]
        rules, name = callee.rules, self.signature.name
        return Native(
            name, tuple(found), self.source, self.signature.coded, rules.overwrites, rules.aliases
        )

    def execute(self, arguments: Arguments, arrays: Sequence, callee: Ruled) -> list:
        """Call the function."""
        found, call = self.signature, _loaded(self)
        given = [np.ascontiguousarray(a) for a in arrays]
        sizes = self._sizes([np.shape(a) for a in arrays], [a.dtype.name for a in given])
        outs = [
            np.empty(tuple(shapes.evaluate(_size(s, sizes), {}) for s in p.shape or ()), p.dtype)
            for p in found.outputs
        ]
        rest, values = iter(given), []
        for p in found.inputs:
            if p.dtype is None:
                values.append(_size(p.name, sizes))
            else:
                array = next(rest)
                values.append(array.item() if p.shape is None else array.ctypes.data)
        code = call(*values, *(a.ctypes.data for a in outs))
        if found.coded and code:
            raise LazyArrError(f"the C function {found.name} returned the code {code}.")
        return outs


def _size(word: object, sizes: dict) -> Any:
    if isinstance(word, int):
        return word
    if word not in sizes:
        raise ArgumentError(f"no input of the C function tells the size {word}.")
    return sizes[word]


@functools.lru_cache(256)
def _loaded(code: CCode) -> Callable:
    """Return the compiled function, typed."""
    scalars = {
        p.name: np.ctypeslib.as_ctypes_type(np.dtype(p.dtype))
        for p in code.signature.inputs
        if p.dtype is not None and p.shape is None
    }
    types = [
        ctypes.c_int64 if p.dtype is None else scalars.get(p.name, ctypes.c_void_p)
        for p in code.signature.inputs
    ] + [ctypes.c_void_p] * len(code.signature.outputs)
    result = ctypes.c_int if code.signature.coded else None
    return ctypes.CFUNCTYPE(result, *types)(code.source.address())


def wrap_c(
    source: str,
    signature: str,
    *,
    headers: Sequence[str] = (),
    libraries: Sequence[str] = (),
    flags: Sequence[str] = (),
    vjp: Callable | None = None,
    jvp: Callable | None = None,
    name: str | None = None,
    overwrites: Sequence[str] = (),
    aliases: Mapping[str, Sequence[str]] | None = None,
    dims: object = None,
):
    """Return a C function as a function of lazy arrays; part of the program on C.

    `source` defines it, perhaps beside others; <stdint.h>, <math.h> and `headers` are included
    before. `signature` is `[int] name(n, x: float64[n], k: int64) -> y: float64[n]`: with `int` the
    function returns an error code, 0 for none. `libraries` are linked by name, `flags` go to the
    compiler. The derivative is given by rules, as for `wrap_numpy`. Needs a C compiler when called.
    Buffers that `overwrites` names are `double *x`, not `const double *x`: they may be written, and
    are copies or temporaries that nobody else reads. `aliases={"y": ["x"]}`: y may be given the
    memory of x; several inputs are tried in order.

    >>> import lazyarr as xp
    >>> twice = wrap_c(
    ...     "void twice(int64_t n, const double *x, double *y)"
    ...     " { for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i]; }",
    ...     "twice(n, x: float64[n]) -> y: float64[n]",
    ...     vjp=lambda g, y, x: (2 * g,),
    ... )
    >>> twice(xp.asarray([1.0, 2.0])).compute()                          # doctest: +SKIP
    array([2., 4.])
    """
    found = replace(parse(signature), overwrites=tuple(overwrites))
    quoted = (h if h.startswith(("<", '"')) else f"<{h}>" for h in (*INCLUDES, *headers))
    included = tuple(quoted)
    options = tuple(flags)
    if libraries:
        options += ("-Wl,--no-as-needed", *(f"-l{n}" for n in libraries))
    text = Source(found.name, found.prototype, source, included, options)
    return declared_c(CCode(text, found), Rules(vjp, jvp), aliases, name, dims)


def declared_c(
    code: CCode,
    rules: Rules,
    aliases: Mapping[str, Sequence[str]] | None,
    name: str | None,
    dims: object = None,
) -> Declared:
    """Return a C function as one that records."""
    found = code.signature
    arrays = {p.name: i for i, p in enumerate(found.arrays)}
    outputs = {p.name: i for i, p in enumerate(found.outputs)}
    try:
        shared = tuple(
            (outputs[k], tuple(arrays[x] for x in names)) for k, names in (aliases or {}).items()
        )
        written = tuple(arrays[x] for x in found.overwrites)
    except KeyError as error:
        raise ArgumentError(f"{found.name} has no buffer {error} to overwrite or share.") from None
    rules = replace(rules, overwrites=written, aliases=shared)
    return Declared(code, lambda _, given: code.out(given), rules, name or found.name, (), dims)
