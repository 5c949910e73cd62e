"""Random bits and quantile functions: what draws are made of.

`threefry` is a counter-based generator: bits of element i are a function of the key and i alone,
in integer arithmetic, so every backend gives the same. Sources: Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3" (2011), Threefry-2x32 with 20 rounds; Wichura, algorithm AS 241 (1988).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lazyarr.errors import DTypeError
from lazyarr.graph import scalar as s
from lazyarr.graph.node import Variable
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import elementwise, variable_of
from lazyarr.graph.registry import op
from lazyarr.graph.scalar import Scalar

_WORD = np.dtype("uint32")
_PAIR = np.dtype("uint64")
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _rounds(
    key: tuple[Any, ...],
    counter: tuple[Any, ...],
    xor: Callable[..., Any],
    rotate: Callable[..., Any],
) -> tuple[Any, ...]:
    """Threefry-2x32 on pairs of words, each a (high, low), with 20 rounds."""
    a, b = key
    extended = (a, b, xor(a, b))
    x, y = counter[0] + a, counter[1] + b
    for block in range(5):
        for r in _ROTATIONS[block % 2]:
            x = x + y
            y = xor(rotate(y, r), x)
        x = x + extended[(block + 1) % 3]
        y = y + extended[(block + 2) % 3] + (block + 1)
    return x, y


def _word(value: int) -> Any:
    return s.const(value, _WORD)


def _formula(key: Scalar, counter: Scalar) -> Any:
    def split(pair: Scalar) -> tuple[Any, ...]:
        high = s.cast(s.shr(pair, s.const(32, _PAIR)), _WORD)
        return high, s.cast(pair, _WORD)

    def xor(a: Scalar, b: Scalar) -> Any:
        return s.xor(a, b)

    def rotate(v: Scalar, r: int) -> Any:
        return s.or_(s.shl(v, _word(r)), s.shr(v, _word(32 - r)))

    a, b = split(key)
    extended = s.xor(s.xor(a, b), _word(_PARITY))
    x, y = _rounds((a, b), split(counter), lambda p, q: extended if p is a else xor(p, q), rotate)
    return s.or_(s.shl(s.cast(x, _PAIR), s.const(32, _PAIR)), s.cast(y, _PAIR))


def _reference(key: np.ndarray, counter: np.ndarray) -> Any:
    def split(pair: np.ndarray) -> tuple[Any, ...]:
        pair = np.asarray(pair)
        return (pair >> np.uint64(32)).astype(_WORD), (pair & np.uint64(2**32 - 1)).astype(_WORD)

    def rotate(v: np.ndarray, r: int) -> Any:
        return (v << np.uint32(r)) | (v >> np.uint32(32 - r))

    a, b = split(key)
    extended = a ^ b ^ np.uint32(_PARITY)
    x, y = _rounds((a, b), split(counter), lambda p, q: extended if p is a else p ^ q, rotate)
    return (x.astype(_PAIR) << np.uint64(32)) | y.astype(_PAIR)


def _prepare(key: object, counter: object) -> tuple[Any, ...]:
    operands = variable_of(key), variable_of(counter)
    for x in operands:
        if x.dtype != _PAIR:
            raise DTypeError(f"threefry works on uint64, not {x.dtype}.")
    return operands, {}


elementwise(
    "threefry",
    prepare=_prepare,
    formula=_formula,
    reference=_reference,
    accepts="integer",
    vjp=NO_GRADIENT("it works on integers, which carry no derivative"),
    public=False,
    doc="64 random bits of a key and a counter, both uint64 (two words, the high one first).",
)

# -- quantiles of the normal distribution: numerators and denominators, highest power first --------

_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def _ratio(x: Any, tables: tuple[Any, ...]) -> Any:
    """A quotient of two polynomials, by Horner's scheme."""
    parts = []
    for table in tables:
        total = table[0]
        for c in table[1:]:
            total = x * total + c
        parts.append(total)
    return parts[0] / parts[1]


def _quantile_formula(q: Scalar, tail: Scalar) -> Any:
    """The normal quantile, from p - 1/2 and min(p, 1 - p)."""
    r = s.sqrt(-s.log(tail))
    size = s.select(s.le(r, 5), _ratio(r - 1.6, _TAIL), _ratio(r - 5.0, _FAR))
    size = s.select(s.eq(tail, 0), s.const(math.inf, q.dtype), size)
    near = s.le(s.abs_(q), 0.425)
    return s.select(near, q * _ratio(0.180625 - q * q, _CENTRE), s.copysign(size, q))


def _quantile(q: np.ndarray, tail: np.ndarray) -> Any:
    """The same in NumPy."""
    r = np.sqrt(-np.log(tail))
    size = np.where(r <= 5, _ratio(r - 1.6, _TAIL), _ratio(r - 5.0, _FAR))
    size = np.where(tail == 0, np.inf, size)
    return np.where(np.abs(q) <= 0.425, q * _ratio(0.180625 - q * q, _CENTRE), np.copysign(size, q))


def _density_inverse(y: Variable) -> Any:
    """1 / the normal density."""
    return op.multiply(op.exp(op.multiply(op.square(y), 0.5)), math.sqrt(2 * math.pi))


elementwise(
    "ndtri",
    formula=lambda p: _quantile_formula(p - 0.5, s.minimum(p, 1 - p)),
    reference=lambda p: _quantile(p - 0.5, np.minimum(p, 1 - p)),
    accepts="real floating-point",
    vjp=lambda g, y, p: (op.absorb(g, _density_inverse(y)),),
    doc="Quantile of the standard normal distribution, the inverse of its distribution function.",
)
elementwise(
    "erfinv",
    formula=lambda x: _quantile_formula(x * 0.5, (1 - s.abs_(x)) * 0.5) * math.sqrt(0.5),
    reference=lambda x: _quantile(x * 0.5, (1 - np.abs(x)) * 0.5) * math.sqrt(0.5),
    accepts="real floating-point",
    vjp=lambda g, y, x: (op.absorb(g, op.multiply(op.exp(op.square(y)), math.sqrt(math.pi) / 2)),),
    doc="Inverse of the error function.",
)
