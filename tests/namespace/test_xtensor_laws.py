"""What holds for all named arrays: order and names of dims do not matter, and cost nothing."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor, special
from lazyarr.xtensor import reducing

xr = pytest.importorskip("xarray")

from tests.namespace import named_cases_handle, named_cases_labels, named_cases_series  # noqa: E402, F401
from tests.namespace.named_cases import CASES, draw  # noqa: E402

SEEDS = range(8)


@pytest.fixture(autouse=True)
def interpreted():
    with xp.set_options(backend="interpret"):
        yield


@pytest.mark.parametrize("name", ["reduction", "groupby", "rolling", "quantile", "weighted", "sel"])
def test_transposing_commutes(name: str) -> None:
    for seed in SEEDS:
        arrays, f = CASES[name](np.random.default_rng(seed))
        given = [XTensor(a) for a in arrays]
        want = f(*given)
        got = f(*(x.T for x in given))
        assert set(got.dims) == set(want.dims)
        np.testing.assert_allclose(got.transpose(*want.dims).values, want.values, rtol=1e-6)


@pytest.mark.parametrize("name", ["binary", "clip", "nulls", "where"])
def test_renaming_commutes(name: str) -> None:
    for seed in SEEDS:
        arrays, f = CASES[name](np.random.default_rng(seed))
        given = [XTensor(a).drop_vars(list(a.coords)) for a in arrays]
        dims = {d for x in given for d in x.dims}
        names = {d: f"{d}_renamed" for d in dims}
        try:
            want = f(*given)
        except (ValueError, TypeError):
            continue
        turned = [x.rename({d: names[d] for d in x.dims}) for x in given]
        got = f(*turned)
        assert got.dims == tuple(names[d] for d in want.dims)
        np.testing.assert_array_equal(got.values, want.values)


def test_unstack_undoes_stack() -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        x = XTensor(draw(rng, "f8", dims=rng.permutation(list("abc")), plain=True))
        again = x.stack(z=("c", "a")).unstack("z").transpose(*x.dims)
        np.testing.assert_array_equal(again.values, x.values)


def test_groups_add_up() -> None:
    rng = np.random.default_rng(0)
    x = XTensor(rng.normal(size=(20, 3)), dims=("t", "k"))
    x = x.assign_coords(g=("t", rng.integers(0, 4, 20)))
    by = x.groupby("g")
    np.testing.assert_allclose(by.sum().sum("g").values, x.sum("t").values)
    assert int(by.count().sum()) == 60
    np.testing.assert_allclose((by - by.mean()).groupby("g").mean().values, 0.0, atol=1e-12)
    assert [len(v) for v in by.groups.values()] == by.count().isel(k=0).values.tolist()
    joined = by.map(lambda part: part * 2)
    np.testing.assert_allclose(joined.values, x.values * 2)


def test_joins_agree_with_selection() -> None:
    x = XTensor([1.0, 2.0, 3.0], dims="t", coords={"t": [1, 2, 3]})
    y = XTensor([10.0, 20.0, 30.0], dims="t", coords={"t": [3, 2, 5]})
    with xp.set_options(arithmetic_join="inner"):
        both = x + y
        assert both.coords["t"].values.tolist() == [2, 3]
        assert xp.maximum(x, y).values.tolist() == [20.0, 10.0]
        assert x.dot(y).item() == 2.0 * 20.0 + 3.0 * 10.0
    assert both.values.tolist() == [22.0, 13.0]


# -- names cost nothing ---------------------------------------------------------------------------

N, K = 7, 3
Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]
PAIRS: dict[str, Pair] = {
    "arithmetic": (lambda x: xp.exp(-0.5 * x * x) + 1, lambda a: xp.exp(-0.5 * a * a) + 1),
    "sum": (lambda x: x.sum("obs"), lambda a: xp.sum(a, axis=0)),
    "standardise": (
        lambda x: (x - x.mean("obs")) / x.std("obs"),
        lambda a: (a - xp.mean(a, axis=0)) / xp.std(a, axis=0),
    ),
    "dot": (lambda x: x.dot(x, dim="obs"), lambda a: xp.sum(a * a, axis=0)),
    "logsumexp": (
        lambda x: special.logsumexp(x, axis="k"),
        lambda a: special.logsumexp(a, axis=1),
    ),
    "gather": (
        lambda x: x.isel(obs=XTensor([0, 2, 2], dims="p")),
        lambda a: xp.take(a, xp.asarray([0, 2, 2]), axis=0),
    ),
    "slice": (lambda x: x.isel(obs=slice(1, None)), lambda a: a[1:]),
    "transpose": (lambda x: x.T * 2, lambda a: a.T * 2),
}


@pytest.mark.backends
@pytest.mark.parametrize("name", PAIRS)
def test_the_generated_source_is_that_of_positional_code(name: str) -> None:
    by_name, by_place = PAIRS[name]
    with xp.set_options(skipna=False):
        s = xp.symbol("s", dims=("obs", "k"), shape=(N, K))
        named = xp.function([s], by_name(s).data, backend="c").source
        a = xp.symbol("s", shape=(N, K))
        plain = xp.function([a], by_place(a), backend="c").source
    assert named == plain


def test_uneven_groups_are_combined_by_halves() -> None:
    """One group holds nearly everything: no table of groups by members is made."""
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(2000) < 0.97, 0, rng.integers(0, 40, 2000))
    values = np.where(rng.random(2000) < 0.1, np.nan, rng.normal(size=2000))
    array = xr.DataArray(values, dims="t", coords={"g": ("t", codes)})
    for name in ("max", "min", "prod"):
        for skipna in (True, False):
            want = getattr(array.groupby("g"), name)(skipna=skipna)
            lazy = getattr(XTensor(array).groupby("g"), name)(skipna=skipna)
            np.testing.assert_allclose(lazy.values, want.values)


def test_a_derivative_through_skipped_nan_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reducing, "_warned", [])
    s = xp.symbol("s", dims="a", shape=3)
    with pytest.warns(reducing.SkippedNaNWarning, match="skipna=False") as found:
        xp.grad(s.sum(), s)
        xp.grad(s.mean(), s)
    assert len(found) == 1 and found[0].filename == __file__
    for choice in (False, True):
        monkeypatch.setattr(reducing, "_warned", [])
        with xp.set_options(skipna=choice), warnings.catch_warnings():
            warnings.simplefilter("error")
            xp.grad(s.sum(), s)
