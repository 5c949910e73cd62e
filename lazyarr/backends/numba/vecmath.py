"""Vector math as Python text: polynomials without branches, which LLVM turns into vector code.

Numba calls libm one element at a time, where a loop could have done eight. Each function is within
the ulp that `tests/backends/numba/test_vecmath.py` measures; `precise` programs call libm.
"""

from lazyarr.backends.numba.mathfns import FUNCTIONS, NEEDS


def _define(name: str, text: str, needs: tuple[str, ...] = ()) -> None:
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


# y = k log 2 + r, p = exp(r) - 1. log 2 comes in two parts, of which k times the first is exact.
_EXP = f"""
    k = y * {float.fromhex("0x1.71547652b82fep0")!r} + 6755399441055744.0
    n = np.float64(k).view(np.int64)
    k = k - 6755399441055744.0
    r = y - k * {float.fromhex("0x1.62e42feep-1")!r}
    r = r - k * {float.fromhex("0x1.a39ef35793c76p-33")!r}
    r2 = r * r
    r4 = r2 * r2
    a = 0.5 + {float.fromhex("0x1.5555555555556p-3")!r} * r
    b = {float.fromhex("0x1.5555555553d37p-5")!r} + {float.fromhex("0x1.11111111109a6p-7")!r} * r
    c = {float.fromhex("0x1.6c16c1789d1d7p-10")!r} + {float.fromhex("0x1.a01a01a7cebcdp-13")!r} * r
    d = {float.fromhex("0x1.a019b8ca26fcfp-16")!r} + {float.fromhex("0x1.71de0d85293b8p-19")!r} * r
    e = {float.fromhex("0x1.2891d4ffbb0f9p-22")!r} + {float.fromhex("0x1.af390ba7e6f47p-26")!r} * r
    c = c + r2 * d + r4 * e
    p = r + r2 * (a + r2 * b + r4 * c)
""".strip("\n")

# exp(x) = 2^k (1 + p), 2^k in two steps, so that subnormals come out right.
_define(
    "vexp_float64",
    f"""
def vexp_float64(x):
    y = x if x > -745.2 else 0.0
    y = y if y < 710.0 else 710.0
{_EXP}
    p = 1.0 + p
    half = (n << 51) & -4503599627370496
    rest = (n << 52) - half + 4607182418800017408
    scaled = np.int64(np.float64(p).view(np.int64) + half).view(np.float64)
    other = 0.0 if x == x else x
    return scaled * np.int64(rest).view(np.float64) if x > -745.2 else other
""",
)

# exp(x) - 1 = 2 (p h + (h - 1/2)) with h = 2^(k - 1), which is never too large.
_define(
    "vexpm1_float64",
    f"""
def vexpm1_float64(x):
    y = x if x > -50.0 else -50.0
    y = y if y < 710.0 else 710.0
{_EXP}
    h = np.int64((n << 52) + 4602678819172646912).view(np.float64)
    out = 2.0 * (p * h + (h - 0.5))
    return out if abs(x) > 1e-300 else x
""",
)

# tanh(x) = t / (t + 2) for t = exp(2 |x|) - 1 = p h + (h - 1) with h = 2^k.
_define(
    "vtanh_float64",
    f"""
def vtanh_float64(x):
    z = abs(x)
    y = z + z if z < 22.0 else 44.0
{_EXP}
    h = np.int64((n << 52) + 4607182418800017408).view(np.float64)
    t = p * h + (h - 1.0)
    out = np.copysign(t / (t + 2.0), x)
    return out if x == x else x
""",
)

# y = 2^k (1 + f) with 1 + f between the roots of 1/2 and 2, log(1 + f) = f - s (f - r(s^2)) in
# terms of s = f / (2 + f). Integers become floats by their bits, as not every machine can. `more`
# is what is added to the logarithm, small against it.
_LOG = """
    bits = np.float64(y).view(np.int64) + 0x95F619980C433
    exponent = ((bits >> 52) & 0xFFF) | 0x4330000000000000
    k = np.int64(exponent).view(np.float64) - 4503599627371519.0{scale}
    f = np.int64((bits & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    a = 0.39999999999899505 + w * (0.2222221113479508 + w * 0.15331721600556042)
    b = 0.18182889125261723 + w * 0.14616449685043406
    b = 0.666666666666667 + w * (0.28571428625975487 + w * b)
    h = 0.5 * f * f
    low = h - (s * (h + (w * a + z * b)) + (k * 1.9082149292705877e-10{more}))
    out = k * 0.6931471803691238 - (low - f)
"""
_define(
    "vlog_float64",
    f"""
def vlog_float64(x):
    tiny = x < 2.2250738585072014e-308
    y = x * 18014398509481984.0 if tiny else x
{_LOG.format(scale=" - (54.0 if tiny else 0.0)", more="").strip(chr(10))}
    out = out if x < np.inf else x
    out = out if x > 0.0 else np.nan
    out = out if x == x else x
    return out if x != 0.0 else -np.inf
""",
)

# log(1 + x) = log(y) + e / y, where y + e is 1 + x exactly.
_define(
    "vlog1p_float64",
    f"""
def vlog1p_float64(x):
    y = 1.0 + x
    part = y - 1.0
    e = (1.0 - (y - part)) + (x - part)
{_LOG.format(scale="", more=" + e / y").strip(chr(10))}
    out = out if x < np.inf else x
    out = out if x > -1.0 else np.nan
    out = out if x != -1.0 else -np.inf
    return out if (x != 0.0) & (x == x) else x
""",
)

# An instruction, where math.sqrt is a call of libm. Both are exact.
_define(
    "sqrt",
    """
@intrinsic
def sqrt(typing, a):
    def code(context, builder, signature, args):
        kind = args[0].type
        return builder.call(builder.module.declare_intrinsic("llvm.sqrt", [kind]), args)

    return a(a), code
""",
)

VECTOR = {name: f"v{name}_float64" for name in ("exp", "expm1", "log", "log1p", "tanh")}
"""Primitives of loops without order -> functions of ours, on float64."""
