"""lazyarr: a lazy array library with named dimensions.

The namespace of the Array API standard, recorded into a graph that C, Numba, JAX or Torch run, with
xarray's dimension names and coordinates (`XTensor`) and derivatives of all of it.

>>> import lazyarr as xp
>>> x = xp.symbol("x", shape=(3,))
>>> f = xp.function([x], xp.value_and_grad(xp.sum(xp.exp(x)), x), backend="interpret")
>>> f([0.0, 0.0, 0.0])
(array(3.), array([1., 1., 1.]))
"""

import math

import lazyarr.graph.ops  # noqa: F401  (declares the catalogue)
from lazyarr import errors
from lazyarr.backends.base import backend_names, get_backend, register_backend
from lazyarr.config import get_options, set_options
from lazyarr.graph.dtypes import (
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from lazyarr.graph.dtypes import bool_ as bool  # noqa: A004 - the standard's name
from lazyarr.namespace import functions, linalg, special
from lazyarr.namespace.array import Array
from lazyarr.namespace.control import scan
from lazyarr.namespace.derivatives import grad, jvp, stop_gradient, value_and_grad, vjp
from lazyarr.namespace.functions import (
    array,
    asarray,
    broadcast_arrays,
    can_cast,
    finfo,
    from_dlpack,
    iinfo,
    isdtype,
    result_type,
)
from lazyarr.namespace.info import __array_namespace_info__
from lazyarr.namespace.transforms import compute, function, jit, symbol
from lazyarr.namespace.xtensor import XTensor, from_xarray

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

_FUNCTIONS = (
    functions.ELEMENTWISE
    + functions.STATISTICAL
    + functions.MANIPULATION
    + functions.CREATION
    + functions.OTHERS
)
globals().update({name: functions.function_of(name) for name in _FUNCTIONS})

__all__ = sorted(
    [
        *_FUNCTIONS,
        "Array", "XTensor", "__array_api_version__", "__array_namespace_info__", "__version__",
        "array", "asarray", "backend_names", "bool", "broadcast_arrays", "can_cast", "complex128",
        "complex64", "compute", "e", "errors", "finfo", "float32", "float64", "from_dlpack",
        "from_xarray", "function", "get_backend", "get_options", "grad", "iinfo", "inf", "int16",
        "int32", "int64", "int8", "isdtype", "jit", "jvp", "linalg", "nan", "newaxis", "pi",
        "register_backend", "result_type", "scan", "set_options", "special", "stop_gradient",
        "symbol", "uint16", "uint32", "uint64", "uint8", "value_and_grad", "vjp",
    ]
)  # fmt: skip
