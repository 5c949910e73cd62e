"""The tree of loops -> loop IR.

Every scalar is made once, in the outermost loop where all it depends on is known: so values that do
not vary along a loop leave it, and equal expressions of different statements in a loop are one.
"""

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from lazyarr.backends.loop import threads
from lazyarr.backends.loop.affine import Affine, of
from lazyarr.backends.loop.ir import (
    INT64,
    Accumulate,
    Break,
    For,
    Invoke,
    Load,
    Store,
    Update,
    constant,
    walk,
)
from lazyarr.backends.loop.notation import Buffer
from lazyarr.backends.loop.optimistic import plain_statements, plain_sums, scalar_carries
from lazyarr.backends.loop.schedule import Call, Cycle, Loop, Placed
from lazyarr.backends.loop.statements import Statements
from lazyarr.backends.loop.sums import BLOCK, exact_sum
from lazyarr.backends.loop.tiles import LEAST_MET, Tile, tile_temps
from lazyarr.backends.loop.values import OFTEN, Scope, as_form
from lazyarr.graph import scalar, shapes
from lazyarr.graph.scalar import Scalar

FLOAT64 = np.dtype("float64")
JAM = 4  # rows that are added to a row in memory at once


def is_sum_scatter(item: object) -> bool:
    """Tell whether an item of a loop adds floats at dynamic places and does nothing else."""
    s = item.statement if isinstance(item, Placed) else None
    return s is not None and s.update and s.combine == "add" and s.buffer.dtype.kind == "f"


def sums_rows(loop: Loop) -> bool:
    """Tell whether a loop only reduces rows into rows in memory."""
    if loop.role != "outer" or len(loop.items) != 1 or not isinstance(loop.items[0], Loop):
        return False
    inner = loop.items[0]
    if inner.role != "vector" or (isinstance(loop.extent, int) and loop.extent < 2 * JAM):
        return False
    return all(isinstance(n, Placed) and _reduces(n, loop) for n in inner.items)


def _reduces(node: Placed, loop: Loop) -> bool:
    """Tell whether a statement reduces over a loop but not over its innermost one."""
    s = node.statement
    axis = node.loops[node.path.index(loop)]
    plain = s.argument is None and not s.checks
    return plain and axis in s.reduced and node.loops[-1] not in s.reduced


def _redirected(node: Placed, buffer: Buffer) -> Placed:
    """Return a placed statement that writes another buffer."""
    target = replace(node.statement.target, buffer=buffer)
    return replace(node, statement=replace(node.statement, target=target))


class Emitter(Statements):
    """Emits the loops of one function."""

    # -- blocks -----------------------------------------------------------------------------------

    def block(self, items: Iterable) -> None:
        """Emit the items of a block into the current scope."""
        for item in items:
            if isinstance(item, Loop):
                self._loop(item)
            elif isinstance(item, Placed):
                self._statement(item)
            elif isinstance(item, Cycle):
                self._cycle(item)
            else:
                self._call(item)

    def _loop(self, loop: Loop) -> None:
        if loop.role == "serial" and all(map(is_sum_scatter, loop.items)):
            self._scatter(loop)
            return
        for node in loop.starts:
            self._begin(node)
        total = self.count(loop.extent)
        shared = self.threads and len(self.scopes) == 1 and not sums_rows(loop)
        work = self.index(of(threads.work(loop))) if shared else None
        known = self.plain
        tried = set() if self.again else plain_sums(loop)
        self.plain = known | tried
        before = len(self._here.body)
        self._iterate(loop, total)
        self.plain = known
        if shared:
            self._share(loop, self._here.body[before:], work)
        if tried:
            self._repeat(loop, total)
        for node in loop.starts:
            self._finish(node)

    def _iterate(self, loop: Loop, total: Scalar) -> None:
        if sums_rows(loop) and not self.tiling:
            self._add_rows(loop, total)
        elif loop.role in ("vector", "strided"):
            self._innermost(loop, total, "simd" if loop.role == "vector" else "serial")
        elif loop.tile is not None and not self.again:
            self._tiled(loop, loop.tile, total)
        else:
            self._run(loop, total, of(0))

    def _run(self, loop: Loop, total: Scalar, first: Affine) -> None:
        """Emit the iterations of a loop from one on."""
        counter = self._open(loop)
        self.loop_values[loop] = first + of(counter)
        self.block(loop.items)
        self._close(counter, total, "serial")

    def _repeat(self, loop: Loop, total: Scalar) -> None:
        """Take the sums of a nest again, with tested products, where one of them is NaN."""
        total_of_sums = self._register(scalar.const(0, FLOAT64))
        for node in loop.starts:
            self._each_sum(node, lambda value: self._add_up(total_of_sums, value))
        seen = self._frozen(total_of_sums)
        bad = self.let("select", self.let("ne", seen, seen), constant(1), constant(0))
        counter = self._open(None)
        self._here.floor = self._here.depth  # all in it stays in it
        for node in loop.starts:
            self._each_sum(node, None)
        self.again = True
        self._iterate(loop, total)
        self.again = False
        self._append(counter, bad)

    def _each_sum(self, node: Placed, look: Callable | None) -> None:
        """Look at every sum of a statement, or set it to 0."""
        s, zero = node.statement, scalar.const(0, node.statement.value.dtype)
        self._bind(node)
        kept, inner = self._kept(node)
        registers = [self.registers.get((id(node), c)) for c in self._combinations(kept)]
        if registers[0] is None:
            act = None if look is None else lambda: look(self.load(s.target, {}))
            self._fill(node, inner, kept, zero, act)
            self.forget(s.buffer)
            return
        for (register,) in registers:
            if look is None:
                self._here.body.append(Accumulate(register, None, zero))
            else:
                look(self._frozen(register))

    def _add_up(self, register: Scalar, value: Scalar) -> None:
        wide = value if value.dtype == FLOAT64 else self.apply("cast", (value,), FLOAT64)
        self._here.body.append(Accumulate(register, "add", wide))

    def _share(self, loop: Loop, emitted: list, work: Scalar) -> None:
        """Let the loops just emitted run on several threads where iterations are independent."""
        private = threads.private_buffers(loop, self.drop)
        if private is None:
            return
        private |= tile_temps(loop)
        for node in emitted:
            if isinstance(node, For) and threads.splits(node):
                touched = {
                    n.buffer for n in walk(node.body) if isinstance(n, Load | Store | Update)
                }
                own = sorted(private & touched, key=lambda b: b.name)
                node.work, node.private = work, tuple(own)

    def _innermost(self, loop: Loop, total: Scalar, kind: str) -> None:
        """Emit an innermost loop, and where it takes liberties with a factor, another without them.

        The first absorbs by a fixed factor as by any, which is right where that is finite and not
        0, and multiplies by the reciprocal of a fixed divisor, right where both are normal numbers
        and worth it in long rows.
        """
        counter = self._open(loop)
        self._here.plain = None if self.again or self.tiling else {}
        self.loop_values[loop] = of(counter)
        self.block(loop.items)
        scope = self.scopes.pop()
        rows = self.by_length and total.prim != "const" and len(self.scopes) > 1 and scope.inverted
        fine = self._is_fine(scope, total if rows else None)
        if fine is None:
            self.scopes.append(scope)
            self._close(counter, total, kind)
            return
        free = self.apply("select", (fine, total, constant(0)), INT64)
        exact = self.apply("select", (fine, constant(0), total), INT64)
        self.scopes.append(scope)
        self._close(counter, free, kind, "long" if rows else "any")
        precise, self.precise = self.precise, True
        counter = self._open(loop)
        self.loop_values[loop] = of(counter)
        self.block(loop.items)
        self._close(counter, exact, kind, "short" if rows else "any")
        self.precise = precise

    def _is_fine(self, scope: Scope, rows: Scalar | None) -> Scalar | None:
        """Return whether a loop may take its liberties, None where it takes none."""
        tests: list[Scalar] = []
        for a in scope.plain or ():
            tests += self.let("isfinite", a), self.let("ne", a, scalar.const(0, a.dtype))
        tests += [self.is_normal(d) for d in scope.divisors]
        if rows is not None:
            tests.append(self.let("le", constant(OFTEN), rows))
        return functools.reduce(lambda a, b: self.let("and", a, b), tests) if tests else None

    def _tiled(self, loop: Loop, tile: Tile, total: Scalar) -> None:
        """Take rows in tiles where they are short, or transposed, then those that are left."""
        tiles = self.apply("ifloordiv", (total, constant(tile.rows)), INT64)
        if tile.limit:
            tiles = self.let("select", self._is_short(tile), tiles, constant(0))
        done = self.apply("imul", (tiles, constant(tile.rows)), INT64)
        rest = self.apply("iadd", (total, self.apply("imul", (done, constant(-1)), INT64)), INT64)
        for old, new in tile.sums:
            known = [key for key in self.registers if key[0] == id(old)]
            self.registers |= {(id(new), key[1]): self.registers[key] for key in known}
        self.tiling = True
        self._run(tile.loop, tiles, of(0))
        self.tiling = False
        self._run(loop, rest, as_form(done))

    def _is_short(self, tile: Tile) -> Scalar:
        """Return whether the rows of a nest are short enough for tiles."""
        limit = constant(tile.limit)
        if tile.packed:
            few = self.let("lt", self.count(tile.times), constant(LEAST_MET))
            limit = self.let("select", few, limit, constant(tile.packed))
        return self.let("lt", self.count(tile.extent), limit)

    def _add_rows(self, loop: Loop, total: Scalar) -> None:
        """Add rows to rows in memory; many in blocks, whose sums are added exactly."""
        targets = [n.statement.buffer for n in loop.items[0].items]
        if not self._adds_whole(loop, targets, total):
            self._jam(loop, total, of(0))
            return
        exact = {b: (self._copy_of(b), self._copy_of(b)) for b in targets}
        up = self.apply("iadd", (total, constant(BLOCK - 1)), INT64)
        blocks = self.apply("ifloordiv", (up, constant(BLOCK)), INT64)
        more = self.apply("iadd", (blocks, constant(-1)), INT64)
        number = loop.items[0].extent
        for c in itertools.chain(*exact.values()):
            self._sweep(more, number, lambda i, c=c: Store(c, i, scalar.const(0, c.dtype)))
        counter = self._open(None)
        start = self.apply("imul", (counter, constant(BLOCK)), INT64)
        behind = self.apply("imul", (start, constant(-1)), INT64)
        left = self.apply("iadd", (total, behind), INT64)
        count = self.let("select", self.let("lt", constant(BLOCK), left), constant(BLOCK), left)
        self._jam(loop, count, as_form(start))
        last = self.let("select", self.let("lt", counter, more), constant(1), constant(0))
        for b, pair in exact.items():
            self._sweep(last, number, lambda i, b=b, pair=pair: self._carry(b, *pair, i))
        self._append(counter, blocks)
        for b, pair in exact.items():
            self._sweep(more, number, lambda i, b=b, pair=pair: self._carry(b, *pair, i, True))
            self.forget(b)

    def _adds_whole(self, loop: Loop, targets: list[Buffer], total: Scalar) -> bool:
        """Tell whether rows are many, and the sums all of the buffers that they are added to."""
        if len(self.scopes) > 1 or (total.prim == "const" and total.args[0] <= BLOCK):
            return False
        if len(set(targets)) < len(targets) or self.many.intersection(targets):
            return False
        return all(
            n.statement.combine == "add"
            and b.dtype.kind in "fc"
            and shapes.product(b.shape) == loop.items[0].extent
            and not self.drop.get(b)
            for n, b in zip(loop.items[0].items, targets, strict=True)
        )

    def _carry(self, b: Buffer, high: Buffer, low: Buffer, i: Scalar, last: bool = False) -> Store:
        """Bring the sum of a block to the exact sum, or the exact sum to where it belongs."""
        body, make = self._here.body, self._maker()
        value, before, rest = (scalar.var(make("t", False), b.dtype) for _ in range(3))
        body += [Load(value, b, i), Load(before, high, i), Load(rest, low, i)]
        total, lost = exact_sum(body, make, before, value, rest)
        if last:
            return Store(b, i, total)
        body += [Store(high, i, total), Store(low, i, lost)]
        return Store(b, i, scalar.const(0, b.dtype))

    def _jam(self, loop: Loop, total: Scalar, start: Affine) -> None:
        """Add several rows at a time to a row in memory, then those that are left."""
        groups = self.apply("ifloordiv", (total, constant(JAM)), INT64)
        done = self.apply("imul", (groups, constant(JAM)), INT64)
        rest = self.apply("iadd", (total, self.apply("imul", (done, constant(-1)), INT64)), INT64)
        for rows, count, first in ((JAM, groups, of(0)), (1, rest, as_form(done))):
            counter = self._open(loop)
            self.loop_values[loop] = start + first + of(counter) * rows
            self.rows[loop] = rows
            self.block(loop.items)
            self._append(counter, count)

    def _scatter(self, loop: Loop) -> None:
        """Add into the target and a private copy in turn, so that equal neighbours do not wait.

        The copy pays where there are twice as many additions as elements, decided while running:
        its loops have no iterations otherwise.
        """
        total = self.count(loop.extent)
        copies = {n.statement.buffer: self._copy_of(n.statement.buffer) for n in loop.items}
        numbers = {b: shapes.product(b.shape) for b in copies}
        least = self.index(
            of(max(numbers.values(), key=lambda n: n if isinstance(n, int) else 0) * 2)
        )
        pairs = self.apply("ifloordiv", (total, constant(2)), INT64)
        half = self.let("select", self.let("lt", least, total), pairs, constant(0))
        for b, number in numbers.items():
            self._sweep(half, number, lambda i, b=b: Store(copies[b], i, scalar.const(0, b.dtype)))
        counter = self._open(loop)
        for shift, buffers in enumerate(({b: b for b in copies}, copies)):
            self.loop_values[loop] = of(counter) * 2 + shift
            for node in loop.items:
                self._statement(_redirected(node, buffers[node.statement.buffer]))
        self._append(counter, half)
        done = self.apply("imul", (half, constant(2)), INT64)
        rest = self.apply("iadd", (total, self.apply("imul", (half, constant(-2)), INT64)), INT64)
        counter = self._open(loop)
        self.loop_values[loop] = of(counter) + as_form(done)
        self.block(loop.items)
        self._append(counter, rest)
        for b, number in numbers.items():
            self._sweep(half, number, lambda i, b=b: self._fold(b, copies[b], i))

    def _copy_of(self, b: Buffer) -> Buffer:
        return self.make("m", b.dtype, b.shape, order=b.order)

    def _fold(self, b: Buffer, copy: Buffer, i: Scalar) -> Update:
        value = scalar.var(self._local("t", len(self.scopes) - 1), b.dtype)
        self._here.body.append(Load(value, copy, i))
        return Update(b, i, "add", value)

    def _sweep(self, half: Scalar, number: object, node: Callable) -> None:
        """Emit a vector loop over all elements, which runs only where `half` is not 0."""
        some = self.let("lt", constant(0), half)
        count = self.let("select", some, self.index(of(number)), constant(0))
        counter = self._open(None)
        self._here.body.append(node(counter))
        self._append(counter, count, "simd")

    def _cycle(self, item: Cycle) -> None:
        repeat, memo = item.repeat, {}
        extent = of(repeat.axis.extent)
        self.count(extent)
        if repeat.count is not None:
            extent = as_form(self.value(repeat.count, memo))
        self.plain = plain_statements(repeat)
        if self.plain:
            extent = self._tried(item, extent)
        self._steps(item, extent)

    def _tried(self, item: Cycle, extent: Affine) -> Affine:
        """Run a loop on plain products; return the steps to take again: all where one was NaN."""
        places = scalar_carries(item.repeat).values()
        starts = [self.load(a, {}) for a in places]
        self._steps(item, extent)
        self.plain = set()
        ends = [self.load(a, {}) for a in places]
        wide = [self.apply("cast", (v,), FLOAT64) for v in ends if v.dtype.kind == "f"]
        total = functools.reduce(lambda a, b: self.let("add", a, b), wide)
        bad = self.let("ne", total, total)
        for a, start, end in zip(places, starts, ends, strict=True):
            self.store(a, self.let("select", bad, start, end), {})
            self._settle(a.buffer)
        return as_form(self.apply("select", (bad, self.count(extent), constant(0)), INT64))

    def _steps(self, item: Cycle, extent: Affine) -> None:
        """Emit a loop with carries."""
        repeat, memo = item.repeat, {}
        counter = self._open(item)
        if repeat.count is not None and repeat.axis.extent == 1:  # a branch: all in it stays in it
            self._here.floor = self._here.depth
        self.axis_values[repeat.axis] = of(counter)
        for buffer in repeat.writes:
            self._settle(buffer)
        self.block(item.body)
        stop = None if repeat.stop is None else self.load(repeat.stop, memo)
        self.block(item.updates)
        if stop is not None:
            self._here.body.append(Break(stop))
        self._close(counter, extent, "serial")

    def _call(self, item: Call) -> None:
        r = item.routine
        sizes = tuple(self.index(of(s)) for s in r.sizes)
        buffers = (*r.results, *r.operands)
        dtype = (*r.operands, r.buffer)[0].dtype
        self._here.body.append(
            Invoke(r.name, dtype, buffers, sizes, r.code, len(r.results), r.native)
        )
        for buffer in (*r.results, *r.scratch):
            self.forget(buffer)
            self._settle(buffer)
