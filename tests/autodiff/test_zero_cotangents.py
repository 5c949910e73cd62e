"""A zero cotangent lets nothing through, also in products of vectors with what is not finite."""

import numpy as np
import pytest

import lazyarr as xp

NAN = np.array([np.nan, 1.0, np.inf])


@pytest.mark.parametrize(
    "product",
    [
        lambda x, c: xp.vecdot(x, c),
        lambda x, c: xp.sum(x * c),
        lambda x, c: xp.sum(xp.linalg.outer(x, c)),
        lambda x, c: xp.sum(xp.linalg.cross(x, c)),
        lambda x, c: xp.tensordot(x, c, axes=1),
        lambda x, c: x @ c,
    ],
)
def test_branch_not_taken(product) -> None:
    """In both modes and orders."""

    def f(x, flag):
        return xp.where(flag, product(x, NAN), xp.sum(x**2))

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(xp.grad(f)(x, False).compute(), 2 * x)
    np.testing.assert_array_equal(xp.hessian(f)(x, False).compute(), 2 * np.eye(3))
    assert float(xp.jvp(lambda x: f(x, False), (x,), (x,))[1]) == 28
