"""Radon in 919 homes of 85 counties: one model with named dims, run by every backend.

Reads the homes as `xr.DataArray`s with county names, records the log posterior of a model with an
intercept and a floor effect for each county, differentiates it, and compiles value and gradient for
each backend. Then finds the mode with scipy's L-BFGS and shows the county effects by name.

Run with `make demo`, or `python examples/radon.py` where lazyarr[all] is installed.
"""

import csv
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import minimize

import lazyarr as xp
from lazyarr.errors import BackendError

HERE = Path(__file__).resolve().parent
REFERENCE = HERE.parent / "tests" / "data" / "models" / "radon_intercept_slope.json"
BACKENDS = ("interpret", "c", "numba", "jax", "torch")
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

Pair = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def read_homes(path: Path) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray, np.ndarray]:
    """Log radon, floor and county number of each home, and the counties' names."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names, number = np.unique([row["county"] for row in rows], return_inverse=True)
    radon = xr.DataArray([float(row["log_radon"]) for row in rows], dims="obs", name="log_radon")
    floor = xr.DataArray([float(row["floor"]) for row in rows], dims="obs", name="floor")
    return radon, floor, xr.DataArray(number, dims="obs", name="county"), names


def normal(x: Any, mean: Any, sd: Any) -> Any:
    """Log density of a normal."""
    return -0.5 * ((x - mean) / sd) ** 2 - xp.log(sd) - HALF_LOG_2PI


def standard_normal(x: Any) -> Any:
    """Log density of a standard normal."""
    return -0.5 * x**2 - HALF_LOG_2PI


def model(x: Any) -> tuple[Any, Any, Any]:
    """Log posterior, county intercepts and county floor effects of the unconstrained vector x.

    x holds the logs of three scales, the raw intercepts, the raw floor effects, and their means.
    """
    radon, floor, county, names = read_homes(HERE / "data" / "radon.csv")
    n = len(names)
    raw_a = xp.XTensor(x[3 : 3 + n], dims=("county",), coords={"county": names})
    raw_b = xp.XTensor(x[3 + n : 3 + 2 * n], dims=("county",), coords={"county": names})
    sd_home, sd_a, sd_b = (xp.exp(x[k]) for k in range(3))
    mean_a, mean_b = x[-2], x[-1]

    a = mean_a + sd_a * raw_a
    b = mean_b + sd_b * raw_b
    home = xp.from_xarray(county)
    expected = a.isel(county=home) + b.isel(county=home) * xp.from_xarray(floor)
    logp = normal(xp.from_xarray(radon), expected, sd_home).sum("obs")
    logp = logp + standard_normal(raw_a).sum("county") + standard_normal(raw_b).sum("county")
    for sd in (sd_home, sd_a, sd_b):
        logp = logp + standard_normal(sd)
    for mean in (mean_a, mean_b):
        logp = logp - 0.5 * (mean / 10) ** 2 - (math.log(10) + HALF_LOG_2PI)
    return logp + xp.sum(x[:3]), a, b


def microseconds(call: Callable[[], object]) -> float:
    """Wall time of a call, the best of some batches."""
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < 0.05:
        call()
        calls += 1
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def row(backend: str, x: Any, outputs: Any, point: dict[str, Any]) -> Pair | None:
    """Compile for a backend and print its row of the table."""
    at = np.array(point["point"])
    start = time.perf_counter()
    try:
        call = xp.function([x], outputs, backend=backend)
    except BackendError as error:
        print(f"{backend:10s}  {error}")
        return None
    value, gradient = call(at)
    seconds = time.perf_counter() - start
    difference = np.max(np.abs(np.asarray(gradient) - point["grad"]))
    print(
        f"{backend:10s} {float(np.asarray(value)):18.9f} {difference:14.1e} "
        f"{seconds:11.3f} {microseconds(lambda: call(at)):10.1f}"
    )
    return call


def mode(call: Pair, size: int) -> np.ndarray:
    """The point of highest density."""

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = call(x)
        return -float(np.asarray(value)), -np.asarray(gradient)

    found = minimize(negative, np.zeros(size), jac=True, method="L-BFGS-B")
    print(f"\nmode: log density {-found.fun:.6f} after {found.nfev} calls")
    return found.x


def main() -> None:
    """Print the table, the mode and the county effects."""
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))["points"][1]
    size = len(reference["point"])
    with xp.set_options(skipna=False):
        x = xp.symbol("x", shape=(size,), dtype=xp.float64)
        logp, a, b = model(x)
        outputs = xp.value_and_grad(logp, x)
        print("backend           log density  gradient diff   compile s    us/call")
        calls = [row(backend, x, outputs, reference) for backend in BACKENDS]
        best = mode(next(call for call in reversed(calls[:2]) if call is not None), size)
        effects = xp.function([x], [a, b], backend="interpret")
    intercept, floor = effects(best)
    print("\nintercept by county, at the mode")
    print(intercept)
    order = intercept.argsort()
    for title, some in (("lowest", order[:3]), ("highest", order[-3:])):
        shown = ", ".join(
            f"{name} {float(intercept.sel(county=name)):.2f} ({float(floor.sel(county=name)):+.2f})"
            for name in intercept.county.values[some.values]
        )
        print(f"{title}, with the floor effect: {shown}")


if __name__ == "__main__":
    main()
