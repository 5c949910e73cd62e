"""Sizes: an int, or a polynomial with integer coefficients over unknowns.

A `Size` is interned in canonical form, so identity means provably equal: the concatenation of n and
n has size `2*n`, and `reshape(x, (2, -1))` of it has a last size n. What no polynomial can say (a
floor division, the length of a slice, the broadcast of two unknowns) is an `Atom` with arguments.

>>> n = unknown("n")
>>> (n + n) - n is n
True
>>> evaluate(2 * n + 1, {n.atom: 4})
9
"""

import itertools
import threading
import weakref
from collections.abc import Iterable, Mapping

from lazyarr.errors import ShapeError

_lock = threading.Lock()
_atoms: "weakref.WeakValueDictionary[tuple, Atom]" = weakref.WeakValueDictionary()
_sizes: "weakref.WeakValueDictionary[tuple, Size]" = weakref.WeakValueDictionary()
_uids = itertools.count()

SizeLike = "int | Size"


class Atom:
    """An unknown: free (`kind == "dim"`) or computed from other sizes (`EVALUATE[kind](*args)`)."""

    __slots__ = ("kind", "args", "name", "uid", "not_one", "__weakref__")

    def __init__(self, kind: str, args: tuple, name: str, not_one: bool = False):
        self.kind, self.args, self.name, self.uid = kind, args, name, next(_uids)
        self.not_one = not_one  # known not to be 1, so that it broadcasts with equal sizes only

    def __repr__(self) -> str:
        if self.kind == "dim":
            return self.name
        return f"{self.kind}({', '.join(map(str, self.args))})"

    def __reduce__(self):
        if self.kind == "dim":
            return _revive_dim, (self.name, (_PROCESS, self.uid), self.not_one)
        return computed, (self.kind, *self.args)


class Size:
    """A canonical polynomial; `terms` maps monomials (tuples of atoms) to coefficients."""

    __slots__ = ("terms", "__weakref__")

    def __init__(self, terms: tuple):
        self.terms = terms

    @property
    def atom(self) -> "Atom":
        """The atom of a size that is a single unknown."""
        lone = lone_atom(self)
        if lone is None:
            raise ShapeError(f"size {self} is not a single unknown.")
        return lone

    def __add__(self, other):
        return _combine(self, other, 1) if isinstance(other, int | Size) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other):
        return _combine(self, other, -1) if isinstance(other, int | Size) else NotImplemented

    def __rsub__(self, other):
        return _combine(-self, other, 1) if isinstance(other, int | Size) else NotImplemented

    def __neg__(self):
        return self * -1

    def __mul__(self, other):
        return _multiply(self, other) if isinstance(other, int | Size) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return floordiv(self, other) if isinstance(other, int | Size) else NotImplemented

    def __rfloordiv__(self, other):
        return floordiv(other, self) if isinstance(other, int | Size) else NotImplemented

    def __repr__(self) -> str:
        parts = []
        for mono, k in self.terms:
            body = "*".join(map(str, mono))
            parts.append(body if mono and k == 1 else f"{k}*{body}" if mono else str(k))
        return " + ".join(parts).replace("+ -", "- ")

    def __reduce__(self):
        return _canonical, (dict(self.terms),)


def _terms(size: "int | Size") -> dict:
    if isinstance(size, Size):
        return dict(size.terms)
    return {(): int(size)} if size else {}


def _canonical(terms: dict) -> "int | Size":
    kept = {m: k for m, k in terms.items() if k}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    key = tuple(sorted(kept.items(), key=lambda t: ([-len(t[0])], [a.uid for a in t[0]])))
    found = _sizes.get(key)
    if found is None:
        with _lock:
            found = _sizes.get(key)
            if found is None:
                found = _sizes[key] = Size(key)
    return found


def _combine(a: "int | Size", b: "int | Size", sign: int) -> "int | Size":
    out = _terms(a)
    for mono, k in _terms(b).items():
        out[mono] = out.get(mono, 0) + sign * k
    return _canonical(out)


def _multiply(a: "int | Size", b: "int | Size") -> "int | Size":
    out: dict = {}
    for ma, ka in _terms(a).items():
        for mb, kb in _terms(b).items():
            mono = tuple(sorted(ma + mb, key=lambda atom: atom.uid))
            out[mono] = out.get(mono, 0) + ka * kb
    return _canonical(out)


def _of_atom(atom: Atom) -> Size:
    return _canonical({(atom,): 1})  # type: ignore[return-value]


def unknown(name: str = "n", not_one: bool = False) -> Size:
    """Return a fresh unknown size."""
    return _of_atom(Atom("dim", (), name, not_one))


_PROCESS = id(_atoms)  # tells atoms unpickled here from those made here
_revived: "weakref.WeakValueDictionary[tuple, Atom]" = weakref.WeakValueDictionary()


def _revive_dim(name: str, identity: tuple, not_one: bool = False) -> Atom:
    key = (name, identity, not_one)
    with _lock:
        found = _revived.get(key)
        if found is None:
            found = _revived[key] = Atom("dim", (), name, not_one)
        return found


def computed(kind: str, *args: object) -> Atom:
    """Return the interned atom of a function of sizes."""
    key = (kind, *args)
    found = _atoms.get(key)
    if found is None:
        with _lock:
            found = _atoms.get(key)
            if found is None:
                found = _atoms[key] = Atom(kind, args, kind)
    return found


def _slice_length(n: int, start: int | None, stop: int | None, step: int) -> int:
    return len(range(*slice(start, stop, step).indices(n)))


def _slice_start(n: int, start: int | None, stop: int | None, step: int) -> int:
    return slice(start, stop, step).indices(n)[0]


def _broadcast_value(*sizes: int) -> int:
    out = 1
    for n in sizes:
        if n != out and n != 1 and out != 1:
            raise ShapeError(f"sizes {out} and {n} do not broadcast.")
        out = n if out == 1 else out
    return out


EVALUATE = {
    "floordiv": lambda a, b: a // b,
    "max": max,
    "length": _slice_length,
    "start": _slice_start,
    "bc": _broadcast_value,
}


def _apply(kind: str, *args: object) -> "int | Size":
    if not any(isinstance(a, Size) for a in args):
        return EVALUATE[kind](*args)
    return _of_atom(computed(kind, *args))


def floordiv(a: "int | Size", b: "int | Size") -> "int | Size":
    """Return a // b, exact when every coefficient of a is a multiple of b.

    >>> n = unknown("n")
    >>> floordiv(6 * n, 2) is 3 * n
    True
    """
    if a is b:
        return 1
    if isinstance(a, Size):
        if isinstance(b, int) and b and all(k % b == 0 for _, k in a.terms):
            return _canonical({m: k // b for m, k in a.terms})
        if isinstance(b, Size) and len(b.terms) == 1:
            exact = _divide_monomial(a, b)
            if exact is not None:
                return exact
    return _apply("floordiv", a, b)


def _divide_monomial(a: Size, b: Size) -> "int | Size | None":
    (mono, k), out = b.terms[0], {}
    for m, c in a.terms:
        rest = list(m)
        for atom in mono:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % k:
            return None
        out[tuple(rest)] = c // k
    return _canonical(out)


def maximum(a: "int | Size", b: "int | Size") -> "int | Size":
    """Return the larger of two sizes."""
    return a if a is b else _apply("max", a, b)


def slice_of(n: "int | Size", s: slice) -> "tuple[int | Size, int | Size, int]":
    """Return start, length and step of a slice of an axis of size n, clamped as Python's slices.

    >>> slice_of(10, slice(2, 100, 3))
    (2, 3, 3)
    """
    start, stop = s.start, s.stop
    step = 1 if s.step is None else int(s.step)
    if step == 0:
        raise ShapeError("a slice step cannot be 0.")
    if isinstance(n, int) and not isinstance(start, Size) and not isinstance(stop, Size):
        begin, end, step = slice(start, stop, step).indices(n)
        return begin, len(range(begin, end, step)), step
    if start is None and stop is None:
        return (
            (0 if step > 0 else n - 1),
            n if abs(step) == 1 else floordiv(n + (abs(step) - 1), abs(step)),
            step,
        )
    begin = 0 if start is None and step > 0 else _apply("start", n, start, stop, step)
    return begin, _apply("length", n, start, stop, step), step


def product(sizes: Iterable) -> "int | Size":
    """Return the product of sizes."""
    out: int | Size = 1
    for s in sizes:
        out = out * s
    return out


def lone_atom(size: "int | Size") -> Atom | None:
    """Return the atom when a size is exactly one unknown, else None."""
    if isinstance(size, Size) and len(size.terms) == 1:
        mono, k = size.terms[0]
        if k == 1 and len(mono) == 1:
            return mono[0]
    return None


def atoms(size: "int | Size | None") -> set[Atom]:
    """Return the free atoms that a size depends on, through computed ones."""
    found: set[Atom] = set()
    stack = [size]
    while stack:
        s = stack.pop()
        if isinstance(s, Size):
            for mono, _ in s.terms:
                for a in mono:
                    if a.kind == "dim":
                        found.add(a)
                    else:
                        stack.extend(a.args)
    return found


def _atom_value(atom: Atom, env: Mapping[Atom, int]) -> int:
    if atom in env:
        return env[atom]
    if atom.kind == "dim":
        raise ShapeError(f"the size {atom.name} is not known; no input has it as a size.")
    return EVALUATE[atom.kind](*(evaluate(a, env) for a in atom.args))


def evaluate(size: object, env: Mapping[Atom, int]) -> int:
    """Return the int that a size is under an assignment of its free atoms (others pass through)."""
    if not isinstance(size, Size):
        return size  # type: ignore[return-value]
    total = 0
    for mono, k in size.terms:
        for a in mono:
            k *= _atom_value(a, env)
        total += k
    return total


def replace(size: object, mapping: Mapping[Atom, "int | Size"]) -> object:
    """Return a size with atoms replaced, also inside computed ones; others pass through."""
    if not isinstance(size, Size):
        return size
    out: int | Size = 0
    for mono, k in size.terms:
        term: int | Size = k
        for a in mono:
            if a in mapping:
                term = term * mapping[a]
            elif a.kind == "dim":
                term = term * _of_atom(a)
            else:
                make = _CANONICAL.get(a.kind)
                args = [replace(x, mapping) for x in a.args]
                term = term * (make(*args) if make else _apply(a.kind, *args))
        out = out + term
    return out


def broadcast_size(a: "int | Size", b: "int | Size") -> "int | Size":
    """Return the broadcast of two sizes; two unknowns give an atom that is checked when bound."""
    if a is b or a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int):
        if isinstance(b, int):
            raise ShapeError(f"sizes {a} and {b} do not broadcast.")
        return a
    return b if isinstance(b, int) else _broadcast_unknown(a, b)


def _broadcast_unknown(a: Size, b: Size) -> Size:
    """Return the broadcast of unknowns as one flat set of them, so that depth never grows."""
    first, second = lone_atom(a), lone_atom(b)
    if first is not None and second is not None and first.not_one and second.not_one:
        return a if first.uid < second.uid else b
    found: dict[Size, None] = {}
    for size, atom in ((a, first), (b, second)):
        for arg in atom.args if atom is not None and atom.kind == "bc" else (size,):
            found[arg] = None
    if len(found) == 1:
        return a
    return _of_atom(computed("bc", *sorted(found, key=_order)))


def _order(size: Size) -> tuple:
    return tuple((tuple(x.uid for x in mono), k) for mono, k in size.terms)


def broadcast(*shapes: tuple) -> tuple:
    """Return the shape of arrays broadcast together, right aligned.

    >>> broadcast((3, 1), (4,))
    (3, 4)
    """
    rank = max(map(len, shapes), default=0)
    out: list = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for i, s in enumerate(shape):
            if out[offset + i] is not s:
                try:
                    out[offset + i] = broadcast_size(out[offset + i], s)
                except ShapeError:
                    shown = " and ".join(str(tuple(s)) for s in shapes)
                    raise ShapeError(f"shapes {shown} do not broadcast.") from None
    return tuple(out)


def bind(shapes: Iterable[tuple], values: Iterable[tuple]) -> dict[Atom, int]:
    """Return the value of each unknown that stands alone in a shape, from concrete shapes.

    Raises ShapeError where two inputs give one unknown two values.
    """
    env: dict[Atom, int] = {}
    for shape, value in zip(shapes, values, strict=True):
        for size, given in zip(shape, value, strict=True):
            atom = lone_atom(size)
            if atom is not None and env.setdefault(atom, given) != given:
                first = env[atom]
                raise ShapeError(
                    f"size {atom.name} is {first} in one input and {given} in another."
                )
    return env


def _broadcast_all(*sizes: "int | Size") -> "int | Size":
    out: int | Size = 1
    for s in sizes:
        out = broadcast_size(out, s)
    return out


_CANONICAL = {"floordiv": floordiv, "max": maximum, "bc": _broadcast_all}


def unit(atom: Atom) -> Size:
    """Return the size that is exactly one unknown."""
    return _of_atom(atom)
