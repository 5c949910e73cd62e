"""The words in which jax.numpy differs from the standard, or which it lacks.

Programs are traced: a check does not end them but becomes an integer, and every gather is clamped,
so that a failing check has no other effect. XLA on the CPU flushes subnormals.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from lazyarr.backends.array.complex_words import complex_words, expm1_by_parts
from lazyarr.backends.array.library import fourier_rows, sorting_rows
from lazyarr.backends.array.table import Table
from lazyarr.backends.array.words import generic_words


def _check(error, ok, code):
    """The number of the first check that fails."""
    return jnp.where((error != 0) | jnp.all(ok), error, code)


def _absorbed_product(plain, a, b, summed):
    """A sum of products, taken again where one is NaN; XLA holds no array of the products."""

    def again():
        product = a * b
        bad = jnp.isnan(product) & ((a == 0) | (b == 0))
        return jnp.sum(jnp.where(bad, 0, product), tuple(range(summed)), dtype=plain.dtype)

    return lax.cond(jnp.isnan(jnp.sum(plain)), again, lambda: plain)


# -- indexing -------------------------------------------------------------------------------------


def _window(x, start, length, axis):
    return lax.dynamic_slice_in_dim(x, start, length, axis)


def _take(x, indices, axis):
    if x.shape[axis] == 0:  # any index fails its check; the values do not matter
        return jnp.zeros(x.shape[:axis] + jnp.shape(indices) + x.shape[axis + 1 :], x.dtype)
    return jnp.take(x, indices, axis=axis, mode="clip")


def _moved(x, v, indices, axis):
    """Return x and v with the indexed axes first, the index axes as one, and flat indices."""
    n = jnp.ndim(indices)
    front = jnp.moveaxis(x, axis, 0)
    v = jnp.moveaxis(v, range(axis, axis + n), range(n))
    flat = jnp.reshape(indices, -1)
    return front, v.reshape(flat.shape + front.shape[1:]), flat


def _take_add(x, v, indices, axis):
    front, v, flat = _moved(x, v, indices, axis)
    return jnp.moveaxis(front.at[flat].add(v, mode="drop"), 0, axis)


def _take_set(x, v, indices, axis):
    """Write, the last of duplicates winning: each place looks up its last writer."""
    front, v, flat = _moved(x, v, indices, axis)
    if not flat.shape[0]:
        return x
    order = jnp.arange(flat.shape[0])
    last = jnp.full(front.shape[0], -1, order.dtype).at[flat].max(order, mode="drop")
    hit = (last >= 0).reshape((-1,) + (1,) * (front.ndim - 1))
    return jnp.moveaxis(jnp.where(hit, jnp.take(v, last, axis=0, mode="clip"), front), 0, axis)


def _grid(v, starts, steps):
    """Return indices of a region, one array per axis."""
    rank = len(starts)
    return tuple(
        (start + step * jnp.arange(n)).reshape((-1,) + (1,) * (rank - 1 - i))
        for i, (start, step, n) in enumerate(zip(starts, steps, v.shape, strict=True))
    )


def _set_region(x, v, starts, steps):
    if all(k == 1 for k in steps):
        return lax.dynamic_update_slice(x, v, starts) if starts else v
    return x.at[_grid(v, starts, steps)].set(v, mode="drop", unique_indices=True)


def _add_region(x, v, starts, steps):
    if all(k == 1 for k in steps):
        if not starts:
            return x + v
        old = lax.dynamic_slice(x, starts, v.shape)
        return lax.dynamic_update_slice(x, old + v, starts)
    return x.at[_grid(v, starts, steps)].add(v, mode="drop", unique_indices=True)


# -- complex functions ----------------------------------------------------------------------------


def _abs(x):
    return jnp.hypot(x.real, x.imag)


def _sqrt(x):
    """The imaginary part has the sign of the operand's, also of -0 and beside NaN."""
    out, im = jnp.sqrt(x), x.imag
    real = jnp.where(jnp.isinf(im), jnp.inf, out.real)
    return lax.complex(real, jnp.copysign(jnp.where(jnp.isinf(im), jnp.inf, out.imag), im))


def _exp(x):
    return jnp.where(x.real == -jnp.inf, jnp.zeros((), x.dtype), jnp.exp(x))


def _asin(x):
    out = jnp.asin(x)
    return lax.complex(out.real, jnp.copysign(out.imag, x.imag))


def _acos(x):
    out = jnp.acos(x)
    return lax.complex(out.real, jnp.copysign(out.imag, -x.imag))


def _atan(x):
    out = jnp.atan(x)
    real = jnp.where(jnp.isnan(x.real), x.real, jnp.copysign(out.real, x.real))
    return lax.complex(real, out.imag)


def _signed(function, re=True, im=True):
    """A function whose parts have the signs of the operand's, also of -0."""

    def run(z):
        out = function(z)
        real = jnp.copysign(out.real, z.real) if re else out.real
        return lax.complex(real, jnp.copysign(out.imag, z.imag) if im else out.imag)

    return run


_COMPLEX = {
    "reciprocal": lambda z: 1 / z,
    "asinh": _signed(jnp.asinh),
    "acosh": _signed(jnp.acosh, re=False),
    "atanh": _signed(jnp.atanh),
    "sqrt": _sqrt,
    "exp": _exp,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "expm1": expm1_by_parts(jnp, lax.complex),
}


# -- special functions ----------------------------------------------------------------------------


def _digamma(x):
    out = special.digamma(x)
    return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), out)


def _trigamma(x):
    out = jnp.where((x <= 0) & (x == jnp.floor(x)), jnp.inf, special.polygamma(1, x))
    return jnp.where(jnp.isinf(x), jnp.where(x > 0, 0.0, jnp.nan), out)


# -- integer power --------------------------------------------------------------------------------


def _pow_uint(x, y):
    """Power by squaring, which wraps; jax.numpy's goes wrong for exponents above 63."""
    if isinstance(y, np.generic) and y < 64:
        return lax.integer_pow(jnp.asarray(x), int(y))
    x, y = jnp.broadcast_arrays(x, y)

    def step(state):
        x, y, out = state
        return x * x, y >> 1, jnp.where((y & 1) == 1, out * x, out)

    return lax.while_loop(lambda state: jnp.any(state[1] > 0), step, (x, y, jnp.ones_like(x)))[2]


def _pow_int(x, y):
    """The power truncated toward zero: of negative exponents 0, 1 or -1."""
    if isinstance(y, np.generic) and 0 <= y < 64:
        return _pow_uint(x, y)
    odd = jnp.where((y & 1) == 1, x, x * x)
    inverse = jnp.where((x == 1) | (x == -1), odd, 0)
    return jnp.where(y < 0, inverse, _pow_uint(x, jnp.where(y < 0, 0, y)))


# -- library and control --------------------------------------------------------------------------


def _cholesky(x):
    """XLA fills the factor of a matrix that has none with NaN."""
    factor = lax.linalg.cholesky(x, symmetrize_input=False)
    return factor, ~jnp.isnan(jnp.diagonal(factor, axis1=-2, axis2=-1))


def _solve_triangular(a, b, lower, trans, unit):
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=trans, unit_diagonal=unit
    )


def _scan(body, carry, xs, ys, length, reverse, until, count=None):
    """A scan of known length, else a while loop that writes ys into arrays of zeros."""
    if not until and count is None:
        return lax.scan(body, carry, xs, length=length, reverse=reverse)
    stores = tuple(jnp.zeros((length, *shape), dtype) for shape, dtype in ys)
    if not length:  # nothing could be read from xs, not even while tracing
        return carry, stores, jnp.zeros((), "int64")
    total = jnp.asarray(length if count is None else count, "int64")

    def going(state):
        taken, stop, *_ = state
        return (taken < total) & ~stop

    def step(state):
        taken, _, carry, stores = state
        t = total - 1 - taken if reverse else taken
        slices = tuple(lax.dynamic_index_in_dim(x, t, keepdims=False) for x in xs)
        carry, new, *stop = body(carry, slices)
        stores = tuple(
            lax.dynamic_update_index_in_dim(s, y, t, 0) for s, y in zip(stores, new, strict=True)
        )
        return taken + 1, stop[0] if until else jnp.asarray(False), carry, stores

    start = jnp.zeros((), "int64"), jnp.asarray(False), carry, stores
    taken, _, carry, stores = lax.while_loop(going, step, start)
    return carry, stores, taken


def _sort(x, axis):
    return jnp.sort(x, axis=axis, stable=True)


def _argsort(x, axis):
    return jnp.argsort(x, axis=axis, stable=True).astype("int64")


def _searchsorted(x1, x2, side):
    return jnp.searchsorted(x1, x2, side=side).astype("int64")


def make_table() -> Table:
    """Return JAX's table."""
    words = {
        **generic_words(jnp, lambda x, dtype: jnp.asarray(x).astype(dtype)),
        "asarray": np.asarray,
        "arange": lambda n, dtype: lax.iota(dtype, n),
        "pow_int": _pow_int,
        "pow_uint": _pow_uint,
        "abs_complex": _abs,
        **complex_words(jnp, lax.complex, jnp.copysign, _COMPLEX),
        "erf": special.erf,
        "erfc": special.erfc,
        "lgamma": special.gammaln,
        "digamma": _digamma,
        "trigamma": _trigamma,
        "matmul": lambda a, b: jnp.matmul(a, b, precision="highest"),
        "absorbed_product": _absorbed_product,
        "einsum": lambda text, a, b: jnp.einsum(text, a, b, precision="highest"),
        "main_diagonal": lambda x: jnp.diagonal(x, axis1=-2, axis2=-1),
        "cumulative_sum": lambda x, axis, dtype: jnp.cumsum(x, axis, dtype=dtype),
        "cumulative_prod": lambda x, axis, dtype: jnp.cumprod(x, axis, dtype=dtype),
        "window": _window,
        "take": _take,
        "take_set": _take_set,
        "take_add": _take_add,
        "set_region": _set_region,
        "add_region": _add_region,
        "cholesky": _cholesky,
        "solve_triangular": _solve_triangular,
        "scan": _scan,
        "check": _check,
    }
    rows = {
        **sorting_rows(jnp.flip, _sort, _argsort, _searchsorted),
        **fourier_rows(jnp.fft),
    }
    return Table(
        jnp, np.dtype, lambda value, dtype: dtype.type(value), words, rows, name="jax", frees=False
    )


def version() -> str:
    """Return JAX's version."""
    return jax.__version__
