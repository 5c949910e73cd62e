"""What composites and special functions mean, by NumPy's and SciPy's functions of the same name.

The interpreter runs a composite by its expansion, so comparing backends with it tells nothing of
the expansion itself. An oracle takes the arrays and the parameters of the recorded node.
"""

import numpy as np
import pytest

from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph
from tests.strategies.compare import assert_same
from tests.strategies.samples import samples_of

pytestmark = pytest.mark.fast


def _clip(x, *bounds, low, high):
    bounds = list(bounds)
    below = bounds.pop(0) if low else None
    above = bounds.pop(0) if high else None
    return x if below is above is None else np.clip(x, below, above)


def _statistic(function):
    def run(x, *, axis, keepdims, correction=None):
        more = {} if correction is None else {"ddof": correction}
        with np.errstate(all="ignore"):
            return function(x, axis=axis, keepdims=keepdims, **more)

    return run


def _tensordot(a, b, *, axes):
    return np.tensordot(a, b, axes=axes)


def _vecdot(a, b, *, axis):
    moved = (np.moveaxis(np.broadcast_to(x, (*x.shape,)), axis, -1) for x in (a, b))
    return np.einsum("...i,...i->...", *moved)


def _cumulative_axis_diff(x, *ends, axis, n, prepend, append):
    more = dict(zip([k for k, there in (("prepend", prepend), ("append", append)) if there], ends,
                    strict=True))  # fmt: skip
    return np.diff(x, n=n, axis=axis, **more)


ORACLES = {
    "clip": _clip,
    "mean": _statistic(np.mean),
    "var": _statistic(np.var),
    "std": _statistic(np.std),
    "matmul": np.matmul,
    "tensordot": _tensordot,
    "vecdot": _vecdot,
    "tril": np.tril,
    "triu": np.triu,
    "diagonal": lambda x, *, offset: np.diagonal(x, offset, -2, -1),
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "eye": lambda one, *, n_rows, n_cols, k, dtype: np.eye(n_rows, n_cols, k, dtype),
    "zeros": lambda value, *, shape, dtype: np.zeros(shape, dtype),
    "ones": lambda value, *, shape, dtype: np.ones(shape, dtype),
    "zeros_like": lambda x, *, dtype: np.zeros_like(x, dtype),
    "ones_like": lambda x, *, dtype: np.ones_like(x, dtype),
    "full_like": lambda x, value, *, dtype: np.full_like(x, value, dtype),
    "drop_end": lambda x, *, axis: np.delete(x, -1, axis),
    "drop_start": lambda x, *, axis: np.delete(x, 0, axis),
    "outer": np.outer,
    "cross": lambda a, b, *, axis: np.cross(a, b, axis=axis),
    "diff": _cumulative_axis_diff,
    "cholesky": lambda x, *, upper: np.linalg.cholesky(x, upper=upper),
    "contract": lambda a, b, *, spec, absorb: np.einsum(a, [*spec[0]], b, [*spec[1]], [*spec[2]]),
}
SCIPY = (
    "gammaln digamma erf erfc expit log_expit xlogy xlog1py softmax log_softmax logsumexp"
).split()


def rows(name: str):
    """(sample, operands, parameters, value) of the samples whose result the op itself makes."""
    for sample in samples_of(name):
        symbols = sample.symbols()
        (node,) = sample.record(symbols)
        if node.op.name != name:
            continue
        operands = [
            evaluate(Graph(symbols, [v]), sample.arrays)[0] if isinstance(v, Variable) else v
            for v in node.inputs
        ]
        (value,) = evaluate(Graph(symbols, [node]), sample.arrays)
        yield sample, operands, node.params, value


@pytest.mark.parametrize("name", [n for n in ORACLES if n in OPS])
def test_numpy_agrees(name: str) -> None:
    seen = 0
    for sample, operands, params, value in rows(name):
        want = np.asarray(ORACLES[name](*operands, **params)).astype(value.dtype)
        assert_same(value, want, sample, ulps=256)
        seen += 1
    assert seen


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_agrees(name: str) -> None:
    function = getattr(pytest.importorskip("scipy.special"), name)
    seen = 0
    for sample, operands, params, value in rows(name):
        if any(isinstance(a, np.ndarray) and a.dtype.kind != "f" for a in operands):
            continue
        with np.errstate(all="ignore"):
            want = np.asarray(function(*operands, **params)).astype(value.dtype)
        special = ~np.isfinite(want)  # at infinities and poles the conventions are ours
        if name in ("gammaln", "digamma"):
            value, want = np.where(special, 0, value), np.where(special, 0, want)
            value, want = value.astype(want.dtype), want
        assert_same(np.asarray(value), np.asarray(want), sample, ulps=512)
        seen += 1
    assert seen
