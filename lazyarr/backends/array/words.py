"""Words that the standard lacks or leaves open, written over the functions of any namespace.

Each function takes the namespace's arrays and gives NumPy's values with the corrections that the
interpreter makes; a backend overrides those for which it has something better.
"""

from collections.abc import Callable
from typing import Any

from lazyarr.graph.ops.linalg import absorbed_sum


def generic_words(xp: Any, astype: Callable) -> dict[str, Callable]:
    """Return the words that any array namespace can express."""
    return {
        **_integer_words(xp),
        **_float_words(xp),
        **_layout_words(xp),
        "astype": astype,
    }


def _integer_words(xp: Any) -> dict[str, Callable]:
    """Integer division and power: no division by zero, no overflow of INT_MIN // -1."""

    def floor_divide_int(x, y):
        special = (y == 0) | (y == -1)
        out = xp.floor_divide(x, xp.where(special, 1, y))
        return xp.where(y == 0, 0, xp.where(y == -1, xp.negative(x), out))

    def floor_divide_uint(x, y):
        return xp.where(y == 0, 0, xp.floor_divide(x, xp.where(y == 0, 1, y)))

    def remainder_int(x, y):
        special = (y == 0) | (y == -1)
        return xp.where(special, 0, xp.remainder(x, xp.where(special, 1, y)))

    def remainder_uint(x, y):
        return xp.where(y == 0, 0, xp.remainder(x, xp.where(y == 0, 1, y)))

    def pow_int(x, y):
        out = xp.pow(x, xp.where(y < 0, 0, y))
        odd = xp.where((y & 1) == 1, x, x * x)
        return xp.where(y < 0, xp.where((x == 1) | (x == -1), odd, 0), out)

    return {
        "floor_divide_int": floor_divide_int,
        "floor_divide_uint": floor_divide_uint,
        "remainder_int": remainder_int,
        "remainder_uint": remainder_uint,
        "pow_int": pow_int,
    }


def _float_words(xp: Any) -> dict[str, Callable]:
    """Division with remainder after C's fmod, and the larger and smaller with NumPy's zeros."""

    def remainder_float(x, y):
        rest = xp.fmod(x, y)
        rest = xp.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
        return xp.where(rest == 0, xp.copysign(rest, y), rest)

    def floor_divide_float(x, y):
        rest = xp.fmod(x, y)
        quotient = xp.divide(x, y)
        whole = xp.divide(x - rest, y)
        whole = xp.where((rest != 0) & ((rest < 0) != (y < 0)), whole - 1, whole)
        low = xp.floor(whole)
        low = xp.where(whole - low > 0.5, low + 1, low)
        low = xp.where(low == 0, xp.copysign(low, quotient), low)
        regular = xp.isfinite(x) & xp.isfinite(y) & (y != 0)
        return xp.where(regular, low, xp.floor(quotient))

    def maximum_float(x, y):
        return xp.where(x == y, y, xp.maximum(x, y))

    def minimum_float(x, y):
        return xp.where(x == y, y, xp.minimum(x, y))

    def sign_float(x):
        return xp.where(x == 0, 0.0, xp.sign(x))

    def pow_complex(x, y):
        at_zero = xp.where(xp.real(y) > 0, 0, complex("nan+nanj"))
        out = xp.where(x == 0, at_zero, xp.pow(x, y))
        return xp.where(y == 0, 1, out)

    return {
        "pow_complex": pow_complex,
        "remainder_float": remainder_float,
        "floor_divide_float": floor_divide_float,
        "maximum_float": maximum_float,
        "minimum_float": minimum_float,
        "sign_float": sign_float,
    }


def _layout_words(xp: Any) -> dict[str, Callable]:
    """Windows and diagonals in terms of slicing."""

    def window(x, start, length, axis):
        begin = int(start)
        return x[(slice(None),) * axis + (slice(begin, begin + length),)]

    def main_diagonal(x):
        return xp.linalg.diagonal(x)

    return {"window": window, "main_diagonal": main_diagonal}


def region_key(starts: tuple, lengths: tuple, steps: tuple) -> tuple:
    """Return slices of a region whose steps are positive; starts may be 0-d arrays."""
    return tuple(
        slice(int(s), int(s) + n * k, k) for s, n, k in zip(starts, lengths, steps, strict=True)
    )


def eager_absorb(multiply: Callable, total: Callable, slow: Callable) -> Callable:
    """Return a row for `absorb` that looks for a NaN before it pays for what to do about one.

    `total` sums an array: NaN when an element is, or when infinities cancel, which costs time only.
    """

    def absorb(g, d):
        product = multiply(g, d)
        found = total(product)
        return slow(g, d, product) if found != found else product

    return absorb


def eager_product(total: Callable, slow: Callable, concat: Callable) -> Callable:
    """Return the word `absorbed_product`: a sum of products, taken again where one is NaN."""

    def absorbed_product(plain, a, b, summed):
        found = total(plain)
        if found == found:
            return plain
        return absorbed_sum(lambda g, d: slow(g, d, g * d), concat, a, b, summed)

    return absorbed_product


def python_scan(zeros: Callable, number: Callable) -> Callable:
    """Return the word `scan` of a namespace that computes at once.

    `zeros(shape, dtype)` makes an array and `number(int)` a 0-d one.
    """

    def scan(body, carry, xs, ys, length, reverse, until, count=None):
        stores = tuple(zeros((length, *shape), dtype) for shape, dtype in ys)
        total, taken = length if count is None else int(count), 0
        for t in range(total - 1, -1, -1) if reverse else range(total):
            carry, new, *stop = body(carry, tuple([x[t] for x in xs]))
            taken += 1
            for store, y in zip(stores, new, strict=True):
                store[t] = y
            if until and bool(stop[0]):
                break
        return carry, stores, number(taken)

    return scan
