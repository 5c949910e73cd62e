"""Scalars of a function under construction: flat, made once, and placed as far out as they can be.

`Values` keeps the open loops as scopes. `value` turns a scalar expression into an atom, `index` an
affine form, `load` an element of a buffer: what this iteration stored there, or a read.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lazyarr.backends.loop.affine import Affine, Axis, Dynamic, of
from lazyarr.backends.loop.ir import BOOL, INDEX_PRIMS, INT64, Let, Load, Local, constant
from lazyarr.backends.loop.notation import Access, Buffer, Position, accesses, dynamics
from lazyarr.backends.loop.order import DEAR, walk
from lazyarr.backends.loop.schedule import Loop, Placed
from lazyarr.graph import scalar
from lazyarr.graph.scalar import PRIMS, Scalar
from lazyarr.graph.shapes import Size

# Divisors beyond these are scaled before they are inverted: above, below, and the two scales.
RANGE = {
    8: (2.0**1000, 2.0**-1000, 2.0**-100, 2.0**200),
    4: (2.0**100, 2.0**-100, 2.0**-50, 2.0**60),
}
OFTEN = 16  # divisions by one number that are worth its reciprocal
COMMUTATIVE = {"add", "mul", "eq", "ne", "and", "or", "xor", "iadd", "imul"}


def _rank(atom: Scalar) -> tuple:
    """Order the operands of a commutative primitive: locals by age, then constants."""
    return (1, 0) if atom.prim == "const" else (0, atom.args[0].number)


class Scope:
    """A body under construction: the function (depth 0) or one loop."""

    def __init__(self, loop: object, depth: int):
        self.loop, self.depth = loop, depth
        self.body: list = []
        self.memo: dict = {}
        self.forward: dict = {}
        self.flags: dict[int, Scalar] = {}
        self.empty: dict[Scalar, int] = {}  # sizes that must not be 0 where the loop runs
        self.checked: set = set()
        self.vector = isinstance(loop, Loop) and loop.role == "vector"
        self.gathers = False
        self.inverted = False  # a division has become a product
        self.dear = self.vector and any(map(is_dear, loop.items))
        self.divisors: dict[Scalar, None] = {}  # what it divided by, where that is no constant
        self.plain: dict[Scalar, None] | None = None  # factors taken to be finite and not 0
        self.floor = (
            0  # the depth below which nothing goes that is made while this is the innermost
        )


def reciprocal(d: Scalar, make: Callable[..., Scalar]) -> tuple[Scalar, Scalar]:
    """Return a power of two and the reciprocal of its product with a divisor.

    The scale is not 1 where the divisor or its reciprocal is not a normal number, so that no
    quotient overflows or vanishes that would not; 0, infinities and NaN divide as ever.
    `make(primitive, *operands)` makes what they are made of.
    """
    high, low, down, up = (scalar.const(x, d.dtype) for x in RANGE[d.dtype.itemsize])
    one, size = scalar.const(1, d.dtype), make("abs", d)
    scale = make("select", make("lt", size, low), up, one)
    scale = make("select", make("lt", high, size), down, scale)
    return scale, make("div", one, make("mul", d, scale))


def is_dear(item: object) -> bool:
    """Tell whether a statement calls a function as dear as an exponential in its innermost loop."""
    if not isinstance(item, Placed) or not item.loops:
        return False
    dear = [
        e for e in walk([item.statement.value]) if e.prim in PRIMS and PRIMS[e.prim].cost >= DEAR
    ]
    along = item.loops[-1]
    return any(i.coefficient(along) != 0 for a in accesses(*dear) for i in a.index)


def as_form(atom: Scalar) -> Affine:
    """Return an int64 atom as an index."""
    return of(atom.args[0]) if atom.prim == "const" else of(atom)


class Values:
    """The scopes of one function and what is known in them.

    `drop` holds the dimensions of buffers that have no memory. With `twins` a loop may stand twice,
    once for numbers that need care.
    """

    def __init__(
        self, drop: dict[Buffer, tuple[int, ...]], precise: bool = False, twins: bool = True
    ):
        self.drop, self.precise, self.twins = drop, precise, twins
        self.scopes = [Scope(None, 0)]
        self.counter = itertools.count()
        self.axis_values: dict[object, Affine] = {}
        self.homes: dict[Buffer, list[tuple]] = {}
        self.tested = True  # products that absorb are tested
        self.logic: dict[Scalar, Scalar] = {}  # booleans made of booleans, and how

    @property
    def _here(self) -> Scope:
        return self.scopes[-1]

    def _settle(self, buffer: Buffer) -> None:
        """Note that a buffer is written inside the loops that are open now."""
        self.homes.setdefault(buffer, []).append(tuple(s.loop for s in self.scopes[1:]))

    def _local(self, letter: str, depth: int, mutable: bool = False) -> Local:
        number = next(self.counter)
        return Local(f"{letter}{number}", number, depth, mutable)

    # -- values -----------------------------------------------------------------------------------

    def taken(self, root: Scalar, memo: dict[int, Scalar]) -> Scalar:
        """Return the value of a statement; a product without a test has tested factors."""
        if self.tested or root.prim != "absorb":
            return self.value(root, memo)
        self.tested = True
        factors = [self.value(a, memo) for a in root.args]
        self.tested = False
        return self.apply("mul", factors, root.dtype)

    def value(self, root: Scalar, memo: dict[int, Scalar]) -> Scalar:
        """Return the atom of a scalar expression under the current values of its axes."""
        stack = [root]
        while stack:
            e = stack[-1]
            if id(e) in memo:
                stack.pop()
            elif e.prim == "const":
                memo[id(e)] = e
            elif e.prim == "var":
                name = e.args[0]
                index = name.index if isinstance(name, Access) else (name.index,)
                missing = self._missing(index, memo)
                if missing:
                    stack.extend(missing)
                elif isinstance(name, Position):
                    memo[id(e)] = self.index(self.resolve(name.index, memo))
                else:
                    memo[id(e)] = self.load(name, memo)
            elif missing := [a for a in e.args if id(a) not in memo]:
                stack.extend(missing)
            else:
                args = [memo[id(a)] for a in e.args]
                memo[id(e)] = self.apply(e.prim, args, e.dtype)
        return memo[id(root)]

    def _missing(self, index: Iterable[Affine], memo: dict) -> list[Scalar]:
        return [
            key.value
            for i in index
            for key, _ in i.terms
            if isinstance(key, Dynamic) and id(key.value) not in memo
        ]

    def resolve(self, form: Affine, memo: dict) -> Affine:
        """Return an index over counters and locals instead of axes and expressions."""
        if not form.terms:
            return form
        out = Affine((), form.const)
        for key, k in form.terms:
            if isinstance(key, Axis):
                out = out + self.axis_values[key] * k
            elif isinstance(key, Dynamic):
                atom = self.value(key.value, memo)
                out = out + as_form(atom) * k
            else:
                out = out + of(key) * k
        return out

    def let(self, prim: str, *args: Scalar) -> Scalar:
        """Return the atom of a primitive applied to atoms."""
        boolean = prim in PRIMS and PRIMS[prim].result == "bool"
        return self.apply(prim, args, BOOL if boolean else args[-1].dtype)

    def combine(self, monoid: str, a: Scalar, b: Scalar) -> Scalar:
        """Return the combination of two atoms."""
        return self.apply(scalar.MONOIDS[monoid], (a, b), a.dtype)

    def apply(self, prim: str, args: Sequence[Scalar], dtype: np.dtype) -> Scalar:
        """Return the atom of a primitive, folded where all arguments are constants."""
        value = Scalar(prim, tuple(args), dtype)
        if prim in PRIMS and all(a.prim == "const" for a in args):
            return scalar.const(scalar.evaluate(value, {}), dtype)
        if prim in INDEX_PRIMS and all(a.prim == "const" for a in args):
            return constant(INDEX_PRIMS[prim](*(a.args[0] for a in args)))
        if prim == "select" and (args[1] is args[2] or args[0].prim == "const"):
            return args[1] if args[0].prim != "const" or args[0].args[0] else args[2]
        if prim == "select" and args[0] in self.logic:
            return self._select(*args)
        if prim == "cast" and args[0].dtype.kind == "b" and args[0].prim == "var":
            return self.let("select", args[0], scalar.const(1, dtype), scalar.const(0, dtype))
        if prim in ("max", "min") and dtype.kind == "f":
            return self._extreme(prim, *args)
        if prim == "absorb" and not self.tested:
            return self.apply("mul", args, dtype)
        if prim == "absorb" and (self._here.vector or self._has_fixed(args)):
            return self._absorbed(*args)
        if prim == "div" and self._divides_often(*args):
            return self._quotient(*args)
        return self._made(prim, args, dtype)

    def _made(self, prim: str, args: Sequence[Scalar], dtype: np.dtype) -> Scalar:
        """Return the atom of a primitive as it is, made once where its arguments are known."""
        args = sorted(args, key=_rank) if prim in COMMUTATIVE else args
        value = Scalar(prim, tuple(args), dtype)
        depth = self._here.floor
        for a in args:
            if a.prim == "var":
                local = a.args[0]
                depth = max(depth, len(self.scopes) - 1 if local.mutable else local.depth)
        if any(a.prim == "var" and a.args[0].mutable for a in args):
            return self._define(value, depth)
        memo = self.scopes[depth].memo
        found = memo.get(value)
        if found is None:
            found = memo[value] = self._define(value, depth)
            if dtype.kind == "b" and prim in ("and", "or", "not"):
                self.logic[found] = value
        return found

    def _extreme(self, prim: str, a: Scalar, b: Scalar) -> Scalar:
        """Return the larger or smaller of two floats, or their NaN, by comparisons of their own.

        The sum of both orders of comparison is NaN just where an operand is; a test of the operands
        themselves would be merged with the comparison, and then C compilers do not vectorise it.
        """

        def beyond(x: Scalar, y: Scalar, test: str) -> Scalar:
            return self.let(test, y, x) if prim == "max" else self.let(test, x, y)

        if b.prim == "const" and b.args[0] == b.args[0]:
            return self.let("select", beyond(b, a, "le"), b, a)
        if a.prim == "const" and a.args[0] == a.args[0]:
            return self.let("select", beyond(a, b, "lt"), a, b)
        first = self.let("select", beyond(a, b, "lt"), a, b)
        second = self.let("select", beyond(b, a, "lt"), b, a)
        both = self.let("add", first, second)
        return self.let("select", self.let("ne", both, both), both, first)

    def _divides_often(self, x: Scalar, d: Scalar) -> bool:
        """Tell whether a vector loop divides by a number that does not vary along it."""
        if self.precise or not self._here.vector or x.prim == "const" or x.dtype.kind != "f":
            return False
        extent = self._here.loop.extent
        if isinstance(extent, int) and extent < OFTEN:
            return False
        depth = 0 if d.prim == "const" else d.args[0].depth
        changes = d.prim != "const" and d.args[0].mutable
        return not changes and depth < x.args[0].depth == len(self.scopes) - 1

    def _quotient(self, x: Scalar, d: Scalar) -> Scalar:
        """Return x times the reciprocal of d, within an ulp of the quotient.

        A loop of cheap work does so where d is normal, and divides in another loop where it is not.
        One with dear functions scales both factors by a power of two instead: registers are scarce.
        So does one in a large graph, where twins take long to compile.
        """
        self._here.inverted = True
        if d.prim != "const" and not self._here.dear:
            self._here.divisors[d] = None
            return self.let("mul", x, self.let("div", scalar.const(1, d.dtype), d))
        scale, inverse = reciprocal(d, self.let)
        if scale.prim != "const" or scale.args[0] != 1:
            x = self.let("mul", x, scale)
        return self.let("mul", x, inverse)

    def is_normal(self, d: Scalar) -> Scalar:
        """Return whether a divisor and its reciprocal are normal numbers.

        Then no product with the reciprocal overflows or vanishes that the quotient would not.
        """
        high, low, _, _ = RANGE[d.dtype.itemsize]
        size = self.let("abs", d)
        above = self.let("le", scalar.const(low, d.dtype), size)
        return self.let("and", above, self.let("le", size, scalar.const(high, d.dtype)))

    def _absorbed(self, g: Scalar, d: Scalar) -> Scalar:
        """Return a product that is 0 where it would be NaN beside a factor of 0."""
        zero = scalar.const(0, g.dtype)
        product = self.let("mul", g, d)
        for factor in (g, d):
            if self._here.plain is not None and self._is_fixed(factor):
                self._here.plain[factor] = None
                return product
        known = self.let("select", self.let("ne", product, product), zero, product)
        out = self.let("select", self.let("eq", g, zero), known, product)
        return self.let("select", self.let("eq", d, zero), known, out)

    def _has_fixed(self, factors: Sequence[Scalar]) -> bool:
        return self._here.plain is not None and any(map(self._is_fixed, factors))

    def _is_fixed(self, a: Scalar) -> bool:
        """Tell whether an atom does not change in the innermost loop."""
        return a.prim == "var" and not a.args[0].mutable and a.args[0].depth < self._here.depth

    def _select(self, test: Scalar, yes: Scalar, no: Scalar) -> Scalar:
        """Choose by one comparison after the other: C compilers vectorise no logic of booleans."""
        value = self.logic[test]
        if value.prim == "not":
            return self.let("select", value.args[0], no, yes)
        a, b = value.args
        if value.prim == "and":
            return self.let("select", a, self.let("select", b, yes, no), no)
        return self.let("select", a, yes, self.let("select", b, yes, no))

    def _define(self, value: Scalar, depth: int) -> Scalar:
        out = scalar.var(self._local("t", depth), value.dtype)
        self.scopes[depth].body.append(Let(out, value))
        return out

    # -- indices ----------------------------------------------------------------------------------

    def index(self, form: Affine) -> Scalar:
        """Return the int64 atom of an index over counters and locals, outer terms added first."""
        terms = sorted(form.terms, key=lambda t: t[0].args[0].depth)
        total: Scalar | None = None
        if form.const != 0 or not terms:
            total = self.size(form.const)
        for atom, k in terms:
            if k != 1:
                atom = self.apply("imul", (atom, self.size(k)), INT64)
            total = atom if total is None else self.apply("iadd", (total, atom), INT64)
        return total

    def count(self, extent: object) -> Scalar:
        """Return the atom of the extent of an axis: a size, or a number known while running."""
        if isinstance(extent, Dynamic):
            return self.value(extent.value, {})
        return self.index(extent if isinstance(extent, Affine) else of(extent))

    def size(self, size: "int | Size") -> Scalar:
        """Return the atom of a size, computed from the sizes that the caller passes."""
        if not isinstance(size, Size):
            return constant(size)
        total: Scalar | None = None
        for mono, k in size.terms:
            term = constant(k) if k != 1 or not mono else None
            for a in mono:
                factor = self._atom(a)
                term = factor if term is None else self.apply("imul", (factor, term), INT64)
            total = term if total is None else self.apply("iadd", (total, term), INT64)
        return total

    def _atom(self, a) -> Scalar:
        if a.kind == "dim":
            return self._outermost(Scalar("dim", (a,), INT64))
        if a.kind in ("start", "length"):
            n, start, stop, step = a.args
            args = [self.size(n)]
            for part in (start, stop):
                args += [constant(int(part is not None)), self.size(part or 0)]
            return self.apply(f"slice_{a.kind}", [*args, self.size(step)], INT64)
        name = {"floordiv": "ifloordiv", "max": "imax", "bc": "imax"}[a.kind]
        return self.apply(name, [self.size(x) for x in a.args], INT64)

    def _outermost(self, value: Scalar) -> Scalar:
        memo = self.scopes[0].memo
        if value not in memo:
            memo[value] = self._define(value, 0)
        return memo[value]

    # -- memory -----------------------------------------------------------------------------------

    def place(self, access: Access, memo: dict) -> tuple[tuple, Scalar]:
        """Return the resolved index of an access and the atom of its offset."""
        index = tuple(self.resolve(i, memo) for i in access.index)
        placed = Access(access.buffer, index, access.shape)
        return index, self.index(placed.offset(self.drop.get(access.buffer, ())))

    def load(self, access: Access, memo: dict) -> Scalar:
        """Return the atom of an element: what this iteration stored there, or a read."""
        buffer = access.buffer
        index = tuple(self.resolve(i, memo) for i in access.index)
        key = (buffer, access.shape, index)
        for scope in reversed(self.scopes):
            if key in scope.forward:
                return scope.forward[key]
        _, offset = self.place(access, memo)
        depth = max(self._ready(buffer), self._here.floor)
        depth = max(depth, 0 if offset.prim == "const" else offset.args[0].depth)
        scope = self.scopes[depth]
        found = scope.memo.get((buffer, offset))
        if found is None:
            found = scalar.var(self._local("t", depth), buffer.dtype)
            scope.memo[buffer, offset] = found
            scope.gathers |= self._is_gather(access, memo, depth)
            scope.body.append(Load(found, buffer, offset))
        return found

    def _is_gather(self, access: Access, memo: dict, depth: int) -> bool:
        """Tell whether an index of an access is an element that varies in the loop of a depth."""
        places = (memo.get(id(e)) for e in dynamics(access.index))
        return any(a.prim == "var" and a.args[0].depth >= depth for a in places if a is not None)

    def forget(self, buffer: Buffer) -> None:
        """Drop what is known of the elements of a buffer: one of them changes."""
        for scope in self.scopes:
            stale = [k for k in scope.memo if k.__class__ is tuple and k[0] is buffer]
            for key in stale:
                del scope.memo[key]

    def _ready(self, buffer: Buffer) -> int:
        """Return the depth of the innermost open loop that also holds a write of the buffer."""
        open_now = [s.loop for s in self.scopes[1:]]
        depth = 0
        for path in self.homes.get(buffer, ()):
            common = 0
            for a, b in zip(path, open_now, strict=False):
                if a is not b:
                    break
                common += 1
            depth = max(depth, common)
        return depth
