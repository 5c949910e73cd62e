"""Shared state, updates, and compiled functions that are pickled."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import GraphError
from tests.backend_params import BACKENDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_updates_are_written_after_the_call(backend):
    w = xp.shared(np.ones(2), name="w")
    x = xp.symbol("x", shape=(2,))
    step = xp.function([x], xp.sum(w * x), updates=[(w, w - 0.5 * x)], backend=backend)
    assert float(step(np.ones(2))) == 2.0
    np.testing.assert_array_equal(w.get_value(), [0.5, 0.5])
    assert float(step(np.ones(2))) == 1.0
    w.set_value([3.0, 4.0])
    assert float(step(np.ones(2))) == 7.0


def test_state_never_aliases():
    given = np.ones(2)
    w = xp.shared(given)
    given[:] = 9
    f = xp.function([], w, updates=[(w, w * 2)], backend="interpret")
    out = f()
    out[:] = -1
    w.get_value()[:] = -1
    np.testing.assert_array_equal(w.get_value(), [2.0, 2.0])
    np.testing.assert_array_equal(f(), [2.0, 2.0])


def test_wrong_updates_are_refused():
    w, x = xp.shared(np.ones(2)), xp.symbol("x", shape=(3,))
    with pytest.raises(GraphError, match=r"float64\[3\]"):
        xp.function([x], x, updates=[(w, x)])
    with pytest.raises(GraphError, match="not shared"):
        xp.function([x], x, updates=[(x, x)])


LOAD = """
import pickle, sys
import numpy as np
import lazyarr as xp
f = pickle.load(open(sys.argv[1], "rb"))
value, slope = f(np.array([1.0, 2.0, 3.0]))
one, _ = f(np.array([2.0]))
print(float(value), slope.tolist(), float(one), xp.stats()["compiles"])
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pickled_function_loads_in_another_process(backend, tmp_path):
    x = xp.symbol("x", shape=(None,))
    scale = xp.asarray([2.0])
    f = xp.function([x], xp.value_and_grad(xp.sum(scale * x**2), x), backend=backend)
    path = tmp_path / "f.pickle"
    path.write_bytes(pickle.dumps(f))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["28.0", "[4.0,", "8.0,", "12.0]", "8.0", "1"]


def test_named_results_keep_their_labels_through_pickle():
    pytest.importorskip("xarray")
    x = xp.symbol("x", dims="obs", coords={"obs": ["a", "b"]})
    f = pickle.loads(pickle.dumps(xp.function([x], x * 2, backend="interpret")))
    out = f(np.array([1.0, 2.0]))
    assert out.dims == ("obs",)
    assert out.sel(obs="b") == 4.0
