"""State that compiled functions share and update: `shared`.

A shared array is an input that no call gives: each function reads its value when called, and
`updates=` writes it after a call. Values never alias what the caller holds.
"""

import weakref
from collections.abc import Sequence

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.traverse import leaves
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array
from lazyarr.namespace.functions import asarray

_cells: "weakref.WeakKeyDictionary[Variable, Cell]" = weakref.WeakKeyDictionary()


class Cell:
    """A place for one array; a value is published by one store."""

    def __init__(self, value: np.ndarray, type: TensorType):
        self.value, self.type = value, type

    def replace(self, value: np.ndarray) -> None:
        """Store an array that nobody else holds."""
        value.flags.writeable = False
        self.value = value


class Shared(Array):
    """An array whose value belongs to functions: `get_value`, `set_value`, and `updates=`."""

    __slots__ = ("cell",)

    def __init__(self, variable: Variable, cell: Cell):
        super().__init__(variable)
        self.cell = cell
        _cells[variable] = cell

    def get_value(self) -> np.ndarray:
        """Return a copy of the value."""
        return np.array(self.cell.value)

    def set_value(self, value: object) -> None:
        """Store a copy of a value of the same dtype and shape."""
        self.cell.replace(np.array(self.cell.type.filter(np.asarray(value))))

    def __reduce__(self):
        return shared, (self.get_value(), self._v.name)


def shared(value: object, name: str | None = None) -> Shared:
    """Return a shared array with an initial value, which is copied.

    >>> import lazyarr as xp
    >>> count = xp.shared(0.0, name="count")
    >>> step = xp.function([], count, updates=[(count, count + 1)], backend="interpret")
    >>> float(step()), float(step()), float(count.get_value())
    (0.0, 1.0, 2.0)
    """
    array = np.array(asarray(value).compute())
    array.flags.writeable = False
    t = TensorType(array.dtype, array.shape)
    return Shared(make_symbol(t, name), Cell(array, t))


def cells_below(nodes: Sequence[Variable], given: Sequence[Variable]) -> dict[Variable, Cell]:
    """Return the shared leaves that nodes depend on and that are no inputs, with their cells."""
    skip = set(given)
    return {v: _cells[v] for v in leaves(nodes) if v.is_symbol and v in _cells and v not in skip}
