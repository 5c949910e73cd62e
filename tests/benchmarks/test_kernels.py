"""The hand-written kernels, against which lazyarr is measured, compute the models."""

import json

import numpy as np
import pytest

from benchmarks.by_hand import DATA, MODELS
from benchmarks.kernels import bind

pytestmark = [pytest.mark.fast, pytest.mark.backends]


@pytest.mark.parametrize("name", MODELS)
def test_value_and_gradient(name: str) -> None:
    entry = json.loads((DATA / f"{MODELS[name]}.json").read_text())
    call = bind(name, entry["data"])
    for point in entry["points"]:
        value, gradient = call(np.array(point["point"]))
        scale = max(1.0, np.max(np.abs(point["grad"])))
        assert abs(value - point["logp"]) <= 1e-12 * scale
        np.testing.assert_allclose(gradient, point["grad"], rtol=0, atol=1e-12 * scale)
