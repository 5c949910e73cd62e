"""lazyarr: a lazy array library with named dimensions.

The namespace of the Array API standard, recorded into a graph that C, Numba, JAX or Torch run, with
xarray's dimension names and coordinates (`XTensor`) and derivatives of all of it.

>>> import lazyarr as xp
>>> x = xp.symbol("x", shape=(3,))
>>> f = xp.function([x], xp.value_and_grad(xp.sum(xp.exp(x)), x), backend="interpret")
>>> f([0.0, 0.0, 0.0])
(array(3.), array([1., 1., 1.]))

Importing costs little more than importing NumPy: each name loads its module when first used.
"""

import importlib
import math

from lazyarr import errors
from lazyarr.config import get_options, set_options
from lazyarr.graph.dtypes import bool_ as bool  # noqa: A004 - the standard's name
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

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

# Where each public name is defined; the functions of the standard are in `namespace/standard.py`.
_HOME = {
    "lazyarr.backends.base": ("backend_names", "get_backend", "register_backend"),
    "lazyarr.backends.implicit": ("explain_forces", "no_implicit_eval"),
    "lazyarr.backends.stats": ("stats",),
    "lazyarr.backends.tiers": ("wait_for_compiles",),
    "lazyarr.namespace.array": ("Array",),
    "lazyarr.namespace.compiled": ("function",),
    "lazyarr.namespace.control": (
        "associative_scan",
        "fori_loop",
        "lagged",
        "map",
        "scan",
        "while_loop",
        "window",
    ),
    "lazyarr.namespace.control_branch": ("cond", "switch"),
    "lazyarr.namespace.custom": ("custom_jvp", "custom_vjp"),
    "lazyarr.namespace.derivatives": (
        "grad",
        "jvp",
        "linearize",
        "stop_gradient",
        "value_and_grad",
        "vjp",
    ),
    "lazyarr.namespace.foreign": ("wrap_jax", "wrap_torch"),
    "lazyarr.namespace.foreign_numba": ("wrap_numba",),
    "lazyarr.namespace.foreign_rules": ("wrap_numpy",),
    "lazyarr.namespace.foreign_c": ("wrap_c",),
    "lazyarr.namespace.foreign_composite": ("composite",),
    "lazyarr.namespace.info": ("__array_namespace_info__",),
    "lazyarr.namespace.numpy_names": (
        "cross",
        "cumprod",
        "cumsum",
        "einsum",
        "gradient",
        "lib",
        "median",
        "nanargmax",
        "nanargmin",
        "nancumprod",
        "nancumsum",
        "nanmax",
        "nanmean",
        "nanmedian",
        "nanmin",
        "nanprod",
        "nanquantile",
        "nanstd",
        "nansum",
        "nanvar",
        "pad",
        "quantile",
        "transpose",
    ),
    "lazyarr.namespace.state": ("shared",),
    "lazyarr.namespace.transforms": ("compute", "jit", "symbol"),
    "lazyarr.namespace.vectorize": ("hessian", "hvp", "jacobian", "vectorize"),
    "lazyarr.namespace.xtensor": ("XTensor", "dot", "from_xarray"),
    "lazyarr.namespace.xtensor_dataset": ("XDataset",),
    "lazyarr.namespace.xtensor_apply": ("apply_ufunc",),
    "lazyarr.xtensor.coords": ("Coords",),
    "lazyarr.namespace.xtensor_functions": (
        "align",
        "broadcast",
        "corr",
        "cov",
        "polyval",
    ),
}
_MODULES = {name: f"lazyarr.namespace.{name}" for name in ("fft", "linalg", "random", "special")}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
_STANDARD = "lazyarr.namespace.standard"


def __getattr__(name: str):
    if name.startswith("__") and name not in _WHERE:
        raise AttributeError(f"module 'lazyarr' has no attribute {name!r}")
    if name in _MODULES:
        found = importlib.import_module(_MODULES[name])
    elif name in _WHERE:
        found = getattr(importlib.import_module(_WHERE[name]), name)
    else:
        standard = importlib.import_module(_STANDARD)
        if name not in standard.__all__:
            hint = errors.near_match(name, __dir__())
            raise AttributeError(f"module 'lazyarr' has no attribute {name!r}.{hint}")
        found = getattr(standard, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    standard = importlib.import_module(_STANDARD).__all__
    return sorted({*__all__, *standard})


__all__ = [
    "__array_api_version__", "__version__", "bool", "complex128", "complex64", "e", "errors",
    "float32", "float64", "get_options", "inf", "int16", "int32", "int64", "int8", "nan", "newaxis",
    "pi", "set_options", "uint16", "uint32", "uint64", "uint8", *_MODULES, *_WHERE,
]  # fmt: skip
