"""Value and gradient of the reference models, on the interpreter and every backend."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backend_params import BACKENDS
from tests.models.models import MODELS, compiled

pytestmark = pytest.mark.backends

DATA = Path(__file__).resolve().parents[1] / "data" / "models"
TOLERANCE = {"gp_regr": 1e-8}  # others 1e-10


def entry(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
def test_value_and_gradient(name: str, backend: str) -> None:
    stored = entry(name)
    tolerance = TOLERANCE.get(name, 1e-10)
    size = len(stored["points"][0]["point"])
    call = compiled(name, stored["data"], size, backend)
    for point in stored["points"]:
        value, gradient = call(np.array(point["point"]))
        want = np.array(point["grad"])
        scale = max(1.0, float(np.max(np.abs(want))))
        assert abs(float(np.asarray(value)) - point["logp"]) <= tolerance * scale
        np.testing.assert_allclose(np.asarray(gradient), want, rtol=0, atol=tolerance * scale)
    assert call.fallbacks() == [], call.explain()
