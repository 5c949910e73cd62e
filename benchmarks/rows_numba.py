"""The work of rows.py as Numba loops written by hand; each returns a fresh result.

`T` is the type of an element: a plain `0.0` or `2` would compute in float64.
"""

import functools
import types
from collections.abc import Callable
from math import exp, log, log1p, sqrt, tanh

import numpy as np


def transcendental(x, m, s, a):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    out, c = np.empty_like(x), T(1) / (T(2) * s * s)
    for i in range(x.size):
        d = x[i] - m
        out[i] = exp(-(d * d) * c) * a + log1p(abs(x[i]))
    return out


def memory(x, y):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = (x[i] * T(2) + T(1)) * (x[i] - T(3)) + y[i] * T(0.5)
    return out


def logpdf_sum(x, mu, s):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    total, inv, c = T(0), T(1) / s, log(s) + T(0.91893853320467274178)
    for i in range(x.size):
        z = (x[i] - mu) * inv
        total += T(-0.5) * z * z - c
    return total


def logsumexp_last(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    out = np.empty(n, x.dtype)
    for i in range(n):
        m = x[i, 0]
        for j in range(k):
            m = max(m, x[i, j])
        s = T(0)
        for j in range(k):
            s += exp(x[i, j] - m)
        out[i] = m + log(s)
    return out


def softmax_last(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    out = np.empty_like(x)
    for i in range(n):
        m = x[i, 0]
        for j in range(k):
            m = max(m, x[i, j])
        s = T(0)
        for j in range(k):
            out[i, j] = exp(x[i, j] - m)
            s += out[i, j]
        inv = T(1) / s
        for j in range(k):
            out[i, j] *= inv
    return out


def log_softmax_last(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    out = np.empty_like(x)
    for i in range(n):
        m = x[i, 0]
        for j in range(k):
            m = max(m, x[i, j])
        s = T(0)
        for j in range(k):
            s += exp(x[i, j] - m)
        shift = m + log(s)
        for j in range(k):
            out[i, j] = x[i, j] - shift
    return out


def variance_last(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    out = np.empty(n, x.dtype)
    for i in range(n):
        m = T(0)
        for j in range(k):
            m += x[i, j]
        m /= T(k)
        v = T(0)
        for j in range(k):
            d = x[i, j] - m
            v += d * d
        out[i] = v / T(k)
    return out


def normalise_last(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    out = np.empty_like(x)
    for i in range(n):
        s = T(0)
        for j in range(k):
            s += x[i, j] * x[i, j]
        inv = T(1) / sqrt(s)
        for j in range(k):
            out[i, j] = x[i, j] * inv
    return out


# Along the first axis rows are read in order; what is gathered is a row that stays in the cache.


def column_max(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    m = x[0].copy()
    for i in range(n):
        for j in range(k):
            m[j] = max(m[j], x[i, j])
    return m


def logsumexp_first(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    m = column_max(x)
    out = np.zeros(k, x.dtype)
    for i in range(n):
        for j in range(k):
            out[j] += exp(x[i, j] - m[j])
    for j in range(k):
        out[j] = m[j] + log(out[j])
    return out


def softmax_first(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    m, s = column_max(x), np.zeros(k, x.dtype)
    out = np.empty_like(x)
    for i in range(n):
        for j in range(k):
            out[i, j] = exp(x[i, j] - m[j])
            s[j] += out[i, j]
    for j in range(k):
        s[j] = T(1) / s[j]
    for i in range(n):
        for j in range(k):
            out[i, j] *= s[j]
    return out


def log_softmax_first(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    m, s = column_max(x), np.zeros(k, x.dtype)
    out = np.empty_like(x)
    for i in range(n):
        for j in range(k):
            s[j] += exp(x[i, j] - m[j])
    for j in range(k):
        m[j] += log(s[j])
    for i in range(n):
        for j in range(k):
            out[i, j] = x[i, j] - m[j]
    return out


def variance_first(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    m, v = np.zeros(k, x.dtype), np.zeros(k, x.dtype)
    for i in range(n):
        for j in range(k):
            m[j] += x[i, j]
    for j in range(k):
        m[j] /= T(n)
    for i in range(n):
        for j in range(k):
            d = x[i, j] - m[j]
            v[j] += d * d
    for j in range(k):
        v[j] /= T(n)
    return v


def normalise_first(x):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    s = np.zeros(k, x.dtype)
    out = np.empty_like(x)
    for i in range(n):
        for j in range(k):
            s[j] += x[i, j] * x[i, j]
    for j in range(k):
        s[j] = T(1) / sqrt(s[j])
    for i in range(n):
        for j in range(k):
            out[i, j] = x[i, j] * s[j]
    return out


def pairwise(x, y):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    out = np.empty((x.shape[0], y.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = T(0)
            for k in range(x.shape[1]):
                d = x[i, k] - y[j, k]
                s += d * d
            out[i, j] = s
    return out


def with_transpose(a, b, v):  # type: ignore[no-untyped-def]
    out = np.zeros_like(v)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j] += (a[i, j] + b[j, i]) * v[j]
    return out


def logistic(w, x, y):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    n, k = x.shape
    grad, total = np.zeros_like(w), T(0)
    for i in range(n):
        t = T(0)
        for j in range(k):
            t += x[i, j] * w[j]
        e = exp(-abs(t))
        total += log1p(e) + max(t, T(0)) - y[i] * t
        r = (T(1) if t >= T(0) else e) / (T(1) + e) - y[i]
        for j in range(k):
            grad[j] += r * x[i, j]
    return total, grad


def perceptron(w, v, x, y):  # type: ignore[no-untyped-def]
    T = x.dtype.type
    h, n, k = np.dot(x, w), y.size, v.size
    value, grad_v = T(0), np.zeros_like(v)
    for i in range(n):
        r = -y[i]
        for j in range(k):
            h[i, j] = tanh(h[i, j])
            r += h[i, j] * v[j]
        value += r * r
        g = T(2) * r / T(n)
        for j in range(k):
            grad_v[j] += g * h[i, j]
            h[i, j] = g * v[j] * (T(1) - h[i, j] * h[i, j])
    return value / T(n), np.dot(x.T, h), grad_v


def gaussian_process(q, d, y, eye):  # type: ignore[no-untyped-def]
    n, T = y.size, y.dtype.type
    scale, size, noise = exp(T(-2) * q[0]), exp(T(2) * q[1]), exp(T(2) * q[2])
    smooth = np.empty_like(d)
    for i in range(n):
        for j in range(n):
            smooth[i, j] = size * exp(T(-0.5) * scale * d[i, j])
    k = smooth.copy()
    for i in range(n):
        k[i, i] += noise
    factor, inverse = np.linalg.cholesky(k), np.linalg.inv(k)
    weights = np.dot(inverse, y)
    value, grad = T(-0.5) * np.dot(y, weights), np.zeros_like(q)
    for i in range(n):
        value -= log(factor[i, i])
        for j in range(n):
            slope = T(0.5) * (weights[i] * weights[j] - inverse[i, j])
            grad[0] += slope * smooth[i, j] * d[i, j]
            grad[1] += slope * smooth[i, j]
        grad[2] += T(0.5) * (weights[i] * weights[i] - inverse[i, i])
    grad[0] *= scale
    grad[1] *= T(2)
    grad[2] *= T(2) * noise
    return value, grad


FLAGS = {"numba": ("contract",), "numba, sums reordered": ("contract", "reassoc")}
"""Names of the two ways to compile a loop; what counts is the faster."""

PARTS = {"column_max": column_max}
"""What loops call, compiled with each of them."""


@functools.cache
def loop(name: str, fastmath: tuple[str, ...]) -> Callable | None:
    """The compiled loop of a kernel of rows.c, None without Numba or without such a loop."""
    try:
        import numba
    except ImportError:
        return None
    plain = globals().get(name)
    if plain is None:
        return None
    jit = numba.njit(error_model="numpy", fastmath=set(fastmath))
    scope = {**globals(), **{k: jit(part) for k, part in PARTS.items()}}
    return jit(types.FunctionType(plain.__code__, scope, name))
