"""A new backend is a folder (toy/) with table.py, its differences, and backend.py."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import BackendError
from tests.extend.toy.backend import ToyBackend


def test_backend_from_outside():
    xp.register_backend("toy", ToyBackend)
    x = xp.symbol("x", shape=(None,))
    y = xp.sum(xp.exp(x) * 2)
    f = xp.function([x], xp.value_and_grad(y, x), backend="toy")
    point = np.array([0.0, 1.0])
    value, slope = f(point)
    np.testing.assert_allclose(value, 2 * np.exp(point).sum())
    np.testing.assert_allclose(slope, 2 * np.exp(point))
    assert f.fallbacks() == []
    assert ToyBackend.calls > 0


def test_what_it_cannot_do_runs_by_the_reference():
    xp.register_backend("toy", ToyBackend)
    x = xp.symbol("x", shape=(4,))
    f = xp.function([x], xp.cumulative_sum(x * 2) + 1, backend="toy")
    np.testing.assert_allclose(f(np.arange(4.0)), np.cumsum(2 * np.arange(4.0)) + 1)
    assert [text.split("(")[0] for text in f.fallbacks()] == ["cumulative_sum"]
    assert "reference fallback" in f.explain()


def test_unknown_backend_names_the_nearest():
    with pytest.raises(BackendError, match="Did you mean 'numba'"):
        xp.get_backend("nunba")
