"""Checks for users: `check_grads` compares derivatives with numbers that need none, and
`assert_identical` and `assert_allclose` compare labelled arrays.

>>> import lazyarr as xp
>>> from lazyarr.testing import check_grads
>>> check_grads(lambda x, y: xp.sin(x) * y, (0.3, 2.0))
"""

from collections.abc import Callable, Sequence

import numpy as np

from lazyarr.autodiff.check import continued
from lazyarr.errors import ArgumentError, GradientError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph
from lazyarr.namespace import derivatives
from lazyarr.namespace.array import Array
from lazyarr.namespace.compiled import function
from lazyarr.namespace.control_trace import Leaf, as_handle, node_of
from lazyarr.namespace.derivatives import asarray_like, grad, jvp, lowered
from lazyarr.namespace.standard import multiply, real, sum  # noqa: A004 - the standard's names
from lazyarr.namespace.transforms import symbol
from lazyarr.namespace.tree import flatten, paths, unflatten
from lazyarr.namespace.vectorize import jacobian
from lazyarr.namespace.xtensor import XTensor, as_xtensor

STEP = 1e-30  # of the complex step: nothing is subtracted, so it can be as small as you like
MODES = ("fwd", "rev")
# By what the derivatives are computed in: relative to the largest of an argument's.
TOLERANCE = {"float32": 2e-4, "float64": 1e-6}
EXACT = {"float32": 1e-4, "float64": 1e-9}  # where the numbers come from a complex step


def check_grads(
    f: Callable,
    args: Sequence,
    order: int = 2,
    modes: Sequence[str] = MODES,
    *,
    tolerance: float | None = None,
    backend: str = "interpret",
) -> None:
    """Check the derivatives of a function at a point; raise GradientError where one is wrong.

    f takes `args` (pytrees of arrays; what is not floating is a constant) and returns a pytree of
    arrays. Its outputs are weighted and summed, and every element of the gradient of that sum is
    compared, for each order up to `order` and every sequence of `modes` ("fwd", "rev"), with a
    complex step where f is analytic, and with central differences otherwise, both in double
    precision. `tolerance` is relative to max(1, the largest element of the gradient).

    The error names the argument, the element, the order and modes, and both numbers.
    """
    unknown = [m for m in modes if m not in MODES]
    if unknown or not modes:
        raise ArgumentError(f"modes are among {MODES}, got {tuple(modes)}.")
    point = _Point(args)
    for sequence in _sequences(modes, order):
        point.check(f, sequence, tolerance, backend)


def _sequences(modes: Sequence[str], order: int) -> list[tuple[str, ...]]:
    """Every way to differentiate up to `order` times, the innermost mode first."""
    found: list[tuple[str, ...]] = [()]
    out: list[tuple[str, ...]] = []
    for _ in range(order):
        found = [(*s, m) for s in found for m in modes]
        out += found
    return out


def assert_identical(a: object, b: object) -> None:
    """Check that two labelled arrays are equal in all they hold; they are computed.

    a, b: XTensors or xr.DataArrays. Raises AssertionError that says what differs: dims, dtype,
    coordinates, name, attributes or values (NaN equals NaN).

    >>> from lazyarr import XTensor
    >>> assert_identical(XTensor([1.0], dims="x") + 1, XTensor([2.0], dims="x"))
    """
    x, y = as_xtensor(a), as_xtensor(b)
    _assert_alike(x, y)
    _assert_equal("names", x.name, y.name)
    _assert_equal("attributes", x.attrs, y.attrs)
    np.testing.assert_array_equal(x.values, y.values, strict=True)


def assert_allclose(a: object, b: object, rtol: float = 1e-5, atol: float = 1e-8) -> None:
    """Check that two labelled arrays have the same dims and labels, and values within tolerances.

    >>> from lazyarr import XTensor
    >>> assert_allclose(XTensor([1.0], dims="x"), XTensor([1.0 + 1e-9], dims="x"))
    """
    x, y = as_xtensor(a), as_xtensor(b)
    _assert_alike(x, y)
    np.testing.assert_allclose(x.values, y.values, rtol=rtol, atol=atol)


def _assert_alike(x: XTensor, y: XTensor) -> None:
    """Check what is known without computing."""
    _assert_equal("dims", x.dims, y.dims)
    _assert_equal("sizes", x.sizes, y.sizes)
    _assert_equal("names of coordinates", sorted(x.coords), sorted(y.coords))
    for name, c in x.coords.items():
        if not c.equals(y.coords[name]):
            raise AssertionError(f"coordinate {name!r} differs: {c!r} and {y.coords[name]!r}")


def _assert_equal(what: str, a: object, b: object) -> None:
    if a != b:
        raise AssertionError(f"{what} differ: {a!r} and {b!r}")


class _Point:
    """Arguments taken apart: which leaves are differentiated by, at which values."""

    def __init__(self, args: Sequence):
        self.leaves, self.tree = flatten(tuple(args))
        self.labels = paths(self.tree, "args")
        handles = [None if _is_static(v) else asarray_like(v) for v in self.leaves]
        self.places = [i for i, h in enumerate(handles) if h is not None and h.dtype.kind in "fc"]
        if not self.places:
            raise ArgumentError("check_grads: no argument is floating.")
        self.kinds = [Leaf.of(handles[i]) for i in self.places]
        self.arrays = [np.array(node_value(handles[i])) for i in self.places]

    def symbols(self, wide: bool) -> list[Array]:
        """Symbols for the floating leaves, in double precision if asked."""
        return [
            symbol(f"{self.labels[i]}", shape=a.shape, dtype=_wide(a.dtype) if wide else a.dtype)
            for i, a in zip(self.places, self.arrays, strict=True)
        ]

    def called(self, f: Callable, given: Sequence) -> object:
        """The weighted sum of what f returns."""
        leaves = list(self.leaves)
        for i, kind, x in zip(self.places, self.kinds, given, strict=True):
            leaves[i] = kind.handle(x._v)
        outputs, _ = flatten(f(*unflatten(self.tree, leaves)))
        handles = [Array(node_of(as_handle(y))) for y in outputs]
        total = None
        for k, y in enumerate(h for h in handles if h.dtype.kind in "fc"):
            term = _weighted(y, 0.2 + k)
            total = term if total is None else total + term
        if total is None:
            raise ArgumentError("check_grads: the function returns nothing floating.")
        return total

    def along(self, f: Callable, modes: Sequence[str]) -> Callable:
        """The sum, differentiated along fixed directions by each mode in turn."""

        def base(*xs: object):
            return self.called(f, xs)

        g = base
        for k, mode in enumerate(modes):
            g = self._directional(g, mode, 0.9 + k)
        return g

    def _directional(self, g: Callable, mode: str, shift: float) -> Callable:
        def forward(*xs: object):
            directions = [
                _irregular(a.shape, x.dtype, shift + i)
                for i, (a, x) in enumerate(zip(self.arrays, xs, strict=True))
            ]
            return jvp(g, xs, directions)[1]

        def reverse(*xs: object):
            found = grad(g, tuple(range(len(xs))))(*xs)
            terms = [
                sum(real(multiply(h, np.conj(_irregular(a.shape, x.dtype, shift + i)))))
                for i, (a, x, h) in enumerate(zip(self.arrays, xs, found, strict=True))
            ]
            total = terms[0]
            for t in terms[1:]:
                total = total + t
            return total

        return forward if mode == "fwd" else reverse

    def check(self, f: Callable, modes: tuple, tolerance: float | None, backend: str) -> None:
        """Compare the gradient by the last mode of the sum differentiated by the others."""
        inner = self.along(f, modes[:-1])
        xs = self.symbols(wide=False)
        got = function(xs, _gradient(inner, xs, modes[-1], self.arrays), backend=backend)(
            *self.arrays
        )
        numbers, exact = self.numbers(inner)
        for k, (g, want) in enumerate(zip(got, numbers, strict=True)):
            bounds = EXACT if exact[k] else TOLERANCE
            bound = tolerance or bounds[_real_name(self.arrays[k].dtype)]
            scale = max(1.0, float(np.max(np.abs(want), initial=0)))
            wrong = ~(np.abs(g - want) <= bound * scale)  # NaN is wrong, unless in both
            wrong &= ~(np.isnan(g) & np.isnan(want))
            if wrong.any():
                self.fail(k, np.argwhere(wrong)[0], g, want, modes, exact[k])

    def fail(self, k: int, index: np.ndarray, got, want, modes: tuple, exact: bool) -> None:
        """Raise the error of one element."""
        at = tuple(int(i) for i in index)
        source = "a complex step" if exact else "central differences"
        where = f"[{', '.join(map(str, at))}]" if at else ""
        raise GradientError(
            f"the derivative of order {len(modes)} by {self.labels[self.places[k]]}{where} "
            f"(modes {', then '.join(modes)}) is {got[at]:.10g}, {source} gives {want[at]:.10g}."
        )

    def numbers(self, inner: Callable) -> tuple[list[np.ndarray], list[bool]]:
        """The gradient without derivatives, and whether it is exact, for each argument."""
        xs = self.symbols(wide=True)
        (top, *nodes), _ = lowered([inner(*xs)._v, *(x._v for x in xs)])
        wide = [a.astype(_wide(a.dtype)) for a in self.arrays]
        graph = Graph(nodes, [top])
        found, exact = [], []
        for k, a in enumerate(wide):
            step = continued([top], [nodes[k]]) if a.dtype.kind == "f" else None
            if step is None:
                found.append(_central(graph, wide, k))
            else:
                found.append(_stepped(step, nodes, wide, k))
            exact.append(step is not None)
        return found, exact


def _is_static(value: object) -> bool:
    return isinstance(value, bool | int | str) or callable(value)


def node_value(handle: object) -> np.ndarray:
    """Return the value of an array handle."""
    return Array(node_of(handle)).compute()


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype("complex128" if dtype.kind == "c" else "float64")


def _real_name(dtype: np.dtype) -> str:
    return np.zeros((), dtype).real.dtype.name


def _irregular(shape: tuple, dtype: np.dtype, shift: float) -> np.ndarray:
    """Numbers that are not special in any way."""
    k = np.arange(1, int(np.prod(shape)) + 1)
    out = 0.7 + 0.5 * np.sin(12.9898 * k + shift)
    if np.dtype(dtype).kind == "c":
        out = out + 1j * np.cos(7.233 * k + shift)
    return out.astype(dtype).reshape(shape)


def _weighted(y: Array, shift: float) -> Array:
    if any(s is None for s in y.shape):
        raise ArgumentError("check_grads: the function returns an array of unknown size.")
    return sum(real(multiply(y, _irregular(y.shape, y.dtype, shift))))


def _gradient(inner: Callable, xs: Sequence, mode: str, arrays: Sequence) -> list:
    numbers = tuple(range(len(xs)))
    if mode == "rev":
        return list(grad(inner, numbers)(*xs))
    if all(a.dtype.kind == "f" for a in arrays):
        return list(jacobian(inner, numbers, mode="forward")(*xs))
    return [_forward_gradient(inner, xs, k, a) for k, a in enumerate(arrays)]


def _forward_gradient(inner: Callable, xs: Sequence, k: int, a: np.ndarray) -> Array:
    """The gradient by one argument, a pushforward for each element and part of it."""
    push = derivatives.linearize(inner, *xs)[1]
    total = None
    for index in np.ndindex(a.shape):
        for part in (1.0, 1j) if a.dtype.kind == "c" else (1.0,):
            unit = np.zeros(a.shape, a.dtype)
            unit[index] = part
            tangents = [unit if i == k else np.zeros(x.shape, x.dtype) for i, x in enumerate(xs)]
            term = push(*tangents) * unit
            total = term if total is None else total + term
    return Array(xs[k]._v) * 0 if total is None else total


def _stepped(step: tuple, nodes: Sequence[Variable], arrays: Sequence, k: int) -> np.ndarray:
    (z,), outputs = step
    graph = Graph([*(z if i == k else v for i, v in enumerate(nodes))], outputs)
    out = np.zeros(arrays[k].shape)
    for index in np.ndindex(out.shape):
        moved = arrays[k].astype(complex)
        moved[index] += STEP * 1j
        given = [moved if i == k else a for i, a in enumerate(arrays)]
        out[index] = np.imag(evaluate(graph, given)[0]) / STEP
    return out


def _central(graph: Graph, arrays: Sequence, k: int) -> np.ndarray:
    """Central differences, by the real and the imaginary part of complex elements."""
    precise = np.finfo(graph.outputs[0].dtype).eps ** (1 / 3)
    out = np.zeros(arrays[k].shape, arrays[k].dtype)
    for index in np.ndindex(out.shape):
        for part in (1.0, 1j) if out.dtype.kind == "c" else (1.0,):
            step = precise * max(1.0, abs(arrays[k][index]))
            ends = []
            for by in (step, -step):
                moved = arrays[k].copy()
                moved[index] += by * part
                ends.append(
                    evaluate(graph, [moved if i == k else a for i, a in enumerate(arrays)])[0]
                )
            out[index] += part * (ends[0] - ends[1]) / (2 * step)
    return out
