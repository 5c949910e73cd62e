"""Value and gradient of the models that are loops, on the interpreter and every backend."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import BACKENDS
from tests.models.loops import LOOPS

pytestmark = pytest.mark.backends

DATA = Path(__file__).resolve().parents[1] / "data" / "models"
TOLERANCE = 1e-10


def entry(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LOOPS)
def test_value_and_gradient(name: str, backend: str) -> None:
    stored = entry(name)
    x = xp.symbol("x", shape=(len(stored["points"][0]["point"]),))
    logp = LOOPS[name](x, stored["data"])
    call = xp.function([x], xp.value_and_grad(logp, x), backend=backend)
    for point in stored["points"][: 1 if backend == "interpret" else 3]:
        value, gradient = call(np.array(point["point"]))
        want = np.array(point["grad"])
        scale = max(1.0, float(np.max(np.abs(want))))
        assert abs(float(np.asarray(value)) - point["logp"]) <= TOLERANCE * scale
        np.testing.assert_allclose(np.asarray(gradient), want, rtol=0, atol=TOLERANCE * scale)
    assert call.fallbacks() == [], call.explain()
