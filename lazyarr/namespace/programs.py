"""Programs shared by graphs of one structure: data becomes inputs, so other data compiles nothing.

Labels of coordinates turn into constant positions while recording. A function recorded again for
other labels differs in those only, and finds the program that is there.
"""

import threading

import numpy as np

from lazyarr.backends import stats
from lazyarr.backends.driver import Program
from lazyarr.config import get_options
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.traverse import Graph, substitute

_programs: dict[tuple, Program] = {}
_lock = threading.Lock()
_MOST = 512


def shared_program(graph: Graph, backend: str) -> tuple[Program, list[np.ndarray]]:
    """Return a program that takes the inputs of a graph and then its data, and that data."""
    order = graph.toposort()
    held = [v for v in order if v.is_data and v not in set(graph.inputs)]
    key = (_structure(graph, order), backend, get_options())
    stats.count("keys")
    found = _programs.get(key)
    if found is None:
        stats.count("misses")
        stand_ins = {v: symbol(v.type, v.name) for v in held}
        outputs = substitute(graph.outputs, stand_ins)
        found = Program(Graph([*graph.inputs, *stand_ins.values()], outputs), backend)
        with _lock:
            if len(_programs) >= _MOST:
                _programs.clear()
            found = _programs.setdefault(key, found)
    else:
        stats.count("hits")
    return found, [v.value for v in held]


def _structure(graph: Graph, order: list[Variable]) -> tuple:
    """Everything that a program depends on: ops, parameters, types, numbers, sharing, outputs."""
    number: dict[Variable, int] = {v: i for i, v in enumerate(graph.inputs)}
    rows: list = [v.type for v in graph.inputs]
    for v in order:
        if v in number:
            continue
        number[v] = len(number)
        if v.expr is None:
            rows.append(v.type)
            continue
        operands = [
            number[x] if x.__class__ is Variable else (x.__class__, repr(x)) for x in v.inputs
        ]
        rows.append((v.call, v.type, *operands))
    return tuple(rows), tuple([number[v] for v in graph.outputs])
