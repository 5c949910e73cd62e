"""The fft extension."""

import numpy as np

from conformance import spec
from conformance.own.recipes._recipe import Case, DType, recipe, size_of

ONE = ("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft")
MANY = ("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn")


def _input(d, key: str) -> np.ndarray:
    dtype = d.dtype(spec.function(key).params[0]["dtypes"])
    return d.array(dtype, d.shape(1, 3, 4, 2), -9, 9)


def _exact(x: np.ndarray) -> np.ndarray:
    return x.astype({"f": "float64", "c": "complex128"}[x.dtype.kind])


@recipe(*ONE)
def along_one(d, key):
    """Along an axis, with a length and a norm."""
    x = _input(d, key)
    kwargs: dict = {"axis": d.axis(x.ndim), "norm": d.choice(["backward", "ortho", "forward"])}
    if d.boolean():
        kwargs["n"] = d.integer(2, 6)
    answer = getattr(np.fft, key[4:])(_exact(x), **kwargs)
    return Case([x], kwargs, answer, scale=10 * size_of(x, answer))


@recipe(*MANY)
def along_many(d, key):
    """Along all axes, or some."""
    x = _input(d, key)
    kwargs: dict = {"norm": d.choice(["backward", "ortho", "forward"])}
    if d.boolean():
        kwargs["axes"] = tuple(range(x.ndim))[-d.integer(1, x.ndim) :]
        if d.boolean():
            kwargs["s"] = tuple(d.integer(2, 5) for _ in kwargs["axes"])
    answer = getattr(np.fft, key[4:])(_exact(x), **{"axes": tuple(range(x.ndim)), **kwargs})
    return Case([x], kwargs, answer, scale=10 * size_of(x, answer))


@recipe("fft.fftfreq", "fft.rfftfreq")
def frequencies(d, key):
    """A length, a spacing, and perhaps a dtype."""
    n, spacing = d.integer(1, 9), d.choice([1.0, 0.5, 2.0])
    dtype = DType(d.dtype("real_floating")) if d.boolean() else None
    kwargs = {"d": spacing, "dtype": dtype}
    return Case([n], kwargs, getattr(np.fft, key[4:])(n, d=spacing), dtypes=("float64",))


@recipe("fft.fftshift", "fft.ifftshift")
def shifts(d, key):
    """All axes, one, or several."""
    x = d.array(d.dtype("floating"), d.shape(1, 3, 4, 1))
    axes = d.choice([None, d.axis(x.ndim), tuple(range(x.ndim))])
    return Case([x], {"axes": axes}, getattr(np.fft, key[4:])(x, axes=axes))
