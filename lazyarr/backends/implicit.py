"""Implicit use: numbers are asked of expressions whose leaves all have values.

A structure is interpreted when first seen and compiled when seen again (tier "auto"), or at once
when its work is large. Values are kept on the nodes asked for, and on every node that a live handle
or a later expression holds, so that nothing is computed twice.
"""

import gc
import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from lazyarr.backends import stats, store, tiers
from lazyarr.backends.driver import Program, resolve
from lazyarr.backends.structure import (
    NUMBERS,
    Expression,
    as_argument,
    generalise,
    key_of,
    number_word,
    pending,
    phantoms,
)
from lazyarr.config import Options, get_options
from lazyarr.errors import BackendError, ConcretizationError
from lazyarr.graph import dtypes
from lazyarr.graph import node as nodes_module
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import UNSET, Variable, describe_site, set_evaluator
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType
from lazyarr.passes import pipeline
from lazyarr.xtensor.types import XTensorType

LARGE = 5_000_000  # element operations beyond which a structure is compiled at first sight

HISTORY = 2_000  # evaluations whose expressions are kept for derivatives
DEPTH = 500  # operations recorded on values before they are computed unasked

MANY = 50  # structures compiled at one place before a warning

_compiles: dict[str, int] = {}
_lock = threading.Lock()

# What a compiled program takes of a number as it is; of others it takes an array.
_AS_IT_IS = {
    float: (dtypes.float64, dtypes.float32),
    int: (dtypes.int64, dtypes.float64),
    bool: (dtypes.bool_,),
}


class Entry:
    """A compiled structure and the shortest way to call it."""

    def __init__(self, expression: Expression, backend: str):
        self.general = generalise(expression)
        self.program = Program(self.general.graph, backend)
        self.fast = self.program.launcher("list", lambda *args: self.program(args))
        self.by_shape = getattr(self.program.backend, "by_shape", False)
        self.sizes_seen: set[tuple] = set()

    def __call__(self, expression: Expression) -> list:
        """Return the values of the nodes of an expression."""
        values = self.general.arguments(expression)
        if self.fast is not None:
            return self.fast(*values)
        arrays = [np.asarray(v) for v in values]
        if self.by_shape and get_options().tier == "auto":
            sizes = tuple([a.shape for a in arrays])  # a new set of them compiles at second sight
            if sizes not in self.sizes_seen:
                self.sizes_seen.add(sizes)
                return _interpret(expression)
        return self.program(arrays)

    def plan(self, expression: Expression) -> tuple | None:
        """Return how a walker finds the arguments in an expression of this structure.

        For each argument three words: a node, its operand (0: its value), and 0 for what is taken
        as it is or the place of a dtype; then the dtypes, and the nodes that hold sizes.
        """
        if self.fast is None or expression.exact:
            return None
        words: list[int] = []
        wanted: list[np.dtype] = []
        for slot in self.general.slots:
            place = 0
            if slot.operand is not None:
                x = expression.exprs[expression.order[slot.node]][slot.operand]
                if slot.dtype not in _AS_IT_IS.get(x.__class__, ()):
                    wanted.append(slot.dtype)
                    place = len(wanted)
            words += (slot.node, slot.operand or 0, place)
        return self.fast, tuple(words), tuple(wanted), tuple(self.general.sized)


class Table:
    """The structures met under some options: what was seen, what was compiled."""

    def __init__(self, backend: str):
        self.backend = backend
        self.seen: set = set()
        self.failed: set = set()  # what the backend could not compile
        self.programs: dict[object, Entry] = {}
        self.plans: dict[object, tuple] = {}  # of the programs that a walker can call


_tables: dict[tuple, Table] = {}
_current: tuple[Options | None, Table | None] = None, None


def _table() -> Table | None:
    """Return the table of the options in force, None where nothing is compiled."""
    global _current
    found = get_options()
    last, table = _current
    if found is not last:
        backend = "interpret" if found.tier == "interpret" else resolve(None)
        table = None
        if backend != "interpret":
            key = backend, found.precise, found.threads, found.checks
            table = _tables.setdefault(key, Table(backend))
        _current = found, table
    return table


def compute_nodes(nodes: Sequence[Variable]) -> list[np.ndarray]:
    """Compute nodes whose leaves have values, keep their values, and return them."""
    missing = [v for v in dict.fromkeys(nodes) if v.value is UNSET]
    if missing:
        _permit()
        _force(missing)
    return [v.value for v in nodes]


def _force(missing: list[Variable]) -> None:
    """Compute and publish; an exception publishes nothing."""
    table = _table()
    if table is not None and _walk is not None and _walk(missing, table.plans):
        stats.count_hit()
        return
    expression = pending(missing)
    expression.nodes = (*missing, *held_elsewhere(expression, missing))
    values = _interpret(expression) if table is None else _run(expression, table)
    history = -1 + min([0, *(v.depth for v in expression.values)])
    for v, value in zip(expression.nodes, values, strict=True):
        if isinstance(value, np.ndarray | np.generic):
            value = np.asarray(value)
            value.flags.writeable = False
            if value.nbytes >= nodes_module.TRACKED:
                nodes_module.track(value)
        v.value = value
        v.depth = history
        if history < -HISTORY:
            v.expr = None


def _run(expression: Expression, table: Table) -> list:
    key = key_of(expression)
    entry = table.programs.get(key)
    if entry is not None:
        stats.count_hit()
        return entry(expression)
    found = get_options()
    if key in table.failed:
        return _interpret(expression)
    stats.count("keys")
    stats.count("misses")
    name = None
    if found.tier == "auto":
        first, small = _first_sight(key, table), _work(expression) < LARGE
        if first or found.background:
            name = tiers.disk_name(expression, table.backend)
            known = store.known(name)
            if found.background and not known:
                if first:
                    tiers.WORKER.submit(lambda: _compiled(key, expression, table, name))
                return _interpret(expression)
            if small and not known:
                return _interpret(expression)
    try:
        entry = _compiled(key, expression, table, name)
    except (BackendError, OSError) as error:
        if found.backend != "auto":
            raise
        _give_up(key, table, error)
        return _interpret(expression)
    return entry(expression)


def _give_up(key: object, table: Table, error: Exception) -> None:
    """Leave a structure to the interpreter, where the backend was not chosen by name."""
    with _lock:
        table.failed.add(key)
    warnings.warn(
        f"an expression is interpreted, which is slower, as the backend {table.backend!r} failed: "
        f"{error}",
        RuntimeWarning,
        stacklevel=2,
    )


def _compiled(key: object, expression: Expression, table: Table, name: str | None) -> Entry:
    """Compile a structure, publish it, and note on disk that it was."""
    _note_compile()
    entry = Entry(expression, table.backend)
    _use_native(entry)
    with _lock:
        entry = table.programs.setdefault(key, entry)
        plan = entry.plan(expression)
        if plan is not None:
            table.plans.setdefault(key, plan)
    store.keep(name or tiers.disk_name(expression, table.backend), "compiled")
    return entry


def _note_compile() -> None:
    """Warn when one place in the user's code keeps compiling new structures."""
    place = describe_site(nodes_module.site())
    with _lock:
        _compiles[place] = _compiles.get(place, 0) + 1
        many = _compiles[place] == MANY
    if many:
        warnings.warn(
            f"{place} has compiled {MANY} different structures. Something static changes each time "
            "(an axis, a dtype, the number of operations); make it an argument of a `function`, or "
            'set_options(tier="interpret").',
            stacklevel=2,
        )


def _first_sight(key: object, table: Table) -> bool:
    with _lock:
        first = key not in table.seen
        table.seen.add(key)
        return first


def _work(expression: Expression) -> int:
    return sum(math.prod(v.type.shape) for v in expression.exprs if isinstance(v.type, TensorType))


def _interpret(expression: Expression) -> list:
    """Run the references, after the rules that keep values from overflowing."""
    stats.count("interpretations")
    inputs = expression.inputs
    graph = pipeline.run(Graph(inputs, expression.nodes), pipeline.INTERPRETED)
    return evaluate(graph, [expression.values[v] for v in inputs])


# -- the walker of compiled code -------------------------------------------------------------------

_walk: Callable[[list, dict], bool] | None = None  # does what _force does where a plan is known


def _use_native(entry: Entry) -> None:
    """Let the backend install compiled code for recording and walking, where it has some."""
    make = getattr(entry.program.backend, "recorder", None)
    if make is not None and not nodes_module.has_native():
        nodes_module.set_native(make())


def _install_walker(native: ModuleType | None) -> None:
    global _walk
    if native is None:
        _walk = None
        return
    native.set_walker(
        plain=TensorType,
        named=XTensorType,
        call=nodes_module.Call,
        bakes=OPS["pow"],
        number_word=number_word,
        numbers=NUMBERS,
        as_argument=as_argument,
        phantoms=phantoms,
        track=nodes_module.track,
        tracked=nodes_module.TRACKED,
        history=HISTORY,
    )
    _walk = native.force


# -- what else is worth keeping --------------------------------------------------------------------


def held_elsewhere(expression: Expression, asked: Sequence[Variable]) -> list[Variable]:
    """Return pending nodes that something outside refers to: a live handle, a later node."""
    uses, exprs, count = expression.uses, expression.exprs, sys.getrefcount
    skip = set(asked)
    return [
        v
        for v in expression.order
        if v in exprs
        and count(v) - uses[v] > _baseline
        and v not in skip
        and exprs[v][0].op.kind != "creation"
        and not isinstance(v.type, TupleType)
    ]


def _measure_baseline() -> int:
    """References to a node that is held by its consumer and by `held_elsewhere` alone."""
    global _baseline
    t = TensorType("float64", ())
    leaf = Variable(t, None, np.zeros(()))
    add = nodes_module.OPS["add"]
    top = add(add(leaf, leaf), leaf)
    for guess in range(1, 12):
        _baseline = guess
        if not held_elsewhere(pending([top]), [top]):
            return guess
    return 1_000_000  # reference counts say nothing here: keep only what is asked for


_baseline = 0
_baseline = _measure_baseline()


# -- seeing and forbidding -------------------------------------------------------------------------


class _Watch(threading.local):
    forbidden = False
    relieving = False
    forces: list | None = None


_watch = _Watch()


def _permit() -> None:
    """Record where a value was asked for, or refuse."""
    if _watch.forbidden or _watch.forces is not None:
        place = describe_site(nodes_module.site())
        if _watch.forbidden:
            raise ConcretizationError(
                f"a value was asked for at {place} within no_implicit_eval(); compute it before, "
                "or write `where`, `cond` or `scan` instead of a Python branch or loop."
            )
        _watch.forces.append(place)


@contextmanager
def no_implicit_eval() -> Iterator[None]:
    """Forbid computing in a block: asking for a value raises ConcretizationError.

    >>> import lazyarr as xp
    >>> with no_implicit_eval():
    ...     y = xp.asarray([1.0]) + 1  # recording is fine
    """
    before = _watch.forbidden
    _watch.forbidden = True
    try:
        yield
    finally:
        _watch.forbidden = before


@contextmanager
def explain_forces() -> Iterator[list]:
    """Collect the places, as `file:line`, where values were asked for in a block."""
    before, _watch.forces = _watch.forces, []
    try:
        yield _watch.forces
    finally:
        _watch.forces = before


# -- bounding what is held -------------------------------------------------------------------------

_handles: list[type] = []


def register_handle(cls: type) -> type:
    """Note a class of handles, whose pending expressions may be computed to free memory."""
    _handles.append(cls)
    return cls


def flush(variable: Variable) -> None:
    """Compute a long unforced recording, so that it does not grow without bound."""
    if not _watch.forbidden:
        stats.count("flushes")
        _force([variable])


def relieve() -> None:
    """Compute what live handles wait for, and drop the histories that hold arrays."""
    if _watch.forbidden or _watch.relieving:
        return
    _watch.relieving = True
    stats.count("flushes")
    try:
        kinds = tuple(_handles)
        nodes = [x._v for x in gc.get_objects() if isinstance(x, kinds) and hasattr(x, "_v")]
        for v in nodes:
            if v.symbolic or v.expr is None:
                continue
            if v.value is UNSET:
                _force([v])
            v.expr, v.depth = None, min(v.depth, -1)
    finally:
        _watch.relieving = False


set_evaluator(compute_nodes)
nodes_module.set_relief(relieve)
nodes_module.on_native(_install_walker)
