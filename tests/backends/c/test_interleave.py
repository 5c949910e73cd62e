"""Stores side by side with gaps give right values, though a compiler vectorises them wrongly."""

import numpy as np
import pytest

import lazyarr as xp

pytestmark = pytest.mark.backends


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 33])
@pytest.mark.parametrize("shift", [1, 2])
def test_filling_forward_along_a_middle_axis(n, shift):
    rng = np.random.default_rng(n)
    value = rng.normal(size=(2, n, 3))
    value[rng.random(value.shape) < 0.5] = np.nan
    x = xp.symbol("x", shape=value.shape)
    filled = x
    for k in range(shift):
        head = xp.full((2, min(k + 1, n), 3), xp.nan)
        late = xp.concat([head, filled[:, : n - min(k + 1, n), :]], axis=1)
        filled = xp.where(xp.isnan(filled), late, filled)
    f, g = (xp.function([x], filled, backend=b) for b in ("c", "interpret"))
    np.testing.assert_array_equal(f(value), g(value))


def test_such_loops_are_printed_without_the_pragma():
    x = xp.symbol("x", shape=(64,))
    pairs = xp.stack([xp.sin(x), xp.cos(x), x * x], axis=1)
    f = xp.function([x], pairs, backend="c")
    point = np.linspace(0.0, 1.0, 64)
    want = np.stack([np.sin(point), np.cos(point), point**2], axis=1)
    np.testing.assert_allclose(f(point), want, rtol=1e-12)
    assert "omp simd" in xp.function([x], xp.sin(x), backend="c").source
