"""Random calls of XTensor's methods, for comparison with xarray: elements, reductions, selection.

A case draws arrays and a function of them that means the same on `xr.DataArray` and on XTensor.
Dims in any number and order, labels of several kinds (a tenth with duplicates), NaN, infinities and
-0.0, eight dtypes.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.namespace import xtensor, xtensor_functions

SIZES = {"a": 2, "b": 3, "c": 4, "d": 1}
LABELS = {"a": ["u", "v"], "b": [10, 20, 30], "c": [0.5, 1.5, 2.5, 4.0]}
DAYS = np.arange("2020-01-30", "2020-02-03", dtype="M8[D]").astype("M8[ns]")
OTHERS: dict[str, Any] = {
    "a": ([7, 3], ["v", "u"]),
    "b": (["q", "p", "r"], [30, 10, 20]),
    "c": (DAYS, [4.0, 0.5, 1.5, 2.5]),
    "d": (["w"], [0]),
}
DTYPES = ("f8", "f4", "i8", "i4", "i1", "u1", "?", "c16")
REAL = DTYPES[:-1]
ATTRS: list[dict] = [{}, {"u": 1}, {"u": 2, "v": 3}]
Rng = np.random.Generator
Case = tuple[list, Callable]
CASES: dict[str, Callable[[Rng], Case]] = {}
NAMES: dict[str, tuple[str, ...]] = {}


def draw(
    rng: Rng,
    dtype: str | tuple | None = None,
    dims: Any = None,
    nan: bool = True,
    inf: bool = True,
    plain: bool = False,
) -> Any:
    """A random labelled array of a dtype, or of one of several; `plain` labels are usual ones."""
    if dims is None:
        dims = rng.permutation(list(SIZES))[: rng.integers(0, 5)]
    dims = tuple(map(str, dims))
    values = rng.normal(size=tuple(SIZES[d] for d in dims)) * 3
    if not isinstance(dtype, str):
        known = dtype or REAL
        dtype = str(rng.choice(["f8", *known] if "f8" in known else list(known)))
    coords: dict[str, Any] = {d: labels(rng, d, plain) for d in dims if rng.random() < 0.5}
    coords = {d: c for d, c in coords.items() if c is not None}
    if "b" in dims and rng.random() < 0.3:
        coords["g"] = ("b", np.array(["p", "q", "p"]))
    if rng.random() < 0.2:
        coords["s"] = 7.0
    return xr.DataArray(
        as_dtype(rng, values, dtype, nan, inf),
        dims=dims,
        coords=coords,
        name=[None, "n", "m"][rng.integers(3)],
        attrs=ATTRS[rng.integers(3)],
    )


def as_dtype(
    rng: Rng, values: np.ndarray, dtype: str, nan: bool = True, inf: bool = True
) -> np.ndarray:
    """Normal numbers in a dtype, among floats NaN and now and then infinities and -0.0."""
    values = np.asarray(values)
    if dtype == "?":
        return values > 0
    if dtype[0] == "u":
        values = abs(values)
    if dtype[0] == "c":
        values = values + 1j * rng.normal(size=values.shape)
    if dtype[0] in "fc":
        infinite = [np.inf, -np.inf] if inf and dtype[0] == "f" else []
        special = np.array([0.0, -0.0, *infinite])
        if nan and rng.random() < 0.3:
            where = rng.random(values.shape) < 0.2
            values = np.where(where, special[rng.integers(len(special), size=values.shape)], values)
        if nan:
            values = np.where(rng.random(values.shape) < 0.15, np.nan, values)
    return np.asarray(values, dtype)


def labels(rng: Rng, dim: str, plain: bool) -> Any:
    """Labels of a dim: most often the usual ones, otherwise of another kind, or with a double."""
    usual, luck = LABELS.get(dim), rng.random()
    if plain or luck < 0.7:
        return usual
    if luck < 0.8 and usual is not None:
        return [usual[0], usual[0], *usual[2:]]
    return pick(rng, *OTHERS[dim])


def some_dims(rng: Rng, x: Any) -> list[str]:
    return [str(d) for d in rng.permutation(list(x.dims))[: rng.integers(0, x.ndim + 1)]]


def numeric(x: Any) -> Any:
    return x.astype("f8") if x.dtype == bool else x


def pick(rng: Rng, *choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


def library(x: Any) -> Any:
    """The functions that take an array: xarray's, or lazyarr's for XTensors."""
    return xtensor_functions if isinstance(x, XTensor) else xr


def alike(rng: Rng, *arrays: Any) -> list:
    """Arrays without names, attributes and coordinates that could conflict, NaN kept."""
    return [x.drop_vars([c for c in x.coords if c not in x.dims]).rename(None) for x in arrays]


def case(*names: str) -> Callable[[Callable[[Rng], Case]], Callable[[Rng], Case]]:
    """Register a case, and the names of xr.DataArray that it shows to be right."""

    def register(make: Callable[[Rng], Case]) -> Callable[[Rng], Case]:
        CASES[make.__name__] = make
        NAMES[make.__name__] = names
        return make

    return register


# -- elements -------------------------------------------------------------------------------------


@case()
def binary(rng: Rng) -> Case:
    name = pick(rng, "add", "sub", "mul", "truediv", "lt", "ge", "eq", "ne")
    dtypes = REAL if name in ("lt", "ge") else DTYPES
    return [numeric(draw(rng, dtypes)), numeric(draw(rng, dtypes))], getattr(operator, name)


@case()
def with_numbers(rng: Rng) -> Case:
    return [
        draw(rng, ("f8", "f4", "i8", "i4", "c16"))
    ], lambda x: (2 * x + 1) ** 2 - np.exp(-abs(x)) / 3.0 + 1 / (1 + x * x)


@case()
def ufunc(rng: Rng) -> Case:
    return [draw(rng, ("f8", "f4", "i4")), draw(rng, ("f8", "f4"))], lambda x, y: np.maximum(
        x, np.exp(y)
    )


@case()
def logic(rng: Rng) -> Case:
    dtype = pick(rng, "?", "?", "i4", "u1")
    return [draw(rng, dtype), draw(rng, dtype)], lambda x, y: (x & ~y) | (x ^ y)


@case("where")
def where(rng: Rng) -> Case:
    other = pick(rng, (), (0.5,))
    return [draw(rng, DTYPES, plain=True), draw(rng, "?", plain=True)], lambda x, c: x.where(
        c, *other
    )


@case()
def where_other(rng: Rng) -> Case:
    return [draw(rng, DTYPES), draw(rng, "?"), draw(rng, DTYPES)], lambda x, c, y: x.where(c, y)


@case()
def where_function(rng: Rng) -> Case:
    def f(c, x, y):
        return (xtensor_functions if isinstance(x, XTensor) else xr).where(c, x, y)

    return [draw(rng, "?"), draw(rng, DTYPES), draw(rng, DTYPES)], f


@case("fillna")
def fill(rng: Rng) -> Case:
    return [draw(rng, DTYPES)], lambda x: x.fillna(3.0)


@case("isnull", "notnull")
def nulls(rng: Rng) -> Case:
    name = pick(rng, "isnull", "notnull")
    return [draw(rng, DTYPES)], lambda x: getattr(x, name)()


@case("clip")
def clip(rng: Rng) -> Case:
    f = pick(
        rng,
        lambda x, y: x.clip(-1, 1),
        lambda x, y: x.clip(min=0.5),
        lambda x, y: x.clip(max=y),
    )
    return [draw(rng, ("f8", "f4", "i8", "i4")), draw(rng, ("f8", "i4"), nan=False)], f


@case("astype")
def astype(rng: Rng) -> Case:
    x = draw(rng, nan=False)
    dtype = pick(rng, *DTYPES) if x.dtype.kind in "biu" else pick(rng, "f4", "f8", "c16", "i8", "?")
    return [x], lambda x: x.astype(dtype)


# -- reductions -----------------------------------------------------------------------------------


@case("sum", "mean", "prod", "max", "min", "std", "var", "any", "all", "count")
def reduction(rng: Rng) -> Case:
    name = pick(rng, "sum", "mean", "prod", "max", "min", "std", "var", "any", "all", "count")
    x = draw(rng, REAL if name in ("max", "min") else DTYPES)
    x = x if name in ("any", "all", "count", "sum", "max", "min") else numeric(x)
    kw: dict[str, Any] = {}
    if name not in ("any", "all", "count"):
        kw["skipna"] = pick(rng, None, True, False)
    if name in ("std", "var"):
        kw["ddof"] = int(rng.integers(2))
    if name in ("sum", "prod") and rng.random() < 0.3:
        kw["min_count"] = int(rng.integers(3))
    if name not in ("any", "all") and rng.random() < 0.3:
        kw["keep_attrs"] = bool(rng.integers(2))
    dims = pick(rng, None, ..., some_dims(rng, x), some_dims(rng, x))
    return [x], lambda x: getattr(x, name)(dims, **kw)


@case()
def arg_extreme(rng: Rng) -> Case:
    x = draw(
        rng,
        ("f8", "f4", "i8", "u1", "?"),
        nan=bool(rng.integers(2)),
        dims=rng.permutation(list("abc"))[: rng.integers(1, 4)],
    )
    name, dim = pick(rng, "argmax", "argmin"), str(rng.choice(x.dims))
    return [x], lambda x: getattr(x, name)(dim)


@case("cumsum", "cumprod")
def running(rng: Rng) -> Case:
    name, skipna = pick(rng, "cumsum", "cumprod"), pick(rng, None, False)
    x = draw(rng, DTYPES, inf=name == "cumsum")  # 0 times infinity: see the divergences
    dims, keep = some_dims(rng, x), pick(rng, None, False, True)
    return [x], lambda x: getattr(x, name)(dims or None, skipna=skipna, keep_attrs=keep)


@case("dot")
def dot(rng: Rng) -> Case:
    arrays = [draw(rng, ("f8", "f4", "i4", "c16"), nan=False) for _ in range(rng.integers(2, 4))]
    dims = list(dict.fromkeys(d for x in arrays for d in x.dims))
    some = [str(d) for d in rng.permutation(dims)[: rng.integers(len(dims) + 1)]]
    dim = pick(rng, None, ..., some)
    return arrays, lambda *xs: (xtensor if isinstance(xs[0], XTensor) else xr).dot(*xs, dim=dim)


# -- selection ------------------------------------------------------------------------------------


@case("isel")
def isel(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    keys = {}
    for d in some_dims(rng, x):
        n = SIZES[d]
        keys[d] = pick(
            rng,
            int(rng.integers(-n, n)),
            slice(*sorted(rng.integers(0, n + 1, 2).tolist())),
            slice(None, None, -1),
            slice(-2, None),
            rng.integers(-n, n, 3),
            rng.random(n) > 0.5,
        )
    drop = bool(rng.integers(2))
    return [x], lambda x: x.isel(keys, drop=drop)


def named_key(x: Any, key: Any) -> Any:
    return XTensor(key) if isinstance(x, XTensor) and isinstance(key, xr.DataArray) else key


@case()
def pointwise(rng: Rng) -> Case:
    """Index arrays with dims of their own, with dims of the array, and mixed with others."""
    x = draw(rng, DTYPES, dims=rng.permutation(list("abc")))
    sizes = {**SIZES, "p": 2, "q": 3}
    keys: dict[str, Any] = {}
    for d in some_dims(rng, x):
        dims = pick(rng, ("p",), ("q",), ("p", "q"), (), (d,))
        shape = tuple(sizes[e] for e in dims)
        keys[d] = xr.DataArray(rng.integers(-SIZES[d], SIZES[d], shape), dims=dims)
    rest = [d for d in "abc" if d not in keys]
    if rest and rng.random() < 0.3:
        keys[rest[0]] = pick(rng, 0, slice(1, None))
    return [x], lambda x: x.isel({d: named_key(x, k) for d, k in keys.items()})


@case()
def along_another_dim(rng: Rng) -> Case:
    x = draw(rng, DTYPES, dims=rng.permutation(list("abc")))
    key = xr.DataArray(rng.integers(0, 3, 2), dims="a", coords=pick(rng, {}, {"r": ("a", [1, 2])}))
    return [x], lambda x: x.isel(b=named_key(x, key))


@case("sel")
def sel(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    keys: dict[str, Any] = {}
    for d in some_dims(rng, x):
        if d in x.coords:
            known = x[d].values if x[d].dtype.kind == "M" else x[d].values.tolist()
            one, two = rng.integers(0, len(known), 2)
            keys[d] = pick(
                rng, known[one], [known[one], known[two]], slice(known[0], known[max(one, two)]),
                [known[one], "nowhere" if x[d].dtype.kind == "U" else known[two]],
            )  # fmt: skip
    return [x], lambda x: x.sel(keys)


@case("head", "tail", "thin")
def ends(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    counts, name = {d: 2 for d in some_dims(rng, x)}, pick(rng, "head", "tail", "thin")
    return [x], lambda x: getattr(x, name)(counts)


# -- arrangement ----------------------------------------------------------------------------------


@case("transpose")
def transpose(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    dims: list = [str(d) for d in rng.permutation(list(x.dims))]
    if dims and rng.random() < 0.5:
        dims[rng.integers(len(dims))] = ...
    return [x], lambda x: x.transpose(*dims)


@case("rename")
def rename(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    names = {d: d + "_new" for d in some_dims(rng, x)}
    return [x], lambda x: x.rename(names).rename("other")


@case("expand_dims")
def new_dims(rng: Rng) -> Case:
    x = draw(rng, DTYPES)
    axis = int(rng.integers(x.ndim + 1))
    return [x], lambda x: x.expand_dims("e", axis=axis).expand_dims(f=3).expand_dims(h=["l", "m"])


@case("squeeze")
def squeeze(rng: Rng) -> Case:
    drop = bool(rng.integers(2))
    return [draw(rng, DTYPES)], lambda x: x.squeeze(drop=drop)


@case("broadcast_like")
def broadcast_like(rng: Rng) -> Case:
    # xarray joins by an outer join here; see the divergences
    return [draw(rng, DTYPES, plain=True), draw(rng, plain=True)], lambda x, y: x.broadcast_like(y)


@case("shift")
def shift(rng: Rng) -> Case:
    x = numeric(draw(rng, DTYPES))
    shifts = {d: int(rng.integers(-5, 6)) for d in some_dims(rng, x)[:1]}
    kw = pick(rng, {}, {"fill_value": 0})
    return [x], lambda x: x.shift(shifts, **kw) if shifts else x


@case("diff")
def diff(rng: Rng) -> Case:
    x = numeric(draw(rng, DTYPES, dims=rng.permutation(list("abc"))[: rng.integers(1, 4)]))
    dim, n = str(rng.choice(x.dims)), int(rng.integers(0, 3))
    label = "upper" if n > 1 else pick(rng, "upper", "lower")
    return [x], lambda x: x.diff(dim, n, label=label)


@case("assign_coords", "drop_vars", "swap_dims")
def coordinates(rng: Rng) -> Case:
    def f(x):
        x = x.assign_coords(a=[1, 2], z=("b", [1.0, 2.0, 3.0]), w=5)
        return x.drop_vars("w").isel(b=[0, 2]).swap_dims(b="z")

    return [draw(rng, DTYPES, dims=("a", "b"))], f


def _plain_pair(rng: Rng) -> list:
    dtypes = ("f8", "f4", "i8", "i1", "c16")
    x, y = (draw(rng, dtypes, dims=dims, plain=True) for dims in ("ab", "ba"))
    keep = [d for d in "ab" if d in x.coords and d in y.coords]
    pair = [v.drop_vars([c for c in v.coords if c not in keep]) for v in (x, y)]
    for v in pair:
        v.name, v.attrs = "n", {}
    return pair


@case()
def concat(rng: Rng) -> Case:
    def f(*xs):
        if isinstance(xs[0], XTensor):
            return xp.concat(xs, axis="b")
        return xr.concat(xs, "b", join="exact")

    return _plain_pair(rng), f


@case()
def stack_new(rng: Rng) -> Case:
    def f(*xs):
        return xp.stack(xs, axis="k") if isinstance(xs[0], XTensor) else xr.concat(xs, "k")

    return [x.drop_vars(list(x.coords)) for x in _plain_pair(rng)], f
