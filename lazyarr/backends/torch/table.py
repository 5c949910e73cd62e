"""The words in which Torch differs from the standard or which it lacks; raw names are fastest.

Torch has no arithmetic on uint16, uint32 and uint64: the first two compute in int64, the last on
its bits as int64 where that is exact. Elements of all three move as signed integers of their width.
"""

import numpy as np
import torch

from lazyarr.backends.array.complex_words import complex_words, expm1_by_parts
from lazyarr.backends.array.library import fourier_rows, sorting_rows
from lazyarr.backends.array.table import Table, Unsupported, raising_check
from lazyarr.backends.array.words import (
    eager_absorb,
    eager_product,
    generic_words,
    python_scan,
    region_key,
)

DTYPES = {
    np.dtype(name if name != "bool" else bool): getattr(torch, name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float32 float64 complex64 complex128"
    ).split()
}
WIDER = {np.dtype(f"uint{n}"): np.dtype("int64") for n in (16, 32, 64)}
MOVABLE = {np.dtype(f"uint{n}"): np.dtype(f"int{n}") for n in (16, 32, 64)}


def dtype_of(dtype: np.dtype) -> torch.dtype:
    """Return Torch's dtype."""
    try:
        return DTYPES[dtype]
    except KeyError:
        raise Unsupported(f"Torch has no dtype {dtype}.") from None


def constant(value: object, dtype: np.dtype) -> torch.Tensor:
    """Return a 0-d tensor."""
    return torch.from_numpy(np.array(value, dtype))


# -- reductions -----------------------------------------------------------------------------------


def _sum(x, axis, dtype, keepdims):
    return torch.sum(x, axis, keepdims, dtype=dtype)


def _one_by_one(function):
    """A reduction that Torch has for one axis at a time."""

    def reduce(x, axis, keepdims, dtype=None):
        for a in sorted(axis, reverse=True):
            x = function(x, a, keepdims) if dtype is None else function(x, a, keepdims, dtype=dtype)
        return x

    return reduce


def _reduction(function):
    """A reduction under the standard's names of its parameters."""
    return lambda x, axis, keepdims: function(x, axis, keepdims)


# -- movement -------------------------------------------------------------------------------------


def _expand_dims(x, axis):
    for a in axis:
        x = x.unsqueeze(a)
    return x


def _window(x, start, length, axis):
    return x.narrow(axis, int(start), length)


# -- indexing -------------------------------------------------------------------------------------


def _take(x, indices, axis):
    if indices.ndim == 1:
        return torch.index_select(x, axis, indices)
    out = torch.index_select(x, axis, indices.reshape(-1))
    return out.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def _flat(x, v, indices, axis):
    """Return v with the axes of its indices as one, and the indices flat."""
    shape = x.shape[:axis] + (indices.numel(),) + x.shape[axis + 1 :]
    return v.reshape(shape), indices.reshape(-1)


def _take_add(x, v, indices, axis):
    v, indices = _flat(x, v, indices, axis)
    return torch.index_add(x, axis, indices, v)


def _take_set(x, v, indices, axis):
    """Write, the last of duplicates winning: only winners are written, so their order is free."""
    v, indices = _flat(x, v, indices, axis)
    n = x.shape[axis]
    order = torch.arange(indices.numel())
    last = torch.full((n,), -1).scatter_reduce(0, indices, order, "amax")
    places = (last >= 0).nonzero().reshape(-1)
    return torch.index_copy(x, axis, places, torch.index_select(v, axis, last[places]))


def _written(add):
    def region(x, v, starts, steps):
        out = x.clone(memory_format=torch.contiguous_format)
        key = region_key(starts, v.shape, steps)
        if add:
            out[key] += v
        else:
            out[key] = v
        return out

    return region


# -- arithmetic -----------------------------------------------------------------------------------


def _sign_float(x):
    return torch.where(torch.isnan(x), x, torch.sign(x))


def _by_parts(function):
    """A complex sum by parts: Torch's multiplies by 1 first, so that inf gives NaN."""

    def run(x, y):
        return torch.view_as_complex(function(torch.view_as_real(x), torch.view_as_real(y)))

    return run


def _absorbed(g, d, product):
    bad = torch.isnan(product) & ((g == 0) | (d == 0))
    return torch.where(bad, torch.zeros((), dtype=product.dtype), product)


def _trigamma(x):
    out = torch.where((x <= 0) & (x == torch.floor(x)), torch.inf, torch.special.zeta(2.0, x))
    return torch.where(torch.isinf(x), torch.where(x > 0, 0.0, torch.nan), out)


def _solve_triangular(a, b, lower, trans, unit):
    if trans:
        a, lower = a.mT, not lower
    return torch.linalg.solve_triangular(a, b, upper=not lower, unitriangular=unit)


def _cholesky(x):
    factor, info = torch.linalg.cholesky_ex(x)
    return factor, info == 0


# Torch's own functions of the standard's names.
ELEMENTWISE = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_or "
    "bitwise_right_shift bitwise_xor ceil copysign cos cosh digamma divide einsum erf erfc "
    "exp expm1 floor floor_divide fmod hypot isfinite isinf isnan lgamma log log10 log1p log2 "
    "matmul maximum minimum multiply negative nextafter positive pow real reciprocal "
    "remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc where "
).split()


def _ordered(x):
    """Return signed integers in the order of unsigned ones that Torch does not compare."""
    if x.dtype is torch.uint64:
        return x.view(torch.int64) ^ torch.iinfo(torch.int64).min
    return x.to(torch.int64) if x.dtype in (torch.uint16, torch.uint32) else x


_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _flip(x, axes):
    """Flip, the bits of unsigned integers as signed ones: Torch flips no others."""
    signed = _SIGNED.get(x.dtype)
    return x.flip(axes) if signed is None else x.view(signed).flip(axes).view(x.dtype)


def _sort(x, axis):
    out = torch.sort(_ordered(x), dim=axis, stable=True).values
    if x.dtype is torch.uint64:
        return (out ^ torch.iinfo(torch.int64).min).view(torch.uint64)
    return out.to(x.dtype)


def _argsort(x, axis):
    return torch.argsort(_ordered(x), dim=axis, stable=True)


def _searchsorted(x1, x2, side):
    return torch.searchsorted(_ordered(x1), _ordered(x2).contiguous(), side=side)


# Torch's real() and imag() of complex arrays are views, which the formulas only read.
_COMPLEX = {"sign": torch.sgn, "expm1": expm1_by_parts(torch, torch.complex)}


def make_table() -> Table:
    """Return Torch's table."""
    words = {
        **generic_words(torch, torch.Tensor.to),
        **{name: getattr(torch, name) for name in ELEMENTWISE},
        "less": torch.lt,
        "less_equal": torch.le,
        "equal": torch.eq,
        "not_equal": torch.ne,
        "bitwise_invert": torch.bitwise_not,
        "sign_float": _sign_float,
        **complex_words(torch, torch.complex, torch.copysign, _COMPLEX),
        "round_complex": lambda z: torch.complex(torch.round(z.real), torch.round(z.imag)),
        "add_complex": _by_parts(torch.add),
        "subtract_complex": _by_parts(torch.sub),
        "conj": torch.conj_physical,
        "trigamma": _trigamma,
        "asarray": lambda value, dtype: torch.tensor(value, dtype=dtype),
        "arange": lambda n, dtype: torch.arange(n, dtype=dtype),
        "bitcast": torch.Tensor.view,
        "sum": _sum,
        "prod": _one_by_one(torch.prod),
        "max": _reduction(torch.amax),
        "min": _reduction(torch.amin),
        "all": _reduction(torch.all),
        "any": _reduction(torch.any),
        "argmax": _reduction(torch.argmax),
        "argmin": _reduction(torch.argmin),
        "cumulative_sum": lambda x, axis, dtype: torch.cumsum(x, axis, dtype=dtype),
        "cumulative_prod": lambda x, axis, dtype: torch.cumprod(x, axis, dtype=dtype),
        "permute_dims": lambda x, axes: x.permute(axes),
        "expand_dims": _expand_dims,
        "squeeze": lambda x, axis: x.squeeze(axis),
        "broadcast_to": lambda x, shape: x.expand(shape),
        "reshape": lambda x, shape: x.reshape(shape),
        "flip": lambda x, axis: x.flip(axis),
        "main_diagonal": lambda x: torch.diagonal(x, 0, -2, -1),
        "concat": lambda xs, axis: torch.cat(xs, axis),
        "stack": lambda xs, axis: torch.stack(xs, axis),
        "window": _window,
        "take": _take,
        "take_set": _take_set,
        "take_add": _take_add,
        "set_region": _written(add=False),
        "add_region": _written(add=True),
        "cholesky": _cholesky,
        "solve_triangular": _solve_triangular,
        "absorbed_product": eager_product(lambda x: x.sum().item(), _absorbed, torch.cat),
        "scan": python_scan(lambda shape, dtype: torch.zeros(shape, dtype=dtype), torch.tensor),
        "check": raising_check(lambda ok: bool(torch.all(ok))),
    }
    rows = {
        "absorb": eager_absorb(torch.mul, lambda x: x.sum().item(), _absorbed),
        **sorting_rows(_flip, _sort, _argsort, _searchsorted),
        **fourier_rows(torch.fft),
    }
    return Table(torch, dtype_of, constant, words, rows, wider=WIDER, movable=MOVABLE, name="torch")
