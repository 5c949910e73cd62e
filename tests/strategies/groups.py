"""Many samples in one program: one compilation tells of all of them.

A program of a group has the outputs of every sample; what it gives is split by sample again. When a
group cannot be compiled or run, each op of it is tried by itself, so that one bad op fails alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lazyarr.backends.driver import Program
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph
from tests.strategies.samples import Sample


@dataclass
class Recorded:
    """Samples on symbols of their own, in one graph."""

    samples: Sequence[Sample]
    inputs: list[Variable] = field(default_factory=list)
    outputs: list[Variable] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    spans: list[tuple] = field(default_factory=list)  # per sample: inputs and outputs from, to

    def __init__(self, samples: Sequence[Sample], sizes: bool = False):
        self.samples, self.inputs, self.outputs = samples, [], []
        self.arrays, self.spans = [], []
        for sample in samples:
            symbols = sample.symbols(sizes)
            outputs = sample.record(symbols)
            n, m = len(self.inputs), len(self.outputs)
            self.inputs += symbols
            self.outputs += outputs
            self.arrays += sample.arrays
            self.spans.append((n, n + len(symbols), m, m + len(outputs)))

    @property
    def graph(self) -> Graph:
        """All inputs and outputs in one graph."""
        return Graph(self.inputs, self.outputs)

    def expected(self) -> list[list[np.ndarray]]:
        """What the interpreter gives, by sample."""
        return [
            evaluate(Graph(self.inputs[a:b], self.outputs[c:d]), self.arrays[a:b])
            for a, b, c, d in self.spans
        ]

    def split(self, values: Sequence) -> list[list]:
        """The outputs of the graph by sample."""
        return [list(values[c:d]) for _, _, c, d in self.spans]

    def run(self, backend: str) -> tuple[list[list[np.ndarray]], list[Variable]]:
        """What a backend gives, by sample, and the nodes that it left to references."""
        program = Program(self.graph, backend)
        found = self.split(program(self.arrays))
        steps = (step for variant in program.variants.values() for step in variant.steps)
        return found, [step.node for step in steps if step.node is not None]
