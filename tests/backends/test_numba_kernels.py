"""What LLVM may change in Numba's kernels: the order of the sums of vector loops, nothing else."""

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import parameter

pytestmark = pytest.mark.backends


@pytest.mark.parametrize("backend", [parameter("numba")])
def test_only_sums_are_reordered(backend: str) -> None:
    x, axis = xp.symbol("x", shape=("n", "m"), dtype="float64"), 1
    y = x * 0.1 * 3.0
    z = (x + 1e16) - 1e16
    ends = [xp.max(x, axis=axis), xp.min(x, axis=axis), xp.max(x), xp.sum(y, axis=axis)]
    f = xp.function([x], [y, z, *ends, xp.sum(z)], backend=backend)
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 16, 17, 33, 515):
        for special in (0.0, np.nan, np.inf, -np.inf):
            given = rng.normal(size=(3, n))
            given[rng.integers(3), rng.integers(n)] = special
            with np.errstate(all="ignore"):
                a, b = given * 0.1 * 3.0, (given + 1e16) - 1e16
                want = [given.max(1), given.min(1), given.max(), a.sum(1), b.sum()]
            found = f(given)
            for got, exact in zip(found[:5], (a, b, *want[:3]), strict=True):
                np.testing.assert_array_equal(got, exact)
            for got, close in zip(found[5:], want[3:], strict=True):
                np.testing.assert_allclose(got, close, rtol=1e-12, atol=1e-12)
