"""Programs shared by graphs of one structure: other data and other numbers compile nothing.

Data becomes inputs. Labels of coordinates turn into constant positions while recording, so a
function recorded again for other labels finds the program that is there. Numbers beside arrays are
written into a program until a graph of the same structure has another one there; from then on they
are inputs too. A number that is one of the arguments of a jitted function is an input at once.
"""

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from lazyarr.backends import stats
from lazyarr.backends.driver import Program
from lazyarr.backends.structure import as_argument, baked, scalar_dtype
from lazyarr.config import get_options
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.shapes import Size
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

_lock = threading.Lock()
_MOST = 512


@dataclass(frozen=True)
class _Place:
    """Where a number stands: a node, and the place of the number among its operands."""

    node: Variable
    operand: int

    @property
    def value(self) -> object:
        return self.node.expr[self.operand]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the number as an input."""
        return scalar_dtype(self.node.type, self.node.expr, self.value)


@dataclass(frozen=True)
class _Shared:
    """What runs a structure, the numbers written into it, and which of them are inputs."""

    run: Callable
    numbers: tuple
    lifted: frozenset[int]


_programs: dict[tuple, _Shared] = {}


def runner(program: Program) -> Callable:
    """Return the shortest way to call a program with arrays by position, for a list of results."""
    fast = program.launcher("list", lambda *arrays: program(arrays))
    return fast or (lambda *arrays: program([np.asarray(a) for a in arrays]))


def shared_program(
    graph: Graph, backend: str, arguments: Collection = ()
) -> tuple[Callable, list[np.ndarray]]:
    """Return what runs a graph on its inputs, then its data and numbers, and these.

    `arguments` are numbers that are expected to change.
    """
    order = graph.toposort()
    held = [v for v in order if v.is_data and v not in set(graph.inputs)]
    structure, places = _structure(graph, order)
    numbers = tuple([_exactly(p.value) for p in places])
    key = structure, backend, get_options()
    stats.count("keys")
    found = _programs.get(key)
    if found is None:
        expected = set(map(_exactly, arguments))
        lifted = frozenset(i for i, n in enumerate(numbers) if n in expected)
    else:
        lifted = frozenset(i for i, n in enumerate(numbers) if n != found.numbers[i])
    if found is not None and lifted <= found.lifted:
        stats.count("hits")
    else:
        stats.count("misses")
        lifted |= found.lifted if found is not None else frozenset()
        general = _generalised(graph, order, held, [places[i] for i in sorted(lifted)])
        made = _Shared(runner(Program(general, backend)), numbers, lifted)
        with _lock:
            if len(_programs) >= _MOST:
                _programs.clear()
            found = _programs[key] = made
    given = [places[i] for i in sorted(found.lifted)]
    values = [v.value for v in held]
    return found.run, values + [np.asarray(as_argument(p.value, p.dtype)) for p in given]


def _exactly(number: object) -> tuple:
    return number.__class__, repr(number)


def _structure(graph: Graph, order: list[Variable]) -> tuple[tuple, list[_Place]]:
    """Everything that a program depends on but numbers, and where these are.

    Ops, parameters, types, sharing, outputs, and the numbers that passes may use.
    """
    place: dict[Variable, int] = {v: i for i, v in enumerate(graph.inputs)}
    rows: list = [v.type for v in graph.inputs]
    numbers: list[_Place] = []
    for v in order:
        if v in place:
            continue
        place[v] = len(place)
        if v.expr is None:
            rows.append(v.type)
            continue
        row: list = [v.expr[0], v.type]
        for j, x in enumerate(v.expr[1:], start=1):
            if x.__class__ is Variable:
                row.append(place[x])
            elif isinstance(x, Size):
                row.append(x)
            elif baked(v.expr[0], x):
                row.append(_exactly(x))
            else:
                row.append(x.__class__)
                numbers.append(_Place(v, j))
        rows.append(tuple(row))
    return (tuple(rows), tuple([place[v] for v in graph.outputs])), numbers


def _generalised(
    graph: Graph, order: list[Variable], held: list[Variable], lifted: list[_Place]
) -> Graph:
    """Return the graph with data and some numbers as inputs."""
    done: dict[Variable, Variable] = {v: v for v in graph.inputs}
    done.update({v: symbol(v.type, v.name) for v in held})
    inputs = [*graph.inputs, *(done[v] for v in held)]
    numbers: dict[tuple[Variable, int], Variable] = {}
    for p in lifted:
        numbers[p.node, p.operand] = symbol(TensorType(p.dtype, ()), "number")
    for v in order:
        if v in done:
            continue
        operands = [
            done[x] if x.__class__ is Variable else numbers.get((v, j), x)
            for j, x in enumerate(v.expr[1:], start=1)
        ]
        if all(a is b for a, b in zip(operands, v.expr[1:], strict=True)):
            done[v] = v
            continue
        done[v] = v.op.apply(v.expr[0], tuple(operands))
        done[v].name, done[v].site = v.name, v.site
    return Graph([*inputs, *numbers.values()], [done[v] for v in graph.outputs])
