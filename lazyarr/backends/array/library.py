"""Rows for library ops that array namespaces have under the standard's names.

Sorting puts NaN last and keeps the order of equal elements; Fourier transforms go one axis after
the other, since not every namespace takes many at once.
"""

from collections.abc import Callable
from typing import Any


def sorting_rows(
    flip: Callable, sort: Callable, argsort: Callable, searchsorted: Callable
) -> dict[str, Callable]:
    """Return rows from `flip(x, axes)`, stable `sort(x, axis)` and `argsort`, `searchsorted`."""

    def sorted_(x, *, axis, descending):
        out = sort(x, axis)
        return flip(out, (axis,)) if descending else out

    def order(x, *, axis, descending):
        if not descending:
            return argsort(x, axis)
        back = flip(argsort(flip(x, (axis,)), axis), (axis,))
        return x.shape[axis] - 1 - back

    def search(x1, x2, *, side):
        return searchsorted(x1, x2, side)

    return {"sort": sorted_, "argsort": order, "search_sorted": search}


def fourier_rows(fft: Any) -> dict[str, Callable]:
    """Return rows for Fourier transforms of a module whose functions take (x, n, axis, norm)."""

    def full(x, *, axes, inverse, norm):
        for axis in axes:
            x = fft.ifft(x, None, axis, norm) if inverse else fft.fft(x, None, axis, norm)
        return x

    def half(x, *, axis, norm):
        return fft.rfft(x, None, axis, norm)

    def real(x, *, n, axis, norm):
        return fft.irfft(x, n, axis, norm)

    return {"fourier": full, "fourier_half": half, "fourier_real": real}
