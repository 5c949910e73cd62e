"""Complex functions with the standard's special values, over the functions of any namespace.

A namespace's own function is right for finite numbers; beside infinity, NaN and signed zeros
libraries differ. On the axes functions are those of real numbers, and zeros keep their signs. Each
rule below is a function of the parts x, y of z that yields `(condition, real part, imaginary
part)`: where the condition holds, the result has these parts. Rules of the circular functions are
those of the hyperbolic ones turned by i.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

HALF = math.pi / 2
NAN, INF = math.nan, math.inf


def complex_words(
    xp: Any, make: Callable, copysign: Callable, native: dict[str, Callable]
) -> dict[str, Callable]:
    """Return `name_complex` for each function of the table.

    `make(re, im)` builds a complex array; `native` holds what to use instead of the namespace's
    own function.
    """
    found = {}
    for name, rules in _rules(xp, copysign).items():
        found[f"{name}_complex"] = _patched(xp, make, native.get(name) or getattr(xp, name), rules)
    return found


def _patched(xp: Any, make: Callable, function: Callable, rules: Callable) -> Callable:
    def run(z):
        out = function(z)
        re, im = xp.real(out), xp.imag(out)
        for where, a, b in rules(xp.real(z), xp.imag(z)):
            re, im = xp.where(where, a, re), xp.where(where, b, im)
        return make(re, im)

    return run


def expm1_by_parts(xp: Any, make: Callable) -> Callable:
    """Return exp(z) - 1 as expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y)."""

    def run(z):
        x, y = xp.real(z), xp.imag(z)
        half = xp.sin(y / 2)
        re = xp.expm1(x) * xp.cos(y) - 2 * half * half
        re = xp.where(re == 0, 0.0, re)  # XLA would drop the sum with 0 that makes -0 a zero
        return make(re, xp.where(y == 0, y, xp.exp(x) * xp.sin(y)))

    return run


def _half_known(xp: Any, x: Any, y: Any) -> Any:
    """One part is NaN and the other finite: nothing is known of the result."""
    return (xp.isnan(x) & xp.isfinite(y)) | (xp.isfinite(x) & xp.isnan(y))


def _rules(xp: Any, copysign: Callable) -> dict[str, Callable]:
    hyperbolic = _hyperbolic(xp, copysign)

    def sin(x, y) -> Iterator[tuple]:
        yield y == 0, xp.sin(x), xp.where(xp.cos(x) < 0, -y, y)
        yield x == 0, x, xp.sinh(y)
        yield (y == 0) & ~xp.isfinite(x), NAN, y
        yield xp.isinf(y) & ~xp.isfinite(x), NAN, INF

    def cos(x, y) -> Iterator[tuple]:
        yield y == 0, xp.cos(x), xp.where(xp.sin(x) < 0, y, -y)
        yield from hyperbolic["cosh"](-y, x)

    def acos(x, y) -> Iterator[tuple]:
        yield _half_known(xp, x, y), NAN, NAN
        yield (x == 0) & xp.isnan(y), HALF, NAN
        yield (y == 0) & (xp.abs(x) <= 1), xp.acos(x), -y

    def turned(name: str) -> Callable:
        """f(z) = -i h(iz), as for tan and tanh: iz has the parts (-y, x)."""

        def run(x, y) -> Iterator[tuple]:
            for where, a, b in hyperbolic[name](-y, x):
                yield where, b, -a

        return run

    def tan(x, y) -> Iterator[tuple]:
        yield y == 0, xp.tan(x), y
        yield from turned("tanh")(x, y)

    def atan(x, y) -> Iterator[tuple]:
        yield y == 0, xp.atan(x), y
        yield from turned("atanh")(x, y)

    circular = {"sin": sin, "cos": cos, "acos": acos, "tan": tan}
    inverse = {"asin": turned("asinh"), "atan": atan}
    return {**_exponential(xp), **hyperbolic, **circular, **inverse}


def _exponential(xp: Any) -> dict[str, Callable]:
    def exp(x, y) -> Iterator[tuple]:
        yield y == 0, xp.exp(x), y
        yield (x == INF) & ~xp.isfinite(y), INF, NAN
        yield (x == -INF) & ~xp.isfinite(y), 0.0, 0.0
        sides = (xp.where(part(y) < 0, -0.0, 0.0) for part in (xp.cos, xp.sin))
        yield (x == -INF) & xp.isfinite(y) & (y != 0), *sides

    def expm1(x, y) -> Iterator[tuple]:
        yield (x == INF) & ~xp.isfinite(y), INF, NAN
        yield (x == -INF) & ~xp.isfinite(y), -1.0, 0.0
        yield (x == -INF) & xp.isfinite(y), -1.0, xp.exp(x) * xp.sin(y)

    def log(x, y) -> Iterator[tuple]:
        yield (xp.isinf(x) & xp.isnan(y)) | (xp.isnan(x) & xp.isinf(y)), INF, NAN

    def log1p(x, y) -> Iterator[tuple]:
        yield from log(x, y)
        yield xp.isfinite(x) & (y == INF), INF, HALF
        yield xp.isfinite(x) & (y == -INF), INF, -HALF

    def sqrt(x, y) -> Iterator[tuple]:
        yield (x == INF) & xp.isnan(y), INF, NAN
        yield (x == -INF) & xp.isnan(y), NAN, INF

    def reciprocal(x, y) -> Iterator[tuple]:
        yield (x == 0) & (y == 0), NAN, NAN
        yield (xp.isinf(x) & ~xp.isfinite(y)) | (~xp.isfinite(x) & xp.isinf(y)), NAN, NAN

    def sign(x, y) -> Iterator[tuple]:
        across, along = xp.isinf(x), xp.isinf(y)
        yield (x == 0) & (y == 0), 0.0, 0.0
        yield across & ~along, xp.sign(x), 0.0
        yield along & ~across, 0.0, xp.sign(y)
        yield (across & along) | xp.isnan(x) | xp.isnan(y), NAN, NAN

    logarithms = dict.fromkeys(("log", "log2", "log10"), log)
    return {"exp": exp, "expm1": expm1, "sqrt": sqrt, "reciprocal": reciprocal, "sign": sign,
            "log1p": log1p, **logarithms}  # fmt: skip


def _hyperbolic(xp: Any, copysign: Callable) -> dict[str, Callable]:
    def cosh(x, y) -> Iterator[tuple]:
        yield y == 0, xp.cosh(x), xp.where(xp.signbit(x), -y, y)
        yield (x == 0) & ~xp.isfinite(y), NAN, 0.0
        yield xp.isinf(x) & ~xp.isfinite(y), INF, NAN

    def sinh(x, y) -> Iterator[tuple]:
        yield y == 0, xp.sinh(x), y
        yield (x == 0) & ~xp.isfinite(y), x, NAN
        yield xp.isinf(x) & ~xp.isfinite(y), INF, NAN

    def tanh(x, y) -> Iterator[tuple]:
        yield y == 0, xp.tanh(x), y
        yield (x == 0) & ~xp.isfinite(y), x, NAN
        yield xp.isinf(x) & xp.isfinite(y), xp.sign(x), copysign(y * 0, y)

    def asinh(x, y) -> Iterator[tuple]:
        yield _half_known(xp, x, y), NAN, NAN
        yield xp.isnan(x) & (y == 0), NAN, y

    def acosh(x, y) -> Iterator[tuple]:
        yield _half_known(xp, x, y), NAN, NAN
        yield (x == 0) & xp.isnan(y), NAN, HALF

    def atanh(x, y) -> Iterator[tuple]:
        yield xp.isnan(y) | (xp.isnan(x) & xp.isfinite(y)), NAN, NAN
        yield xp.isnan(y) & (x == 0), x, NAN
        yield xp.isnan(y) & xp.isinf(x), 1 / x, NAN

    return {"cosh": cosh, "sinh": sinh, "tanh": tanh, "asinh": asinh, "acosh": acosh,
            "atanh": atanh}  # fmt: skip
