"""What derivatives cost: nodes and scalar operations beside those of the value.

`python -m benchmarks.cost` measures the time.
"""

import pytest

from benchmarks import cost, models
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, toposort
from lazyarr.graph.types import TensorType
from lazyarr.passes.pipeline import run

CHEAP = [n for n in models.MODELS if n not in ("adbench_ba", "gp_regr", "adbench_gmm")]


def chain(length: int, vector: bool) -> tuple[Variable, Variable]:
    """A function in which every step is used twice, and its input."""
    x = y = symbol(TensorType("float64", (5,) if vector else ()))
    for _ in range(length):
        y = op.multiply(op.sin(y), op.add(y, x))
    return op.sum(y), x


def nodes(length: int, vector: bool, order: int, mode: str) -> int:
    y, x = chain(length, vector)
    for _ in range(order):
        if mode == "reverse":
            (y,) = pullback([y], [x], [op.full((), 1.0)])
        else:
            (y,) = pushforward([y], [x], [op.ones(x.shape)])
        y = op.sum(y)
    return len(toposort([y]))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("vector", [False, True])
def test_nodes_grow_linearly(vector: bool, order: int, mode: str) -> None:
    """Twice the length, twice the new nodes, though every step is read twice."""
    a, b, c = (nodes(n, vector, order, mode) for n in (10, 20, 40))
    assert c - b == 2 * (b - a)


@pytest.mark.parametrize("name", CHEAP)
def test_models(name: str) -> None:
    """Value and gradient at most 4 times the value, value and tangent 3 times its nodes."""
    graphs, _ = cost.programs(name, models.entry(name)["data"])
    assert cost.work(graphs["reverse"]) <= cost.REVERSE * cost.work(graphs["value"])
    count = {k: len(run(g).toposort()) for k, g in graphs.items()}
    assert count["reverse"] <= cost.REVERSE * count["value"]
    assert count["forward"] <= cost.FORWARD * count["value"]


def test_value_and_gradient_share_their_work() -> None:
    """One exp for the value and all derivatives."""
    x = symbol(TensorType("float64", (5,)))
    y = op.sum(op.exp(op.square(x)))
    (g,) = pullback([y], [x], [op.full((), 1.0)])
    names = [v.op.name for v in run(Graph([x], [y, g])).toposort() if v.op is not None]
    assert names.count("exp") == names.count("square") == 1
