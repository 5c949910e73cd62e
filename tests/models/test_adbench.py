"""The objectives of ADBench and their derivatives, on the interpreter and every backend."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backend_params import BACKENDS
from tests.models.adbench import compiled_ba, compiled_gmm

pytestmark = pytest.mark.backends

DATA = Path(__file__).resolve().parents[1] / "data" / "models"


def entry(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def close(got: Any, want: Any) -> None:
    want = np.asarray(want)
    scale = max(1.0, float(np.max(np.abs(want))))
    assert np.shape(got) == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("backend", BACKENDS)
def test_mixture(backend: str) -> None:
    stored = entry("adbench_gmm")
    call, arrays = compiled_gmm(stored["data"], backend)
    value, gradients = call(*arrays)
    close(value, stored["reference"]["objective"])
    for g, name in zip(gradients, ("alphas", "means", "icf"), strict=True):
        close(g, stored["reference"][f"grad_{name}"])
    assert call.fallbacks() == [], call.explain()


@pytest.mark.parametrize("backend", BACKENDS)
def test_bundle_adjustment(backend: str) -> None:
    """One Jacobian block per observation, also where a camera is not turned at all."""
    stored = entry("adbench_ba")
    call, arrays = compiled_ba(stored["data"], backend)
    assert not np.any(arrays[0][0, :3])
    for name, value in call(*arrays).items():
        close(value, stored["reference"][name])
    assert call.fallbacks() == [], call.explain()
