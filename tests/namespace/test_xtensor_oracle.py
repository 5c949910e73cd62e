"""xarray as the oracle: the same call on `xr.DataArray` and on XTensor, on random arrays.

Dims, dtype, coordinates, name and attrs must be identical, values close, and both raise on the same
calls. Where lazyarr means to differ stands in `divergences.py`. LAZYARR_ORACLE_EXAMPLES sets the
number of examples of each case, LAZYARR_ORACLE_BACKEND the backend.
"""

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor

xr = pytest.importorskip("xarray")
from pandas.errors import InvalidIndexError  # noqa: E402

from tests.namespace import (  # noqa: E402
    named_cases_handle,  # noqa: F401 - registers its cases
    named_cases_labels,  # noqa: F401
    named_cases_series,  # noqa: F401
)
from tests.namespace.divergences import DIVERGENCES  # noqa: E402
from tests.namespace.named_cases import CASES, draw  # noqa: E402

SEEDS = range(int(os.environ.get("LAZYARR_ORACLE_EXAMPLES", "200")))
RAISED = (ValueError, KeyError, IndexError, TypeError, InvalidIndexError)

# What asks for a value while recording.
COMPUTING = {"values", "item", "compared", "small_methods"}


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    before = xr.get_options()["arithmetic_join"]
    xr.set_options(arithmetic_join="exact")
    backend = os.environ.get("LAZYARR_ORACLE_BACKEND", "interpret")
    with xp.set_options(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    xr.set_options(arithmetic_join=before)


# -- the comparison -------------------------------------------------------------------------------


def assert_same(got: Any, want: Any) -> None:
    """Everything but the values is known before they are computed."""
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            assert_same(got[key], want[key])
    elif isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif isinstance(want, xr.DataArray):
        assert_same_array(got, want)
    elif isinstance(want, np.ndarray):
        np.testing.assert_array_equal(got, want)
    else:
        assert got == want


def assert_same_array(got: XTensor, want: Any) -> None:
    assert got.dims == want.dims and got.shape == want.shape and got.dtype == want.dtype
    out = got.to_xarray()
    assert out.dtype == want.dtype
    np.testing.assert_allclose(out.values, want.values, rtol=2e-5, atol=1e-5)
    assert set(out.coords) == set(want.coords)
    for name in out.coords:
        assert out.coords[name].variable.identical(want.coords[name].variable), name
    assert out.name == want.name and out.attrs == want.attrs


@pytest.mark.parametrize("name", CASES)
def test_as_xarray(name: str) -> None:
    for seed in SEEDS:
        arrays, f = CASES[name](np.random.default_rng(seed))
        try:
            want = f(*arrays)
        except RAISED as error:
            assert not isinstance(error, NotImplementedError)
            with pytest.raises(RAISED):  # what depends on data raises when it is computed
                xp.compute(f(*map(XTensor, arrays)))
            continue
        with contextlib.nullcontext() if name in COMPUTING else xp.no_implicit_eval():
            got = f(*map(XTensor, arrays))
        assert_same(got, want)


@pytest.mark.parametrize("seed", SEEDS)
def test_round_trip(seed: int) -> None:
    x = draw(np.random.default_rng(seed))
    x = x.assign_coords({d: x.coords[d].assign_attrs(units="m") for d in x.dims if d in x.coords})
    assert xp.from_xarray(x).to_xarray().identical(x)
    assert XTensor(xp.from_xarray(x).compute()).to_xarray().identical(x)


def test_dates_survive() -> None:
    pd = pytest.importorskip("pandas")
    time = pd.date_range("2020-01-01", periods=120)
    x = xr.DataArray(np.arange(120.0), dims="time", coords={"time": time})
    assert xp.from_xarray(x).to_xarray().identical(x)
    got = xp.from_xarray(x).sel(time="2020-02").to_xarray()
    assert got.identical(x.sel(time="2020-02"))
    assert xp.from_xarray(x).sel(time="2020-02-03").item() == 33.0


@pytest.mark.parametrize("row", DIVERGENCES, ids=lambda row: row.what)
def test_divergences_are_as_stated(row: Any) -> None:
    """Each row differs still, and says why."""
    ours, theirs = row.example()
    assert ours != theirs
    assert len(row.reason.split()) > 4 and row.reason.endswith(".")
