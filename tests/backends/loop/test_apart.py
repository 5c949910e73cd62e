"""Large graphs are planned once, and the work of planning grows with the graph."""

import numpy as np
import pytest

import lazyarr as xp
from benchmarks.compile_graphs import GRAPHS
from lazyarr.backends.loop import apart, plan
from lazyarr.backends.loop.apart import needed_apart
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.loop.cases import N, leaf
from tests.backends.loop.test_cases import expanded

pytestmark = [pytest.mark.fast, pytest.mark.backends]


def recorded(name: str, n: int) -> tuple:
    x = xp.symbol("x", shape=(4, None))
    return x, GRAPHS[name](xp, x, n)


@pytest.mark.parametrize("name", GRAPHS)
def test_planning_is_linear(name: str, monkeypatch) -> None:
    """Counted: the nodes that each statement computes, over all rounds of planning."""
    work: list[int] = []
    lower = plan.lower

    def counted(*args):
        program = lower(*args)
        work[-1] += sum(len(getattr(s, "nodes", ())) for s in program.steps)
        return program

    monkeypatch.setattr(plan, "lower", counted)
    for n in (500, 2000):
        work.append(0)
        x, y = recorded(name, n)
        plan.plan(expanded(Graph([x._v], [y._v])))
    assert work[1] <= 4.4 * work[0]
    assert work[1] <= 4 * 2000


@pytest.mark.parametrize("name", GRAPHS)
def test_values(name: str) -> None:
    x, y = recorded(name, 600)
    values = np.random.default_rng(0).normal(size=(4, 100))
    got = xp.function([x], y, backend="c")(values)
    want = xp.function([x], y, backend="interpret")(values)
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_what_is_needed_before_and_after_a_sum(monkeypatch) -> None:
    monkeypatch.setattr(apart, "LARGE", 0)
    x = leaf(N)
    dear, cheap = op.exp(x), x + 1
    total = op.sum(dear * 2) + op.sum(cheap)
    assert needed_apart(Graph([x], [dear * total, cheap * total])) == {dear}
    assert needed_apart(Graph([x], [op.sum(dear), op.sum(dear * dear)])) == set()


def test_small_graphs_are_left_alone() -> None:
    x = leaf(N)
    dear = op.exp(x)
    assert needed_apart(Graph([x], [dear / op.sum(dear)])) == set()
