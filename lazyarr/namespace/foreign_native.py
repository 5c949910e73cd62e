"""`as_jax(native=True)`: the program compiled for C, called by XLA through its foreign interface.

For each structure a handler in C is built beside the program and registered with JAX once. XLA
calls it with its own buffers, without Python. Value and gradient of one number are one call; other
outputs have a second program that pulls cotangents back. Constants of the program are operands, so
that nothing but code is registered. In JAX's 32-bit mode the handler widens and narrows arrays.

    handler(frame) -> sizes from the buffers -> kernel(buf, dim, arena, fn) -> error or none
"""

import ctypes
import importlib
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazyarr.autodiff.reverse import pullback
from lazyarr.backends import sizes as size_rules
from lazyarr.backends.c import compiler
from lazyarr.backends.c.backend import CExecutable
from lazyarr.backends.c.foreign import pointers_of
from lazyarr.backends.c.print import to_c
from lazyarr.backends.cache import cache_key
from lazyarr.backends.driver import Program, Variant
from lazyarr.backends.loop.interface import interface_of
from lazyarr.errors import GraphError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import lone_atom
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.namespace.foreign_c import c_type
from lazyarr.namespace.foreign_export import converter

_HANDLER = """
/* ---- the handler: {version} ---- */
#include <stdlib.h>
#include <string.h>
#include "xla/ffi/api/c_api.h"

void *externals[{externals}];

static const XLA_FFI_DataType wide[] = {{{wide}}};
static const size_t size[] = {{{sizes}}};
static const char *const messages[] = {{{messages}}};

static int64_t count(const XLA_FFI_Buffer *b) {{
  int64_t n = 1;
  for (int64_t d = 0; d < b->rank; d++) n *= b->dims[d];
  return n;
}}
static XLA_FFI_Error *fail(const XLA_FFI_CallFrame *frame, const char *message) {{
  XLA_FFI_Error_Create_Args args = {{0}};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message;
  args.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return frame->api->XLA_FFI_Error_Create(&args);
}}
/* between a 64-bit array of the program and a 32-bit one of JAX's */
#define CONVERT(A, B, x, y, n) \\
  for (int64_t i = 0; i < n; i++) ((A *)(x))[i] = (A)((const B *)(y))[i]
static void convert(void *to, const void *from, int64_t n, XLA_FFI_DataType type, int back) {{
  if (type == XLA_FFI_DataType_F64) {{
    if (back) CONVERT(float, double, to, from, n); else CONVERT(double, float, to, from, n);
  }} else if (type == XLA_FFI_DataType_S64) {{
    if (back) CONVERT(int32_t, int64_t, to, from, n); else CONVERT(int64_t, int32_t, to, from, n);
  }} else {{
    if (back) CONVERT(uint32_t, uint64_t, to, from, n);
    else CONVERT(uint64_t, uint32_t, to, from, n);
  }}
}}

XLA_FFI_Error *{entry}(XLA_FFI_CallFrame *frame) {{
  enum {{ INS = {ins}, OUTS = {outs}, ALL = INS + OUTS }};
  if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata) {{
    XLA_FFI_Metadata *found = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
    found->api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
    found->api_version.major_version = XLA_FFI_API_MAJOR;
    found->api_version.minor_version = XLA_FFI_API_MINOR;
    return 0;
  }}
  if (frame->args.size != INS || frame->rets.size != OUTS)
    return fail(frame, "the program takes other arrays");
  XLA_FFI_Buffer *given[ALL + 1];
  for (int k = 0; k < INS; k++) given[k] = frame->args.args[k];
  for (int k = 0; k < OUTS; k++) given[INS + k] = frame->rets.rets[k];
  const int64_t dim[] = {{{dims}}};
  size_t extra = 0;
  int apart[ALL + 1];
  for (int k = 0; k < ALL; k++) {{
    apart[k] = given[k]->dtype != wide[k] || (k >= INS && (uintptr_t)given[k]->data % 64);
    if (apart[k]) extra += (count(given[k]) * 8 + 127) / 64 * 64;
  }}
  size_t need = (kernel_arena(dim) + 127) / 64 * 64;
  char here[4096] __attribute__((aligned(64)));
  char *block = need + extra <= sizeof here ? here : aligned_alloc(64, need + extra);
  if (!block) return fail(frame, "no memory");
  char *place = block + need;
  void *buf[ALL + 1];
  for (int k = 0; k < ALL; k++) {{
    buf[k] = given[k]->data;
    if (!apart[k]) continue;
    buf[k] = place;
    place += (count(given[k]) * 8 + 127) / 64 * 64;
    if (k < INS) convert(buf[k], given[k]->data, count(given[k]), wide[k], 0);
  }}
#ifdef __SSE2__ /* XLA flushes subnormal numbers; this program does not */
  unsigned mode = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(mode & ~0x8040u);
#endif
  int64_t code = kernel(buf, dim, block, externals);
#ifdef __SSE2__
  __builtin_ia32_ldmxcsr(mode);
#endif
  for (int k = INS; k < ALL; k++) {{
    if (!apart[k]) continue;
    if (given[k]->dtype != wide[k]) convert(given[k]->data, buf[k], count(given[k]), wide[k], 1);
    else memcpy(given[k]->data, buf[k], count(given[k]) * size[k]);
  }}
  if (block != here) free(block);
  if (code)
    return fail(frame, code > 0 && code < {codes} ? messages[code] : "the program failed");
  return 0;
}}
"""
_TYPES = {
    "bool": "PRED", "int8": "S8", "int16": "S16", "int32": "S32", "int64": "S64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float32": "F32", "float64": "F64",
}  # fmt: skip
_registered: dict[str, object] = {}  # target -> the library that must stay
_lock = threading.Lock()


class Target:
    """One variant of a program, registered with JAX."""

    def __init__(self, variant: Variant):
        if not isinstance(variant.direct, CExecutable):
            raise GraphError("the function is not C alone; as_jax() without native may still work.")
        if variant.direct.callbacks:
            raise GraphError("the function is not C alone: its loops call Python.")
        plan = variant.direct.plan
        self.outputs = interface_of(plan).outputs
        self.constants = variant.constants
        self.plan = plan
        jax = importlib.import_module("jax")
        library = importlib.import_module("jaxlib").__version__
        source = to_c(plan, vector=compiler.find_compiler().vector)
        self.table = pointers_of(plan.externals, source.pointers)
        text = source.text + self._handler(f"jaxlib {library}", "handler")
        flags = (f"-I{jax.ffi.include_dir()}", *source.flags)
        self.name = f"lazyarr_{cache_key('ffi', text, *flags)}"
        with _lock:
            if self.name not in _registered:
                loaded = compiler.load(text, flags)
                held = (ctypes.c_void_p * len(self.table)).in_dll(loaded, "externals")
                held[:] = list(self.table)
                jax.ffi.register_ffi_target(
                    self.name, jax.ffi.pycapsule(loaded.handler), platform="cpu"
                )
                _registered[self.name] = loaded, source.pointers

    def _handler(self, version: str, entry: str) -> str:
        plan = self.plan
        types = [*plan.inputs, *self.outputs]
        last = max(plan.codes, default=0) + 1
        messages = [plan.codes[k][1] if k in plan.codes else "" for k in range(last)]
        return _HANDLER.format(
            version=version,
            entry=entry,
            externals=len(self.table),
            wide=", ".join(f"XLA_FFI_DataType_{_TYPES[t.dtype.name]}" for t in types),
            sizes=", ".join(f"sizeof({c_type(t.dtype.name)})" for t in types),
            messages=", ".join(_quoted(m) for m in messages),
            ins=len(plan.inputs),
            outs=len(self.outputs),
            dims=", ".join(_place(a, plan.inputs) for a in plan.atoms) or "0",
            codes=last,
        )

    def __call__(self, values: Sequence, env: dict) -> list:
        """Call the program in JAX; env holds the sizes of this call."""
        jax = importlib.import_module("jax")
        results = [
            jax.ShapeDtypeStruct(
                tuple(shapes.evaluate(s, env) for s in t.shape),
                jax.dtypes.canonicalize_dtype(t.dtype),
            )
            for t in self.outputs
        ]
        call = jax.ffi.ffi_call(self.name, results, vmap_method="sequential")
        return list(call(*values, *map(jax.numpy.asarray, self.constants)))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _place(atom: shapes.Atom, inputs: Sequence[TensorType]) -> str:
    """Return where the handler reads an unknown size."""
    for k, t in enumerate(inputs):
        for d, size in enumerate(t.shape):
            if lone_atom(size) is atom:
                return f"given[{k}]->dims[{d}]"
    raise GraphError(f"no input has the size {atom.name}.")


class Native:
    """A graph as a JAX function that calls C: a target for each pattern of its sizes."""

    def __init__(self, graph: Graph):
        self.program = Program(graph, "c", stored=False)
        self.targets: dict[tuple, Target] = {}

    def __call__(self, values: Sequence) -> list:
        """Record a call on JAX arrays, whose sizes are known."""
        program, pattern, env = self.program, ((), ()), {}
        if program.atoms:
            env = program.bind(values)
            for check in program.named_sizes:
                check.verify(env)
            pattern = size_rules.pattern_of(program.atoms, program.tests, env)
        variant = program.variant(pattern)
        for equation in variant.sizes.equations:
            equation.verify(env)
        target = self.targets.get(pattern)
        if target is None:
            target = self.targets[pattern] = Target(variant)
        return target(values, env)


def as_native(graph: Graph) -> Callable[[Sequence], list]:
    """Return a graph as a JAX function that calls its C program; reverse mode, first order."""
    jax = importlib.import_module("jax")
    value, inputs, outputs = Native(graph), graph.inputs, graph.outputs
    floats = [i for i, v in enumerate(inputs) if v.type.dtype.kind == "f"]
    seeded = [i for i, v in enumerate(outputs) if v.type.dtype.kind == "f"]
    one = len(seeded) == 1 and outputs[seeded[0]].type.shape == ()
    made: list[Native] = []  # the program of the derivative, when first needed

    def derivative() -> Native:
        if not made:
            made.append(_derivative(graph, floats, seeded, one))
        return made[0]

    @jax.custom_vjp
    def f(*values):
        return tuple(value(values))

    def forward(*values):
        if not one:
            return f(*values), values
        found = derivative()(values)
        return tuple(found[: len(outputs)]), (values, found[len(outputs) :])

    def backward(kept, cotangents):
        if one:
            values, slopes = kept
            found = [_absorb(jax.numpy, cotangents[seeded[0]], s) for s in slopes]
        else:
            values = kept
            found = derivative()([*values, *(cotangents[i] for i in seeded)])
        rest = iter(found)
        return tuple(
            next(rest) if i in floats else np.zeros(np.shape(x), jax.dtypes.float0)
            for i, x in enumerate(values)
        )

    f.defvjp(forward, backward)
    convert = converter("jax")
    types = [v.type.dtype for v in inputs]

    def call(values: Sequence) -> list:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Explicitly requested dtype")  # in 32-bit mode
            return list(f(*map(convert, values, types)))

    return call


def _derivative(graph: Graph, floats: list[int], seeded: list[int], one: bool) -> Native:
    """Return values and gradient of the one number, or the pullback of several outputs."""
    inputs, outputs = graph.inputs, graph.outputs
    wrt = [inputs[i] for i in floats]
    if one:
        seeds = [op.ones((), dtype=outputs[seeded[0]].type.dtype)]
    else:
        seeds = [symbol(outputs[i].type) for i in seeded]
    found = pullback([outputs[i] for i in seeded], wrt, seeds)
    whole: list[Variable] = [
        op.zeros(x.shape, dtype=x.dtype) if g is None else g
        for x, g in zip(wrt, found, strict=True)
    ]
    return Native(Graph(inputs, [*outputs, *whole]) if one else Graph([*inputs, *seeds], whole))


def _absorb(jnp: Any, g: Any, slope: Any) -> Any:
    """Cotangent times slope, 0 where either is."""
    return jnp.where((g == 0) | (slope == 0), 0, g * slope)
