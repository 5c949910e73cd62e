"""The loop IR: eleven node types, printed as C or Python by tables.

Expressions are flat: every `Let` applies one primitive to atoms, and an atom is a local (a scalar
variable whose name is a `Local`) or a constant. Memory is `Load`, `Store`, `Update`; registers that
change are made by `Init` and changed by `Accumulate`; control is `For`, `Break` and `Fail`.
"""

from dataclasses import dataclass, field

import numpy as np

from lazyarr.backends.loop.notation import Buffer
from lazyarr.graph import scalar
from lazyarr.graph.ops.foreign import Native
from lazyarr.graph.scalar import Scalar

INT64, BOOL = np.dtype("int64"), np.dtype("bool")

# Primitives of index arithmetic, which never wraps: name -> meaning on ints.
INDEX_PRIMS = {
    "iadd": lambda a, b: a + b,
    "imul": lambda a, b: a * b,
    "ifloordiv": lambda a, b: a // b if b else 0,
    "imax": max,
    "slice_start": lambda n, has_start, start, has_stop, stop, step: slice(
        start if has_start else None, stop if has_stop else None, step
    ).indices(n)[0],
    "slice_length": lambda n, has_start, start, has_stop, stop, step: len(
        range(*slice(start if has_start else None, stop if has_stop else None, step).indices(n))
    ),
}


class Local:
    """A name inside a function: `number` is its age, `depth` counts the loops around it."""

    __slots__ = ("name", "number", "depth", "mutable")

    def __init__(self, name: str, number: int, depth: int, mutable: bool = False):
        self.name, self.number, self.depth, self.mutable = name, number, depth, mutable

    def __repr__(self) -> str:
        return self.name


@dataclass(slots=True)
class Let:
    """local = primitive(atoms)"""

    local: Scalar
    value: Scalar


@dataclass(slots=True)
class Load:
    """local = buffer[offset]"""

    local: Scalar
    buffer: Buffer
    offset: Scalar


@dataclass(slots=True)
class Store:
    """buffer[offset] = value"""

    buffer: Buffer
    offset: Scalar
    value: Scalar


@dataclass(slots=True)
class Update:
    """buffer[offset] = combine(buffer[offset], value)"""

    buffer: Buffer
    offset: Scalar
    monoid: str
    value: Scalar


@dataclass(slots=True)
class Init:
    """A register that changes, and its first value."""

    local: Scalar
    value: Scalar


@dataclass(slots=True)
class Accumulate:
    """local = combine(local, value); monoid None assigns, "rawmax" and "rawmin" ignore NaN."""

    local: Scalar
    monoid: str | None
    value: Scalar


@dataclass(slots=True)
class For:
    """Counter from 0 below extent; `kind` is "simd" or "serial".

    A simd loop lists the registers that it reduces into; `lanes` bounds the elements of a vector, 0
    leaves it to the compiler. `work` is the number of operations where iterations may run on
    several threads, each of which then has its own `private` buffers.
    """

    counter: Scalar
    extent: Scalar
    kind: str
    body: list
    reductions: tuple = ()
    lanes: int = 0
    work: Scalar | None = None
    private: tuple[Buffer, ...] = ()


@dataclass(slots=True)
class Fail:
    """Return a code when the condition holds."""

    condition: Scalar
    code: int


@dataclass(slots=True)
class Break:
    """Leave the loop around this when the condition holds."""

    condition: Scalar


@dataclass(slots=True)
class Invoke:
    """A library routine on whole buffers, the first of which it writes; a failure returns `code`.

    `dtype` is that of the first operand.
    """

    name: str
    dtype: np.dtype
    buffers: tuple[Buffer, ...]
    sizes: tuple[Scalar, ...]
    code: int = 0
    results: int = 1  # buffers, the first ones
    native: Native | None = None  # a function of somebody else


@dataclass
class Function:
    """A kernel: the buffers that it touches and its body; it returns 0 or the code of a check."""

    name: str
    body: list
    buffers: list[Buffer] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


def atom_name(atom: Scalar) -> str | None:
    """Return the name of a local, None for a constant."""
    return atom.args[0].name if atom.prim == "var" else None


def constant(value: object, dtype: np.dtype = INT64) -> Scalar:
    """Return a constant atom."""
    return scalar.const(value, dtype)


def walk(body: list):
    """Yield every node of a body, loops before what they hold."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, For):
            stack.extend(reversed(node.body))
