"""Loop IR -> one C file without headers.

The expressions are a table from primitives to C; the structure is one small function per IR node.
The file declares the math functions that it uses itself, with vector variants for those in
`vector`.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from lazyarr.backends.c import complexfns, mathfns, matrixfns, orderfns, stages, vecmath  # noqa: F401
from lazyarr.backends.c.clones import called
from lazyarr.backends.c.foreign import ForeignCalls
from lazyarr.backends.c.interleave import interleaves
from lazyarr.backends.c.logarithms import WITHOUT
from lazyarr.backends.loop import ir
from lazyarr.backends.loop.donate import copy_of
from lazyarr.backends.loop.externals import externals_of
from lazyarr.backends.loop.notation import Buffer
from lazyarr.backends.loop.plan import Plan
from lazyarr.backends.loop.threads import LEAST_WORK
from lazyarr.graph import shapes
from lazyarr.graph.ops.foreign import Native
from lazyarr.graph.scalar import MONOIDS, Scalar
from lazyarr.graph.shapes import Size

C_TYPES = {
    "bool": "_Bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float32": "float", "float64": "double",
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip
PRELUDE = """typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef __INT64_TYPE__ int64_t; typedef __UINT64_TYPE__ uint64_t;"""

# Functions of libm by primitive (a float32 takes the name with f).
LIBM = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2",
    "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos",
    "atan": "atan", "atan2": "atan2", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "hypot": "hypot", "erf": "erf",
    "erfc": "erfc", "lgamma": "lgamma", "nextafter": "nextafter", "pow": "pow",
}  # fmt: skip
BINARY = {"atan2", "hypot", "nextafter", "pow", "fmod"}
BUILTIN = {
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint",
    "copysign": "copysign",
}  # fmt: skip
SUPPORT = {  # primitive -> template by kind of dtype
    "floordiv": {"f": "floordiv_float", "i": "floordiv_int"},
    "mod": {"f": "mod_float", "i": "mod_int"},
    "pow": {"i": "pow_int"},
    "shl": {"i": "shl_int"},
    "shr": {"i": "shr_int"},
    "trigamma": {"f": "trigamma_float"},
    "absorb": {"f": "absorb_float"},
}
INFIX = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "and": "&", "or": "|", "xor": "^"}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
REDUCTIONS = {
    "add": "+", "mul": "*", "max": "max", "min": "min", "rawmax": "max", "rawmin": "min",
    "and": "&", "or": "|",
}  # fmt: skip


@dataclass(frozen=True)
class CSource:
    """A C file: its text, the names of its two functions, and the libm functions it calls."""

    text: str
    entry: str
    arena: str
    symbols: tuple[str, ...]
    flags: tuple[str, ...] = ()  # that functions of others in the file need
    pointers: tuple[Native, ...] = ()  # called through fn, after the plan's externals


def to_c(
    plan: Plan,
    vector: Collection[str] = frozenset(),
    name: str = "kernel",
    *,
    precise: bool = False,
    versions: bool = False,
) -> CSource:
    """Return the C file of a plan; `vector` are the libm functions that have vector variants.

    `precise` calls libm for everything. `versions`: the compiler makes vector versions of
    functions, so that those used often can be called.
    """
    missing = {p: own for p, own in WITHOUT.items() if LIBM[p] not in vector}
    printer = Printer(plan, own={} if precise else {**vecmath.VECTOR, **missing})
    bodies = [printer.function(f) for f in plan.functions]
    entry = [printer.arena(f"{name}_arena"), printer.entry(name)]
    declared = sorted(printer.libm)
    support = called(printer.support, bodies) if versions else printer.support
    text = "\n".join(
        [
            PRELUDE,
            *(prototype(f, vector) for f in declared),
            *support.values(),
            *(printer.baked(b) for b in plan.buffers() if b.kind == "const"),
            *printer.foreign.prototypes(),
            *bodies,
            *entry,
            *printer.foreign.sources(),
            "",
        ]
    )
    foreign = printer.foreign
    return CSource(
        text, name, f"{name}_arena", tuple(declared), foreign.flags, tuple(foreign.pointers)
    )


def prototype(function: str, vector: Collection[str]) -> str:
    """Return the declaration of a libm function, with vector variants where it has them."""
    single = function.endswith("f") and function not in ("erf",)
    base = function[:-1] if single else function
    c = "float" if single else "double"
    if base in complexfns.NAMES:
        c += " _Complex"
    mark = 'simd("notinbranch"), const' if function in vector else "const"
    args = f"{c}, {c}" if base in (*BINARY, "cpow") else c
    return f"__attribute__(({mark})) {c} {function}({args});"


def c_type(dtype: np.dtype) -> str:
    """Return the C type of a dtype."""
    return C_TYPES[dtype.name]


def unsigned(dtype: np.dtype) -> str:
    """Return the unsigned type in which an integer dtype wraps."""
    return "uint64_t" if dtype.itemsize == 8 else "uint32_t"


def part(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a part of complex numbers; any other dtype itself."""
    return np.dtype(f"float{4 * dtype.itemsize}") if dtype.kind == "c" else dtype


def literal(value: object, dtype: np.dtype) -> str:
    """Return a constant, exactly."""
    if dtype.kind == "c":
        parts = (literal(x, part(dtype)) for x in (complex(value).real, complex(value).imag))
        return f"__builtin_complex({', '.join(parts)})"
    if dtype.kind == "f":
        end = "f" if dtype.itemsize == 4 else ""
        value = float(value)
        if math.isnan(value):
            return f'__builtin_nan{end}("")'
        if math.isinf(value):
            text = f"__builtin_inf{end}()"
        else:
            text = f"{abs(value)!r}{end}" if dtype.itemsize == 8 else f"{abs(value).hex()}{end}"
        return f"(-{text})" if math.copysign(1, value) < 0 else text
    if dtype.kind == "b":
        return str(int(value))
    value = int(value)
    if dtype.kind == "u":
        return f"{value}u" if value < 2**32 else f"{value}ull"
    if value == -(2**63):
        return "(-9223372036854775807ll - 1)"
    text = str(value) if abs(value) < 2**31 else f"{value}ll"
    return f"({text})" if value < 0 else text


def atom(a: Scalar) -> str:
    """Return a local's name or a constant."""
    return a.args[0].name if a.prim == "var" else literal(a.args[0], a.dtype)


class Printer:
    """Prints the functions of one plan and collects what they need."""

    def __init__(self, plan: Plan, own: Mapping[str, str]):
        self.plan, self.own = plan, {**own, **vecmath.ALWAYS}
        self.simd = False  # inside a simd loop
        self.dims = {a: k for k, a in enumerate(plan.atoms)}
        self.foreign = ForeignCalls(plan.natives, len(plan.externals))
        self.libm: set[str] = set()
        self.support: dict[str, str] = {}

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, e: Scalar) -> str:
        """Return one primitive applied to atoms as C."""
        if e.prim == "dim":
            return f"dim[{self.dims[e.args[0]]}]"
        return self.apply(e.prim, [atom(a) for a in e.args], e.args[-1].dtype, e.dtype)

    def apply(self, prim: str, args: list[str], dtype: np.dtype, out: np.dtype) -> str:
        """Return a primitive on operands of a dtype."""
        a, b = args[0], args[-1]
        if dtype.kind == "c" and prim not in complexfns.OPERATORS:
            return self._complex(prim, args, dtype)
        if prim in INFIX:
            text = f"{a} {INFIX[prim]} {b}"
            return f"({c_type(out)})({text})" if prim in ("and", "or", "xor") else text
        if prim in ARITHMETIC:
            return self._arithmetic(prim, a, b, dtype)
        if prim in STRUCTURE:
            return STRUCTURE[prim](args, dtype, out)
        if prim in ir.INDEX_PRIMS:
            self.require(prim, None)
            return f"{prim}({', '.join(args)})"
        kind = "f" if dtype.kind == "f" else "i"
        if kind == "i" and prim in ("floor", "ceil", "trunc", "round"):
            return a
        if kind == "f" and prim in (self.own if self.simd else vecmath.ALWAYS):
            function = f"{self.own[prim]}_{dtype.name}"
            self.require(function, None)
            return f"{function}({', '.join(args)})"
        if (template := SUPPORT.get(prim, {}).get(kind)) is not None:
            self.require(template, dtype)
            return f"{prim}_{dtype.name}({', '.join(args)})"
        end = "f" if dtype.itemsize == 4 else ""
        if prim in BUILTIN:
            return f"__builtin_{BUILTIN[prim]}{end}({', '.join(args)})"
        self.libm.add(LIBM[prim] + end)
        return f"{LIBM[prim]}{end}({', '.join(args)})"

    def _complex(self, prim: str, args: list[str], dtype: np.dtype) -> str:
        """Return a primitive of complex numbers as the call of a function."""
        if prim in complexfns.LIBM:
            name = complexfns.LIBM[prim] + ("f" if dtype.itemsize == 8 else "")
            self.libm.add(name)
        else:
            self.require(complexfns.SUPPORT[prim], dtype)
            name = f"{prim}_{dtype.name}"
        return f"{name}({', '.join(args)})"

    def _arithmetic(self, prim: str, a: str, b: str, dtype: np.dtype) -> str:
        if dtype.kind in "fc":
            return f"{a} {ARITHMETIC[prim]} {b}"
        if dtype.kind == "b":
            return f"{a} {'&' if prim == 'mul' else '|'} {b}"
        u = unsigned(dtype)
        return f"({c_type(dtype)})(({u}){a} {ARITHMETIC[prim]} ({u}){b})"

    def require(self, name: str, dtype: np.dtype | None) -> None:
        """Add a support function, and first what it needs."""
        if dtype is not None:  # some have a form of their own for a dtype
            own = f"{name}_{'complex' if dtype.kind == 'c' else dtype.name}"
            name = own if own in mathfns.FUNCTIONS else name
        key = name if dtype is None else f"{name}_{dtype.name}"
        if key in self.support:
            return
        end = "f" if dtype is not None and part(dtype).itemsize == 4 else ""
        for need in mathfns.NEEDS[name]:
            if need in mathfns.FUNCTIONS:
                self.require(need, dtype)
            else:
                self.libm.add(need[:-2] if need.endswith("_d") else need + end)
        text = mathfns.FUNCTIONS[name]
        if dtype is not None:
            u = unsigned(dtype) if dtype.kind in "iu" else c_type(part(dtype))
            text = specialise(
                text, c_type(dtype), u, dtype.name, end, f"uint{8 * dtype.itemsize}_t"
            )
        if dtype is not None and name.endswith("gamma_float"):
            text = self._once(text)
        self.support[key] = text

    def _once(self, text: str) -> str:
        """Drop the double-precision core of a function when another dtype has brought it."""
        core, wrapper = text.rsplit("\n", 1)
        return wrapper if any(core in t for t in self.support.values()) else text

    def size(self, size: "int | Size") -> str:
        """Return a size as an expression over `dim`."""
        if not isinstance(size, Size):
            return literal(size, ir.INT64)
        terms = []
        for mono, k in size.terms:
            factors = [literal(k, ir.INT64)] if k != 1 or not mono else []
            terms.append(" * ".join([*factors, *(self._atom(a) for a in mono)]))
        return f"({' + '.join(terms)})"

    def _atom(self, a) -> str:
        if a.kind == "dim":
            return f"dim[{self.dims[a]}]"
        if a.kind in ("start", "length"):
            n, start, stop, step = a.args
            parts = [self.size(n)]
            for part in (start, stop):
                parts += [str(int(part is not None)), self.size(part or 0)]
            self.require(f"slice_{a.kind}", None)
            return f"slice_{a.kind}({', '.join([*parts, self.size(step)])})"
        args = [self.size(x) for x in a.args]
        if a.kind == "floordiv":
            self.require("ifloordiv", None)
            return f"ifloordiv({', '.join(args)})"
        return STRUCTURE["imax"](args, ir.INT64, ir.INT64)

    # -- nodes ------------------------------------------------------------------------------------

    def body(self, nodes: list, indent: str) -> list[str]:
        """Return the lines of a body."""
        lines: list[str] = []
        for node in nodes:
            lines.extend(indent + line for line in NODES[type(node)](self, node, indent))
        return lines

    def function(self, f: ir.Function) -> str:
        """Return a kernel: the buffers that it touches are its restrict parameters.

        Not restrict are a donated input and the output that may lie in its memory.
        """
        shared = {*self.plan.reuse, *self.plan.reuse.values()}
        params = [
            f"{'const ' if b.kind == 'input' else ''}{c_type(b.dtype)} "
            f"*{'' if b in shared else 'restrict '}{b.name}"
            for b in self.passed(f)
        ]
        mark = "static __attribute__((noinline))" if len(self.plan.functions) > 1 else "static"
        head = (
            f"{mark} int64_t {f.name}({', '.join([*params, 'const int64_t *dim', 'void **fn'])}) {{"
        )
        stack = [
            f"  {c_type(b.dtype)} {b.name}[{count}] __attribute__((aligned(64)));"
            for b, owner in self.plan.local.items()
            if owner is f
            for count in (max(1, math.prod(self.plan.shapes[b])),)
        ]
        return "\n".join([head, *stack, *self.body(f.body, "  "), "  return 0;", "}"])

    def passed(self, f: ir.Function) -> list[Buffer]:
        """Return the buffers that a function takes as parameters."""
        return [b for b in f.buffers if b.kind != "const" and b not in self.plan.local]

    def baked(self, b: Buffer) -> str:
        """Return a constant array."""
        values = ", ".join(literal(v, b.dtype) for v in b.value.ravel().tolist()) or "0"
        return f"static const {c_type(b.dtype)} {b.name}[] = {{{values}}};"

    def arena(self, name: str) -> str:
        """Return the exported function that computes the bytes of scratch."""
        total = " + ".join(["64", *(self.slot(k) for k in range(len(self.plan.slot_bytes)))])
        return f"int64_t {name}(const int64_t *dim) {{\n  return {total};\n}}"

    def slot(self, k: int) -> str:
        """Return the bytes of a slot, whole cache lines and one more."""
        return f"(({self.size(self.plan.slot_bytes[k])} + 63) / 64 * 64 + 64)"

    def entry(self, name: str) -> str:
        """Return the exported entry: it lays out the arena and calls the kernels in order."""
        lines = [f"int64_t {name}(void **buf, const int64_t *dim, void *arena, void **fn) {{"]
        lines.append("  char *base = arena;")
        slots = range(len(self.plan.slot_bytes))
        lines += [f"  void *slot{k} = base; base += {self.slot(k)};" for k in slots]
        lines.append("  int64_t code;")
        shift = len(self.plan.graph.inputs)
        for f in self.plan.functions:
            args = []
            for b in self.passed(f):
                number = b.number + (shift if b.kind == "output" else 0)
                args.append(f"slot{self.plan.slots[b]}" if b.kind == "temp" else f"buf[{number}]")
            call = f"{f.name}({', '.join([*args, 'dim', 'fn'])})"
            lines.append(f"  if ((code = {call})) return code;")
        return "\n".join([*lines, "  return 0;", "}"])

    def invoke(self, node: ir.Invoke) -> list[str]:
        """Return the call of a library routine, or of a function of somebody else."""
        if node.native is not None:
            return self.foreign.call(node, [b.name for b in node.buffers], map(atom, node.sizes))
        self.require(node.name, node.dtype)
        fn = [
            f"fn[{self.plan.externals.index(name)}]" for name in externals_of(node.name, node.dtype)
        ]
        args = [*(b.name for b in node.buffers), *map(atom, node.sizes), *fn]
        call = f"{node.name}_{node.dtype.name}({', '.join(args)})"
        return [f"if ({call}) return {node.code};"]

    def loop(self, node: ir.For, indent: str) -> list[str]:
        """Return a for loop, marked for vectors where its iterations are independent."""
        pair = copy_of(node)
        if pair and self.plan.reuse.get(pair[0]) is pair[1]:
            test = f"if ((const void *){pair[0].name} != (const void *){pair[1].name}) {{"
            return [test, *(f"  {line}" for line in self.plain_loop(node, indent)), "}"]
        return self.plain_loop(node, indent)

    def plain_loop(self, node: ir.For, indent: str) -> list[str]:
        """Return a for loop that always runs."""
        i = atom(node.counter)
        lines = []
        copies: list[str] = []
        text = ""
        apart = interleaves(node)
        simd = node.kind == "simd" and not apart
        if simd and (parts := stages.split(node)) is not None:
            return self.staged(node, parts)
        if simd or node.work is not None:
            text = self.clauses(node.reductions)
        if simd:
            text = f" simd{f' simdlen({node.lanes})' if node.lanes else ''}{text}"
        if node.work is not None:
            head, copies = self.threaded(node)
            lines += [*(f"{line}" for line in head[:-1]), f"#pragma omp{head[-1].format(text)}"]
        elif text:
            lines.append(f"#pragma omp{text}")
        lines.append(f"for (int64_t {i} = 0; {i} < {atom(node.extent)}; {i}++) {{")
        lines.extend(copies)
        if apart:
            lines.append('  __asm__ volatile("");  /* not to be vectorised */')
        self.simd = simd  # no loop is inside
        lines.extend(self.body(node.body, "  "))
        self.simd = False
        return [*lines, "}"]

    def clauses(self, reductions: tuple) -> str:
        """Return the clauses of a pragma for registers that a loop reduces into."""
        found: dict[str, list[str]] = {}
        for local, monoid in reductions:
            found.setdefault(REDUCTIONS[monoid], []).append(atom(local))
        return "".join(f" reduction({op}:{', '.join(v)})" for op, v in found.items())

    def staged(self, node: ir.For, parts: list[stages.Stage]) -> list[str]:
        """Return a vector loop in stages: blocks of elements, and short loops for each block."""
        i, end, block = atom(node.counter), atom(node.extent), stages.BLOCK
        lines = [
            f"for (int64_t b_{i} = 0; b_{i} < {end}; b_{i} += {block}) {{",
            f"  const int64_t n_{i} = {end} - b_{i} < {block} ? {end} - b_{i} : {block};",
        ]
        for a in (a for stage in parts for a in stage.leaves):
            c = c_type(a.dtype)
            lines.append(f"  {c} s_{atom(a)}[{block}] __attribute__((aligned(64)));")
        for stage in parts:
            changed = {n.local for n in stage.body if isinstance(n, ir.Accumulate)}
            own = tuple(r for r in node.reductions if r[0] in changed)
            lines.append(f"  #pragma omp simd{self.clauses(own)}")
            lines.append(f"  for (int64_t k_{i} = 0; k_{i} < n_{i}; k_{i}++) {{")
            lines.append(f"    const int64_t {i} = b_{i} + k_{i};")
            lines += [
                f"    const {c_type(a.dtype)} {atom(a)} = s_{atom(a)}[k_{i}];" for a in stage.takes
            ]
            self.simd = True
            lines += self.body(stage.body, "    ")
            self.simd = False
            lines += [f"    s_{atom(a)}[k_{i}] = {atom(a)};" for a in stage.leaves]
            lines.append("  }")
        return [*lines, "}"]

    def threaded(self, node: ir.For) -> tuple[list[str], list[str]]:
        """Return the lines before a loop that threads share, the last its pragma, and those in it.

        A thread's own buffers lie one after the other in a slot, or are private arrays.
        """
        stack = [b.name for b in node.private if b in self.plan.local]
        slots = [b for b in node.private if b in self.plan.slots]
        clause = f" private({', '.join(stack)})" if stack else ""
        before, inside = [], []
        if slots:
            self.support.setdefault("omp_get_thread_num", "int omp_get_thread_num(void);")
        for b in slots:
            count = f"({self.size(shapes.product(self.plan.shapes[b]))} + {64 // b.dtype.itemsize})"
            before.append(f"{c_type(b.dtype)} *const all_{b.name} = {b.name};")
            inside.append(
                f"  {c_type(b.dtype)} *restrict {b.name} = "
                f"all_{b.name} + {count} * omp_get_thread_num();"
            )
        least = f"if({atom(node.work)} > {LEAST_WORK})"
        pragma = f" parallel for{{}} num_threads({self.plan.threads}) {least}{clause}"
        return [*before, pragma], inside

    def accumulate(self, node: ir.Accumulate) -> str:
        """Return the change of a register."""
        a, v = atom(node.local), atom(node.value)
        if node.monoid is None:
            return f"{a} = {v};"
        if node.monoid in ("rawmax", "rawmin"):
            return f"{a} = {v} {'>' if node.monoid == 'rawmax' else '<'} {a} ? {v} : {a};"
        dtype = node.local.dtype
        return f"{a} = {self.apply(MONOIDS[node.monoid], [a, v], dtype, dtype)};"

    def update(self, node: ir.Update) -> str:
        """Return the change of an element."""
        place = f"{node.buffer.name}[{atom(node.offset)}]"
        dtype = node.buffer.dtype
        new = self.apply(MONOIDS[node.monoid], [place, atom(node.value)], dtype, dtype)
        return f"{place} = {new};"


_SLOT = re.compile(r'(?<!")\b(T|U|K|[a-z]\w*_S|(?:__builtin_)?[a-z][a-z0-9]*F)\b(?!")')


def specialise(text: str, t: str, u: str, s: str, f: str, k: str = "") -> str:
    """Fill a template of a support function; letters inside quotes stay."""
    types = {"T": t, "U": u, "K": k}

    def fill(match: re.Match) -> str:
        word = match.group(1)
        if word in types:
            return types[word]
        return word[:-1] + (s if word.endswith("_S") else f)

    return _SLOT.sub(fill, text)


def _extreme(sign: str) -> Callable:
    def text(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
        a, b = args
        if dtype.kind == "f":
            return f"{a} {sign} {b} ? {a} : {a} != {a} ? {a} : {b}"
        return f"{a} {sign} {b} ? {a} : {b}"

    return text


def _negative(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
    return (
        f"-{args[0]}"
        if dtype.kind in "fc"
        else f"({c_type(dtype)})(0 - ({unsigned(dtype)}){args[0]})"
    )


def _absolute(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
    (a,) = args
    if dtype.kind == "f":
        return f"__builtin_fabs{'f' if dtype.itemsize == 4 else ''}({a})"
    return f"{a} < 0 ? {_negative(args, dtype, out)} : {a}" if dtype.kind == "i" else a


def _sign(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
    (a,) = args
    c = c_type(dtype)
    plain = f"({c})(({a} > 0) - ({a} < 0))"
    return f"{a} != {a} ? {a} : {plain}" if dtype.kind == "f" else plain


def _not(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
    return f"!{args[0]}" if dtype.kind == "b" else f"({c_type(dtype)})~{args[0]}"


def _cast(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
    (a,) = args
    if out.kind == "b":
        return f"{a} != 0"
    if dtype.kind == "f" and out.kind == "u":  # negative numbers wrap, as in NumPy
        wrapped = f"({c_type(out)})(int64_t){a}"
        return f"{a} < 0 ? {wrapped} : ({c_type(out)}){a}" if out.itemsize == 8 else wrapped
    return f"({c_type(out)}){a}"


def _finite(test: str) -> Callable:
    def text(args: list[str], dtype: np.dtype, out: np.dtype) -> str:
        end = "f" if dtype.itemsize == 4 else ""
        return f"__builtin_fabs{end}({args[0]}) {test} __builtin_inf{end}()"

    return text


# Primitives whose C has a form of its own: (operands, their dtype, dtype of the result) -> text.
STRUCTURE: dict[str, Callable] = {
    "div": lambda args, dtype, out: f"{args[0]} / {args[1]}",
    "neg": _negative,
    "abs": _absolute,
    "sign": _sign,
    "not": _not,
    "max": _extreme(">"),
    "min": _extreme("<"),
    "cast": _cast,
    "copy": lambda args, dtype, out: args[0],
    "select": lambda args, dtype, out: f"{args[0]} ? {args[1]} : {args[2]}",
    "isnan": lambda args, dtype, out: f"{args[0]} != {args[0]}",
    "isinf": _finite("=="),
    "isfinite": _finite("<"),
    "signbit": lambda args, dtype, out: f"__builtin_signbit({args[0]}) != 0",
    "iadd": lambda args, dtype, out: f"{args[0]} + {args[1]}",
    "imul": lambda args, dtype, out: f"{args[0]} * {args[1]}",
    "imax": lambda args, dtype, out: f"({args[0]} > {args[1]} ? {args[0]} : {args[1]})",
}

NODES: dict[type, Callable] = {
    ir.Let: lambda p, n, indent: [
        f"const {c_type(n.local.dtype)} {atom(n.local)} = {p.expression(n.value)};"
    ],
    ir.Load: lambda p, n, indent: [
        f"const {c_type(n.local.dtype)} {atom(n.local)} = {n.buffer.name}[{atom(n.offset)}];"
    ],
    ir.Store: lambda p, n, indent: [f"{n.buffer.name}[{atom(n.offset)}] = {atom(n.value)};"],
    ir.Update: lambda p, n, indent: [p.update(n)],
    ir.Init: lambda p, n, indent: [f"{c_type(n.local.dtype)} {atom(n.local)} = {atom(n.value)};"],
    ir.Accumulate: lambda p, n, indent: [p.accumulate(n)],
    ir.For: lambda p, n, indent: p.loop(n, indent),
    ir.Break: lambda p, n, indent: [f"if ({atom(n.condition)}) break;"],
    ir.Fail: lambda p, n, indent: [f"if ({atom(n.condition)}) return {n.code};"],
    ir.Invoke: lambda p, n, indent: p.invoke(n),
}
