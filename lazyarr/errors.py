"""The one family of errors.

Every message says what went wrong, where the value was made, and what to write instead. Each class
also inherits the built-in or NumPy class that a caller would catch.
"""

import numpy as np


class LazyArrError(Exception):
    """Base of every error that lazyarr raises on purpose."""


class ShapeError(LazyArrError, ValueError):
    """Shapes or sizes that do not fit together."""


class DTypeError(LazyArrError, TypeError):
    """Dtypes that an operation does not take, or that do not promote."""


class DimError(LazyArrError, ValueError):
    """Unknown, duplicate or missing dimension names."""


class CoordError(LazyArrError, ValueError):
    """Coordinate labels that differ or cannot be used."""


class LabelError(LazyArrError, KeyError):
    """A label that its coordinate does not hold."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class BoundsError(LazyArrError, IndexError):
    """An index outside its axis."""


class AxisError(LazyArrError, ValueError, IndexError):
    """An axis outside the dimensions of an array."""


class OverflowValueError(LazyArrError, OverflowError):
    """A Python number that the array's dtype cannot hold."""


class ConcretizationError(LazyArrError, ValueError):
    """A value was asked of an expression that depends on a symbol."""


class BackendError(LazyArrError, RuntimeError):
    """A backend is unknown, missing, or its compiler failed."""


class GradientError(LazyArrError, ValueError):
    """A derivative that does not exist or was asked of the wrong thing."""


class ArgumentError(LazyArrError, TypeError):
    """A call with missing, unknown or wrong arguments."""


class ChoiceError(LazyArrError, ValueError):
    """An argument that is none of the values there are to choose from."""


class MissingDataError(LazyArrError, ValueError):
    """Only NaN where a reduction that skips NaN needs an element."""


class GraphError(LazyArrError, ValueError):
    """A graph that breaks an invariant, or an input that is not part of it."""


class LinAlgError(LazyArrError, np.linalg.LinAlgError):
    """A matrix that a decomposition or solver cannot take."""


def near_match(word: str, known: object) -> str:
    """Return `` Did you mean 'x'?`` for the closest known name, or nothing.

    >>> near_match("ctiy", ["city", "time"])
    " Did you mean 'city'?"
    """
    from_close = _closest(str(word), [str(k) for k in known])
    return f" Did you mean {from_close!r}?" if from_close else ""


def _closest(word: str, known: list[str]) -> str | None:
    import difflib  # only when an error is being written

    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return found[0] if found else None
