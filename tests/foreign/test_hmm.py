"""The hidden Markov model of examples/hmm_wrap_jax.py against exact values, on every backend."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.backend_params import BACKENDS

pytest.importorskip("jax")
pytest.importorskip("scipy")

PATH = Path(__file__).resolve().parents[2] / "examples" / "hmm_wrap_jax.py"
spec = importlib.util.spec_from_file_location("hmm_wrap_jax", PATH)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


@pytest.mark.parametrize("backend", BACKENDS)
def test_value_and_gradients(backend):
    f = example.compiled(backend)
    assert len(f.fallbacks()) == (0 if backend in ("jax", "interpret") else 1)
    for case in example.read()[1]:
        value, slopes = f(case["signal"], case["noise"], np.array(case["logpi"]), case["logA"])
        np.testing.assert_allclose(value, case["logp"], rtol=1e-12)
        for name, got in zip(("signal", "noise", "logpi", "logA"), slopes, strict=True):
            np.testing.assert_allclose(got, case[f"grad_{name}"], rtol=1e-9, atol=1e-9)
        zeros = np.isneginf(case["logA"])
        assert (slopes[3][zeros] == 0).all()
