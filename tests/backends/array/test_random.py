"""Random graphs against the interpreter: every kind mixed, sizes known and unknown."""

import numpy as np
import pytest

from lazyarr.errors import LazyArrError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.array.family import FAMILY, agrees, leaf, sizes

pytestmark = pytest.mark.backends

UNARY = ("tanh", "sin", "square", "abs", "negative", "floor", "expit", "sign", "logical_not", "erf")
BINARY = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "remainder",
    "less",
    "equal",
    "absorb",
)


def unary(rng, x):
    return getattr(op, rng.choice(UNARY))(x)


def binary(rng, x, y):
    return getattr(op, rng.choice(BINARY))(x, y)


def reduced(rng, x):
    axis = int(rng.integers(x.ndim))
    name = rng.choice(["sum", "max", "argmin", "any", "mean", "cumulative_sum"])
    if name == "cumulative_sum":
        return op.cumulative_sum(x, axis=axis)
    return getattr(op, name)(x, axis=axis, keepdims=bool(rng.integers(2)))


def moved(rng, x):
    choice = rng.integers(5)
    if choice == 0:
        return op.permute_dims(x, tuple(int(i) for i in rng.permutation(x.ndim)))
    if choice == 1:
        return op.flip(x, axis=int(rng.integers(x.ndim)))
    if choice == 2:
        return op.concat((x, x), axis=int(rng.integers(x.ndim)))
    if choice == 3:
        step = int(rng.choice([-2, -1, 1, 2]))
        return op.basic_index(x, (slice(None, None, step),))
    return op.reshape(x, (-1,))


def chosen(rng, x):
    if rng.integers(2):
        return op.where(op.less(x, 0.5), x, 1)
    return op.take(x, np.zeros(3, "int64"), axis=0)


def product(rng, x, y):
    return op.matmul(x, op.permute_dims(y, tuple(reversed(range(y.ndim)))))


STEPS = (unary, binary, reduced, moved, chosen, product, binary)


def grown(rng, nodes: list, arrays: list, steps: int) -> list:
    """Add nodes by random steps; a step that does not fit, also for these arrays, is skipped."""
    inputs = tuple(nodes)
    while steps:
        step = STEPS[int(rng.integers(len(STEPS)))]
        args = [nodes[int(rng.integers(len(nodes)))] for _ in range(step.__code__.co_argcount - 1)]
        try:
            new = step(rng, *args)
            evaluate(Graph(inputs, [new]), arrays)
        except (LazyArrError, ValueError):
            continue
        if new.ndim <= 3:
            nodes.append(new)
        steps -= 1
    return nodes


# For JAX every graph is a compilation.
CASES = [
    pytest.param(*p.values, seed, marks=p.marks)
    for p in FAMILY
    for seed in range(4 if p.values == ("jax",) else 12)
]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_random_graphs(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = sizes("n")[0] if seed % 2 else 3
    inputs = [leaf("float64", n, 4), leaf("float64", 4), leaf("int32", n, 1), leaf("bool", 4)]
    inputs.append(leaf("int8", n, 4))
    arrays = [rng.normal(size=(3, 4)), rng.normal(size=4), rng.integers(-3, 4, (3, 1), "int32")]
    arrays += [rng.integers(0, 2, 4).astype(bool), rng.integers(-9, 9, (3, 4), "int8")]
    nodes = grown(rng, list(inputs), arrays, 25)
    agrees(name, inputs, nodes[len(inputs) :], arrays, ulps=4096, partly=True)
