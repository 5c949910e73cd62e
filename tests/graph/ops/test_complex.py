"""Derivatives by complex numbers: the gradient is the direction of steepest ascent."""

from collections.abc import Callable

import numpy as np
import pytest

import lazyarr as xp

STEP = 1e-6


@pytest.fixture(autouse=True)
def interpreted():
    with xp.set_options(tier="interpret"):
        yield


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def loss(f: Callable, weights: np.ndarray, *args: object):
    """A real number of the result: the real part of a weighted sum."""
    return xp.sum(xp.real(f(*args) * xp.asarray(weights)))


def hermitian(x: np.ndarray) -> np.ndarray:
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


SQUARE, TALL = (2, 3, 3), (2, 4, 3)
CASES: dict[str, tuple] = {
    "multiply": (lambda a, b: a * b, (3,), (3,)),
    "divide": (lambda a, b: a / b, (3,), (3,)),
    "pow": (lambda a, b: a**b, (3,), (3,)),
    "exp": (xp.exp, (3,)),
    "expm1": (xp.expm1, (3,)),
    "log1p": (xp.log1p, (3,)),
    "sqrt": (xp.sqrt, (3,)),
    "tanh": (xp.tanh, (3,)),
    "asin": (xp.asin, (3,)),
    "acosh": (xp.acosh, (3,)),
    "asinh": (xp.asinh, (3,)),
    "atanh": (xp.atanh, (3,)),
    "abs": (xp.abs, (3,)),
    "sign": (xp.sign, (3,)),
    "conj": (xp.conj, (3,)),
    "real": (xp.real, (3,)),
    "imag": (xp.imag, (3,)),
    "reciprocal": (xp.reciprocal, (3,)),
    "sum": (xp.sum, (2, 3)),
    "prod": (xp.prod, (4,)),
    "cumulative_prod": (lambda a: xp.cumulative_prod(a, axis=1), (2, 4)),
    "where": (lambda a, b: xp.where(xp.real(a) > 0, a, b), (4,), (4,)),
    "matmul": (lambda a, b: a @ b, (2, 3), (3, 2)),
    "vecdot": (xp.vecdot, (2, 3), (2, 3)),
    "inv": (xp.linalg.inv, SQUARE),
    "cholesky": (lambda a: xp.linalg.cholesky(a @ xp.conj(a.mT)), SQUARE),
    "cholesky, upper": (lambda a: xp.linalg.cholesky(a @ xp.conj(a.mT), upper=True), SQUARE),
    "det": (xp.linalg.det, SQUARE),
    "solve": (xp.linalg.solve, SQUARE, (2, 3, 2)),
    "logdet": (lambda a: xp.linalg.slogdet(a).logabsdet, SQUARE),
    "sign of det": (lambda a: xp.linalg.slogdet(a).sign, SQUARE),
    "eigvalsh": (lambda a: xp.linalg.eigvalsh(a + xp.conj(a.mT)), SQUARE),
    "eigvals": (xp.linalg.eigvals, SQUARE),
    "svdvals": (xp.linalg.svdvals, TALL),
    "Q": (lambda a: xp.linalg.qr(a).Q, TALL),
    "R": (lambda a: xp.linalg.qr(a).R, TALL),
    "pinv": (xp.linalg.pinv, TALL),
    "low rank": (
        lambda a: (lambda r: (r.U * r.S[..., None, :] ** 2) @ r.Vh)(
            xp.linalg.svd(a, full_matrices=False)
        ),
        TALL,
    ),
    "projector": (
        lambda a: (lambda v: v[..., :, :1] @ xp.conj(v[..., :, :1].mT))(
            xp.linalg.eigh(a + xp.conj(a.mT)).eigenvectors
        ),
        SQUARE,
    ),
    "matrix_norm": (xp.linalg.matrix_norm, SQUARE),
    "nuclear norm": (lambda a: xp.linalg.matrix_norm(a, ord="nuc"), SQUARE),
    "vector_norm": (lambda a: xp.linalg.vector_norm(a, axis=1, ord=3), (2, 3)),
    "cross": (xp.linalg.cross, (2, 3), (2, 3)),
    "fft": (lambda a: xp.fft.fft(a, n=7), (2, 5)),
    "ifft": (lambda a: xp.fft.ifft(a, n=3, norm="ortho"), (2, 5)),
    "fftn": (lambda a: xp.fft.fftn(a, axes=(0, 2)), (2, 3, 4)),
    "irfft": (lambda a: xp.fft.irfft(a, n=7), (2, 5)),
    "irfft, even": (lambda a: xp.fft.irfft(a, norm="forward"), (2, 5)),
    "hfft": (lambda a: xp.fft.hfft(a, n=6), (2, 4)),
    "irfftn": (xp.fft.irfftn, (2, 3, 4)),
    "roll": (lambda a: xp.roll(a, 2, axis=1), (2, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_by_differences(name: str) -> None:
    """dL = Re(conj(g) dz) for the gradient g, along a random direction."""
    f, *shapes = CASES[name]
    rng = np.random.default_rng(7)
    points = [draw(rng, *s) for s in shapes]
    shape = f(*map(xp.asarray, points)).shape
    weights = draw(rng, *shape)
    handles = [xp.asarray(p) for p in points]
    found = xp.grad(loss(f, weights, *handles), handles)
    for i, g in enumerate(found):
        direction = draw(rng, *shapes[i])
        ends = []
        for sign in (1, -1):
            moved = list(points)
            moved[i] = points[i] + sign * STEP * direction
            ends.append(float(loss(f, weights, *map(xp.asarray, moved))))
        numeric = (ends[0] - ends[1]) / (2 * STEP)
        exact = np.sum(np.conj(g.compute()) * direction).real
        assert exact == pytest.approx(numeric, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ["exp", "abs", "sign", "conj", "real", "imag", "matmul", "fft"])
def test_tangents_by_differences(name: str) -> None:
    f, *shapes = CASES[name]
    rng = np.random.default_rng(3)
    points, directions = ([draw(rng, *s) for s in shapes] for _ in range(2))
    _, tangent = xp.jvp(f, points, directions)
    ends = [
        np.asarray(
            f(*(xp.asarray(p + s * STEP * d) for p, d in zip(points, directions, strict=True)))
        )
        for s in (1, -1)
    ]
    numeric = (ends[0] - ends[1]) / (2 * STEP)
    np.testing.assert_allclose(tangent.compute(), numeric, rtol=1e-5, atol=1e-7)


def test_a_real_operand_has_a_real_gradient() -> None:
    x = xp.asarray([1.0, 2.0])
    g = xp.grad(xp.sum(xp.abs(x * xp.asarray([1j, 2.0 + 1j]))), x)
    assert g.dtype == xp.float64
    np.testing.assert_allclose(g.compute(), [1, np.sqrt(5)])


def test_gradient_of_a_squared_length_is_twice_the_number() -> None:
    z = xp.asarray([1 + 2j, -3j])
    g = xp.grad(xp.sum(xp.real(z * xp.conj(z))), z)
    np.testing.assert_allclose(g.compute(), 2 * np.asarray(z))
