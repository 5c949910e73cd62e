"""Compiled functions handed to others: as a JAX or Torch function, as C text, as a C function.

`as_namespace` runs the text of the array family on arrays of that namespace, inside whatever the
user does with it; there is no host there, so checks are dropped: an index out of bounds is clamped.
"""

import ctypes
import importlib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.c import compiler
from lazyarr.backends.c.backend import CExecutable
from lazyarr.backends.c.print import to_c
from lazyarr.backends.driver import Program
from lazyarr.backends.loop.interface import interface_of
from lazyarr.errors import ArgumentError, GraphError
from lazyarr.graph.node import symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.namespace.foreign_c import c_type

# -- JAX and Torch ---------------------------------------------------------------------------------


def as_namespace(graph: Graph, name: str) -> Callable[[Sequence], list]:
    """Return a function from arrays of a namespace to the outputs of a positional graph.

    It can be traced, differentiated and batched there; sizes are those of the arrays it is given.
    """
    again = Program(graph, name)
    convert = converter(name)
    dtypes = [v.type.dtype for v in graph.inputs]

    def call(values: Sequence) -> list:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Explicitly requested dtype")  # in 32-bit mode
            arrays = [convert(x, d) for x, d in zip(values, dtypes, strict=True)]
            variant = again.chosen(arrays)
            if variant.direct is None:
                held = ", ".join(again.fallbacks())
                raise GraphError(
                    f"{name} has no way to run {held}; so it is no {name} function. A size that "
                    "depends on data needs a bound: `size=` of nonzero, unique_* and repeat."
                )
            return variant.direct.within(arrays, convert)  # type: ignore[attr-defined]

    return call


def with_rules(graph: Graph) -> Callable[[Sequence], list]:
    """Return a graph as a JAX function with lazyarr's derivatives, in reverse mode of any order."""
    jax = importlib.import_module("jax")
    run, convert = as_namespace(graph, "jax"), converter("jax")
    inputs, outputs = graph.inputs, graph.outputs
    floats = [i for i, v in enumerate(inputs) if v.type.dtype.kind in "fc"]
    seeded = [i for i, v in enumerate(outputs) if v.type.dtype.kind in "fc"]
    made: list[Callable] = []  # the pullback, when first needed

    def pulled() -> Callable:
        if not made:
            seeds = [symbol(outputs[i].type) for i in seeded]
            wrt = [inputs[i] for i in floats]
            found = pullback([outputs[i] for i in seeded], wrt, seeds)
            whole = [
                op.zeros(x.shape, dtype=x.dtype) if g is None else g
                for x, g in zip(wrt, found, strict=True)
            ]
            made.append(with_rules(Graph([*inputs, *seeds], whole)))
        return made[0]

    @jax.custom_vjp
    def f(*values):
        return tuple(run(values))

    def backward(values, cotangents):
        rest = iter(pulled()([*values, *(cotangents[i] for i in seeded)]))
        return tuple(
            next(rest) if i in floats else np.zeros(np.shape(x), jax.dtypes.float0)
            for i, x in enumerate(values)
        )

    f.defvjp(lambda *values: (f(*values), values), backward)

    def call(values: Sequence) -> list:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Explicitly requested dtype")  # in 32-bit mode
            return list(f(*(convert(x, v.type.dtype) for x, v in zip(values, inputs, strict=True))))

    return call


def converter(name: str) -> Callable:
    """Return `(value, dtype) -> array` of a namespace; JAX's mode says how wide arrays are."""
    if name == "jax":
        jax = importlib.import_module("jax")

        def enter(value, dtype):
            return jax.numpy.asarray(value).astype(jax.dtypes.canonicalize_dtype(dtype))

        return enter
    torch = importlib.import_module("torch")

    def as_tensor(value, dtype):
        kind = torch.from_numpy(np.zeros((), dtype)).dtype
        if isinstance(value, torch.Tensor):
            return value.to(kind)
        return torch.tensor(np.asarray(value), dtype=kind)

    return as_tensor


# -- C ---------------------------------------------------------------------------------------------

_WRAPPER = """
/* ---- the function: {name} ---- */
extern void *malloc(__SIZE_TYPE__);
extern void free(void *);
{constants}
{prototype} {{
  const int64_t dim[] = {{{dims}}};
  void *buf[] = {{{buffers}}};
  void *fn[] = {{{externals}}};
  char *block = malloc((__SIZE_TYPE__)kernel_arena(dim) + 64);
  if (!block) return -2;
  char *arena = block + (64 - (__UINTPTR_TYPE__)block % 64) % 64;
  int64_t code = kernel(buf, dim, arena, fn);
  free(block);
  return code;
}}
"""
_MAIN = """/* {name}: reads the inputs as numbers from standard input, one after the other, in C
order, and prints the outputs. Usage: {name} {usage} < numbers */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "{name}.h"

int main(int argc, char **argv) {{
  if (argc != {argc}) {{
    fprintf(stderr, "usage: %s {usage} < numbers\\n", argv[0]);
    return 2;
  }}
{sizes}
{reads}
{allocations}
  int64_t code = {name}({arguments});
  if (code) {{
    fprintf(stderr, "a check failed: code %" PRId64 "\\n", code);
    return 1;
  }}
{prints}
  return 0;
}}
"""


class CText:
    """A program as C: a source, a header and a main, and the names of what it takes."""

    def __init__(self, program: Program, name: str, labels: Sequence[str], vector: bool = False):
        if not name.isidentifier():
            raise ArgumentError(f"{name!r} is no name for a C function.")
        variant = program.variant(((), ()))
        if not isinstance(variant.direct, CExecutable):
            held = ", ".join(program.fallbacks()) or "a backend other than C"
            raise GraphError(f"the function is not C alone: it needs {held}.")
        plan = variant.direct.plan
        face = interface_of(plan)
        self.name, self.atoms = name, face.atoms
        self.inputs = plan.inputs[: len(plan.inputs) - len(variant.constants)]
        self.outputs = face.outputs
        taken: set[str] = set()
        self.dims = {a: _fresh(a.name, taken) for a in face.atoms}
        self.in_names = [_fresh(s, taken) for s in labels]
        self.out_names = [_fresh(f"out{i}", taken) for i in range(len(self.outputs))]
        known = compiler.find_compiler().vector if vector else frozenset()
        source = to_c(plan, vector=known)
        if source.pointers:
            held = ", ".join(n.name for n in source.pointers)
            raise GraphError(f"the function is not C alone: it calls {held} by a pointer.")
        self.flags = source.flags
        self.source = source.text + self._wrapper(variant.constants, plan.externals)

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        ins = [f"const {c_type(t.dtype.name)} *{n}" for t, n in self._pairs(self.inputs)]
        outs = [f"{c_type(t.dtype.name)} *{n}" for t, n in self._pairs(self.outputs)]
        sizes = [f"int64_t {n}" for n in self.dims.values()]
        return f"int64_t {self.name}({', '.join([*sizes, *ins, *outs])})"

    def _pairs(self, types: Sequence[TensorType]) -> list:
        names = self.in_names if types is self.inputs else self.out_names
        return list(zip(types, names, strict=True))

    def _wrapper(self, constants: Sequence[np.ndarray], externals: Sequence[str]) -> str:
        held = [f"held{i}" for i in range(len(constants))]
        buffers = [*self.in_names, *held, *self.out_names]
        return _WRAPPER.format(
            name=self.name,
            constants="\n".join(map(_constant, held, constants)),
            prototype=self.prototype,
            dims=", ".join(self.dims.values()) or "0",
            buffers=", ".join(f"(void *){n}" for n in buffers),
            externals=", ".join("0" for _ in externals) or "0",
        )

    @property
    def header(self) -> str:
        """The header: what each parameter is."""
        rows = [f"{n}: {t}" for t, n in [*self._pairs(self.inputs), *self._pairs(self.outputs)]]
        told = "\n   ".join(rows)
        sizes = f"\n   Sizes: {', '.join(self.dims.values())}, none of them 1." if self.dims else ""
        flags = f"\n   Build with {' '.join(self.flags)}" if self.flags else ""
        return (
            f"/* {self.name}: returns 0, or the code of the check that failed. Arrays are in C"
            f"\n   order; inputs are not written.\n   {told}{sizes}{flags} */\n"
            f"#ifndef LAZYARR_{self.name.upper()}\n#define LAZYARR_{self.name.upper()}\n"
            f"#include <stdint.h>\n{self.prototype};\n#endif\n"
        )

    @property
    def main(self) -> str:
        """A program that reads inputs and prints outputs."""
        sizes = list(self.dims.values())
        given = [*sizes, *self.in_names, *self.out_names]
        reads, allocations, prints = [], [], []
        for t, n in self._pairs(self.inputs):
            kind = c_type(t.dtype.name)
            reads.append(
                f"  {kind} *{n} = malloc(sizeof *{n} * ({self._count(t)}) + 1);\n"
                f"  for (int64_t i = 0; i < {self._count(t)}; i++) {{\n    double v;\n"
                f'    if (scanf("%lf", &v) != 1) return 3;\n    {n}[i] = ({kind})v;\n  }}'
            )
        for t, n in self._pairs(self.outputs):
            kind = c_type(t.dtype.name)
            allocations.append(f"  {kind} *{n} = aligned_alloc(64, (sizeof *{n} * "
                               f"({self._count(t)}) + 127) / 64 * 64);")  # fmt: skip
            prints.append(
                f"  for (int64_t i = 0; i < {self._count(t)}; i++)\n"
                f'    printf("%.17g\\n", (double){n}[i]);'
            )
        return _MAIN.format(
            name=self.name,
            usage=" ".join(sizes),
            argc=len(sizes) + 1,
            sizes="\n".join(
                f"  int64_t {n} = atoll(argv[{i}]);" for i, n in enumerate(sizes, start=1)
            ),
            reads="\n".join(reads),
            allocations="\n".join(allocations),
            prints="\n".join(prints),
            arguments=", ".join(given),
        )

    def _count(self, t: TensorType) -> str:
        return " * ".join(self._size(s) for s in t.shape) or "1"

    def _size(self, size: object) -> str:
        if not isinstance(size, Size):
            return str(size)
        terms = []
        for mono, k in size.terms:
            factors = [self._atom(a) for a in mono]
            terms.append("*".join([str(k), *factors] if k != 1 or not factors else factors))
        return f"({' + '.join(terms)})"

    def _atom(self, atom: Atom) -> str:
        if atom in self.dims:
            return self.dims[atom]
        args = [self._size(a) for a in atom.args if a is not None]
        if atom.kind == "floordiv":
            return f"({args[0]} / {args[1]})"
        if atom.kind == "max":
            return f"({args[0]} > {args[1]} ? {args[0]} : {args[1]})"
        raise GraphError(f"the size {atom} of an output cannot be written in main.c.")


def _fresh(label: str, taken: set[str]) -> str:
    """Return a C name for a label that nothing else has."""
    name = "".join(c if c.isalnum() else "_" for c in label) or "x"
    name = f"v_{name}" if name[0].isdigit() or name in _RESERVED else name
    while name in taken:
        name += "_"
    taken.add(name)
    return name


_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while main argc argv code buf dim fn arena block i v".split()
)


def _constant(name: str, array: np.ndarray) -> str:
    """Return an array as a C definition, floats by their exact hexadecimal digits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind == "f":
        texts = [_float(float(x)) for x in flat]
    else:
        texts = [str(int(x)) for x in flat]
    kind = c_type(array.dtype.name)
    return f"static const {kind} {name}[] = {{{', '.join(texts) or '0'}}};"


def _float(x: float) -> str:
    if np.isfinite(x):
        return x.hex()
    return '__builtin_nan("")' if np.isnan(x) else f"{'-' if x < 0 else ''}__builtin_inf()"


def export_c(
    program: Program, folder: str | Path, name: str, labels: Sequence[str]
) -> dict[str, Path]:
    """Write NAME.c, NAME.h and main.c into a folder and return their paths."""
    text = CText(Program(program.graph, "c", stored=False), name, labels)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = {f"{name}.c": text.source, f"{name}.h": text.header, "main.c": text.main}
    paths = {}
    for file, content in written.items():
        paths[file] = place / file
        paths[file].write_text(content, encoding="utf-8")
    return paths


class CFunction:
    """A C function in memory: `address`, `prototype`, and `call`, a typed ctypes function."""

    def __init__(self, program: Program, name: str, labels: Sequence[str]):
        text = CText(Program(program.graph, "c", stored=False), name, labels, vector=True)
        self._library = compiler.load(text.source, text.flags)
        self.prototype, self.name = text.prototype, name
        self.sizes = tuple(text.dims.values())
        self.call: Any = getattr(self._library, name)
        self.call.restype = ctypes.c_int64
        pointers = len(text.inputs) + len(text.outputs)
        self.call.argtypes = [ctypes.c_int64] * len(self.sizes) + [ctypes.c_void_p] * pointers
        self.address = ctypes.cast(self.call, ctypes.c_void_p).value

    def __repr__(self) -> str:
        return f"<C function {self.prototype} at {self.address:#x}>"
