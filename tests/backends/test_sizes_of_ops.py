"""Every op on operands of unknown sizes: the same samples, each size an unknown of its own.

Sizes turn out at run time to be what the samples say, 1 and 0 included, so that broadcasting, empty
reductions and equations between sizes are decided when the program is called.
"""

from functools import cache

import numpy as np
import pytest

from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.driver import Program
from lazyarr.errors import ShapeError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import symbol
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.backend_params import parameter
from tests.strategies.compare import assert_same
from tests.strategies.groups import Recorded
from tests.strategies.samples import sampled_ops, samples_of
from tests.strategies.values import draw

TOGETHER = 12
WAYS = [parameter("interpret"), pytest.param("c", marks=pytest.mark.backends)]
F8 = np.dtype("float64")


@cache
def together(names: tuple[str, ...], backend: str) -> dict[str, list | Exception]:
    """Rows (sample, values, expected) by op for ops in one program, or alone when that fails."""
    samples = [s for name in names for s in samples_of(name) if s.symbolic and s.arrays]
    try:
        recorded = Recorded(samples, sizes=True)
        values, _ = recorded.run(backend)
    except Exception as error:
        if len(names) == 1:
            return {names[0]: error}
        return {k: v for name in names for k, v in together((name,), backend).items()}
    rows = list(zip(samples, values, Recorded(samples).expected(), strict=True))
    return {name: [row for row in rows if row[0].op == name] for name in names}


# Strict expected failures; the table may only shrink.
HOLES: dict[tuple[str, str], str] = {}


@pytest.mark.parametrize("name", sampled_ops())
@pytest.mark.parametrize("backend", WAYS)
def test_unknown_sizes(request: pytest.FixtureRequest, backend: str, name: str) -> None:
    if (backend, name) in HOLES:
        reason = HOLES[backend, name]
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True, raises=ValueError))
    names = sampled_ops()
    start = names.index(name) // TOGETHER * TOGETHER
    rows = together(tuple(names[start : start + TOGETHER]), backend)[name]
    if isinstance(rows, Exception):
        raise rows
    for sample, values, expected in rows:
        for value, want in zip(values, expected, strict=True):
            assert_same(value, want, (backend, sample))


# -- one program, sizes that change from call to call ---------------------------------------------

SIZES = [(3, 4), (1, 4), (3, 1), (1, 1), (0, 4), (3, 0), (5, 2)]


def over_two_axes() -> list[str]:
    """Reductions and running combinations, which have to know about size 0 and 1."""
    return [o.name for o in OPS.values() if o.kind in ("reduction", "cumulative")]


def pair(n: int, m: int) -> list[np.ndarray]:
    return [draw((n, m)), draw((m,), shift=0.4), draw((n, 1), shift=0.7)]


@pytest.mark.parametrize("backend", WAYS)
def test_sizes_change(backend: str) -> None:
    """Elementwise ops, products and joins of one program at sizes 1, 0 and others."""
    n, m = unknown("n"), unknown("m")
    x, row, column = symbols = [symbol(TensorType(F8, s)) for s in ((n, m), (m,), (n, 1))]
    outputs = [
        op.multiply(op.add(x, row), column),
        op.where(op.less(row, column), x, 0),
        op.matmul(x, row),
        op.contract(x, x, ((0, 1), (0, 1), ())),
        op.concat([x, op.multiply(x, 2), column], axis=1),
        op.flip(x),
        op.reshape(x, (-1,)),
        op.sum(op.reshape(x, (m, n)), axis=0),
        op.basic_index(x, (slice(1, None), slice(None, None, -2))),
        op.cumulative_sum(x, axis=1, include_initial=True),
        op.broadcast_to(column, (2, n, 3)),
        op.eye(n, m),
        op.size_value(n * m),
        op.mean(x),
        op.var(x, axis=0),
    ]
    graph = Graph(symbols, outputs)
    program = Program(graph, backend)
    for sizes in (*SIZES, SIZES[0]):
        arrays = pair(*sizes)
        for got, want, node in zip(program(arrays), evaluate(graph, arrays), outputs, strict=True):
            assert_same(got, want, (backend, sizes, node))


@pytest.mark.parametrize("name", over_two_axes())
@pytest.mark.parametrize("backend", WAYS)
def test_sizes_of_reductions_change(backend: str, name: str) -> None:
    """The value at every size, and ValueError naming the axis for an extreme of nothing."""
    x = symbol(TensorType(F8, (unknown("n"), unknown("m"))))
    graph = Graph([x], [OPS[name](x, axis=axis) for axis in (0, 1)])
    program = Program(graph, backend)
    for n, m in SIZES:
        (array, *_) = pair(n, m)
        if OPS[name].combine in ("max", "min", "argmax", "argmin") and n * m == 0:
            with pytest.raises(ValueError, match="empty axis"):
                program([array])
            continue
        for got, want in zip(program([array]), evaluate(graph, [array]), strict=True):
            assert_same(got, want, (backend, n, m))


@pytest.mark.parametrize("backend", WAYS)
def test_an_unknown_that_is_one_broadcasts(backend: str) -> None:
    """x + ones(3) for x of unknown length 1, and the gradient of a broadcast."""
    x = symbol(TensorType(F8, (unknown("n"),)))
    total = op.sum(op.broadcast_to(x, (3, 5)))
    (gradient,) = pullback([total], [x], [op.full((), 1.0)])
    program = Program(Graph([x], [op.add(x, op.ones((3,))), total, gradient]), backend)
    one = Program(Graph([x], [op.add(x, op.ones((3,)))]), backend)
    np.testing.assert_array_equal(one([np.array([2.0])])[0], [3, 3, 3])
    np.testing.assert_array_equal(one([np.array([2.0, 3, 4])])[0], [3, 4, 5])
    y = Program(Graph([x], [gradient]), backend)([np.array([2.0])])[0]
    np.testing.assert_array_equal(y, [15.0])
    y = Program(Graph([x], [gradient]), backend)([np.arange(5.0)])[0]
    np.testing.assert_array_equal(y, [3.0] * 5)
    with pytest.raises(ShapeError):
        program([np.arange(5.0)])


@pytest.mark.parametrize("backend", WAYS)
@pytest.mark.parametrize("n", [2, 4, 0])
def test_sizes_that_do_not_fit(backend: str, n: int) -> None:
    """An equation between sizes that does not hold is a ShapeError, which gives both sizes."""
    x = symbol(TensorType(F8, (unknown("n"),)))
    y = symbol(TensorType(F8, (unknown("m"),)))
    for record in (
        lambda: op.add(x, y),
        lambda: op.matmul(x, y),
        lambda: op.stack([x, y]),
        lambda: op.add(x, op.ones((3,))),
        lambda: op.reshape(x, (3,)),
        lambda: op.broadcast_to(x, (2, 3)),
    ):
        program = Program(Graph([x, y], [record()]), backend)
        with pytest.raises(ShapeError, match=rf"\b{n}\b.*3|3.*\b{n}\b"):
            program([np.ones(n), np.ones(3)])
