"""Support functions of printed Numba programs, as Python text; integers come typed."""

import importlib.util

from lazyarr.graph import numeric

FUNCTIONS: dict[str, str] = {}
NEEDS: dict[str, tuple[str, ...]] = {
    "slice_length": ("slice_start",),
    "gemm": ("product", "absorb_sums"),
    "gemv": ("product_of_vector", "absorb_sums"),
    "solve": ("lu", "lu_solve"),
    "inverse": ("lu", "lu_solve"),
    "determinant": ("lu",),
}


def _define(name: str, text: str) -> None:
    FUNCTIONS[name] = text.strip("\n")


_define(
    "ifloordiv",
    """
def ifloordiv(a, b):
    return a // b if b != 0 else 0
""",
)

_define(
    "absorb_float",
    """
def absorb_float(g, d):
    p = g * d
    if p != p and (g == 0 or d == 0):
        return abs(g) if g == 0 else abs(d)
    return p
""",
)

_define(
    "slice_start",
    """
def slice_start(n, has_a, a, has_b, b, step):
    low = -1 if step < 0 else 0
    high = n - 1 if step < 0 else n
    if not has_a:
        return high if step < 0 else low
    if a < 0:
        a += n
    return min(max(a, low), high)
""",
)

_define(
    "slice_length",
    """
def slice_length(n, has_a, a, has_b, b, step):
    low = -1 if step < 0 else 0
    high = n - 1 if step < 0 else n
    start = slice_start(n, has_a, a, 0, 0, step)
    stop = low if step < 0 else high
    if has_b:
        if b < 0:
            b += n
        stop = min(max(b, low), high)
    if step < 0:
        return (start - stop - 1) // (-step) + 1 if stop < start else 0
    return (stop - start - 1) // step + 1 if start < stop else 0
""",
)

_define(
    "floordiv_int",
    """
def floordiv_int(a, b):
    if b == 0:
        return a - a
    if b + 1 == 0 and b < 0:
        return -a
    return a // b
""",
)

_define(
    "mod_int",
    """
def mod_int(a, b):
    if b == 0 or (b + 1 == 0 and b < 0):
        return a - a
    return a % b
""",
)

_define(
    "pow_int",
    """
def pow_int(x, n):
    one = x - x + (x == x)
    if n < 0:
        if x == 1:
            return one
        if x + 1 == 0:
            return -one if n & 1 else one
        return one - one
    out = one
    while n > 0:
        if n & 1:
            out = out * x
        x = x * x
        n = n >> 1
    return out
""",
)

_define(
    "shl_int",
    """
def shl_int(a, n):
    return a << n if 0 <= n < 64 else a - a
""",
)

_define(
    "shr_int",
    """
def shr_int(a, n):
    if 0 <= n < 64:
        return a >> n
    return a - a - (a < 0)
""",
)

_define(
    "pow_float",
    """
def pow_float(x, y):
    return x ** y
""",
)

_define(
    "mod_float",
    """
def mod_float(a, b):
    r = np.fmod(a, b)
    if r == 0:
        return np.copysign(r, b)
    if (r < 0) != (b < 0) and r == r:
        return r + b
    return r
""",
)

_define(
    "floordiv_float",
    """
def floordiv_float(a, b):
    if b == 0 or abs(a) == np.inf or abs(b) == np.inf or a != a or b != b:
        return np.floor(a / b)
    r = np.fmod(a, b)
    q = (a - r) / b
    if r != 0 and (r < 0) != (b < 0):
        q = q - 1
    if q == 0:
        return np.copysign(q, a / b)
    whole = np.floor(q)
    return whole + 1 if q - whole > 0.5 else whole
""",
)

_define(
    "digamma",
    f"""
def digamma(x):
    x = np.float64(x)
    if x != x or x == -np.inf:
        return np.nan
    if x == np.inf:
        return x
    if x == 0:
        return -np.copysign(np.inf, x)
    extra = 0.0
    if x < 0:
        if x == np.floor(x):
            return np.nan
        extra = -math.pi / math.tan(math.pi * np.fmod(x, 1.0))
        x = 1 - x
    if x >= 10:
        r = 1 / (x * x)
        tail = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (
            1 / 132 - r * 691 / 32760)))))
        return extra + (math.log(x) - 0.5 / x - tail)
    if x < 1:
        extra -= 1 / x
        x += 1
    shift = 0.0
    while x >= 2:
        x -= 1
        shift += 1 / x
    t = x - 1.5
    q = {" + t * (".join(map(repr, numeric.DIGAMMA)) + ")" * (len(numeric.DIGAMMA) - 1)}
    return ((x - {numeric.DIGAMMA_ROOT[0]!r}) - {numeric.DIGAMMA_ROOT[1]!r}) * q + shift + extra
""",
)

_define(
    "trigamma",
    """
def trigamma(x):
    x = np.float64(x)
    if x != x or x == -np.inf:
        return np.nan
    if x == np.inf:
        return 0.0
    extra = 0.0
    sign = 1.0
    if x <= 0:
        if x == np.floor(x):
            return np.inf
        ratio = math.pi / math.sin(math.pi * np.fmod(x, 1.0))
        extra = ratio * ratio
        sign = -1.0
        x = 1 - x
    shift = 0.0
    while x < 15:
        shift += 1 / (x * x)
        x += 1
    r = 1 / (x * x)
    tail = r * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (
        5 / 66 - r * 691 / 2730)))))
    return extra + sign * (shift + 1 / x + 0.5 * r + tail / x)
""",
)

_define(
    "absorb_sums",
    """
def absorb_sums(out, a, b, k, at, bt):
    m, n = out.shape
    bad = False
    for i in range(m):
        for j in range(n):
            bad |= out[i, j] != out[i, j]
    if not bad:
        return
    for i in range(m):
        for j in range(n):
            if out[i, j] != out[i, j]:
                out[i, j] = 0
                for p in range(k):
                    x = a[p * m + i] if at else a[i * k + p]
                    y = b[j * k + p] if bt else b[p * n + j]
                    if x != 0 and y != 0:
                        out[i, j] += x * y
""",
)

_define(
    "gemm",
    """
def gemm(out, a, b, batch, m, n, k, at, bt, absorb):
    for c in range(batch):
        x = a[c * m * k : (c + 1) * m * k]
        y = b[c * k * n : (c + 1) * k * n]
        o = out[c * m * n : (c + 1) * m * n].reshape((m, n))
        if at and bt:
            product(o, x.reshape((k, m)).T, y.reshape((n, k)).T)
        elif at:
            product(o, x.reshape((k, m)).T, y.reshape((k, n)))
        elif bt:
            product(o, x.reshape((m, k)), y.reshape((n, k)).T)
        else:
            product(o, x.reshape((m, k)), y.reshape((k, n)))
        if absorb:
            absorb_sums(o, x, y, k, at, bt)
    return 0
""",
)

_define(
    "gemv",
    """
def gemv(out, a, x, m, k, at, absorb):
    if at:
        product_of_vector(out[:m], a.reshape((k, m)).T, x[:k])
    else:
        product_of_vector(out[:m], a.reshape((m, k)), x[:k])
    if absorb:
        absorb_sums(out[:m].reshape((m, 1)), a, x, k, at, 0)
    return 0
""",
)

# Numba's own products call the BLAS of SciPy, where there is one.
_WITH_BLAS = """
    if a.size * b.size > 1000 * a.shape[1] and a.size > 0:
        np.dot(a, b, out)
        return"""
_BLAS = _WITH_BLAS if importlib.util.find_spec("scipy") else ""

_define(
    "product",
    f"""
def product(out, a, b):{_BLAS}
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for p in range(a.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += a[i, p] * b[p, j]
""",
)

_define(
    "product_of_vector",
    f"""
def product_of_vector(out, a, b):{_BLAS}
    for i in range(out.shape[0]):
        out[i] = 0
        for p in range(a.shape[1]):
            out[i] += a[i, p] * b[p]
""",
)

_define(
    "lu",
    """
def lu(a, pivot):
    n = a.shape[0]
    for s in range(n):
        best = s
        for i in range(s + 1, n):
            if abs(a[i, s]) > abs(a[best, s]):
                best = i
        pivot[s] = best
        if best != s:
            for j in range(n):
                t = a[s, j]
                a[s, j] = a[best, j]
                a[best, j] = t
        if a[s, s] == 0:
            continue
        for i in range(s + 1, n):
            a[i, s] /= a[s, s]
            for j in range(s + 1, n):
                a[i, j] -= a[i, s] * a[s, j]
    for i in range(n):
        if a[i, i] == 0:
            return 1
    return 0
""",
)

_define(
    "lu_solve",
    """
def lu_solve(a, pivot, x):
    n, k = x.shape
    for s in range(n):
        for j in range(k):
            t = x[s, j]
            x[s, j] = x[pivot[s], j]
            x[pivot[s], j] = t
    for i in range(n):
        for p in range(i):
            for j in range(k):
                x[i, j] -= a[i, p] * x[p, j]
    for i in range(n - 1, -1, -1):
        for p in range(i + 1, n):
            for j in range(k):
                x[i, j] -= a[i, p] * x[p, j]
        for j in range(k):
            x[i, j] /= a[i, i]
""",
)

_define(
    "solve",
    """
def solve(out, a, b, batch, n, k):
    pivot = np.empty(n, np.int64)
    for m in range(batch):
        factors = a[m * n * n : (m + 1) * n * n].copy().reshape((n, n))
        x = out[m * n * k : (m + 1) * n * k].reshape((n, k))
        x[:] = b[m * n * k : (m + 1) * n * k].reshape((n, k))
        if lu(factors, pivot):
            return 1
        lu_solve(factors, pivot, x)
    return 0
""",
)

_define(
    "inverse",
    """
def inverse(out, a, batch, n):
    pivot = np.empty(n, np.int64)
    for m in range(batch):
        factors = a[m * n * n : (m + 1) * n * n].copy().reshape((n, n))
        x = out[m * n * n : (m + 1) * n * n].reshape((n, n))
        for i in range(n):
            for j in range(n):
                x[i, j] = 1 if i == j else 0
        if lu(factors, pivot):
            return 1
        lu_solve(factors, pivot, x)
    return 0
""",
)

_define(
    "determinant",
    """
def determinant(out, a, batch, n):
    pivot = np.empty(n, np.int64)
    for m in range(batch):
        factors = a[m * n * n : (m + 1) * n * n].copy().reshape((n, n))
        lu(factors, pivot)
        out[m] = 1
        for i in range(n):
            out[m] *= factors[i, i] if pivot[i] == i else -factors[i, i]
        if out[m] == 0:
            out[m] = 0
    return 0
""",
)
