"""Functions of others in C programs: C sources are part of the file, others called by pointer.

A source stands at the end of the file, so that nothing in it changes what the program means, and
the functions that it defines get names of their own. It is called by pointer, from a library of its
own, where it has flags that would hold for the whole file, or names beside functions that another
source has too.
"""

import ctypes
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lazyarr.backends.c import compiler
from lazyarr.backends.loop import ir
from lazyarr.backends.loop.lapack import pointers
from lazyarr.graph.ops.foreign import Native, Parameter

C_TYPES = {
    "bool": "_Bool", "float32": "float", "float64": "double",
    **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}  # fmt: skip
SHARED = ("-D", "-U", "-I", "-l", "-L", "-W")  # flags that do not change the rest of a file
_SCRAP = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.DOTALL)
_LINE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*|[(){}]")
_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while bool _Bool _Complex __attribute__".split()
)


@dataclass(frozen=True)
class Source:
    """A C function: the text that defines it, what is included before, and the flags it needs.

    All of it is part of the key under which a build is kept.
    """

    name: str
    prototype: str
    text: str
    includes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """The source by itself."""
        return f"{self.head}{self.prototype};\n{self.text}\n"

    @property
    def head(self) -> str:
        """What is included."""
        return "".join(f"#include {h}\n" for h in self.includes)

    @property
    def fits(self) -> bool:
        """True when the flags may hold for the file of a program."""
        return all(f.startswith(SHARED) for f in self.flags)

    def address(self, native: Native | None = None) -> int:
        """Return the address of the function, in a library of its own."""
        return _address(self)


@functools.lru_cache(256)
def _address(source: Source) -> int:
    library = compiler.load(source.whole, source.flags)
    return ctypes.cast(getattr(library, source.name), ctypes.c_void_p).value or 0


def pointers_of(externals: Sequence[str], natives: Iterable[Native]) -> ctypes.Array:
    """Return a table of the addresses that a program calls: BLAS, LAPACK, functions of others."""
    found = pointers(externals)
    more = [n.code.address(n) for n in natives]
    return (ctypes.c_void_p * max(len(externals) + len(more), 1))(
        *list(found)[: len(externals)], *more
    )


def names_in(text: str) -> tuple[set[str], set[str]]:
    """Return the functions that a source defines, and its other names at file scope.

    >>> names_in("static int k = 3; double f(double x) { return k * x; }")
    ({'f'}, {'k'})
    """
    bare = _SCRAP.sub(" ", text)
    others = set(re.findall(r"#\s*define\s+(\w+)", bare))
    words = _WORD.findall(_LINE.sub(" ", bare))
    functions: set[str] = set()
    depth, last, candidate = [0, 0], "", ""
    for word in words:
        if word in "(){}":
            kind = int(word in "{}")
            if word == "{" and depth == [0, 0] and candidate:
                functions.add(candidate)
            elif word == "(" and depth == [0, 0]:
                candidate = last
            depth[kind] += 1 if word in "({" else -1
        elif depth == [0, 0]:
            candidate = ""
            if word not in _KEYWORDS and not word.endswith("_t"):
                others.add(word)
        last = word
    return functions, others - functions


class ForeignCalls:
    """The functions of others that one program calls, and how."""

    def __init__(self, natives: Sequence[Native], first: int):
        self.first = first  # place in fn
        self.embedded: dict[Source, str] = {}  # with the end that its names get
        self.pointers: list[Native] = []
        names: set[str] = set()
        for native in natives:
            source = native.code
            if isinstance(source, Source) and source.fits and source not in self.embedded:
                others = names_in(source.text)[1]
                if not others & names or not self.embedded:
                    names |= others
                    end = hashlib.sha256(repr(source).encode()).hexdigest()[:8]
                    self.embedded[source] = f"_{end}"
            if source not in self.embedded:
                self.pointers.append(native)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that the file needs; macros stand in it."""
        flags = (f for s in self.embedded for f in s.flags if not f.startswith(("-D", "-U")))
        return tuple(dict.fromkeys(flags))

    def prototypes(self) -> Iterator[str]:
        """Return the declarations, before what calls the functions."""
        for source, end in self.embedded.items():
            yield source.prototype.replace(f" {source.name}(", f" {source.name}{end}(", 1) + ";"

    def sources(self) -> Iterator[str]:
        """Return the definitions, after all else."""
        if self.embedded:
            heads = (s.head for s in self.embedded)
            yield "\n/* ---- functions of others ---- */\n" + "".join(dict.fromkeys(heads))
        for source, end in self.embedded.items():
            macros = [_macro(f) for f in source.flags if f.startswith("-D")]
            defined = sorted(names_in(source.text)[0] | {source.name})
            yield "\n".join(
                [
                    *(f"#define {name} {value}" for name, value in macros),
                    *(f"#define {name} {name}{end}" for name in defined),
                    source.text,
                    *(f"#undef {name}" for name in (*defined, *(name for name, _ in macros))),
                ]
            )

    def call(self, node: ir.Invoke, buffers: Sequence[str], sizes: Iterable[str]) -> list[str]:
        """Return the lines of a call."""
        native, rest, arguments = node.native, iter(sizes), []
        for p in native.parameters:
            if p.kind == "size":
                arguments.append(next(rest))
                continue
            name = buffers[p.of + (0 if p.kind == "output" else node.results)]
            arguments.append(f"{name}[0]" if p.kind == "value" else f"(void *){name}")
        function = self._function(native)
        call = f"{function}({', '.join(arguments)})"
        return [f"if ({call}) return {node.code};" if native.coded else f"{call};"]

    def _function(self, native: Native) -> str:
        if native.code in self.embedded:
            return native.code.name + self.embedded[native.code]
        types = ", ".join(map(_type, native.parameters))
        result = "int" if native.coded else "void"
        return f"(({result} (*)({types}))fn[{self.first + self.pointers.index(native)}])"


def _type(p: Parameter) -> str:
    return C_TYPES[p.dtype] if p.kind in ("size", "value") else "void *"


def _macro(flag: str) -> tuple[str, str]:
    """Return name and value of a macro that a flag defines."""
    name, _, value = flag[2:].partition("=")
    return name, value or "1"
