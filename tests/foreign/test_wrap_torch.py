"""Torch functions as parts of expressions."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError
from tests.backend_params import BACKENDS

torch = pytest.importorskip("torch")

from lazyarr.backends.torch.foreign import TorchFramework  # noqa: E402

POINT = np.linspace(0.3, 1.7, 5)
on_backends = pytest.mark.parametrize("backend", BACKENDS)


@xp.wrap_torch
def energy(tree, power=2):
    return torch.sum(torch.tanh(tree["x"]) ** power * tree["s"]), ["text", power]


@on_backends
def test_value_and_gradient_are_one_call(backend, monkeypatch):
    runs = []
    run = TorchFramework.run
    monkeypatch.setattr(
        TorchFramework, "run", lambda self, c, a: runs.append(str(c)) or run(self, c, a)
    )
    x, s = xp.symbol("x", shape=(5,)), xp.symbol("s")
    value, rest = energy({"x": x, "s": s})
    assert rest == ["text", 2]
    f = xp.function([x, s], xp.value_and_grad(value, [x, s]), backend=backend)
    got, slopes = f(POINT, 1.5)
    t = np.tanh(POINT)
    np.testing.assert_allclose(got, 1.5 * np.sum(t**2))
    np.testing.assert_allclose(slopes[0], 3 * t * (1 - t * t))
    np.testing.assert_allclose(slopes[1], np.sum(t**2))
    assert len(runs) == (0 if backend == "torch" else 1)


@on_backends
def test_orders_modes_and_batches(backend):
    f = xp.wrap_torch(lambda x: torch.sum(x**3) * x)
    x = xp.symbol("x", shape=(2, 5))

    def all_of(f):
        def one(row):
            return xp.sum(f(row) ** 2)

        return [
            xp.vectorize(f)(x),
            xp.vectorize(xp.grad(one))(x),
            xp.jvp(xp.grad(one), (x[0, :],), (x[1, :],))[1],
        ]

    rows = np.stack([POINT, -POINT])
    got = xp.function([x], all_of(f), backend=backend)(rows)
    want = xp.function([x], all_of(lambda x: xp.sum(x**3) * x), backend="interpret")(rows)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@on_backends
def test_complex_gradients_have_our_convention(backend):
    z = xp.symbol("z", shape=(3,), dtype="complex128")
    middle = xp.wrap_torch(lambda z: z * z + (1 + 2j) * z)(z)
    native = z * z + (1 + 2j) * z
    outputs = [xp.grad(xp.sum(xp.abs(y) ** 2), z) for y in (middle, native)]
    a, b = xp.function([z], outputs, backend=backend)(POINT[:3] + 1j * POINT[2:])
    np.testing.assert_allclose(a, b, rtol=1e-10)


def test_unknown_sizes_are_declared():
    x = xp.symbol("x", shape=(None,))
    with pytest.raises(ArgumentError, match="give `out=`"):
        xp.wrap_torch(torch.sin)(x)
    f = xp.wrap_torch(torch.sin, out=lambda x: x)
    np.testing.assert_allclose(xp.function([x], f(x), backend="torch")(POINT), np.sin(POINT))
