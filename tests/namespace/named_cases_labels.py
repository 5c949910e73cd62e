"""Random calls of what works with labels: alignment, groups, windows, order, stacking."""

from typing import Any

import numpy as np
import xarray as xr

import lazyarr as xp
from lazyarr import XTensor
from tests.namespace.named_cases import (
    DTYPES,
    SIZES,
    Case,
    Rng,
    as_dtype,
    case,
    draw,
    library,
    numeric,
    pick,
    some_dims,
)

JOINS = ("inner", "outer", "left", "right", "override", "exact")
MORE = {
    "a": ["v", "u", "w", "x"],
    "b": [30, 10, 40, 20, 50],
    "c": [2.5, 0.5, 9.0, 1.5, 4.0],
    "t": np.array(["2020-02-03", "2020-01-31", "2020-02-01", "2021-07-01"], "M8[ns]"),
}
FILLED = ("f8", "f4", "c16")  # dtypes that hold NaN already


def labelled(
    rng: Rng,
    dims: str = "abct",
    least: int = 0,
    dtypes: tuple = FILLED,
    size: Any = None,
    double: bool = False,
) -> Any:
    """An array with permuted and overlapping labels along every dim, some twice with `double`."""
    picked = [str(d) for d in rng.permutation(list(dims))[: rng.integers(least, len(dims) + 1)]]
    coords: dict[str, Any] = {}
    for d in picked:
        n = len(MORE[d])
        count = size or int(rng.integers(2, n + 1))
        coords[d] = np.array(MORE[d])[rng.permutation(n)[:count]]
        if double and rng.random() < 0.1:
            coords[d][0] = coords[d][-1]
    values = rng.normal(size=tuple(len(coords[d]) for d in picked)) * 3
    values = as_dtype(rng, values, str(rng.choice(dtypes)))
    return xr.DataArray(values, coords, picked, attrs=pick(rng, {}, {"u": 1}))


def dates(rng: Rng, n: int = 30, nan: bool = True) -> Any:
    """An array along dates, perhaps with another dim, and a coordinate along the dates."""
    import pandas as pd

    dims = pick(rng, ("time",), ("time", "a"), ("a", "time"))
    sizes = {"time": n, "a": 2}
    values = rng.normal(size=tuple(sizes[d] for d in dims))
    values = as_dtype(rng, values, pick(rng, "f8", "f8", "f4", "i8"), nan)
    time = pd.date_range("2020-01-25", periods=n, freq=pick(rng, "D", "3D", "36h"))
    x = xr.DataArray(values, dims=dims, coords={"time": time}, name=pick(rng, None, "n"))
    return x.assign_coords(k=("time", rng.integers(0, 3, n)))


# -- alignment ------------------------------------------------------------------------------------


@case()
def align(rng: Rng) -> Case:
    join = pick(rng, *JOINS)
    dtypes = FILLED if join in ("outer", "left", "right") else DTYPES
    arrays = [labelled(rng, dtypes=dtypes, double=True) for _ in range(rng.integers(2, 4))]
    if join == "inner":  # nothing in common is an error; see the divergences
        arrays = [arrays[0], *(x.isel({d: slice(2) for d in x.dims}) for x in arrays[:1])]
    return arrays, lambda *xs: library(xs[0]).align(*xs, join=join)


@case()
def arithmetic_join(rng: Rng) -> Case:
    join = pick(rng, "inner", "outer", "left")

    def f(x, y):
        if isinstance(x, XTensor):
            with xp.set_options(arithmetic_join=join):
                return x * y + 1.0
        with xr.set_options(arithmetic_join=join):
            return x * y + 1.0

    return [labelled(rng, double=True), labelled(rng, double=True)], f


@case("combine_first")
def combine_first(rng: Rng) -> Case:
    return [labelled(rng, double=True), labelled(rng)], lambda x, y: x.combine_first(y)


@case("fillna")
def fill_labelled(rng: Rng) -> Case:
    return [labelled(rng, double=True), labelled(rng)], lambda x, y: x.fillna(y)


@case("reindex")
def reindex(rng: Rng) -> Case:
    x = labelled(rng, double=True)
    keys = {}
    for d in some_dims(rng, x):
        more = {"a": "z", "t": np.datetime64("2019-01-01", "ns")}.get(d, 77)
        wanted = np.array([*MORE[d], more])
        keys[d] = wanted[rng.permutation(len(wanted))[: rng.integers(1, 5)]]
    kw = pick(rng, {}, {"fill_value": -1.0})
    return [x], lambda x: x.reindex(keys, **kw)


@case("reindex")
def reindex_method(rng: Rng) -> Case:
    x = labelled(rng, "c", 1).sortby("c")
    target = np.sort(rng.uniform(0, 10, 4))
    kw: dict[str, Any] = pick(
        rng, {"method": "nearest"}, {"method": "ffill"}, {"method": "nearest", "tolerance": 0.8}
    )
    return [x], lambda x: x.reindex(c=target, **kw)


@case("reindex_like")
def reindex_like(rng: Rng) -> Case:
    return [labelled(rng, double=True), labelled(rng)], lambda x, y: x.reindex_like(y)


@case("drop_sel")
def drop_sel(rng: Rng) -> Case:
    x = labelled(rng, least=1, dtypes=DTYPES)
    d = str(x.dims[0])
    gone = pick(rng, x[d].values[:1].tolist(), x[d].values[-2:].tolist(), ["nowhere"])
    kw = pick(rng, {}, {"errors": "ignore"})
    return [x], lambda x: x.drop_sel({d: gone}, **kw)


@case("drop_isel")
def drop_isel(rng: Rng) -> Case:
    x = draw(rng, DTYPES, dims="abc", plain=True)
    d = pick(rng, *"abc")
    gone = pick(rng, 0, [-1], [0, 1])
    return [x], lambda x: x.drop_isel({d: gone})


@case("drop_duplicates")
def drop_duplicates(rng: Rng) -> Case:
    n = 6
    x = xr.DataArray(rng.normal(size=(n, 2)), dims=("c", "a"), coords={"c": rng.integers(0, 3, n)})
    keep = pick(rng, "first", "last", False)
    dim = pick(rng, "c", ..., ["c"])
    return [x], lambda x: x.drop_duplicates(dim, keep=keep)


@case("sortby")
def sortby(rng: Rng) -> Case:
    x = labelled(rng, least=2, size=4, dtypes=DTYPES)
    d = str(x.dims[0])
    x = x.assign_coords(k=(d, rng.integers(0, 2, 4)))
    key = pick(rng, d, "k", ["k", d], [d, str(x.dims[1])])
    up = bool(rng.integers(2))
    return [x], lambda x: x.sortby(key, ascending=up)


@case("sel", "loc")
def nearest(rng: Rng) -> Case:
    x = labelled(rng, "c", 1, DTYPES).sortby("c")
    target = rng.uniform(0, 9, 3)
    method = pick(rng, "nearest", "ffill", "bfill")
    f = pick(
        rng,
        lambda x: x.sel(c=target, method=method),
        lambda x: x.loc[1.0:4.5],
        lambda x: x.loc[{"c": slice(None, 2.5)}],
    )
    return [x], f


@case("where")
def where_drop(rng: Rng) -> Case:
    x = labelled(rng, "bc", 1, DTYPES)
    d = str(x.dims[0])
    return [x], lambda x: x.where(x[d] > 2.0, drop=True)


# -- groups ---------------------------------------------------------------------------------------

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "count", "std", "var", "median")


def grouped(rng: Rng, dtype: str = "f8") -> Any:
    """An array with coordinates to group by: text, numbers with NaN, numbers in bins."""
    n = 7
    dims = tuple(map(str, rng.permutation(["c", "b"])))[: rng.integers(1, 3)]
    dims = dims if "c" in dims else ("c", *dims)
    values = rng.normal(size=tuple(n if d == "c" else 3 for d in dims)) * 3
    values = as_dtype(rng, values, dtype)
    coords: dict[str, Any] = {
        "t": ("c", np.array(["p", "q", "r"])[rng.integers(0, 3, n)]),
        "k": ("c", np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n)), {"units": "m"}),
        "m": ("c", np.append(rng.uniform(0, 10, n - 2), [2.0, 9.0])),
    }
    if rng.random() < 0.5:
        coords["c"] = np.arange(n) * 10
    return xr.DataArray(values, coords, dims, name=pick(rng, None, "n"))


@case("groupby")
def groupby(rng: Rng) -> Case:
    x = grouped(rng, pick(rng, "f8", "f8", "f4", "i8", "i4", "u1"))
    name, key = pick(rng, *REDUCTIONS), pick(rng, "t", "k")
    kw: dict[str, Any] = {}
    if name != "count" and x.dtype.kind == "f":
        kw["skipna"] = pick(rng, None, True, False)
    if name in ("std", "var"):
        kw["ddof"] = int(rng.integers(2))
    if name in ("sum", "prod") and x.dtype.kind == "f" and rng.random() < 0.3:
        kw["min_count"] = 2
    dim = pick(rng, None, "c", ...)
    return [x], lambda x: getattr(x.groupby(key), name)(dim, **kw)


@case("groupby")
def groupby_logic(rng: Rng) -> Case:
    x, name = grouped(rng) > 0, pick(rng, "any", "all")
    return [x], lambda x: getattr(x.groupby("t"), name)()


@case("groupby")
def groupby_arithmetic(rng: Rng) -> Case:
    x = grouped(rng)
    x = x.drop_vars("k")
    f = pick(
        rng,
        lambda x: x.groupby("t") - x.groupby("t").mean(),
        lambda x: x.groupby("t") / x.groupby("t").max(...),
    )
    return [x], f


@case("groupby")
def groupby_map(rng: Rng) -> Case:
    x = grouped(rng)
    f = pick(
        rng,
        lambda x: x.groupby("t").map(lambda g: g - g.mean("c")),
        lambda x: x.groupby("t").map(lambda g: g.mean("c")),
        lambda x: x.groupby("t").map(lambda g: g.sum()),
    )
    return [x.drop_vars("k")], f


@case("groupby_bins")
def groupby_bins(rng: Rng) -> Case:
    """Sums of empty bins differ; see the divergences."""
    x = grouped(rng)
    name = pick(rng, "mean", "max", "count", "std")
    kw: dict[str, Any] = pick(
        rng, {}, {"right": False}, {"labels": ["x", "y"]}, {"include_lowest": True}
    )
    bins = [0, 5, 10] if name == "count" else [0, 3, 10]
    skip = {} if name == "count" else {"skipna": pick(rng, None, False)}
    return [x], lambda x: getattr(x.groupby_bins("m", bins, **kw), name)(**skip)


@case("groupby", "dt")
def groupby_date(rng: Rng) -> Case:
    x = dates(rng)
    f = pick(
        rng,
        lambda x: x.groupby("time.month").mean(),
        lambda x: x.groupby("time.season").sum(),
        lambda x: x.groupby(x["time"].dt.day).max(),
        lambda x: x.groupby("time.dayofweek").std("time"),
    )
    return [x], f


@case("groupby")
def groupby_two(rng: Rng) -> Case:
    x, name = grouped(rng), pick(rng, "mean", "max", "min")
    return [x.drop_vars("m")], lambda x: getattr(x.groupby(["t", "k"]), name)()


@case("resample")
def resample(rng: Rng) -> Case:
    name, freq = pick(rng, "mean", "max", "min", "std"), pick(rng, "7D", "ME", "12h", "2D")
    return [dates(rng)], lambda x: getattr(x.resample(time=freq), name)()


# -- windows --------------------------------------------------------------------------------------


@case("rolling")
def rolling(rng: Rng) -> Case:
    x = draw(rng, pick(rng, "f8", "f4", "i8"), dims=pick(rng, "c", "bc", "cab"))
    name = pick(rng, "sum", "mean", "max", "min", "count", "std", "var", "prod", "median")
    windows = pick(rng, {"c": 2}, {"c": 3}, {"c": 4}, {"c": 5})
    if x.ndim > 1 and rng.random() < 0.3:
        windows = {"c": 2, "b": 2}
    kw = {"min_periods": pick(rng, None, 1, 2), "center": bool(rng.integers(2))}
    return [x], lambda x: getattr(x.rolling(windows, **kw), name)()


@case("rolling")
def rolling_construct(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4", "i8", "i1"), dims=pick(rng, "c", "cb"))
    kw: dict[str, Any] = pick(rng, {}, {"stride": 2}, {"fill_value": 0.0})
    center = bool(rng.integers(2))
    return [x], lambda x: x.rolling(c=3, center=center).construct("w", **kw)


@case("cumulative")
def cumulative(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4", "i8"), dims=pick(rng, "c", "bc"))
    name = pick(rng, "sum", "mean", "max", "min", "count", "std")
    least = int(rng.integers(1, 3))
    return [x], lambda x: getattr(x.cumulative("c", min_periods=least), name)()


@case("coarsen")
def coarsen(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4", "i8", "i1"), dims=pick(rng, "c", "cb", "bca"))
    if "g" in x.coords:
        x = x.drop_vars("g")
    name = pick(rng, "sum", "mean", "max", "min", "count", "std", "var", "prod", "median")
    kw: dict[str, Any] = {
        "boundary": pick(rng, "exact", "trim", "pad"),
        "side": pick(rng, "left", "right"),
    }
    windows = {"c": pick(rng, 2, 3)}
    if name in ("sum", "prod") and kw["boundary"] == "pad":
        kw["boundary"] = "trim"
    return [x], lambda x: getattr(x.coarsen(windows, **kw), name)()


@case("coarsen")
def coarsen_reduce(rng: Rng) -> Case:
    x = draw(rng, ("f8", "i4"), dims=pick(rng, "c", "cb"), plain=True)
    windows = pick(rng, {"c": 2}, {"c": 2, "b": 3}) if "b" in x.dims else {"c": 2}

    def spread(a, axis):
        m = array_library(a)
        return m.max(a, axis=axis) - m.min(a, axis=axis)

    return [x.drop_vars("g", errors="ignore")], lambda x: x.coarsen(windows).reduce(spread)


@case("coarsen")
def coarsen_construct(rng: Rng) -> Case:
    x = draw(rng, DTYPES, dims=pick(rng, "c", "bc"))
    return [x], lambda x: x.coarsen(c=2).construct(c=("row", "column"))


@case("weighted")
def weighted(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4", "i8"), dims="abc")
    w = draw(rng, ("f8", "f4", "i4"), dims=pick(rng, "a", "bc", "cab"), nan=False)
    w = abs(w.drop_vars(list(w.coords)))
    name = pick(rng, "sum", "mean", "var", "std", "sum_of_weights", "sum_of_squares")
    kw = {} if name == "sum_of_weights" else {"skipna": pick(rng, None, False)}
    dims = pick(rng, None, ["a"], ["c", "b"])
    return [x, w], lambda x, w: getattr(x.weighted(w), name)(dims, **kw)


# -- arrangement ----------------------------------------------------------------------------------


@case("stack")
def stack(rng: Rng) -> Case:
    x = draw(rng, DTYPES, dims=rng.permutation(list("abc")))
    dims = [str(d) for d in rng.permutation(list("abc"))[: rng.integers(1, 4)]]
    kw = {"create_index": pick(rng, True, True, False)}
    return [x], lambda x: x.stack(z=dims, **kw)


@case("stack", "unstack")
def unstack(rng: Rng) -> Case:
    x = draw(rng, DTYPES, dims=rng.permutation(list("abc")))
    x = numeric(x)  # xarray makes objects of booleans; see the divergences
    dims = [str(d) for d in rng.permutation(list("abc"))[: rng.integers(1, 4)]]
    picks = rng.permutation(int(np.prod([SIZES[d] for d in dims])))
    picks = pick(rng, slice(None), slice(1, None), picks, picks[: len(picks) // 2 + 1])
    return [x], lambda x: x.stack(z=dims).isel(z=picks).unstack()


@case("roll")
def roll(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    shifts = {d: int(rng.integers(-5, 6)) for d in some_dims(rng, x)}
    turn = bool(rng.integers(2))
    return [x], lambda x: x.roll(shifts, roll_coords=turn)


@case("pad")
def pad(rng: Rng) -> Case:
    """Labels of padded dims differ; see the divergences."""
    x = draw(rng, DTYPES, dims=rng.permutation(list("abc")))
    widths = {d: (int(rng.integers(3)), int(rng.integers(2))) for d in some_dims(rng, x)}
    x = x.drop_vars([c for c in x.coords if set(x[c].dims) & set(widths)])
    if x.dtype == bool:
        x = x.astype("f8")
    kw: dict[str, Any] = pick(
        rng, {}, {"mode": "edge"}, {"constant_values": 2}, {"mode": "wrap"},
        {"constant_values": (1, 2)}, {"mode": "reflect"}, {"mode": "symmetric"},
    )  # fmt: skip
    if "mode" in kw and kw["mode"] == "reflect":
        widths = {d: (min(b, SIZES[d] - 1), min(e, SIZES[d] - 1)) for d, (b, e) in widths.items()}
    return [x], lambda x: x.pad(widths, **kw)


@case()
def broadcast(rng: Rng) -> Case:
    arrays = [draw(rng, DTYPES, plain=True) for _ in range(rng.integers(1, 4))]
    exclude = pick(rng, (), ("a",))
    return arrays, lambda *xs: library(xs[0]).broadcast(*xs, exclude=exclude)


@case()
def concat_joined(rng: Rng) -> Case:
    def f(*xs):
        if isinstance(xs[0], XTensor):
            return xp.concat(xs, axis="b")
        return xr.concat(xs, "b", join="exact")

    x = labelled(rng, "abct", 2, DTYPES, size=3)
    x = x if "b" in x.dims else x.rename({x.dims[0]: "b"})
    return [x, x.isel(b=[1, 0]), x.isel(b=slice(2, None))], f


# -- numbers --------------------------------------------------------------------------------------


@case("quantile")
def quantile(rng: Rng) -> Case:
    x = numeric(draw(rng, ("f8", "f4", "i8", "i1"), inf=False))
    x = x if x.notnull().any() else x.fillna(1)  # else xarray's dtype depends on the data
    q = pick(rng, 0.5, 0.2, [0.1, 0.5, 0.95], [0.25])
    kw = {"skipna": pick(rng, None, True, False), "method": pick(rng, "linear", "linear", "lower")}
    dims = pick(rng, None, some_dims(rng, x) or None)
    return [x], lambda x: x.quantile(q, dims, **kw)


@case("median")
def median(rng: Rng) -> Case:
    x = numeric(draw(rng))
    skipna, dims = pick(rng, None, True, False), pick(rng, None, ..., some_dims(rng, x) or None)
    return [x], lambda x: x.median(dims, skipna=skipna)


@case("argmax", "argmin")
def arg_extremes(rng: Rng) -> Case:
    dims = rng.permutation(list("abc"))[: rng.integers(1, 4)]
    x = draw(rng, ("f8", "f4", "i8"), dims, nan=bool(rng.integers(2)))
    name = pick(rng, "argmax", "argmin")
    dims = pick(rng, ..., [str(d) for d in rng.permutation(list(x.dims))])
    return [x], lambda x: getattr(x, name)(dims)


@case("idxmax", "idxmin")
def label_of_extreme(rng: Rng) -> Case:
    x = labelled(rng, "bc", 1, ("f8", "f4", "i8"))
    name, dim = pick(rng, "idxmax", "idxmin"), str(x.dims[0])
    kw: dict[str, Any] = pick(rng, {}, {"fill_value": -1.0}, {"keep_attrs": True})
    if rng.random() < 0.3:
        x = x * np.nan
    return [x], lambda x: getattr(x, name)(dim, **kw)


@case("integrate", "cumulative_integrate", "differentiate")
def slopes(rng: Rng) -> Case:
    x = labelled(rng, "bc", 1, ("f8", "f4", "i8"), size=4)
    d = str(x.dims[0])
    order = int(rng.integers(1, 3))
    f = pick(
        rng,
        lambda x: x.integrate(d),
        lambda x: x.cumulative_integrate(d),
        lambda x: x.differentiate(d, edge_order=order),
        lambda x: x.integrate(list(x.dims)),
    )
    return [x], f


@case("differentiate", "integrate")
def slopes_in_time(rng: Rng) -> Case:
    unit = pick(rng, None, "D", "h")
    f = pick(
        rng,
        lambda x: x.integrate("time", datetime_unit=unit),
        lambda x: x.differentiate("time", datetime_unit=unit),
    )
    return [dates(rng)], f


@case()
def polyval(rng: Rng) -> Case:
    degrees = rng.permutation(5)[:3]
    c = xr.DataArray(rng.normal(size=(3, 2)), dims=("degree", "a"), coords={"degree": degrees})
    return [draw(rng, "f8", dims=pick(rng, "c", "bc")), c], lambda x, c: library(x).polyval(x, c)


@case()
def covariance(rng: Rng) -> Case:
    dims = rng.permutation(list("abc"))
    x = draw(rng, "f8", dims=dims)
    y = x.copy(data=draw(rng, "f8", dims=dims).values)
    name = pick(rng, "cov", "corr")
    dim = pick(rng, None, "c", ["a", "c"])
    return [x, y], lambda x, y: getattr(library(x), name)(x, y, dim=dim)


@case()
def cross(rng: Rng) -> Case:
    x = draw(rng, "f8", dims=pick(rng, "ba", "bc", "b"))
    y = draw(rng, "f8", dims=pick(rng, "b", "cb"))
    arrays = [v.drop_vars(list(v.coords)) for v in (x, y)]
    return arrays, lambda x, y: library(x).cross(x, y, dim="b")


@case()
def apply_ufunc(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4"), "ab")
    y = draw(rng, ("f8", "f4"), pick(rng, "bc", "cb", "b"))
    one_by_one = bool(rng.integers(2))

    def inner(a, b):
        return array_library(a).sum(a * b, axis=-1)

    def spread(a, b):
        return array_library(a).stack([a, a * b], axis=-1)

    func, kw = pick(
        rng,
        (inner, {"input_core_dims": [["b"], ["b"]]}),
        (spread, {"output_core_dims": [["k"]]}),
        (lambda a, b: (a + b, a - b), {"output_core_dims": [[], []]}),
    )

    def f(x, y):
        m = xp if isinstance(x, XTensor) else xr
        return m.apply_ufunc(func, x, y, vectorize=one_by_one, **kw)

    return [x, y], f


def array_library(a: Any) -> Any:
    return np if isinstance(a, np.ndarray | np.generic) else xp


@case("reduce")
def reduce(rng: Rng) -> Case:
    x = numeric(draw(rng))
    dims = some_dims(rng, x)
    keep = bool(rng.integers(2))

    def top(a, axis=None):
        return (np if isinstance(a, np.ndarray) else xp).max(a, axis=axis)

    return [x], lambda x: x.reduce(top, dims or None, keepdims=keep)


@case("isin")
def isin(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4", "i8", "i1", "u1"))
    return [x], lambda x: x.isin([0, 1, 2.5, -1])


@case("argsort")
def argsort(rng: Rng) -> Case:
    x = draw(rng, ("f8", "f4"), inf=False, dims=rng.permutation(list("abc"))[: rng.integers(1, 3)])
    return [x], lambda x: x.argsort(axis=-1)
