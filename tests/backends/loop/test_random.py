"""Random graphs: whatever fuses, aliases or is stored, the meaning is that of the interpreter."""

import numpy as np
import pytest

from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.loop.cases import K, M, N, leaf, sample
from tests.backends.loop.test_cases import RUNNERS, assert_same, expanded

UNARY = ("tanh", "sin", "negative", "abs", "square", "sign", "expit", "floor")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


class Maker:
    """Draws operations on values drawn before."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.leaves = [leaf(N, M), leaf(M), leaf(N, 3), leaf(), leaf(N, 1), leaf(K, dtype="int64")]
        self.index = self.leaves[-1]
        self.values = self.leaves[:-1]

    def pick(self, least: int = 0) -> Variable:
        """A value of some rank or more, recent ones more often."""
        known = [v for v in self.values if v.ndim >= least]
        place = int(len(known) * (1 - self.rng.random() ** 2))
        return known[min(place, len(known) - 1)]

    def step(self) -> None:
        """Add one more value."""
        made = getattr(self, self.rng.choice(MOVES))()
        if made is not None and made.ndim <= 3:
            self.values.append(made)

    def unary(self) -> Variable:
        return op_named(self.rng.choice(UNARY))(self.pick())

    def binary(self) -> Variable | None:
        x, y = self.pick(), self.pick()
        fits = all(
            a is b or a == b or 1 in (a, b)
            for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False)
        )
        return op_named(self.rng.choice(BINARY))(x, y) if fits else None

    def reduce(self) -> Variable:
        x = self.pick(1)
        axis = int(self.rng.integers(x.ndim))
        name = self.rng.choice(["sum", "max", "min", "mean"])
        return op_named(name)(x, axis=axis, keepdims=bool(self.rng.integers(2)))

    def running(self) -> Variable:
        x = self.pick(1)
        return op.cumulative_sum(x, axis=int(self.rng.integers(x.ndim))) * 0.5

    def move(self) -> Variable:
        x = self.pick(1)
        axis = int(self.rng.integers(x.ndim))
        kind = self.rng.integers(5)
        if kind == 0:
            return op.permute_dims(x, tuple(self.rng.permutation(x.ndim).tolist()))
        if kind == 1:
            return op.flip(x, axis=axis)
        if kind == 2:
            return op.expand_dims(x, axis=axis)
        if kind == 3:
            return op.reshape(x, (-1,))
        key = [slice(None)] * x.ndim
        key[axis] = slice(None, None, -1)
        return op.basic_index(x, tuple(key))

    def join(self) -> Variable:
        x = self.pick(1)
        axis = int(self.rng.integers(x.ndim))
        return op.concat([x, op.tanh(x)], axis=axis)

    def gather(self) -> Variable | None:
        x = self.pick(1)
        return op.take(x, self.index, axis=0) if x.shape[0] is N or x.shape[0] is M else None

    def scatter(self) -> Variable | None:
        x = self.pick(1)
        if x.shape[0] is not N and x.shape[0] is not M:
            return None
        safe = op.wrap_index(self.index, x.shape[0])
        added = op.take_add(x, safe, op.sin(op.take(x, self.index, axis=0)), axis=0)
        return op.take_set(added, safe, op.take(x, self.index, axis=0), axis=0)

    def product(self) -> Variable | None:
        x, y = self.pick(2), self.pick(1)
        inner = y.shape[0] if y.ndim == 1 else y.shape[-2]
        if x.shape[-1] is inner or x.shape[-1] == inner:
            return op.tanh(op.matmul(x, y)) if x.ndim + y.ndim <= 4 else None
        return None

    def graph(self) -> Graph:
        """A graph of about fifteen operations with a few outputs."""
        for _ in range(15):
            self.step()
        made = self.values[5:] or self.values
        chosen = self.rng.choice(len(made), size=min(4, len(made)), replace=False)
        outputs = [made[i] for i in chosen]
        return Graph(self.leaves, [*outputs, op.sum(outputs[0])])


MOVES = (
    "unary", "unary", "binary", "binary", "binary", "reduce", "running", "move", "move", "join",
    "gather", "scatter", "product",
)  # fmt: skip


def op_named(name: str) -> object:
    return getattr(op, str(name))


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_in_loops(seed: int) -> None:
    compare(seed, "loops")


@pytest.mark.backends
@pytest.mark.parametrize("seed", range(60, 100))
def test_random_graphs_in_c(seed: int) -> None:
    compare(seed, "c")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))
def test_random_graphs_in_numba(seed: int) -> None:
    pytest.importorskip("numba")
    compare(seed, "numba")


def compare(seed: int, way: str) -> None:
    graph = Maker(seed).graph()
    arrays = [sample(v, seed + k) for k, v in enumerate(graph.inputs)]
    want = evaluate(graph, arrays)
    got, code = RUNNERS[way](expanded(graph), arrays)
    assert code == 0
    assert_same(got, want)
