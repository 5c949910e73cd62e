"""Complex functions at infinity, NaN and signed zeros: the same on every array namespace."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.graph.registry import OPS

PARTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.0, np.inf, -np.inf, np.nan]
NAMES = (
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 round sign sin sinh "
    "sqrt tan tanh"
).split()


def grid() -> np.ndarray:
    out = np.empty(len(PARTS) ** 2, np.complex128)
    out.real, out.imag = np.repeat(PARTS, len(PARTS)), np.tile(PARTS, len(PARTS))
    return out


@pytest.mark.parametrize("backend", ["torch", "jax"])
@pytest.mark.parametrize("name", NAMES)
def test_special_values(backend: str, name: str) -> None:
    pytest.importorskip(backend)
    z = grid()
    xp.asarray(0)  # declares the ops
    with np.errstate(all="ignore"):
        want = OPS[name].reference(z)
    with xp.set_options(tier="compile", backend=backend):
        got = getattr(xp, name)(xp.asarray(z)).compute()
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(got), part(want), rtol=1e-12, atol=1e-12)
