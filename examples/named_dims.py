"""Two years of daily temperatures in two cities, by name: windows, groups, and a gradient, drawn.

Makes labelled data with gaps, smooths it over 31 days, averages it by month, and differentiates
the warmest month's mean by every day. All of it is recorded by name on `xr.DataArray`s and compiled
as one function. Draws docs/images/named_results.png.

Run with `python examples/named_dims.py` where lazyarr[all] and matplotlib are installed.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import lazyarr as xp

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "named_results.png"


def weather() -> xr.DataArray:
    """Made-up temperatures by city and day, with days missing."""
    rng = np.random.default_rng(1)
    time = pd.date_range("2020-01-01", "2021-12-31", name="time")
    season = -np.cos(2 * np.pi * (time.day_of_year.to_numpy() - 20) / 365.25)
    values = np.array([[6.0], [16.0]]) + np.array([[11.0], [9.0]]) * season
    values = values + rng.normal(size=values.shape) * 3
    values[rng.random(values.shape) < 0.1] = np.nan
    coords = {"city": ["Oslo", "Rome"], "time": time}
    return xr.DataArray(values, coords, ("city", "time"), "temperature", {"units": "degree C"})


def recorded(x: Any) -> dict[str, Any]:
    """Everything that is drawn, of one labelled array; nothing is computed here."""
    months = x.groupby("time.month").mean()
    return {
        "smooth": x.rolling(time=31, center=True, min_periods=15).mean(),
        "months": months,
        "spread": x.groupby("time.month").std(),
        "influence": xp.grad(months.max("month").sum(), x),
    }


def results(backend: str = "auto") -> tuple[xr.DataArray, dict[str, xr.DataArray]]:
    """The data, and what was computed from it, as xarray's arrays."""
    given = weather()
    with xp.set_options(skipna=True):  # gaps are meant
        return given, xp.jit(recorded, backend=backend)(given)


def draw(given: xr.DataArray, found: dict[str, xr.DataArray], path: Path) -> None:
    """Save the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import dates
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    titles = (
        "x.rolling(time=31).mean()",
        'x.groupby("time.month").mean()',
        "grad(hottest, x)",
    )
    for i, city in enumerate(given["city"].values):
        colour = f"C{i}"
        own = {k: v.sel(city=city) for k, v in found.items()}
        axes[0].plot(given["time"], given.sel(city=city), ".", ms=1.5, color=colour, alpha=0.4)
        axes[0].plot(given["time"], own["smooth"], color=colour, label=city)
        axes[1].errorbar(own["months"]["month"], own["months"], own["spread"], color=colour)
        axes[2].plot(given["time"], own["influence"], color=colour, lw=0.8)
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, family="monospace", fontsize=9)
        axis.tick_params(labelsize=7)
    for axis in axes[[0, 2]]:
        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes[0].legend(fontsize=8, frameon=False)
    axes[0].set_ylabel("degree C", fontsize=8)
    axes[1].set_xlabel("month", fontsize=8)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    draw(*results(), PICTURE)
    print(PICTURE)
