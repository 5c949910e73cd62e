"""Random calls of what fills gaps, relabels dims, and looks into groups."""

import numpy as np
import xarray as xr

from tests.namespace.named_cases import Case, Rng, case, draw, pick, some_dims
from tests.namespace.named_cases_labels import dates, grouped, labelled


@case("interpolate_na")
def interpolate_na(rng: Rng) -> Case:
    x = pick(rng, labelled(rng, "bc", 1, ("f8", "f4")), dates(rng), draw(rng, "f8", "cb"))
    x = x.where(np.isfinite(x)).where(xr.DataArray(rng.random(x.shape) > 0.3, dims=x.dims))
    dim = "time" if "time" in x.dims else str(x.dims[0])
    kw = pick(rng, {}, {}, {"use_coordinate": False}, {"method": "nearest"})
    if dim in x.coords and rng.random() < 0.8 and x[dim].dtype.kind in "ifM":
        x = x.sortby(dim)
    return [x], lambda x: x.interpolate_na(dim, **kw)


@case("set_index", "reset_index")
def indexes(rng: Rng) -> Case:
    x = grouped(rng, "f8")
    f = pick(
        rng,
        lambda x: x.set_index(c="t"),
        lambda x: x.set_index(c="m").sel(c=2.0),
        lambda x: x.set_index(c=["t", "m"]),
        lambda x: x.set_index(c=["t", "m"]).reset_index("c"),
        lambda x: x.set_index(c="b"),
        lambda x: x.reset_index("c"),
        lambda x: x.reset_index("c", drop=True),
        lambda x: x.set_index(c="t").reset_index("c"),
    )
    return [x], f


@case("groupby")
def groupby_ends(rng: Rng) -> Case:
    x = grouped(rng, pick(rng, "f8", "f4", "i8"))
    name, key, skipna = pick(rng, "first", "last"), pick(rng, "t", "k"), pick(rng, None, False)
    return [x], lambda x: getattr(x.groupby(key), name)(skipna=skipna)


@case("groupby")
def groupby_running(rng: Rng) -> Case:
    x, name = grouped(rng).drop_vars("k"), pick(rng, "cumsum", "cumprod")
    return [x], lambda x: getattr(x.groupby("t"), name)("c")


@case("groupby")
def groupby_filled(rng: Rng) -> Case:
    x = grouped(rng).drop_vars("k")
    f = pick(
        rng,
        lambda x: x.groupby("t").fillna(x.groupby("t").mean()),
        lambda x: x.groupby("t").fillna(0.0),
        lambda x: x.groupby("t").where(x.groupby("t").mean("c") > 0),
        lambda x: x.groupby("t").quantile(0.3, "c"),
    )
    return [x.where(np.isfinite(x))], f


@case("drop_indexes")
def dims_without_labels(rng: Rng) -> Case:
    x = draw(rng)
    some = [d for d in some_dims(rng, x) if d in x.coords]
    return [x], lambda x: x.drop_indexes(some)
