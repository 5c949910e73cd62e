"""The words in which NumPy differs from the standard, or which it lacks."""

import numpy as np

from lazyarr.backends.array.table import Table, raising_check
from lazyarr.backends.array.words import (
    eager_absorb,
    eager_product,
    generic_words,
    python_scan,
    region_key,
)
from lazyarr.graph import numeric
from lazyarr.graph.registry import OPS


def _astype(x, dtype):
    return np.asarray(x).astype(dtype, copy=False)


def _written(add: bool):
    def region(x, v, starts, steps):
        out = np.array(x)
        key = region_key(starts, np.shape(v), steps)
        out[key] = out[key] + v if add else v
        return out

    return region


def _take_set(x, v, indices, axis):
    out = np.array(x)
    moved = np.moveaxis(out, axis, 0)
    n = np.ndim(indices)
    # NumPy assigns in order: of duplicates the last stays.
    moved[indices] = np.moveaxis(v, range(axis, axis + n), range(n))
    return out


def _take_add(x, v, indices, axis):
    out = np.array(x)
    n = np.ndim(indices)
    np.add.at(np.moveaxis(out, axis, 0), indices, np.moveaxis(v, range(axis, axis + n), range(n)))
    return out


def _cholesky(x):
    """The factors, and of each pivot whether it was positive; NaN is not."""
    try:
        factor = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return x, False
    return factor, ~np.isnan(np.diagonal(factor, axis1=-2, axis2=-1))


def _solve_triangular(a, b, lower, trans, unit):
    return OPS["solve_matrix"].reference(a, b, lower=lower, trans=trans, unit=unit)


def _absorbed(g, d, product):
    return np.where(np.isnan(product) & ((g == 0) | (d == 0)), np.zeros((), product.dtype), product)


def make_table() -> Table:
    """Return NumPy's table."""
    words = {
        **generic_words(np, _astype),
        "asarray": np.asarray,
        "arange": lambda n, dtype: np.arange(n, dtype=dtype),
        "floor_divide_float": numeric.floor_divide,
        "remainder_float": numeric.remainder,
        "maximum_float": np.maximum,
        "minimum_float": np.minimum,
        "sign_float": np.sign,
        "erf": numeric.erf,
        "erfc": numeric.erfc,
        "lgamma": numeric.lgamma,
        "digamma": numeric.digamma,
        "trigamma": numeric.trigamma,
        "atan2": np.arctan2,
        "all": np.all,
        "any": np.any,
        "main_diagonal": lambda x: np.diagonal(x, axis1=-2, axis2=-1),
        "set_region": _written(add=False),
        "add_region": _written(add=True),
        "take_set": _take_set,
        "take_add": _take_add,
        "cholesky": _cholesky,
        "solve_triangular": _solve_triangular,
        "absorbed_product": eager_product(np.sum, _absorbed, np.concatenate),
        "scan": python_scan(np.zeros, np.int64),
        "check": raising_check(np.all),
    }
    rows = {"absorb": eager_absorb(np.multiply, np.sum, _absorbed)}
    return Table(np, np.dtype, lambda value, dtype: dtype.type(value), words, rows)
