"""Where XTensor means to differ from xarray, each with a reason and an example that shows it.

An example returns what lazyarr answers and what xarray answers, as plain values or error classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from pandas.errors import InvalidIndexError

from lazyarr import XTensor
from lazyarr.errors import LazyArrError
from lazyarr.namespace import xtensor_functions


@dataclass(frozen=True)
class Divergence:
    """One difference: what, why, and both answers."""

    what: str
    reason: str
    example: Callable[[], tuple[Any, Any]]


def both(f: Callable, *arrays: Any, read: Callable = lambda out: out) -> tuple[Any, Any]:
    """What a function gives on XTensors and on DataArrays; an error counts as its kind."""
    answers = []
    for given in (map(XTensor, arrays), arrays):
        try:
            answers.append(read(f(*given)))
        except LazyArrError:
            answers.append("refused")
        except (ValueError, KeyError, TypeError, IndexError, InvalidIndexError) as error:
            answers.append(type(error).__name__)
    return answers[0], answers[1]


def line(values: Any, dim: str = "x", labels: Any = None, **coords: Any) -> Any:
    """A DataArray of one dim."""
    own = {} if labels is None else {dim: labels}
    return xr.DataArray(values, dims=dim, coords={**own, **coords})


def numbers(out: Any) -> list:
    return np.asarray(out.values).tolist()


def _join() -> tuple[Any, Any]:
    with xr.set_options(arithmetic_join="inner"):
        return both(
            lambda a, b: a + b,
            line([1.0, 2.0], labels=[0, 1]),
            line([1.0, 2.0], labels=[1, 2]),
            read=numbers,
        )


def _aligned(x: Any) -> Any:
    library = xtensor_functions if isinstance(x, XTensor) else xr
    return library.align(x, x, join="outer")[0]


SQUARE = xr.DataArray(np.ones((2, 2)), dims=("a", "b"))
LEVELS = {"c": [5.0], "b": [10, 20]}

DIVERGENCES = [
    Divergence(
        "arithmetic joins labels exactly",
        "An inner join drops elements without a word; ask for it with arithmetic_join or align.",
        _join,
    ),
    Divergence(
        "broadcast and broadcast_like join labels as arithmetic does",
        "xarray joins by the union, whatever its arithmetic_join says.",
        lambda: both(
            lambda x, y: x.broadcast_like(y).size,
            line([1.0, 2.0], labels=[0, 1]),
            line([1.0, 2.0], labels=[1, 2]),
        ),
    ),
    Divergence(
        "two dims of one name",
        "No operation by name means anything on them.",
        lambda: both(lambda x: x.rename(a="b").dims, SQUARE),
    ),
    Divergence(
        "sel on a dim without labels",
        "xarray takes the label for a position.",
        lambda: both(lambda x: float(x.sel(x=1)), line([1.0, 2.0])),
    ),
    Divergence(
        "a slice of labels against their order",
        "xarray answers with nothing at all.",
        lambda: both(lambda x: x.sel(x=slice(3, 1)).size, line([1.0, 2.0, 3.0], labels=[1, 2, 3])),
    ),
    Divergence(
        "where(drop=True) on a condition on data",
        "Its size would be known only after computing.",
        lambda: both(lambda x: x.where(x > 1, drop=True).size, line([1.0, 2.0])),
    ),
    Divergence(
        "the sum of an empty bin is 0",
        "It is the sum of nothing, as everywhere else; min_count=1 gives NaN.",
        lambda: both(
            lambda x: np.nan_to_num(
                x.groupby_bins("m", [0, 1, 2, 3]).sum().values, nan=-1
            ).tolist(),
            line([5.0, 7.0], m=("x", [0.5, 2.5])),
        ),
    ),
    Divergence(
        "integers and booleans that meet a filling join, reindex or unstack become floats",
        "The dtype of a result follows from dtypes and not from whether a label is missing.",
        lambda: both(lambda x: x.reindex(x=[0, 1]).dtype.kind, line([1, 2], labels=[0, 1])),
    ),
    Divergence(
        "groups over dims that do not hold the grouped one",
        "xarray reduces the other dim and groups nothing.",
        lambda: both(
            lambda x: x.groupby("g").sum("b").dims,
            xr.DataArray(np.ones((2, 3)), dims=("a", "b"), coords={"g": ("a", ["u", "v"])}),
        ),
    ),
    Divergence(
        "a padded dim has no labels",
        "xarray makes up NaN labels, which nothing can be selected or aligned by.",
        lambda: both(lambda x: "x" in x.pad(x=1).coords, line([1.0, 2.0], labels=[0, 1])),
    ),
    Divergence(
        "diff(n, label='lower') labels every difference by its lower neighbour",
        "xarray does so for the first of several differences only.",
        lambda: both(
            lambda x: x.diff("x", 2, label="lower").coords["x"].values.tolist(),
            line([1.0, 2.0, 4.0, 8.0], labels=[0, 1, 2, 3]),
        ),
    ),
    Divergence(
        "stack(z=[..., 'c']) takes the other dims in the order of the array",
        "xarray takes them in an order that depends on which dims have labels.",
        lambda: both(
            lambda x: [t[:2] for t in x.stack(z=[..., "c"]).coords["z"].values.tolist()][:3],
            xr.DataArray(np.ones((1, 2, 2)), dims=("c", "a", "b"), coords=LEVELS),
        ),
    ),
    Divergence(
        "a join that leaves nothing is an error",
        "It is most often text against numbers, or float32 against float64 labels.",
        lambda: both(
            lambda x, y: (
                (xtensor_functions if isinstance(x, XTensor) else xr)
                .align(x, y, join="inner")[0]
                .size
            ),
            line([1.0], labels=[0.1]),
            line([1.0], labels=[0.2]),
        ),
    ),
    Divergence(
        "a running product over several dims keeps the NaN that it makes",
        "Zero times infinity is undefined and no missing value; xarray skips it in the next dim.",
        lambda: both(
            lambda x: str(x.cumprod().values[1, 1]),
            xr.DataArray(np.array([[0.0, np.inf], [np.inf, 2.0]]), dims=("a", "b")),
        ),
    ),
    Divergence(
        "a quantile between equal infinities is that infinity",
        "The line between the two is their difference, which is NaN, in NumPy.",
        lambda: both(lambda x: float(x.quantile(0.3)), line([np.inf, np.inf])),
    ),
    Divergence(
        "quantiles of float32 are float64, also of NaN alone",
        "The dtype of a result follows from dtypes and not from the data.",
        lambda: both(
            lambda x: x.quantile(0.3).dtype.itemsize, line(np.array([np.nan, np.nan], "f4"))
        ),
    ),
    Divergence(
        "interpolation at a known position gives its value beside NaN",
        "A neighbour of weight 0 does not enter; in xarray that holds for arrays of one dim only.",
        lambda: both(
            lambda x: str(x.interp(x=[0.0]).values[0, 0]),
            xr.DataArray([[1.0, 2.0], [np.nan, 2.0]], dims=("x", "y"), coords={"x": [0.0, 1.0]}),
        ),
    ),
    Divergence(
        "drop_isel where a label occurs more than once",
        "Positions say what goes; xarray looks for their labels and finds two.",
        lambda: both(lambda x: x.drop_isel(x=0).size, line([1.0, 2.0, 3.0], labels=[5, 5, 6])),
    ),
    Divergence(
        "dates and text are labels only",
        "The Array API standard has no such dtypes; they stay in coordinates.",
        lambda: both(lambda x: x.size, line(np.array(["2020-01-01"], "M8[ns]"))),
    ),
]
