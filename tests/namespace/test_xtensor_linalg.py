"""Linear algebra with `dims=`."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.errors import DimError
from lazyarr.namespace import xtensor_linalg as linalg

pytestmark = pytest.mark.fast
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def interpreted():
    with xp.set_options(backend="interpret"):
        yield


def matrices(batch: int = 2, n: int = 3) -> np.ndarray:
    a = RNG.normal(size=(batch, n, n))
    return a @ a.transpose(0, 2, 1) + np.eye(n)


def test_cholesky_with_batch_dims_anywhere() -> None:
    values = matrices()
    x = XTensor(values, dims=("chain", "row", "col")).transpose("row", "chain", "col")
    factor = xp.linalg.cholesky(x, dims=("row", "col"))
    assert factor.dims == ("chain", "row", "col")
    np.testing.assert_allclose(factor.values, np.linalg.cholesky(values))


@pytest.mark.parametrize("columns", [(), ("k",), ("k", "m")])
@pytest.mark.parametrize("trans", [False, True])
def test_solve_triangular(columns: tuple, trans: bool) -> None:
    lower = np.linalg.cholesky(matrices())
    dims = (*columns, "col" if trans else "row")
    sizes = {"row": 3, "col": 3, "k": 2, "m": 4}
    b = RNG.normal(size=tuple(sizes[d] for d in dims))
    a = XTensor(lower, dims=("chain", "row", "col"))
    out = xp.linalg.solve_triangular(a, XTensor(b, dims=dims), dims=("row", "col"), trans=trans)
    found = "row" if trans else "col"
    assert out.dims == ("chain", found, *columns)
    product = (a * out).sum(found)
    want = XTensor(b, dims=dims).broadcast_like(product).transpose(*product.dims)
    np.testing.assert_allclose(product.values, want.values)


def test_diagonal() -> None:
    x = XTensor(np.arange(18.0).reshape(2, 3, 3), dims=("b", "row", "col"))
    assert linalg.diagonal(x, dims=("row", "col")).dims == ("b", "row")
    out = xp.linalg.diagonal(x, dims=("row", "col"), out_dim="diag", offset=1)
    assert out.dims == ("b", "diag") and out.values.tolist() == [[1.0, 5.0], [10.0, 14.0]]


@pytest.mark.parametrize("dims", [None, ("row",), ("row", "cols"), ("row", "row")])
def test_dims_are_never_guessed(dims) -> None:
    x = XTensor(np.eye(2), dims=("row", "col"))
    with pytest.raises(DimError):
        xp.linalg.cholesky(x, dims=dims)


def test_labels_stay() -> None:
    x = XTensor(np.eye(2), dims=("row", "col"), coords={"row": ["a", "b"]})
    assert xp.linalg.cholesky(x, dims=("row", "col")).sel(row="b").values.tolist() == [0.0, 1.0]
