"""Values on which engines differ by themselves, written out: one meaning on every backend."""

import math

import numpy as np
import pytest

from lazyarr.backends.driver import Program
from lazyarr.graph.node import symbol
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.backends
INF, NAN = math.inf, math.nan
LOW = -(2**31)

# name -> (function, [(operand, dtype)], expected, its dtype)
ROWS = {
    "maximum NaN": (op.maximum, [([NAN, 1, 2], "f8"), ([0, NAN, 1], "f8")], [NAN, NAN, 2], "f8"),
    "minimum NaN": (op.minimum, [([NAN, 1, 2], "f8"), ([0, NAN, 1], "f8")], [NAN, NAN, 1], "f8"),
    "clip NaN": (lambda x: op.clip(x, 0, 1), [([NAN, 1, 2], "f8")], [NAN, 1, 1], "f8"),
    "max NaN": (op.max, [([1, NAN, 3], "f8")], NAN, "f8"),
    "min NaN": (op.min, [([1, NAN, 3], "f4")], NAN, "f4"),
    "argmax NaN": (op.argmax, [([NAN, 4.6], "f8")], 0, "i8"),
    "argmax first of two NaN": (op.argmax, [([1, NAN, 9, NAN], "f8")], 1, "i8"),
    "argmin first": (op.argmin, [([3, 1, 1], "i4")], 1, "i8"),
    "argmin of the smallest integer": (op.argmin, [([LOW, 0], "i4")], 0, "i8"),
    "min of int8": (op.min, [([-128, 5], "i1")], -128, "i1"),
    "min of uint8": (op.min, [([0, 3], "u1")], 0, "u1"),
    "1 / min of zeros": (lambda x: op.divide(1, op.min(x)), [([0, 0, 0], "f8")], INF, "f8"),
    "x + 0.0": (lambda x: op.divide(1, op.add(x, 0.0)), [([-0.0], "f8")], [INF], "f8"),
    "x + -0.0": (lambda x: op.divide(1, op.add(x, -0.0)), [([-0.0], "f8")], [-INF], "f8"),
    "0 - x": (lambda x: op.divide(1, op.subtract(0.0, x)), [([0.0], "f8")], [INF], "f8"),
    "negative": (lambda x: op.divide(1, op.negative(x)), [([0.0], "f8")], [-INF], "f8"),
    "sqrt -0.0": (lambda x: op.divide(1, op.sqrt(x)), [([-0.0], "f8")], [-INF], "f8"),
    "round -0.4": (lambda x: op.divide(1, op.round(x)), [([-0.4], "f8")], [-INF], "f8"),
    "round halves": (op.round, [([0.5, 1.5, 2.5, -0.5, -1.5], "f8")], [0, 2, 2, 0, -2], "f8"),
    "remainder, sign of the divisor": (
        op.remainder, [([5, -5, 5, -5], "f8"), ([3, 3, -3, -3], "f8")], [2, 1, -1, -2], "f8"),
    "remainder 0": (
        lambda x, y: op.divide(1, op.remainder(x, y)),
        [([6, 6, -6], "f8"), ([3, -3, 3], "f8")], [INF, -INF, INF], "f8"),
    "integer by zero": (
        op.floor_divide, [([5, LOW, 0], "i4"), ([0, -1, 0], "i4")], [0, LOW, 0], "i4"),
    "integer remainder by zero": (
        op.remainder, [([5, LOW, -7], "i4"), ([0, -1, 4], "i4")], [0, 0, 1], "i4"),
    "unsigned by zero": (op.floor_divide, [([5], "u1"), ([0], "u1")], [0], "u1"),
    "float floor_divide": (
        op.floor_divide, [([1, -1, 0, 7], "f8"), ([0, 0, 0, -2], "f8")],
        [INF, -INF, NAN, -4], "f8"),
    "integer power": (
        op.pow, [([2, 1, -1, 0], "i8"), ([-2, -2, -3, -1], "i8")], [0, 1, -1, 0], "i8"),
    "int16 power wraps": (lambda x: op.pow(x, 2), [([222, -222], "i2")], [-16252, -16252], "i2"),
    "int8 wraps": (op.add, [([127, -128], "i1"), ([1, -1], "i1")], [-128, 127], "i1"),
    "uint8 wraps": (op.subtract, [([0, 200], "u1"), ([1, 100], "u1")], [255, 100], "u1"),
    "int8 product wraps": (op.multiply, [([100, -128], "i1"), ([100, -1], "i1")], [16, -128], "i1"),
    "abs of the smallest": (op.abs, [([LOW, -3], "i4")], [LOW, 3], "i4"),
    "small numbers compared": (op.less, [([200], "u1"), ([-1], "i1")], [False], "?"),
    "uint8 sum": (op.sum, [([200, 100], "u1")], 300, "u8"),
    "int8 prod": (op.prod, [([100, 100], "i1")], 10000, "i8"),
    "bool sum": (op.sum, [([True, True, False], "?")], 2, "i8"),
    "int32 cumulative_sum": (
        op.cumulative_sum, [([2**31 - 1, 1], "i4")], [2**31 - 1, 2**31], "i8"),
    "empty sum": (op.sum, [([], "f8")], 0, "f8"),
    "empty prod": (op.prod, [([], "f4")], 1, "f4"),
    "empty all": (op.all, [([], "?")], True, "?"),
    "empty any": (op.any, [([], "f8")], False, "?"),
    "all of NaN": (op.all, [([NAN, 1], "f8")], True, "?"),
    "logsumexp of -inf": (op.logsumexp, [([-INF, -INF], "f8")], -INF, "f8"),
    "logsumexp of inf": (op.logsumexp, [([INF, 1], "f8")], INF, "f8"),
    "logaddexp of -inf": (op.logaddexp, [([-INF], "f8"), ([-INF], "f8")], [-INF], "f8"),
    "logaddexp of inf": (op.logaddexp, [([INF], "f8"), ([INF], "f8")], [INF], "f8"),
    "expit far out": (op.expit, [([-1000, 1000], "f8")], [0, 1], "f8"),
    "softplus far out": (op.softplus, [([-1000, 1000], "f8")], [0, 1000], "f8"),
    "xlogy 0": (op.xlogy, [([0, 0, 0], "f8"), ([0, INF, NAN], "f8")], [0, 0, NAN], "f8"),
    "zero times": (lambda x: op.multiply(x, 0), [([NAN, INF, 1], "f8")], [NAN, NAN, 0], "f8"),
    "zero over": (lambda y: op.divide(0, y), [([0, NAN, 2], "f8")], [NAN, NAN, 0], "f8"),
    "sqrt of square": (lambda x: op.sqrt(op.square(x)), [(-3.0, "f8")], 3, "f8"),
    "square of sqrt": (lambda x: op.square(op.sqrt(x)), [(-1.0, "f8")], NAN, "f8"),
    "where in float32, times float64": (
        lambda c, x: op.multiply(op.where(c, np.float32(1), np.float32(0)), x),
        [(True, "?"), (0.1, "f8")], 0.1, "f8"),
    "float64 is not narrowed": (
        lambda x, y: op.multiply(x, y), [([1], "f4"), ([0.1], "f8")], [0.1], "f8"),
    "a float scalar stays precise": (lambda x: op.add(x, 0.1), [([0], "f8")], [0.1], "f8"),
    "subtracting a negative": (lambda x: op.subtract(x, -2), [(3, "i4")], 5, "i4"),
    "negating twice": (lambda x: op.negative(op.negative(x)), [(3, "f8")], 3, "f8"),
    "times -1": (lambda x: op.multiply(x, -1), [(3, "i8")], -3, "i8"),
    "minus minus": (lambda x: op.subtract(x, op.negative(x)), [(3.0, "f4")], 6, "f4"),
    "cast truncates": (lambda x: op.astype(x, "int32"), [([2.9, -2.9], "f8")], [2, -2], "i4"),
    "cast to bool": (lambda x: op.astype(x, "bool"), [([0.0, -0.0, NAN, 0.5], "f8")],
                     [False, False, True, True], "?"),
    "shift": (op.bitwise_left_shift, [([1, 3], "u1"), ([7, 1], "u1")], [128, 6], "u1"),
}  # fmt: skip
SUBNORMAL = {
    "log": (op.log, [(1e-40, "f4")], np.log(np.float32(1e-40)), "f4"),
    "not zero": (lambda x: op.equal(x, 0), [(5e-324, "f8")], False, "?"),
    "halved": (lambda x: op.multiply(x, 0.5), [(1e-323, "f8")], 5e-324, "f8"),
}
ORDER = {"f8": 1e-15, "f4": 1e-6}
# Rows that a backend fails, all of them seen to fail; the table may only shrink.
HOLES = {("jax", "x + 0.0"): "XLA simplifies x + 0.0 to x, which loses the sum of -0.0 and 0.0"}
TOGETHER = 12


def run(backend: str, rows: dict) -> dict:
    """The values of all rows, some in one program."""
    names, found = list(rows), {}
    for i in range(0, len(names), TOGETHER):
        found.update(run_together(backend, {k: rows[k] for k in names[i : i + TOGETHER]}))
    return found


def run_together(backend: str, rows: dict) -> dict:
    """The values of rows, in one program."""
    given, arrays, outputs = [], [], []
    for function, operands, _, _ in rows.values():
        values = [np.array(v, d) for v, d in operands]
        symbols = [symbol(TensorType(a.dtype, a.shape)) for a in values]
        given += symbols
        arrays += values
        outputs.append(function(*symbols))
    return dict(zip(rows, Program(Graph(given, outputs), backend)(arrays), strict=True))


def verify(rows: dict, found: dict) -> None:
    for name, (_, _, expected, dtype) in rows.items():
        want, got = np.array(expected, dtype), found[name]
        assert got.dtype == want.dtype, name
        assert got.shape == want.shape, name
        np.testing.assert_allclose(got, want, rtol=ORDER.get(dtype, 0), atol=0, err_msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows(backend: str) -> None:
    found = run(backend, ROWS)
    holes = {name for machine, name in HOLES if machine == backend}
    verify({k: row for k, row in ROWS.items() if k not in holes}, found)
    for name in holes:
        with pytest.raises(AssertionError):
            verify({name: ROWS[name]}, found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_subnormals(backend: str) -> None:
    """Kept everywhere but by XLA on the CPU, which flushes them."""
    if backend == "jax":
        pytest.skip("XLA on the CPU flushes subnormals to 0")
    verify(SUBNORMAL, run(backend, SUBNORMAL))


@pytest.mark.parametrize("backend", BACKENDS)
def test_duplicates(backend: str) -> None:
    """Many duplicates: the last set wins, every add counts."""
    n = 200_000
    x = symbol(TensorType("float64", (3,)))
    i = symbol(TensorType("int64", (n,)))
    v = symbol(TensorType("float64", (n,)))
    outputs = [f(x, i, v, axis=0) for f in (op.take_set, op.take_add)]
    index = np.arange(n) % 3
    put, added = Program(Graph([x, i, v], outputs), backend)(
        [np.zeros(3), index, np.arange(1.0 * n)]
    )
    np.testing.assert_array_equal(put, [n - 2, n - 1, n - 3])
    np.testing.assert_allclose(added, [np.arange(k, n, 3).sum() for k in range(3)], rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_inputs_and_results_are_apart(backend: str) -> None:
    """Results are fresh and writable, inputs are never written, strides of inputs do not matter."""
    x = symbol(TensorType("float64", (2, 3)))
    outputs = [x, op.add(x, 1), op.permute_dims(x, (1, 0)), x, op.reshape(x, (6,))]
    program = Program(Graph([x], outputs), backend)
    base = np.arange(24.0).reshape(4, 6)
    for array in (base[::2, ::2], base[:3:1, :2].T, np.broadcast_to(base[0, :3], (2, 3))):
        before, found = array.copy(), program([array])
        np.testing.assert_array_equal(found[2], array.T)
        for k, y in enumerate(found):
            assert y.flags.writeable
            y[...] = -1 - k
        np.testing.assert_array_equal(array, before)
        for k, y in enumerate(found):
            assert (y == -1 - k).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_set_through_a_broadcast(backend: str) -> None:
    """An update of a broadcast array writes one element, and reads before it writes."""
    x = symbol(TensorType("float64", (1,)))
    wide = op.broadcast_to(x, (2,))
    one = op.set_at(wide, op.full((), 3.0), 1, spec=(("int",),), lengths=())
    y = op.ones((2, 4))
    rows = np.array([[0, 0]])
    twice = op.take_set(y, rows, op.add(op.take(y, rows, axis=0), op.take(y, rows, axis=0)), axis=0)
    got = Program(Graph([x], [one, twice]), backend)([np.array([1.0])])
    np.testing.assert_array_equal(got[0], [1, 3])
    np.testing.assert_array_equal(got[1], [[2] * 4, [1] * 4])


@pytest.mark.parametrize("backend", BACKENDS)
def test_slices_as_python(backend: str) -> None:
    """Chains of slices for every length, where NumPy has an answer."""
    chains = [
        ((slice(2, 8),), (-1,)),
        ((slice(1, -1),), (slice(1, -1),), (slice(1, -1),)),
        ((slice(-1, -4, -1),), (slice(1, 3),)),
        ((slice(5, 2),), (slice(None, None, -1),)),
        ((slice(0, -3, -1),),),
    ]
    for length in range(10):
        x = symbol(TensorType("float64", (length,)))
        array, outputs, expected = np.arange(float(length)), [], []
        for chain in chains:
            want, y = array, x
            try:
                for key in chain:
                    want = want[key]
            except IndexError:
                with pytest.raises(IndexError):
                    for key in chain:
                        y = op.basic_index(y, key)
                continue
            for key in chain:
                y = op.basic_index(y, key)
            outputs.append(y)
            expected.append(want)
        for got, want in zip(Program(Graph([x], outputs), backend)([array]), expected, strict=True):
            np.testing.assert_array_equal(got, want)
