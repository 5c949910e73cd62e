"""The scalar language: what an elementwise op does to one element.

A formula is a Python function from `Scalar`s to a `Scalar`, written with the functions of this
module (`s.tanh(x)`, `s.select(c, a, b)`) or with operators. Every primitive has one exact meaning,
given by its NumPy reference in `PRIMS`; a printer for C or Python is a table over the same names.

>>> x = var("x", np.dtype("float64"))
>>> str(log1p(x * x))
'log1p(mul(x, x))'
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyarr.errors import DTypeError
from lazyarr.graph import dtypes, numeric

BOOL = np.dtype(bool)


@dataclass(frozen=True)
class Prim:
    """A primitive: its arity, the rule for its dtype, its meaning, a rough cost (an add is 1)."""

    name: str
    arity: int
    result: str  # "same": dtype of the last argument; "bool"; "real": that of its real part
    reference: Callable
    cost: int = 1


PRIMS: dict[str, Prim] = {}


class Scalar:
    """One node of a scalar expression: a primitive, a constant or a variable, with its dtype."""

    __slots__ = ("prim", "args", "dtype", "_hash")

    def __init__(self, prim: str, args: tuple, dtype: np.dtype):
        self.prim, self.args, self.dtype = prim, args, dtype
        self._hash = hash((prim, args if prim != "const" else repr(args), dtype))

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Scalar) or self._hash != other._hash:
            return False
        if self.prim != other.prim or self.dtype != other.dtype:
            return False
        if self.prim == "const":  # 0.0 and -0.0 differ, NaN equals itself
            return repr(self.args) == repr(other.args)
        return self.args == other.args

    def __repr__(self):
        if self.prim in ("const", "var"):
            return str(self.args[0])
        tail = f", {self.dtype}" if self.prim == "cast" else ""
        return f"{self.prim}({', '.join(map(repr, self.args))}{tail})"

    def __add__(self, o):
        return add(self, o)

    def __radd__(self, o):
        return add(_like(o, self), self)

    def __sub__(self, o):
        return sub(self, o)

    def __rsub__(self, o):
        return sub(_like(o, self), self)

    def __mul__(self, o):
        return mul(self, o)

    def __rmul__(self, o):
        return mul(_like(o, self), self)

    def __truediv__(self, o):
        return div(self, o)

    def __rtruediv__(self, o):
        return div(_like(o, self), self)

    def __neg__(self):
        return neg(self)

    def __lt__(self, o):
        return lt(self, o)

    def __le__(self, o):
        return le(self, o)

    def __gt__(self, o):
        return lt(_like(o, self), self)

    def __ge__(self, o):
        return le(_like(o, self), self)

    def __and__(self, o):
        return and_(self, o)

    def __or__(self, o):
        return or_(self, o)

    def __invert__(self):
        return not_(self)


def const(value: object, dtype: np.dtype) -> Scalar:
    """Return a constant of a dtype; the Python number is kept exactly as NumPy would cast it."""
    return Scalar("const", (np.asarray(value).astype(dtype).item(),), np.dtype(dtype))


def var(name: object, dtype: np.dtype) -> Scalar:
    """Return a free variable (the loop family also uses it for loads and locals)."""
    return Scalar("var", (name,), np.dtype(dtype))


def cast(x: Scalar, dtype: np.dtype) -> Scalar:
    """Return x in another dtype, as NumPy's astype (float to int truncates; to bool tests != 0)."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if x.prim == "const":
        return const(x.args[0], dtype)
    return Scalar("cast", (x,), dtype)


def _like(value: object, other: Scalar) -> Scalar:
    return value if isinstance(value, Scalar) else const(value, other.dtype)


def apply(name: str, *args: object) -> Scalar:
    """Apply a primitive; Python numbers take the dtype of the first Scalar among the later args."""
    prim = PRIMS[name]
    if len(args) != prim.arity:
        raise DTypeError(f"scalar primitive {name} takes {prim.arity} arguments, got {len(args)}.")
    values = args[1:] if name == "select" else args
    model = next(a for a in values if isinstance(a, Scalar))
    values = tuple(_like(a, model) for a in values)
    for a in values:
        if a.dtype != model.dtype and name not in ("shl", "shr"):
            raise DTypeError(f"scalar {name} mixes {model.dtype} and {a.dtype}; cast one of them.")
    if name == "select":
        values = (args[0], *values)
    return Scalar(name, values, _result(prim.result, model.dtype))


def _result(rule: str, dtype: np.dtype) -> np.dtype:
    if rule == "bool":
        return BOOL
    return dtypes.real_of(dtype) if rule == "real" else dtype


def _prim(
    name: str, arity: int, reference: Callable, result: str = "same", cost: int = 1
) -> Callable:
    PRIMS[name] = Prim(name, arity, result, reference, cost)

    def build(*args):
        return apply(name, *args)

    build.__name__ = name
    build.arity = arity
    build.__doc__ = f"Apply the scalar primitive {name}."
    return build


add = _prim("add", 2, np.add)
sub = _prim("sub", 2, np.subtract)
mul = _prim("mul", 2, np.multiply)
div = _prim("div", 2, np.true_divide, cost=6)  # floating point only
floordiv = _prim("floordiv", 2, numeric.floor_divide, cost=8)  # 0 for an integer divisor 0
mod = _prim("mod", 2, numeric.remainder, cost=8)  # sign of the divisor; integer x % 0 is 0
pow_ = _prim("pow", 2, numeric.power, cost=20)
neg = _prim("neg", 1, np.negative)
abs_ = _prim("abs", 1, np.abs, "real")
sign = _prim("sign", 1, numeric.sign)
sqrt = _prim("sqrt", 1, np.sqrt, cost=6)
exp = _prim("exp", 1, np.exp, cost=12)
expm1 = _prim("expm1", 1, numeric.expm1, cost=16)
log = _prim("log", 1, np.log, cost=12)
log1p = _prim("log1p", 1, np.log1p, cost=14)
log2 = _prim("log2", 1, np.log2, cost=12)
log10 = _prim("log10", 1, np.log10, cost=12)
sin = _prim("sin", 1, np.sin, cost=12)
cos = _prim("cos", 1, np.cos, cost=12)
tan = _prim("tan", 1, np.tan, cost=16)
asin = _prim("asin", 1, np.arcsin, cost=16)
acos = _prim("acos", 1, np.arccos, cost=16)
atan = _prim("atan", 1, np.arctan, cost=16)
atan2 = _prim("atan2", 2, np.arctan2, cost=20)
sinh = _prim("sinh", 1, np.sinh, cost=20)
cosh = _prim("cosh", 1, np.cosh, cost=20)
tanh = _prim("tanh", 1, numeric.tanh, cost=20)
asinh = _prim("asinh", 1, np.arcsinh, cost=20)
acosh = _prim("acosh", 1, np.arccosh, cost=20)
atanh = _prim("atanh", 1, np.arctanh, cost=20)
hypot = _prim("hypot", 2, np.hypot, cost=12)
erf = _prim("erf", 1, numeric.erf, cost=20)
erfc = _prim("erfc", 1, numeric.erfc, cost=20)
lgamma = _prim("lgamma", 1, numeric.lgamma, cost=40)
digamma = _prim("digamma", 1, numeric.digamma, cost=40)
trigamma = _prim("trigamma", 1, numeric.trigamma, cost=40)
floor = _prim("floor", 1, np.floor)
ceil = _prim("ceil", 1, np.ceil)
trunc = _prim("trunc", 1, np.trunc)
round_ = _prim("round", 1, np.rint)  # half to even
minimum = _prim("min", 2, np.minimum)  # NaN propagates
maximum = _prim("max", 2, np.maximum)  # NaN propagates
copysign = _prim("copysign", 2, np.copysign)
signbit = _prim("signbit", 1, np.signbit, "bool")
nextafter = _prim("nextafter", 2, np.nextafter, cost=8)
lt = _prim("lt", 2, np.less, "bool")
le = _prim("le", 2, np.less_equal, "bool")
eq = _prim("eq", 2, np.equal, "bool")
ne = _prim("ne", 2, np.not_equal, "bool")
and_ = _prim("and", 2, np.bitwise_and)  # logical on bool, bitwise on integers
or_ = _prim("or", 2, np.bitwise_or)
xor = _prim("xor", 2, np.bitwise_xor)
not_ = _prim("not", 1, np.invert)
shl = _prim("shl", 2, np.left_shift)
shr = _prim("shr", 2, np.right_shift)
isnan = _prim("isnan", 1, np.isnan, "bool")
isinf = _prim("isinf", 1, np.isinf, "bool")
isfinite = _prim("isfinite", 1, np.isfinite, "bool")
_conj = _prim("conj", 1, np.conjugate)  # these three are of complex numbers alone
_re = _prim("re", 1, np.real, "real")
_im = _prim("im", 1, np.imag, "real")
select = _prim("select", 3, np.where)  # condition, value if true, value if false


def _absorbed(g, d):
    product = np.multiply(g, d)
    return np.where(np.isnan(product) & ((g == 0) | (d == 0)), product.dtype.type(0), product)


absorb = _prim("absorb", 2, _absorbed, cost=2)  # product; 0, not NaN, where a factor is 0


def conj(x: Scalar) -> Scalar:
    """Return the conjugate; a real number itself."""
    return _conj(x) if x.dtype.kind == "c" else x


def real(x: Scalar) -> Scalar:
    """Return the real part; a real number itself."""
    return _re(x) if x.dtype.kind == "c" else x


def imag(x: Scalar) -> Scalar:
    """Return the imaginary part; 0 for a real number."""
    return _im(x) if x.dtype.kind == "c" else const(0, x.dtype)


def identity(monoid: str, dtype: np.dtype) -> object:
    """Return the value that leaves a monoid unchanged, as a Python number of the dtype."""
    dtype = np.dtype(dtype)
    if monoid in ("add", "or"):
        return False if dtype == BOOL else dtype.type(0).item()
    if monoid in ("mul", "and"):
        return True if dtype == BOOL else dtype.type(1).item()
    largest = monoid in ("min", "argmin")
    if dtype == BOOL:
        return largest
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.max if largest else info.min)
    return math.inf if largest else -math.inf


MONOIDS = {"add": "add", "mul": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


def cost(expr: Scalar) -> int:
    """Estimate the work of one evaluation of an expression, each shared part counted once."""
    seen, stack, total = set(), [expr], 0
    while stack:
        e = stack.pop()
        if e in seen or not isinstance(e, Scalar):
            continue
        seen.add(e)
        total += PRIMS[e.prim].cost if e.prim in PRIMS else int(e.prim == "cast")
        if e.prim not in ("const", "var"):
            stack.extend(e.args)
    return total


def evaluate(expr: Scalar, env: dict) -> object:
    """Evaluate an expression with NumPy, `env` giving the value of each variable by name.

    >>> x = var("x", np.dtype("float64"))
    >>> float(evaluate(x * x + 1, {"x": np.float64(3.0)}))
    10.0
    """
    done: dict[Scalar, object] = {}
    stack = [expr]
    while stack:
        e = stack[-1]
        if e in done:
            stack.pop()
        elif e.prim == "const":
            done[e] = e.dtype.type(e.args[0])
        elif e.prim == "var":
            done[e] = np.asarray(env[e.args[0]], dtype=e.dtype)[()]
        elif missing := [a for a in e.args if a not in done]:
            stack.extend(missing)
        else:
            args = [done[a] for a in e.args]
            with np.errstate(all="ignore"):
                out = args[0] if e.prim == "cast" else PRIMS[e.prim].reference(*args)
                done[e] = np.asarray(out).astype(e.dtype)[()]
    return done[expr]
