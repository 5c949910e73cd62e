"""Derivatives where mathematics leaves a choice or arithmetic fails, row by row, on every backend.

All rows are one program for each backend, so that a row costs no compilation of its own.
"""

import math
from functools import cache

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.driver import Program
from lazyarr.errors import GradientError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from tests.backend_params import BACKENDS, parameter
from tests.strategies.recipes.control import loop

INF, NAN = math.inf, math.nan
backends = pytest.mark.parametrize(
    "backend", [parameter("interpret"), pytest.param("c", marks=pytest.mark.backends)]
)


def derivatives(function, *values: object) -> tuple[list[Variable], list[Variable], list]:
    """Symbols, gradients of the sum of a function, and arrays."""
    arrays = [np.asarray(v, "float64") for v in values]
    symbols = [symbol(TensorType(a.dtype, a.shape)) for a in arrays]
    out = op.sum(function(*symbols))
    found = pullback([out], symbols, [op.full((), 1.0)])
    filled = [op.zeros(x.shape) if g is None else g for x, g in zip(symbols, found, strict=True)]
    return symbols, filled, arrays


def gradient(backend: str, function, *values: object) -> list[np.ndarray]:
    """The gradient of the sum of a function, by every operand."""
    symbols, found, arrays = derivatives(function, *values)
    return Program(Graph(symbols, found), backend)(arrays)


def second(backend: str, function, x: object) -> np.ndarray:
    """The derivative of the sum of the gradient."""
    symbols, found, arrays = derivatives(function, x)
    (again,) = pullback([op.sum(found[0])], symbols, [op.full((), 1.0)])
    again = op.zeros(symbols[0].shape) if again is None else again
    return Program(Graph(symbols, [again]), backend)(arrays)[0]


# name -> (function, operands, gradients)
ROWS = {
    "max with ties": (op.max, [[1, 1, 0]], [[0.5, 0.5, 0]]),
    "min with ties": (op.min, [[2, 0, 0, 0, 1]], [[0, 1 / 3, 1 / 3, 1 / 3, 0]]),
    "max over an axis": (
        lambda x: op.max(x, axis=1), [[[1, 1], [0, 2]]], [[[0.5, 0.5], [0, 1]]]),
    "maximum tie": (op.maximum, [[1, 2], [1, 0]], [[0.5, 1], [0.5, 0]]),
    "maximum with a number": (lambda x: op.maximum(x, 0), [0], [0.5]),
    "minimum tie": (op.minimum, [3, 3], [0.5, 0.5]),
    "clip at its bounds": (
        lambda x, low, high: op.clip(x, low, high),
        [[0, 1, 0.5, -1, 2], 0, 1], [[1, 1, 1, 0, 0], 1, 1]),
    "abs at 0": (op.abs, [[0, -0.0, -2, 3]], [[0, 0, -1, 1]]),
    "sign": (op.sign, [[0, 2]], [[0, 0]]),
    "std at 0": (op.std, [[2, 2, 2]], [[0, 0, 0]]),
    "sqrt at 0": (op.sqrt, [0], [INF]),
    "sqrt at 0, cotangent 0": (lambda x: op.multiply(op.sqrt(x), 0), [0], [0]),
    "where, sqrt not taken": (
        lambda x: op.where(op.less(x, 1), x, op.sqrt(x)), [0], [1]),
    "where, log not taken": (
        lambda x: op.where(op.greater(x, 0), op.log(x), 0), [[0, -1, 2]], [[0, 0, 0.5]]),
    "where, 1 / x not taken": (
        lambda x: op.where(op.not_equal(x, 0), op.divide(1, x), 5), [[0, 2]], [[0, -0.25]]),
    "indexing passes no NaN": (
        lambda x: op.basic_index(op.sqrt(x), (1,)), [[0, 4]], [[0, 0.25]]),
    "pow 0, 2": (op.pow, [0, 2], [0, 0]),
    "pow 0, 0": (op.pow, [0, 0], [0, -INF]),
    "pow -2, 2": (op.pow, [-2, 2], [-4, NAN]),
    "pow 0, 0.5": (op.pow, [0, 0.5], [INF, 0]),
    "a constant base of 0": (lambda y: op.pow(0.0, y), [2], [0]),
    "integer power needs no log": (lambda x: op.pow(x, 3), [[-2, 0]], [[12, 0]]),
    "power 1 at 0": (lambda x: op.pow(x, 1), [0], [1]),
    "power 0 at 0": (lambda x: op.pow(x, 0), [0], [0]),
    "power -1": (lambda x: op.pow(x, -1), [2], [-0.25]),
    "a float power that is whole": (lambda x: op.pow(x, 2.0), [-3], [-6]),
    "prod with one zero": (op.prod, [[2, 0, 3]], [[0, 6, 0]]),
    "prod with two zeros": (op.prod, [[0, 0, 3]], [[0, 0, 0]]),
    "prod over an axis": (
        lambda x: op.prod(x, axis=0), [[[0, 2], [5, 3]]], [[[5, 3], [0, 2]]]),
    "cumulative_prod with a zero": (op.cumulative_prod, [[2, 0, 3]], [[1, 8, 0]]),
    "logsumexp of -inf": (op.logsumexp, [[-INF, -INF]], [[0, 0]]),
    "logsumexp, large": (op.logsumexp, [[1000, 1000]], [[0.5, 0.5]]),
    "logaddexp of equal": (op.logaddexp, [1, 1], [0.5, 0.5]),
    "logaddexp of -inf": (op.logaddexp, [-INF, -INF], [0.5, 0.5]),
    "masked logsumexp": (
        lambda x: op.logsumexp(op.where(np.array([True, False]), x, -INF)),
        [[0, 100]], [[1, 0]]),
    "masked logsumexp, far": (
        lambda x: op.logsumexp(op.where(np.array([True, False]), x, -INF)),
        [[0, 1000]], [[1, 0]]),
    "take adds duplicates": (
        lambda x: op.take(x, np.array([0, 2, 0])), [[1, 2, 3]], [[2, 0, 1]]),
    "round": (op.round, [[0.3, 2.5]], [[0, 0]]),
    "floor": (op.floor, [[0.3, 2]], [[0, 0]]),
    "ceil": (op.ceil, [0.3], [0]),
    "trunc": (op.trunc, [-0.3], [0]),
    "floor_divide": (op.floor_divide, [7, 2], [0, 0]),
    "cast to int": (lambda x: op.astype(op.astype(x, "int32"), "float64"), [2.5], [0]),
    "comparison": (lambda x: op.astype(op.less(x, 1), "float64"), [2.5], [0]),
    "argmax": (lambda x: op.astype(op.argmax(x), "float64"), [[1, 2]], [[0, 0]]),
    "remainder": (op.remainder, [[7, -7], [2, 2]], [[1, 1], [-3, 4]]),
    "atan2 at 0": (lambda y, x: op.atan2(y, x), [0, 0], [0, 0]),
    "hypot at 0": (op.hypot, [0, 0], [0, 0]),
    "norm at 0": (op.vector_norm, [[0, 0]], [[0, 0]]),
    "squared norm at 0": (lambda x: op.square(op.vector_norm(x)), [[0, 0]], [[0, 0]]),
    "xlogy at 0": (op.xlogy, [0, 0], [-INF, 0]),
    "set, the last wins": (
        lambda x, v: op.take_set(x, np.array([1, 1]), v, axis=0),
        [[1, 2, 3], [4, 5]], [[1, 0, 1], [0, 1]]),
    "a broadcast scalar": (
        lambda z: op.add(op.sum(op.subtract(op.exp(z), 0)),
                         op.sum(op.subtract(op.exp(z), op.zeros((1000,))))),
        [1], [1001 * math.e]),
    "cholesky": (
        lambda x: op.cholesky(x), [[[4, 2], [2, 3]]],
        [[[0.21338835, 0.0732233], [0.0732233, 0.35355339]]]),
}  # fmt: skip


DIAGONAL = np.diag([1.0, 1.0, 2.0, 3.0])
ROWS |= {
    "sort": (lambda x: op.multiply(op.sort(x), np.array([1.0, 2, 3])), [[3, 1, 2]], [[3, 1, 2]]),
    "searchsorted": (
        lambda x, v: op.astype(op.searchsorted(x, v), "float64"),
        [[1, 2, 3], [2, 5]], [[0, 0, 0], [0, 0]]),
    "gather adds duplicates": (
        lambda x: op.take_along_axis(x, np.array([[1, 1], [0, 1]])),
        [[[1, 2], [3, 4]]], [[[0, 2], [1, 1]]]),
    "singular values that are equal": (op.svdvals, [DIAGONAL], [np.eye(4)]),
    "eigenvalues that are equal": (op.eigvalsh, [DIAGONAL], [np.eye(4)]),
    "det of a singular matrix": (op.det, [[[1, 2], [2, 4]]], [[[4, -2], [-2, 1]]]),
    "var of equal": (op.var, [[2, 2]], [[0, 0]]),
    "softplus, far": (op.softplus, [[-1000, 1000]], [[0, 1]]),
    "expit, far": (op.expit, [[-1000, 1000]], [[0, 0]]),
    "copysign": (op.copysign, [[-2, 2], [1, 1]], [[-1, 1], [0, 0]]),
    "max of nothing but NaN elsewhere": (
        lambda x: op.max(op.where(op.greater(x, 0), x, 0)), [[-1, 2]], [[0, 1]]),
    "frobenius norm at 0": (op.matrix_norm, [[[0, 0], [0, 0]]], [[[0, 0], [0, 0]]]),
}  # fmt: skip

# The derivative of the sum of the gradient by the first operand.
SECOND = {
    "max with ties": [0, 0, 0],
    "abs at 0": [0, 0, 0, 0],
    "clip at its bounds": [0, 0, 0, 0, 0],
    "where, sqrt not taken": 0,
    "where, log not taken": [0, 0, -0.25],
    "where, 1 / x not taken": [0, 0.25],
    "indexing passes no NaN": [0, -1 / 32],
    "integer power needs no log": [-12, 0],
    "power 1 at 0": 0,
    "power 0 at 0": 0,
    "power -1": 0.25,
    "a float power that is whole": 2,
    "prod with one zero": [3, 5, 2],
    "prod with two zeros": [3, 3, 0],
    "cumulative_prod with a zero": [4, 6, 2],
    "logsumexp of -inf": [0, 0],
    "logsumexp, large": [0, 0],
    "masked logsumexp": [0, 0],
    "take adds duplicates": [0, 0, 0],
    "round": [0, 0],
    "squared norm at 0": [0, 0],
    "remainder": [0, 0],
    "a broadcast scalar": 1001 * math.e,
    "sort": [0, 0, 0],
    "det of a singular matrix": [[1, -1], [-1, 1]],
    "var of equal": [0, 0],
    "softplus, far": [0, 0],
    "expit, far": [0, 0],
    "sqrt at 0, cotangent 0": 0,
}


@cache
def all_rows(backend: str) -> dict[str, list[np.ndarray]]:
    """The gradients of every row, and the second derivatives of those that have them."""
    given, arrays, outputs, places = [], [], [], {}
    for name, (function, operands, _) in ROWS.items():
        symbols, found, values = derivatives(function, *operands)
        given += symbols
        arrays += values
        places[name] = (len(outputs), len(found))
        outputs += found
        if name in SECOND:
            (again,) = pullback([op.sum(found[0])], symbols[:1], [op.full((), 1.0)])
            places["second", name] = (len(outputs), 1)
            outputs.append(op.zeros(symbols[0].shape) if again is None else again)
    values = Program(Graph(given, outputs), backend)(arrays)
    return {name: values[start : start + n] for name, (start, n) in places.items()}


everywhere = pytest.mark.parametrize("backend", BACKENDS)


@pytest.mark.backends
@pytest.mark.parametrize("name", ROWS)
@everywhere
def test_row(backend: str, name: str) -> None:
    _, _, expected = ROWS[name]
    for got, want in zip(all_rows(backend)[name], expected, strict=True):
        want = np.asarray(want, "float64")
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-12)


@pytest.mark.backends
@pytest.mark.parametrize("name", SECOND)
@everywhere
def test_second_order_of_row(backend: str, name: str) -> None:
    (got,) = all_rows(backend)["second", name]
    np.testing.assert_allclose(got, SECOND[name], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", ROWS)
def test_forward_mode_of_row(name: str) -> None:
    """Forward mode by every element by itself gives what reverse mode gives."""
    function, operands, expected = ROWS[name]
    symbols, _, arrays = derivatives(function, *operands)
    tangents = [symbol(v.type) for v in symbols]
    (pushed,) = pushforward([op.sum(function(*symbols))], symbols, tangents)
    pushed = op.full((), 0.0) if pushed is None else pushed
    for k, want in enumerate(expected):
        for index in np.ndindex(arrays[k].shape):
            units = [np.zeros(a.shape) for a in arrays]
            units[k][index] = 1.0
            (got,) = evaluate(Graph([*symbols, *tangents], [pushed]), [*arrays, *units])
            np.testing.assert_allclose(
                got, np.asarray(want)[index], rtol=1e-7, atol=1e-12, err_msg=f"{k}, {index}"
            )


def test_vectors_of_equal_values_are_nan_or_right() -> None:
    """A derivative that needs the gap between equal singular values says NaN, never a number."""

    def norm(x: Variable) -> Variable:
        u, s, vh = picks(op.svd(x, full_matrices=False))
        return op.vector_norm(op.matmul(op.multiply(u, op.expand_dims(s, axis=0)), vh))

    (got,) = gradient("interpret", norm, DIAGONAL)
    want = DIAGONAL / np.linalg.norm(DIAGONAL)
    assert np.all(np.isnan(got) | np.isclose(got, want, atol=1e-12))


@pytest.mark.parametrize(
    ("form", "shape", "other"),
    [
        (lambda x: op.pick(op.qr(x, mode="complete"), 0), (3, 2), "reduced"),
        (lambda x: op.pick(op.qr(x), 0), (2, 3), "no fewer rows"),
        (lambda x: op.pick(op.svd(x), 0), (3, 2), "full_matrices=False"),
    ],
)
def test_forms_without_a_derivative_name_one_that_has(form, shape: tuple, other: str) -> None:
    with pytest.raises(GradientError, match=other):
        derivatives(form, np.ones(shape))


def test_complex_gradient_is_steepest_ascent() -> None:
    """df/dx + i df/dy; 0 for abs at 0."""
    z = symbol(TensorType("complex128", (2,)))
    (g,) = pullback([op.sum(op.abs(z))], [z], [op.full((), 1.0)])
    got = Program(Graph([z], [op.conj(g)]), "interpret")([np.array([0, 3 + 4j])])[0]
    np.testing.assert_allclose(got, [0, 0.6 + 0.8j])


@everywhere
@pytest.mark.backends
def test_steps_after_an_early_stop_contribute_nothing(backend: str) -> None:
    x = xp.symbol("x", shape=())

    def step(c, _):
        return c * x, None

    y, _ = xp.scan(step, 1.0, length=10, until=lambda c: c > 20.0)[:2]
    call = xp.function([x], [y, xp.grad(y, x), xp.grad(xp.grad(y, x), x)], backend=backend)
    np.testing.assert_allclose(call(3.0), [27, 27, 18])


GUARDS = {
    "where, sqrt": (lambda x: op.where(op.less(x, 1), x, op.sqrt(x)), 0.0, 0.0),
    "where, log": (lambda x: op.where(op.greater(x, 0), op.log(x), op.square(x)), 0.0, 2.0),
    "where, 1 / x": (
        lambda x: op.where(op.equal(x, 0), op.multiply(x, x), op.divide(1, x)), 0.0, 2.0),
    "times 0": (lambda x: op.multiply(op.sqrt(x), 0), 0.0, 0.0),
    "square": (op.square, 0.0, 2.0),
    "power": (lambda x: op.pow(x, 2), 0.0, 2.0),
    "power 3": (lambda x: op.pow(x, 3), 0.0, 0.0),
    "product with itself": (lambda x: op.multiply(x, x), 0.0, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDS)
@backends
def test_guards_in_second_order(backend: str, name: str) -> None:
    """No NaN from the branch not taken, also in the derivative of the derivative."""
    function, x, want = GUARDS[name]
    np.testing.assert_allclose(second(backend, function, x), want)


@pytest.mark.parametrize("name", GUARDS)
def test_guards_in_forward_mode(name: str) -> None:
    function, x, _ = GUARDS[name]
    symbols, found, arrays = derivatives(function, x)
    out = function(*symbols)
    (tangent,) = pushforward([out], symbols, [op.full((), 1.0)])
    (got,) = Program(Graph(symbols, [tangent]), "interpret")(arrays)
    (want,) = Program(Graph(symbols, found), "interpret")(arrays)
    np.testing.assert_allclose(got, want)


@backends
def test_loop_of_sums(backend: str) -> None:
    """The Jacobian of prefix sums made by a loop is lower triangular ones."""
    x = symbol(TensorType("float64", (5,)))
    carry = op.full((), 0.0)
    sums = op.pick(loop([carry, x], lambda c, x: [op.add(c, x), op.add(c, x)], 1, 1), 1)
    rows = []
    for i in range(5):
        seed = op.full((5,), 0.0)
        seed = op.set_at(seed, op.full((), 1.0), i, spec=(("int",),), lengths=())
        rows += pullback([sums], [x], [seed])
    got = Program(Graph([x], [op.stack(rows)]), backend)([np.arange(5.0)])[0]
    np.testing.assert_array_equal(got, np.tril(np.ones((5, 5))))


@backends
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_orders_of_a_polynomial(backend: str, order: int) -> None:
    x = symbol(TensorType("float64", ()))
    y = op.add(op.pow(x, 4), op.multiply(op.pow(x, 3), 2))
    for _ in range(order):
        (y,) = pullback([y], [x], [op.full((), 1.0)])
    want = [4 * 8 + 6 * 4, 12 * 4 + 12 * 2, 24 * 2 + 12, 24][order - 1]
    assert Program(Graph([x], [y]), backend)([np.array(2.0)])[0] == want
