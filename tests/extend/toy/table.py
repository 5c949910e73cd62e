"""The words of the toy backend: NumPy's, counted, and without a running sum."""

from collections.abc import Callable

import numpy as np

from lazyarr.backends.array.table import Table
from lazyarr.backends.array.words import generic_words


def counted(function: Callable, on_call: Callable[[], None]) -> Callable:
    """The function, telling each of its calls."""

    def call(*args: object, **kwargs: object) -> object:
        on_call()
        return function(*args, **kwargs)

    return call


def make_table(on_call: Callable[[], None]) -> Table:
    """Only what differs from NumPy's own names."""
    words = {
        **generic_words(np, lambda x, dtype: np.asarray(x).astype(dtype)),
        "exp": counted(np.exp, on_call),
    }
    return Table(
        np,
        np.dtype,
        lambda value, dtype: dtype.type(value),
        words,
        missing=frozenset({("cumulative_sum", "float")}),
    )
