"""Integrals and derivatives of named nodes along known positions: trapezoids and differences."""

import numpy as np

from lazyarr.errors import CoordError
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops.indexing import slice_axis
from lazyarr.graph.registry import op
from lazyarr.xtensor.types import XTensorType


def spacing(positions: np.ndarray, name: str, unit: str | None) -> np.ndarray:
    """Return the distances between neighbouring labels as floats; dates count in a unit."""
    if positions.dtype.kind in "mM":
        steps = np.diff(positions)
        return steps / np.timedelta64(1, unit or np.datetime_data(steps.dtype)[0])
    if positions.dtype.kind not in "biuf":
        raise CoordError(f"coordinate {name!r} of dtype {positions.dtype} has no distances.")
    return np.diff(positions if positions.dtype == np.float32 else positions.astype(np.float64))


def _weights(values: np.ndarray, dim: str, x: Variable) -> Variable:
    dtype = x.type.dtype if x.type.dtype.kind in "fc" else np.dtype(np.float64)
    return data(values.astype(dtype), XTensorType(dtype, (dim,), values.shape))


def _floating(x: Variable) -> Variable:
    return x if x.type.dtype.kind in "fc" else op.astype(x, np.float64)


def _pairs(x: Variable, dim: str, steps: np.ndarray) -> Variable:
    """The area of each trapezoid."""
    x, axis, n = _floating(x), x.type.axis(dim), len(steps)
    both = op.add(slice_axis(x, axis, 0, n), slice_axis(x, axis, 1 if n else 0, n))
    widths = data(steps / 2, XTensorType(steps.dtype, (dim,), steps.shape))
    return op.multiply(both, widths)


def integrate(x: Variable, dim: str, steps: np.ndarray) -> Variable:
    """Record the integral along a dim by the trapezoidal rule."""
    return op.sum(_pairs(x, dim, steps), axis=dim)


def cumulative_integrate(x: Variable, dim: str, steps: np.ndarray) -> Variable:
    """Record the integral from the first position to each."""
    areas = _pairs(x, dim, steps)
    return op.cumulative_sum(areas, axis=areas.type.axis(dim), include_initial=True)


def differentiate(x: Variable, dim: str, steps: np.ndarray, edge_order: int) -> Variable:
    """Record the derivative along a dim: differences of second order inside, one-sided at ends."""
    x, axis, n = _floating(x), x.type.axis(dim), len(steps) + 1
    if n < edge_order + 1:
        raise CoordError(f"differentiate needs {edge_order + 1} positions along {dim!r}, has {n}.")

    def at(start: int, length: int) -> Variable:
        return slice_axis(x, axis, start, length)

    parts = [_edge(at(0, 1), at(1, 1), at(2, 1) if edge_order > 1 else None, dim, steps)]
    if n > 2:
        a, b = steps[:-1], steps[1:]
        terms = [(at(0, n - 2), -b / (a * (a + b))), (at(2, n - 2), a / (b * (a + b)))]
        if not np.all(steps == steps[0]):
            terms.append((at(1, n - 2), (b - a) / (a * b)))
        parts.append(_combined(dim, *terms))
    back = -steps[::-1]
    third = at(n - 3, 1) if edge_order > 1 else None
    parts.append(_edge(at(n - 1, 1), at(n - 2, 1), third, dim, back))
    return op.concat(parts, axis=axis)


def _edge(x0: Variable, x1: Variable, x2: Variable | None, dim: str, steps: np.ndarray):
    """The derivative at an end, from the two or three positions there."""
    h = steps[:1]
    if x2 is None:
        return _combined(dim, (x0, -1 / h), (x1, 1 / h))
    k = steps[1:2]
    return _combined(
        dim, (x0, -(2 * h + k) / (h * (h + k))), (x1, (h + k) / (h * k)), (x2, -h / (k * (h + k)))
    )


def _combined(dim: str, *terms: tuple[Variable, np.ndarray]) -> Variable:
    total = None
    for x, weight in terms:
        term = op.multiply(x, _weights(weight, dim, x))
        total = term if total is None else op.add(total, term)
    return total
