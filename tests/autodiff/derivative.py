"""Derivatives of samples: recorded once, run by the interpreter, compared with differences.

Where every op of a sample is analytic the differences are complex steps, exact to rounding.
"""

from collections.abc import Sequence

import numpy as np

from lazyarr.autodiff.check import continued
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import carries_derivative, pullback
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import NoGradient
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.strategies.samples import Sample, sampled_ops, samples_of
from tests.strategies.values import draw

STEP, COMPLEX_STEP = 1e-5, 1e-30


def differentiable() -> list[str]:
    """The ops that do not refuse a derivative."""
    return [name for name in sampled_ops() if not isinstance(OPS[name].vjp, NoGradient)]


def smooth(name: str) -> list[Sample]:
    """The samples of an op at points where it is differentiable."""
    return [s for s in samples_of(name) if s.smooth]


class Recording:
    """A sample on symbols, what of it is floating, and symbols for cotangents and tangents."""

    def __init__(self, sample: Sample, sizes: bool = False):
        self.sample = sample
        self.symbols = sample.symbols(sizes)
        self.outputs = [v for v in sample.record(self.symbols) if carries_derivative(v)]
        self.wrt = [v for v in self.symbols if carries_derivative(v)]
        self.places = [i for i, v in enumerate(self.symbols) if carries_derivative(v)]
        self.seeds = [symbol(v.type) for v in self.outputs]
        self.tangents = [symbol(v.type) for v in self.wrt]

    def reverse(self) -> list[Variable]:
        """Cotangents of the floating operands, zeros where there is no dependence."""
        found = pullback(self.outputs, self.wrt, self.seeds)
        return [zeros(x) if g is None else g for x, g in zip(self.wrt, found, strict=True)]

    def forward(self) -> list[Variable]:
        """Tangents of the floating outputs, zeros where there is no dependence."""
        found = pushforward(self.outputs, self.wrt, self.tangents)
        return [zeros(y) if t is None else t for y, t in zip(self.outputs, found, strict=True)]

    def weights(self) -> list[np.ndarray]:
        """Cotangents that are not special in any way."""
        return [draw(a.shape, a.dtype, 0.2 + i) for i, a in enumerate(self.values())]

    def directions(self) -> list[np.ndarray]:
        """Tangents that are not special in any way."""
        arrays = [self.sample.arrays[i] for i in self.places]
        return [draw(a.shape, a.dtype, 0.9 + i) for i, a in enumerate(arrays)]

    def values(self, arrays: Sequence | None = None) -> list[np.ndarray]:
        """The floating outputs."""
        return self.run(self.outputs, arrays=arrays)

    def run(
        self, outputs: Sequence, seeds: Sequence = (), tangents: Sequence = (), arrays=None
    ) -> list[np.ndarray]:
        """The values of nodes for given cotangents and tangents."""
        given = [
            *self.symbols,
            *(self.seeds if seeds else ()),
            *(self.tangents if tangents else ()),
        ]
        arrays = self.sample.arrays if arrays is None else arrays
        return evaluate(Graph(given, outputs), [*arrays, *seeds, *tangents])

    def curvature(self, weights: Sequence, directions: Sequence) -> float:
        """<direction, Hessian direction> of the weighted sum of the outputs, twice in reverse."""
        along = dot(self.reverse(), self.tangents)
        found = pullback([along], self.wrt, [op.full((), 1.0)])
        kept = [(g, d) for g, d in zip(found, directions, strict=True) if g is not None]
        values = self.run([g for g, _ in kept], weights, directions)
        return inner(values, [d for _, d in kept])

    def curvatures(self) -> dict[str, Variable | None]:
        """What `curvature` computes, as nodes, by every sequence of modes but reverse twice."""
        one, by = op.full((), 1.0), (self.wrt, self.tangents)
        along, push = dot(self.reverse(), self.tangents), dot(self.forward(), self.seeds)
        back = pullback([push], self.wrt, [one])
        kept = [(g, t) for g, t in zip(back, self.tangents, strict=True) if g is not None]
        return {
            "forward over reverse": pushforward([along], *by)[0],
            "forward twice": pushforward([push], *by)[0],
            "reverse over forward": dot([g for g, _ in kept], [t for _, t in kept]),
        }

    def moved(self, steps: Sequence[np.ndarray], by: float) -> list[np.ndarray]:
        """The operands moved along directions."""
        arrays = list(self.sample.arrays)
        for place, step in zip(self.places, steps, strict=True):
            arrays[place] = arrays[place] + by * step
        return arrays


def zeros(x: Variable) -> Variable:
    """Zeros of the type of a node."""
    return op.zeros(x.shape, dtype=x.dtype)


def dot(a: Sequence, b: Sequence) -> Variable:
    """The inner product of two lists of nodes."""
    total = op.full((), 0.0)
    for x, y in zip(a, b, strict=True):
        total = op.add(total, op.sum(op.multiply(x, y)))
    return total


def inner(a: Sequence, b: Sequence) -> float:
    """The inner product of two lists of arrays."""
    return float(sum(np.sum(x * y) for x, y in zip(a, b, strict=True)))


def differences(recording: Recording, weights: Sequence) -> list[tuple[np.ndarray, bool]]:
    """The gradient of the weighted sum of the outputs without derivatives, and if it is exact."""
    total = dot(recording.outputs, recording.seeds)
    found = []
    for k, place in enumerate(recording.places):
        x = recording.sample.arrays[place]
        step = continued([total], [recording.wrt[k]])
        out = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            if step is None:
                out[index] = _difference(recording, weights, k, index)
            else:
                out[index] = _complex_step(recording, weights, place, index, *step)
        found.append((out, step is not None and bool(np.isfinite(out).all())))
    return found


def _difference(recording: Recording, weights: Sequence, k: int, index: tuple) -> float:
    step = [np.zeros(recording.sample.arrays[i].shape) for i in recording.places]
    step[k][index] = 1.0
    up = inner(weights, recording.values(recording.moved(step, STEP)))
    down = inner(weights, recording.values(recording.moved(step, -STEP)))
    return (up - down) / (2 * STEP)


def _complex_step(recording, weights, place: int, index: tuple, symbols, outputs) -> float:
    arrays = list(recording.sample.arrays)
    arrays[place] = arrays[place].astype(complex)
    arrays[place][index] += 1j * COMPLEX_STEP
    inputs = list(recording.symbols)
    inputs[place] = symbols[0]
    (out,) = evaluate(Graph([*inputs, *recording.seeds], outputs), [*arrays, *weights])
    return float(np.imag(out)) / COMPLEX_STEP


def scalar(dtype: str, *values: float) -> list[np.ndarray]:
    """0-d arrays."""
    return [np.array(v, dtype) for v in values]


def leaves(*arrays: np.ndarray) -> list[Variable]:
    """Symbols for arrays."""
    return [symbol(TensorType(a.dtype, a.shape)) for a in arrays]
