"""Entry functions in C for the tests of the launchers, and short names for types."""

import ctypes

import numpy as np

from lazyarr.backends.c.compiler import load
from lazyarr.graph.types import TensorType

SOURCE = r"""
typedef long long i64;
typedef double *restrict vec;
i64 add_one(void **b, const i64 *d, void *a, void **f) {
    vec x = b[0], y = b[1];
    for (i64 i = 0; i < d[0]; i++) y[i] = x[i] + 1;
    return 0;
}
i64 outer(void **b, const i64 *d, void *a, void **f) {
    vec x = b[0], y = b[1], z = b[2];
    for (i64 i = 0; i < d[0]; i++) for (i64 j = 0; j < d[1]; j++) z[i * d[1] + j] = x[i] * y[j];
    return 0;
}
i64 scalars(void **b, const i64 *d, void *a, void **f) {
    *(double *)b[4] = *(double *)b[0] + *(float *)b[1] + *(i64 *)b[2] + *(char *)b[3];
    return 0;
}
i64 code(void **b, const i64 *d, void *a, void **f) { return *(i64 *)b[0]; }
i64 arena_size(const i64 *d) { return d[0] * 8; }
i64 arena(void **b, const i64 *d, void *a, void **f) {
    vec x = b[0], y = b[1], t = a;
    if ((i64)a % 64 || (i64)y % 64) return 1;
    for (i64 i = 0; i < d[0]; i++) t[i] = x[i] * 2;
    for (i64 i = 0; i < d[0]; i++) y[i] = t[d[0] - 1 - i];
    return 0;
}
i64 table(void **b, const i64 *d, void *a, void **f) {
    *(double *)b[1] = ((double (*)(double))f[0])(*(double *)b[0]);
    return 0;
}
i64 nothing(void **b, const i64 *d, void *a, void **f) { return 0; }
i64 spin(void **b, const i64 *d, void *a, void **f) {
    volatile double s = 0;
    for (i64 i = 0; i < *(i64 *)b[0]; i++) s += 1;
    *(double *)b[1] = s;
    return 0;
}
i64 many(void **b, const i64 *d, void *a, void **f) {
    for (int k = 0; k < 100; k++) *(double *)b[100 + k] = *(double *)b[k] + k;
    return 0;
}
double twice(double x) { return 2 * x; }
"""
F8, F4, I8, BOOL = (np.dtype(code) for code in ("f8", "f4", "i8", "?"))


def address(name: str) -> int:
    return ctypes.cast(getattr(load(SOURCE), name), ctypes.c_void_p).value


def t(shape: tuple = (), dtype: np.dtype = F8) -> TensorType:
    return TensorType(dtype, shape)


def fail(code: int, args: tuple) -> None:
    raise RuntimeError(f"code {code} for {len(args)} arguments")
