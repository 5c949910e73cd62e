"""Printed modules are cheap for Numba to compile: no branches for choices, no long functions."""

import re

import pytest

from lazyarr.backends.loop.plan import plan
from lazyarr.backends.numba.backend import SEGMENT
from lazyarr.backends.numba.print import to_python
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

pytestmark = pytest.mark.fast


def printed(y: Variable, *inputs: Variable) -> str:
    return to_python(plan(Graph(inputs, [y]), by_length=False, segment=SEGMENT)).text


def test_a_choice_is_an_instruction() -> None:
    """A conditional expression would make blocks, and a name that several blocks set."""
    x = symbol(TensorType("float64", (7,)))
    y = op.where(op.less(x, 0), op.maximum(x, 1), op.sign(op.minimum(x, 2)))
    text = printed(op.sum(y), x)
    assert text.count("choose(") >= 4
    kernel = text[text.index("def part0") :]
    assert not re.search(r" if .* else ", kernel)


def test_functions_stay_short() -> None:
    start = x = symbol(TensorType("float64", (7, 5)))
    outputs = []
    for k in range(40):
        x = op.cumulative_sum(op.exp(op.multiply(x, 0.1)), axis=k % 2)
        outputs.append(op.sum(x))
    source = to_python(plan(Graph([start], outputs), by_length=False, segment=SEGMENT)).text
    lengths = [part.count("\n") for part in re.split(r"\n(?=@numba|kernel\w*_type)", source)]
    assert max(lengths) < 400
