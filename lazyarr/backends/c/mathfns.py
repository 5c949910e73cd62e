"""Support functions of printed C programs: what neither C nor its math library has.

Every entry is a template over the C type `T`, its unsigned partner `U`, a suffix `S` for names and
the literal suffix `F` of libm ("" or "f"). A program holds only those that it uses, with what they
need.
"""

FUNCTIONS: dict[str, str] = {}
NEEDS: dict[str, tuple[str, ...]] = {}


def _define(name: str, text: str, needs: tuple[str, ...] = ()) -> None:
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


_define(
    "ifloordiv",
    """
static inline int64_t ifloordiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}""",
)

_define(
    "slice_start",
    """
static inline int64_t slice_start(int64_t n, int64_t has_a, int64_t a, int64_t has_b, int64_t b,
                                  int64_t step) {
  int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
  if (!has_a) return step < 0 ? high : low;
  if (a < 0) a += n;
  return a < low ? low : a > high ? high : a;
}""",
)

_define(
    "slice_length",
    """
static inline int64_t slice_length(int64_t n, int64_t has_a, int64_t a, int64_t has_b, int64_t b,
                                   int64_t step) {
  int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
  int64_t start = slice_start(n, has_a, a, 0, 0, step), stop = step < 0 ? low : high;
  if (has_b) {
    if (b < 0) b += n;
    stop = b < low ? low : b > high ? high : b;
  }
  if (step < 0) return stop < start ? (start - stop - 1) / (-step) + 1 : 0;
  return start < stop ? (stop - start - 1) / step + 1 : 0;
}""",
    ("slice_start",),
)

_define(
    "absorb_float",
    """
static inline T absorb_S(T g, T d) {
  T p = g * d;
  if (__builtin_expect(p != p, 0)) {
    if (g == 0 || d == 0) p = 0;
  }
  return p;
}""",
)

# -- integers -------------------------------------------------------------------------------------

_define(
    "floordiv_int",
    """
static inline T floordiv_S(T a, T b) {
  if (b == 0) return 0;
  if ((T)-1 < 0 && b == (T)-1) return (T)(0 - (U)a);
  T q = (T)(a / b);
  return (T)(q - ((a % b != 0) & ((a < 0) != (b < 0))));
}""",
)

_define(
    "mod_int",
    """
static inline T mod_S(T a, T b) {
  if (b == 0 || ((T)-1 < 0 && b == (T)-1)) return 0;
  T r = (T)(a % b);
  return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}""",
)

_define(
    "pow_int",
    """
static inline T pow_S(T x, T n) {
  U base = (U)x, out = 1;
  if (n < 0) return (T)(x == 1 ? 1 : x == (T)-1 ? (n & 1 ? -1 : 1) : 0);
  for (U k = (U)n; k; k >>= 1) {
    if (k & 1) out *= base;
    base *= base;
  }
  return (T)out;
}""",
)

_define(
    "shl_int",
    """
static inline T shl_S(T a, T n) {
  return n < 0 || n >= (T)(8 * sizeof(T)) ? (T)0 : (T)((U)a << n);
}""",
)

_define(
    "shr_int",
    """
static inline T shr_S(T a, T n) {
  if (n < 0 || n >= (T)(8 * sizeof(T))) return (T)(a < 0 ? -1 : 0);
  return (T)(a >> n);
}""",
)

# -- floats ---------------------------------------------------------------------------------------

_define(
    "mod_float",
    """
static inline T mod_S(T a, T b) {
  T r = fmodF(a, b);
  if (r == 0) return __builtin_copysignF(0, b);
  return (r < 0) != (b < 0) && r == r ? r + b : r;
}""",
    ("fmod",),
)

_define(
    "floordiv_float",
    """
static inline T floordiv_S(T a, T b) {
  if (b == 0 || __builtin_isinf(a) || __builtin_isinf(b) || a != a || b != b)
    return __builtin_floorF(a / b);
  T r = fmodF(a, b), q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return __builtin_copysignF(0, a / b);
  T whole = __builtin_floorF(q);
  return q - whole > (T)0.5 ? whole + 1 : whole;
}""",
    ("fmod",),
)

_define(
    "trigamma_float",
    """
static double trigamma_(double x) {
  if (x != x || x == -__builtin_inf()) return __builtin_nan("");
  if (x == __builtin_inf()) return 0;
  double extra = 0, sign = 1;
  if (x <= 0) {
    if (x == __builtin_floor(x)) return __builtin_inf();
    double pi = 3.14159265358979323846, ratio = pi / sin(pi * fmod(x, 1.0));
    extra = ratio * ratio;
    sign = -1;
    x = 1 - x;
  }
  double shift = 0;
  for (; x < 15; x += 1) shift += 1 / (x * x);
  double r = 1 / (x * x);
  double tail = r * (1. / 6 - r * (1. / 30 - r * (1. / 42 - r * (1. / 30
                - r * (5. / 66 - r * 691. / 2730)))));
  return extra + sign * (shift + 1 / x + 0.5 * r + tail / x);
}
static inline T trigamma_S(T x) { return (T)trigamma_(x); }""",
    ("sin_d", "fmod_d"),
)

# -- linear algebra on row-major arrays; `fn` is a BLAS or LAPACK routine, or NULL ----------------

_define(
    "cholesky",
    """
static int64_t cholesky_S(T *restrict out, const T *restrict x, int64_t batch, int64_t n,
                          void *fn) {
  for (int64_t m = 0; m < batch; m++, out += n * n, x += n * n) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) out[i * n + j] = j <= i ? x[i * n + j] : 0;
    if (fn && n > 8) { /* row-major lower is column-major upper */
      int size = (int)n, info = 0;
      ((void (*)(char *, int *, T *, int *, int *))fn)("U", &size, out, &size, &info);
      if (info) return 1;
      continue;
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) {
        T sum = out[i * n + j];
        for (int64_t k = 0; k < j; k++) sum -= out[i * n + k] * out[j * n + k];
        if (i != j) out[i * n + j] = sum / out[j * n + j];
        else if (sum > 0) out[i * n + i] = __builtin_sqrtF(sum);
        else return 1;
      }
  }
  return 0;
}""",
)

_define(
    "solve_triangular",
    """
static int64_t solve_triangular_S(T *restrict out, const T *restrict a, const T *restrict b,
                                  int64_t batch, int64_t n, int64_t k, int64_t lower,
                                  int64_t trans, int64_t unit, void *fn) {
  for (int64_t m = 0; m < batch; m++, out += n * k, a += n * n, b += n * k) {
    for (int64_t i = 0; i < n * k; i++) out[i] = b[i];
    if (fn && n > 8 && k) { /* X^T op(A)^T = B^T in column-major terms */
      int rows = (int)k, size = (int)n;
      T one = 1;
      ((void (*)(char *, char *, char *, char *, int *, int *, T *, T *, int *, T *, int *))fn)(
          "R", lower ? "U" : "L", trans ? "T" : "N", unit ? "U" : "N", &rows, &size, &one, (T *)a,
          &size, out, &rows);
      continue;
    }
    int64_t down = lower != trans;
    for (int64_t s = 0; s < n; s++) {
      int64_t i = down ? s : n - 1 - s;
      for (int64_t p = down ? 0 : i + 1; p < (down ? i : n); p++) {
        T factor = trans ? a[p * n + i] : a[i * n + p];
        for (int64_t j = 0; j < k; j++) out[i * k + j] -= factor * out[p * k + j];
      }
      if (!unit)
        for (int64_t j = 0; j < k; j++) out[i * k + j] /= a[i * n + i];
    }
  }
  return 0;
}""",
)

_define(
    "absorb_sums",  # sums that are NaN, again, of products that are 0 where a factor is 0
    """
static void absorb_sums_S(T *restrict out, const T *restrict a, const T *restrict b, int64_t m,
                          int64_t n, int64_t k, int64_t at, int64_t bt) {
  int64_t bad = 0;
  #pragma omp simd reduction(+:bad)
  for (int64_t i = 0; i < m * n; i++) bad += out[i] != out[i];
  for (int64_t i = 0; bad && i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      if (out[i * n + j] == out[i * n + j]) continue;
      T sum = 0;
      for (int64_t p = 0; p < k; p++) {
        T x = at ? a[p * m + i] : a[i * k + p], y = bt ? b[j * k + p] : b[p * n + j];
        if (x != 0 && y != 0) sum += x * y;
      }
      out[i * n + j] = sum;
    }
}""",
)

_define(
    "gemm",
    """
static void gemm_one_S(T *restrict out, const T *restrict a, const T *restrict b, int64_t m,
                       int64_t n, int64_t k, int64_t at, int64_t bt) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) out[i * n + j] = 0;
    if (bt) {
      for (int64_t j = 0; j < n; j++) {
        T sum = 0;
        #pragma omp simd reduction(+:sum)
        for (int64_t p = 0; p < k; p++) sum += (at ? a[p * m + i] : a[i * k + p]) * b[j * k + p];
        out[i * n + j] = sum;
      }
      continue;
    }
    for (int64_t p = 0; p < k; p++) {
      T factor = at ? a[p * m + i] : a[i * k + p];
      #pragma omp simd
      for (int64_t j = 0; j < n; j++) out[i * n + j] += factor * b[p * n + j];
    }
  }
}
static int64_t triangle_S(const T *a, int64_t n) { /* 1: nothing above the diagonal, 2: below */
  int64_t above = 0, below = 0;
  for (int64_t i = 0; i < n && !(above && below); i++)
    for (int64_t j = 0; j < i && !(above && below); j++) {
      above |= a[j * n + i] != 0;
      below |= a[i * n + j] != 0;
    }
  return !above ? 1 : !below ? 2 : 0;
}
static int64_t gemm_S(T *restrict out, const T *a, const T *b, int64_t batch, int64_t m, int64_t n,
                      int64_t k, int64_t at, int64_t bt, int64_t absorb, void *fn, void *syrk,
                      void *trmm) {
  int mi = (int)m, ni = (int)n, ki = (int)k, lda = at ? mi : ki, ldb = bt ? ki : ni;
  T one = 1, zero = 0;
  int64_t triangle = 0; /* its zeros absorb: half of the product */
  double least = sizeof(T) > sizeof(__real__ one) ? 1000 : 8000; /* products worth a call */
  for (int64_t c = 0; c < batch; c++, out += m * n, a += m * k, b += k * n) {
    if (!fn || k == 0 || (m | n | k) >> 31 || (double)m * (double)n * (double)k <= least) {
      gemm_one_S(out, a, b, m, n, k, at, bt);
    } else if (a == b && at != bt && syrk) { /* half of a symmetric product, then the other */
      ((void (*)(char *, char *, int *, int *, T *, T *, int *, T *, T *, int *))syrk)(
          "U", at ? "N" : "T", &mi, &ki, &one, (T *)a, &lda, &zero, out, &mi);
      for (int64_t i = 0; i < m; i += 16)
        for (int64_t j = i; j < m; j++)
          for (int64_t r = i; r < i + 16 && r < j; r++) out[r * m + j] = out[j * m + r];
    } else if (absorb && trmm && m == k && !bt && (triangle = triangle_S(a, m))) {
      for (int64_t i = 0; i < m * n; i++) out[i] = b[i];
      ((void (*)(char *, char *, char *, char *, int *, int *, T *, T *, int *, T *, int *))trmm)(
          "R", triangle == 1 ? "U" : "L", at ? "T" : "N", "N", &ni, &mi, &one, (T *)a, &mi, out,
          &ni);
    } else { /* C^T = B^T A^T */
      ((void (*)(char *, char *, int *, int *, int *, T *, T *, int *, T *, int *, T *, T *,
                 int *))fn)(bt ? "T" : "N", at ? "T" : "N", &ni, &mi, &ki, &one, (T *)b, &ldb,
                            (T *)a, &lda, &zero, out, &ni);
    }
    if (absorb) absorb_sums_S(out, a, b, m, n, k, at, bt);
  }
  return 0;
}""",
    ("absorb_sums",),
)

_define(
    "gemv",
    """
static void gemv_plain_S(T *restrict out, const T *restrict a, const T *restrict x, int64_t m,
                         int64_t k, int64_t at, void *fn) {
  if (fn && k > 0 && m > 0 && (double)m * (double)k > 1000 && !(m >> 31 || k >> 31)) {
    int rows = (int)(at ? m : k), columns = (int)(at ? k : m), step = 1;
    T one = 1, zero = 0;
    ((void (*)(char *, int *, int *, T *, T *, int *, T *, int *, T *, T *, int *))fn)(
        at ? "N" : "T", &rows, &columns, &one, (T *)a, &rows, (T *)x, &step, &zero, out, &step);
    return;
  }
  if (at) {
    for (int64_t i = 0; i < m; i++) out[i] = 0;
    for (int64_t p = 0; p < k; p++) {
      T factor = x[p];
      #pragma omp simd
      for (int64_t i = 0; i < m; i++) out[i] += factor * a[p * m + i];
    }
    return;
  }
  for (int64_t i = 0; i < m; i++) {
    T sum = 0;
    #pragma omp simd reduction(+:sum)
    for (int64_t p = 0; p < k; p++) sum += a[i * k + p] * x[p];
    out[i] = sum;
  }
}
static int64_t gemv_S(T *restrict out, const T *a, const T *x, int64_t m, int64_t k, int64_t at,
                      int64_t absorb, void *fn) {
  gemv_plain_S(out, a, x, m, k, at, fn);
  if (absorb) absorb_sums_S(out, a, x, m, 1, k, at, 0);
  return 0;
}""",
    ("absorb_sums",),
)

# LU by rows: P a = L U in place, rows exchanged as `pivot` tells. The library sees the transpose,
# which has other factors; each routine below keeps to one of the two. Both return 0 when singular.
_define(
    "lu",
    """
static int64_t lu_S(T *restrict a, int *restrict pivot, int64_t n) {
  int64_t regular = 1;
  for (int64_t s = 0; s < n; s++) {
    int64_t best = s;
    for (int64_t i = s + 1; i < n; i++)
      if (magnitude_S(a[i * n + s]) > magnitude_S(a[best * n + s])) best = i;
    pivot[s] = (int)best + 1;
    if (a[best * n + s] == 0) { regular = 0; continue; }
    for (int64_t j = 0; best != s && j < n; j++) {
      T t = a[s * n + j];
      a[s * n + j] = a[best * n + j];
      a[best * n + j] = t;
    }
    for (int64_t i = s + 1; i < n; i++) {
      T factor = a[i * n + s] /= a[s * n + s];
      #pragma omp simd
      for (int64_t j = s + 1; j < n; j++) a[i * n + j] -= factor * a[s * n + j];
    }
  }
  return regular;
}
static void lu_solve_S(const T *restrict a, const int *restrict pivot, T *restrict x, int64_t n,
                       int64_t k) {
  for (int64_t s = 0; s < n; s++) {
    int64_t p = pivot[s] - 1;
    for (int64_t j = 0; p != s && j < k; j++) {
      T t = x[s * k + j];
      x[s * k + j] = x[p * k + j];
      x[p * k + j] = t;
    }
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t p = 0; p < i; p++)
      for (int64_t j = 0; j < k; j++) x[i * k + j] -= a[i * n + p] * x[p * k + j];
  for (int64_t i = n - 1; i >= 0; i--) {
    for (int64_t p = i + 1; p < n; p++)
      for (int64_t j = 0; j < k; j++) x[i * k + j] -= a[i * n + p] * x[p * k + j];
    for (int64_t j = 0; j < k; j++) x[i * k + j] /= a[i * n + i];
  }
}
static int64_t getrf_S(T *a, int *pivot, int64_t n, void *getrf) {
  int size = (int)n, info = 0;
  ((void (*)(int *, int *, T *, int *, int *, int *))getrf)(&size, &size, a, &size, pivot, &info);
  return info == 0;
}""",
    ("magnitude",),
)

_define(
    "solve",
    """
static int64_t solve_S(T *restrict out, const T *restrict a, const T *restrict b, int64_t batch,
                       int64_t n, int64_t k, void *getrf, void *getrs) {
  T *lu = __builtin_malloc((n * n + n * k + 1) * sizeof(T)), *turned = lu + n * n;
  int *pivot = __builtin_malloc((n + 1) * sizeof(int));
  int64_t regular = lu && pivot;
  for (int64_t m = 0; regular && m < batch; m++, out += n * k, a += n * n, b += n * k) {
    __builtin_memcpy(lu, a, n * n * sizeof(T));
    if (getrf && getrs && n > 8 && k > 0) {
      int size = (int)n, columns = (int)k, info = 0;
      regular = getrf_S(lu, pivot, n, getrf);
      if (!regular) break;
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) turned[j * n + i] = b[i * k + j];
      ((void (*)(char *, int *, int *, T *, int *, int *, T *, int *, int *))getrs)(
          "T", &size, &columns, lu, &size, pivot, turned, &size, &info);
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) out[i * k + j] = turned[j * n + i];
      continue;
    }
    regular = lu_S(lu, pivot, n);
    __builtin_memcpy(out, b, n * k * sizeof(T));
    if (regular) lu_solve_S(lu, pivot, out, n, k);
  }
  __builtin_free(lu);
  __builtin_free(pivot);
  return !regular;
}""",
    ("lu",),
)

_define(
    "inverse",
    """
static int64_t inverse_S(T *restrict out, const T *restrict a, int64_t batch, int64_t n,
                         void *getrf, void *getri) {
  T *lu = __builtin_malloc((n * n + 64 * n + 1) * sizeof(T));
  int *pivot = __builtin_malloc((n + 1) * sizeof(int));
  int64_t regular = lu && pivot;
  for (int64_t m = 0; regular && m < batch; m++, out += n * n, a += n * n) {
    if (getrf && getri && n > 8) { /* the inverse of the transpose, transposed */
      int size = (int)n, room = size * 64, info = 0;
      __builtin_memcpy(out, a, n * n * sizeof(T));
      regular = getrf_S(out, pivot, n, getrf);
      if (!regular) break;
      ((void (*)(int *, T *, int *, int *, T *, int *, int *))getri)(&size, out, &size, pivot, lu,
                                                                      &room, &info);
      continue;
    }
    __builtin_memcpy(lu, a, n * n * sizeof(T));
    for (int64_t i = 0; i < n * n; i++) out[i] = i % (n + 1) == 0;
    regular = lu_S(lu, pivot, n);
    if (regular) lu_solve_S(lu, pivot, out, n, n);
  }
  __builtin_free(lu);
  __builtin_free(pivot);
  return !regular;
}""",
    ("lu",),
)

_define(
    "determinant",
    """
static int64_t determinant_S(T *restrict out, const T *restrict a, int64_t batch, int64_t n,
                             void *getrf) {
  T *lu = __builtin_malloc((n * n + 1) * sizeof(T));
  int *pivot = __builtin_malloc((n + 1) * sizeof(int));
  for (int64_t m = 0; lu && pivot && m < batch; m++, a += n * n) {
    __builtin_memcpy(lu, a, n * n * sizeof(T));
    if (getrf && n > 8) getrf_S(lu, pivot, n, getrf);
    else lu_S(lu, pivot, n);
    T product = 1;
    for (int64_t i = 0; i < n; i++) product *= pivot[i] == i + 1 ? lu[i * n + i] : -lu[i * n + i];
    out[m] = product + 0; /* no -0 */
  }
  int64_t failed = !lu || !pivot;
  __builtin_free(lu);
  __builtin_free(pivot);
  return failed;
}""",
    ("lu",),
)
