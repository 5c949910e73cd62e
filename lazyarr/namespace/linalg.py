"""`lazyarr.linalg`: linear algebra. XTensors take `dims=` where a matrix is meant."""

import functools
from collections import namedtuple
from collections.abc import Callable

import numpy as np

from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import OPS, op
from lazyarr.namespace import functions, xtensor_linalg
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.xtensor import XTensor

# Functions of several results, which have names.
RESULTS = {
    "eig": namedtuple("EigResult", "eigenvalues eigenvectors"),
    "eigh": namedtuple("EighResult", "eigenvalues eigenvectors"),
    "qr": namedtuple("QRResult", "Q R"),
    "slogdet": namedtuple("SlogdetResult", "sign logabsdet"),
    "svd": namedtuple("SVDResult", "U S Vh"),
}
LstsqResult = namedtuple("LstsqResult", "x residuals rank s")

__all__ = [*functions.LINALG, *RESULTS]

globals().update({name: functions.function_of(name) for name in functions.LINALG})


def _several(name: str) -> Callable:
    """A function whose results are the outputs of one node."""
    record, result = OPS[name], RESULTS[name]

    def call(x, /, **params):
        return result(*[Array(v) for v in picks(record(unwrap(x), **params))])

    return functions.described(call, name)


globals().update({name: _several(name) for name in RESULTS})


def _by_operand(name: str):
    """Dispatch to the named form when the first operand is an XTensor."""
    positional, named = globals()[name], getattr(xtensor_linalg, name)

    def call(x, /, *args, **kwargs):
        form = named if isinstance(x, XTensor) else positional
        return form(x, *args, **kwargs)

    call.__name__, call.__doc__ = name, positional.__doc__
    call.__signature__, call.__module__ = positional.__signature__, __name__
    return call


_NAMED = [name for name in __all__ if hasattr(xtensor_linalg, name)]
globals().update({name: _by_operand(name) for name in _NAMED})


def einsum(dims, *operands):
    """Return the sum of products of XTensors by the names of their dims."""
    return xtensor_linalg.einsum(dims, *operands)


def lstsq(a, b, rcond: float | None = None) -> LstsqResult:
    """Return the x that makes a x nearest to b, by singular values.

    a: a matrix (m, n); b: (m,) or (m, k). Singular values below `rcond` times the largest
    (machine precision times max(m, n) unless told) count as 0. The result holds x, the squared
    lengths of the residuals of each column, the rank of a, and its singular values.

    >>> import lazyarr as xp
    >>> a = xp.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> xp.linalg.lstsq(a, xp.asarray([1.0, 3.0, 5.0])).x.compute().round(6)
    array([1., 2.])
    """
    m, y = (functions.asarray(v)._v for v in (a, b))
    m, y = (v if v.type.dtype.kind in "fc" else op.astype(v, np.float64) for v in (m, y))
    left, s, right = picks(op.svd(m, full_matrices=False))
    if rcond is None:
        size = functools.reduce(op.maximum, (op.size_value(n) for n in m.shape))
        least = op.multiply(op.astype(size, s.type.dtype), float(np.finfo(s.type.dtype).eps))
    else:
        least = float(rcond)
    used = op.greater(s, op.multiply(op.max(s), least))
    inverse = op.where(used, op.divide(1, op.where(used, s, 1)), 0)
    parts = op.matmul(op.conj(op.matrix_transpose(left)), y)
    scale = inverse if y.type.ndim == 1 else op.expand_dims(inverse, axis=1)
    x = op.matmul(op.conj(op.matrix_transpose(right)), op.multiply(parts, scale))
    residuals = op.sum(op.square(op.abs(op.subtract(y, op.matmul(m, x)))), axis=0)
    rank = op.sum(op.astype(used, np.int64))
    return LstsqResult(*map(Array, (x, residuals, rank, s)))


__all__ += ["einsum", "lstsq"]


def __dir__() -> list[str]:
    """What a prompt offers: the functions."""
    return sorted(__all__)
