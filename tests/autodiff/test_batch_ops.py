"""Every op of the catalogue is batched, and its two Jacobians, made by batching, agree."""

import numpy as np
import pytest

from lazyarr.autodiff.batch import batch
from lazyarr.errors import GradientError, ShapeError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph
from lazyarr.namespace.vectorize import _columns, _rows
from tests.strategies.samples import samples_of

pytestmark = pytest.mark.fast
POSITIONAL = [name for name, record in OPS.items() if "naming" not in record.facts]


def two_of(a: np.ndarray) -> np.ndarray:
    """An array and its elements in reverse order, which keeps definite matrices definite."""
    return np.stack([a, a.ravel()[::-1].reshape(a.shape)])


def choices(n: int) -> list[list[bool]]:
    """All operands batched, and each alone."""
    alone = [[i == k for i in range(n)] for k in range(n)] if n > 1 else []
    return [[True] * n, *alone] if n else []


@pytest.mark.parametrize("name", POSITIONAL)
def test_batched_as_a_loop_would(name: str) -> None:
    for sample in samples_of(name):
        symbols = sample.symbols()
        graph = Graph(symbols, sample.record(symbols))
        for moved in choices(len(symbols)):
            arrays = [two_of(a) if m else a for a, m in zip(sample.arrays, moved, strict=True)]
            rows = [
                evaluate(graph, [a[k] if m else a for a, m in zip(arrays, moved, strict=True)])
                for k in range(2)
            ]
            try:
                batched = batch(graph, [0 if m else None for m in moved], 2)
            except ShapeError as error:  # each element would have a size of its own
                assert "finds_sizes" in OPS[name].facts and "size=" in str(error)
                continue
            found = evaluate(batched, arrays)
            for got, first, second in zip(found, *rows, strict=True):
                want = np.stack([first, second])
                assert got.dtype == want.dtype and got.shape == want.shape, sample
                tight = 1e-5 if want.dtype == np.float32 else 1e-12
                np.testing.assert_allclose(got, want, rtol=tight, atol=1e-12, err_msg=str(sample))


@pytest.mark.parametrize("name", POSITIONAL)
def test_both_modes_agree(name: str) -> None:
    for sample in samples_of(name):
        symbols = sample.symbols()
        floats = [x for x in symbols if x.dtype.kind == "f"]
        for y in sample.record(symbols) if sample.smooth else ():
            if y.dtype.kind != "f":
                continue
            try:
                by_rows, by_columns = _rows(y, floats), [_columns(y, x) for x in floats]
            except GradientError:  # the op says why it has no derivative
                continue
            for a, b in zip(
                evaluate(Graph(symbols, by_rows), sample.arrays),
                evaluate(Graph(symbols, by_columns), sample.arrays),
                strict=True,
            ):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=str(sample))
