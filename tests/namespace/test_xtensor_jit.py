"""`function` and `jit` on labelled arguments; other labels of the same sizes compile nothing."""

from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.backends import stats
from lazyarr.errors import DimError, LabelError

xr = pytest.importorskip("xarray")

RNG = np.random.default_rng(0)


def labelled(cities: list, kinds: list) -> Any:
    coords = {"city": cities, "kind": ("city", kinds), "time": np.arange(6)}
    return xr.DataArray(RNG.normal(size=(4, 6)), coords, ("city", "time"), name="t")


def model(x: Any, scale: Any) -> dict[str, Any]:
    """Selection, groups, windows, reindexing and a join by label."""
    cities = x.coords["city"].values
    return {
        "picked": x.sel(city=list(cities[::2])).sum("city"),
        "groups": (x - x.mean("city")).groupby("kind").mean(),
        "smooth": x.rolling(time=3).mean(),
        "turned": x.reindex(city=cities[::-1]) * scale,
    }


LABELS = [
    (list("abcd"), list("uvuv")),
    (list("efgh"), list("uvuv")),
    ([1, 2, 3, 4], list("xxyy")),
    ([9, 2, 3, 7], list("xyyy")),
]


@pytest.mark.backends
def test_other_labels_compile_nothing() -> None:
    f = xp.jit(model, backend="c")
    scale = xr.DataArray(2.0)
    for i, labels in enumerate(LABELS):
        x = labelled(*labels)
        stats.reset()
        got = f(x, scale)
        made = xp.stats()
        assert made["compiles"] + made["loads"] == (0 if i else 1)
        want = model(x, scale)
        for name in want:
            xr.testing.assert_allclose(got[name], want[name])


def test_kinds_of_results_are_those_of_the_arguments() -> None:
    x = labelled(*LABELS[0])
    f = xp.jit(lambda a: a.mean("city"), backend="interpret")
    assert f(x).identical(x.mean("city"))
    assert isinstance(f(XTensor(x)), XTensor)
    assert f(x.rename("other")).name == "other"
    assert f(x.assign_attrs(u=1)).attrs == {"u": 1}


def test_dataset() -> None:
    x = labelled(*LABELS[0])
    ds = xr.Dataset({"t": x, "w": x.isel(time=0, drop=True) * 2}, attrs={"u": 1})
    lazy = xp.XDataset(ds)
    assert lazy.sizes == dict(ds.sizes) and set(lazy) == {"t", "w"}
    assert lazy.to_xarray().identical(ds)
    assert (lazy * 2).mean("time").to_xarray().equals((ds * 2).mean("time"))
    assert lazy.isel(time=slice(1, 3)).to_xarray().equals(ds.isel(time=slice(1, 3)))
    assert lazy.sel(city="b").to_xarray().equals(ds.sel(city="b"))
    assert lazy.map(xp.exp).compute().equals(ds.map(np.exp))
    more = lazy.assign(s=lambda d: d["t"] + d["w"])
    assert more.to_xarray().equals(ds.assign(s=lambda d: d["t"] + d["w"]))
    assert "t" in repr(lazy) and lazy["city"].values.tolist() == list("abcd")
    with pytest.raises(DimError, match="Did you mean 'time'"):
        lazy.mean("tiem")
    with pytest.raises(LabelError):
        lazy["x"]


def test_jit_takes_a_dataset() -> None:
    x = labelled(*LABELS[0])
    ds = xr.Dataset({"t": x, "w": x.isel(time=0, drop=True) * 2})
    f = xp.jit(lambda d: (d["t"] * d["w"]).sum("city"), backend="interpret")
    assert f(ds).equals((ds["t"] * ds["w"]).sum("city"))


def dataset() -> Any:
    x = labelled(*LABELS[0])
    return xr.Dataset({"t": x, "alpha": x.isel(time=0, drop=True) * 2}, attrs={"u": 1})


def test_jit_of_a_dataset_returns_one() -> None:
    ds = dataset()
    f = xp.jit(
        lambda d, k: {"twice": d * k, "means": (d["t"].mean("city"), d)}, backend="interpret"
    )
    got = f(ds, 2.0)
    assert isinstance(got["twice"], xr.Dataset) and got["twice"].identical(ds * 2)
    assert got["means"][0].identical(ds["t"].mean("city"))
    assert got["means"][1].identical(ds) and list(got["twice"]) == ["t", "alpha"]
    assert isinstance(f(xp.XDataset(ds), 2.0)["twice"], xp.XDataset)
    assert f(ds.assign_attrs(u=2), 2.0)["twice"].attrs == {"u": 2}
    assert f(ds[["alpha", "t"]], 2.0)["twice"].identical((ds * 2)[["alpha", "t"]])


@pytest.mark.backends
@pytest.mark.parametrize("backend", ["interpret", "c"])
def test_function_of_a_dataset_returns_one(backend: str) -> None:
    ds = dataset()
    symbols = {
        k: xp.symbol(k, dims=v.dims, coords=dict(v.coords), shape=v.shape) for k, v in ds.items()
    }
    given = xp.XDataset(symbols, attrs={"u": 1})
    total = (given["t"] * given["alpha"]).sum()
    slopes = xp.grad(total, [given["t"], given["alpha"]])
    f = xp.function([given], [given * 2, total, slopes], backend=backend)
    for value in (ds, xp.XDataset(ds), dict(ds.data_vars)):
        twice, got, (by_t, by_alpha) = f(value)
        assert isinstance(twice, xr.Dataset) and twice.equals(ds * 2) and twice.attrs == {"u": 1}
        np.testing.assert_allclose(got, (ds["t"] * ds["alpha"]).sum())
        xr.testing.assert_allclose(by_alpha, ds["t"].sum("time"))
        assert by_t.dims == ("city", "time")
    with pytest.raises(TypeError, match="expected a dict of"):
        f(ds.rename(t="other"))


def test_datasets_compute_and_differentiate_as_a_whole() -> None:
    ds = dataset()
    assert xp.compute(xp.XDataset(ds) * 2).identical(ds * 2)
    slopes = xp.grad(lambda d: (d["t"] ** 2).sum() + d["alpha"].sum())(xp.XDataset(ds))
    assert isinstance(slopes, xp.XDataset)
    xr.testing.assert_allclose(slopes.to_xarray()["t"], ds["t"] * 2)


def test_function_takes_labelled_values_by_name() -> None:
    x = labelled(*LABELS[0])
    s = xp.symbol("s", dims=("city", "time"), coords={"city": LABELS[0][0]}, shape=(4, None))
    f = xp.function([s], {"m": s.sel(city="b"), "c": s.cumsum("time")}, backend="interpret")
    got = f(x.T)
    np.testing.assert_allclose(got["m"].values, x.sel(city="b").values)
    assert got["c"].dims == ("city", "time")


@pytest.mark.backends
def test_gradients_of_groups_and_windows_have_names() -> None:
    s = XTensor._of(xp.symbol("s", dims="t", shape=6)._v, XTensor(
        np.zeros(6), dims="t", coords={"g": ("t", list("aabbab"))})._coords)  # fmt: skip
    with xp.set_options(skipna=False):
        y = (s.groupby("g").var() ** 2).sum() + (s.rolling(t=2).mean().fillna(0.0) ** 3).sum()
        y = y + s.groupby("g").max().sum() + s.quantile(0.3) + s.shift(t=1, fill_value=0.0).std()
        g = xp.grad(y, s)
    assert g.dims == ("t",)
    at = RNG.normal(size=6)
    value = xp.function([s], y, backend="interpret")
    step = 1e-6
    want = [
        (float(value(at + step * e)) - float(value(at - step * e))) / (2 * step) for e in np.eye(6)
    ]
    for backend in ("interpret", "c"):
        got = xp.function([s], g, backend=backend)(at)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)
