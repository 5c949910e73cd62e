"""The tree of loops -> loop IR.

Every scalar is made once, in the outermost loop where all it depends on is known: so values that do
not vary along a loop leave it, and equal expressions of different statements in a loop are one. A
value that a statement stores and another reads in the same iteration never passes through memory.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lazyarr.backends.loop import threads
from lazyarr.backends.loop.affine import Affine, Axis, of
from lazyarr.backends.loop.ir import (
    BOOL,
    INT64,
    Accumulate,
    Break,
    Fail,
    For,
    Init,
    Invoke,
    Load,
    Store,
    Update,
    constant,
)
from lazyarr.backends.loop.notation import Access, Buffer, Statement
from lazyarr.backends.loop.optimistic import plain_statements, plain_sums, scalar_carries
from lazyarr.backends.loop.schedule import Call, Cycle, Loop, Placed
from lazyarr.backends.loop.sums import by_length, has_rows, in_blocks, is_long_sum, lanes_of
from lazyarr.backends.loop.values import OFTEN, Scope, Values, as_form
from lazyarr.graph import scalar, shapes
from lazyarr.graph.scalar import Scalar

FLOAT64 = np.dtype("float64")
GATHER_LANES = 4  # wider vectors gather more slowly
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


class Emitter(Values):
    """Emits one function.

    `many` are buffers written by several statements, `drop` the dimensions without memory, and
    `make` makes further temporaries.
    """

    def __init__(
        self,
        many: set[Buffer],
        drop: dict[Buffer, tuple[int, ...]],
        make: Callable,
        precise: bool = False,
        threads: bool = False,
        by_length: bool = True,
    ):
        super().__init__(drop, precise)
        self.threads, self.by_length = threads, by_length
        self.many, self.make = many, make
        self.loop_values: dict[Loop, Affine] = {}
        self.registers: dict[tuple, list[Scalar]] = {}
        self.plain: set[Statement] = set()  # statements whose products are taken without tests
        self.again = False  # sums are taken again, with tests
        self.rows: dict[Loop, int] = {}  # iterations of a loop that its body does at once

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

    def _open(self, loop: object) -> Scalar:
        depth = len(self.scopes)
        self.scopes.append(Scope(loop, depth))
        self._here.floor = self.scopes[-2].floor
        return scalar.var(self._local("i", depth), INT64)

    def _close(self, counter: Scalar, extent: object, kind: str) -> None:
        scope = self.scopes.pop()
        count = extent if isinstance(extent, Scalar) else self.count(extent)
        above = self.scopes[-1]
        changed = {n.local: n.monoid for n in scope.body if isinstance(n, Accumulate)}
        if None in changed.values() or any(isinstance(n, For) for n in scope.body):
            kind = "serial"
        reductions = tuple(changed.items()) if kind == "simd" else ()
        lanes = GATHER_LANES if scope.gathers else 0
        node = For(counter, count, kind, scope.body, reductions, lanes)
        outermost, make = len(self.scopes) == 1, self._maker()
        if outermost and is_long_sum(node):
            above.body += in_blocks(node, make)
        elif self.by_length and not outermost and (is_long_sum(node) or has_rows(node)):
            above.body += by_length(node, make)
        else:
            above.body.append(node)
        for code, flag in scope.flags.items():
            above.body.append(Fail(self.let("ne", flag, constant(0)), code))

    def _maker(self) -> Callable:
        depth = len(self.scopes) - 1
        return lambda letter, mutable: self._local(letter, depth, mutable)

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
        self._iterate(loop, total)
        self.plain = known
        if shared:
            self._share(loop, work)
        if tried:
            self._repeat(loop, total)
        for node in loop.starts:
            self._finish(node)

    def _iterate(self, loop: Loop, total: Scalar) -> None:
        if sums_rows(loop):
            self._jam(loop, total)
        elif loop.role in ("vector", "strided"):
            self._innermost(loop, total, "simd" if loop.role == "vector" else "serial")
        else:
            counter = self._open(loop)
            self.loop_values[loop] = of(counter)
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

    def _kept(self, node: Placed) -> tuple[list[Axis], list[Axis]]:
        """Return the axes of a reduction's elements: unrolled ones, and those of inner loops."""
        s, first = node.statement, node.first_reduced()
        inner = [a for a in node.loops[first:] if a not in s.reduced and a is not s.running]
        return [a for a in node.unrolled if a not in s.reduced], inner

    def _share(self, loop: Loop, work: Scalar) -> None:
        """Let the loop just emitted run on several threads where its iterations are independent."""
        private = threads.private_buffers(loop, self.drop)
        node = next(n for n in reversed(self._here.body) if isinstance(n, For))
        if private is not None and threads.splits(node):
            node.work, node.private = work, tuple(sorted(private, key=lambda b: b.name))

    def _innermost(self, loop: Loop, total: Scalar, kind: str) -> None:
        """Emit an innermost loop, and where it absorbs by a fixed factor another for odd factors.

        The first takes the product as it is: right where the factor is finite and not 0.
        """
        counter = self._open(loop)
        self._here.plain = None if self.again else {}
        self.loop_values[loop] = of(counter)
        self.block(loop.items)
        factors = list(self._here.plain or ())
        rows = self.by_length and total.prim != "const" and len(self.scopes) > 2
        if not factors and self._here.inverted and rows:
            self._by_length(loop, counter, total)
            return
        if not factors:
            self._close(counter, total, kind)
            return
        scope = self.scopes.pop()
        fine: Scalar | None = None
        for a in factors:
            good = self.let("isfinite", a), self.let("ne", a, scalar.const(0, a.dtype))
            for test in good:
                fine = test if fine is None else self.let("and", fine, test)
        plain = self.apply("select", (fine, total, constant(0)), INT64)
        odd = self.apply("select", (fine, constant(0), total), INT64)
        self.scopes.append(scope)
        self._close(counter, plain, kind)
        counter = self._open(loop)
        self.loop_values[loop] = of(counter)
        self.block(loop.items)
        self._close(counter, odd, kind)

    def _by_length(self, loop: Loop, counter: Scalar, total: Scalar) -> None:
        """Close a loop over rows that multiplies by reciprocals; short rows divide, in another."""
        scope = self.scopes.pop()
        few = self.let("lt", total, constant(OFTEN))
        some = self.let("select", few, total, constant(0))
        many = self.let("select", few, constant(0), total)
        self.scopes.append(scope)
        self.by_length = False
        self._close(counter, many, "simd")
        self.precise = True
        counter = self._open(loop)
        self.loop_values[loop] = of(counter)
        self.block(loop.items)
        self._close(counter, some, "simd")
        self.precise, self.by_length = False, True
        node = next(n for n in reversed(self._here.body) if isinstance(n, For))
        if has_rows(node):
            node.lanes = node.lanes or lanes_of(node)

    def _jam(self, loop: Loop, total: Scalar) -> None:
        """Add several rows at a time to a row in memory, then those that are left."""
        groups = self.apply("ifloordiv", (total, constant(JAM)), INT64)
        done = self.apply("imul", (groups, constant(JAM)), INT64)
        rest = self.apply("iadd", (total, self.apply("imul", (done, constant(-1)), INT64)), INT64)
        for rows, count, first in ((JAM, groups, of(0)), (1, rest, as_form(done))):
            counter = self._open(loop)
            self.loop_values[loop] = first + of(counter) * rows
            self.rows[loop] = rows
            self.block(loop.items)
            self._append(counter, count)

    def _shifts(self, node: Placed) -> list[dict]:
        """Return the values of axes for each row that a statement adds at once."""
        out: list[dict] = [{}]
        for axis, loop in zip(node.loops, node.path, strict=True):
            rows = self.rows.get(loop, 1)
            if rows > 1:
                out = [{axis: self.loop_values[loop] + q} for q in range(rows)]
        return out

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

    def _append(self, counter: Scalar, count: Scalar, kind: str = "serial") -> None:
        """Close a loop; one that never runs is dropped."""
        scope = self.scopes.pop()
        if count.prim != "const" or count.args[0] > 0:
            self._here.body.append(For(counter, count, kind, scope.body))

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

    # -- statements -------------------------------------------------------------------------------

    def _combinations(self, axes: Sequence[Axis]) -> Iterator[tuple]:
        return itertools.product(*(range(a.extent) for a in axes))

    def _bind(self, node: Placed) -> None:
        for axis, loop in zip(node.loops, node.path, strict=True):
            if loop in self.loop_values:
                self.axis_values[axis] = self.loop_values[loop]

    def _unroll(self, axes: Sequence[Axis], values: Sequence[int]) -> None:
        self.axis_values.update(zip(axes, map(of, values), strict=True))

    def _statement(self, node: Placed) -> None:
        s = node.statement
        self.tested = s not in self.plain
        self._bind(node)
        kept = [a for a in node.unrolled if a not in s.reduced]
        folded = [a for a in node.unrolled if a in s.reduced]
        for combo in self._combinations(kept):
            self._unroll(kept, combo)
            value: Scalar | None = None
            for inner, shift in itertools.product(self._combinations(folded), self._shifts(node)):
                self._unroll(folded, inner)
                self.axis_values.update(shift)
                memo: dict[int, Scalar] = {}
                for holds, code in s.checks:
                    self._check(self.value(holds, memo), code)
                new = self.taken(s.value, memo)
                value = new if value is None else self.combine(s.combine, value, new)
                if s.argument is not None:
                    self._argument(node, new, self.value(s.argument, memo))
            if value is not None and s.argument is None:
                self._deliver(node, combo, value, memo)
        self._settle(s.buffer)

    def _deliver(self, node: Placed, combo: tuple, value: Scalar, memo: dict) -> None:
        """Bring the value of one element to a register, to memory, or both."""
        s = node.statement
        if s.running is not None:
            (register,) = self.registers[id(node), ()]
            self._here.body.append(Accumulate(register, s.combine, value))
            self.store(s.target, self._frozen(register), memo)
        elif node.first_reduced() is None:
            if s.update:
                self.update(s.target, s.combine, value, memo)
            else:
                self.store(s.target, value, memo)
        elif (id(node), combo) in self.registers:
            self._accumulate(s.combine, self.registers[id(node), combo], value)
        else:
            self.update(s.target, s.combine, value, memo)

    def _accumulate(self, monoid: str, registers: list[Scalar], value: Scalar) -> None:
        if len(registers) == 1:
            self._here.body.append(Accumulate(registers[0], monoid, value))
            return
        nan = self.apply("cast", [self.let("ne", value, value)], registers[1].dtype)
        self._here.body.append(Accumulate(registers[0], f"raw{monoid}", value))
        self._here.body.append(Accumulate(registers[1], "or", nan))

    def _argument(self, node: Placed, value: Scalar, place: Scalar) -> None:
        """Keep the first extreme (or the first NaN) and its position."""
        best, where = self.registers[id(node), ()]
        less = (best, value) if node.statement.combine == "argmax" else (value, best)
        better = self.let("lt", *less)
        if value.dtype.kind == "f":
            fresh = self.let("eq", best, best)
            nan = self.let("and", self.let("ne", value, value), fresh)
            better = self.let("or", better, nan)
        first = self.let("lt", where, constant(0))
        better = self.let("or", better, first)
        new_place = self.let("select", better, place, where)
        new_best = self.let("select", better, value, best)
        self._here.body.append(Accumulate(where, None, new_place))
        self._here.body.append(Accumulate(best, None, new_best))

    def _begin(self, node: Placed) -> None:
        """Make the registers of a reduction, or fill its elements with the identity."""
        s = node.statement
        self._bind(node)
        dtype = s.value.dtype
        start = scalar.const(scalar.identity(s.combine, dtype), dtype)
        kept, inner = self._kept(node)
        if s.argument is not None:
            pair = [self._register(start), self._register(constant(-1))]
            self.registers[id(node), ()] = pair
        elif not inner:
            for combo in self._combinations(kept):
                registers = [self._register(start)]
                if s.combine in ("max", "min") and dtype.kind == "f" and s.running is None:
                    flag = np.dtype(f"int{8 * dtype.itemsize}")  # as wide: one vector holds both
                    registers.append(self._register(scalar.const(0, flag)))
                self.registers[id(node), combo] = registers
        else:
            self._fill(node, inner, kept, start)

    def _register(self, start: Scalar) -> Scalar:
        name = self._local("a", len(self.scopes) - 1, mutable=True)
        out = scalar.var(name, start.dtype)
        self._here.body.append(Init(out, start))
        return out

    def _fill(
        self,
        node: Placed,
        inner: list[Axis],
        kept: list[Axis],
        start: Scalar,
        act: Callable | None = None,
    ) -> None:
        """Store into every element of a reduction, or do something else there."""
        opened = []
        for axis in inner:
            self.count(axis.extent)
            counter = self._open(None)
            self.axis_values[axis] = of(counter)
            opened.append((counter, axis))
        for combo in self._combinations(kept):
            self._unroll(kept, combo)
            if act is None:
                self.store(node.statement.target, start, {}, forward=False)
            else:
                act()
        for k, (counter, axis) in enumerate(reversed(opened)):
            self._close(counter, axis.extent, "serial" if k else "simd")

    def _finish(self, node: Placed) -> None:
        """Bring the registers of a reduction to its elements."""
        s = node.statement
        if s.running is not None:
            return
        self._bind(node)
        kept = [a for a in node.unrolled if a not in s.reduced]
        for combo in self._combinations(kept):
            registers = self.registers.get((id(node), combo))
            if registers is None:
                continue
            self._unroll(kept, combo)
            if s.argument is not None:
                value = self._frozen(registers[1])
            else:
                value = self._frozen(registers[0])
                if len(registers) == 2:
                    nan = scalar.const(float("nan"), value.dtype)
                    found = self.apply("cast", [self._frozen(registers[1])], BOOL)
                    value = self.let("select", found, nan, value)
            self.store(s.target, value, {})
        self._settle(s.buffer)

    def _frozen(self, register: Scalar) -> Scalar:
        """Return the value that a register has now."""
        return self._define(Scalar("copy", (register,), register.dtype), len(self.scopes) - 1)

    # -- memory -----------------------------------------------------------------------------------

    def store(self, target: Access, value: Scalar, memo: dict, forward: bool = True) -> None:
        """Append a store, and remember the value for readers in the same iteration."""
        index, offset = self.place(target, memo)
        self._here.body.append(Store(target.buffer, offset, value))
        if target.buffer in self.many:
            self.forget(target.buffer)
        if forward and target.buffer not in self.many:
            self._here.forward[target.buffer, target.shape, index] = value

    def update(self, target: Access, monoid: str, value: Scalar, memo: dict) -> None:
        """Append an update of an element in memory."""
        _, offset = self.place(target, memo)
        self._here.body.append(Update(target.buffer, offset, monoid, value))
        self.forget(target.buffer)

    def _check(self, holds: Scalar, code: int) -> None:
        """Fail with a code where a condition does not hold: at once, or after a vector loop."""
        if holds.prim == "const" and holds.args[0]:
            return
        depth = holds.args[0].depth if holds.prim == "var" else 0
        loops = [k for k, s in enumerate(self.scopes) if isinstance(s.loop, Cycle)]
        depth = max(depth, self._here.floor, *loops[-1:])  # a loop may take no step
        scope = self.scopes[depth]
        if (holds, code) in scope.checked:
            return
        scope.checked.add((holds, code))
        if not scope.vector:
            scope.body.append(Fail(self.apply("not", (holds,), BOOL), code))
            return
        flag = scope.flags.get(code)
        if flag is None:
            flag = scalar.var(self._local("a", depth - 1, mutable=True), INT64)
            scope.flags[code] = flag
            self.scopes[depth - 1].body.append(Init(flag, constant(0)))
        scope.body.append(
            Accumulate(flag, "or", self.let("select", holds, constant(0), constant(1)))
        )
