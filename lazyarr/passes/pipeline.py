"""The pipeline: every pass between a recorded graph and a backend, in the only order there is.

Recorded graphs go through `PIPELINE` before they are compiled, and through `INTERPRETED` before
they are interpreted, so that a value that overflows in one tier does not in the other.
"""

import importlib.metadata
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from lazyarr.errors import ArgumentError
from lazyarr.graph.rewrite import RuleSet, Walk
from lazyarr.graph.traverse import Graph
from lazyarr.passes.algebra import ALGEBRA
from lazyarr.passes.composites import COMPOSITES
from lazyarr.passes.fold import FOLD
from lazyarr.passes.foreign import share_calls
from lazyarr.passes.loops import loops
from lazyarr.passes.masks import MASKS
from lazyarr.passes.movement import MOVEMENT
from lazyarr.passes.regroup import REGROUP
from lazyarr.passes.stabilize import STABILIZE
from lazyarr.xtensor.lower import lower_named

OFF = frozenset({"fast_math"})


@dataclass(frozen=True)
class RulePass:
    """A pass that applies rule sets together until none of their rules applies."""

    name: str
    sets: tuple[RuleSet, ...]
    off: frozenset[str] = OFF

    def rules(self) -> RuleSet:
        """Return the rules that are switched on."""
        versions = tuple(rules.version for rules in self.sets)
        known = _chosen.get(self)
        if known is None or known[0] != versions:
            on = [
                r for s in self.sets for r in s if r.name not in self.off and not r.tags & self.off
            ]
            known = _chosen[self] = (versions, RuleSet(self.name, on))
        return known[1]


@dataclass(frozen=True)
class GraphPass:
    """A pass that is a function from graph to graph."""

    name: str
    function: Callable[[Graph], Graph]


Pass = RulePass | GraphPass
_chosen: dict[RulePass, tuple[tuple[int, ...], RuleSet]] = {}


@dataclass
class Step:
    """What one pass did."""

    name: str
    seconds: float
    before: int
    after: int
    fired: "Counter[str]" = field(default_factory=Counter)

    def __str__(self) -> str:
        rules = ", ".join(f"{k} {n}" for k, n in self.fired.most_common())
        size = f"{self.before} -> {self.after} nodes"
        return (
            f"{self.name:<12} {self.seconds * 1e3:8.2f} ms  {size}{'  ' + rules if rules else ''}"
        )


ADDED = RuleSet("added")  # rules from outside, see `use_rules`
SIMPLIFY = RulePass(
    "simplify", (FOLD, ALGEBRA, MOVEMENT, REGROUP, STABILIZE, MASKS, ADDED), OFF | {"composite"}
)
SHARE = GraphPass("share_calls", share_calls)
ENTRY_POINTS = "lazyarr.passes"  # in which packages name rule sets and passes of theirs
_passes: list[GraphPass] = []  # passes from outside, see `use_pass`


def _passed(graph: Graph) -> Graph:
    """Return a graph after the passes from outside."""
    for one in _passes:
        graph = one.function(graph)
    return graph


OUTSIDE = GraphPass("outside", _passed)

PIPELINE: tuple[Pass, ...] = (
    GraphPass("lower_named", lower_named),
    RulePass("stabilize", (STABILIZE,)),  # before composites hide what it looks for
    RulePass("composites", (COMPOSITES,)),
    OUTSIDE,
    SIMPLIFY,
    GraphPass("loops", loops),
    SIMPLIFY,  # the bodies of joined loops
    SHARE,
)
INTERPRETED: tuple[Pass, ...] = (*PIPELINE[:2], SHARE)


def run(graph: Graph, passes: Iterable[Pass] = PIPELINE, record: list[Step] | None = None) -> Graph:
    """Return a graph after the passes; `record` receives a `Step` for each of them."""
    for one in passes:
        start, before = time.perf_counter(), graph
        fired: Counter[str] = Counter()
        if isinstance(one, RulePass):
            walk = Walk(one.rules())
            graph, fired = walk.graph(graph), walk.fired
        else:
            graph = one.function(graph)
        if record is not None:
            seconds = time.perf_counter() - start
            sizes = len(before.toposort()), len(graph.toposort())
            record.append(Step(one.name, seconds, *sizes, fired))
    return graph


def fingerprint(passes: Iterable[Pass] = PIPELINE) -> tuple[object, ...]:
    """Return what a program made by passes depends on: changes when a rule is added or switched."""
    return tuple(
        (one.name, one.off, tuple(rules.version for rules in one.sets))
        if isinstance(one, RulePass)
        else (one.name, *(p.name for p in _passes if one is OUTSIDE))
        for one in passes
    )


def use_rules(rules: RuleSet | str, *wanted: str) -> None:
    """Add rules from outside to the pipeline, all of a set or those with a name or tag.

    A text is the name of an entry point of an installed package. What is compiled from now on is
    simplified by the rules too; `ADDED.remove(name)` takes one out.
    """
    found = _entry(rules, RuleSet) if isinstance(rules, str) else rules
    for rule in found.select(*wanted):
        ADDED.add(rule)


def use_pass(one: GraphPass | str) -> None:
    """Run a pass from outside on what is compiled from now on, once composites are expanded.

    A text is the name of an entry point of an installed package; `drop_pass` takes a pass out.
    """
    found = _entry(one, GraphPass) if isinstance(one, str) else one
    if found.name not in [p.name for p in _passes]:
        _passes.append(found)


def drop_pass(name: str) -> None:
    """Take a pass from outside out again."""
    _passes[:] = [p for p in _passes if p.name != name]


def _entry(name: str, kind: type) -> Any:
    """Return what an installed package makes known under a name."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
        found = entry.load()
        if isinstance(found, kind):
            return found
        raise ArgumentError(f"{entry.value} is no {kind.__name__} but {found!r}.")
    raise ArgumentError(
        f"no installed package has an entry point {name!r} in the group {ENTRY_POINTS!r}."
    )


def switched(
    passes: Iterable[Pass], on: Iterable[str] = (), off: Iterable[str] = ()
) -> tuple[Pass, ...]:
    """Return passes with rules switched on or off by name or tag.

    >>> fast = switched(PIPELINE, on=["fast_math"])
    """
    more, fewer = frozenset(off), frozenset(on)
    return tuple(
        replace(one, off=(one.off | more) - fewer) if isinstance(one, RulePass) else one
        for one in passes
    )
