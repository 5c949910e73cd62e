"""Vector math of our own: polynomials without branches, which a simd loop takes in line.

`exp` is as fast as libmvec's and stays so where lanes are -inf, NaN or very negative (masked
softmax, hidden Markov models). Each function is within the ulp that `tests/backends/c/test_math.py`
measures; `precise` programs call libm instead.
"""

from collections.abc import Sequence

from lazyarr.backends.c.mathfns import FUNCTIONS, NEEDS
from lazyarr.graph import numeric


def define(name: str, text: str, needs: tuple[str, ...] = ()) -> None:
    """Add a support function: its text, and the functions that it calls."""
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


INLINE = "static inline __attribute__((always_inline))"

# y = k log 2 + r, exp(y) = 2^k (1 + r + r^2 p(r)): n is k as an integer.
EXPONENTIAL = """\
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
"""

# exp(x) with 2^k in two steps, so that subnormals come out
# right. A lane whose result is 0 must not get there by underflow, which takes 150 cycles.
define(
    "vexp_float64",
    f"""
{INLINE} double vexp_float64(double x) {{
  double y = x > -745.2 ? x : 0.0;
  y = y < 710.0 ? y : 710.0;
{EXPONENTIAL}  p = 1.0 + __builtin_fma(r2, p, r);
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

define(
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


# tanh(x) = t / (t + 2) for t = exp(2 |x|) - 1 = 2^k p + (2^k - 1), p = exp(r) - 1; NaN stays.
define(
    "vtanh_float64",
    f"""
{INLINE} double vtanh_float64(double x) {{
  double z = __builtin_fabs(x);
  double k = __builtin_fma(z, 0x1.71547652b82fep1, 0x1.8p52);
  int64_t n;
  __builtin_memcpy(&n, &k, 8);
  k -= 0x1.8p52;
  double r = __builtin_fma(k, -0x1.62e42fefa39efp-1, z + z);
  r = __builtin_fma(k, -0x1.abc9e3b39803fp-56, r);
  double r2 = r * r, r4 = r2 * r2;
  double a = __builtin_fma(0x1.5555555555556p-3, r, 0.5);
  double b = __builtin_fma(0x1.11111111109a6p-7, r, 0x1.5555555553d37p-5);
  double c = __builtin_fma(0x1.a01a01a7cebcdp-13, r, 0x1.6c16c1789d1d7p-10);
  double d = __builtin_fma(0x1.71de0d85293b8p-19, r, 0x1.a019b8ca26fcfp-16);
  double e = __builtin_fma(0x1.af390ba7e6f47p-26, r, 0x1.2891d4ffbb0f9p-22);
  c = __builtin_fma(e, r4, __builtin_fma(d, r2, c));
  double p = __builtin_fma(c, r4, __builtin_fma(b, r2, a));
  p = __builtin_fma(r2, p, r);
  int64_t bits = (int64_t)(((uint64_t)n << 52) + 0x3ff0000000000000ull);
  double scale;
  __builtin_memcpy(&scale, &bits, 8);
  double t = __builtin_fma(p, scale, scale - 1.0);
  t = t / (t + 2.0);
  return __builtin_copysign(z > 22.0 ? 1.0 : t, x);
}}""",
)

define(
    "vtanh_float32",
    f"""
{INLINE} float vtanh_float32(float x) {{
  float z = __builtin_fabsf(x);
  float k = __builtin_fmaf(z, 0x1.715476p1f, 0x1.8p23f);
  int32_t n;
  __builtin_memcpy(&n, &k, 4);
  k -= 0x1.8p23f;
  float r = __builtin_fmaf(k, -0x1.62e43p-1f, z + z);
  r = __builtin_fmaf(k, 0x1.05c61p-29f, r);
  float p = 0x1.6d117cp-10f;
  p = __builtin_fmaf(p, r, 0x1.120be2p-7f);
  p = __builtin_fmaf(p, r, 0x1.555518p-5f);
  p = __builtin_fmaf(p, r, 0x1.5554dcp-3f);
  p = __builtin_fmaf(p, r, 0.5f);
  p = __builtin_fmaf(r * r, p, r);
  int32_t bits = (int32_t)(((uint32_t)n << 23) + 0x3f800000u);
  float scale;
  __builtin_memcpy(&scale, &bits, 4);
  float t = __builtin_fmaf(p, scale, scale - 1.0f);
  t = t / (t + 2.0f);
  return __builtin_copysignf(z > 10.0f ? 1.0f : t, x);
}}""",
)


def _polynomial(coefficients: Sequence[str], x: str) -> str:
    """Return a polynomial as C, the constant term first, by Estrin's scheme of pairs.

    The constant is added last, so that what is added to it is small.
    """
    terms, power = list(coefficients[1:]), x
    while len(terms) > 1:
        pairs = zip(terms[1::2], terms[::2], strict=False)
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [f"__builtin_fma({a}, {power}, {b})" for a, b in pairs] + odd
        power = f"({power} * {power})"
    return f"__builtin_fma({terms[0]}, {x}, {coefficients[0]})"


# lgamma(z) = (z - 1) (z - 2) q(z - 1.75) on [1, 2.5]; interpolation at Chebyshev's points.
GAMMA = """
0x1.ccf151e09cde8p-2 -0x1.e965863079469p-4 0x1.6cb62517118fcp-5 -0x1.382e176f619f5p-6
0x1.1f9587fa1eb1dp-7 -0x1.14f7c58de2671p-8 0x1.12aa72f6bf91dp-9 -0x1.160562c0a01a1p-10
0x1.1daed609e7d16p-11 -0x1.28f25561c32fep-12 0x1.3776543d9d2b2p-13 -0x1.491a21f13e967p-14
0x1.5dd9d31d90f48p-15 -0x1.759940c57cab0p-16 0x1.90f34771375dep-17 -0x1.b3649525282a8p-18
0x1.d6ba7178cecadp-19 -0x1.da7f8ddb1afb2p-20 0x1.019ed5c944fcep-20 -0x1.9603c1167a065p-21
0x1.bcd359ab28bccp-22 0x1.246de568fe6f2p-25 -0x1.501038e3f4b02p-26 -0x1.52d04301dad55p-23
0x1.75c8e4b0bb849p-24
""".split()

DIGAMMA = [value.hex() for value in numeric.DIGAMMA]

# Bernoulli numbers: B(2k) / (2k (2k - 1)) and B(2k) / 2k
STIRLING = """
0x1.5555555555555p-4 -0x1.6c16c16c16c17p-9 0x1.a01a01a01a01ap-11 -0x1.3813813813814p-11
0x1.b951e2b18ff23p-11 -0x1.f6ab0d9993c7dp-10 0x1.a41a41a41a41ap-8 -0x1.e4286cb0f5398p-6
""".split()
BERNOULLI = """
0x1.5555555555555p-4 -0x1.1111111111111p-7 0x1.0410410410410p-8 -0x1.1111111111111p-8
0x1.f07c1f07c1f08p-8 -0x1.5995995995996p-6 0x1.5555555555555p-4 -0x1.c5e5e5e5e5e5ep-2
""".split()

# Steps of the recurrence lead into [1, 2.5], Stirling's series serves from 8.5 on, and the
# reflection below 0: log(pi / |y sin(pi y)|) - lgamma(y) for y = -x.
define(
    "vlgamma_float64",
    f"""
{INLINE} double vlgamma_float64(double x) {{
  double y = __builtin_fabs(x), z = y < 8.5 ? y : 2.0, factor = 1.0;
  #pragma GCC unroll 8
  for (int k = 0; k < 6; k++) {{
    double less = z - 1.0;
    factor = z >= 2.5 ? factor * less : factor;
    z = z >= 2.5 ? less : z;
  }}
  double below = z < 1.0 ? z : 1.0;
  double u = z < 1.0 ? z : z - 1.0; /* exact, as z + 1 is not */
  double t = u - 0.75, inverse = 1.0 / y, r = inverse * inverse;
  double q = {_polynomial(GAMMA, "t")};
  double series = {_polynomial(STIRLING, "r")};
  double logarithm = log(y < 8.5 ? factor * below : y);
  double near = u * (u - 1.0) * q + (y < 1.0 ? -logarithm : logarithm);
  double far = (y - 0.5) * (logarithm - 1.0) + (0x1.acfe390c97d69p-2 + series * inverse);
  double out = y < 8.5 ? near : far;
  double turn = y - __builtin_rint(y);
  double wave = __builtin_fabs(sin(3.14159265358979323846 * turn));
  double other = log(3.14159265358979323846 / (y * wave)) - out;
  other = y < 1e-18 ? out : other;
  other = y - y == 0.0 ? other : y; /* -inf: inf */
  return x < 0.0 ? other : out;
}}""",
    ("log", "sin"),
)
define(
    "vlgamma_float32",
    f"""
{INLINE} float vlgamma_float32(float x) {{ return (float)vlgamma_float64(x); }}""",
    ("vlgamma_float64",),
)

# Steps of the recurrence, added up as one fraction, lead from [0, 10) into [1, 2].
define(
    "vdigamma_float64",
    f"""
{INLINE} double vdigamma_float64(double x) {{
  double y = x > 0.0 ? x : 1.0 - x, z = y < 10.0 ? y : 1.5, above = 0.0, under = 1.0;
  #pragma GCC unroll 8
  for (int k = 0; k < 8; k++) {{
    double less = z - 1.0;
    above = z >= 2.0 ? __builtin_fma(above, less, under) : above;
    under = z >= 2.0 ? under * less : under;
    z = z >= 2.0 ? less : z;
  }}
  double first = z < 1.0 ? -1.0 / z : above / under;
  z = z < 1.0 ? z + 1.0 : z;
  double t = z - 1.5, inverse = 1.0 / y, r = inverse * inverse;
  double q = {_polynomial(DIGAMMA, "t")};
  double near = ((z - 0x1.762d86356be3fp+0) - 0x1.b86a722197829p-54) * q + first;
  double series = {_polynomial(BERNOULLI, "r")};
  double far = log(y) - (0.5 * inverse + r * series);
  double out = y < 10.0 ? near : far;
  double turn = x - __builtin_rint(x);
  double tangent = tan(3.14159265358979323846 * turn);
  double other = turn == 0.0 ? __builtin_nan("") : out - 3.14159265358979323846 / tangent;
  other = x == 0.0 ? -1.0 / x : other;
  other = x == -__builtin_inf() ? __builtin_nan("") : other;
  return x > 0.0 ? out : x == x ? other : x;
}}""",
    ("log", "tan"),
)
define(
    "vdigamma_float32",
    f"""
{INLINE} float vdigamma_float32(float x) {{ return (float)vdigamma_float64(x); }}""",
    ("vdigamma_float64",),
)

VECTOR = {"exp": "vexp", "tanh": "vtanh", "lgamma": "vlgamma", "digamma": "vdigamma"}
"""Primitives that a simd loop computes by a function of this module, and its name."""

ALWAYS = {"digamma": "vdigamma"}
"""Those that no libm has: computed so everywhere, in precise programs too."""
