"""`check_grads` lets right derivatives pass and says what is wrong about wrong ones."""

from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor, special
from lazyarr.errors import ArgumentError, GradientError
from lazyarr.testing import check_grads

X = np.array([[0.1, 2.0], [0.3, 0.4]])

RIGHT = {
    "two numbers": (lambda x, y: xp.sin(x) * y, (0.3, 2.0)),
    "a pytree, an integer beside": (
        lambda d, k: {"out": xp.linalg.cholesky(d["a"] @ d["a"].T + np.eye(2) * k), "n": k},
        ({"a": X}, 2),
    ),
    "float32": (
        lambda x: special.logsumexp(x, axis=0) + special.gammaln(x), (X.astype("float32"),)
    ),
    "complex numbers": (lambda z: xp.abs(z * z + 1) * xp.exp(z), (X + 1j,)),
    "names": (lambda x: (x**2).sum("a") * x, (XTensor(X, dims=("a", "b")),)),
    "piecewise": (lambda x: xp.abs(x - 0.2) * xp.maximum(x, 0.35) + xp.max(x), (X,)),
    "a loop": (
        lambda x: xp.scan(lambda c, v: (xp.tanh(c * 0.5 + v), c), x[0], x)[0], (X,)
    ),
}  # fmt: skip


def test_labelled_arrays() -> None:
    xarray = pytest.importorskip("xarray")
    check_grads(lambda x: (x**2).sum("a"), (xarray.DataArray(X, dims=("a", "b")),))


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str) -> None:
    f, args = RIGHT[name]
    check_grads(f, args)


def test_third_order() -> None:
    check_grads(lambda z: xp.real(z**4), (X[0] + 1j,), order=3, modes=("rev",))
    check_grads(lambda x: x**4 * xp.exp(x), (X[0],), order=3)


@pytest.mark.backends
@pytest.mark.parametrize("backend", ["c"])
def test_on_a_backend(backend: str) -> None:
    check_grads(lambda x: xp.exp(x) * x, (X,), backend=backend)


def wrong(factor: Any) -> Any:
    f = xp.custom_vjp(lambda x: xp.exp(x))
    f.defvjp(lambda g, y, x: g * y * factor(x))
    return f


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_first_derivative(mode: str) -> None:
    f = wrong(lambda x: xp.where(x > 1, 1.001, 1.0))
    with pytest.raises(GradientError) as error:
        check_grads(lambda k, d: f(d["x"]), (1, {"x": X}), modes=(mode,))
    text = str(error.value)
    assert "order 1" in text and "args[1]['x'][0, 1]" in text and mode in text
    got, want = (float(w.rstrip(".,")) for w in text.split() if w.startswith("8.3"))
    assert got == pytest.approx(want * 1.001)


def test_a_wrong_second_derivative() -> None:
    f = xp.custom_vjp(lambda x: xp.exp(x))
    f.defvjp(lambda g, y, x: g * xp.exp(xp.stop_gradient(x)))
    check_grads(f, (X,), order=1)
    with pytest.raises(GradientError, match="order 2.*rev, then rev.* is 0,"):
        check_grads(f, (X,), modes=("rev",))


def test_nan_is_wrong() -> None:
    with pytest.raises(GradientError, match="is nan"):
        check_grads(wrong(lambda x: xp.where(x > 1, xp.nan, 1.0)), (X,))


def test_what_cannot_be_checked() -> None:
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(xp.exp, (X,), modes=("back",))
    with pytest.raises(ArgumentError, match="no argument"):
        check_grads(lambda x: x, (1,))
    with pytest.raises(ArgumentError, match="nothing floating"):
        check_grads(lambda x: x > 0, (X,))
