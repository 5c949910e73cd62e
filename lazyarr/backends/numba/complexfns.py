"""Complex numbers in Numba programs: the primitives there are, on the parts of a number.

Functions are those of Numba's cmath, in double precision, mended where they miss a special value of
the standard. Those of circles are those of hyperbolas of iz, turned back.
"""

from lazyarr.backends.numba.mathfns import FUNCTIONS, NEEDS

OPERATORS = {"add", "sub", "neg", "eq", "ne", "select", "cast", "copy"}
SUPPORT: dict[str, str] = {}  # primitive -> support function


def _define(prim: str, text: str, *needs: str) -> None:
    name = f"{prim}_complex"
    SUPPORT[prim] = name
    FUNCTIONS[name], NEEDS[name] = text.strip("\n"), needs


_define("re", "def re_complex(z):\n    return z.real")
_define("im", "def im_complex(z):\n    return z.imag")
_define("conj", "def conj_complex(z):\n    return complex(z.real, -z.imag)")
_define("abs", "def abs_complex(z):\n    return math.hypot(z.real, z.imag)")
_define("isnan", "def isnan_complex(z):\n    return z.real != z.real or z.imag != z.imag")
_define(
    "isinf",
    "def isinf_complex(z):\n    return abs(z.real) == np.inf or abs(z.imag) == np.inf",
)
_define(
    "isfinite",
    "def isfinite_complex(z):\n    return abs(z.real) < np.inf and abs(z.imag) < np.inf",
)
_define(
    "round",
    "def round_complex(z):\n    return complex(np.rint(z.real), np.rint(z.imag))",
)
_define(
    "mul",
    """
def mul_complex(a, b):
    x, y, u, v = a.real, a.imag, b.real, b.imag
    return complex(x * u - y * v, x * v + y * u)
""",
)
_define(
    "div",
    """
def div_complex(a, b):
    x, y, u, v = a.real, a.imag, b.real, b.imag
    if abs(u) >= abs(v):
        if u == 0 and v == 0:
            return complex(x / abs(u), y / abs(u))
        ratio = v / u
        scale = 1 / (u + v * ratio)
        return complex((x + y * ratio) * scale, (y - x * ratio) * scale)
    ratio = u / v
    scale = 1 / (v + u * ratio)
    return complex((x * ratio + y) * scale, (y * ratio - x) * scale)
""",
)
_define(
    "sign",
    """
def sign_complex(z):
    x, y = z.real, z.imag
    across, along = abs(x) == np.inf, abs(y) == np.inf
    if x == 0 and y == 0:
        return complex(0.0, 0.0)
    if x != x or y != y or (across and along):
        return complex(np.nan, np.nan)
    if across:
        return complex(np.copysign(1.0, x), 0.0)
    if along:
        return complex(0.0, np.copysign(1.0, y))
    size = math.hypot(x, y)
    return complex(x / size, y / size)
""",
)


def _mended(prim: str, *cases: str) -> None:
    """Define a function of cmath with cases that come first, over the parts x, y of z."""
    tests = "".join(f"    {case}\n" for case in cases)
    head = f"def {prim}_complex(z):\n    z = np.complex128(z)\n    x, y = z.real, z.imag\n"
    _define(prim, f"{head}{tests}    return cmath.{prim}(z)")


def _turned(prim: str, hyperbolic: str) -> None:
    """Define f(z) = -i h(iz)."""
    _define(
        prim,
        f"""
def {prim}_complex(z):
    w = {hyperbolic}_complex(complex(-np.float64(z.imag), np.float64(z.real)))
    return complex(w.imag, -w.real)
""",
        f"{hyperbolic}_complex",
    )


_AXIS = "if x == 0 and not abs(y) < np.inf: return complex"
_FAR = "if abs(x) == np.inf and not abs(y) < np.inf: return complex(np.inf, np.nan)"
for _name in ("exp", "log", "sqrt"):
    _mended(_name)
_mended("sinh", "if y == 0: return complex(math.sinh(x), y)", f"{_AXIS}(x, np.nan)", _FAR)
_mended(
    "cosh",
    "if y == 0: return complex(math.cosh(x), math.copysign(1.0, x) * y)",
    f"{_AXIS}(np.nan, x)",
    _FAR,
)
_mended(
    "tanh",
    "if y == 0: return complex(math.tanh(x), y)",
    f"{_AXIS}(x, np.nan)",
    "if abs(x) == np.inf and abs(y) < np.inf: return complex(math.copysign(1.0, x), "
    "math.copysign(0.0, y))",
)
_mended("asinh", "if y == 0: return complex(math.asinh(x), y)")
_mended("acosh", "if x == 0 and y != y: return complex(np.nan, math.pi / 2)")
_mended("acos", "if x == 0 and y != y: return complex(math.pi / 2, np.nan)")
_mended(
    "atanh",
    "if y != y: return complex(x if x == 0 else 1 / x if abs(x) == np.inf else np.nan, np.nan)",
    "if x != x and abs(y) < np.inf: return complex(np.nan, np.nan)",
)
for _circular, _hyperbolic in (("sin", "sinh"), ("tan", "tanh"), ("asin", "asinh"),
                               ("atan", "atanh")):  # fmt: skip
    _turned(_circular, _hyperbolic)
_define(
    "cos",
    """
def cos_complex(z):
    return cosh_complex(complex(-np.float64(z.imag), np.float64(z.real)))
""",
    "cosh_complex",
)
for _name, _factor in (("log2", "1.4426950408889634"), ("log10", "0.4342944819032518")):
    _define(
        _name,
        f"""
def {_name}_complex(z):
    w = cmath.log(np.complex128(z))
    return complex(w.real * {_factor}, w.imag * {_factor})
""",
    )
_define(
    "log1p",
    """
def log1p_complex(z):
    x, y = np.float64(z.real) + 1, np.float64(z.imag)
    return complex(math.log(math.hypot(x, y)), math.atan2(y, x))
""",
)
_define(
    "expm1",
    """
def expm1_complex(z):
    x, y = np.float64(z.real), np.float64(z.imag)
    half = math.sin(y / 2)
    re = math.expm1(x) * math.cos(y) - 2 * half * half + 0.0
    im = y if y == 0 else math.exp(x) * math.sin(y)
    if x == -np.inf:
        re = -1.0
    if not abs(y) < np.inf:
        if x == np.inf:
            re = np.inf
        elif x == -np.inf:
            im = 0.0
    return complex(re, im)
""",
)
# C's product, in which an infinite factor gives an infinity also where its parts are NaN.
FUNCTIONS["scaled_complex"] = """
def scaled_complex(a, b):
    x, y, u, v = a.real, a.imag, b.real, b.imag
    out = complex(x * u - y * v, x * v + y * u)
    if out.real == out.real or out.imag == out.imag:
        return out
    left, right = abs(x) == np.inf or abs(y) == np.inf, abs(u) == np.inf or abs(v) == np.inf
    over = max(abs(x * u), abs(y * v)) == np.inf or max(abs(x * v), abs(y * u)) == np.inf
    if not (left or right or over):
        return out
    if left:
        x = math.copysign(1.0 if abs(x) == np.inf else 0.0, x)
        y = math.copysign(1.0 if abs(y) == np.inf else 0.0, y)
    if right:
        u = math.copysign(1.0 if abs(u) == np.inf else 0.0, u)
        v = math.copysign(1.0 if abs(v) == np.inf else 0.0, v)
    x = math.copysign(0.0, x) if x != x else x
    y = math.copysign(0.0, y) if y != y else y
    u = math.copysign(0.0, u) if u != u else u
    v = math.copysign(0.0, v) if v != v else v
    return complex(np.inf * (x * u - y * v), np.inf * (x * v + y * u))""".strip()
_define(
    "pow",
    """
def pow_complex(a, b):
    a, b = np.complex128(a), np.complex128(b)
    u, v = b.real, b.imag
    if u == 0 and v == 0:
        return complex(1.0, 0.0)
    if a == 0:
        return complex(0.0, 0.0) if u > 0 else complex(np.nan, np.nan)
    if v == 0 and abs(u) < 100 and u == np.trunc(u):
        if u == 1:
            return a
        if u == 2:
            return mul_complex(a, a)
        if u == 3:
            return mul_complex(a, mul_complex(a, a))
        left = int(abs(u))
        out, power = complex(1.0, 0.0), a
        while left:
            if left & 1:
                out = mul_complex(out, power)
            left >>= 1
            if left:
                power = mul_complex(power, power)
        return div_complex(complex(1.0, 0.0), out) if u < 0 else out
    return cmath.exp(scaled_complex(b, cmath.log(a)))
""",
    "scaled_complex",
    "mul_complex",
    "div_complex",
)
PRIMS = frozenset({*SUPPORT, *OPERATORS})
