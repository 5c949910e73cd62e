"""Every op on complex operands: the samples of the catalogue with imaginary parts, on C."""

import numpy as np
import pytest

from lazyarr.backends.driver import Program
from lazyarr.errors import LazyArrError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import symbol
from lazyarr.graph.ops.control import picks
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType
from tests.strategies.samples import Sample, sampled_ops, samples_of

pytestmark = pytest.mark.backends
WIDER = {"float32": "complex64", "float64": "complex128"}
GROUPS = 10  # programs
SIZES = {"search_sorted"}  # takes no complex numbers by its public name


def widened(a: np.ndarray, k: int) -> np.ndarray:
    """A floating array with imaginary parts where it is finite; any other array itself."""
    if a.dtype.name not in WIDER:
        return a
    turn = np.sin(np.arange(a.size) + k).reshape(a.shape)
    return (a + 1j * np.where(np.isfinite(a), turn, 0)).astype(WIDER[a.dtype.name])


def recorded(sample: Sample) -> tuple | None:
    """Inputs, outputs and arrays of a sample on complex operands; None where it takes none."""
    if not any(a.dtype.name in WIDER for a in sample.arrays):
        return None
    arrays = [widened(a, k) for k, a in enumerate(sample.arrays)]
    given = [symbol(TensorType(a.dtype, a.shape)) for a in arrays]
    try:
        out = sample.apply(*given)
        outputs = picks(out) if isinstance(out.type, TupleType) else [out]
        with np.errstate(all="ignore"):
            return given, outputs, arrays, evaluate(Graph(given, outputs), arrays)
    except (LazyArrError, TypeError, ValueError):
        return None


@pytest.mark.parametrize("group", range(GROUPS))
def test_complex_operands(group: int) -> None:
    names = [n for n in sampled_ops() if n not in SIZES][group::GROUPS]
    samples = [s for name in names for s in samples_of(name)]
    found = [(s, *parts) for s in samples if (parts := recorded(s)) is not None]
    inputs = [v for row in found for v in row[1]]
    outputs = [v for row in found for v in row[2]]
    program = Program(Graph(inputs, outputs), "c")
    assert not program.fallbacks()
    got = iter(program([a for row in found for a in row[3]]))
    for sample, _, _, _, wanted in found:
        for want in wanted:
            value = np.asarray(next(got))
            limit = 2e-4 if want.dtype.name in ("float32", "complex64") else 1e-9
            assert value.dtype == want.dtype, sample
            np.testing.assert_allclose(
                value, want, rtol=limit, atol=limit, equal_nan=True, err_msg=str(sample)
            )
