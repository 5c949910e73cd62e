"""Sorting and searching in printed C programs.

Elements become unsigned keys in the same order: signed numbers with the sign turned, floats with
their bits turned where negative, both zeros equal and NaN last. Keys are merged while they are few
and distributed digit by digit when they are many, which is stable and does not depend on the data.
In the templates `K` is the unsigned type as wide as the elements.
"""

from lazyarr.backends.c.mathfns import FUNCTIONS, NEEDS


def _define(name: str, text: str, needs: tuple[str, ...] = ()) -> None:
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


_define(
    "key",
    """
static inline K key_S(T x) {
  K bits = 0, top = (K)1 << (8 * sizeof(T) - 1);
  __builtin_memcpy(&bits, &x, sizeof(T));
  if ((T)0.5 != 0) { /* a float */
    if (x != x) return (K)~(K)0;
    if (x == 0) return top;
    return bits & top ? (K)~bits : bits | top;
  }
  return (T)-1 < 0 ? bits ^ top : bits;
}
static inline T element_S(K key) {
  K top = (K)1 << (8 * sizeof(T) - 1);
  if ((T)0.5 != 0) key = key & top ? key ^ top : (K)~key;
  else if ((T)-1 < 0) key ^= top;
  T x;
  __builtin_memcpy(&x, &key, sizeof(T));
  return x;
}""",
)

# (T)0.5 is true for a bool as well, whose keys are its values.
_define(
    "key_bool",
    """
static inline K key_S(T x) { return x; }
static inline T element_S(K key) { return key; }""",
)

# One function sorts keys alone, the other keys and positions; both take as much room again.
_SORT = """
static void NAME_S(K *restrict key, K *restrict spare, PARAMS int64_t n) {
  if (n <= 192) { /* runs of 8 by insertion, then merged */
    for (int64_t a = 0; a < n; a += 8)
      for (int64_t i = a + 1; i < a + 8 && i < n; i++) {
        K k = key[i];
        HOLD
        int64_t j = i;
        for (; j > a && key[j - 1] > k; j--) { key[j] = key[j - 1]; SHIFT }
        key[j] = k;
        PUT
      }
    for (int64_t width = 8; width < n; width *= 2) {
      for (int64_t a = 0; a < n; a += 2 * width) {
        int64_t b = a + width < n ? a + width : n, end = b + width < n ? b + width : n;
        int64_t i = a, j = b, o = a;
        while (i < b && j < end) {
          int64_t right = key[j] < key[i], from = right ? j : i;
          spare[o] = key[from];
          MOVE
          o++;
          j += right;
          i += !right;
        }
        for (; i < b; i++, o++) { int64_t from = i; spare[o] = key[from]; MOVE }
        for (; j < end; j++, o++) { int64_t from = j; spare[o] = key[from]; MOVE }
      }
      __builtin_memcpy(key, spare, n * sizeof(K));
      BACK
    }
    return;
  }
  int64_t run = 1;
  while (run < n && key[run - 1] <= key[run]) run++;
  if (run == n) return;
  uint32_t count[sizeof(K)][256];
  __builtin_memset(count, 0, sizeof(count));
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < (int)sizeof(K); d++) count[d][(key[i] >> 8 * d) & 255]++;
  K *from = key, *to = spare;
  FIRST
  for (int d = 0; d < (int)sizeof(K); d++) {
    if (count[d][(from[0] >> 8 * d) & 255] == n) continue;
    uint32_t start[256], sum = 0;
    for (int v = 0; v < 256; v++) { start[v] = sum; sum += count[d][v]; }
    for (int64_t i = 0; i < n; i++) {
      uint32_t at = start[(from[i] >> 8 * d) & 255]++;
      to[at] = from[i];
      SCATTER
    }
    K *other = from;
    from = to;
    to = other;
    SWAP
  }
  if (from != key) { __builtin_memcpy(key, from, n * sizeof(K)); LAST }
}"""


def _sorter(name: str, pieces: dict[str, str]) -> str:
    text = _SORT.replace("NAME", name)
    for piece in ("PARAMS", "HOLD", "SHIFT", "PUT", "MOVE", "BACK", "FIRST", "SCATTER", "SWAP",
                  "LAST"):  # fmt: skip
        text = text.replace(piece, pieces.get(piece, ""))
    return text


_define("sort_keys", _sorter("sort_keys", {}))
_define(
    "sort_pairs",
    _sorter(
        "sort_pairs",
        {
            "PARAMS": "uint32_t *restrict place, uint32_t *restrict room,",
            "HOLD": "uint32_t p = place[i];",
            "SHIFT": "place[j] = place[j - 1];",
            "PUT": "place[j] = p;",
            "MOVE": "room[o] = place[from];",
            "BACK": "__builtin_memcpy(place, room, n * sizeof(uint32_t));",
            "FIRST": "uint32_t *own = place, *next = room;",
            "SCATTER": "next[at] = own[i];",
            "SWAP": "uint32_t *held = own; own = next; next = held;",
            "LAST": "__builtin_memcpy(place, own, n * sizeof(uint32_t));",
        },
    ),
)

# Zeros come in the order in which they stood, so that their signs do.
_define(
    "sort",
    """
static int64_t sort_S(T *restrict out, const T *restrict x, int64_t outer, int64_t n,
                      int64_t inner, int64_t falling) {
  K *key = __builtin_malloc((2 * n + 1) * sizeof(K));
  if (!key || n >> 32) { __builtin_free(key); return 1; }
  for (int64_t o = 0; o < outer; o++)
    for (int64_t c = 0; c < inner; c++) {
      const T *row = x + o * n * inner + c;
      T *to = out + o * n * inner + c;
      int64_t below = 0, negative = 0;
      for (int64_t i = 0; i < n; i++) {
        T v = row[i * inner];
        key[i] = key_S(v);
        below += v < 0;
        negative += v == 0 && (T)0.5 != 0 && __builtin_signbit((double)v);
      }
      sort_keys_S(key, key + n, n);
      int64_t first = falling ? n - 1 : 0, step = falling ? -inner : inner;
      for (int64_t i = 0; i < n; i++) to[first * inner + i * step] = element_S(key[i]);
      for (int64_t i = 0; negative && i < n; i++)
        if (row[i * inner] == 0) to[first * inner + below++ * step] = row[i * inner];
    }
  __builtin_free(key);
  return 0;
}""",
    ("key", "sort_keys"),
)
_define(
    "argsort",
    """
static int64_t argsort_S(int64_t *restrict out, const T *restrict x, int64_t outer, int64_t n,
                         int64_t inner, int64_t falling) {
  K *key = __builtin_malloc((2 * n + 1) * (sizeof(K) + sizeof(uint32_t)) + 16);
  if (!key || n >> 32) { __builtin_free(key); return 1; }
  uint32_t *place = (uint32_t *)(key + 2 * n + (8 - 2 * n * sizeof(K) % 8) % 8 / sizeof(K));
  K turn = falling ? (K)~(K)0 : 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t c = 0; c < inner; c++) {
      const T *row = x + o * n * inner + c;
      int64_t *to = out + o * n * inner + c;
      for (int64_t i = 0; i < n; i++) {
        key[i] = key_S(row[i * inner]) ^ turn;
        place[i] = (uint32_t)i;
      }
      sort_pairs_S(key, key + n, place, place + n, n);
      for (int64_t i = 0; i < n; i++) to[i * inner] = place[i];
    }
  __builtin_free(key);
  return 0;
}""",
    ("key", "sort_pairs"),
)

# The number of elements below a value, or up to it; NaN is above all and equal to itself.
_define(
    "search",
    """
static int64_t search_S(int64_t *restrict out, const T *restrict x, const T *restrict v, int64_t n,
                        int64_t m, int64_t right) {
  for (int64_t i = 0; i < m; i++) {
    T value = v[i];
    int64_t base = 0, left = n;
    if (right) {
      while (left > 0) {
        int64_t half = left / 2;
        T seen = x[base + half];
        _Bool up = !(value < seen || (seen != seen && value == value));
        base += up ? left - half : 0;
        left = half;
      }
    } else {
      while (left > 0) {
        int64_t half = left / 2;
        T seen = x[base + half];
        _Bool up = seen < value || (value != value && seen == seen);
        base += up ? left - half : 0;
        left = half;
      }
    }
    out[i] = base;
  }
  return 0;
}""",
)

# -- Fourier transforms by NumPy's loops: arguments, sizes (outer, in, out), strides in bytes ------

_TRANSFORM = """
typedef void transform_t(char **, const int64_t *, const int64_t *, void *);
"""
_define("transform", _TRANSFORM)
_define(
    "scaling",
    """
static inline U scaling_S(int64_t n, int64_t norm) {
  return norm == 0 ? (U)1 : norm == 1 ? 1 / __builtin_sqrtF((U)n) : 1 / (U)n;
}""",
)
_define(
    "along",
    """
static void along_S(void *fn, void *data, void *out, const void *x, U *factor, int64_t outer,
                    int64_t n_in, int64_t n_out, int64_t inner, int64_t in_size, int64_t out_size) {
  int64_t rows = inner == 1 ? outer : inner, blocks = inner == 1 ? 1 : outer;
  int64_t size[3] = {rows, n_in, n_out};
  int64_t step[5] = {inner == 1 ? n_in * in_size : in_size, 0,
                     inner == 1 ? n_out * out_size : out_size, inner * in_size, inner * out_size};
  for (int64_t b = 0; rows && b < blocks; b++) {
    char *args[3] = {(char *)x + b * n_in * inner * in_size, (char *)factor,
                     (char *)out + b * n_out * inner * out_size};
    ((transform_t *)fn)(args, size, step, data);
  }
}""",
    ("transform",),
)
_define(
    "fourier",
    """
static int64_t fourier_S(T *restrict out, const T *restrict x, int64_t outer, int64_t n,
                         int64_t inner, int64_t inverse, int64_t norm, void *fft, void *fft_data,
                         void *ifft, void *ifft_data) {
  if (!fft || !ifft || n < 1) return 1;
  U factor = scaling_S(n, inverse ? 2 - norm : norm);
  along_S(inverse ? ifft : fft, inverse ? ifft_data : fft_data, out, x, &factor, outer, n, n,
          inner, sizeof(T), sizeof(T));
  return 0;
}""",
    ("scaling", "along"),
)
_define(
    "fourier_half",
    """
static int64_t fourier_half_S(U _Complex *restrict out, const T *restrict x, int64_t outer,
                              int64_t n, int64_t inner, int64_t norm, void *even, void *even_data,
                              void *odd, void *odd_data) {
  if (!even || !odd || n < 1) return 1;
  U factor = scaling_S(n, norm);
  along_S(n % 2 ? odd : even, n % 2 ? odd_data : even_data, out, x, &factor, outer, n, n / 2 + 1,
          inner, sizeof(T), 2 * sizeof(T));
  return 0;
}""",
    ("scaling", "along"),
)
_define(
    "fourier_real",
    """
static int64_t fourier_real_S(U *restrict out, const T *restrict x, int64_t outer, int64_t m,
                              int64_t inner, int64_t n, int64_t norm, void *irfft, void *data) {
  if (!irfft || n < 1 || m < 1) return 1;
  U factor = scaling_S(n, 2 - norm);
  along_S(irfft, data, out, x, &factor, outer, m, n, inner, sizeof(T), sizeof(U));
  return 0;
}""",
    ("scaling", "along"),
)
