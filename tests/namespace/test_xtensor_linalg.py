"""Linear algebra with `dims=`."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.errors import DimError
from lazyarr.namespace import xtensor_linalg as linalg
from lazyarr.testing import check_grads

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
def test_wrong_dims_are_refused(dims) -> None:
    x = XTensor(np.eye(2), dims=("row", "col"))
    with pytest.raises(DimError):
        xp.linalg.cholesky(x, dims=dims)


def test_labels_stay() -> None:
    x = XTensor(np.eye(2), dims=("row", "col"), coords={"row": ["a", "b"]})
    assert xp.linalg.cholesky(x, dims=("row", "col")).sel(row="b").values.tolist() == [0.0, 1.0]


# -- every function of matrices, against NumPy over the batch --------------------------------------


def named(values: np.ndarray) -> XTensor:
    x = XTensor(values, dims=("chain", "row", "col"), coords={"row": list("abc")}, name="m")
    return x.transpose("row", "chain", "col")


@pytest.mark.parametrize("name", sorted(linalg.FORMS))
def test_as_numpy_over_the_batch(name: str) -> None:
    values = matrices()
    got = getattr(linalg, name)(named(values), dims=("row", "col"))
    reference = {
        "matrix_rank": np.linalg.matrix_rank,
        "svd": lambda m: np.linalg.svd(m, full_matrices=False),
        "svdvals": lambda m: np.linalg.svd(m, compute_uv=False),
        "trace": lambda m: np.trace(m, axis1=1, axis2=2),
    }.get(name) or getattr(np.linalg, name)
    want = reference(values)
    many = got if isinstance(got, tuple) else (got,)
    for g, w in zip(many, want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(abs(g.values), abs(w), rtol=1e-9, atol=1e-9)
        assert g.dims[0] == "chain" and g.name == "m"
        assert ("row" in g.coords) == ("row" in g.dims)


def test_solve_and_products() -> None:
    values = matrices()
    a, b = named(values), XTensor(RNG.normal(size=(3, 4)), dims=("row", "k"))
    x = linalg.solve(a, b, dims=("row", "col"))
    assert x.dims == ("chain", "col", "k")
    again = a.dot(x, dim="col").transpose("row", "k", "chain")
    np.testing.assert_allclose(again.values[..., 0], b.values)
    p = linalg.matmul(a, b, dims=(("col", "row"), ("row", "k")))
    assert p.dims == ("chain", "col", "k")
    e = linalg.einsum([("row", "col"), ("row", "k"), ("col", "k")], a, b)
    np.testing.assert_allclose(e.transpose(*p.dims).values, p.values)
    assert linalg.einsum([("row", "col"), ("row",)], a, b).dims == ("chain", "col", "k")


def test_norms() -> None:
    values = matrices()
    x = named(values)
    np.testing.assert_allclose(
        xp.linalg.vector_norm(x, dims="col").transpose("chain", "row").values,
        np.linalg.norm(values, axis=-1),
    )
    np.testing.assert_allclose(
        xp.linalg.matrix_norm(x, dims=("row", "col")).values, np.linalg.norm(values, axis=(1, 2))
    )


def test_dims_are_never_guessed() -> None:
    with pytest.raises(DimError, match="needs dims="):
        xp.linalg.inv(named(matrices()))
    with pytest.raises(DimError, match="right side"):
        linalg.solve(named(matrices()), XTensor(np.ones(2), dims="z"), dims=("row", "col"))


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (3, 5)])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_least_squares(shape: tuple, columns: tuple) -> None:
    """As NumPy's, also where columns depend on each other; it has a gradient."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=(shape[0], *columns))
    for a in (rng.normal(size=shape), np.outer(np.arange(1.0, shape[0] + 1), np.ones(shape[1]))):
        want, _, rank, values = np.linalg.lstsq(a, b, rcond=None)
        got = np.linalg.lstsq(xp.asarray(a), xp.asarray(b))
        assert isinstance(got.x, xp.Array) and int(got.rank) == rank
        np.testing.assert_allclose(got.x, want, atol=1e-9)
        np.testing.assert_allclose(got.s, values, atol=1e-9)
        np.testing.assert_allclose(got.residuals, np.sum((b - a @ want) ** 2, 0), atol=1e-9)
    check_grads(lambda y: xp.sum(xp.linalg.lstsq(a, y).x ** 2), (b,), order=1)
