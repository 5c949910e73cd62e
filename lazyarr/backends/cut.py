"""Cutting a program where a backend cannot follow: compiled parts, single nodes by reference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lazyarr.backends import sizes
from lazyarr.backends.base import Backend, Executable
from lazyarr.graph import dtypes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.traverse import Graph, found_first, substitute
from lazyarr.graph.types import TensorType


@dataclass
class Step:
    """A part of a program: compiled, or one node by its reference."""

    graph: Graph | None
    slots_in: list[int]
    slots_out: list[int]
    run: Executable | None = None
    node: Variable | None = None
    sized: tuple[int, ...] = ()  # inputs of which only the sizes are read
    picked: int | None = None  # which output of a step before this takes

    @property
    def fallback(self) -> str | None:
        """What runs by its reference here, or None."""
        return None if self.node is None else f"{self.node.call} {self.node.type}"

    def __getstate__(self) -> dict:
        """Pickle the node with symbols for its operands, and no graph of what is compiled."""
        state = {**self.__dict__, "graph": None, "node": None}
        if self.node is not None:
            given = [symbol(v.type, v.name) for v in self.graph.inputs]
            mapping = dict(zip(self.graph.inputs, given, strict=True))
            state["graph"] = Graph(given, substitute([self.node], mapping))
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        if self.graph is not None:
            self.node = self.graph.outputs[0]


def cut(graph: Graph, backend: Backend) -> tuple[list[Step], int, list[int]]:
    """Cut a graph into compiled parts and single nodes that the backend does not support."""
    order = [v for v in graph.toposort() if v not in set(graph.inputs)]
    native: dict[Variable, bool] = {}
    for v in order:  # one of several outputs is taken where they are made
        picked = v.inputs[0] if v.op is not None and v.op.name == "pick" else None
        native[v] = backend.supports(v) and native.get(picked, True)
    if all(native.values()) and not _complex_aside(graph, order):
        n_in = len(graph.inputs)
        places = list(range(n_in, n_in + len(graph.outputs)))
        return [Step(graph, list(range(n_in)), places)], n_in + len(places), places
    order, waits = found_first(order, graph.inputs)
    level = _levels(order, native, waits)
    slot = {v: i for i, v in enumerate(graph.inputs)}
    steps = []
    for k in range(max(level.values(), default=-1) + 1):
        part = [v for v in order if native[v] and level[v] == k]
        if part:
            steps.append(_segment(part, order, graph, slot))
        for v in order:
            if not native[v] and level[v] == k:
                given = list(dict.fromkeys(x for x in v.inputs if x.__class__ is Variable))
                if "finds_sizes" not in v.op.facts:
                    given += sizes.tellers([v], given, slot)
                picked = v.params["index"] if v.op.name == "pick" else None
                places = [slot[x] for x in given]
                step = Step(Graph(given, [v]), places, [len(slot)], node=v, picked=picked)
                slot[v] = len(slot)
                steps.append(step)
    return steps, len(slot), [slot[v] for v in graph.outputs]


def _complex_aside(graph: Graph, order: Sequence[Variable]) -> bool:
    """Tell whether a complex input is read by no node: not every backend could take it."""
    odd = {v for v in graph.inputs if getattr(v.type, "dtype", None) in dtypes.COMPLEX}
    return bool(odd) and bool(odd.difference(*(v.inputs for v in order)))


def _levels(order: Sequence[Variable], native: dict, waits: dict) -> dict[Variable, int]:
    """Number the compiled parts: a node comes after every fallback that it reads or waits for."""
    level: dict[Variable, int] = {}
    for v in order:
        found = 0
        for x in (*v.inputs, *waits.get(v, ())):
            if x in level:
                found = max(found, level[x] + (native[v] and not native[x]))
        level[v] = found
    return level


def _segment(part: list, order: list, graph: Graph, slot: dict) -> Step:
    """Make one compiled part: its inputs are known values, its outputs what others read."""
    inside = set(part)
    given = list(
        dict.fromkeys(x for v in part for x in v.inputs if x.__class__ is Variable and x in slot)
    )
    read = {x for v in order if v not in inside for x in v.inputs if x.__class__ is Variable}
    read.update(graph.outputs)
    out = [v for v in part if v in read]
    slots_in = [slot[x] for x in given]
    sized = []
    for v in sizes.tellers(part, given, slot):
        if v.type.dtype.kind == "c":  # backends without complex numbers take its sizes alone
            sized.append(len(given))
            given.append(symbol(TensorType(np.dtype(bool), (*v.type.shape, 0)), "sizes"))
        else:
            given.append(v)
        slots_in.append(slot[v])
    step = Step(Graph(given, out), slots_in, [], sized=tuple(sized))
    for v in out:
        slot[v] = len(slot)
        step.slots_out.append(slot[v])
    return step
