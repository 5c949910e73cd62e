"""NumpyBackend: programs over NumPy itself, called at once."""

from contextlib import AbstractContextManager

import numpy as np

from lazyarr.backends.array.backend import ArrayBackend
from lazyarr.backends.numpy.table import make_table


class NumpyBackend(ArrayBackend):
    """NumPy, one call per node."""

    name = "numpy"

    def __init__(self) -> None:
        super().__init__()
        self.table = make_table()

    def context(self) -> AbstractContextManager:
        """Overflow and division by zero give values, not warnings."""
        return np.errstate(all="ignore")

    def describe(self) -> dict:
        """Return version and devices."""
        return {"version": np.__version__, "devices": ["cpu"]}
