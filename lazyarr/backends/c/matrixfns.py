"""Decompositions in printed C programs, by LAPACK: a loop over matrices, with copies to its order.

LAPACK stores matrices by columns, so each goes in and comes out transposed. What it needs to work
in is asked of it once and allocated once per call. Every function returns 1 where LAPACK failed, or
is not there. In the templates `T` is the type of the matrices and `U` that of a part.
"""

from lazyarr.backends.c.mathfns import FUNCTIONS, NEEDS


def _define(name: str, text: str, needs: tuple[str, ...] = ()) -> None:
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


_define(
    "turned",
    """
static void turned_S(T *restrict out, const T *restrict x, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[j * m + i] = x[i * n + j];
}""",
)

_define("magnitude", "static inline T magnitude_S(T x) { return __builtin_fabsF(x); }")
_define(
    "magnitude_complex",
    """
static inline U magnitude_S(T x) {
  return __builtin_fabsF(__real__ x) + __builtin_fabsF(__imag__ x);
}""",
)

_define(
    "cholesky_complex",
    """
static int64_t cholesky_S(T *restrict out, const T *restrict x, int64_t batch, int64_t n,
                          void *fn) {
  for (int64_t m = 0; m < batch; m++, out += n * n, x += n * n) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) out[i * n + j] = j <= i ? x[i * n + j] : 0;
    if (fn && n > 8) {
      int size = (int)n, info = 0;
      ((void (*)(char *, int *, T *, int *, int *))fn)("U", &size, out, &size, &info);
      if (info) return 1;
      continue;
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) {
        T sum = out[i * n + j];
        for (int64_t k = 0; k < j; k++) sum -= out[i * n + k] * ~out[j * n + k];
        if (i != j) out[i * n + j] = sum / __real__ out[j * n + j];
        else if (__real__ sum > 0) out[i * n + i] = __builtin_sqrtF(__real__ sum);
        else return 1;
      }
  }
  return 0;
}""",
)

_SLOGDET = """
static int64_t slogdet_S(T *restrict sign, U *restrict size, const T *restrict a, int64_t batch,
                         int64_t n, void *getrf) {
  T *lu = __builtin_malloc((n * n + 1) * sizeof(T));
  int *pivot = __builtin_malloc((n + 1) * sizeof(int));
  for (int64_t m = 0; lu && pivot && m < batch; m++, a += n * n) {
    __builtin_memcpy(lu, a, n * n * sizeof(T));
    if (getrf && n > 8) getrf_S(lu, pivot, n, getrf);
    else lu_S(lu, pivot, n);
    T turn = 1;
    U sum = 0;
    for (int64_t i = 0; i < n; i++) {
      T d = pivot[i] == i + 1 ? lu[i * n + i] : -lu[i * n + i];
      U length = LENGTH;
      if (length == 0) {
        turn = 0;
        sum = -__builtin_inf();
        break;
      }
      turn *= d / length;
      sum += logF(length);
    }
    sign[m] = turn;
    size[m] = sum;
  }
  int64_t failed = !lu || !pivot;
  __builtin_free(lu);
  __builtin_free(pivot);
  return failed;
}"""
_define("slogdet", _SLOGDET.replace("LENGTH", "__builtin_fabsF(d)"), ("lu", "log"))
_define(
    "slogdet_complex",
    _SLOGDET.replace("LENGTH", "hypotF(__real__ d, __imag__ d)"),
    ("lu", "log", "hypot"),
)

_define(
    "qr",
    """
static int64_t qr_S(T *restrict q, T *restrict r, const T *restrict x, int64_t batch, int64_t m,
                    int64_t n, int64_t complete, void *geqrf, void *orgqr) {
  typedef void first(int *, int *, T *, int *, T *, T *, int *, int *);
  typedef void second(int *, int *, int *, T *, int *, T *, T *, int *, int *);
  int64_t k = m < n ? m : n, kq = complete ? m : k, wide = n > kq ? n : kq;
  int mi = (int)m, ni = (int)n, ki = (int)k, kqi = (int)kq, info = 0, room = -1;
  int lda = m ? mi : 1;
  if (!batch || !m) return 0;
  if (!geqrf || !orgqr) return 1;
  T one[2], two[2], *a = __builtin_malloc((m * wide + k + 2) * sizeof(T)), *tau = a + m * wide;
  if (!a) return 1;
  ((first *)geqrf)(&mi, &ni, a, &lda, tau, one, &room, &info);
  ((second *)orgqr)(&mi, &kqi, &ki, a, &lda, tau, two, &room, &info);
  room = (int)(__real__ one[0] > __real__ two[0] ? __real__ one[0] : __real__ two[0]) + 1;
  T *work = __builtin_malloc(room * sizeof(T));
  for (int64_t b = 0; work && !info && b < batch; b++, x += m * n, q += m * kq, r += kq * n) {
    turned_S(a, x, m, n);
    ((first *)geqrf)(&mi, &ni, a, &lda, tau, work, &room, &info);
    for (int64_t i = 0; i < kq; i++)
      for (int64_t j = 0; j < n; j++) r[i * n + j] = i <= j ? a[j * m + i] : 0;
    if (!info) ((second *)orgqr)(&mi, &kqi, &ki, a, &lda, tau, work, &room, &info);
    turned_S(q, a, kq, m);
  }
  int64_t failed = !work || info;
  __builtin_free(work);
  __builtin_free(a);
  return failed;
}""",
    ("turned",),
)

# The pieces that LAPACK's complex routines have beyond those for real matrices.
_REAL = {"TYPES": "", "SIZES": "", "ALL": "", "QUERY": ""}

_SVD = """
static int64_t svd_S(T *restrict u, U *restrict s, T *restrict vh, const T *restrict x,
                     int64_t batch, int64_t m, int64_t n, int64_t full, int64_t vectors,
                     void *gesdd) {
  typedef void call(char *, int *, int *, T *, int *, U *, T *, int *, T *, int *, T *, int *,
                    TYPES int *, int *);
  int64_t k = m < n ? m : n, mu = full ? m : k, nv = full ? n : k, big = m < n ? n : m;
  if (!batch) return 0;
  if (!k) {
    for (int64_t i = 0; vectors && i < batch * m * mu; i++) u[i] = i / mu % m == i % mu;
    for (int64_t i = 0; vectors && i < batch * nv * n; i++) vh[i] = i / n % nv == i % n;
    return 0;
  }
  if (!gesdd) return 1;
  char *job = !vectors ? "N" : full ? "A" : "S";
  int mi = (int)m, ni = (int)n, ldv = (int)nv, info = 0, room = -1;
  T first[2], *a = __builtin_malloc((m * n + (vectors ? m * mu + nv * n : 0) + 1) * sizeof(T));
  T *left = a + m * n, *right = left + (vectors ? m * mu : 0);
  int *whole = __builtin_malloc(8 * k * sizeof(int));
  SIZES
  ((call *)gesdd)(job, &mi, &ni, a, &mi, s, left, &mi, right, &ldv, first, &room, ALL whole, &info);
  room = (int)(__real__ first[0]) + 1;
  T *work = __builtin_malloc(room * sizeof(T));
  int64_t failed = !a || !whole || !work || info;
  for (int64_t b = 0; !failed && b < batch; b++, x += m * n, s += k) {
    turned_S(a, x, m, n);
    ((call *)gesdd)(job, &mi, &ni, a, &mi, s, left, &mi, right, &ldv, work, &room, ALL whole,
                    &info);
    failed = info != 0;
    if (!vectors) continue;
    turned_S(u, left, mu, m);
    turned_S(vh, right, n, nv);
    u += m * mu;
    vh += nv * n;
  }
  __builtin_free(work);
  __builtin_free(whole);
  FREE
  __builtin_free(a);
  return failed;
}"""


def _filled(text: str, complex_: bool, room: str) -> str:
    """Fill in what only the routines for complex matrices have: real numbers to work in."""
    pieces = {"TYPES": "", "ALL": "", "SIZES": "", "FREE": ""}
    if complex_:
        pieces = {
            "TYPES": "U *,",
            "ALL": "parts,",
            "SIZES": f"U *parts = __builtin_malloc(({room}) * sizeof(U));",
            "FREE": "__builtin_free(parts);",
        }
    for name, piece in pieces.items():
        text = text.replace(name, piece)
    return text


_ROOM = "vectors ? k * (5 * k + 7 + 2 * big + 2 * k) : 7 * k"
_define("svd", _filled(_SVD, False, ""), ("turned",))
_define("svd_complex", _filled(_SVD, True, _ROOM), ("turned",))

_EIGH = """
static int64_t eigh_S(U *restrict w, T *restrict v, const T *restrict x, int64_t batch, int64_t n,
                      int64_t vectors, void *syevd) {
  typedef void call(char *, char *, int *, T *, int *, U *, T *, int *, TYPES int *, int *, int *);
  if (!batch || !n) return 0;
  if (!syevd) return 1;
  char *job = vectors ? "V" : "N";
  int ni = (int)n, room = -1, counts = -1, info = 0, count = 0;
  T first[2], *a = __builtin_malloc(n * n * sizeof(T));
  QUERY
  ((call *)syevd)(job, "L", &ni, a, &ni, w, first, &room, ALL &count, &counts, &info);
  room = (int)(__real__ first[0]) + 1;
  counts = count + 1;
  SIZES
  T *work = __builtin_malloc(room * sizeof(T));
  int *whole = __builtin_malloc(counts * sizeof(int));
  int64_t failed = !a || !whole || !work || info;
  for (int64_t b = 0; !failed && b < batch; b++, x += n * n, w += n) {
    turned_S(a, x, n, n);
    ((call *)syevd)(job, "L", &ni, a, &ni, w, work, &room, ALL whole, &counts, &info);
    failed = info != 0;
    if (!vectors) continue;
    turned_S(v, a, n, n);
    v += n * n;
  }
  __builtin_free(work);
  __builtin_free(whole);
  FREE
  __builtin_free(a);
  return failed;
}"""
_EIGH_COMPLEX = {
    "TYPES": "U *, int *,",
    "QUERY": "U least[2], *parts = least; int halves = -1;",
    "ALL": "parts, &halves,",
    "SIZES": "halves = (int)least[0] + 1; parts = __builtin_malloc(halves * sizeof(U));",
    "FREE": "__builtin_free(parts);",
}


def _eigh(pieces: dict[str, str]) -> str:
    text = _EIGH
    for name in _EIGH_COMPLEX:
        text = text.replace(name, pieces.get(name, ""))
    return text


_define("eigh", _eigh({}), ("turned",))
_define("eigh_complex", _eigh(_EIGH_COMPLEX), ("turned",))

_FINITE = """
static _Bool finite_S(const T *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!__builtin_isfinite(__real__ x[i]) || !__builtin_isfinite(__imag__ x[i])) return 0;
  return 1;
}"""
_define("finite", _FINITE)

_define(
    "eig",
    """
static int64_t eig_S(U _Complex *restrict w, U _Complex *restrict v, const T *restrict x,
                     int64_t batch, int64_t n, int64_t vectors, void *geev) {
  typedef void call(char *, char *, int *, T *, int *, T *, T *, T *, int *, T *, int *, T *,
                    int *, int *);
  if (!finite_S(x, batch * n * n)) return 1;
  if (!batch || !n) return 0;
  if (!geev) return 1;
  char *job = vectors ? "V" : "N";
  int ni = (int)n, one = 1, room = -1, info = 0;
  T first[2], *a = __builtin_malloc((2 * n * n + 2 * n) * sizeof(T));
  T *right = a + n * n, *re = right + n * n, *im = re + n;
  ((call *)geev)("N", job, &ni, a, &ni, re, im, first, &one, right, &ni, first, &room, &info);
  room = (int)first[0] + 1;
  T *work = __builtin_malloc(room * sizeof(T));
  int64_t failed = !a || !work || info;
  for (int64_t b = 0; !failed && b < batch; b++, x += n * n, w += n) {
    turned_S(a, x, n, n);
    ((call *)geev)("N", job, &ni, a, &ni, re, im, work, &one, right, &ni, work, &room, &info);
    failed = info != 0;
    for (int64_t i = 0; i < n; i++) w[i] = __builtin_complex(re[i], im[i]);
    if (!vectors) continue;
    for (int64_t j = 0; j < n; j++) { /* a pair of conjugates has two real columns */
      T *own = right + j * n, *next = own + n;
      for (int64_t i = 0; i < n; i++) {
        if (im[j] == 0 || j + 1 == n) v[i * n + j] = own[i];
        else {
          v[i * n + j] = __builtin_complex(own[i], next[i]);
          v[i * n + j + 1] = __builtin_complex(own[i], -next[i]);
        }
      }
      j += im[j] != 0 && j + 1 < n;
    }
    v += n * n;
  }
  __builtin_free(work);
  __builtin_free(a);
  return failed;
}""",
    ("turned", "finite"),
)

_define(
    "eig_complex",
    """
static int64_t eig_S(T *restrict w, T *restrict v, const T *restrict x, int64_t batch, int64_t n,
                     int64_t vectors, void *geev) {
  typedef void call(char *, char *, int *, T *, int *, T *, T *, int *, T *, int *, T *, int *, U *,
                    int *);
  if (!finite_S(x, batch * n * n)) return 1;
  if (!batch || !n) return 0;
  if (!geev) return 1;
  char *job = vectors ? "V" : "N";
  int ni = (int)n, one = 1, room = -1, info = 0;
  T first[2], *a = __builtin_malloc(2 * n * n * sizeof(T)), *right = a + n * n;
  U *parts = __builtin_malloc(2 * n * sizeof(U));
  ((call *)geev)("N", job, &ni, a, &ni, w, first, &one, right, &ni, first, &room, parts, &info);
  room = (int)__real__ first[0] + 1;
  T *work = __builtin_malloc(room * sizeof(T));
  int64_t failed = !a || !work || !parts || info;
  for (int64_t b = 0; !failed && b < batch; b++, x += n * n, w += n) {
    turned_S(a, x, n, n);
    ((call *)geev)("N", job, &ni, a, &ni, w, work, &one, right, &ni, work, &room, parts, &info);
    failed = info != 0;
    if (!vectors) continue;
    turned_S(v, right, n, n);
    v += n * n;
  }
  __builtin_free(parts);
  __builtin_free(work);
  __builtin_free(a);
  return failed;
}""",
    ("turned", "finite"),
)
