"""Graphs as text, short expressions and Graphviz."""

import pytest

import lazyarr.graph.ops  # noqa: F401  (fills the catalogue)
from lazyarr.graph.node import Variable, data, symbol
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import op
from lazyarr.graph.show import dot, expression, text
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast


def tensor(*shape: object, name: str | None = "x") -> Variable:
    return symbol(TensorType("float64", shape), name)


def test_shared_nodes_are_written_once() -> None:
    x = tensor(3)
    e = op.exp(x)
    assert text(Graph([x], [op.add(e, e), e])).splitlines() == [
        "%0 = x : float64[3]",
        "%1 = exp(%0) : float64[3]",
        "%2 = add(%1, %1) : float64[3]",
        "return %2, %1",
    ]


def test_bodies_are_indented() -> None:
    c, a = tensor(name="c"), tensor(name="a")
    (last,) = picks(op.scan(Graph([c], [op.exp(c)]), (a,), length=2, reverse=False, n_carry=1,
                            n_xs=0))  # fmt: skip
    lines = text(last).splitlines()
    assert "    body:" in lines and "        %1 = exp(%0) : float64[]" in lines


def test_long_graphs_are_cut_in_the_middle() -> None:
    x = tensor()
    y = x
    for _ in range(20_000):
        y = op.add(op.sin(y), x)
    whole = text(y).splitlines()
    assert len(whole) == 40_002
    short = text(y, limit=11).splitlines()
    assert len(short) == 12 and short[6] == "... 39991 more lines ..."
    assert short[0] == whole[0] and short[-1] == whole[-1]
    assert expression(y, 3) == "sin(... + x) + x"
    assert len(dot(y).splitlines()) > 40_000


@pytest.mark.parametrize(
    ("build", "shown"),
    [
        (lambda x: (x + 1) * 2, "(x + 1) * 2"),
        (lambda x: x - (x - 1), "x - (x - 1)"),
        (lambda x: -(x + 1), "-(x + 1)"),
        (lambda x: (-x) ** 2, "(-x) ** 2"),
        (lambda x: (x**2) ** 3, "(x ** 2) ** 3"),
        (lambda x: x ** (x**2), "x ** x ** 2"),
        (lambda x: x * -2, "x * -2"),
        (lambda x: op.sum(x, axis=0), "sum(x, axis=(0,), keepdims=False, dtype=float64)"),
        (lambda x: x + data(1.5), "x + 1.5"),
        (lambda x: x + data([1.5, 2, 3]), "x + data[3]"),
    ],
)
def test_expressions(build, shown: str) -> None:
    assert expression(build(tensor(3))) == shown


def test_graphviz() -> None:
    x = tensor(3, name='a"b')
    drawn = dot(Graph([x], [op.add(x, 1)]))
    assert drawn.startswith("digraph {") and drawn.endswith("}")
    assert r'label="a\"b  float64[3]", style=rounded' in drawn
    assert "n0 -> n1 [label=0];" in drawn and 'c1_1 [label="1", shape=plaintext];' in drawn


def test_indices_are_shown_as_they_are_written():
    x = symbol(TensorType("float64", (4, 6)), "x")
    shown = [
        ((1, slice(None)), "x[1, :]"),
        ((slice(1, None), slice(0, 3)), "x[1:, :3]"),
        ((None, slice(None), slice(None, None, 2)), "x[None, :, 0:6:2]"),
    ]
    for key, words in shown:
        assert expression(op.basic_index(x, key)) == words
