"""The standard's dtypes, their promotion, and the weak Python scalars.

Dtypes are `numpy.dtype` instances. Promotion follows the standard's table; mixed integer and
floating kinds, which the standard leaves open, follow NumPy. Source: Array API standard, type
promotion.
"""

import numpy as np

from lazyarr.errors import DTypeError, OverflowValueError

bool_ = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = np.dtype("float32"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
REAL = (float32, float64)
COMPLEX = (complex64, complex128)
ALL = (bool_, *SIGNED, *UNSIGNED, *REAL, *COMPLEX)

CATEGORIES: dict[str, frozenset[np.dtype]] = {
    "all": frozenset(ALL),
    "boolean": frozenset([bool_]),
    "integer": frozenset(SIGNED + UNSIGNED),
    "integer or boolean": frozenset((bool_, *SIGNED, *UNSIGNED)),
    "real floating-point": frozenset(REAL),
    "complex floating-point": frozenset(COMPLEX),
    "floating-point": frozenset(REAL + COMPLEX),
    "real numeric": frozenset(SIGNED + UNSIGNED + REAL),
    "numeric": frozenset(SIGNED + UNSIGNED + REAL + COMPLEX),
    "real": frozenset((bool_, *SIGNED, *UNSIGNED, *REAL)),
}

SCALARS = (bool, int, float, complex)  # weak Python scalars, in rising kind
DEFAULTS = {bool: bool_, int: int64, float: float64, complex: complex128}

_PROMOTE = {(a, b): np.result_type(a, b) for a in ALL for b in ALL}
_WEAK = {
    (a, kind): np.result_type(a, example)
    for a in ALL
    for kind, example in ((bool, False), (int, 0), (float, 0.0), (complex, 0j))
}


def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the dtype that holds both.

    >>> promote(int8, uint8), promote(float32, int32)
    (dtype('int16'), dtype('float64'))
    """
    try:
        return _PROMOTE[a, b]
    except KeyError:
        raise DTypeError(f"dtypes {a} and {b} do not promote; cast one with astype.") from None


def weak(dtype: np.dtype, kind: type) -> np.dtype:
    """Return the dtype of an array combined with a Python scalar of a kind.

    >>> weak(float32, float), weak(int8, float)
    (dtype('float32'), dtype('float64'))
    """
    return _WEAK[dtype, kind]


def own(dtype: np.dtype) -> np.dtype:
    """Return NumPy's own instance of a dtype: pickle makes others, which identity tells apart.

    >>> own(np.dtype("f8", copy=True)) is np.dtype("float64")
    True
    """
    found = np.dtype(dtype.type)
    return found if found == dtype else dtype


def as_dtype(dtype: object) -> np.dtype:
    """Return the dtype object for a dtype, its name or a NumPy scalar type; error for others."""
    try:
        found = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        found = None
    if found is None or dtype is None or found not in CATEGORIES["all"]:
        raise DTypeError(
            f"{dtype!r} is not a dtype of the standard; use one of {', '.join(map(str, ALL))}."
        )
    return found


def floating(dtype: np.dtype) -> np.dtype:
    """Return the dtype itself when it is floating, float64 otherwise."""
    return dtype if dtype.kind in "fc" else float64


def real_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the real part.

    >>> real_of(complex64)
    dtype('float32')
    """
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums and products of a dtype accumulate."""
    if dtype.kind in "bi":
        return int64
    return uint64 if dtype.kind == "u" else dtype


def check_fits(value: object, dtype: np.dtype) -> None:
    """Raise OverflowValueError when a Python integer does not fit an integer dtype."""
    if dtype.kind in "iu" and type(value) is int:
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise OverflowValueError(
                f"the Python integer {value} does not fit {dtype} ({info.min} to {info.max}); "
                "cast the array to a wider dtype with astype first."
            )
