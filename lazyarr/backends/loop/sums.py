"""Long sums in blocks, whose sums are added with what rounding lost.

A vector loop that adds up has a partial sum in each lane. Over ten million elements these lose as
many digits as a plain loop; over a block of 512 they lose as few as pairwise summation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lazyarr.backends.loop.ir import BOOL, INT64, Accumulate, For, Init, Let, constant
from lazyarr.backends.loop.order import DEAR
from lazyarr.graph import scalar
from lazyarr.graph.scalar import PRIMS, Scalar

Make = Callable[[str, bool], object]  # makes a local of a letter, that may change or not
SHORT = 129  # rows below this length
NARROW = 32  # bytes of the vectors that add up short rows
DEAR_LANES = 8  # elements of short rows whose functions are computed at once
SMALL = 100  # nodes of a body that may stand in two loops
BLOCK = 512  # elements whose partial sums are added plainly
ROWS = 128  # rows whose sums are added plainly


def is_long_sum(node: For) -> bool:
    """Tell whether a vector loop adds up floats over more than a block, as far as is known."""
    if node.extent.prim == "const" and node.extent.args[0] <= BLOCK:
        return False
    return node.kind == "simd" and any(_adds(local, monoid) for local, monoid in node.reductions)


def _adds(local: Scalar, monoid: str | None) -> bool:
    return monoid == "add" and local.dtype.kind in "fc"


def by_length(node: For, make: Make) -> list:
    """Return the nodes for a loop along rows: narrow vectors for short ones, else blocks."""
    nodes: list = []
    few = _let(nodes, make, "lt", node.extent, constant(SHORT), dtype=BOOL)
    short = _let(nodes, make, "select", few, node.extent, constant(0))
    long = replace(node, extent=_let(nodes, make, "select", few, constant(0), node.extent))
    plain = replace(node, extent=short, body=[*node.body], lanes=node.lanes or lanes_of(node))
    return [*nodes, plain, *(in_blocks(long, make) if is_long_sum(long) else [long])]


def lanes_of(node: For) -> int:
    """Return how many elements of a short row are done at once."""
    if any(isinstance(n, Let) and _is_dear(n.value.prim) for n in node.body):
        return DEAR_LANES
    return NARROW // max((n.local.dtype.itemsize for n in node.body if _is_float(n)), default=8)


def _is_dear(prim: str) -> bool:
    return prim in PRIMS and PRIMS[prim].cost >= DEAR


def has_rows(node: For) -> bool:
    """Tell whether a vector loop over rows of unknown length is worth two versions.

    Sixteen lanes of float32 leave short rows to scalar code; eight of float64 do not.
    """
    known = node.extent.prim == "const" or node.kind != "simd"
    single = any(_is_float(n) and n.local.dtype.itemsize == 4 for n in node.body)
    return not known and len(node.body) <= SMALL and single


def _is_float(n: object) -> bool:
    return isinstance(n, Let | Accumulate) and n.local.dtype.kind == "f"


def in_blocks(node: For, make: Make) -> list:
    """Return the nodes that compute long sums in blocks."""
    sums = [local for local, monoid in node.reductions if _adds(local, monoid)]
    return _blocks(node, sums, BLOCK, make)


def rows_in_blocks(node: For, sums: Sequence[Scalar], make: Make) -> list:
    """Return the nodes for a loop around others that add up in registers, many rows in blocks."""
    if node.extent.prim == "const" and node.extent.args[0] <= ROWS:
        return [node]
    return _blocks(node, [a for a in sums if _adds(a, "add")], ROWS, make)


def _blocks(node: For, sums: Sequence[Scalar], size: int, make: Make) -> list:
    """Return a loop over blocks of a loop; what a block adds up is added exactly."""
    if not sums:
        return [node]
    lost, parts = ({a: scalar.var(make("a", True), a.dtype) for a in sums} for _ in range(2))
    outer, inner = (scalar.var(make("i", False), INT64) for _ in range(2))
    head: list = []
    body: list = []
    up = _let(head, make, "iadd", node.extent, constant(size - 1))
    blocks = _let(head, make, "ifloordiv", up, constant(size))
    start = _let(body, make, "imul", outer, constant(size))
    behind = _let(body, make, "imul", start, constant(-1))
    left = _let(body, make, "iadd", node.extent, behind)
    whole = _let(body, make, "lt", constant(size), left, dtype=BOOL)
    count = _let(body, make, "select", whole, constant(size), left)
    body += [Init(part, scalar.const(0, a.dtype)) for a, part in parts.items()]
    inside = [Let(node.counter, Scalar("iadd", (start, inner), INT64)), *_renamed(node.body, parts)]
    reductions = tuple((parts.get(a, a), monoid) for a, monoid in node.reductions)
    body.append(replace(node, counter=inner, extent=count, body=inside, reductions=reductions))
    for a, part in parts.items():
        _add_exactly(body, make, a, lost[a], part)
    changed = tuple((x, "add") for pair in lost.items() for x in pair)
    others = tuple(r for r in node.reductions if r[0] not in parts)
    head += [Init(x, scalar.const(0, x.dtype)) for x in lost.values()]
    head.append(For(outer, blocks, "serial", body, (*changed, *others)))
    return head


def _renamed(body: list, names: Mapping[Scalar, Scalar]) -> list:
    """Return a body in which registers have other names."""
    out = []
    for n in body:
        if isinstance(n, For):
            reductions = tuple((names.get(a, a), monoid) for a, monoid in n.reductions)
            n = replace(n, body=_renamed(n.body, names), reductions=reductions)
        elif isinstance(n, Accumulate):
            n = replace(n, local=names.get(n.local, n.local), value=names.get(n.value, n.value))
        elif isinstance(n, Let) and not names.keys().isdisjoint(n.value.args):
            args = tuple(names.get(a, a) for a in n.value.args)
            n = replace(n, value=Scalar(n.value.prim, args, n.value.dtype))
        out.append(n)
    return out


def _add_exactly(body: list, make: Make, a: Scalar, low: Scalar, part: Scalar) -> None:
    """Add a register to the pair `a` + `low`, whose second half is what the first cannot hold."""
    value, before, rest = (_let(body, make, "copy", x, dtype=a.dtype) for x in (part, a, low))
    total, lost = exact_sum(body, make, before, value, rest)
    body += [Accumulate(a, None, total), Accumulate(low, None, lost)]


def exact_sum(
    body: list, make: Make, before: Scalar, value: Scalar, rest: Scalar
) -> tuple[Scalar, Scalar]:
    """Append the sum of `before` + `rest` and a value; return it and what it cannot hold.

    Infinities and NaN lose nothing.
    """

    def let(prim: str, *args: Scalar, dtype: object = value.dtype) -> Scalar:
        return _let(body, make, prim, *args, dtype=dtype)

    def known(error: Scalar) -> Scalar:
        fine = let("eq", error, error, dtype=BOOL)
        return let("select", fine, error, scalar.const(0, value.dtype))

    total = let("add", before, value)
    gained = let("sub", total, before)
    error = let("add", let("sub", before, let("sub", total, gained)), let("sub", value, gained))
    rest = let("add", rest, known(error))
    sums = let("add", total, rest)
    return sums, known(let("sub", rest, let("sub", sums, total)))


def _let(body: list, make: Make, prim: str, *args: Scalar, dtype: object = INT64) -> Scalar:
    out = scalar.var(make("t", False), dtype)
    body.append(Let(out, Scalar(prim, args, dtype)))
    return out
