"""Fourier transforms. Their derivatives are seen through the real part of the result."""

from collections.abc import Callable, Iterator

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from tests.strategies.recipes.declare import FLOATS, Row, recipe
from tests.strategies.values import draw

NORMS = ("backward", "ortho", "forward")


def parts(transform: Callable) -> Callable:
    """Real and imaginary part of a transform, side by side."""

    def run(*xs: Variable) -> Variable:
        out = transform(*xs)
        return op.stack([op.real(out), op.imag(out)]) if out.dtype.kind == "c" else out

    return run


def complex_of(x: Variable, y: Variable) -> Variable:
    """x + iy, recorded with real operands."""
    wide = "complex64" if x.dtype == np.float32 else "complex128"
    return op.add(op.astype(x, wide), op.multiply(op.astype(y, wide), 1j))


@recipe("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", dtypes=FLOATS)
def _one_axis(name: str, d: np.dtype) -> Iterator[Row]:
    f, real = getattr(op, name), name in ("rfft", "ihfft")
    x, y = draw((2, 5), d), draw((2, 5), d, 0.5)
    for params in (
        {},
        {"axis": 0},
        {"n": 4},
        {"n": 7},
        *({"norm": norm} for norm in NORMS[1:]),
    ):
        if real:
            yield Row(f"{params}", [x], parts(lambda x, p=params: f(x, **p)))
        else:
            yield Row(f"{params}", [x, y], parts(lambda x, y, p=params: f(complex_of(x, y), **p)))


@recipe("fftn", "ifftn", "rfftn", "irfftn", dtypes=FLOATS)
def _several_axes(name: str, d: np.dtype) -> Iterator[Row]:
    f = getattr(op, name)
    x, y = draw((3, 4), d), draw((3, 4), d, 0.5)
    for params in ({}, {"axes": (0,)}, {"s": (4, 3), "axes": (0, 1)}, {"norm": "ortho"}):
        if name == "rfftn":
            yield Row(f"{params}", [x], parts(lambda x, p=params: f(x, **p)))
        else:
            yield Row(f"{params}", [x, y], parts(lambda x, y, p=params: f(complex_of(x, y), **p)))


@recipe("fourier", dtypes=FLOATS)
def _fourier(name: str, d: np.dtype) -> Iterator[Row]:
    x, y = draw((3, 4), d), draw((3, 4), d, 0.5)
    for inverse in (False, True):
        given = (0, 1), inverse, "backward"
        transform = parts(lambda x, y, given=given: op.fourier(complex_of(x, y), *given))
        yield Row(f"inverse {inverse}", [x, y], transform)


@recipe("fourier_half", dtypes=FLOATS)
def _fourier_half(name: str, d: np.dtype) -> Iterator[Row]:
    for n in (4, 5):
        yield Row(f"{n}", [draw((2, n), d)], parts(lambda x: op.fourier_half(x, 1, "backward")))


@recipe("fourier_real", dtypes=FLOATS)
def _fourier_real(name: str, d: np.dtype) -> Iterator[Row]:
    for n in (4, 5):
        given = n, 1, "backward"
        yield Row(f"{n}", [draw((2, 3), d), draw((2, 3), d, 0.5)],
                  lambda x, y, given=given: op.fourier_real(complex_of(x, y), *given))  # fmt: skip


@recipe("fftfreq", "rfftfreq", dtypes=FLOATS)
def _frequencies(name: str, d: np.dtype) -> Iterator[Row]:
    for n in (1, 4, 5):
        yield Row(f"{n}", [], lambda n=n: getattr(op, name)(n, d=0.5, dtype=d))


@recipe("fftshift", "ifftshift")
def _shift(name: str, d: np.dtype) -> Iterator[Row]:
    for axes in (None, 1):
        yield Row(f"{axes}", [draw((3, 4), d)], lambda x, a=axes: getattr(op, name)(x, axes=a))
