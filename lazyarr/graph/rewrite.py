"""Rewriting: rules as values, sets of them, and the walk that applies a set until nothing changes.

A rule is a pattern, a small pure function and a docstring that is the equation. The walk goes from
the leaves up, tries at each node the rules of its op, simplifies what a rule made before it goes
on, and keeps one node for equal applications, so that a rule sees `x` twice where `x` stands twice.
It enters the bodies of loops. Its cost grows with the number of nodes, not with their depth.

    RULES = RuleSet("stabilize")

    @RULES.rule(p.log(p.add(1, x)))
    def log_one_plus(x):
        '''log(1 + x) -> log1p(x)'''
        return op.log1p(x)

The function receives what it names in its signature (`node` is the matched node) and returns a
Variable, or None to decline. A result of another type is refused; so is one that would lose a check
that the matched operands carry. Both raise while `strict` is on, and warn otherwise.
"""

import contextlib
import inspect
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lazyarr.errors import GraphError, near_match
from lazyarr.graph.node import Call, Variable
from lazyarr.graph.pattern import Bindings, Pattern, roots
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph

Make = Callable[..., Variable | None]
_PATTERN_DEPTH = 6  # how far below a match a rule may drop nodes that carry no check
_strict = [bool(os.environ.get("LAZYARR_STRICT"))]


class RewriteWarning(UserWarning):
    """A rule failed and was skipped."""


@contextlib.contextmanager
def strict(on: bool = True) -> Iterator[None]:
    """Let failing rules raise (or not) within a block; LAZYARR_STRICT sets it for a process."""
    before, _strict[0] = _strict[0], on
    try:
        yield
    finally:
        _strict[0] = before


@dataclass(frozen=True)
class Rule:
    """An equation that may be applied from left to right."""

    name: str
    pattern: Pattern
    make: Make
    doc: str
    tags: frozenset[str] = frozenset()
    wants: tuple[str, ...] = ()

    def __call__(self, node: Variable, found: Bindings) -> Variable | None:
        """Return the right-hand side for a match, None where the rule declines."""
        given = {**found, "node": node}
        return self.make(**{name: given[name] for name in self.wants})


class RuleSet:
    """Rules by name. Sets are joined by `|` and narrowed by `select`, by name or tag."""

    def __init__(self, name: str, rules: Iterable[Rule] = ()):
        self.name = name
        self.version = 0  # grows with every change, for whoever caches what the rules made
        self._rules: dict[str, Rule] = {}
        self._by_op: dict[Any, tuple[tuple[Pattern, Rule], ...]] = {}
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> Rule:
        """Add a rule; a name can be taken once."""
        if rule.name in self._rules:
            raise GraphError(f"{self.name} has a rule {rule.name!r} already; choose another name.")
        if not rule.doc:
            raise GraphError(f"rule {rule.name!r} needs a docstring, its equation.")
        self._rules[rule.name] = rule
        self._by_op = {}
        self.version += 1
        return rule

    def rule(self, pattern: Pattern, *tags: str) -> Callable[[Make], Make]:
        """Decorate the function of a rule: its name and docstring are the rule's."""

        def declare(make: Make) -> Make:
            wants = tuple(inspect.signature(make).parameters)
            name = make.__name__
            self.add(Rule(name, pattern, make, inspect.getdoc(make) or "", frozenset(tags), wants))
            return make

        return declare

    def remove(self, name: str) -> None:
        """Take a rule out again."""
        self[name]
        del self._rules[name]
        self._by_op = {}
        self.version += 1

    def select(self, *wanted: str, without: Iterable[str] = ()) -> "RuleSet":
        """Return the rules with any of these names or tags (none given: all), without others."""

        def has(rule: Rule, words: Iterable[str]) -> bool:
            return any(w == rule.name or w in rule.tags for w in words)

        unwanted = frozenset(without)
        kept = [r for r in self if (not wanted or has(r, wanted)) and not has(r, unwanted)]
        return RuleSet(self.name, kept)

    def for_op(self, op: Any) -> tuple[tuple[Pattern, Rule], ...]:
        """Return the patterns that a node of an op can match, each with its rule."""
        found = self._by_op.get(op)
        if found is None:
            found = self._by_op[op] = tuple(
                (variant, rule)
                for rule in self
                if roots(rule.pattern, op)
                for variant in rule.pattern.variants()
            )
        return found

    def __or__(self, other: "RuleSet") -> "RuleSet":
        return RuleSet(f"{self.name} | {other.name}", [*self, *other])

    def __iter__(self) -> Iterator[Rule]:
        return iter(list(self._rules.values()))

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def __getitem__(self, name: str) -> Rule:
        if name not in self._rules:
            hint = near_match(name, self._rules)
            raise GraphError(f"{self.name} has no rule named {name!r}.{hint}")
        return self._rules[name]

    def __repr__(self) -> str:
        return f"<{len(self)} rules: {self.name}>"


def application_key(node: Variable) -> tuple[object, ...]:
    """Return what makes two nodes the same: the call and its operands.

    Variables are compared by identity, raw numbers by class and spelling: 1, 1.0 and True
    differ, as 0.0 and -0.0 do. Sizes are themselves: two unknown ones may have one name.
    """
    inputs = [
        x if x.__class__ is Variable or x.__class__ is Size else (x.__class__, repr(x))
        for x in node.inputs
    ]
    return (node.call, *inputs)


def rebuilt(node: Variable, call: Any, inputs: Sequence[Any]) -> Variable:
    """Return a node with another call or inputs; its type is inferred again where it may change."""
    same = call is node.call and all(
        (a.type is b.type) if a.__class__ is b.__class__ is Variable else a is b
        for a, b in zip(node.inputs, inputs, strict=True)
    )
    out = Variable(node.type, (call, *inputs)) if same else call.op.apply(call, tuple(inputs))
    out.name, out.site = node.name, node.site
    return out


def can_fail(node: Variable) -> bool:
    """Tell whether computing a node may raise: its op has a check or is a library routine."""
    if node.op.kind == "control" and "body" in node.params:
        return any(v.expr is not None and can_fail(v) for v in node.params["body"].toposort())
    return node.op.check is not None or node.op.kind == "library"


@dataclass
class Walk:
    """One application of a rule set to graphs that share nodes; `fired` counts by rule."""

    rules: RuleSet
    fired: "Counter[str]" = field(default_factory=Counter)
    done: dict[Variable, Variable] = field(default_factory=dict)
    _next: dict[Variable, Variable] = field(default_factory=dict)
    _known: dict[tuple[object, ...], Variable] = field(default_factory=dict)
    _calls: dict[Call, Call] = field(default_factory=dict)
    _checked: set[Variable] = field(default_factory=set)
    _fuel: int = 1000

    def graph(self, graph: Graph) -> Graph:
        """Return a graph with the same inputs and simplified outputs."""
        order = graph.toposort()
        self._fuel += 20 * len(order)
        self.done.update({v: v for v in graph.inputs})
        for v in order:
            self._settle(v)
        outputs = [self.done[v] for v in graph.outputs]
        if all(a is b for a, b in zip(outputs, graph.outputs, strict=True)):
            return graph
        return Graph(graph.inputs, outputs)

    def _settle(self, root: Variable) -> None:
        """Find the simplest form of a node and of all that rules put in its place."""
        done, stack = self.done, [root]
        while stack:
            v = stack[-1]
            if v in done:
                stack.pop()
                continue
            if v.expr is None:
                done[v] = v
                continue
            follow = self._next.get(v)
            if follow is not None:
                if follow not in done:
                    stack.append(follow)
                    continue
                done[v] = self._known[application_key(v)] = done[follow]
                continue
            waiting = [x for x in v.expr if x.__class__ is Variable and x not in done]
            if waiting:
                stack.extend(reversed(waiting))
            else:
                self._step(v)

    def _step(self, v: Variable) -> None:
        """Rebuild a node on simplified inputs, or find its twin, or apply the first rule to it."""
        done = self.done
        call = self._call(v.call)
        inputs = [done[x] if x.__class__ is Variable else x for x in v.inputs]
        if call is not v.call or any(a is not b for a, b in zip(inputs, v.inputs, strict=True)):
            self._next[v] = rebuilt(v, call, inputs)
            return
        key = application_key(v)
        twin = self._known.get(key)
        if twin is not None:
            done[v] = twin
            return
        new = self._rewritten(v)
        if new is not None:
            self._next[v] = new
            return
        done[v] = self._known[key] = v
        if can_fail(v) or any(x in self._checked for x in inputs if x.__class__ is Variable):
            self._checked.add(v)

    def _call(self, call: Any) -> Any:
        """Return a call with the graphs among its parameters simplified."""
        if call.op.kind != "control":
            return call
        found = self._calls.get(call)
        if found is None:
            params = tuple((k, self._body(x)) for k, x in call.params)
            found = self._calls[call] = Call(call.op, params)
            self._calls[found] = found
        return found

    def _body(self, value: object) -> object:
        if not isinstance(value, Graph):
            return value
        inner = self.graph(value)
        types = [v.type for v in value.outputs]
        return inner if [v.type for v in inner.outputs] == types else value

    def _rewritten(self, v: Variable) -> Variable | None:
        """Return what the first rule that matches makes of a node."""
        for pattern, rule in self.rules.for_op(v.op):
            found: Bindings = {}
            if not pattern.bind(v, found):
                continue
            new = self._result(rule, v, found)
            if new is not None and new is not v:
                self.fired[rule.name] += 1
                return new
        return None

    def _result(self, rule: Rule, v: Variable, found: Bindings) -> Variable | None:
        if self._fuel <= 0:
            return None
        try:
            new = rule(v, found)
        except Exception as error:
            _report(f"rule {rule.name!r} failed on {v!r}: {error}", error)
            return None
        if new is None or new is v:
            return None
        if new.__class__ is not Variable or new.type is not v.type:
            kind = new.type if new.__class__ is Variable else type(new).__name__
            _report(f"rule {rule.name!r} turns {v!r} into {kind}; it must keep the type.")
            return None
        fresh = _fresh(new, v.seq)
        for made in fresh:
            made.site = v.site
        if not self._keeps_checks(v, new, fresh):
            return None
        self._fuel -= 1
        if not self._fuel:
            _report(f"the rules of {self.rules.name} do not come to an end on {v!r}.")
        return new

    def _keeps_checks(self, v: Variable, new: Variable, fresh: list[Variable]) -> bool:
        """Tell whether every operand of a node that may raise is still read by its result."""
        guarded = [x for x in v.inputs if x.__class__ is Variable and x in self._checked]
        if not guarded:
            return True
        read = {x for made in fresh for x in made.inputs if x.__class__ is Variable} | {new}
        return all(self._kept(x, read, _PATTERN_DEPTH) for x in guarded)

    def _kept(self, x: Variable, read: set[Variable], depth: int) -> bool:
        """Tell whether a node is read, or cannot raise and all its operands that may are read."""
        if x in read:
            return True
        if not depth or x.expr is None or can_fail(x):
            return False
        below = [y for y in x.inputs if y.__class__ is Variable and y in self._checked]
        return all(self._kept(y, read, depth - 1) for y in below)


def _fresh(root: Variable, mark: int) -> list[Variable]:
    """Return the nodes below a result that are younger than the node it replaces."""
    found, stack = [], [root]
    seen: set[Variable] = set()
    while stack:
        v = stack.pop()
        if v in seen or v.seq <= mark:
            continue
        seen.add(v)
        found.append(v)
        stack.extend(x for x in v.inputs if x.__class__ is Variable)
    return found


def _report(problem: str, cause: Exception | None = None) -> None:
    if _strict[0]:
        raise GraphError(problem) from cause
    warnings.warn(problem, RewriteWarning, stacklevel=2)


def rewrite(graph: Graph, rules: RuleSet) -> Graph:
    """Return a graph to which no rule of a set applies any more, equal applications merged."""
    return Walk(rules).graph(graph)
