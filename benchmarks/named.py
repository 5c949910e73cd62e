"""Groups and windows by name on C, against numpy.bincount, a loop by hand, and xarray.

Bars: the mean of groups within 1.5 x numpy.bincount, the mean of windows within 1.5 x the loop by
hand, both ahead of xarray. With skipna=False, as in models; beside it the default, which skips NaN.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

import lazyarr as xp
from benchmarks import timing
from benchmarks.kernels import build, pointer
from lazyarr import XTensor

N, GROUPS, WINDOW = 1_000_000, 100, 10
BAR = 1.5


def compiled(x: xr.DataArray, f: Callable, skipna: bool) -> Callable[[], object]:
    """A call of f of a labelled array, from NumPy to NumPy."""
    given = xp.symbol("x", dims="obs", coords={}, shape=(N,))
    labels = XTensor(x).coords
    with xp.set_options(skipna=skipna):
        out = f(given.assign_coords(labels)).data
    call = xp.function([given], out, backend="c")
    values = x.values
    return lambda: call(values)


def groups(rng: np.random.Generator) -> tuple[dict[str, Callable], Callable]:
    """The mean of each of many groups."""
    codes = rng.integers(0, GROUPS, N)
    x = xr.DataArray(rng.normal(size=N), dims="obs", coords={"g": ("obs", codes)})

    def mean(a):
        return a.groupby("g").mean()

    def by_hand() -> np.ndarray:
        return np.bincount(codes, x.values, GROUPS) / np.bincount(codes, minlength=GROUPS)

    rows = {
        "by hand": by_hand,
        "lazyarr": compiled(x, mean, False),
        "lazyarr, skipping NaN": compiled(x, mean, True),
    }
    return rows, lambda: mean(x).values


def windows(rng: np.random.Generator) -> tuple[dict[str, Callable], Callable]:
    """The mean of each window."""
    x = xr.DataArray(rng.normal(size=N), dims="obs")
    out = np.empty(N)
    kernel = build(Path(__file__).with_name("named.c")).rolling_mean
    values = x.values

    def mean(a):
        return a.rolling(obs=WINDOW).mean()

    def by_hand() -> np.ndarray:
        kernel(ctypes.c_long(N), ctypes.c_long(WINDOW), pointer(values), pointer(out))
        return out

    return {"by hand": by_hand, "lazyarr": compiled(x, mean, False)}, lambda: mean(x).values


def main() -> None:
    """Print each way over the one by hand."""
    timing.one_thread()
    rng = np.random.default_rng(0)
    made = {f"groupby mean, {GROUPS} groups": groups, f"rolling mean, window {WINDOW}": windows}
    for name, make in made.items():
        rows, theirs = make(rng)
        want = theirs()
        for row, call in rows.items():
            np.testing.assert_allclose(call(), want, rtol=1e-9, err_msg=row)
        times = timing.interleave({**rows, "xarray": theirs}, rounds=20)
        base = times["by hand"]
        print(f"{name}, {N:.0e} elements: by hand {base * 1e3:.2f} ms")
        for row, seconds in times.items():
            says = (
                f"   bar {BAR}: {timing.verdict(seconds / base, BAR)}" if row == "lazyarr" else ""
            )
            print(f"  {row:22s} {seconds / base:6.2f} x{says}")


if __name__ == "__main__":
    main()
