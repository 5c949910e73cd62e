"""Regularised incomplete gamma and beta functions, and their derivatives by the parameters.

The derivatives of any order come from Taylor arithmetic: every number of a series or a continued
fraction is a truncated polynomial in small changes of the parameters (a `Jet`), so that the same
recurrence that gives the value gives its derivatives, without differences. Source: NIST Digital
Library of Mathematical Functions 8.7.1, 8.9.2 (gamma), 8.17.22 (beta), 5.15 (polygamma).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazyarr.graph import numeric

Values = np.ndarray[Any, Any]
STEPS = 200_000  # terms of a series after which a value is given up, as NaN
SHIFT, TERMS = 12, 10  # of the Euler-Maclaurin sum
_TINY = 1e-300
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330,
)  # fmt: skip


def zeta(order: int, x: Any) -> Any:
    """Return sum_k (x + k)**-order for x > 0 and a whole order above 1, by Euler-Maclaurin.

    x is an array of NumPy or an expression of the scalar language.
    """
    shift = SHIFT + order // 2
    total: Any = 0.0
    for k in range(shift):
        total = _power(1.0 / (x + float(k) if k else x), order) + total
    r = 1.0 / (x + float(shift))
    square = r * r
    tail: Any = 0.0
    for j in range(TERMS, 0, -1):  # B_2j / (2j)! (s)_(2j-1) r**(2j), by Horner
        grown = 1.0
        for i in range(order, order + 2 * j - 1):
            grown *= i
        ratio = _BERNOULLI[j - 1] / math.factorial(2 * j) * grown
        tail = (tail + ratio) * square if j > 1 else tail + ratio
    head = _power(r, order - 1)
    return total + head * (1.0 / (order - 1) + r * 0.5 + square * tail)


def _power(r: Any, n: int) -> Any:
    """Return r**n by squares."""
    out, square = None, r
    while n:
        if n & 1:
            out = square if out is None else out * square
        square, n = square * square, n // 2
    return 1.0 if out is None else out


def cotangent_slope(order: int, c: Any) -> Any:
    """Return the derivative of an order of pi cot(pi x), from c = cot(pi x): a polynomial in c."""
    terms = [0.0, math.pi]
    for _ in range(order):
        slope = [k * t for k, t in enumerate(terms)][1:]
        grown = [0.0] * (len(slope) + 2)
        for k, t in enumerate(slope):
            grown[k] -= math.pi * t
            grown[k + 2] -= math.pi * t
        terms = grown
    total: Any = terms[-1]
    for t in reversed(terms[:-1]):
        total = c * total + t
    return total


def polygamma(order: int, x: Values) -> Values:
    """Return a derivative of the digamma function at positive x."""
    if order == 0:
        return np.asarray(numeric.digamma(x))
    sign = -1.0 if order % 2 == 0 else 1.0
    return np.asarray(sign * math.factorial(order) * zeta(order + 1, x))


# -- Taylor arithmetic ----------------------------------------------------------------------------


class Jet:
    """Polynomials in two small changes, cut off at a degree in each; `terms[i, j]` are arrays."""

    def __init__(self, terms: Values):
        self.terms = terms

    @classmethod
    def of(cls, value: Values, degrees: Sequence[int], **slopes: Values) -> "Jet":
        """Return value + a * change of the first parameter + b * change of the second."""
        terms = np.zeros((degrees[0] + 1, degrees[1] + 1, *value.shape))
        terms[0, 0] = value
        for name, place in (("a", (1, 0)), ("b", (0, 1))):
            if name in slopes and degrees[place[1]]:
                terms[place] = slopes[name]
        return cls(terms)

    def __add__(self, other: "Jet | float") -> "Jet":
        if isinstance(other, Jet):
            return Jet(self.terms + other.terms)
        out = self.terms.copy()
        out[0, 0] += other
        return Jet(out)

    def scaled(self, factor: Any) -> "Jet":
        """Return the product with numbers."""
        return Jet(self.terms * factor)

    def __mul__(self, other: "Jet") -> "Jet":
        out = np.zeros_like(self.terms)
        rows, columns = out.shape[:2]
        for i in range(rows):
            for j in range(columns):
                out[i:, j:] += self.terms[i, j] * other.terms[: rows - i, : columns - j]
        return Jet(out)

    def inverse(self) -> "Jet":
        """Return 1 / this, term by term."""
        first = 1.0 / self.terms[0, 0]
        out = np.zeros_like(self.terms)
        out[0, 0] = first
        for i, j in self._places():
            below = sum(
                self.terms[p, q] * out[i - p, j - q]
                for p in range(i + 1)
                for q in range(j + 1)
                if p or q
            )
            out[i, j] = -below * first
        return Jet(out)

    def exp(self) -> "Jet":
        """Return the exponential."""
        out = np.zeros_like(self.terms)
        out[0, 0] = np.exp(self.terms[0, 0])
        for i, j in self._places():
            axis = 0 if i else 1
            n = (i, j)[axis]
            total = sum(
                (p, q)[axis] * self.terms[p, q] * out[i - p, j - q]
                for p in range(i + 1)
                for q in range(j + 1)
                if (p, q)[axis]
            )
            out[i, j] = total / n
        return Jet(out)

    def away_from_zero(self) -> "Jet":
        """Return this with a tiny number in place of 0, as Lentz's method wants."""
        out = self.terms.copy()
        out[0, 0] = np.where(out[0, 0] == 0, _TINY, out[0, 0])
        return Jet(out)

    def _places(self) -> list[tuple[int, int]]:
        rows, columns = self.terms.shape[:2]
        return [(i, j) for i in range(rows) for j in range(columns) if i or j]


def _fraction(step: Callable[[int], tuple[Jet, Jet]], first: Jet) -> Jet:
    """Return first + a1 / (b1 + a2 / (b2 + ...)) by the method of Lentz, as Thompson has it."""
    f = c = first.away_from_zero()
    d = Jet(np.zeros_like(first.terms))
    open_ = np.ones(first.terms.shape[2:], bool)
    for n in range(1, STEPS):
        a, b = step(n)
        d = (b + a * d).away_from_zero().inverse()
        c = (b + a * c.inverse()).away_from_zero()
        grown = c * d
        f = f * grown
        change = grown.terms.copy()
        change[0, 0] -= 1
        open_ = np.max(np.abs(change), axis=(0, 1)) > 4e-16
        if not open_.any():
            return f
    return Jet(np.where(open_, np.nan, f.terms))


def _log_gamma(x: Values, degrees: Sequence[int], a: float, b: float) -> Jet:
    """Return log gamma(x + a * first change + b * second change)."""
    out = Jet.of(np.asarray(numeric.lgamma(x)), degrees)
    for i in range(degrees[0] + 1):
        for j in range(degrees[1] + 1):
            if i or j:
                scale = a**i * b**j / (math.factorial(i) * math.factorial(j))
                out.terms[i, j] = scale * polygamma(i + j - 1, x) if scale else 0.0
    return out


def stirling_rest(x: Any) -> Any:
    """Return log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) for x of 8 and more."""
    r = 1.0 / x
    s = r * r
    total: Any = 3617 / 122400
    for c in (-1 / 156, 691 / 360360, -1 / 1188, 1 / 1680, -1 / 1260, 1 / 360, -1 / 12):
        total = -s * total - c if c == -1 / 12 else s * total + c
    return r * total


# -- gamma ----------------------------------------------------------------------------------------


def gammainc(a: Values, x: Values, order: int = 0, upper: bool = False) -> Values:
    """Return P(a, x), or Q(a, x), differentiated by a as often as `order` says."""
    shape = np.broadcast_shapes(np.shape(a), np.shape(x))
    a, x = (np.broadcast_to(np.asarray(v, float), shape) for v in (a, x))
    out = np.full(shape, np.nan)
    with np.errstate(all="ignore"):
        inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        out[(a > 0) & (x == 0)] = float(upper and not order)
        out[(a > 0) & (x == np.inf) & np.isfinite(a)] = float(not upper and not order)
        out[(a == 0) & (x > 0)] = float(not upper) if not order else np.nan
        low = inside & (x < a + 1)
        tiny = low & (a < 1) & (x < 1.1) if upper and not order else np.zeros(shape, bool)
        high = inside & ~low
        for places, part, value in (
            (low & ~tiny, False, _lower), (high, True, _upper), (tiny, True, _upper_of_small),
        ):  # fmt: skip
            if places.any():
                terms = value(a[places], x[places], order)
                flip = part != upper
                out[places] = (float(not order) - terms) if flip else terms
    return out


def _gamma_weight(a: Values, x: Values, order: int, one: float) -> Jet:
    """Return x**a exp(-x) / gamma(a + one)."""
    log = _log_gamma(a + one, (order, 0), 1.0, 0.0).scaled(-1.0)
    if order:
        log.terms[1, 0] += np.log(x)
    mu = (x - a) / a
    far = -a * (mu - _log_ratio(x, a)) - 0.5 * np.log(2 * math.pi * a) - stirling_rest(a)
    far = far if one else far + np.log(a)
    log.terms[0, 0] = np.where(a < 8, log.terms[0, 0] + a * np.log(x) - x, far)
    return log.exp()


def _log_ratio(x: Values, y: Values) -> Values:
    """Return log(x / y), by the difference where it is small."""
    change = (x - y) / y
    return np.where(np.abs(change) < 0.5, np.log1p(change), np.log(x / y))


def _lower(a: Values, x: Values, order: int) -> Values:
    """P by its series, for x below a + 1."""
    term = Jet.of(np.ones_like(a), (order, 0)).terms[:, 0]
    total = term.copy()
    for n in range(1, STEPS):
        next_ = np.empty_like(term)
        next_[0] = term[0] / (a + n)
        for k in range(1, order + 1):
            next_[k] = (term[k] - next_[k - 1]) / (a + n)
        term = next_ * x
        total += term
        if not np.any(np.abs(term) > 1e-17 * np.abs(total)):
            break
    else:
        total[:] = np.nan
    out = _gamma_weight(a, x, order, 1.0) * Jet(total[:, None])
    return np.asarray(out.terms[order, 0] * math.factorial(order))


def _upper(a: Values, x: Values, order: int) -> Values:
    """Q by its continued fraction, for x of a + 1 and more."""
    degrees = (order, 0)

    def step(n: int) -> tuple[Jet, Jet]:
        size = np.full_like(a, float(n))
        top = Jet.of(n * (a - n), degrees, a=size)
        return top, Jet.of(x + (2 * n + 1) - a, degrees, a=-np.ones_like(a))

    below = _fraction(step, Jet.of(x + 1 - a, degrees, a=-np.ones_like(a)))
    out = _gamma_weight(a, x, order, 0.0) * below.inverse()
    return np.asarray(out.terms[order, 0] * math.factorial(order))


def _upper_of_small(a: Values, x: Values, order: int) -> Values:
    """Q for small a and x, where 1 - P would lose digits."""
    total, power = np.zeros_like(a), np.ones_like(a)
    for n in range(1, 40):
        power = power * -x / n
        total += power / (a + n)
    small = a * 0.0  # log gamma(1 + a), by its power series
    for c in (-1 / 7 * 1.0083492773819228, 1.0173430619844491 / 6, -1.0369277551433699 / 5,
              1.0823232337111382 / 4, -1.2020569031595943 / 3, 1.6449340668482264 / 2,
              -0.5772156649015329):  # fmt: skip
        small = (small + c) * a
    log = a * np.log(x) - np.where(a < 5e-3, small, np.asarray(numeric.lgamma(a + 1)))
    return np.asarray(-np.expm1(log) - np.exp(log) * a * total)


# -- beta -----------------------------------------------------------------------------------------


def betainc(a: Values, b: Values, x: Values, order: tuple[int, int] = (0, 0)) -> Values:
    """Return I_x(a, b), differentiated by a and b as often as `order` says."""
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(x))
    a, b, x = (np.broadcast_to(np.asarray(v, float), shape) for v in (a, b, x))
    out = np.full(shape, np.nan)
    value = not any(order)
    with np.errstate(all="ignore"):
        valid = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
        out[valid & (x == 0)] = 0.0
        out[valid & (x == 1)] = float(value)
        inside = valid & (x > 0) & (x < 1)
        low = inside & (x <= (a + 1) / (a + b + 2))
        for places, turned in ((low, False), (inside & ~low, True)):
            if not places.any():
                continue
            p, q, z = a[places], b[places], x[places]
            if turned:
                found = _beta(q, p, z, 1 - z, (order[1], order[0]))
            else:
                found = _beta(p, q, 1 - z, z, order)
            out[places] = (float(value) - found) if turned else found
    return out


def _beta(a: Values, b: Values, other: Values, x: Values, order: tuple[int, int]) -> Values:
    """I_x(a, b) by its continued fraction, for x below the mean; other = 1 - x."""
    degrees = order
    ones = np.ones_like(a)
    one = Jet.of(ones, degrees)

    def step(n: int) -> tuple[Jet, Jet]:
        if n == 1:
            return one, one
        m, odd = divmod(n - 1, 2)
        first = Jet.of(a + 2 * m - (0 if odd else 1), degrees, a=ones)
        second = Jet.of(a + 2 * m + (1 if odd else 0), degrees, a=ones)
        if odd:
            top = Jet.of(a + m, degrees, a=ones) * Jet.of(a + b + m, degrees, a=ones, b=ones)
            top = top.scaled(-x)
        else:
            top = Jet.of(b - m, degrees, b=ones).scaled(m * x)
        return top * (first * second).inverse(), one

    fraction = _fraction(step, Jet.of(np.zeros_like(a), degrees))
    log = _log_gamma(a + b, degrees, 1.0, 1.0)
    log = log + _log_gamma(a, degrees, 1.0, 0.0).scaled(-1.0)
    log = log + _log_gamma(b, degrees, 0.0, 1.0).scaled(-1.0)
    log.terms[0, 0] = _log_beta_weight(a, b, x, other)
    if degrees[0]:
        log.terms[1, 0] += np.log(x)
    if degrees[1]:
        log.terms[0, 1] += np.log(other)
    out = log.exp() * Jet.of(a, degrees, a=ones).inverse() * fraction
    return np.asarray(out.terms[order] * math.factorial(order[0]) * math.factorial(order[1]))


def _log_beta_weight(a: Values, b: Values, x: Values, other: Values) -> Values:
    """Return log(x**a other**b / B(a, b)), by the distance from the mode for large a, b."""
    total = a + b
    gammas = [np.asarray(numeric.lgamma(v)) for v in (total, a, b)]
    near = gammas[0] - gammas[1] - gammas[2] + a * np.log(x) + b * np.log(other)
    far = a * _log_ratio(x, a / total) + b * _log_ratio(other, b / total)
    far += 0.5 * np.log(a * b / (2 * math.pi * total))
    far += stirling_rest(total) - stirling_rest(a) - stirling_rest(b)
    return np.asarray(np.where(np.minimum(a, b) < 8, near, far))
