"""Writing a program: names, constants, sizes and literals of one function, and of those inside it.

A `Module` holds what all functions of a program share: the globals, the constants, the sizes.
A `Scope` is the text of one function body, one assignment per node.
"""

import numpy as np

from lazyarr.backends.array.table import MODULAR, Table, Unsupported
from lazyarr.errors import GraphError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.shapes import Size

INT64 = np.dtype("int64")
INT32 = np.dtype("int32")
BOOL = np.dtype(bool)


class Module:
    """What the functions of one program share."""

    def __init__(self, table: Table, atoms: tuple = ()):
        self.table = table
        self.globals: dict[str, object] = {}
        self.constants: dict[tuple, str] = {}
        self.residents: dict[int, tuple[str, np.ndarray]] = {}  # by identity of the array
        self.sizes: dict[object, str] = {a: f"n{i}" for i, a in enumerate(atoms)}
        self.size_lines: list[str] = []
        self.checks = 0
        self._counts: dict[str, int] = {}

    def name(self, prefix: str) -> str:
        """Return a name that no other value of the program has."""
        n = self._counts.get(prefix, 0)
        self._counts[prefix] = n + 1
        return f"{prefix}{n}"

    def constant(self, value: object, dtype: np.dtype) -> str:
        """Return the name of a 0-d constant; equal constants are one (0.0 and -0.0 differ)."""
        key = (repr(value), dtype)
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = self.name("k")
            self.globals[found] = self.table.constant(value, dtype)
        return found

    def resident(self, value: np.ndarray) -> str:
        """Return the name of an argument that holds an array of the graph itself."""
        found = self.residents.get(id(value))
        if found is None:
            found = self.residents[id(value)] = (self.name("d"), value)
        return found[0]

    def dtype(self, dtype: np.dtype) -> str:
        """Return the name of a dtype."""
        name = "bool_" if dtype == BOOL else dtype.name
        self.globals[name] = self.table.dtype(dtype)
        return name

    def size(self, size: object) -> str:
        """Return a size as a Python expression of ints."""
        if not isinstance(size, Size):
            return str(int(size))
        parts = []
        for mono, k in size.terms:
            factors = [self._atom(a) for a in mono]
            if k != 1 or not factors:
                factors.insert(0, str(k))
            parts.append("*".join(factors))
        return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"

    def _atom(self, atom: object) -> str:
        found = self.sizes.get(atom)
        if found is None:
            if atom.kind == "dim":
                raise GraphError(f"the size {atom.name} is not known; no input has it as a size.")
            args = ", ".join("None" if a is None else self.size(a) for a in atom.args)
            found = self.sizes[atom] = self.name("m")
            self.globals[f"size_{atom.kind}"] = shapes.EVALUATE[atom.kind]
            self.size_lines.append(f"{found} = size_{atom.kind}({args})")
        return found

    def literal(self, value: object) -> str:
        """Return a parameter as Python text; Unsupported where it has none."""
        if isinstance(value, Size):
            return self.size(value)
        if isinstance(value, np.dtype):
            return self.dtype(value)
        if isinstance(value, tuple):
            inner = ", ".join(self.literal(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        if isinstance(value, float | complex):
            return self.constant(value, np.dtype(type(value)))
        raise Unsupported(f"a parameter {value!r} cannot be written in a program.")


class Scope:
    """The body of one function: its lines, and the names that nodes have in it."""

    def __init__(self, module: Module, names: dict[Variable, str] | None = None):
        self.module, self.names = module, dict(names or {})
        self.lines: list[str] = []
        self.temporaries: list[str] = []
        self.checked = False

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(text)

    def temporary(self, text: str) -> str:
        """Assign an expression to a name of its own and return the name."""
        name = self.module.name("t")
        self.line(f"{name} = {text}")
        self.temporaries.append(name)
        return name

    def arg(self, x: object, dtype: np.dtype | None = None) -> str:
        """Return an operand as text, cast to a dtype; raw numbers become constants of it."""
        if x.__class__ is not Variable:
            if isinstance(x, Size):
                return self.call("asarray", self.module.size(x), dtype=dtype or INT64)
            return self.module.constant(
                np.asarray(x).astype(dtype or np.asarray(x).dtype).item(),
                dtype or np.asarray(x).dtype,
            )
        name = self.names.get(x)
        if name is None:
            if not x.is_data:
                raise GraphError(f"{x!r} is not an input; made at {x.where_made()}.")
            name = self.names[x] = self._data(x.value)
        return name if dtype is None else self.cast(name, x.type.dtype, dtype)

    def _data(self, value: np.ndarray) -> str:
        if value.ndim:
            return self.module.resident(value)
        return self.module.constant(value.item(), value.dtype)

    def call(self, word: str, *args: str, over: np.dtype | None = None, **params: object) -> str:
        """Return a call of a word; `over` is the dtype it computes in, for the word's category."""
        name, function = self.module.table.find(word, over)
        self.module.globals[name] = function
        keywords = [f"{k}={self.module.literal(v)}" for k, v in params.items()]
        return f"{name}({', '.join([*args, *keywords])})"

    def cast(self, text: str, have: np.dtype, want: np.dtype) -> str:
        """Return an expression of one dtype in another."""
        return (
            text if have == want else self.call("astype", text, self.module.dtype(want), over=have)
        )

    def arithmetic(
        self, word: str, args: list[tuple[str, np.dtype]], result: np.dtype, **params: object
    ) -> str:
        """Return a call whose operands share the last one's dtype, through a wider where needed.

        `args` are pairs of text and dtype; a boolean condition passes unchanged.
        """
        dtype = args[-1][1]
        wide = self.module.table.wider.get(dtype)
        if wide is None:
            return self.call(word, *(text for text, _ in args), over=dtype, **params)
        if dtype.itemsize == wide.itemsize and word not in MODULAR:
            raise Unsupported(f"{word} of {dtype} is not in this namespace.")
        texts = [self.cast(text, d, wide if d == dtype else d) for text, d in args]
        if params.get("dtype") == dtype:
            params["dtype"] = wide
        return self.cast(
            self.call(word, *texts, over=wide, **params),
            wide if result == dtype else result,
            result,
        )

    def move(self, word: str, *args: str, dtype: np.dtype, moved: int = 1, **params: object) -> str:
        """Return a call that only moves elements; the first `moved` args hold elements of dtype."""
        bits = self.module.table.movable.get(dtype)
        if bits is None:
            return self.call(word, *args, **params)
        texts = [self.bits(a, bits) for a in args[:moved]]
        return self.bits(self.call(word, *texts, *args[moved:], **params), dtype)

    def bits(self, text: str, dtype: np.dtype) -> str:
        """Return an expression's elements as another dtype of the same width."""
        return self.call("bitcast", text, self.module.dtype(dtype))

    def check(self, predicate: str) -> None:
        """Demand that every element of a predicate is true."""
        self.module.checks += 1
        self.checked = True
        code = self.module.constant(self.module.checks, INT32)
        if self.module.table.frees:
            code = str(self.module.checks)
        self.line(f"e = {self.call('check', 'e', predicate, code)}")

    def tuple(self, texts: list[str]) -> str:
        """Return expressions as a tuple."""
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
