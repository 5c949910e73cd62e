"""Sorting, searching and sets."""

import numpy as np

from conformance.own.check import Mismatch
from conformance.own.recipes._recipe import Case, recipe


def _ties(d, category: str = "real", low: int = 0, high: int = 3) -> np.ndarray:
    """An array in which values repeat."""
    return d.array(d.dtype(category), d.shape(low, high, 4), 0, 5)


def order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The stable order; of equal elements the first stays first, also when descending."""
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    last = x.shape[axis] - 1
    turned = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return np.flip(last - turned, axis)


@recipe("sort", "argsort")
def sorts(d, name):
    """Stable, in either direction."""
    x = _ties(d, low=1)
    axis, descending = d.axis(x.ndim), d.boolean()
    answer = order(x, axis, descending)
    if name == "sort":
        answer = np.take_along_axis(x, answer, axis)
    return Case([x], {"axis": axis, "descending": descending}, answer)


@recipe("searchsorted")
def searchsorted(d):
    """Positions in a sorted vector, or in one that a sorter sorts."""
    dtype = d.dtype("real")
    x1 = d.array(dtype, (d.integer(0, 5),), 0, 9)
    x2 = d.array(dtype, d.shape(side=3), 0, 9)
    side = d.choice(["left", "right"])
    kwargs: dict = {"side": side}
    if d.boolean():
        kwargs["sorter"] = np.argsort(x1, stable=True)
        answer = np.searchsorted(np.sort(x1), x2, side)
    else:
        x1 = np.sort(x1)
        answer = np.searchsorted(x1, x2, side)
    return Case([x1, x2], kwargs, np.asarray(answer), dtypes=(dtype, dtype))


@recipe("nonzero")
def nonzero(d):
    """An array of places for each axis."""
    x = d.array(d.dtype("any"), d.shape(1), 0, 1)
    return Case([x], {}, tuple(np.nonzero(x)), data_dependent=True)


@recipe("isin")
def isin(d):
    """Which elements are among others."""
    a, b = d.pair("integer")
    x1, x2 = d.array(a, d.shape(), 0, 5), d.array(b, d.shape(), 0, 5)
    invert = d.boolean()
    return Case([x1, x2], {"invert": invert}, np.isin(x1, x2, invert=invert))


@recipe("unique_values")
def unique_values(d):
    """Each value once, in any order."""
    x = _ties(d, "any")
    return Case([x], {}, None, verify=lambda out: _values(out[0], x), data_dependent=True)


@recipe("unique_counts")
def unique_counts(d):
    """Each value once, and how often it occurs."""
    x = _ties(d, "any")

    def verify(out: list) -> None:
        _values(out[0], x)
        _equal(out[1], [np.sum(x == v) for v in out[0]], "counts")

    return Case([x], {}, None, verify=verify, data_dependent=True)


@recipe("unique_inverse")
def unique_inverse(d):
    """Each value once, and where each element is among them."""
    x = _ties(d, "any")

    def verify(out: list) -> None:
        _values(out[0], x)
        _equal(out[0][out[1]], x, "values[inverse_indices]")

    return Case([x], {}, None, verify=verify, data_dependent=True)


@recipe("unique_all")
def unique_all(d):
    """Values, where each is first, where each element is among them, and how often."""
    x = _ties(d, "any")

    def verify(out: list) -> None:
        values, first, inverse, counts = out
        _values(values, x)
        _equal(x.ravel()[first], values, "x[indices]")
        _equal(first, [np.flatnonzero(x.ravel() == v)[0] for v in values], "first indices")
        _equal(values[inverse], x, "values[inverse_indices]")
        _equal(counts, [np.sum(x == v) for v in values], "counts")

    return Case([x], {}, None, verify=verify, data_dependent=True)


def _values(found: np.ndarray, x: np.ndarray) -> None:
    _equal(np.sort(found), np.unique(x), "the sorted values")


def _equal(found: object, expected: object, what: str) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or not np.array_equal(found, expected):
        raise Mismatch(f"{what}: {found.tolist()}, expected {expected.tolist()}")
