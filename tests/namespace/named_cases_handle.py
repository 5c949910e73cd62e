"""Random calls of what a handle tells, and of small methods: attributes, names, comparisons."""

from typing import Any

import numpy as np
import xarray as xr

import lazyarr as xp
from lazyarr import XTensor
from tests.namespace.named_cases import DTYPES, Case, Rng, case, draw, pick, some_dims
from tests.namespace.named_cases_labels import dates, labelled


def like(x: Any, out: Any) -> Any:
    """A computed array as the handle that the comparison expects."""
    return XTensor(out) if isinstance(x, XTensor) and isinstance(out, xr.DataArray) else out


@case("dims", "shape", "ndim", "size", "nbytes", "dtype", "sizes", "name", "attrs", "get_axis_num")
def attributes(rng: Rng) -> Case:
    def f(x):
        return (
            x.dims, x.shape, x.ndim, x.size, x.nbytes, x.dtype, dict(x.sizes), x.name,
            dict(x.attrs), [x.get_axis_num(d) for d in x.dims],
        )  # fmt: skip

    return [draw(rng, DTYPES)], f


@case("coords", "indexes", "xindexes", "get_index")
def coordinates_read(rng: Rng) -> Case:
    def f(x):
        indexes = {k: np.asarray(v) for k, v in sorted(x.indexes.items())}
        return (
            {k: (tuple(c.dims), np.asarray(c.values)) for k, c in sorted(x.coords.items())},
            indexes,
            sorted(x.xindexes),
            [np.asarray(x.get_index(d)) for d in x.dims],
        )

    return [draw(rng)], f


@case("values", "data", "to_numpy", "as_numpy", "compute", "T")
def values(rng: Rng) -> Case:
    def f(x):
        return (
            x.values, np.asarray(x.data), x.to_numpy(), like(x, x.as_numpy()),
            like(x, x.compute()), x.T,
        )  # fmt: skip

    return [draw(rng, DTYPES)], f


@case("item")
def item(rng: Rng) -> Case:
    return [draw(rng, DTYPES, nan=False)], lambda x: x.isel(dict.fromkeys(x.dims, 0)).item()


@case("copy", "pipe", "rename", "round", "real", "imag", "conj", "conjugate")
def small_methods(rng: Rng) -> Case:
    f = pick(
        rng,
        lambda x: x.copy(),
        lambda x: x.copy(data=x.values + 1),
        lambda x: x.pipe(lambda y, n: y * n, 3),
        lambda x: x.rename("new"),
        lambda x: x.round(),
        lambda x: x.round(1),
        lambda x: x.round(decimals=-1),
        lambda x: x.real,
        lambda x: x.imag,
        lambda x: x.conj() + x.conjugate(),
        lambda x: (x * (1 + 2j)).imag,
        lambda x: (x * (1 - 2j)).conj().real,
    )
    return [draw(rng, ("f8", "f4", "c16"))], f


@case("assign_attrs", "drop_attrs", "drop_indexes", "reset_coords", "drop_vars")
def annotations(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    labelled_dims = [d for d in x.dims if d in x.coords]
    f = pick(
        rng,
        lambda x: x.assign_attrs(a=1, u="new"),
        lambda x: x.assign_attrs({"b": 2}),
        lambda x: x.drop_attrs(),
        lambda x: x.reset_coords(drop=True),
        lambda x: x.drop_vars(labelled_dims),
        lambda x: x.drop_indexes(labelled_dims),
    )
    return [x], f


@case("equals", "identical", "broadcast_equals")
def compared(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    other = pick(
        rng,
        x.copy(),
        x.rename("other"),
        x.assign_attrs(w=1),
        x.copy(data=~x.values if x.dtype == bool else x.values + 1),
        x.expand_dims(z=2),
        x.isel({d: slice(0, 1) for d in some_dims(rng, x)}),
        x.drop_vars(list(x.coords)),
    )
    name = pick(rng, "equals", "identical", "broadcast_equals")
    return [x, other], lambda x, y: getattr(x, name)(y)


@case("ffill", "bfill")
def filled(rng: Rng) -> Case:
    x = draw(rng, "f8", dims=rng.permutation(list("abc")))
    x = x.where(
        draw(rng, "f8", dims=x.dims, nan=False).drop_vars(["a", "b", "c"], errors="ignore") > 0
    )
    dim, limit, name = pick(rng, *"abc"), pick(rng, None, 1, 2), pick(rng, "ffill", "bfill")

    def f(x):
        if isinstance(x, XTensor):
            return getattr(x, name)(dim, limit=limit)
        import pandas as pd  # xarray's own needs bottleneck

        def along(v):
            return getattr(pd.Series(v), name)(limit=limit).to_numpy()

        return x.copy(data=np.apply_along_axis(along, x.get_axis_num(dim), x.values))

    return [x], f


@case("interp", "interp_like")
def interp(rng: Rng) -> Case:
    x = labelled(rng, "bc", 1, ("f8",))
    x = x.where(np.isfinite(x), 1.0)  # of a known place beside NaN see the divergences
    d = str(x.dims[0])
    low, high = (10, 50) if d == "b" else (0.5, 9.0)
    target = pick(
        rng,
        rng.uniform(low, high, 3),
        np.array([low - 1.0, high + 1.0, *x[d].values]),
        0.5 * low + 4,
    )
    method = pick(rng, "linear", "linear", "nearest")
    grid = xr.DataArray(np.zeros(2), coords={d: np.sort(rng.uniform(low, high, 2))}, dims=d)
    f = pick(
        rng,
        lambda x, y: x.interp({d: target}, method=method),
        lambda x, y: x.interp_like(y, method=method),
    )
    return [x, grid], f


@case("rank")
def rank(rng: Rng) -> Case:
    x = draw(rng, pick(rng, "f8", "i8"), dims=rng.permutation(list("abc"))[: rng.integers(1, 4)])
    dim, pct = str(x.dims[0]), bool(rng.integers(2))

    def f(x):
        if isinstance(x, XTensor):
            return x.rank(dim, pct=pct)
        from scipy import stats  # xarray's own needs bottleneck

        axis = x.get_axis_num(dim)
        out = stats.rankdata(x.values, axis=axis, nan_policy="omit")
        if pct:
            out = out / np.sum(~np.isnan(x.values), axis=axis, keepdims=True)
        return x.copy(data=out.astype("f8"))

    return [x], f


@case("dt")
def date_parts(rng: Rng) -> Case:
    part = pick(rng, "month", "year", "dayofyear", "hour", "day", "weekday", "quarter")

    def f(x):
        return np.asarray(getattr(x["time"].dt, part).values), x["time"].dt.season.values

    return [dates(rng)], f


@case()
def alike(rng: Rng) -> Case:
    name = pick(rng, "zeros_like", "ones_like", "full_like")
    fill = (3,) if name == "full_like" else ()

    def f(x):
        return getattr(xp if isinstance(x, XTensor) else xr, name)(x, *fill)

    return [draw(rng, DTYPES)], f
