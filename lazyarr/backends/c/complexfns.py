"""Complex numbers in printed C programs: which primitives there are, and their C.

A complex number is C's own `double _Complex`; sums and comparisons are C's operators. Products and
quotients are written out as NumPy has them, since C's own mend infinities at the price of a call.
Functions of the libc have the standard's special values; the few that NumPy does otherwise, or that
the standard wants otherwise, are written here. In the templates `U` is the type of a part.
"""

from lazyarr.backends.c.mathfns import FUNCTIONS, NEEDS

# Primitive -> function of the libc, without the f of float32.
LIBM = {
    "exp": "cexp", "log": "clog", "sqrt": "csqrt", "sin": "csin", "cos": "ccos", "tan": "ctan",
    "asin": "casin", "acos": "cacos", "atan": "catan", "sinh": "csinh", "cosh": "ccosh",
    "asinh": "casinh", "acosh": "cacosh", "atanh": "catanh",
}  # fmt: skip
NAMES = {*LIBM.values(), "ctanh", "cpow"}
SUPPORT: dict[str, str] = {}  # primitive -> support function
OPERATORS = {"add", "sub", "neg", "eq", "ne", "select", "cast", "copy"}


def _define(prim: str, text: str, needs: tuple[str, ...] = ()) -> None:
    name = f"{prim}_complex"
    SUPPORT[prim] = name
    FUNCTIONS[name] = text.strip("\n")
    NEEDS[name] = needs


_define("re", "static inline U re_S(T z) { return __real__ z; }")
_define("im", "static inline U im_S(T z) { return __imag__ z; }")
_define(
    "conj", "static inline T conj_S(T z) { return __builtin_complex(__real__ z, -__imag__ z); }"
)
_define("abs", "static inline U abs_S(T z) { return hypotF(__real__ z, __imag__ z); }", ("hypot",))
_define(
    "isnan",
    """
static inline _Bool isnan_S(T z) {
  return __real__ z != __real__ z || __imag__ z != __imag__ z;
}""",
)
_define(
    "isinf",
    """
static inline _Bool isinf_S(T z) {
  return __builtin_isinf(__real__ z) || __builtin_isinf(__imag__ z);
}""",
)
_define(
    "isfinite",
    """
static inline _Bool isfinite_S(T z) {
  return __builtin_isfinite(__real__ z) && __builtin_isfinite(__imag__ z);
}""",
)
_define(
    "round",
    """
static inline T round_S(T z) {
  return __builtin_complex(__builtin_rintF(__real__ z), __builtin_rintF(__imag__ z));
}""",
)
_define(
    "mul",
    """
static inline T mul_S(T a, T b) {
  U x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b;
  return __builtin_complex(x * u - y * v, x * v + y * u);
}""",
)
_define(
    "div",
    """
static inline T div_S(T a, T b) {
  U x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b;
  U au = __builtin_fabsF(u), av = __builtin_fabsF(v);
  if (au >= av) {
    if (au == 0 && av == 0) return __builtin_complex(x / au, y / au);
    U ratio = v / u, scale = 1 / (u + v * ratio);
    return __builtin_complex((x + y * ratio) * scale, (y - x * ratio) * scale);
  }
  U ratio = u / v, scale = 1 / (v + u * ratio);
  return __builtin_complex((x * ratio + y) * scale, (y * ratio - x) * scale);
}""",
)
_define(
    "sign",
    """
static inline T sign_S(T z) {
  U x = __real__ z, y = __imag__ z;
  _Bool across = __builtin_isinf(x), along = __builtin_isinf(y);
  if (x == 0 && y == 0) return 0;
  if (x != x || y != y || (across && along))
    return __builtin_complex((U)__builtin_nan(""), (U)__builtin_nan(""));
  if (across) return __builtin_complex(__builtin_copysignF(1, x), (U)0);
  if (along) return __builtin_complex((U)0, __builtin_copysignF(1, y));
  U size = hypotF(x, y);
  return __builtin_complex(x / size, y / size);
}""",
    ("hypot",),
)
_define(
    "expm1",
    """
static inline T expm1_S(T z) {
  U x = __real__ z, y = __imag__ z, half = sinF(y / 2), inf = __builtin_inf();
  U re = expm1F(x) * cosF(y) - 2 * half * half + 0, im = y == 0 ? y : expF(x) * sinF(y);
  _Bool fine = __builtin_isfinite(y);
  if (x == -inf) re = -1;
  if (x == inf && !fine) re = inf;
  if (x == -inf && !fine) im = 0;
  return __builtin_complex(re, im);
}""",
    ("sin", "cos", "exp", "expm1"),
)
_define(
    "tanh",
    """
static inline T tanh_S(T z) {
  T out = ctanhF(z);
  if (__builtin_isinf(__real__ z) && __builtin_isfinite(__imag__ z))
    out = __builtin_complex(__real__ out, __builtin_copysignF(0, __imag__ z));
  return out;
}""",
    ("ctanh",),
)
_define(
    "log1p",
    """
static inline T log1p_S(T z) {
  U x = __real__ z + 1, y = __imag__ z;
  return __builtin_complex(logF(hypotF(x, y)), atan2F(y, x));
}""",
    ("log", "hypot", "atan2"),
)
for _name, _factor in (("log2", "1.442695040888963407359924681001892137"),
                       ("log10", "0.434294481903251827651128918916605082")):  # fmt: skip
    _define(
        _name,
        f"""
static inline T {_name}_S(T z) {{
  T out = clogF(z);
  return __builtin_complex(__real__ out * (U){_factor}, __imag__ out * (U){_factor});
}}""",
        ("clog",),
    )
_define(
    "pow",
    """
static inline T pow_S(T a, T b) {
  U u = __real__ b, v = __imag__ b;
  if (u == 0 && v == 0) return 1;
  if (a == 0) {
    U nan = __builtin_nan("");
    return u > 0 ? (T)0 : __builtin_complex(nan, nan);
  }
  if (v == 0 && u > -100 && u < 100 && u == __builtin_truncF(u)) {
    int n = (int)u, left = n < 0 ? -n : n;
    if (n == 1) return a;
    if (n == 2) return mul_S(a, a);
    if (n == 3) return mul_S(a, mul_S(a, a));
    T out = 1;
    for (T power = a; left; left >>= 1) {
      if (left & 1) out = mul_S(out, power);
      if (left > 1) power = mul_S(power, power);
    }
    return n < 0 ? div_S((T)1, out) : out;
  }
  return cpowF(a, b);
}""",
    ("mul_complex", "div_complex", "cpow"),
)
PRIMS = frozenset({*SUPPORT, *LIBM, *OPERATORS})
