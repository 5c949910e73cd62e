"""Arrays that are not C-contiguous, without copies: programs for their layouts.

A Fortran-ordered, permuted or reversed array is a C-contiguous one seen through `permute_dims` and
`flip`. The loop family compiles those into indices, so a program for such inputs reads memory as it
lies. It costs a compilation: it is made for layouts of which many bytes have been copied.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.graph.types import TensorType

LEAST = 1 << 16  # bytes of an array that is always copied


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory: `axes` of it, from the outermost, make up C order.

    Those in `reversed` run backwards.
    """

    axes: tuple[int, ...]
    reversed: tuple[int, ...]

    def contiguous(self, array: np.ndarray) -> np.ndarray:
        """Return the C-contiguous array of which `array` is a view.

        >>> x = np.arange(6.0).reshape(2, 3).T
        >>> Layout((1, 0), ()).contiguous(x).flags.c_contiguous
        True
        """
        return _forward(array, self.reversed).transpose(self.axes)

    def seen(self, x: Variable) -> Variable:
        """Return what a C-contiguous symbol is in this layout."""
        back = tuple(int(k) for k in np.argsort(self.axes))
        made = op.permute_dims(x, back)
        for axis in self.reversed:
            made = op.flip(made, axis=axis)
        return made


def _forward(array: np.ndarray, backwards: Sequence[int]) -> np.ndarray:
    steps = [slice(None, None, -1 if d in backwards else 1) for d in range(array.ndim)]
    return array[tuple(steps)]


def layout_of(array: np.ndarray) -> Layout | None:
    """Return the layout of a large array that is C-contiguous but for its order, else None.

    >>> layout_of(np.zeros((100, 200)).T[::-1])
    Layout(axes=(1, 0), reversed=(0,))
    """
    if array.flags.c_contiguous or array.nbytes < LEAST or not array.flags.aligned:
        return None
    backwards = tuple(d for d, s in enumerate(array.strides) if s < 0)
    order = sorted(range(array.ndim), key=lambda d: -abs(array.strides[d]))
    layout = Layout(tuple(order), backwards)
    return layout if layout.contiguous(array).flags.c_contiguous else None


class Layouts:
    """The programs of one graph for inputs in other layouts, by layout.

    `make` compiles one; that is worth it after `enough` bytes have been copied for a layout.
    """

    def __init__(self, graph: Callable[[], Graph], make: Callable[[Graph], Callable], enough: int):
        self.graph, self.make, self.enough = graph, make, enough
        self.copied: dict[tuple, int] = {}
        self.programs: dict[tuple, Callable] = {}

    def find(self, arrays: Sequence) -> tuple[Callable, list] | None:
        """Return the program for the layouts of arrays and what it takes, where one is worth it."""
        found = [layout_of(a) if isinstance(a, np.ndarray) else None for a in arrays]
        if not any(found):
            return None
        key = tuple(found)
        program = self.programs.get(key)
        if program is None:
            total = sum(a.nbytes for a, x in zip(arrays, found, strict=True) if x is not None)
            self.copied[key] = self.copied.get(key, 0) + total
            if self.copied[key] < self.enough:
                return None
            program = self.programs[key] = self.make(self._turned(key))
        pairs = zip(arrays, found, strict=True)
        return program, [a if x is None else x.contiguous(a) for a, x in pairs]

    def _turned(self, key: tuple) -> Graph:
        """Return the graph of C-contiguous inputs."""
        inputs: list[Variable] = []
        given: dict[Variable, object] = {}
        graph = self.graph()
        for v, layout in zip(graph.inputs, key, strict=True):
            if layout is None:
                inputs.append(v)
                continue
            x = symbol(TensorType(v.type.dtype, tuple(v.type.shape[d] for d in layout.axes)))
            given[v] = layout.seen(x)
            inputs.append(x)
        return Graph(inputs, substitute(graph.outputs, given))
