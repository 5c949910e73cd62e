"""A new op is one declaration, made here, outside the package: everything else follows."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.graph import scalar as s
from lazyarr.graph.ops._declare import elementwise
from lazyarr.graph.registry import OPS, op
from lazyarr.namespace.functions import function_of
from tests.backend_params import BACKENDS

if "gelu_like" not in OPS:
    elementwise(
        "gelu_like",
        formula=lambda x: x / (s.exp(x * -1.702) + 1.0),
        reference=lambda x: x / (np.exp(x * -1.702) + 1.0),
        accepts="real floating-point",
        vjp=lambda g, y, x: (
            op.absorb(g, op.add(op.expit(op.multiply(x, 1.702)), op.multiply(
                op.multiply(y, 1.702), op.expit(op.multiply(x, -1.702))))),
        ),
        doc="x times the logistic sigmoid of 1.702 x.",
    )  # fmt: skip

gelu = function_of("gelu_like")
POINT = np.linspace(-2.0, 2.0, 5)


def exact(x: np.ndarray) -> np.ndarray:
    """The function by NumPy."""
    return x / (1 + np.exp(-1.702 * x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_value_and_gradient(backend):
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], xp.value_and_grad(xp.sum(gelu(x)), x), backend=backend)
    value, slope = f(POINT)
    step = 1e-6
    np.testing.assert_allclose(value, exact(POINT).sum(), rtol=1e-12)
    difference = (exact(POINT + step) - exact(POINT - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-8)
    assert f.fallbacks() == []


def test_named_and_batched():
    x = xp.XTensor(POINT, dims="obs")
    assert gelu(x).dims == ("obs",)
    np.testing.assert_allclose(gelu(x).values, exact(POINT))
    batched = xp.vectorize(lambda row: xp.sum(gelu(row)))(xp.asarray(np.stack([POINT, POINT])))
    np.testing.assert_allclose(batched.compute(), [exact(POINT).sum()] * 2)
