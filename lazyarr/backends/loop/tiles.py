"""Short rows, a vector of rows at a time.

A nest that walks rows, `for i: for j`, has nothing for vectors where rows are shorter than a vector
or two. So such a nest has a second form, for rows below a limit: tiles of as many rows as a vector
has lanes, `for block: for j: for row in tile`, where every inner loop is one vector long. What a
row keeps to itself becomes one vector in the tile. The rows that fill no tile, and all longer ones,
take the plain form.

Nests that transpose take the second form whatever their length: each row of the one array is a
column of the other, of which a tile reads or writes whole cache lines.

Where a loop around the nest meets the same rows again and again, as distances between all pairs do,
the rows are packed before it in the order in which tiles read them, and longer ones are worth it.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lazyarr.backends.loop.affine import Affine, Axis, Dynamic, of, substitute
from lazyarr.backends.loop.collapse import with_accesses
from lazyarr.backends.loop.notation import Access, Buffer, Position, Statement, accesses
from lazyarr.backends.loop.order import GOOD_STEPS, count_ops, walk
from lazyarr.backends.loop.roots import HOIST_COST
from lazyarr.backends.loop.schedule import Loop, Placed, placements
from lazyarr.backends.loop.values import is_dear, reciprocal
from lazyarr.graph import scalar
from lazyarr.graph.scalar import Scalar, cost
from lazyarr.graph.shapes import Size

VECTOR = 64  # bytes of a vector
SHORT = 2  # vectors below which rows that are only reduced are short
SHORT_STORED = 1  # the same where rows are stored: elements of a tile lie apart in memory
SHORT_DEAR = 4  # the same for rows of exponentials and the like
SHORT_PACKED = 8  # the same for rows that are packed and met
LEAST_MET = 8  # times or more
TURNED = 8  # rows in a tile that transposes: elements of a cache line, and streams of a cache
MOST_OPS = 200  # scalar operations of a nest that may be printed twice

Drop = Mapping[Buffer, tuple[int, ...]]


@dataclass(eq=False)
class Tile:
    """The second form of a nest: its loop over tiles, taken where `extent` is below `limit`.

    Without a limit it is always taken. Rows met at least `LEAST_MET` times, as `times` says, may
    be as long as `packed`.
    """

    loop: Loop
    rows: int
    extent: "int | Size"
    limit: int
    packed: int = 0
    times: "int | Size" = 0
    sums: list[tuple[Placed, Placed]] = field(default_factory=list)  # sums over all rows, twice
    temps: list[Buffer] = field(default_factory=list)

    def __str__(self) -> str:
        more = f", or {self.packed} where {self.times} >= {LEAST_MET}" if self.packed else ""
        where = f" where {self.extent} < {self.limit}" if self.limit else ""
        return f"{self.rows} at a time{where}{more}"


def add_tiles(block: list, drop: Drop, make: Callable, precise: bool) -> None:
    """Give the nests of a block that walk rows their second form, packed rows before them."""
    out: list = []
    for item in block:
        for loop, around in _outer_loops(item):
            tiler = _Tiler(loop, around, drop, make, precise)
            loop.tile = tiler.run()
            out += [tiler.packing(*pack) for pack in tiler.packs.values()] if loop.tile else []
        out.append(item)
    block[:] = out


def tile_temps(loop: Loop) -> set[Buffer]:
    """Return the vectors of second forms in a loop, of which each thread has its own."""
    return {
        b for inner, _ in _outer_loops(loop) if inner.tile is not None for b in inner.tile.temps
    }


def _outer_loops(item: object) -> Iterator[tuple[Loop, tuple[Loop, ...]]]:
    """Yield the outer loops in an item of a block, with those around; none inside a tiled one."""
    stack: list = [(item, ())]
    while stack:
        loop, around = stack.pop()
        if isinstance(loop, Loop) and loop.role == "outer":
            yield loop, around
            if loop.tile is None:
                stack += [(inner, (*around, loop)) for inner in reversed(loop.items)]


class _Tiler:
    """Builds the second form of one nest, unless something in it forbids that."""

    def __init__(
        self, loop: Loop, around: tuple[Loop, ...], drop: Drop, make: Callable, precise: bool
    ):
        self.loop, self.around = loop, around
        self.drop, self.make, self.precise = drop, make, precise
        self.rows = [n for n in loop.items if isinstance(n, Loop)]
        self.inside = [p for row in self.rows for p in row.items]
        self.nodes = [*(n for n in loop.items if isinstance(n, Placed)), *self.inside]
        self.temps: dict[object, Buffer] = {}  # of a buffer in the plain form, or of a value
        self.passing: set[Buffer] = set()  # vectors of one element of each row at a time
        self.lifted: dict[Scalar, Scalar] = {}
        self.packs: dict[object, tuple[Access, Buffer]] = {}  # what is packed, and where

    def run(self) -> Tile | None:
        """Return the second form, None where there is none."""
        if not self._walks_rows() or not all(map(self._is_free, self.nodes)):
            return None
        size = max(n.statement.value.dtype.itemsize for n in self.nodes)
        self.lanes = min(max(VECTOR // size, 4), 16)
        self.block, self.row = Axis(self.loop.extent, "block"), Axis(self.lanes, "row")
        self.along = Axis(self.rows[0].extent, "along")
        self.limit, self.packed, turns = *self._limits(), self._turns()
        if turns:
            self.lanes, self.limit, self.packed = TURNED, 0, 0
            self.row = Axis(self.lanes, "row")
        elif not self._is_short() or any(row.role != "vector" for row in self.rows):
            return None
        if not all(map(self._keep, self.nodes)):
            return None
        self.over = Loop(self.loop.extent, "outer")
        tile = self._tile(self.over)
        self._fill(tile)
        tile.temps = list(self.temps.values())
        return tile

    def _tile(self, over: Loop) -> Tile:
        times = self.around[0].extent if self.packed else 0
        return Tile(over, self.lanes, self.along.extent, self.limit, self.packed, times)

    def _limits(self) -> tuple[int, int]:
        """Return the lengths below which rows take the second form: as they are, and packed."""
        dear = any(map(is_dear, self.inside))
        stored = [n.statement for n in self.inside if not _sums_row(n)]
        if not dear and len(stored) == len(self.inside):
            return 0, 0
        kept = any(s.buffer.kind == "output" for s in stored)
        limit = SHORT_DEAR if dear else SHORT_STORED if kept else SHORT
        strided = [(n, a) for n in self.inside for a in self._strided(n)]
        if stored or not strided or not all(self._is_packed(n, a) for n, a in strided):
            return limit * self.lanes, 0
        return limit * self.lanes, SHORT_PACKED * self.lanes

    def _is_short(self) -> bool:
        """Tell whether rows may be short enough."""
        extent, most = self.along.extent, max(self.limit, self.packed)
        return most > 0 and not (isinstance(extent, int) and extent >= most)

    def _turns(self) -> bool:
        """Tell whether something is walked by ones along the nest's loop, and by strides inside."""
        if len(self.loop.items) > 1 or any(map(_sums_row, self.inside)):
            return False
        found = False
        for node in self.inside:
            own, along = self._own(node), node.loops[-1]
            for a in (node.statement.target, *accesses(node.statement.value)):
                offset = a.offset(self.drop.get(a.buffer, ()))
                found |= (
                    offset.coefficient(own) == 1 and offset.coefficient(along) not in GOOD_STEPS
                )
        return found

    def _strided(self, node: Placed) -> list[Access]:
        """Return what a statement reads by strides along the rows of a tile."""
        own = self._own(node)
        read = accesses(node.statement.value)
        return [a for a in read if a.offset().coefficient(own) not in (0, 1)]

    def _is_packed(self, node: Placed, a: Access) -> bool:
        """Tell whether a loop around the nest meets the same elements in each iteration."""
        own, along = self._own(node), node.loops[-1]
        if not self.around or a.buffer in self._written:
            return False
        return all(key in (own, along) for i in a.index for key, _ in i.terms)

    @functools.cached_property
    def _written(self) -> set[Buffer]:
        return {n.statement.buffer for n in placements([*self.around[:1]])}

    def packing(self, a: Access, packed: Buffer) -> Loop:
        """Return the loop that packs rows, in the order in which tiles read them."""
        over, along = Loop(self.loop.extent, "outer"), Loop(self.along.extent, "outer")
        inner = Loop(self.lanes, "vector")
        target = Access(packed, (of(self.block), of(self.along), of(self.row)), packed.shape)
        axes = (self.block, self.along, self.row)
        value = Scalar("var", (a,), packed.dtype)
        s = Statement(target, axes, value, label=f"{a.buffer.name}, packed")
        inner.items.append(Placed(s, (over, along, inner), axes, ()))
        along.items.append(inner)
        over.items.append(along)
        why = f"packs {a.buffer.name} for the loops below"
        return Loop(self.loop.extent, "outer", why=why, tile=self._tile(over))

    def _walks_rows(self) -> bool:
        """Tell whether the loop holds rows of one length, and what is done once a row."""
        if not self.rows or not isinstance(self.rows[0].extent, int | Size):
            return False
        fine = all(
            row.role in ("vector", "strided")
            and row.extent == self.rows[0].extent
            and all(isinstance(n, Placed) for n in row.items)
            for row in self.rows
        )
        others = (n for n in self.loop.items if not isinstance(n, Loop))
        fine = fine and all(isinstance(n, Placed) for n in others)
        return fine and sum(count_ops(n.statement) for n in self.nodes) <= MOST_OPS

    def _own(self, node: Placed) -> Axis:
        return node.loops[node.path.index(self.loop)]

    def _is_free(self, node: Placed) -> bool:
        """Tell whether the iterations of the loop do not depend on each other in a statement."""
        s, own = node.statement, self._own(node)
        if s.checks or s.argument is not None or s.running is not None or s.update:
            return False
        if any(e.prim == "var" and _is_dynamic(e.args[0]) for e in walk(s.expressions())):
            return False
        if own in s.reduced:
            return node.path[-1] is self.loop
        return self._place(node) is not None

    def _place(self, node: Placed) -> int | None:
        """Return the dimension of its target along which a statement walks the rows."""
        own = self._own(node)
        places = [d for d, i in enumerate(node.statement.target.index) if i.axis is own]
        return places[0] if len(places) == 1 else None

    def _keep(self, node: Placed) -> bool:
        """Make a vector for what a row keeps to itself; False where its size is not bounded."""
        b = node.statement.buffer
        place = self._place(node)
        if place is None or place not in self.drop.get(b, ()):
            return True
        shape: list[int] = []
        for d, size in enumerate(b.shape):
            if d in self.drop[b]:
                continue
            if not isinstance(size, int) and (size != self.along.extent or not self.limit):
                return False
            shape.append(size if isinstance(size, int) else max(self.limit, self.packed))
        self.temps[b] = self.make("v", b.dtype, (*shape, self.lanes))
        if node.path[-1] is not self.loop and not _sums_row(node):
            self.passing.add(self.temps[b])
        return True

    def _fill(self, tile: Tile) -> None:
        """Place the statements in the loops of the tile."""
        for item in self.loop.items:
            if not isinstance(item, Loop):
                self._place_in(tile, item, (self.over, self._once()))
                continue
            along, inner = Loop(item.extent, "outer"), Loop(self.lanes, "vector")
            along.items.append(inner)
            for node in item.items:
                self._place_in(tile, node, (self.over, along, inner))
            self.over.items.append(along)

    def _packed(self, a: Access) -> Buffer:
        """Return the buffer that holds what an access reads, in tiles."""
        if a not in self.packs:
            shape = (self.loop.extent // self.lanes, self.along.extent, self.lanes)
            self.packs[a] = a, self.make("p", a.buffer.dtype, shape)
        return self.packs[a][1]

    def _once(self) -> Loop:
        """Return the loop over the rows of a tile that comes last, for what is done once a row."""
        if not self.over.items or self.over.items[-1].role != "vector":
            self.over.items.append(Loop(self.lanes, "vector"))
        return self.over.items[-1]

    def _place_in(self, tile: Tile, node: Placed, loops: tuple[Loop, ...]) -> None:
        depth = node.path.index(self.loop)
        own = self._own(node)
        between = node.loops[depth + 1 :]
        path = (*node.path[:depth], *loops)
        axes = (*node.loops[:depth], self.block, *between, self.row)
        s = self._rewritten(node, own)
        if between:
            outer = node.path[:depth], node.loops[:depth]
            s = replace(s, value=self._lifted(s.value, (*between, *node.unrolled), outer))
        made = Placed(s, path, axes, node.unrolled)
        loops[-1].items.append(made)
        if own in node.statement.reduced:
            tile.sums.append((node, made))
            self.over.starts.append(made)
            return
        first = made.first_reduced()
        if first is not None:
            path[first].starts.append(made)

    def _lifted(self, root: Scalar, along: tuple[Axis, ...], outer: tuple) -> Scalar:
        """Return a value whose dear parts that are the same along a row are computed once a row."""
        done: dict[Scalar, tuple[Scalar, bool]] = {}  # an expression -> another, does it vary?
        stack = [root]
        while stack:
            e = stack[-1]
            if e in done:
                stack.pop()
            elif e.prim in ("const", "var"):
                done[e] = e, e.prim == "var" and self._varies(e.args[0], along)
            elif missing := [a for a in e.args if a not in done]:
                stack.extend(missing)
            else:
                parts = [done[a] for a in e.args]
                varies = any(v for _, v in parts)
                args = tuple(self._lift(a, outer) if varies and not v else a for a, v in parts)
                fixed = varies and not parts[-1][1] and e.dtype.kind == "f"
                if e.prim == "div" and fixed and not self.precise:
                    scale, inverse = reciprocal(args[1], scalar.apply)
                    args = args[0] * self._lift(scale, outer), self._lift(inverse, outer)
                    done[e] = args[0] * args[1], True
                else:
                    done[e] = Scalar(e.prim, args, e.dtype), varies
        value, varies = done[root]
        return value if varies else self._lift(value, outer)

    def _varies(self, name: Access | Position, along: tuple[Axis, ...]) -> bool:
        """Tell whether an element or a position varies along a row."""
        if isinstance(name, Access) and name.buffer in self.passing:
            return True
        index = name.index if isinstance(name, Access) else (name.index,)
        return any(i.coefficient(axis) != 0 for i in index for axis in along)

    def _lift(self, value: Scalar, outer: tuple) -> Scalar:
        """Return a dear value as an element of a vector that has one for each row."""
        if value.prim in ("const", "var") or cost(value) < HOIST_COST:
            return value
        if value not in self.lifted:
            temp = self.temps[value] = self.make("v", value.dtype, (self.lanes,))
            target = Access(temp, (of(self.row),), temp.shape)
            s = Statement(target, (self.block, self.row), value, label="once a row")
            once = self._once()
            path, axes = (*outer[0], self.over, once), (*outer[1], self.block, self.row)
            once.items.append(Placed(s, path, axes, ()))
            self.lifted[value] = Scalar("var", (target,), value.dtype)
        return self.lifted[value]

    def _rewritten(self, node: Placed, own: Axis) -> Statement:
        """Return a statement for one row of a tile."""
        s, along = node.statement, node.loops[-1]
        rows = {own: of(self.block) * self.lanes + of(self.row)}
        strided = set(self._strided(node)) if self.packed and along is not own else set()

        def moved(a: Access | Position) -> Access | Position:
            if isinstance(a, Position):
                return Position(substitute(a.index, rows))
            index = tuple(substitute(i, rows) for i in a.index)
            if a in strided:
                canonical = tuple(substitute(i, {along: of(self.along)}) for i in index)
                packed = self._packed(Access(a.buffer, canonical, a.shape))
                return Access(packed, (of(self.block), of(along), of(self.row)), packed.shape)
            temp = self.temps.get(a.buffer)
            if temp is None:
                return Access(a.buffer, index, a.shape)
            dropped = self.drop[a.buffer]
            kept = tuple(i for d, i in enumerate(index) if d not in dropped)
            return Access(temp, (*kept, of(self.row)), temp.shape)

        def both(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
            return tuple(x for a in axes for x in ((self.block, self.row) if a is own else (a,)))

        return replace(
            s,
            target=moved(s.target),
            axes=both(s.axes),
            reduced=both(s.reduced),
            value=with_accesses(s.value, moved),
        )


def _sums_row(node: Placed) -> bool:
    """Tell whether a statement comes to one value for each row."""
    return node.loops[-1] in node.statement.reduced


def _is_dynamic(name: Access | Position) -> bool:
    index: tuple[Affine, ...] = name.index if isinstance(name, Access) else (name.index,)
    return any(isinstance(key, Dynamic) for i in index for key, _ in i.terms)
