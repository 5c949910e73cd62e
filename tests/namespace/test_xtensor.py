"""The handle: construction, laziness, symbolic sizes, updates, errors, text."""

import copy
import pickle

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.errors import (
    ArgumentError,
    BoundsError,
    ConcretizationError,
    CoordError,
    DimError,
    DTypeError,
    LabelError,
)
from lazyarr.graph.node import UNSET
from lazyarr.namespace import xtensor_functions as functions
from lazyarr.testing import assert_allclose, assert_identical

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def interpreted():
    with xp.set_options(backend="interpret"):
        yield


@pytest.fixture
def x() -> XTensor:
    return XTensor(
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        dims=("x", "y"),
        coords={"x": ["u", "v"], "y": [10, 20, 30]},
        name="height",
        attrs={"units": "m"},
    )


# -- construction ---------------------------------------------------------------------------------


def test_dims_may_be_one_name() -> None:
    a = XTensor([5, 7], dims="repo")
    assert a.dims == ("repo",) and a.shape == (2,) and a.sizes == {"repo": 2}


def test_parts(x: XTensor) -> None:
    assert (x.dtype, x.ndim, x.size, x.nbytes) == (np.float64, 2, 6, 48)
    assert (x.name, x.attrs) == ("height", {"units": "m"})
    assert x.coords["x"].values.tolist() == ["u", "v"]
    assert x["y"].values.tolist() == [10, 20, 30] and x["y"].dims == ("y",)
    assert list(x.indexes) == ["x", "y"]
    assert isinstance(x.data, xp.Array) and x.data.shape == (2, 3)
    x.attrs["units"] = "cm"
    assert x.attrs == {"units": "m"}


@pytest.mark.parametrize("dims", [("a", "a"), ("a",), None, ("a", 1)])
def test_wrong_dims_raise_at_construction(dims) -> None:
    with pytest.raises(DimError):
        XTensor(np.zeros((2, 2)), dims=dims)


def test_other_wrong_arguments() -> None:
    with pytest.raises(CoordError, match="3 labels, dimension 'a' has size 2"):
        XTensor(np.zeros(2), dims="a", coords={"a": [1, 2, 3]})
    with pytest.raises(DimError, match="not one of"):
        XTensor(np.zeros(2), dims="a", coords={"b": [1, 2, 3]})
    with pytest.raises(DTypeError):
        XTensor(["a", "b"], dims="a")


def test_from_an_xtensor_and_an_array(x: XTensor) -> None:
    again = XTensor(x, dims=("p", "q"))
    assert again.dims == ("p", "q") and list(again.coords) == ["p", "q"]
    lazy = xp.symbol("s", shape=(2,))
    assert XTensor(lazy, dims="a").data.shape == (2,)
    given = np.zeros(2)
    kept = XTensor(given, dims="a")
    given[0] = 1
    assert kept.values.tolist() == [0.0, 0.0]


# -- arithmetic and alignment ---------------------------------------------------------------------


def test_broadcast_by_name() -> None:
    p = XTensor([[1, 2, 3], [4, 5, 6]], dims=("x", "y"))
    q = XTensor([[10, 20], [30, 40], [50, 60]], dims=("y", "x"))
    assert (p + q).dims == ("x", "y")
    assert (p + q).values.tolist() == [[11, 32, 53], [24, 45, 66]]


def test_the_first_operand_keeps_its_dtype() -> None:
    a = XTensor(np.ones(2, np.int8), dims="a")
    out, _ = functions.broadcast(a, XTensor(np.ones(3), dims="b"))
    assert out.dtype == np.int8 and out.dims == ("a", "b")
    assert (a + 1).dtype == np.int8
    with pytest.raises(OverflowError):
        a + 300


def test_labels_must_be_equal() -> None:
    t = XTensor([1, 2, 4], dims="t", coords={"t": [0, 1, 2]})
    with pytest.raises(CoordError, match="'t' differ"):
        t + t.isel(t=slice(None, None, -1))
    plain = XTensor([1, 2, 4], dims="t")
    assert (plain + plain.isel(t=slice(None, None, -1))).values.tolist() == [5, 4, 5]
    assert (t + plain).coords["t"].values.tolist() == [0, 1, 2]
    with xp.set_options(arithmetic_join="override"):
        assert (t + t.isel(t=slice(None, None, -1))).values.tolist() == [5, 4, 5]


def test_unequal_lengths_of_one_name_raise() -> None:
    a = XTensor(np.ones((1, 3)), dims=("y", "x"), coords={"x": [0, 1, 2]})
    b = XTensor(np.ones(5), dims="x", coords={"x": range(5)})
    with pytest.raises(DimError, match="'x' has size 3 in one operand and 5"):
        a + b


def test_huge_results_are_only_described() -> None:
    a, b = XTensor(np.ones(100_000), dims="city"), XTensor(np.ones(100_000), dims="town")
    assert (a + b).shape == (100_000, 100_000)


def test_operands_of_other_libraries(x: XTensor) -> None:
    xr = pytest.importorskip("xarray")
    row = xr.DataArray([1.0, 2.0, 3.0], dims="y", coords={"y": [10, 20, 30]}, name="height")
    for out in (x + row, np.add(row, x).transpose("x", "y"), xp.add(x, row)):
        assert isinstance(out, XTensor) and out.name == "height"
        assert out.values.tolist() == (x.values + row.values).tolist()
    assert xp.exp(row).dims == ("y",)
    assert (xp.asarray(2.0) * x).dims == x.dims and (np.float64(2) * x).dims == x.dims
    with pytest.raises(DimError, match="from_xarray"):
        row + x


def test_positional_arrays_must_be_named(x: XTensor) -> None:
    for other in (np.ones(3), xp.asarray([1.0, 2.0, 3.0])):
        with pytest.raises(DimError, match=r"XTensor\(a, dims="):
            x + other


def test_dot(x: XTensor) -> None:
    y = XTensor(np.arange(3.0), dims="y")
    assert (x @ y).values.tolist() == [8.0, 17.0]
    assert x.dot(y, dim=...).item() == 25.0
    with pytest.raises(DimError, match="no operand has dimension 'z'"):
        x.dot(y, dim="z")


def test_functions_of_the_namespace(x: XTensor) -> None:
    assert xp.sum(x, axis="x").dims == ("y",)
    assert xp.exp(x).coords == x.coords
    assert xp.flip(x, axis="y").sel(y=30).values.tolist() == [3.0, 6.0]
    assert "y" not in xp.take(x, xp.asarray([0, 0]), axis="y").coords
    assert xp.where(x > 2, x, 0.0).values.sum() == 18.0
    assert xp.stack([x, x], axis="k").dims == ("k", "x", "y")
    assert xp.concat([x, x], axis="x").coords["x"].values.tolist() == ["u", "v"] * 2
    with pytest.raises(DimError, match="stack needs a new dimension"):
        xp.stack([x, x], axis="x")
    with pytest.raises(DimError):
        xp.matmul(x, x.T)


# -- selection and updates ------------------------------------------------------------------------


def test_selection_errors_teach(x: XTensor) -> None:
    with pytest.raises(LabelError, match="'w'"):
        x.sel(x="w")
    with pytest.raises(DimError, match="no labels"):
        x.drop_vars("x").sel(x="u")
    with pytest.raises(DimError, match="Did you mean 'county'"):
        x.rename(x="county").isel(conty=0)
    with pytest.raises(BoundsError):
        x.isel(x=2)
    with pytest.raises(BoundsError):
        x.isel(x=XTensor([0, 5], dims="p"))
    with pytest.raises(DTypeError):
        x.isel(x=[0.5])
    with pytest.raises(ArgumentError):
        x.isel({"x": 0}, y=1)


def test_square_brackets(x: XTensor) -> None:
    assert x[0].values.tolist() == [1.0, 2.0, 3.0]
    assert x[..., -1].values.tolist() == [3.0, 6.0]
    assert x[{"y": slice(1, None)}].shape == (2, 2)
    assert x.loc["v", 10:20].values.tolist() == [4.0, 5.0]
    assert [float(v.sum()) for v in x] == [6.0, 15.0]


def test_updates_rebind_the_handle(x: XTensor) -> None:
    other, same = x.copy(), x
    x[{"x": 0}] = 0.0
    x.loc[{"x": "v", "y": 30}] = 9.0
    assert same.values.tolist() == [[0.0, 0.0, 0.0], [4.0, 5.0, 9.0]]
    assert other.values[0, 0] == 1.0
    assert x.coords == other.coords


def test_functional_updates(x: XTensor) -> None:
    rows = XTensor([[1.0, 1.0], [2.0, 2.0]], dims=("x", "y"))
    out = x.at[{"y": [0, 0]}].add(rows.T)
    assert out.values[:, 0].tolist() == [3.0, 8.0]
    assert x.at[{"y": [2, 1]}].set(XTensor([7.0, 8.0], dims="y")).values[0].tolist() == [1, 8, 7]
    with pytest.raises(DimError):
        x.at[{"y": 0}].set(XTensor([1.0], dims="z"))


def test_indexer_coordinates_come_along(x: XTensor) -> None:
    key = XTensor([1, 0, 1], dims="obs", coords={"obs": [7, 8, 9]})
    out = x.isel(x=key)
    assert out.dims == ("obs", "y")
    assert out.coords["obs"].values.tolist() == [7, 8, 9]
    assert out.coords["x"].values.tolist() == ["v", "u", "v"]


# -- laziness -------------------------------------------------------------------------------------


def test_nothing_is_computed_before_it_is_asked(x: XTensor) -> None:
    out = ((x - x.mean("x")) / x.std("x")).where(x > 1).isel(y=0)
    repr(out), out._repr_html_(), out.shape, out.coords, out.rename(x="z"), copy.deepcopy(out)
    assert out._v.value is UNSET


def test_python_conversions(x: XTensor) -> None:
    total = x.sum()
    assert (float(total), int(total), bool(total > 3), total.item()) == (21.0, 21, True, 21.0)
    assert list(range(3))[XTensor(2)] == 2
    assert np.asarray(x).sum() == 21.0
    with pytest.raises(ArgumentError, match="one element"):
        float(x)
    with pytest.raises(TypeError):
        hash(x)


def test_symbols_have_no_value() -> None:
    s = xp.symbol("rate", dims=("obs", "k"), shape=(None, 2))
    assert s.shape == (None, 2) and s.size is None
    for ask in (lambda: bool((s > 0).all()), lambda: s.values, lambda: float(s.sum())):
        with pytest.raises(ConcretizationError, match="'rate'"):
            ask()
    with pytest.raises(ConcretizationError, match="'obs'"):
        len(s)


def test_unknown_sizes_agree_with_known_ones() -> None:
    s = xp.symbol("s", dims=("a", "b"), shape=(None, 2))
    k = xp.symbol("k", shape=(), dtype="int64")
    outputs = [
        s.shift(a=1, fill_value=0.0),
        s.diff("a"),
        s.isel(a=slice(1, None)) + s.isel(a=slice(None, -1)),
        s.isel(a=k),
        s.mean("a"),
        s.T @ s.rename(b="c"),
        s.isel(b=XTensor([1, 0, 0], dims="a").isel(a=slice(0, 3))),
    ]
    f = xp.function([s, k], outputs, backend="interpret")
    given = XTensor(np.arange(6.0).reshape(3, 2) ** 2, dims=("a", "b"))
    got = f(given.values, -1)
    want = [
        given.shift(a=1, fill_value=0.0),
        given.diff("a"),
        given.isel(a=slice(1, None)) + given.isel(a=slice(None, -1)),
        given.isel(a=-1),
        given.mean("a"),
        given.T @ given.rename(b="c"),
        given.isel(b=XTensor([1, 0, 0], dims="a")),
    ]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), b.values)
        assert a.dims == b.dims
    with pytest.raises(IndexError):
        f(given.values, 3)


def test_gradients_have_dims_and_labels() -> None:
    s = xp.symbol("s", dims="a", coords={"a": ["u", "v", "w"]})
    with xp.set_options(skipna=False):
        g = xp.grad((s**2).sum(), s)
    assert g.dims == ("a",) and g.coords == s.coords
    out = xp.function([s], g, backend="interpret")(np.arange(3.0))
    assert np.asarray(out).tolist() == [0.0, 2.0, 4.0]


def test_functions_take_labelled_values_in_any_order() -> None:
    xr = pytest.importorskip("xarray")
    s = xp.symbol("s", dims=("a", "b"), shape=(2, 3))
    f = xp.function([s], s.sum("b"), backend="interpret")
    given = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("b", "a"))
    assert f(given).identical(given.sum("b").rename("s"))
    with pytest.raises(DimError):
        f(given.rename(a="z"))


# -- odds and ends --------------------------------------------------------------------------------


def test_pickle(x: XTensor) -> None:
    again = pickle.loads(pickle.dumps(x * 2))
    assert again.values.tolist() == (x.values * 2).tolist()
    assert (again.coords, again.name, again.attrs) == (x.coords, x.name, x.attrs)
    s = xp.symbol("s", dims="a", shape=2)
    assert pickle.loads(pickle.dumps(s + 1)).dims == ("a",)


def test_text(x: XTensor) -> None:
    shown = repr(x)
    for part in ("'height'", "x: 2, y: 3", "float64", "* x", "'u' 'v'", "units: m"):
        assert part in shown
    assert "obs: ?" in repr(xp.symbol("s", dims="obs"))
    days = x.rename(x="t").assign_coords(t=np.array(["2020-01-01", "2020-01-02T06:00"], "M8[ns]"))
    assert "2020-01-01 2020-01-02T06:00:00" in repr(days)


def test_notebook_form(x: XTensor) -> None:
    """Dims with labels are bold, names are escaped, nothing is computed."""
    with xp.no_implicit_eval():
        shown = (x * 2).rename("<b>").drop_vars("x")._repr_html_()
        whole = xp.XDataset({"h": x}, attrs={"made": "<i>"})._repr_html_()
    assert "(x: 2, <b>y</b>: 3)" in shown and "&lt;b&gt;" in shown and "Coordinates (1)" in shown
    assert "Variables (1)" in whole and "&lt;i&gt;" in whole and "data[2, 3]" in whole
    assert "h" in xp.XDataset({"h": x})._ipython_key_completions_()
    assert {"x", "y"} <= set(x._ipython_key_completions_())


def test_pipe_and_copy(x: XTensor) -> None:
    assert x.pipe(lambda a, b: a + b, 1).values[0, 0] == 2.0
    assert x.copy(data=np.zeros((2, 3))).coords == x.coords
    assert x.rename("other").name == "other"
    with pytest.raises(DimError, match="Did you mean"):
        x.rename(yy="z")
    with pytest.raises(DimError, match="twice"):
        x.rename(x="y")


def test_skipna_follows_the_option() -> None:
    a = XTensor([-1.0, np.nan, -2.0], dims="a")
    assert a.sum().item() == -3.0
    with xp.set_options(skipna=False):
        assert np.isnan(a.sum().item())
        assert a.sum(skipna=True).item() == -3.0


def test_where_that_drops_is_refused(x: XTensor) -> None:
    with pytest.raises(ArgumentError, match="isel"):
        x.where(x > 1, drop=True)


def test_functions_of_numpy_keep_names(x: XTensor) -> None:
    """Reductions of NumPy call the methods, and skip NaN as they do."""
    with_nan = x.where(x > x.min())
    for name in ("sum", "prod", "mean", "std", "var", "max", "amin"):
        f = getattr(np, name)
        got = f(with_nan, axis=0)
        assert isinstance(got, XTensor) and got.dims == x.dims[1:]
        method = getattr(with_nan, name.removeprefix("a"))
        np.testing.assert_array_equal(got.values, method(x.dims[0]).values)
        assert not np.isnan(f(with_nan).values)
    assert np.argmax(x, axis=1).dims == ("x",) and np.all(x > 0).item()
    with pytest.raises(TypeError, match="takes no out="):
        np.sum(x, out=np.zeros(3))
    assert x.sum(axis=(0, 1)).dims == () and x.argmax(axis=-1).dims == x.dims[:-1]
    with pytest.raises(TypeError, match="dim or axis"):
        x.sum("a", axis=0)


def test_compute_takes_values_of_symbols() -> None:
    s = xp.symbol("s", dims="t")
    y = s * 2 + 1
    for inputs in ({"s": [1.0, 2.0]}, {"s": XTensor([1.0, 2.0], dims="t").to_xarray()}):
        np.testing.assert_array_equal(y.compute(backend="interpret", inputs=inputs), [3.0, 5.0])
    assert y.compute(inputs={"s": [0.0]}).dims == ("t",)
    with pytest.raises(TypeError, match="no symbol is called 'q'"):
        y.compute(inputs={"q": [1.0]})
    with pytest.raises(ValueError, match="symbol"):
        y.compute()


def test_missing_dims(x: XTensor) -> None:
    assert x.isel(nowhere=0, missing_dims="ignore").dims == x.dims
    with pytest.warns(UserWarning, match="'nowhere'"):
        assert x.isel(nowhere=0, missing_dims="warn").dims == x.dims
    with pytest.raises(DimError):
        x.isel(nowhere=0)
    with pytest.raises(ValueError, match="missing_dims is"):
        x.transpose(..., missing_dims="maybe")


def test_concat_along_a_new_dim(x: XTensor) -> None:
    both = xp.concat([x, x + 1], axis=("run", ["u", "v"]))
    assert both.dims == ("run", *x.dims) and both.coords["run"].values.tolist() == ["u", "v"]
    np.testing.assert_array_equal(both.sel(run="v").values, (x + 1).values)


def test_assertions_say_what_differs(x: XTensor) -> None:
    assert_identical(x, x.to_xarray())
    assert_allclose(x, x + 1e-12)
    for other, what in [
        (x.transpose(), "dims"),
        (x.isel({x.dims[0]: [0]}), "sizes"),
        (x.assign_coords(s=1), "names of coordinates"),
        (x.rename("other"), "names"),
        (x.assign_attrs(more=1), "attributes"),
        (x + 1, "Mismatched"),
    ]:
        with pytest.raises(AssertionError, match=what):
            assert_identical(x, other)
