"""Complex numbers, element by element: each op at every pair of special parts, by backend.

Each part of a result is compared by itself, with its NaN, infinities and signs of zeros.
"""

import itertools

import numpy as np
import pytest

import lazyarr.backends.driver  # noqa: F401  (declares the catalogue)
from lazyarr.backends.driver import Program
from lazyarr.graph import dtypes
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import symbol
from lazyarr.graph.ops.control import picks  # noqa: F401
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.backend_params import parameter

PARTS = (0.0, -0.0, 1.0, -1.0, 0.6, -2.3, 35.0, np.inf, -np.inf, np.nan)
FEW = (0.0, -0.0, 1.0, -2.3, np.inf, np.nan)
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]
# Functions whose parts have a relative error in the whole number alone.
WHOLE = {"multiply", "divide", "square", "reciprocal", "pow", "absorb", "expm1", "log1p", "tan",
         "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"}  # fmt: skip


def takes_complex() -> list[str]:
    """The elementwise ops with one or two complex operands."""
    found = []
    for name, op in OPS.items():
        if op.kind == "elementwise" and np.dtype("complex128") in dtypes.CATEGORIES[op.accepts]:
            if name not in ("astype", "where") and op.formula is not None:
                found.append(name)
    return found


def grid(values: tuple, dtype: np.dtype) -> np.ndarray:
    """All numbers with parts out of some values."""
    out = np.empty(len(values) ** 2, dtype)
    pairs = np.array(list(itertools.product(values, values)))
    out.real, out.imag = pairs.T
    return out


def operands(name: str, dtype: np.dtype) -> list[np.ndarray]:
    """One operand with all special numbers, or two in every combination of fewer."""
    from tests.strategies.samples import arity

    if arity(OPS[name]) == 1:
        return [grid(PARTS, dtype)]
    few = grid(FEW, dtype)
    return [few[:, None].copy(), few[None, :].copy()]


def assert_parts(got: np.ndarray, want: np.ndarray, whole: bool, label: str) -> None:
    """Fail unless all parts agree up to rounding, and infinities and NaN exactly."""
    assert got.dtype == want.dtype and got.shape == want.shape, label
    if want.dtype.kind != "c":
        np.testing.assert_allclose(got, want, rtol=1e-5, equal_nan=True, err_msg=label)
        return
    tolerance = 64 * np.finfo(want.dtype).eps
    size = np.where(np.isfinite(want), np.abs(want), 0) if whole else 0
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        assert np.array_equal(np.isnan(a), np.isnan(b)), label
        fine = np.isfinite(b)
        endless = ~fine & ~np.isnan(b)
        aside = np.isnan(want.real) | np.isnan(want.imag)  # C11, G.6: the sign is unspecified there
        assert np.array_equal(np.isinf(a[endless]), np.isinf(b[endless])), label
        assert np.array_equal(a[endless & ~aside], b[endless & ~aside]), label
        error = np.where(fine, np.abs(a - b), 0)
        limit = tolerance * np.maximum(np.where(fine, np.abs(b), 0), size)
        assert np.all(error <= limit + tolerance * tolerance), (label, np.max(error))


@pytest.mark.backends
@pytest.mark.parametrize("backend", [parameter("c"), parameter("numba")])
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_elements(backend: str, dtype: np.dtype) -> None:
    inputs, outputs, arrays, names = [], [], [], []
    for name in takes_complex():
        given = operands(name, dtype)
        symbols = [symbol(TensorType(a.dtype, a.shape)) for a in given]
        inputs += symbols
        arrays += given
        outputs.append(OPS[name](*symbols))
        names.append(name)
    graph = Graph(inputs, outputs)
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)
    found = Program(graph, backend)(arrays)
    failed = []
    for name, got, want in zip(names, found, wanted, strict=True):
        try:
            assert_parts(got, want, name in WHOLE, f"{name} {dtype}")
        except AssertionError as error:
            failed.append(f"{name}: {str(error)[:300]}")
    assert not failed, "\n".join(failed)


@pytest.mark.backends
@pytest.mark.parametrize("backend", [parameter("jax"), parameter("torch")])
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_what_libraries_do_not_know(backend: str, dtype: np.dtype) -> None:
    """Parts that are NaN, 0, 1 or infinite are so just where the interpreter says so."""
    from tests.strategies.samples import arity

    huge = float(np.finfo(dtype).max) ** 0.97
    names = [n for n in takes_complex() if arity(OPS[n]) == 1]
    graphs = {}
    for name in names:
        parts = (*PARTS, *(() if name == "square" else (huge, -huge)))  # huge squares overflow
        graphs[name] = grid(parts, dtype)
    symbols = [symbol(TensorType(a.dtype, a.shape)) for a in graphs.values()]
    graph = Graph(symbols, [OPS[n](s) for n, s in zip(names, symbols, strict=True)])
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, list(graphs.values()))
    found = Program(graph, backend)(list(graphs.values()))
    failed = []
    for name, got, want in zip(names, found, wanted, strict=True):
        for part in ("real", "imag"):
            a, b = getattr(np.asarray(got), part), getattr(want, part)
            other = np.isnan(want.imag if part == "real" else want.real)  # signs beside it are free
            endless = ~np.isfinite(graphs[name].real) | ~np.isfinite(graphs[name].imag)
            exact = endless & ~other & np.isin(np.abs(b), (0, 1, np.inf))
            wrong = graphs[name][(np.isnan(a) != np.isnan(b)) | (exact & (a != b))]
            failed += [f"{name}, {part}: {wrong[:4]}"] if wrong.size else []
    assert not failed, "\n".join(failed)
