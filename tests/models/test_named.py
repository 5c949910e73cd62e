"""Programs with named dimensions on the interpreter and every backend.

The value is the one that plain xarray gives; the gradients are checked by central differences of
the same program's value on the interpreter.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor, special
from tests.backend_params import BACKENDS
from tests.models.models import HALF_LOG_2PI, normal, normal_at_zero

pytestmark = pytest.mark.backends

DATA = Path(__file__).resolve().parents[1] / "data" / "named_models"
STEP = 1e-5

Named = dict[str, Any]


def gp2d(p: Named, d: Named) -> XTensor:
    """Gaussian process with a length scale for each of two covariates."""
    positions = d["X"]
    distance = (positions - positions.rename(obs="obs2")) / p["ls"]
    kernel = p["eta"] ** 2 * xp.exp(-0.5 * (distance**2).sum("cov"))
    n = int(d["n"])
    noise = XTensor(xp.eye(n), dims=("obs", "obs2")) * (p["sigma"] ** 2 + 1e-6)
    dims = ("obs", "obs2")
    factor = xp.linalg.cholesky(kernel + noise, dims=dims)
    white = xp.linalg.solve_triangular(factor, d["y"], dims=dims)
    log_det = xp.log(xp.linalg.diagonal(factor, dims=dims)).sum()
    return -0.5 * (white**2).sum() - log_det - n * HALF_LOG_2PI


def mixture(p: Named, d: Named) -> XTensor:
    """Mixture of spherical Gaussians."""
    log_w = special.log_softmax(p["logit_w"], axis="cluster")
    component = normal(d["y"], p["mu"], p["sigma"]).sum("feature") + log_w
    each = special.logsumexp(component, axis="cluster")
    responsibility = xp.exp(component - each)
    hard = responsibility.argmax("cluster")
    idle = 0.0 * hard.sum() + 0.0 * responsibility.sum()
    return each.sum("obs") + normal_at_zero(p["mu"], 10.0).sum() + idle


def regression_groups(p: Named, d: Named) -> XTensor:
    """Regression with an intercept for each group, residuals averaged by a label of the data."""
    intercept = p["mu_a"] + p["tau_a"] * p["a_raw"]
    mean = intercept.isel(group=d["group_idx"]) + d["X"].dot(p["beta"], dim="feature")
    likelihood = normal(d["y"], mean, p["sigma"]).sum("obs")
    priors = normal_at_zero(p["a_raw"], 1.0).sum("group") + normal_at_zero(p["beta"], 2.5).sum()
    by_group = (d["y"] - mean).groupby("grp").mean()
    idle = 0.0 * (by_group**2).sum() + 0.0 * intercept.sel(group="g2")
    return likelihood + priors + normal_at_zero(p["mu_a"], 5.0) + idle


def timeseries(p: Named, d: Named) -> XTensor:
    """Autoregression of order two with an effect of the month."""
    y, phi, season = d["y"], p["phi"], p["seas"]
    first, second = (y.shift(time=k, fill_value=0.0) for k in (1, 2))
    effect = season.isel(month=d["month_idx"])
    mean = phi.isel(lag=0) * first + phi.isel(lag=1) * second + effect
    each = normal(y, mean, p["sigma"]).isel(time=slice(2, None))
    steps = normal_at_zero(season.diff("month"), 1.0).sum("month")
    window = y.rolling(time=5, min_periods=5).construct("window")
    smooth = window.mean("window", skipna=False).isel(time=slice(4, None))
    february = y.sel(time="2020-02").mean("time")
    monthly = y.groupby("mon").mean()
    last = y.cumsum("time").isel(time=-1)
    return each.sum("time") + steps + 0.0 * (smooth.sum() + monthly.sum() + february + last)


def irt2pl(p: Named, d: Named) -> XTensor:
    """Item response with discrimination and difficulty, some answers missing."""
    logit = xp.exp(p["log_a"]) * (p["theta"] - p["b"])
    y = d["y"]
    signed = xp.where(y > 0.5, logit, -logit)
    each = (-special.softplus(-signed)).where(y.notnull(), 0.0)
    scales = {"theta": 1.0, "b": 1.0, "log_a": 0.5}
    priors = sum(normal_at_zero(p[name], sd).sum() for name, sd in scales.items())
    rate = y.mean("student", skipna=True)
    ranked = p["b"].sel(item=["i3", "i1"])
    return each.sum(["student", "item"]) + priors + 0.0 * rate.sum() + 0.0 * ranked.sum()


PROGRAMS: dict[str, Callable[[Named, Named], Any]] = {
    "gp2d": gp2d,
    "mixture": mixture,
    "regression_groups": regression_groups,
    "timeseries": timeseries,
    "irt2pl": irt2pl,
}


def labels(entry: dict[str, Any]) -> dict[str, Any]:
    """The coordinates of a stored input: labels, or values along dims of their own."""
    found: dict[str, Any] = {}
    for name, given in entry.get("coords", {}).items():
        if isinstance(given, dict):
            found[name] = (given["dims"], np.array(given["data"], given.get("dtype")))
        else:
            found[name] = np.array(given)
    return found


def leaf(entry: dict[str, Any]) -> XTensor:
    """A stored input with its dims and coordinates."""
    values = np.array(entry["data"], entry.get("dtype", np.float64))
    return XTensor(values, dims=tuple(entry["dims"]), coords=labels(entry))


def symbol(name: str, entry: dict[str, Any]) -> XTensor:
    """A stored parameter as an input of the program."""
    shape, dims = np.shape(entry["data"]), tuple(entry["dims"])
    return xp.symbol(name, dims=dims, shape=shape, coords=labels(entry), dtype=xp.float64)


def load(name: str) -> tuple[dict[str, Any], Named, Any]:
    """The stored program, its symbols and its recorded value."""
    stored = json.loads((DATA / f"{name}.json").read_text())
    data = {k: leaf(v) if isinstance(v, dict) else v for k, v in stored["data"].items()}
    symbols = {k: symbol(k, v) for k, v in stored["params"].items()}
    return stored, symbols, PROGRAMS[name](symbols, data)


def differences(value: Callable[..., Any], point: list[np.ndarray]) -> list[np.ndarray]:
    """Central differences of a function of several arrays."""
    slopes = [np.zeros(p.shape) for p in point]
    for k, slope in enumerate(slopes):
        for index in np.ndindex(slope.shape):
            both = []
            for sign in (1, -1):
                moved = [p.copy() for p in point]
                moved[k][index] += sign * STEP
                both.append(float(np.asarray(value(*moved))))
            slope[index] = (both[0] - both[1]) / (2 * STEP)
    return slopes


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient(name: str, backend: str) -> None:
    with xp.set_options(skipna=False):
        stored, symbols, logp = load(name)
        inputs = list(symbols.values())
        pair = xp.value_and_grad(logp, inputs)
        call = xp.function(inputs, pair, backend=backend)
        plain = xp.function(inputs, logp, backend="interpret")
    point = [np.array(p["data"], np.float64) for p in stored["params"].values()]
    value, gradients = call(*point)
    assert math.isclose(float(np.asarray(value)), stored["value"], rel_tol=1e-10)
    assert call.fallbacks() == [], call.explain()
    for got, want in zip(gradients, differences(plain, point), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_concrete_arrays_give_the_same_value(name: str) -> None:
    stored = json.loads((DATA / f"{name}.json").read_text())
    data = {k: leaf(v) if isinstance(v, dict) else v for k, v in stored["data"].items()}
    params = {k: leaf(v) for k, v in stored["params"].items()}
    with xp.set_options(skipna=False, backend="interpret"):
        value = float(PROGRAMS[name](params, data))
    assert math.isclose(value, stored["value"], rel_tol=1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_mapped_over_chains(name: str) -> None:
    stored = json.loads((DATA / f"{name}.json").read_text())
    data = {k: leaf(v) if isinstance(v, dict) else v for k, v in stored["data"].items()}
    one = {k: leaf(v) for k, v in stored["params"].items()}
    chains = {k: xp.stack([v, v * 1.01, v * 0.99], axis="chain") for k, v in one.items()}
    with xp.set_options(skipna=False, backend="interpret"):
        many = xp.vectorize(lambda p: PROGRAMS[name](p, data), dim="chain")(chains)
        each = [
            float(PROGRAMS[name]({k: v.isel(chain=i) for k, v in chains.items()}, data))
            for i in range(3)
        ]
        assert many.dims == ("chain",)
        np.testing.assert_allclose(many.values, each, rtol=1e-12)
