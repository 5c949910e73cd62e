"""Statements -> loop IR: what one iteration computes, and where it goes.

A value that a statement stores and another reads in the same iteration never passes through memory.
A reduction has a register for each of its elements, or is taken in memory, where its elements lie
along a loop inside those that are reduced over.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lazyarr.backends.loop.affine import Affine, Axis, of
from lazyarr.backends.loop.ir import (
    BOOL,
    INT64,
    Accumulate,
    Fail,
    For,
    Init,
    Store,
    Update,
    constant,
)
from lazyarr.backends.loop.notation import Access, Buffer, Statement, accesses, dynamics
from lazyarr.backends.loop.schedule import Cycle, Loop, Placed
from lazyarr.backends.loop.sums import (
    by_length,
    has_rows,
    in_blocks,
    is_long_sum,
    lanes_of,
    rows_in_blocks,
)
from lazyarr.backends.loop.values import Scope, Values
from lazyarr.graph import scalar
from lazyarr.graph.scalar import Scalar

GATHER_LANES = 4  # wider vectors gather more slowly


def indexed_sizes(s: Statement) -> tuple:
    """Return the sizes that may be 0 of axes in which a statement finds places while it runs."""
    found: dict = {}
    for a in (s.target, *accesses(*s.expressions())):
        for i, size in zip(a.index, a.shape, strict=True):
            if dynamics((i,)) and not (isinstance(size, int) and size > 0):
                found[size] = None
    return tuple(found)


class Statements(Values):
    """Emits statements into the loops that are open.

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
        twins: bool = True,
    ):
        super().__init__(drop, precise, twins)
        self.threads, self.by_length = threads, by_length
        self.many, self.make = many, make
        self.loop_values: dict[Loop, Affine] = {}
        self.registers: dict[tuple, list[Scalar]] = {}
        self.plain: set[Statement] = set()  # statements whose products are taken without tests
        self.indexed: tuple = ()  # of the statement at hand, see `indexed_sizes`
        self.again = False  # sums are taken again, with tests
        self.tiling = False  # short rows are taken a vector of rows at a time
        self.rows: dict[Loop, int] = {}  # iterations of a loop that its body does at once

    # -- loops, opened and closed ------------------------------------------------------------------

    def _open(self, loop: object) -> Scalar:
        depth = len(self.scopes)
        self.scopes.append(Scope(loop, depth))
        self._here.floor = self.scopes[-2].floor
        return scalar.var(self._local("i", depth), INT64)

    def _close(self, counter: Scalar, extent: object, kind: str, rows: str = "any") -> None:
        """Close a loop; `rows` says which lengths are left to it: any, long or short ones."""
        scope = self.scopes.pop()
        count = extent if isinstance(extent, Scalar) else self.count(extent)
        above = self.scopes[-1]
        for size, code in scope.empty.items():  # no place in it is right: not even one is read
            steps = self.let("select", self.let("lt", size, constant(1)), count, constant(0))
            above.body.append(Fail(self.let("lt", constant(0), steps), code))
        changed = {n.local: n.monoid for n in scope.body if isinstance(n, Accumulate)}
        if None in changed.values() or any(isinstance(n, For) for n in scope.body):
            kind = "serial"
        reductions = tuple(changed.items()) if kind == "simd" else ()
        lanes = GATHER_LANES if scope.gathers else 0
        node = For(counter, count, kind, scope.body, reductions, lanes)
        outermost, make = len(self.scopes) == 1, self._maker()
        if is_long_sum(node) and (outermost or rows == "long"):
            above.body += in_blocks(node, make)
        elif self.by_length and not outermost and (is_long_sum(node) or has_rows(node)):
            if rows == "any" or is_long_sum(node):
                above.body += by_length(node, make)
            else:
                node.lanes = node.lanes or (lanes_of(node) if rows == "short" else 0)
                above.body.append(node)
        elif kind == "serial" and isinstance(scope.loop, Loop):
            above.body += rows_in_blocks(node, self._summed(scope.loop), make)
        else:
            above.body.append(node)
        for code, flag in scope.flags.items():
            above.body.append(Fail(self.let("ne", flag, constant(0)), code))

    def _summed(self, loop: Loop) -> list[Scalar]:
        """Return the registers that a loop around others adds up in."""
        own = {id(n) for n in loop.starts if n.statement.combine == "add" and loop.role == "outer"}
        found = ((k, r) for k, r in self.registers.items() if own and k[0] in own)
        return [r[0] for _, r in found]

    def _maker(self) -> Callable:
        depth = len(self.scopes) - 1
        return lambda letter, mutable: self._local(letter, depth, mutable)

    def _append(self, counter: Scalar, count: Scalar, kind: str = "serial") -> None:
        """Close a loop; one that never runs is dropped."""
        scope = self.scopes.pop()
        if count.prim != "const" or count.args[0] > 0:
            self._here.body.append(For(counter, count, kind, scope.body))

    # -- statements --------------------------------------------------------------------------------

    def _combinations(self, axes: Sequence[Axis]) -> Iterator[tuple]:
        return itertools.product(*(range(a.extent) for a in axes))

    def _bind(self, node: Placed) -> None:
        for axis, loop in zip(node.loops, node.path, strict=True):
            if loop in self.loop_values:
                self.axis_values[axis] = self.loop_values[loop]

    def _unroll(self, axes: Sequence[Axis], values: Sequence[int]) -> None:
        self.axis_values.update(zip(axes, map(of, values), strict=True))

    def _kept(self, node: Placed) -> tuple[list[Axis], list[Axis]]:
        """Return the axes of a reduction's elements: unrolled ones, and those of inner loops."""
        s, first = node.statement, node.first_reduced()
        inner = [a for a in node.loops[first:] if a not in s.reduced and a is not s.running]
        return [a for a in node.unrolled if a not in s.reduced], inner

    def _shifts(self, node: Placed) -> list[dict]:
        """Return the values of axes for each row that a statement adds at once."""
        out: list[dict] = [{}]
        for axis, loop in zip(node.loops, node.path, strict=True):
            rows = self.rows.get(loop, 1)
            if rows > 1:
                out = [{axis: self.loop_values[loop] + q} for q in range(rows)]
        return out

    def _statement(self, node: Placed) -> None:
        s = node.statement
        self.tested = s not in self.plain
        self.indexed = indexed_sizes(s) if s.checks else ()
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

    # -- reductions --------------------------------------------------------------------------------

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

    # -- memory ------------------------------------------------------------------------------------

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
        scope.empty.update((self.count(size), code) for size in self.indexed)
        scope.body.append(
            Accumulate(flag, "or", self.let("select", holds, constant(0), constant(1)))
        )
