"""The interpreter as a backend: every op by its reference, one after the other."""

import copy
from collections.abc import Sequence

import numpy as np

from lazyarr.graph import show
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph


class Interpreted:
    """A graph run by the references of its ops."""

    def __init__(self, graph: Graph):
        self.graph = graph

    @property
    def source(self) -> str:
        """The graph as text; nothing is generated."""
        return show.text(self.graph)

    def __call__(self, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Return fresh outputs; a failing check raises here."""
        given = [id(a) for a in arrays]
        out = []
        for value in evaluate(self.graph, arrays):
            if isinstance(value, list | tuple | dict | str):  # of a type from outside
                out.append(copy.copy(value))
                continue
            owned = value.base is None and value.flags.writeable and id(value) not in given
            out.append(value if owned and id(value) not in map(id, out) else np.array(value))
        return out, 0

    def explain(self) -> str:
        """Say that the graph is interpreted."""
        return f"interpreted: {len(self.graph.toposort())} nodes, one reference call each"


class InterpretBackend:
    """Runs every node by its reference."""

    name = "interpret"

    def supports(self, node: Variable) -> bool:
        """Every node has a reference."""
        return True

    def compile(self, graph: Graph) -> Interpreted:
        """Return the graph, ready to be interpreted."""
        return Interpreted(graph)
