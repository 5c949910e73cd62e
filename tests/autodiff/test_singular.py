"""Derivatives at singular points of matrices, complex numbers and loops, everywhere.

All cases are one program for each backend, made through the public namespace.
"""

from functools import cache

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import special
from lazyarr.errors import LinAlgError
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.backends
everywhere = pytest.mark.parametrize("backend", BACKENDS)

DIAGONAL = np.diag([1.0, 1.0, 2.0, 3.0])


def product_of_svd(a):
    u, s, vh = xp.linalg.svd(a, full_matrices=False)
    return xp.linalg.matrix_norm((u * s) @ vh)


def first_vector(a, weight):
    """Something of a vector of equal eigenvalues, times a weight that may be 0."""
    return xp.sum(xp.linalg.eigh(a)[1][:, 0]) * weight + xp.sum(a)


def prefix_sums(x):
    return xp.scan(lambda c, v: (c + v, c + v), 0.0, x)[1]


# name -> (expression of symbols, their values, expected)
CASES = {
    "singular values that are equal": (
        lambda a: xp.grad(xp.sum(xp.linalg.svdvals(a)), a), [DIAGONAL], np.eye(4)),
    "eigenvalues that are equal": (
        lambda a: xp.grad(xp.sum(xp.linalg.eigvalsh(a)), a), [DIAGONAL], np.eye(4)),
    "eigenvalues, second order": (
        lambda a: xp.grad(xp.sum(xp.grad(xp.sum(xp.linalg.eigvalsh(a) ** 2), a)), a),
        [np.diag([1.0, 2.0])], np.full((2, 2), 2.0)),
    "a vector of equal eigenvalues, not used": (
        lambda a: xp.grad(first_vector(a, 0.0), a), [np.eye(2)], np.ones((2, 2))),
    "cholesky": (
        lambda a: xp.grad(xp.sum(xp.linalg.cholesky(a)), a), [np.array([[4.0, 2], [2, 3]])],
        [[0.21338835, 0.0732233], [0.0732233, 0.35355339]]),
    "det of a singular matrix": (
        lambda a: xp.grad(xp.linalg.det(a), a), [np.array([[1.0, 2], [2, 4]])],
        [[4, -2], [-2, 1]]),
    "det, second order": (
        lambda a: xp.grad(xp.sum(xp.grad(xp.linalg.det(a), a)), a),
        [np.array([[1.0, 2], [2, 4]])], [[1, -1], [-1, 1]]),
    "abs of a complex 0": (
        lambda z: xp.grad(xp.sum(xp.abs(z)), z), [np.array([0, 3 + 4j])], [0, 0.6 + 0.8j]),
    "steepest ascent": (
        lambda z: xp.grad(xp.sum(xp.real(z * z)), z), [np.array([1 + 2j])], [2 - 4j]),
    "prefix sums by a loop": (
        lambda x: xp.jacobian(prefix_sums(x), x, mode="reverse"), [np.arange(5.0)],
        np.tril(np.ones((5, 5)))),
    "logsumexp keeps its digits": (
        lambda x: xp.grad(special.logsumexp(x), x) * 2**30, [np.array([1e6, 1e6 - 0.5])],
        2**30 / (1 + np.exp([-0.5, 0.5]))),
    "norm and its square at 0": (
        lambda x: xp.grad(xp.linalg.vector_norm(x) + xp.linalg.vector_norm(x) ** 2, x),
        [np.zeros(2)], [0, 0]),
    "std and hypot at 0, second order": (
        lambda x: xp.grad(xp.sum(xp.grad(xp.std(x) ** 2 + xp.hypot(x[0], x[1]) ** 2, x)), x),
        [np.zeros(2)], [0, 0]),
}  # fmt: skip


@cache
def results(backend: str) -> dict[str, np.ndarray]:
    """The values of all cases, from one program."""
    symbols, arrays, outputs = [], [], []
    for make, values, _ in CASES.values():
        own = [xp.symbol(f"x{len(symbols)}", shape=v.shape, dtype=v.dtype) for v in values]
        symbols += own
        arrays += values
        outputs.append(make(*own))
    found = xp.function(symbols, outputs, backend=backend)(*arrays)
    return dict(zip(CASES, found, strict=True))


@everywhere
@pytest.mark.parametrize("name", CASES)
def test_case(backend: str, name: str) -> None:
    got = results(backend)[name]
    np.testing.assert_allclose(got, CASES[name][2], rtol=1e-7, atol=1e-9)


@everywhere
def test_vectors_of_equal_values_are_nan_or_right(backend: str) -> None:
    """A derivative that needs the gap between equal values says NaN, never another number."""
    a = xp.symbol("a", shape=(4, 4))
    got = xp.function([a], xp.grad(product_of_svd(a), a), backend=backend)(DIAGONAL)
    want = DIAGONAL / np.linalg.norm(DIAGONAL)
    assert np.all(np.isnan(got) | np.isclose(got, want, atol=1e-12))


@everywhere
def test_cholesky_of_what_is_not_positive_definite(backend: str) -> None:
    """One rule: an error, in the gradient too."""
    a = xp.symbol("a", shape=(2, 2))
    f = xp.function([a], xp.grad(xp.sum(xp.linalg.cholesky(a)), a), backend=backend)
    with pytest.raises(LinAlgError, match="positive definite"):
        f(np.array([[1.0, 2], [2, 1]]))
