"""The driver: from a graph to something that runs, on any backend.

A `Program` is one graph for one backend. It is lowered, specialised to the pattern of its sizes,
rewritten, cut where the backend has no way to run a node, and compiled; then called. What that made
of a structure is kept on disk (`store.py`), and a structure that is known there skips all of it.
Checks that fail rerun the interpreter, which raises the same error everywhere.
"""

import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lazyarr.backends import base, sizes, stats, store
from lazyarr.backends.base import Backend
from lazyarr.backends.constants import constants_of, lift_data, split
from lazyarr.backends.cut import Step, cut
from lazyarr.backends.interpret import InterpretBackend
from lazyarr.backends.layouts import Layouts
from lazyarr.config import options
from lazyarr.errors import BackendError, LazyArrError
from lazyarr.graph import shapes
from lazyarr.graph.evaluate import apply_reference, bind_found, concrete_params, evaluate
from lazyarr.graph.node import UNSET, Variable
from lazyarr.graph.shapes import Atom
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.passes import pipeline
from lazyarr.xtensor.lower import lower_named, size_checks

base.register_backend("interpret", InterpretBackend)

ALL = ((), ())  # the pattern in which no unknown size is 1


@dataclass
class Outline:
    """What a program must know of its graph to choose a variant for a call."""

    shapes: list[tuple | None]  # of the inputs
    atoms: list[Atom]
    tests: list  # computed sizes of which it matters whether they are 1
    named_sizes: list  # sizes of named dims that must agree

    def bind(self, arrays: Sequence) -> dict[Atom, int]:
        """Return the value of every unknown size."""
        given = zip(self.shapes, arrays, strict=True)
        known = [(s, np.shape(a)) for s, a in given if s is not None]
        return shapes.bind((s for s, _ in known), (found for _, found in known))


@dataclass
class Variant:
    """A program for one pattern of sizes, linked to its constants."""

    outline: Outline  # the unknown sizes that this variant speaks of
    sizes: sizes.Conditions
    recipe: Graph  # from the data of the graph to the constants of the program
    steps: list[Step]
    slots: int
    outputs: list[int]
    whole: bool  # one compiled step that returns the outputs
    seconds: float = 0.0
    report: str = ""
    constants: list = field(default_factory=list)
    fail: Callable | None = None  # raises the error of a check that failed

    def __getstate__(self) -> dict:
        return {**self.__dict__, "constants": [], "passed": [], "direct": None, "fail": None}

    def link(self, values: Sequence, fail: Callable) -> "Variant":
        """Compute the constants from data; a program of one step keeps them, where it can."""
        self.fail = fail
        self.constants = constants_of(self.recipe, values)
        self.direct = self.steps[0].run if self.whole else None
        self.passed: list = list(self.constants)
        bind = getattr(self.direct, "bind", None)
        if bind is not None:
            first = len(self.outline.shapes)
            for i, value in enumerate(self.constants):
                bind(first + i, value)
                self.passed[i] = None
        return self

    def __call__(self, arrays: Sequence) -> list[np.ndarray]:
        """Run all steps; a failing check raises what the interpreter raises."""
        if self.direct is not None:
            out, code = self.direct([*arrays, *self.passed])
            return self.failed(arrays) if code else out
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
                    return self.failed(arrays)
            else:
                out = [_run_reference(step, values)]
                if "finds_sizes" in step.node.op.facts:
                    env = self.outline.bind(arrays) if env is None else env
                    bind_found(step.node, out[0], env)
            for i, value in zip(step.slots_out, out, strict=True):
                store[i] = value
        return _fresh([store[i] for i in self.outputs], given)

    def failed(self, arrays: Sequence) -> list:
        """Raise the error of the check that failed."""
        self.fail(arrays)
        raise LazyArrError("a check failed while the program ran, but not in the interpreter.")


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
        if isinstance(a, list | tuple | dict | str):  # of a type from outside
            a = copy.copy(a)
        elif id(a) in seen or not isinstance(a, np.ndarray) or a.base is not None:
            a = np.array(a)
        seen.add(id(a))
        out.append(a)
    return out


class Program:
    """A graph on a backend, compiled when made and again for each new pattern of sizes.

    `stored=False` looks at nothing that is kept on disk, for who needs the plan of the program.
    `donated` are inputs whose arrays a launcher may overwrite and return.
    """

    def __init__(
        self, graph: Graph, backend: str, *, stored: bool = True, donated: tuple[int, ...] = ()
    ):
        self.backend = base.get_backend(resolve(backend))
        self.recorded, self.donated = settled(graph), donated
        self.name = store.name_of(self.backend, self.recorded, donated) if stored else None
        self.variants: dict[tuple, Variant] = {}
        self.lock = threading.Lock()
        found = store.find(self._entry(ALL), Variant)
        if found is None:
            self.outline = self._live[2]
            self.variant(ALL)
        else:
            self.outline = found.outline
            self.variants[ALL] = found.link(self._data, self._complain)

    def __getstate__(self) -> dict:
        state = {**self.__dict__, "backend": self.backend.name, "lock": None, "name": None}
        return {k: v for k, v in state.items() if k not in ("_live", "_lifted", "graph", "layouts")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.backend, self.lock = base.get_backend(state["backend"]), threading.Lock()
        for variant in self.variants.values():
            variant.link(self._data, self._complain)

    # -- what is made of the graph, where it is not known from elsewhere -------------------------

    @cached_property
    def graph(self) -> Graph:
        """The positional graph."""
        return lower_named(self.recorded)

    @cached_property
    def _lifted(self) -> tuple[Graph, list]:
        """The graph with its data as inputs, and that data."""
        return lift_data(self.recorded)

    @property
    def _data(self) -> list:
        return self._lifted[1]

    @cached_property
    def _live(self) -> tuple[Graph, int, Outline]:
        """The positional graph with its data as inputs, how many these are, and its outline."""
        lifted, data = self._lifted
        graph = lower_named(lifted)
        given = graph.inputs[: len(graph.inputs) - len(data)]
        atoms = sizes.input_atoms(graph)
        tests = [t for t in sizes.derived_tests(graph) if shapes.atoms(t) <= set(atoms)]
        inputs = [getattr(v.type, "shape", None) for v in given]
        return graph, len(data), Outline(inputs, atoms, tests, size_checks(lifted.outputs))

    def _complain(self, arrays: Sequence) -> None:
        """Raise what is wrong with a call, found by the graph as it was recorded."""
        graph, _, outline = self._live
        env = outline.bind(arrays)
        for check in outline.named_sizes:
            check.verify(env)
        pattern = sizes.pattern_of(outline.atoms, outline.tests, env)
        spec = sizes.specialise(graph, pattern, pipeline.run)
        for equation in spec.equations:
            equation.verify(env)
        evaluate(spec.graph, [*arrays, *self._data])

    # -- calling ---------------------------------------------------------------------------------

    @property
    def atoms(self) -> list[Atom]:
        """The unknown sizes of the inputs."""
        return self.outline.atoms

    @property
    def tests(self) -> list:
        """Computed sizes of which it matters whether they are 1."""
        return self.outline.tests

    @property
    def named_sizes(self) -> list:
        """The sizes of named dims that must agree."""
        return self.outline.named_sizes

    def __call__(self, arrays: Sequence) -> list[np.ndarray]:
        """Return the outputs for concrete inputs of the right dtypes and ranks."""
        found = self.layouts.find(arrays) if self.layouts is not None else None
        if found is not None:
            program, views = found
            try:
                return program(views)
            except LazyArrError:  # told below, of the inputs as they are
                pass
        if not self.outline.atoms:
            return self.variants[ALL](arrays)
        return self.chosen(arrays)(arrays)

    @cached_property
    def layouts(self) -> Layouts | None:
        """The programs for inputs that are not C-contiguous, where the backend gains by them."""
        enough = getattr(self.backend, "relayout", 0)
        foreign = any(s is None for s in self.outline.shapes)  # types from outside
        if not enough or self.named_sizes or self.donated or foreign:
            return None
        return Layouts(lambda: self.graph, lambda g: Program(g, self.backend.name), enough)

    def chosen(self, arrays: Sequence) -> Variant:
        """Return the variant for the sizes of arrays; raise where they do not fit."""
        outline = self.outline
        env = outline.bind(arrays)
        try:
            for check in outline.named_sizes:
                check.verify(env)
            variant = self.variant(sizes.pattern_of(outline.atoms, outline.tests, env))
            if variant.outline is not outline:
                values = [env[a] for a in outline.atoms]
                env = dict(zip(variant.outline.atoms, values, strict=True))
            for equation in variant.sizes.equations:
                equation.verify(env)
        except LazyArrError:
            if self.name is not None:  # what is kept names the sizes and places of another run
                self._complain(arrays)
            raise
        return variant

    def launcher(self, returns: str, slow: Callable, trust: bool = False) -> Callable | None:
        """Return the shortest way to call a program that is one native step, where there is one.

        What it cannot take as it is, and every failing check, goes to `slow`. With `trust` dtypes,
        layouts and sizes are not looked at.
        """
        variant = self.variants[ALL]
        make = getattr(variant.direct, "launcher", None)
        if make is None or self.tests or self.named_sizes or (self.donated and not self.takes_out):
            return None
        equal, nonzero = variant.sizes.remaining()
        return make(
            lambda code, args: slow(*args),
            equal=equal,
            nonzero=nonzero,
            on_mismatch=slow,
            returns=returns,
            bound=[*[None] * len(self.recorded.inputs), *variant.constants],
            reject_one=True,
            trust=trust,
            donated=self.donated,
        )

    @property
    def takes_out(self) -> bool:
        """Whether the launcher takes arrays for the results and knows of donated inputs."""
        return getattr(self.variants[ALL].direct, "takes_out", False)

    def bind(self, arrays: Sequence) -> dict:
        """Return the value of every unknown size."""
        return self.outline.bind(arrays)

    def variant(self, pattern: tuple) -> Variant:
        """Return the variant of a pattern, compiled at its first use."""
        key = self._numbered(pattern)
        found = self.variants.get(key)
        if found is None:
            with self.lock:
                found = self.variants.get(key)
                if found is None:
                    found = self.variants[key] = self._made(key)
        return found

    def _numbered(self, pattern: tuple) -> tuple:
        """Return a pattern with unknown sizes by their place."""
        if pattern == ALL:
            return ALL
        place = {a: i for i, a in enumerate(self.outline.atoms)}
        ones, fixed = pattern
        return tuple([place[a] for a in ones]), tuple(sorted((place[a], n) for a, n in fixed))

    def _entry(self, key: tuple) -> str | None:
        """Return the name under which a variant is kept."""
        return None if self.name is None else store.part_of(self.name, key)

    def _made(self, key: tuple) -> Variant:
        """Return the variant that is kept for a pattern, or build and keep it."""
        found = store.find(self._entry(key), Variant) if key != ALL else None
        if found is None:
            graph, n_data, outline = self._live
            ones, fixed = key
            atoms = outline.atoms
            pattern = tuple([atoms[i] for i in ones]), tuple([(atoms[i], n) for i, n in fixed])
            found = build(graph, pattern, self.backend, n_data, outline, self.donated)
            store.keep(self._entry(key), found)
        return found.link(self._data, self._complain)

    def fallbacks(self) -> list[str]:
        """Return what runs by its reference in any variant, and what loops call back in Python."""
        found = []
        for step in (s for v in self.variants.values() for s in v.steps):
            if step.node is not None and step.node.op.name != "pick":
                found.append(step.fallback)
            found += [f"{name}, called back" for name in getattr(step.run, "callbacks", ())]
        return found

    def explain(self) -> str:
        """Return what was done: passes, steps, kernels, fallbacks."""
        parts = []
        for (ones, _), v in self.variants.items():
            names = ", ".join(self.outline.atoms[i].name for i in ones)
            parts.append(f"backend {self.backend.name}" + (f", size 1: {names}" if names else ""))
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


def build(
    graph: Graph,
    pattern: tuple,
    backend: Backend,
    n_data: int,
    outline: Outline,
    donated: tuple[int, ...] = (),
) -> Variant:
    """Specialise, rewrite, cut and compile a positional graph whose last inputs are data."""
    start = time.perf_counter()
    stats.count("compiles")
    stats.count(f"compiles {backend.name}")
    record: list = []
    with base.collector_off():
        spec = sizes.specialise(graph, pattern, lambda g: pipeline.run(g, record=record))
        ready, recipe = split(spec.graph, n_data)
        steps, slots, outputs = cut(ready, backend)
    whole = len(steps) == 1 and steps[0].graph is ready
    given = {"donated": donated} if donated and whole and hasattr(backend, "donates") else {}
    for step in steps:
        if step.node is None:
            step.run = backend.compile(step.graph, **given)
    seconds = time.perf_counter() - start
    place = graph.outputs[0].where_made() if graph.outputs else ""
    stats.log(f"{backend.name}: {len(ready.toposort())} nodes in {seconds:.3f} s, made at {place}")
    report = "\n".join(map(str, record))
    conditions = spec.conditions()
    return Variant(outline, conditions, recipe, steps, slots, outputs, whole, seconds, report)


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
