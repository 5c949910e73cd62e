"""Vector math of our own: polynomials without branches, which a simd loop takes in line.

`exp` is as fast as libmvec's and stays so where lanes are -inf, NaN or very negative (masked
softmax, hidden Markov models). Each function is within the ulp that `tests/backends/c/test_math.py`
measures; `precise` programs call libm instead.
"""

from lazyarr.backends.c.mathfns import FUNCTIONS, NEEDS


def _define(name: str, text: str, needs: tuple[str, ...] = ()) -> None:
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


INLINE = "static inline __attribute__((always_inline))"

# x = k log 2 + r, exp(x) = 2^k (1 + r + r^2 p(r)); 2^k in two steps, so that subnormals come out
# right. A lane whose result is 0 must not get there by underflow, which takes 150 cycles.
_define(
    "vexp_float64",
    f"""
{INLINE} double vexp_float64(double x) {{
  double y = x > -745.2 ? x : 0.0;
  y = y < 710.0 ? y : 710.0;
  double k = y * 0x1.71547652b82fep0 + 0x1.8p52;
  int64_t n;
  __builtin_memcpy(&n, &k, 8);
  k -= 0x1.8p52;
  double r = __builtin_fma(k, -0x1.62e42fefa39efp-1, y);
  r = __builtin_fma(k, -0x1.abc9e3b39803fp-56, r);
  double r2 = r * r, r4 = r2 * r2;
  double a = __builtin_fma(0x1.5555555555556p-3, r, 0.5);
  double b = __builtin_fma(0x1.11111111109a6p-7, r, 0x1.5555555553d37p-5);
  double c = __builtin_fma(0x1.a01a01a7cebcdp-13, r, 0x1.6c16c1789d1d7p-10);
  double d = __builtin_fma(0x1.71de0d85293b8p-19, r, 0x1.a019b8ca26fcfp-16);
  double e = __builtin_fma(0x1.af390ba7e6f47p-26, r, 0x1.2891d4ffbb0f9p-22);
  c = __builtin_fma(e, r4, __builtin_fma(d, r2, c));
  double p = __builtin_fma(c, r4, __builtin_fma(b, r2, a));
  p = 1.0 + __builtin_fma(r2, p, r);
  int64_t half = (int64_t)((uint64_t)n << 51) & (int64_t)0xfff0000000000000ull, bits;
  int64_t rest = (int64_t)((uint64_t)n << 52) - half + 0x3ff0000000000000ll;
  __builtin_memcpy(&bits, &p, 8);
  bits += half;
  double scaled, scale;
  __builtin_memcpy(&scaled, &bits, 8);
  __builtin_memcpy(&scale, &rest, 8);
  double other = x == x ? 0.0 : x;
  return x > -745.2 ? scaled * scale : other;
}}""",
)

_define(
    "vexp_float32",
    f"""
{INLINE} float vexp_float32(float x) {{
  float y = x > -104.0f ? x : 0.0f;
  y = y < 89.0f ? y : 89.0f;
  float k = y * 0x1.715476p0f + 0x1.8p23f;
  int32_t n;
  __builtin_memcpy(&n, &k, 4);
  k -= 0x1.8p23f;
  float r = __builtin_fmaf(k, -0x1.62e43p-1f, y);
  r = __builtin_fmaf(k, 0x1.05c61p-29f, r);
  float p = 0x1.6d117cp-10f;
  p = __builtin_fmaf(p, r, 0x1.120be2p-7f);
  p = __builtin_fmaf(p, r, 0x1.555518p-5f);
  p = __builtin_fmaf(p, r, 0x1.5554dcp-3f);
  p = __builtin_fmaf(p, r, 0.5f);
  p = 1.0f + __builtin_fmaf(r * r, p, r);
  int32_t half = (int32_t)((uint32_t)n << 22) & (int32_t)0xff800000u, bits;
  int32_t rest = (int32_t)((uint32_t)n << 23) - half + 0x3f800000;
  __builtin_memcpy(&bits, &p, 4);
  bits += half;
  float scaled, scale;
  __builtin_memcpy(&scaled, &bits, 4);
  __builtin_memcpy(&scale, &rest, 4);
  float other = x == x ? 0.0f : x;
  return x > -104.0f ? scaled * scale : other;
}}""",
)

VECTOR = {"exp": "vexp"}
"""Primitives that a simd loop computes by a function of this module, and its name."""
