"""`lazyarr.random`: draws as functions of a key, which is a value (two uint32 words).

A key gives the same integers and uniforms on every backend, and those of `jax.random` (threefry);
used twice, it gives the same draws: `split` it, or `fold_in` a number. A draw is an expression like
any other: of symbolic shape, batched, compiled with what uses it.

>>> import lazyarr as xp
>>> key = xp.random.key(0)
>>> first, second = xp.random.split(key)
>>> xp.random.normal(first, (3,)).shape
(3,)
"""

import math
from collections.abc import Mapping

import numpy as np

from lazyarr.errors import ChoiceError, DTypeError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops.indexing import gather, getitem
from lazyarr.graph.registry import op
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.control import while_loop
from lazyarr.namespace.xtensor import XTensor

__all__ = [
    "bernoulli", "beta", "bits", "categorical", "cauchy", "choice", "dirichlet", "exponential",
    "fold_in", "gamma", "gumbel", "key", "laplace", "logistic", "normal", "permutation", "randint",
    "split", "student_t", "truncated_normal", "uniform",
]  # fmt: skip

_WORD, _PAIR = dtypes.uint32, dtypes.uint64


# -- keys ------------------------------------------------------------------------------------------


def key(seed) -> Array:
    """Return the key of a seed, an int of 64 bits or an integer array without axes.

    >>> import lazyarr as xp
    >>> xp.random.key(2**32 + 7)
    Array(data[2], shape=(2,), dtype=uint32)
    """
    if isinstance(seed, int | np.integer):
        value = int(seed) % 2**64
        return Array(data(np.array([value >> 32, value % 2**32], np.uint32)))
    node = _integer(seed, "a seed")
    if node.type.ndim:
        raise ShapeError(f"a seed is one integer, not an array of shape {node.type.shape}.")
    return Array(_words(op.astype(node, _PAIR)))


def split(key, num=2) -> Array:
    """Return new keys [num, 2] (num: an int or a shape), independent of each other and of the old.

    >>> import lazyarr as xp
    >>> a, b = xp.random.split(xp.random.key(0))
    """
    return Array(_words(_bits(key, num)))


def fold_in(key, data) -> Array:
    """Return the key of a key and a number (an int or integer array without axes), such as a step.

    >>> import lazyarr as xp
    >>> keys = [xp.random.fold_in(xp.random.key(0), i) for i in range(3)]
    """
    node = _integer(data, "data of fold_in")
    counter = op.astype(op.astype(node, _WORD), _PAIR)
    return Array(_words(op.threefry(_pair(key), counter)))


def _integer(x, what: str) -> Variable:
    node = unwrap(x)
    if node.__class__ is not Variable:
        node = data(np.asarray(node))
    if node.type.dtype.kind not in "iu":
        raise DTypeError(f"{what} is an integer, not of dtype {node.type.dtype}.")
    return node


def _words(pairs: Variable) -> Variable:
    """uint32 [..., 2] from uint64 [...]."""
    high = op.astype(op.bitwise_right_shift(pairs, 32), _WORD)
    low = op.astype(op.bitwise_and(pairs, 2**32 - 1), _WORD)
    return op.stack([high, low], axis=-1)


def _pair(key) -> Variable:
    """uint64 [] from a key."""
    node = unwrap(key)
    if node.__class__ is not Variable or node.type.dtype != _WORD or node.type.shape != (2,):
        found = getattr(node, "type", type(node).__name__)
        raise DTypeError(
            f"a key is uint32 of shape (2,), not {found}; make one by random.key(seed), take one "
            "of random.split(key), and batch over keys by vectorize."
        )
    words = op.astype(node, _PAIR)
    high, low = getitem(words, 0), getitem(words, 1)
    return op.bitwise_or(op.bitwise_left_shift(high, 32), low)


# -- bits, integers, uniforms ----------------------------------------------------------------------


def _sizes(shape) -> tuple:
    if isinstance(shape, Mapping):
        return tuple(shape.values())
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)


def _labelled(node: Variable, shape) -> Array | XTensor:
    """A draw of a mapping from dims to sizes has those dims."""
    return XTensor(Array(node), dims=tuple(shape)) if isinstance(shape, Mapping) else Array(node)


def _bits(key, shape) -> Variable:
    """uint64 of a shape."""
    sizes = _sizes(shape)
    counter = op.astype(op.arange(0, shapes.product(sizes), 1), _PAIR)
    return op.reshape(op.threefry(_pair(key), counter), sizes)


def bits(key, shape=(), *, dtype=None):
    """Return random integers of all values of an unsigned dtype (uint64).

    shape: an int, a tuple (sizes of symbolic arrays are `x.sizes`), or a dict from dims to sizes,
    which gives an XTensor.
    """
    dtype = dtypes.as_dtype(dtype or _PAIR)
    if dtype.kind != "u":
        raise DTypeError(f"bits have an unsigned dtype, not {dtype}.")
    return _labelled(_narrowed(_bits(key, shape), dtype), shape)


def _narrowed(pairs: Variable, dtype: np.dtype) -> Variable:
    if dtype == _PAIR:
        return pairs
    folded = op.bitwise_xor(op.bitwise_right_shift(pairs, 32), pairs)
    return op.astype(op.bitwise_and(folded, 2 ** (8 * dtype.itemsize) - 1), dtype)


def randint(key, shape, minval, maxval, *, dtype=None):
    """Return integers from minval up to, not including, maxval (ints or arrays that broadcast)."""
    dtype = dtypes.as_dtype(dtype or dtypes.int64)
    if dtype.kind not in "iu":
        raise DTypeError(f"randint draws integers, not {dtype}.")
    if isinstance(minval, int) and isinstance(maxval, int) and not minval < maxval:
        raise ChoiceError(f"randint: no integer is at least {minval} and below {maxval}.")
    low, high = (op.astype(_integer(v, "a bound of randint"), _PAIR) for v in (minval, maxval))
    span = op.subtract(high, low)
    first, second = split(key)
    # a number of 128 bits modulo the span: the bias is below 2^-64
    factor = op.remainder(op.full((), 2**32, dtype=_PAIR), span)
    factor = op.remainder(op.multiply(factor, factor), span)
    top = op.multiply(op.remainder(_bits(first, shape), span), factor)
    offset = op.remainder(op.add(top, op.remainder(_bits(second, shape), span)), span)
    return _labelled(op.astype(op.add(low, offset), dtype), shape)


def _real(dtype) -> np.dtype:
    dtype = dtypes.as_dtype(dtype or dtypes.float64)
    if dtype.kind != "f":
        raise DTypeError(f"draws of a continuous distribution are float32 or float64, not {dtype}.")
    return dtype


def _unit(key, shape, dtype) -> Variable:
    """Multiples of 2^-52 (float32: 2^-23) from 0 to below 1."""
    dtype = _real(dtype)
    wide = dtype == dtypes.float64
    kept = op.bitwise_right_shift(_narrowed(_bits(key, shape), _PAIR if wide else _WORD),
                                  12 if wide else 9)  # fmt: skip
    signed = op.astype(kept, dtypes.int64)  # not every backend converts from unsigned
    return op.multiply(op.astype(signed, dtype), 2.0**-52 if wide else 2.0**-23)


def _between(key, shape, dtype, low, high) -> Variable:
    unit = _unit(key, shape, dtype)
    return op.maximum(op.add(op.multiply(unit, op.subtract(high, low)), low), low)


def _operand(x, dtype: np.dtype) -> object:
    """A parameter of a distribution, in the dtype of the draws."""
    node = unwrap(x)
    if node.__class__ is Variable and node.type.dtype != dtype:
        return op.astype(node, dtype)
    return node


def uniform(key, shape=(), *, dtype=None, minval=0.0, maxval=1.0):
    """Return numbers evenly distributed from minval to below maxval; shape as in `bits`."""
    dtype = _real(dtype)
    low, high = _number(minval, dtype), _number(maxval, dtype)
    return _labelled(_between(key, shape, dtype, low, high), shape)


def _number(x, dtype: np.dtype) -> Variable:
    node = _operand(x, dtype)
    return node if node.__class__ is Variable else data(np.asarray(node, dtype))


def _open(key, shape, dtype: np.dtype) -> Variable:
    """Uniform numbers in (0, 1): the smallest positive normal number takes the place of 0."""
    return op.maximum(_unit(key, shape, dtype), float(np.finfo(dtype).tiny))


# -- distributions ---------------------------------------------------------------------------------


def normal(key, shape=(), *, dtype=None):
    """Return draws of the standard normal distribution; shape as in `bits`.

    >>> import lazyarr as xp
    >>> xp.random.normal(xp.random.key(1), {"city": 3}).dims
    ('city',)
    """
    dtype = _real(dtype)
    low = float(np.nextafter(dtype.type(-1), dtype.type(0)))
    ends = (data(np.asarray(v, dtype)) for v in (low, 1.0))
    drawn = op.multiply(op.erfinv(_between(key, shape, dtype, *ends)), math.sqrt(2))
    return _labelled(drawn, shape)


def truncated_normal(key, lower, upper, shape=(), *, dtype=None):
    """Return draws of the standard normal distribution between two bounds."""
    dtype = _real(dtype)
    low, high = (op.erf(op.multiply(_number(v, dtype), math.sqrt(0.5))) for v in (lower, upper))
    drawn = op.multiply(op.erfinv(_between(key, shape, dtype, low, high)), math.sqrt(2))
    inside = op.minimum(op.maximum(drawn, _number(lower, dtype)), _number(upper, dtype))
    return _labelled(inside, shape)


def bernoulli(key, p=0.5, shape=None):
    """Return booleans that are true with probability p (shape: that of p)."""
    node = _number(p, dtypes.float64)
    shape = node.type.shape if shape is None else shape
    return _labelled(op.less(_unit(key, shape, dtypes.float64), node), shape)


def exponential(key, shape=(), *, dtype=None):
    """Return draws of the exponential distribution of mean 1."""
    unit = _unit(key, shape, dtype)
    return _labelled(op.negative(op.log1p(op.negative(unit))), shape)


def gumbel(key, shape=(), *, dtype=None):
    """Return draws of the standard Gumbel distribution."""
    return _labelled(_gumbel(key, shape, _real(dtype)), shape)


def _gumbel(key, shape, dtype: np.dtype) -> Variable:
    return op.negative(op.log(op.negative(op.log(_open(key, shape, dtype)))))


def laplace(key, shape=(), *, dtype=None):
    """Return draws of the standard Laplace distribution."""
    dtype = _real(dtype)
    ends = (data(np.asarray(v, dtype)) for v in (float(np.nextafter(dtype.type(-1), 0)), 1.0))
    u = _between(key, shape, dtype, *ends)
    drawn = op.multiply(op.sign(u), op.log1p(op.negative(op.abs(u))))
    return _labelled(op.negative(drawn), shape)


def logistic(key, shape=(), *, dtype=None):
    """Return draws of the standard logistic distribution."""
    u = _open(key, shape, _real(dtype))
    return _labelled(op.subtract(op.log(u), op.log1p(op.negative(u))), shape)


def cauchy(key, shape=(), *, dtype=None):
    """Return draws of the standard Cauchy distribution."""
    u = _open(key, shape, _real(dtype))
    return _labelled(op.tan(op.multiply(op.subtract(u, 0.5), math.pi)), shape)


def gamma(key, a, shape=None, *, dtype=None):
    """Return draws of the gamma distribution of shape parameter a and scale 1.

    Source: Marsaglia and Tsang (2000), by rejection within a loop; `stop_gradient` holds for a.
    """
    dtype = _real(dtype)
    a = op.stop_gradient(_number(a, dtype))
    shape = a.type.shape if shape is None else shape
    a = op.broadcast_to(a, _sizes(shape))
    boosted = op.where(op.less(a, 1), op.add(a, 1), a)
    d = op.subtract(boosted, 1 / 3)
    c = op.divide(1 / 3, op.sqrt(d))
    first, second = split(key)

    def more(state):
        done, _, _ = state
        return Array(op.logical_not(op.all(unwrap(done))))

    def step(state):
        done, value, loop_key = state
        following, for_x, for_u = split(loop_key, 3)
        x = unwrap(normal(for_x, _sizes(shape), dtype=dtype))
        v = op.add(1, op.multiply(c, x))
        v = op.multiply(op.multiply(v, v), v)
        u = _open(for_u, _sizes(shape), dtype)
        log_v = op.log(op.where(op.greater(v, 0), v, 1))
        bound = op.add(op.multiply(0.5, op.square(x)),
                       op.multiply(d, op.add(op.subtract(1, v), log_v)))  # fmt: skip
        good = op.logical_and(op.greater(v, 0), op.less(op.log(u), bound))
        kept = op.where(unwrap(done), unwrap(value), op.multiply(d, v))
        return Array(op.logical_or(unwrap(done), good)), Array(kept), following

    start = (Array(op.less(a, 0)), Array(op.zeros_like(a)), first)
    _, value, _ = while_loop(more, step, start)
    small = op.pow(_open(second, _sizes(shape), dtype), op.divide(1, a))
    drawn = op.multiply(unwrap(value), op.where(op.less(a, 1), small, 1))
    return _labelled(op.where(op.less_equal(a, 0), math.nan, drawn), shape)


def beta(key, a, b, shape=None, *, dtype=None):
    """Return draws of the beta distribution."""
    dtype = _real(dtype)
    a, b = _number(a, dtype), _number(b, dtype)
    shape = op.add(a, b).type.shape if shape is None else shape
    first, second = split(key)
    x, y = (unwrap(gamma(k, Array(v), _sizes(shape), dtype=dtype))
            for k, v in ((first, a), (second, b)))  # fmt: skip
    return _labelled(op.divide(x, op.add(x, y)), shape)


def dirichlet(key, alpha, shape=(), *, dtype=None):
    """Return draws of the Dirichlet distribution of concentrations alpha [k]: [*shape, k]."""
    dtype = _real(dtype)
    alpha = _number(alpha, dtype)
    full = (*_sizes(shape), alpha.type.shape[-1])
    x = unwrap(gamma(key, Array(alpha), full, dtype=dtype))
    return Array(op.divide(x, op.sum(x, axis=-1, keepdims=True)))


def student_t(key, df, shape=None, *, dtype=None):
    """Return draws of Student's t distribution with df degrees of freedom."""
    dtype = _real(dtype)
    half = op.multiply(_number(df, dtype), 0.5)
    shape = half.type.shape if shape is None else shape
    first, second = split(key)
    n = unwrap(normal(first, _sizes(shape), dtype=dtype))
    g = unwrap(gamma(second, Array(half), _sizes(shape), dtype=dtype))
    return _labelled(op.multiply(n, op.sqrt(op.divide(half, g))), shape)


# -- choices ---------------------------------------------------------------------------------------


def categorical(key, logits, *, axis=-1, shape=None):
    """Return indices along an axis, each with probability proportional to exp(logit).

    shape: sizes before those of the logits without the axis (default: none).
    """
    node = _number(logits, dtypes.float64)
    lead = () if shape is None else _sizes(shape)
    axis = axis % node.type.ndim
    noise = _gumbel(key, (*lead, *node.type.shape), node.type.dtype)
    return Array(op.argmax(op.add(noise, node), axis=axis + len(lead)))


def permutation(key, x, *, axis=0) -> Array:
    """Return an array shuffled along an axis, or the integers below an int shuffled."""
    if isinstance(x, int | shapes.Size):
        return Array(op.argsort(_bits(key, (x,))))
    node = unwrap(x)
    return Array(gather(node, op.argsort(_bits(key, (node.type.shape[axis],))), axis))


def choice(key, a, shape=(), *, replace=True, p=None, axis=0) -> Array:
    """Return elements of an array along an axis (or of the integers below an int).

    p: probabilities [n] (equal unless given); replace: whether an element can come twice.
    """
    node = None if isinstance(a, int | shapes.Size) else unwrap(a)
    n = a if node is None else node.type.shape[axis]
    sizes = _sizes(shape)
    count = shapes.product(sizes)
    if not replace:
        if isinstance(n, int) and isinstance(count, int) and count > n:
            raise ChoiceError(f"choice: {count} of {n} elements cannot be drawn without replacing.")
        weight = _bits(key, (n,)) if p is None else _race(key, n, p)
        index = op.reshape(getitem(op.argsort(weight), slice(0, count)), sizes)
    elif p is None:
        index = unwrap(randint(key, sizes, 0, Array(op.size_value(n)) if node is not None else n))
    else:
        ends = op.cumulative_sum(_number(p, dtypes.float64), axis=0)
        place = op.multiply(_unit(key, sizes, dtypes.float64), getitem(ends, -1))
        index = op.search_sorted(ends, place, side="right")
    return Array(index if node is None else gather(node, index, axis))


def _race(key, n, p) -> Variable:
    """Exponential clocks of rate p: who rings first is drawn first."""
    unit = _unit(key, (n,), dtypes.float64)
    rate = _number(p, dtypes.float64)
    return op.divide(op.negative(op.log1p(op.negative(unit))), rate)


def __dir__() -> list[str]:
    """What a prompt offers: the functions."""
    return sorted(__all__)
