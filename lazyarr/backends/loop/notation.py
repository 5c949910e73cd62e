"""Index notation: what a graph says before anybody thinks of loops.

A program is a list of statements, each `buffer[index] = value` over the axes of an iteration space,
where `value` is a scalar expression whose variables are reads of buffers (`Access`) and positions
(`Position`). Movement ops, broadcasting, gathers and slices have all become indices; what is left
to decide is only the order of loops.

    y[i] = exp(sub(x[i, j], m[i]))  summed over j
"""

from dataclasses import dataclass, field

import numpy as np

from lazyarr.backends.loop.affine import Affine, Axis, Dynamic, flatten
from lazyarr.graph.scalar import Scalar


@dataclass(eq=False)
class Buffer:
    """Memory for one array; compared by identity.

    `kind` is "input", "output", "temp" or "const" (baked `value`); `number` counts within inputs
    and within outputs. Only a temporary may have an `order` other than C's.
    """

    name: str
    dtype: np.dtype
    shape: tuple
    kind: str = "temp"
    number: int = 0
    value: np.ndarray | None = None
    order: tuple[int, ...] | None = None  # dimensions from the outermost, None: C order

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Access:
    """One element of a buffer, read as an array of `shape` (a reshape of the buffer's own)."""

    buffer: Buffer
    index: tuple[Affine, ...]
    shape: tuple

    def offset(self, dropped: tuple[int, ...] = ()) -> Affine:
        """Return the offset in elements, some dimensions of the buffer having no memory."""
        order = self.buffer.order or range(len(self.index))
        kept = [d for d in order if d not in dropped]
        return flatten([self.index[d] for d in kept], [self.shape[d] for d in kept])

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{', '.join(map(str, self.index))}]"


@dataclass(frozen=True)
class Position:
    """The value of an index or a size as an int64."""

    index: Affine

    def __repr__(self) -> str:
        return f"({self.index})"


@dataclass(eq=False)
class Statement:
    """`target (combine)= value` for all axes.

    `combine` is None for a plain store. With reduced axes the element starts at the identity of the
    monoid; without, it is combined with what is there (`update`), as scatters do. `disjoint` says
    that the other statements on the buffer write other elements. `running` is the axis of a
    cumulative statement: values are stored while combining along it. `argument` is the position
    that argmax and argmin keep instead of the value.
    """

    target: Access
    axes: tuple[Axis, ...]
    value: Scalar
    reduced: tuple[Axis, ...] = ()
    combine: str | None = None
    running: Axis | None = None
    argument: Scalar | None = None
    disjoint: bool = False
    checks: tuple[tuple[Scalar, int], ...] = ()
    label: str = ""
    nodes: tuple = ()  # graph nodes computed inline

    @property
    def update(self) -> bool:
        """True when the statement combines into what the buffer holds."""
        return self.combine is not None and not self.reduced and self.running is None

    @property
    def buffer(self) -> Buffer:
        """The buffer written."""
        return self.target.buffer

    def expressions(self) -> list[Scalar]:
        """Return every scalar expression that the statement evaluates."""
        extra = [self.argument] if self.argument is not None else []
        extra += [a.extent.value for a in self.axes if isinstance(a.extent, Dynamic)]
        return [self.value, *extra, *dynamics(self.target.index), *(p for p, _ in self.checks)]

    def __repr__(self) -> str:
        sign = "=" if self.combine is None else f"{self.combine}="
        over = f" over {list(self.reduced)}" if self.reduced else ""
        return f"{self.target} {sign} {shown(self.value)}{over}"


@dataclass(eq=False)
class Routine:
    """A library routine on whole buffers: `name` with its operands, sizes and flags.

    `others` are its further results. `code` is what the program returns when it fails. A `native`
    function of somebody else may also write the operands in `scratch`.
    """

    name: str
    buffer: Buffer
    operands: tuple[Buffer, ...]
    sizes: tuple
    code: int = 0
    label: str = ""
    others: tuple[Buffer, ...] = ()
    native: object = None
    scratch: tuple[Buffer, ...] = ()

    @property
    def results(self) -> tuple[Buffer, ...]:
        """All buffers that are written."""
        return (self.buffer, *self.others)


@dataclass(eq=False)
class Repeat:
    """A loop that carries state: `body` for each step of `axis`, then `updates` of the carries.

    `count` is the number of steps where it is a value; the loop ends after a step that leaves true
    in `stop`.
    """

    axis: Axis
    body: list
    updates: list
    label: str = ""
    count: Scalar | None = None
    stop: Access | None = None
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)


SHOWN = 60  # primitives of an expression that is written out


def shown(value: Scalar) -> str:
    """Return an expression as text, a long one by its outermost primitive alone."""
    seen: set[int] = set()
    stack = [value]
    while stack and len(seen) <= SHOWN:
        e = stack.pop()
        seen.add(id(e))
        if e.prim != "var":
            stack.extend(a for a in e.args if isinstance(a, Scalar) and id(a) not in seen)
    return str(value) if len(seen) <= SHOWN else f"{value.prim}(...)"


def accesses(*roots: Scalar) -> list[Access]:
    """Return every distinct read in scalar expressions, those inside indices included."""
    found: dict[Access, None] = {}
    seen: set[int] = set()
    stack: list = list(roots)
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if e.prim != "var":
            stack.extend(a for a in e.args if isinstance(a, Scalar))
            continue
        name = e.args[0]
        index = name.index if isinstance(name, Access) else (name.index,)
        stack.extend(dynamics(index))
        if isinstance(name, Access):
            found[name] = None
    return list(found)


def dynamics(index: tuple) -> list[Scalar]:
    """Return the scalar expressions inside an index."""
    return [key.value for i in index for key, _ in i.terms if isinstance(key, Dynamic)]


def reads(step: object) -> set[Buffer]:
    """Return the buffers that a step reads (a statement that updates also reads its target)."""
    if isinstance(step, Routine):
        return set(step.operands)
    if isinstance(step, Repeat):
        return step.reads
    return {a.buffer for a in accesses(*step.expressions())}


def writes(step: object) -> set[Buffer]:
    """Return the buffers that a step writes."""
    if isinstance(step, Routine):
        return {*step.results, *step.scratch}
    return step.writes if isinstance(step, Repeat) else {step.buffer}
