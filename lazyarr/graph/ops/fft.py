"""Fourier transforms. Source: Array API standard 2025.12, Fourier transform functions.

Three library ops do the work: complex to complex, real to half, half to real. The public names
resize their input with zeros and call them. `norm` says which direction divides by n.
"""

import numpy as np

from lazyarr.errors import AxisError, ChoiceError, DTypeError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.node import Variable
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import axis_of, composite, declare, shape_of, variable_of
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType

_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
ALONG = frozenset({"along_axis"})


def complex_of(dtype: np.dtype) -> np.dtype:
    """Return the complex dtype of a precision; others than floats transform in double precision."""
    return dtypes.promote(dtypes.floating(dtype), dtypes.complex64)


# -- the ops that compute -------------------------------------------------------------------------


def _full_reference(x, *, axes, inverse, norm):
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm)


@declare(
    "library",
    infer=lambda types, params: types[0],
    reference=_full_reference,
    vjp=lambda g, y, x, **params: (op.fourier.record((g,), params),),
    jvp="linear",
    public=False,
)
def fourier(x, axes, inverse, norm, /):
    """The discrete Fourier transform of a complex array over axes; a symmetric linear map."""
    return (x,), {"axes": axes, "inverse": inverse, "norm": norm}


def _half_infer(types, params):
    t, axis = types[0], params["axis"]
    half = shapes.floordiv(t.shape[axis], 2) + 1
    return TensorType(complex_of(t.dtype), (*t.shape[:axis], half, *t.shape[axis + 1 :]))


def _half_vjp(g, y, x, *, axis, norm):
    full = op.resize_axis(g, x.shape[axis], axis)
    return (op.real(op.fourier(full, (axis,), False, norm)),)


@declare(
    "library",
    infer=_half_infer,
    reference=lambda x, *, axis, norm: np.fft.rfft(x, axis=axis, norm=norm),
    vjp=_half_vjp,
    jvp="linear",
    facts=ALONG,
    public=False,
)
def fourier_half(x, axis, norm, /):
    """The first half of the transform of a real array along an axis."""
    return (x,), {"axis": axis, "norm": norm}


def _real_infer(types, params):
    t, axis = types[0], params["axis"]
    shape = (*t.shape[:axis], params["n"], *t.shape[axis + 1 :])
    return TensorType(dtypes.real_of(t.dtype), shape)


def _real_vjp(g, y, x, *, n, axis, norm):
    """Every coefficient counts twice, but the first and, for an even n, the last."""
    half = op.fourier_half(g, axis, _OPPOSITE[norm])
    k = op.arange(x.shape[axis])
    once = op.logical_or(op.equal(k, 0), op.equal(op.multiply(k, 2), n))
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    weight = op.reshape(op.where(once, 1, 2), tuple(shape))
    return (op.multiply(conjugate(half), weight),)


@declare(
    "library",
    infer=_real_infer,
    reference=lambda x, *, n, axis, norm: np.fft.irfft(x, n, axis=axis, norm=norm),
    vjp=_real_vjp,
    jvp="linear",
    sizes=("n",),
    facts=ALONG,
    public=False,
)
def fourier_real(x, n, axis, norm, /):
    """The real array of n elements along an axis whose transform's first half is given."""
    return (x,), {"n": n, "axis": axis, "norm": norm}


# -- arguments ------------------------------------------------------------------------------------


def _checked(x, norm, real: bool, what: str) -> Variable:
    x = variable_of(x)
    kind = x.type.dtype.kind
    if kind == "b" or (real and kind == "c"):
        wanted = "real floating-point" if real else "floating-point"
        raise DTypeError(f"{what} takes {wanted} dtypes, got {x.type.dtype}.")
    if norm not in _OPPOSITE:
        raise ChoiceError(f"{what}: norm is one of {', '.join(_OPPOSITE)}, not {norm!r}.")
    if not real:
        dtype = complex_of(x.type.dtype)
    else:
        dtype = dtypes.floating(x.type.dtype)
    return x if x.type.dtype == dtype else op.astype(x, dtype)


def _resized(x: Variable, n: object, axis: int, what: str) -> Variable:
    """The operand with n elements along an axis."""
    have = x.shape[axis]
    if isinstance(n, int) and n < 1:
        raise ShapeError(f"{what}: {n} elements along axis {axis}; at least 1 is needed.")
    return x if n is have or n == have else op.resize_axis(x, n, axis)


def _one_size(n: object, default: object) -> object:
    return default if n is None else shape_of(n)[0]


def _axes_and_sizes(x: Variable, s: object, axes: object, what: str) -> tuple[tuple, tuple | None]:
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = tuple(range(x.ndim - count, x.ndim))
    axes = tuple(axis_of(x, a) for a in axes)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{what}: axes {axes} name a dimension twice.")
    if s is None:
        return axes, None
    sizes = shape_of(tuple(s))
    if len(sizes) != len(axes):
        raise ShapeError(f"{what}: {len(sizes)} sizes for {len(axes)} axes.")
    return axes, sizes


# -- along one axis -------------------------------------------------------------------------------


def _one(x, n, axis, norm, inverse, what):
    x = _checked(x, norm, False, what)
    axis = axis_of(x, axis)
    x = _resized(x, _one_size(n, x.shape[axis]), axis, what)
    return (x,), {"axes": (axis,), "inverse": inverse, "norm": norm}


def _transform(x, *, axes, inverse, norm):
    return op.fourier(x, axes, inverse, norm)


@composite(expand=_transform)
def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """The discrete Fourier transform along an axis."""
    return _one(x, n, axis, norm, False, "fft")


@composite(expand=_transform)
def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse discrete Fourier transform along an axis."""
    return _one(x, n, axis, norm, True, "ifft")


@composite(expand=lambda x, *, axis, norm: op.fourier_half(x, axis, norm))
def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The first half of the transform of a real array along an axis."""
    x = _checked(x, norm, True, "rfft")
    axis = axis_of(x, axis)
    return (_resized(x, _one_size(n, x.shape[axis]), axis, "rfft"),), {"axis": axis, "norm": norm}


def _half_operand(x, n, axis, norm, what):
    """The coefficients for n real elements (None: twice as many as there are, less 2)."""
    x = _checked(x, norm, False, what)
    axis = axis_of(x, axis)
    n = _one_size(n, 2 * (x.shape[axis] - 1))
    if isinstance(n, int) and n < 1:
        raise ShapeError(f"{what}: {n} elements along axis {axis}; at least 1 is needed.")
    return _resized(x, shapes.floordiv(n, 2) + 1, axis, what), n, axis


@composite(expand=lambda x, *, n, axis, norm: op.fourier_real(x, n, axis, norm), sizes=("n",))
def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The real array of n elements whose transform's first half is given, along an axis."""
    x, n, axis = _half_operand(x, n, axis, norm, "irfft")
    return (x,), {"n": n, "axis": axis, "norm": norm}


@composite(
    expand=lambda x, *, n, axis, norm: op.fourier_real(op.conj(x), n, axis, _OPPOSITE[norm]),
    sizes=("n",),
)
def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The real transform of n elements with Hermitian symmetry, given by their first half."""
    x, n, axis = _half_operand(x, n, axis, norm, "hfft")
    return (x,), {"n": n, "axis": axis, "norm": norm}


@composite(expand=lambda x, *, axis, norm: op.conj(op.fourier_half(x, axis, _OPPOSITE[norm])))
def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of hfft: the first half of an array with Hermitian symmetry."""
    x = _checked(x, norm, True, "ihfft")
    axis = axis_of(x, axis)
    return (_resized(x, _one_size(n, x.shape[axis]), axis, "ihfft"),), {"axis": axis, "norm": norm}


# -- over several axes ----------------------------------------------------------------------------


def _several(x, s, axes, norm, inverse, what):
    x = _checked(x, norm, False, what)
    axes, sizes = _axes_and_sizes(x, s, axes, what)
    for n, a in zip(sizes or (), axes, strict=False):
        x = _resized(x, n, a, what)
    return (x,), {"axes": axes, "inverse": inverse, "norm": norm}


@composite(expand=_transform)
def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """The discrete Fourier transform over several axes."""
    return _several(x, s, axes, norm, False, "fftn")


@composite(expand=_transform)
def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse discrete Fourier transform over several axes."""
    return _several(x, s, axes, norm, True, "ifftn")


def _rfftn(x, *, axes, norm):
    half = op.fourier_half(x, axes[-1], norm)
    return op.fourier(half, axes[:-1], False, norm) if len(axes) > 1 else half


@composite(expand=_rfftn)
def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The transform of a real array over several axes, its first half along the last of them."""
    x = _checked(x, norm, True, "rfftn")
    axes, sizes = _axes_and_sizes(x, s, axes, "rfftn")
    for n, a in zip(sizes or (), axes, strict=False):
        x = _resized(x, n, a, "rfftn")
    return (x,), {"axes": axes, "norm": norm}


def _irfftn(x, *, n, axes, norm):
    if len(axes) > 1:
        x = op.fourier(x, axes[:-1], True, norm)
    return op.fourier_real(x, n, axes[-1], norm)


@composite(expand=_irfftn, sizes=("n",))
def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The real array whose transform over several axes is given by its first half."""
    x = _checked(x, norm, False, "irfftn")
    axes, sizes = _axes_and_sizes(x, s, axes, "irfftn")
    last = None if sizes is None else sizes[-1]
    for n, a in zip((sizes or ())[:-1], axes, strict=False):
        x = _resized(x, n, a, "irfftn")
    x, n, _ = _half_operand(x, last, axes[-1], norm, "irfftn")
    return (x,), {"n": n, "axes": axes, "norm": norm}


# -- frequencies and shifts -----------------------------------------------------------------------

_NO_INPUT = NO_GRADIENT("it has no floating operand to differentiate by")


def _frequencies(d, *, n, half, dtype):
    k = op.arange(shapes.floordiv(n, 2) + 1 if half else n)
    if not half:
        middle = shapes.floordiv(n + 1, 2)
        k = op.where(op.less(k, middle), k, op.subtract(k, n))
    scale = op.multiply(op.astype(d, dtypes.float64), n)
    return op.astype(op.divide(k, scale), dtype)


def _frequency_operands(n, d, dtype, half):
    dtype = dtypes.float64 if dtype is None else as_dtype(dtype)
    return (variable_of(float(d) if isinstance(d, int) else d),), {
        "n": shape_of(n)[0],
        "half": half,
        "dtype": dtype,
    }


@composite(expand=_frequencies, sizes=("n",), vjp=_NO_INPUT)
def fftfreq(n, /, *, d=1.0, dtype=None):
    """The frequencies of the coefficients of fft for n samples at a distance."""
    return _frequency_operands(n, d, dtype, False)


@composite(expand=_frequencies, sizes=("n",), vjp=_NO_INPUT)
def rfftfreq(n, /, *, d=1.0, dtype=None):
    """The frequencies of the coefficients of rfft for n samples at a distance."""
    return _frequency_operands(n, d, dtype, True)


def _shifted(x, *, axes, back):
    halves = tuple(shapes.floordiv(x.shape[a], 2) for a in axes)
    return op.roll_axes(x, tuple(-h if back else h for h in halves), axes)


def _shift_operands(x, axes, back):
    x = variable_of(x)
    if axes is None:
        axes = range(x.ndim)
    many = axes if isinstance(axes, tuple | list | range) else (axes,)
    return (x,), {"axes": tuple(axis_of(x, a) for a in many), "back": back}


@composite(expand=_shifted)
def fftshift(x, /, *, axes=None):
    """The zero frequency moved to the middle."""
    return _shift_operands(x, axes, False)


@composite(expand=_shifted)
def ifftshift(x, /, *, axes=None):
    """The zero frequency moved back to the start; the inverse of fftshift."""
    return _shift_operands(x, axes, True)
