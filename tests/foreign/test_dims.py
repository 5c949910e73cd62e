"""Wrapped functions of named arrays: order of axes, dims that are mapped over, coordinates."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, DimError
from tests.backend_params import BACKENDS

TIMES, SITES, GROUPS = [10, 20, 30], ["a", "b"], [5, 6, 7, 8]
VALUES = np.arange(6.0).reshape(3, 2)
WEIGHTS = np.array([1.0, -2.0])


def weigh(x, w):
    """time x site and site: a number for each time, and the largest."""
    assert x.shape == (3, 2) and w.shape == (2,)
    return x @ w, (x * w).sum()


def rule(g, y, x, w):
    return [
        xp.expand_dims(g[0], axis=1) * w + g[1] * w,
        xp.sum(xp.expand_dims(g[0], axis=1) * x, axis=0) + g[1] * xp.sum(x, axis=0),
    ]


def wrapped(language):
    dims = "(time, site), (site) -> (time), ()"
    if language == "numpy":
        out = [("float64", (3,)), ("float64", ())]
        return xp.wrap_numpy(weigh, out=out, vjp=rule, dims=dims)
    if language == "c":
        source = (
            "void weigh(int64_t n, int64_t m, const double *x, const double *w, double *y,"
            " double *s) { *s = 0; for (int64_t i = 0; i < n; i++) { y[i] = 0;"
            " for (int64_t j = 0; j < m; j++) { y[i] += x[i * m + j] * w[j];"
            " *s += x[i * m + j] * w[j]; } } }"
        )
        signature = "weigh(n, m, x: float64[n, m], w: float64[m]) -> (y: float64[n], s: float64[])"
        return xp.wrap_c(source, signature, vjp=rule, dims=dims)
    return xp.wrap_jax(weigh, dims=dims)


def named(values, dims):
    known = {"time": TIMES, "site": SITES, "group": GROUPS}
    return xp.XTensor(values, dims=dims, coords={d: known[d] for d in dims})


@pytest.mark.parametrize("language", ["numpy", "c", "jax"])
def test_order_of_axes_and_coordinates(language):
    if language == "jax":
        pytest.importorskip("jax")
    f = wrapped(language)
    w = named(WEIGHTS, ["site"])
    for x in (named(VALUES, ["time", "site"]), named(VALUES.T, ["site", "time"])):
        rows, total = f(x, w)
        assert rows.dims == ("time",) and total.dims == ()
        assert list(rows.coords) == ["time"]
        np.testing.assert_array_equal(rows.coords["time"].values, TIMES)
        np.testing.assert_allclose(rows.values, VALUES @ WEIGHTS)
        np.testing.assert_allclose(float(total), np.sum(VALUES * WEIGHTS))
    plain, _ = f(VALUES, WEIGHTS)  # positional arguments have the order of the signature
    assert plain.dims == ("time",)
    np.testing.assert_allclose(plain.values, VALUES @ WEIGHTS)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("language", ["numpy", "c", "jax"])
def test_other_dims_are_mapped_over(language, backend):
    if language == "jax":
        pytest.importorskip("jax")
    f = wrapped(language)
    many = np.stack([VALUES * k for k in range(1, 5)], axis=1)  # time, group, site
    x = named(many, ["time", "group", "site"])
    w = named(np.stack([WEIGHTS, WEIGHTS + 1, -WEIGHTS, 2 * WEIGHTS]).T, ["site", "group"])
    with xp.set_options(backend=backend):
        rows, total = f(x, w)
        assert rows.dims == ("group", "time") and total.dims == ("group",)
        np.testing.assert_array_equal(rows.coords["group"].values, GROUPS)
        want = np.einsum("tgs,sg->gt", many, w.values)
        np.testing.assert_allclose(rows.values, want)
        np.testing.assert_allclose(total.values, want.sum(1))
        slope = xp.grad(lambda x: xp.sum(f(x, w)[0] ** 2))(x)
        assert slope.dims == x.dims
        np.testing.assert_allclose(slope.values, 2 * np.einsum("gt,sg->tgs", want, w.values))


def test_what_does_not_fit():
    f = wrapped("numpy")
    x, w = named(VALUES, ["time", "site"]), named(WEIGHTS, ["site"])
    with pytest.raises(DimError, match="needs 'site'"):
        f(x, named(np.ones(3), ["time"]))
    with pytest.raises(DimError, match="2 axes stands for"):
        f(x, VALUES)
    with pytest.raises(ArgumentError, match="2 arguments on its left"):
        f(x)
    with pytest.raises(ArgumentError, match="cannot read the dims"):
        xp.wrap_numpy(weigh, out=0, dims="time, site -> time")
    g = xp.wrap_numpy(
        weigh, out=[("float64", (3,)), ("float64", ())], dims="(time, site), (site) -> ()"
    )
    with pytest.raises(ArgumentError, match="1 results on its right"):
        g(x, w)
