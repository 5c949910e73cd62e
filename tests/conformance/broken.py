"""Namespaces that break the standard in one place each, made from NumPy's and from lazyarr's."""

import time
from types import SimpleNamespace

import numpy as np

import lazyarr
from conformance.libraries import Library


def numpy_with(**changes: object) -> Library:
    """NumPy's namespace with some names replaced; None removes one."""
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    names["__array_namespace_info__"] = np.__array_namespace_info__
    return Library("broken", _namespace(names, changes))


def lazyarr_with(**changes: object) -> Library:
    """lazyarr's namespace on the interpreter with some names replaced."""
    names = {name: getattr(lazyarr, name) for name in dir(lazyarr) if not name.startswith("__")}
    names["__array_namespace_info__"] = lazyarr.__array_namespace_info__
    return Library("broken", _namespace(names, changes))


def _namespace(names: dict, changes: dict) -> SimpleNamespace:
    for name, value in changes.items():
        if value is None:
            del names[name]
        else:
            names[name] = value
    return SimpleNamespace(**names)


def wrong_dtype(x, /, *, axis=None, dtype=None, keepdims=False):
    """A sum that keeps small integers small."""
    out = dtype or (x.dtype if x.dtype.kind in "iu" else None)
    return np.sum(x, axis=axis, dtype=out, keepdims=keepdims)


def wrong_value(x, /):
    """A sine with a small error."""
    return np.sin(x) * (1 + 1e-3)


def wrong_shape(x, /, *, axis=None, keepdims=False):
    """A maximum that forgets keepdims."""
    return np.max(x, axis=axis)


def wrong_signature(arrays, axis):
    """A concat without its default."""
    return np.concatenate(arrays, axis)


def wrong_special(x1, x2, /):
    """A hypot that lets NaN win over infinity."""
    with np.errstate(all="ignore"):
        return np.where(np.isnan(x1) | np.isnan(x2), np.hypot(x1 + x2, 0), np.hypot(x1, x2))


def slow(x, /, *, axis=None):
    """A flip that never comes back."""
    time.sleep(60)


def computes_while_recording(x, /):
    """A cosine that looks at its argument."""
    float(lazyarr.sum(lazyarr.real(lazyarr.asarray(x))))
    return lazyarr.cos(x)


def no_error(x, /, axis=0):
    """An expand_dims that takes any axis."""
    return lazyarr.expand_dims(x, axis=max(-x.ndim - 1, min(axis, x.ndim)))


def shares(obj, /, *, dtype=None, device=None, copy=None):
    """An asarray that shares what it should copy."""
    if isinstance(obj, np.ndarray):
        return lazyarr.asarray(obj, dtype=dtype, copy=False if dtype is None else None)
    return lazyarr.asarray(obj, dtype=dtype, copy=copy)
