"""`lazyarr.linalg`: linear algebra. XTensors take `dims=` where a matrix is meant."""

from collections import namedtuple
from collections.abc import Callable

from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import OPS
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


__all__ += ["einsum"]
