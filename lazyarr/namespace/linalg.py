"""`lazyarr.linalg`: linear algebra. XTensors take `dims=` where a matrix is meant."""

from lazyarr.namespace import functions, xtensor_linalg
from lazyarr.namespace.xtensor import XTensor

__all__ = list(functions.LINALG)

globals().update({name: functions.function_of(name) for name in functions.LINALG})


def _by_operand(name: str):
    """Dispatch to the named form when the first operand is an XTensor."""
    positional, named = globals()[name], getattr(xtensor_linalg, name)

    def call(x, /, *args, **kwargs):
        form = named if isinstance(x, XTensor) else positional
        return form(x, *args, **kwargs)

    call.__name__, call.__doc__ = name, positional.__doc__
    call.__signature__, call.__module__ = positional.__signature__, __name__
    return call


globals().update(
    {name: _by_operand(name) for name in ("cholesky", "solve_triangular", "diagonal")}
)
