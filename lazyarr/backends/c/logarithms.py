"""Vector math of our own where the libc has none: log, log1p, expm1 for vector loops.

libmvec's are faster; without it (musl, macOS, old glibc) a loop would call libm one element at a
time. Float32 is computed in float64.
"""

from lazyarr.backends.c.vecmath import EXPONENTIAL, INLINE, define

# y = 2^k (1 + f) with 1 + f between the roots of 1/2 and 2, log(1 + f) = f - s (f - r(s^2)) in
# terms of s = f / (2 + f). `more` is what is added to the logarithm, small against it.
_LOG = """
  uint64_t word;
  __builtin_memcpy(&word, &y, 8);
  int64_t bits = (int64_t)(word + 0x95f619980c433);
  int64_t mantissa = (bits & 0xfffffffffffff) + 0x3fe6a09e667f3bcd;
  int64_t exponent = ((bits >> 52) & 0xfff) | 0x4330000000000000;
  double k, f;
  __builtin_memcpy(&k, &exponent, 8);
  __builtin_memcpy(&f, &mantissa, 8);
  k = k - 4503599627371519.0 {scale};
  f -= 1.0;
  double s = f / (2.0 + f), z = s * s, w = z * z;
  double a = __builtin_fma(w, 0.15331721600556042, 0.2222221113479508);
  a = __builtin_fma(w, a, 0.39999999999899505);
  double b = __builtin_fma(w, 0.14616449685043406, 0.18182889125261723);
  b = __builtin_fma(w, b, 0.28571428625975487);
  b = __builtin_fma(w, b, 0.666666666666667);
  double h = 0.5 * f * f;
  double low = h - (s * (h + (w * a + z * b)) + (k * 1.9082149292705877e-10 {more}));
  double out = k * 0.6931471803691238 - (low - f);
""".strip("\n")

define(
    "vlog_float64",
    f"""
{INLINE} double vlog_float64(double x) {{
  double y = x < 0x1p-1022 ? x * 0x1p54 : x;
{_LOG.format(scale="- (x < 0x1p-1022 ? 54.0 : 0.0)", more="")}
  out = x < __builtin_inf() ? out : x;
  out = x > 0.0 ? out : __builtin_nan("");
  out = x == x ? out : x;
  return x != 0.0 ? out : -__builtin_inf();
}}""",
)

# log(1 + x) = log(y) + e / y, where y + e is 1 + x exactly.
define(
    "vlog1p_float64",
    f"""
{INLINE} double vlog1p_float64(double x) {{
  double y = 1.0 + x, part = y - 1.0;
  double e = (1.0 - (y - part)) + (x - part);
{_LOG.format(scale="", more="+ e / y")}
  out = x < __builtin_inf() ? out : x;
  out = x > -1.0 ? out : __builtin_nan("");
  out = x != -1.0 ? out : -__builtin_inf();
  out = x != 0.0 ? out : x;
  return x == x ? out : x;
}}""",
)

# x = k log 2 + r, exp(x) - 1 = 2 (p h + (h - 1/2)) with p = exp(r) - 1 and h = 2^(k - 1), which is
# never too large.
define(
    "vexpm1_float64",
    f"""
{INLINE} double vexpm1_float64(double x) {{
  double y = x > -50.0 ? x : -50.0;
  y = y < 710.0 ? y : 710.0;
{EXPONENTIAL}  p = __builtin_fma(r2, p, r);
  int64_t bits = (int64_t)(((uint64_t)n << 52) + 0x3fe0000000000000ull);
  double h;
  __builtin_memcpy(&h, &bits, 8);
  double out = 2.0 * __builtin_fma(p, h, h - 0.5);
  out = __builtin_fabs(x) > 1e-300 ? out : x;
  return x == x ? out : x;
}}""",
)

for _name in ("vlog", "vlog1p", "vexpm1"):
    define(
        f"{_name}_float32",
        f"{INLINE} float {_name}_float32(float x) {{ return (float){_name}_float64(x); }}",
        (f"{_name}_float64",),
    )

WITHOUT = {"log": "vlog", "log1p": "vlog1p", "expm1": "vexpm1"}
"""Primitives that a simd loop computes by a function of this module, unless the libc has one."""
