"""The work of rows.py as Numba loops written by hand; each returns a fresh result."""

import functools
from collections.abc import Callable
from math import exp, log, log1p, sqrt

import numpy as np


def transcendental(x, m, s, a):  # type: ignore[no-untyped-def]
    out, c = np.empty_like(x), 1 / (2 * s * s)
    for i in range(x.size):
        d = x[i] - m
        out[i] = exp(-(d * d) * c) * a + log1p(abs(x[i]))
    return out


def memory(x, y):  # type: ignore[no-untyped-def]
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = (x[i] * 2 + 1) * (x[i] - 3) + y[i] * 0.5
    return out


def logpdf_sum(x, mu, s):  # type: ignore[no-untyped-def]
    total, inv, c = 0.0, 1 / s, log(s) + 0.91893853320467274178
    for i in range(x.size):
        z = (x[i] - mu) * inv
        total += -0.5 * z * z - c
    return total


def logsumexp_last(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    out = np.empty(n, x.dtype)
    for i in range(n):
        m = x[i, 0]
        for j in range(k):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(k):
            s += exp(x[i, j] - m)
        out[i] = m + log(s)
    return out


def softmax_last(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    out = np.empty_like(x)
    for i in range(n):
        m = x[i, 0]
        for j in range(k):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(k):
            out[i, j] = exp(x[i, j] - m)
            s += out[i, j]
        for j in range(k):
            out[i, j] /= s
    return out


def variance_last(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    out = np.empty(n, x.dtype)
    for i in range(n):
        m = 0.0
        for j in range(k):
            m += x[i, j]
        m /= k
        v = 0.0
        for j in range(k):
            v += (x[i, j] - m) ** 2
        out[i] = v / k
    return out


def normalise_last(x):  # type: ignore[no-untyped-def]
    n, k = x.shape
    out = np.empty_like(x)
    for i in range(n):
        s = 0.0
        for j in range(k):
            s += x[i, j] * x[i, j]
        inv = 1 / sqrt(s)
        for j in range(k):
            out[i, j] = x[i, j] * inv
    return out


def pairwise(x, y):  # type: ignore[no-untyped-def]
    out = np.empty((x.shape[0], y.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (x[i, k] - y[j, k]) ** 2
            out[i, j] = s
    return out


def with_transpose(a, b, v):  # type: ignore[no-untyped-def]
    out = np.zeros_like(v)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j] += (a[i, j] + b[j, i]) * v[j]
    return out


@functools.cache
def loop(name: str) -> Callable | None:
    """The compiled loop of a kernel of rows.c, None without Numba or without such a loop."""
    try:
        import numba
    except ImportError:
        return None
    plain = globals().get(name)
    sums = {"reassoc", "contract"} if name not in ("transcendental", "memory") else {"contract"}
    return plain and numba.njit(plain, error_model="numpy", fastmath=sums)
