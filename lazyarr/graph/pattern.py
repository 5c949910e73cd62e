"""Patterns: what a rule looks for, written with the ops themselves.

`p.log(p.add(1, x))` is the pattern of `log(1 + x)`: `p` holds every op of the catalogue by name.
Its operands are pattern variables, numbers or patterns. The operands of a commutative op match in
both orders, and a variable that stands twice must match the same node twice.

>>> from lazyarr.graph.node import symbol
>>> from lazyarr.graph.registry import op
>>> from lazyarr.graph.types import TensorType
>>> x, v = var("x"), symbol(TensorType("float64", (3,)), "v")
>>> find(p.log(p.add(1, x)), op.log(op.add(v, 1.0)))
{'x': <v: float64[3]>}
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

from lazyarr.errors import GraphError
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import OPS, get_op

Bindings = dict[str, Any]
Test = Callable[[Any], bool]
NUMBERS = (int, float, complex, bool)


class Pattern:
    """What one operand must look like."""

    def bind(self, value: Any, found: Bindings) -> bool:
        """Tell whether a value matches, adding what pattern variables stand for to `found`."""
        raise NotImplementedError

    def variants(self) -> Iterator["Pattern"]:
        """Yield the pattern with the operands of its commutative ops in every order."""
        yield self


def _keep(name: str | None, value: Any, found: Bindings) -> bool:
    """Record what a name stands for; a second meeting must be the same node or number."""
    if name is None:
        return True
    if name not in found:
        found[name] = value
        return True
    known = found[name]
    return known is value or (known.__class__ in NUMBERS and same_number(known, value))


@dataclass(frozen=True)
class Operand(Pattern):
    """A pattern variable: takes Variables, raw numbers or both, under an optional test."""

    name: str | None = None
    test: Test | None = None
    variables: bool = True
    numbers: bool = True

    def bind(self, value: Any, found: Bindings) -> bool:
        """Match a Variable or a raw number."""
        if not (self.variables if value.__class__ is Variable else self.numbers):
            return False
        if self.test is not None and not self.test(value):
            return False
        return _keep(self.name, value, found)


@dataclass(frozen=True)
class Number(Pattern):
    """One raw number, by value: 0 matches 0 and 0.0, and neither -0.0 nor False."""

    value: int | float | complex | bool

    def bind(self, value: Any, found: Bindings) -> bool:
        """Match a raw number of the same value and sign."""
        return value.__class__ in NUMBERS and same_number(self.value, value)


@dataclass(frozen=True)
class Node(Pattern):
    """An application of an op; `rest` lets more operands follow."""

    op: str
    operands: tuple[Pattern, ...]
    rest: bool = False
    name: str | None = None

    def named(self, name: str) -> "Node":
        """Return the pattern that also binds the matched node to a name."""
        return replace(self, name=name)

    def bind(self, value: Any, found: Bindings) -> bool:
        """Match a node of the op whose operands match in this order."""
        if value.__class__ is not Variable or value.expr is None:
            return False
        call, *inputs = value.expr
        if call.op.name != self.op:
            return False
        if len(inputs) != len(self.operands) and not (
            self.rest and len(inputs) > len(self.operands)
        ):
            return False
        for wanted, x in zip(self.operands, inputs, strict=False):
            if not wanted.bind(x, found):
                return False
        return _keep(self.name, value, found)

    def variants(self) -> Iterator[Pattern]:
        """Yield the pattern with commutative operands in both orders, at every level."""
        swaps = len(self.operands) == 2 and "commutative" in OPS[self.op].facts
        seen = set()
        for operands in itertools.product(*(o.variants() for o in self.operands)):
            for order in (operands, operands[::-1]) if swaps else (operands,):
                if order not in seen:
                    seen.add(order)
                    yield replace(self, operands=order)


@dataclass(frozen=True)
class OfKind(Pattern):
    """Any node of an op of one kind, bound to a name."""

    kind: str
    name: str | None = None

    def bind(self, value: Any, found: Bindings) -> bool:
        """Match a node whose op is of the kind."""
        if value.__class__ is not Variable or value.expr is None:
            return False
        return value.op.kind == self.kind and _keep(self.name, value, found)


def same_number(a: Any, b: Any) -> bool:
    """Tell whether two raw numbers are one value: bools apart, zeros of both signs apart.

    >>> same_number(1, 1.0), same_number(0, -0.0), same_number(1, True)
    (True, False, False)
    """
    if (a.__class__ is bool) != (b.__class__ is bool) or a != b:
        return False
    if a == 0 and a.__class__ is not complex and b.__class__ is not complex:
        return math.copysign(1, a) == math.copysign(1, b)
    return a != 0 or repr(complex(a)) == repr(complex(b))


def var(name: str | None = None, test: Test | None = None) -> Operand:
    """Return a pattern variable that takes any Variable (for which a test holds)."""
    return Operand(name, test, numbers=False)


def number(name: str | None = None, test: Test | None = None) -> Operand:
    """Return a pattern variable that takes a raw Python number (for which a test holds)."""
    return Operand(name, lambda v: v.__class__ in NUMBERS and (test is None or test(v)), False)


def operand(name: str | None = None, test: Test | None = None) -> Operand:
    """Return a pattern variable that takes Variables and raw numbers."""
    return Operand(name, test)


def of_kind(kind: str, name: str | None = None) -> OfKind:
    """Return the pattern of every node of one kind."""
    return OfKind(kind, name)


WILDCARD = Operand()


def as_pattern(value: Any) -> Pattern:
    """Return a pattern as it is, and a number as the pattern that matches it."""
    if isinstance(value, Pattern):
        return value
    if value.__class__ in NUMBERS:
        return Number(value)
    raise GraphError(f"a pattern is made of ops, variables and numbers, not of {value!r}.")


class _Ops:
    """The ops by name, each as a function from operand patterns to a pattern."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Callable[..., Node]:
        if name.startswith("__"):
            raise AttributeError(name)
        if OPS and name not in OPS:
            get_op(name)  # raises, with the near match

        def build(*operands: Pattern | float | EllipsisType) -> Node:
            rest = bool(operands) and operands[-1] is ...
            shown = operands[:-1] if rest else operands
            return Node(name, tuple(as_pattern(o) for o in shown), rest)

        return build


p = _Ops()


def roots(pattern: Pattern, op: Any) -> bool:
    """Tell whether nodes of an op can match the root of a pattern."""
    if isinstance(pattern, Node):
        return bool(pattern.op == op.name)
    return bool(pattern.kind == op.kind) if isinstance(pattern, OfKind) else True


def find(pattern: Pattern, value: Any) -> Bindings | None:
    """Return what the variables of a pattern stand for in a value, None where it does not match."""
    for variant in pattern.variants():
        found: Bindings = {}
        if variant.bind(value, found):
            return found
    return None
