"""Complex numbers in Numba programs: the primitives there are, on the parts of a number.

The functions of complex numbers beyond arithmetic run by their references.
"""

from lazyarr.backends.numba.mathfns import FUNCTIONS

OPERATORS = {"add", "sub", "neg", "eq", "ne", "select", "cast", "copy"}
SUPPORT: dict[str, str] = {}  # primitive -> support function


def _define(prim: str, text: str) -> None:
    name = f"{prim}_complex"
    SUPPORT[prim] = name
    FUNCTIONS[name] = text.strip("\n")


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
PRIMS = frozenset({*SUPPORT, *OPERATORS})
