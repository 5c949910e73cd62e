"""The order of the loops of one statement: which axis is the vector, which are unrolled.

Strides decide: the axis along which most memory is walked by ones becomes the innermost loop, the
others stand outside by falling stride, kept ones before reduced ones. Short static axes beside a
longer one are unrolled, so that a loop over observations holds the 3 or 5 steps inside as straight
code. Where all are short, the last one is the loop, and stores lie side by side.
"""

from dataclasses import dataclass

from lazyarr.backends.loop.affine import Affine, Axis
from lazyarr.backends.loop.notation import Buffer, Repeat, Routine, Statement, accesses, dynamics
from lazyarr.graph.scalar import PRIMS, Scalar, cost

HINT = 256  # stands for the extent of a symbolic axis
SHORT = 8  # longest axis unrolled
MOST_UNROLLED = 32  # copies of the body
GOOD_STEPS = (-1, 0, 1, 2, 3, 4, 8)  # between elements that one vector holds
DEAR = 10  # the cost of a function from which it is dear, as exponentials are
ALONE = 4  # longest static axis that is unrolled when it is the only one


@dataclass(frozen=True)
class Order:
    """Loops from the outside, unrolled axes, the innermost loop's role, and the work inside.

    `ops` counts primitives, `cost` weighs them.
    """

    loops: tuple[Axis, ...]
    unrolled: tuple[Axis, ...]
    role: str
    ops: int
    cost: int = 0


def order_of(s: Statement) -> Order:
    """Return the loop order of a statement."""
    ops = count_ops(s)
    if s.argument is not None or s.running is not None:
        kept = [a for a in s.axes if a not in s.reduced and a is not s.running]
        last = [s.running] if s.running is not None else [a for a in s.axes if a in s.reduced]
        return Order((*kept, *last), (), "serial", ops)
    serial = scattered_axes(s)
    unrolled, copies = [], 1
    long = [a for a in s.axes if not is_short(a)]
    short = [a for a in s.axes if is_short(a) and a not in serial]
    for axis in reversed(short) if long else short:
        limit = MOST_UNROLLED if long else ALONE
        if copies * axis.extent <= limit:
            unrolled.insert(0, axis)
            copies *= axis.extent
    left = [a for a in s.axes if a not in unrolled]
    loops = arrange(s, left, serial)
    role = "vector"
    if loops and loops[-1] in serial:
        role = "serial"
    elif loops and is_strided(s, loops[-1]):
        role = "strided"
    return Order(tuple(loops), tuple(unrolled), role, ops * copies, cost(s.value) * copies)


def is_strided(s: Statement, axis: Axis) -> bool:
    """Tell whether a statement walks memory along an axis by steps that no vector unit likes."""
    offsets = [a.offset() for a in (*accesses(*s.expressions()), s.target)]
    return any(o.coefficient(axis) not in GOOD_STEPS for o in offsets)


def choose_layouts(steps: list) -> None:
    """Let temporaries keep their short static dimensions outside: they are unrolled, not walked."""
    whole: set[Buffer] = set()
    seen: dict[Buffer, None] = {}
    stack = list(steps)
    while stack:
        step = stack.pop()
        if isinstance(step, Repeat):
            stack.extend([*step.body, *step.updates])
        elif isinstance(step, Routine):
            whole.update((*step.results, *step.operands))
        else:
            for a in (*accesses(*step.expressions()), step.target):
                seen[a.buffer] = None
                if a.shape != a.buffer.shape:
                    whole.add(a.buffer)
    for b in seen:
        if b.kind != "temp" or b in whole:
            continue
        short = [d for d, s in enumerate(b.shape) if isinstance(s, int) and s <= SHORT]
        long = [d for d in range(len(b.shape)) if d not in short]
        if long and short:
            b.order = (*short, *long)


def is_short(axis: Axis) -> bool:
    """Tell whether an axis is static and short."""
    return isinstance(axis.extent, int) and 0 < axis.extent <= SHORT


def extent_hint(axis: Axis) -> int:
    """Return a number that stands for an extent."""
    return axis.extent if isinstance(axis.extent, int) else HINT


def scattered_axes(s: Statement) -> set[Axis]:
    """Return the axes along which two iterations may write one element."""
    if s.reduced or s.running is not None:
        return set()
    plain = {key for i in s.target.index for key, _ in i.terms if isinstance(key, Axis)}
    hidden: set[Axis] = set()
    for e in walk(dynamics(s.target.index)):
        if e.prim == "var":
            index = e.args[0].index
            for i in index if isinstance(index, tuple) else (index,):
                hidden.update(key for key, _ in i.terms if isinstance(key, Axis))
    return {a for a in s.axes if a in hidden or a not in plain}


def walk(roots: list[Scalar]) -> list[Scalar]:
    """Return every distinct expression below some roots, those inside indices included."""
    seen: dict[int, Scalar] = {}
    stack = list(roots)
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen[id(e)] = e
        if e.prim == "var":
            index = e.args[0].index
            stack.extend(dynamics(index if isinstance(index, tuple) else (index,)))
        else:
            stack.extend(a for a in e.args if isinstance(a, Scalar))
    return list(seen.values())


def count_ops(s: Statement) -> int:
    """Return the number of primitives of one element."""
    return 1 + sum(e.prim in PRIMS or e.prim == "cast" for e in walk(s.expressions()))


def arrange(s: Statement, axes: list[Axis], serial: set[Axis]) -> list[Axis]:
    """Return axes from the outermost to the vector axis."""
    if len(axes) < 2:
        return axes
    reads = [a.offset() for a in accesses(*s.expressions())]
    store = s.target.offset()
    if serial & set(axes):
        return arrange_scatter(axes, serial, store)
    vector = max(axes, key=lambda a: (vote(a, axes, [*reads, store]), axes.index(a)))
    if vector not in s.reduced and any(o.coefficient(vector) not in (0, 1) for o in reads):
        within = [a for a in axes if a in s.reduced]
        even = [a for a in within if all(o.coefficient(a) in (0, 1) for o in reads)]
        vector = even[-1] if even else vector
    rest = [a for a in axes if a is not vector]
    rest.sort(key=lambda a: (a in s.reduced, -widest(a, [*reads, store])))
    return [*rest, vector]


def arrange_scatter(axes: list[Axis], serial: set[Axis], store: Affine) -> list[Axis]:
    """Keep the order of a scatter, but let a free unit-stride axis be the vector."""
    free = [a for a in axes if a not in serial and store.coefficient(a) == 1]
    return [*(a for a in axes if a not in free[:1]), *free[:1]]


def vote(axis: Axis, axes: list[Axis], offsets: list[Affine]) -> float:
    """Return how much memory is walked by ones along an axis, less what is walked by strides."""
    total = 0.0
    for offset in offsets:
        step = offset.coefficient(axis)
        if step == 0:
            continue
        volume = 1.0
        for a in axes:
            if offset.coefficient(a) != 0:
                volume *= extent_hint(a)
        total += volume if step in (1, -1) else -volume
    return total


def widest(axis: Axis, offsets: list[Affine]) -> float:
    """Return the largest stride along an axis, sizes replaced by hints."""
    return max((abs(stride_hint(o.coefficient(axis))) for o in offsets), default=0)


def stride_hint(step: object) -> float:
    """Return a number that stands for a stride."""
    if isinstance(step, int):
        return step
    return sum(k * float(HINT) ** len(mono) for mono, k in step.terms)
