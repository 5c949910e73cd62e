"""The driver: from a graph to something that runs, on any backend.

A `Program` is one graph for one backend. It is lowered, specialised to the pattern of its sizes,
rewritten, cut where the backend has no way to run a node, and compiled; then called. Checks that
fail rerun the interpreter, which raises the same error everywhere.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from lazyarr.backends import base, sizes, stats
from lazyarr.backends.base import Backend, Executable
from lazyarr.backends.constants import hoist
from lazyarr.backends.interpret import InterpretBackend
from lazyarr.config import options
from lazyarr.errors import BackendError, LazyArrError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.evaluate import apply_reference, bind_found, concrete_params, evaluate
from lazyarr.graph.node import UNSET, Variable, symbol
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.graph.types import TensorType
from lazyarr.passes import pipeline
from lazyarr.xtensor.lower import lower_named, size_checks

base.register_backend("interpret", InterpretBackend)


@dataclass
class Step:
    """A part of a program: compiled, or one node by its reference."""

    graph: Graph
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


@dataclass
class Variant:
    """A program for one pattern of sizes."""

    graph: Graph
    sizes: sizes.Specialised
    constants: list[np.ndarray]
    steps: list[Step]
    slots: int
    outputs: list[int]
    seconds: float = 0.0
    report: str = ""

    def __getstate__(self) -> dict:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Let a program of one step keep its constants, where it can."""
        only = self.steps[0] if len(self.steps) == 1 else None
        whole = only is not None and only.graph is self.graph
        self.direct = only.run if whole and only is not None else None
        self.passed: list = list(self.constants)
        bind = getattr(self.direct, "bind", None)
        if bind is not None:
            first = len(self.graph.inputs) - len(self.constants)
            for i, value in enumerate(self.constants):
                bind(first + i, value)
                self.passed[i] = None

    def __call__(self, arrays: Sequence) -> list[np.ndarray]:
        """Run all steps; a failing check raises what the interpreter raises."""
        if self.direct is not None:
            out, code = self.direct([*arrays, *self.passed])
            return self.failed([*arrays, *self.constants]) if code else out
        given = [*arrays, *self.constants]
        store: list = [*given, *[None] * (self.slots - len(given))]
        env: dict | None = None
        for step in self.steps:
            values = [store[i] for i in step.slots_in]
            for i in step.sized:
                values[i] = np.empty((*values[i].shape, 0), bool)
            if step.picked is not None:
                out = [values[0][step.picked]]
            elif step.run is not None:
                out, code = step.run(values)
                if code:
                    return self.failed(given)
            else:
                out = [_run_reference(step, values)]
                if step.node is not None and "finds_sizes" in step.node.op.facts:
                    env = _sizes_of(self.graph, given) if env is None else env
                    bind_found(step.node, out[0], env)
            for i, value in zip(step.slots_out, out, strict=True):
                store[i] = value
        return _fresh([store[i] for i in self.outputs], given)

    def failed(self, given: Sequence) -> list:
        """Raise the error of the check that failed."""
        evaluate(self.graph, given)
        raise LazyArrError("a check failed while the program ran, but not in the interpreter.")


def _sizes_of(graph: Graph, given: Sequence) -> dict:
    """Return the unknown sizes that inputs tell."""
    known = [(v, a) for v, a in zip(graph.inputs, given, strict=True) if hasattr(v.type, "shape")]
    return shapes.bind((v.type.shape for v, _ in known), (np.shape(a) for _, a in known))


def _run_reference(step: Step, values: Sequence) -> object:
    node = step.node
    pairs = [
        (v.type.shape, np.shape(value))
        for v, value in zip(step.graph.inputs, values, strict=True)
        if hasattr(v.type, "shape")
    ]
    env = shapes.bind((s for s, _ in pairs), (given for _, given in pairs))
    by_node = dict(zip(step.graph.inputs, values, strict=True))
    args = [by_node[x] if x.__class__ is Variable else shapes.evaluate(x, env) for x in node.inputs]
    return apply_reference(node, args, concrete_params(node, env))


def _fresh(outputs: list, given: Sequence) -> list:
    """Copy outputs that alias an input or each other."""
    seen = {id(a) for a in given}
    out = []
    for a in outputs:
        if id(a) in seen or not isinstance(a, np.ndarray) or a.base is not None:
            a = np.array(a)
        seen.add(id(a))
        out.append(a)
    return out


class Program:
    """A graph on a backend, compiled when made and again for each new pattern of sizes."""

    def __init__(self, graph: Graph, backend: str):
        self.backend = base.get_backend(resolve(backend))
        graph = settled(graph)
        self.named_sizes = size_checks(graph.outputs)
        self.graph = lower_named(graph)
        self.atoms = sorted(sizes.free_atoms(self.graph), key=lambda a: a.uid)
        known = set(self.atoms)
        self.tests = [t for t in sizes.derived_tests(self.graph) if shapes.atoms(t) <= known]
        self.variants: dict[tuple, Variant] = {}
        self.lock = threading.Lock()
        self.variant(((), ()))

    def __getstate__(self) -> dict:
        return {**self.__dict__, "backend": self.backend.name, "lock": None}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.backend, self.lock = base.get_backend(state["backend"]), threading.Lock()

    def __call__(self, arrays: Sequence) -> list[np.ndarray]:
        """Return the outputs for concrete inputs of the right dtypes and ranks."""
        if not self.atoms:
            return self.variants[(), ()](arrays)
        env = self.bind(arrays)
        for check in self.named_sizes:
            check.verify(env)
        variant = self.variant(sizes.pattern_of(self.atoms, self.tests, env))
        for equation in variant.sizes.equations:
            equation.verify(env)
        return variant(arrays)

    def launcher(self, returns: str, slow: Callable) -> Callable | None:
        """Return the shortest way to call a program that is one native step, where there is one.

        What it cannot take as it is, and every failing check, goes to `slow`.
        """
        variant = self.variants[(), ()]
        make = getattr(variant.direct, "launcher", None)
        if make is None or self.tests or self.named_sizes:
            return None
        equal, nonzero = variant.sizes.remaining()
        return make(
            lambda code, args: slow(*args),
            equal=equal,
            nonzero=nonzero,
            on_mismatch=slow,
            returns=returns,
            bound=[*[None] * len(self.graph.inputs), *variant.constants],
            reject_one=True,
        )

    def bind(self, arrays: Sequence) -> dict:
        """Return the value of every unknown size."""
        return shapes.bind((v.type.shape for v in self.graph.inputs), (np.shape(a) for a in arrays))

    def variant(self, pattern: tuple) -> Variant:
        """Return the variant of a pattern, compiled at its first use."""
        found = self.variants.get(pattern)
        if found is None:
            with self.lock:
                found = self.variants.get(pattern)
                if found is None:
                    found = self.variants[pattern] = build(self.graph, pattern, self.backend)
        return found

    def fallbacks(self) -> list[str]:
        """Return what runs by its reference in any variant."""
        return [
            s.fallback
            for v in self.variants.values()
            for s in v.steps
            if s.node is not None and s.node.op.name != "pick"
        ]

    def explain(self) -> str:
        """Return what was done: passes, steps, kernels, fallbacks."""
        parts = []
        for pattern, v in self.variants.items():
            ones = ", ".join(a.name for a in pattern[0])
            parts.append(f"backend {self.backend.name}" + (f", size 1: {ones}" if ones else ""))
            parts.append(v.report)
            for i, step in enumerate(v.steps):
                if step.run is not None:
                    parts.append(f"step {i}: compiled\n{step.run.explain()}")
                else:
                    parts.append(f"step {i}: reference fallback {step.fallback}")
        return "\n".join(parts)

    @property
    def source(self) -> str:
        """The generated code of every step."""
        runs = [s.run for v in self.variants.values() for s in v.steps if s.run is not None]
        return "\n".join(r.source for r in runs)


def settled(graph: Graph) -> Graph:
    """Return the graph with nodes that have values already as data."""
    known = [v for v in graph.toposort() if v.expr is not None and v.value is not UNSET]
    mapping = {v: Variable(v.type, None, v.value) for v in known if v not in set(graph.inputs)}
    if not mapping:
        return graph
    return Graph(graph.inputs, substitute(graph.outputs, mapping))


def build(graph: Graph, pattern: tuple, backend: Backend) -> Variant:
    """Specialise, rewrite, cut and compile a positional graph."""
    start = time.perf_counter()
    stats.count("compiles")
    stats.count(f"compiles {backend.name}")
    record: list = []
    spec = sizes.specialise(graph, pattern, lambda g: pipeline.run(g, record=record))
    ready = hoist(spec.graph)
    known = set(ready.inputs)
    leaves = [v for v in ready.toposort() if v.is_data and v not in known]
    ready = Graph([*ready.inputs, *leaves], ready.outputs)
    steps, slots, outputs = cut(ready, backend)
    for step in steps:
        if step.node is None:
            step.run = backend.compile(step.graph)
    seconds = time.perf_counter() - start
    place = graph.outputs[0].where_made() if graph.outputs else ""
    stats.log(f"{backend.name}: {len(ready.toposort())} nodes in {seconds:.3f} s, made at {place}")
    return Variant(
        ready,
        spec,
        [v.value for v in leaves],
        steps,
        slots,
        outputs,
        seconds,
        "\n".join(map(str, record)),
    )


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
    level = _levels(order, native)
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


def _levels(order: Sequence[Variable], native: dict) -> dict[Variable, int]:
    """Number the compiled parts: a node comes after every fallback that it reads."""
    level: dict[Variable, int] = {}
    for v in order:
        found = 0
        for x in v.inputs:
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


def resolve(name: str | None) -> str:
    """Return the backend to use: the option, and for "auto" C where a compiler is found."""
    name = name or options.backend
    if name != "auto":
        return name
    try:
        base.get_backend("c")
    except BackendError:
        return "interpret"
    return "c"
