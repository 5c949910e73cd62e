"""Loops and choices: values, on the interpreter and every backend."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.errors import ArgumentError, ConcretizationError, DimError, DTypeError, ShapeError
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.fast

SIX = np.array([0.5, -1.0, 2.0, 1.5, -0.5, 3.0])
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def run(backend: str, f: Callable[..., Any], *arrays: Any) -> list[np.ndarray]:
    """The results of f on a backend, its arguments as inputs of the program."""
    values = [np.asarray(a) for a in arrays]
    symbols = [xp.symbol(f"x{i}", shape=v.shape, dtype=v.dtype) for i, v in enumerate(values)]
    out = f(*symbols)
    out = list(out) if isinstance(out, tuple | list) else [out]
    return [np.asarray(v) for v in xp.function(symbols, out, backend=backend)(*values)]


def every_form(x: Any) -> list[Any]:
    """One program with most forms of loops: a compilation for all of them."""
    (c, d), ys = xp.scan(
        lambda s, e: ((s[0] + e, s[1] * 0.5), {"a": s[0] * e, "b": None}), (0.0, 1.0), x
    )
    back, late = xp.scan(lambda s, e: (s * 0.5 + e, s), 0.0, x, reverse=True)
    until, early, n = xp.scan(lambda s, e: (s + e * e, s), 0.0, x, until=lambda s: s > 4.0)
    last, tail, m = xp.scan(lambda s, e: (s + e, s), 0.0, x, until=lambda s: s > 3.5, reverse=True)
    doubled = xp.while_loop(lambda s: s < 50.0, lambda s: 2.0 * s, x[3])
    counted = xp.fori_loop(1, 5, lambda i, s: s + i * x[0], 0.0)
    mapped = xp.map(lambda e: e * e, x)
    running = xp.associative_scan(lambda a, b: a + b, x)
    fibonacci = xp.scan(xp.lagged(lambda p, e: p[0] + p[1] * e, (1, 3)), (1.0, 2.0, 3.0), x)[1]
    parts = xp.scan(lambda s, e: (s + e, s), 0.0, x, checkpoint=4)
    chosen = [xp.cond(x[i] > 0, xp.sqrt, lambda v: v * v, x[i]) for i in (0, 1)]
    picked = xp.switch(xp.sum(x > 0) - 3, [lambda v: v[0], lambda v: v[1]], x)
    return [
        c, d, ys["a"], back, late, until, early, n, last, tail, m, doubled, counted, mapped,
        running, fibonacci, *parts, *chosen, picked,
    ]  # fmt: skip


def expected(x: np.ndarray) -> list[Any]:
    """The same in plain Python."""
    sums = np.concatenate([[0.0], np.cumsum(x)])
    late, c = np.zeros(6), 0.0
    for t in reversed(range(6)):
        late[t], c = c, c * 0.5 + x[t]
    fibonacci = [3.0, 2.0, 1.0]
    for e in x:
        fibonacci.append(fibonacci[-1] + fibonacci[-3] * e)
    squares = np.concatenate([[0.0], np.cumsum(x * x)])
    return [
        sums[6], 0.5**6, sums[:6] * x, c, late, squares[3], [*squares[:3], 0, 0, 0], 3,
        4.0, [0, 0, 0, 2.5, 3.0, 0.0], 3, 96.0, 10 * x[0], x * x,
        sums[1:], fibonacci[3:], sums[6], sums[:6], np.sqrt(0.5), 1.0, x[1],
    ]  # fmt: skip


@every_backend
def test_every_form(backend: str) -> None:
    for got, want in zip(run(backend, every_form, SIX), expected(SIX), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


@every_backend
def test_unknown_zero_and_unit_length(backend: str) -> None:
    x = xp.symbol("x", shape=(None,))
    c, ys = xp.scan(lambda c, e: (c * 0.5 + e, c), 1.0, x)
    c2, early, n = xp.scan(lambda c, e: (c + e * e, c), 0.0, x, until=lambda c: c > 4.0)
    call = xp.function([x], [c, ys, c2, early, n], backend=backend)
    for size in (0, 1, 4):
        c, ys, c2, early, n = (np.asarray(v) for v in call(SIX[:size]))
        state, states = 1.0, []
        for e in SIX[:size]:
            states.append(state)
            state = state * 0.5 + e
        np.testing.assert_allclose(c, state)
        np.testing.assert_allclose(ys, states)
        assert int(n) == min(size, 3) and early.shape == (size,)


def test_known_zero_and_unit_length() -> None:
    last, ys = xp.scan(lambda c, e: (c + e, c), 2.0, xp.zeros(0))
    assert float(last) == 2.0 and ys.shape == (0,)
    last, ys = xp.scan(lambda c, _: (c * 3.0, c), 2.0, length=1)
    assert float(last) == 6.0 and ys.compute().tolist() == [2.0]
    assert float(xp.fori_loop(3, 3, lambda i, c: c + i, 1.5)) == 1.5
    assert float(xp.while_loop(lambda c: c < 0.0, lambda c: c - 1.0, 1.0)) == 1.0


def test_nested_loops_and_closures() -> None:
    w = xp.asarray([1.0, 2.0])

    def row(c, x):
        inner, _ = xp.scan(lambda d, e: (d + e * w[0] + c * w[1], None), 0.0, x)
        return inner, xp.sum(w) * x

    last, ys = xp.scan(row, 1.0, xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert float(last) == 7.0 + 4 * 7.0
    assert ys.compute().tolist() == [[3.0, 6.0], [9.0, 12.0]]


def test_a_weak_number_takes_the_type_that_a_step_gives_it() -> None:
    single = xp.asarray([1.0, 2.0], dtype=xp.float32)
    assert xp.scan(lambda c, e: (c + e, None), 0.0, single)[0].dtype == xp.float32
    assert xp.scan(lambda c, e: (c + e, None), 0, single)[0].dtype == xp.float32
    assert xp.scan(lambda c, e: (c * 0.5, None), 1.0, single)[0].dtype == xp.float64
    assert xp.scan(lambda c, e: (c + 1, None), 0, single)[0].dtype == xp.int64
    assert xp.scan(lambda c, e: (c + single, None), 0.0, length=2)[0].shape == (2,)


def test_a_carry_that_changes_type_is_an_error_with_the_cast_to_write() -> None:
    start = {"a": xp.asarray(1, dtype=xp.int32), "b": xp.asarray([0.0, 0.0])}
    with pytest.raises(
        DTypeError, match=r"carry\['a'\] starts as int32\[\] and becomes float64\[\]"
    ):
        xp.scan(
            lambda c, _: ({"a": c["a"] * 0.5 + xp.asarray(1.0), "b": c["b"]}, None), start, length=2
        )
    with pytest.raises(DTypeError, match=r"xp.astype\(..., xp.int32\)"):
        xp.scan(lambda c, _: ({"a": c["a"] + xp.asarray(1.0), "b": c["b"]}, None), start, length=2)
    with pytest.raises(ShapeError, match=r"carry\['b'\] starts as float64\[2\]"):
        xp.scan(lambda c, _: ({"a": c["a"], "b": xp.sum(c["b"])}, None), start, length=2)
    with pytest.raises(ArgumentError, match="changes structure"):
        xp.scan(lambda c, _: ((c, c), None), 0.0, length=2)
    with pytest.raises(ArgumentError, match="returns a pair"):
        xp.scan(lambda c, _: c, 0.0, length=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: xp.scan(lambda c, _: (c, None), 0.0), "length"),
        (lambda: xp.scan(lambda c, _: (c, None), 0.0, xp.zeros(3), length=2), "disagree"),
        (lambda: xp.scan(lambda c, _: (c, None), 0.0, length=2, unroll=0), "unroll"),
        (lambda: xp.scan(lambda c, _: (c, None), 0.0, length=2, checkpoint=True), "checkpoint"),
        (lambda: xp.scan(lambda c, _: (c, None), 0.0, length=2, checkpoint=0), "checkpoint"),
        (lambda: xp.scan(lambda c, _: (c, None), 0.0, length=2, until=lambda c: c), "boolean"),
        (lambda: xp.while_loop(lambda c: c, lambda c: c, xp.zeros(2)), "boolean"),
        (lambda: xp.while_loop(lambda c: c < 1, lambda c: c, 0.0, max_steps=True), "max_steps"),
        (lambda: xp.cond(xp.zeros(2) > 0, lambda: 1.0, lambda: 2.0), "boolean"),
        (lambda: xp.cond(xp.asarray(True), lambda: xp.zeros(2), lambda: xp.zeros(3)), "broadcast"),
        (lambda: xp.cond(xp.asarray(True), lambda: (1, 2), lambda: 1), "structure"),
        (lambda: xp.switch(0, []), "at least one"),
        (lambda: xp.lagged(lambda p, x: x, lags=(0,)), "lags"),
        (lambda: xp.scan(xp.lagged(lambda p, x: p[0], (2,)), (0.0,), length=2), "lag of 2"),
    ],
)
def test_errors(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        wrong()


def test_python_control_flow_on_a_symbol_names_these_functions() -> None:
    x = xp.symbol("x", shape=())
    with pytest.raises(ConcretizationError, match="cond"):
        bool(x > 0)


def test_none_leaves_and_unroll() -> None:
    last, ys = xp.scan(
        lambda c, x: ({"a": c["a"] + x["p"], "b": None}, None),
        {"a": 0.0, "b": None},
        {"p": xp.asarray([1.0, 2.0]), "q": None},
        unroll=1,
    )
    assert float(last["a"]) == 3.0 and last["b"] is None and ys is None


@every_backend
def test_a_check_in_a_branch_not_taken_does_not_fail(backend: str) -> None:
    def f(x: Any, i: Any) -> Any:
        return xp.cond(i < 3, lambda: x[i], lambda: 0.0 * x[0])

    (got,) = run(backend, f, SIX[:3], np.array(7))
    assert got == 0.0
    (got,) = run(backend, f, SIX[:3], np.array(2))
    assert got == 2.0


@every_backend
def test_the_same_node_as_several_results(backend: str) -> None:
    """As two ys, as a y and the carry, and as the carry before a step."""

    def f(x: Any) -> Any:
        def step(c: Any, e: Any) -> Any:
            new = c + e
            return (new, c), (new, new, c)

        (a, b), ys = xp.scan(lambda c, e: step(c[0], e), (0.0, 0.0), x)
        return (a, b, *ys)

    a, b, *ys = run(backend, f, SIX)
    sums = np.cumsum(SIX)
    np.testing.assert_allclose([a, b], sums[[-1, -2]])
    for got, want in zip(ys, (sums, sums, [0.0, *sums[:-1]]), strict=True):
        np.testing.assert_allclose(got, want)


@every_backend
def test_steps_of_a_computed_number(backend: str) -> None:
    def f(n: Any, x: Any) -> Any:
        return xp.fori_loop(0, n, lambda i, c: c * x + i, 1.0), xp.window(xp.arange(8.0), n, 3)

    for n, want in ((0, 1.0), (3, 12.0), (-2, 1.0)):
        value, part = run(backend, f, np.array(n), np.array(2.0))
        assert value == want
        assert part.tolist() == [max(n, 0) + k for k in range(3)]


# -- named dimensions -----------------------------------------------------------------------------


def named() -> tuple[XTensor, XTensor]:
    rows = XTensor(
        np.arange(12.0).reshape(4, 3),
        dims=("i", "time"),
        coords={"time": [10, 20, 30], "i": list("abcd")},
    )
    return rows, XTensor(np.array([1.0, 2.0, 3.0, 4.0]), dims=("i",))


def test_scan_walks_a_named_dimension_and_restores_it() -> None:
    rows, w = named()
    start = XTensor(np.zeros(4), dims=("i",), coords={"i": list("abcd")})
    last, ys = xp.scan(lambda c, v: (c * 0.5 + v * w, c + v), start, rows, dim="time")
    assert ys.dims == ("time", "i") and last.dims == ("i",)
    assert ys.coords["time"].values.tolist() == [10, 20, 30]
    c, want = np.zeros(4), []
    for t in range(3):
        want.append(c + rows.values[:, t])
        c = c * 0.5 + rows.values[:, t] * w.values
    np.testing.assert_allclose(ys.values, want)
    np.testing.assert_allclose(last.values, c)


def test_with_until_the_coordinate_stays_whole() -> None:
    rows, _ = named()
    _, ys, n = xp.scan(
        lambda c, v: (c + v.sum(), v), 0.0, rows, dim="time", until=lambda c: c > 20.0
    )
    assert int(n) == 2 and ys.coords["time"].values.tolist() == [10, 20, 30]
    np.testing.assert_allclose(ys.values[2], 0.0)


def test_named_dimensions_are_checked() -> None:
    rows, w = named()
    with pytest.raises(ArgumentError, match="dim="):
        xp.scan(lambda c, v: (c, v), 0.0, rows)
    with pytest.raises(DimError, match="none is 'time'"):
        xp.scan(lambda c, v: (c, v), 0.0, w, dim="time")
    with pytest.raises(DimError, match=r"carry\['a'\] has dims \('i', 'time'\).*walks"):
        xp.scan(lambda c, v: ({"a": c["a"] + v}, None), {"a": rows}, rows, dim="time")
    with pytest.raises(DimError, match="already"):
        xp.scan(lambda c, v: (c, rows), 0.0, rows, dim="time")
    with pytest.raises(ArgumentError, match="ys with dims"):
        xp.scan(lambda c, _: (c, w), 0.0, length=2)


def test_gradients_by_named_closures() -> None:
    rows, w = named()
    scale = xp.symbol("w", shape=(4,), dims=("i",))
    double = scale * 2.0
    start = XTensor(np.zeros(4), dims=("i",))
    last, _ = xp.scan(lambda c, v: (c * 0.5 + v * double, None), start, rows, dim="time")
    outer, inner = xp.grad(last.sum(), [scale, double])
    call = xp.function([scale], [outer, inner], backend="interpret")
    a, b = call(w.values)
    want = rows.values @ [0.25, 0.5, 1.0]
    np.testing.assert_allclose(np.asarray(b), want)
    np.testing.assert_allclose(np.asarray(a), 2 * want)
    assert outer.dims == ("i",)


def test_a_choice_keeps_names() -> None:
    _, w = named()
    got = xp.cond(xp.asarray(False), lambda: w * 2.0, lambda: w + 1.0)
    assert got.dims == ("i",) and got.values.tolist() == [2.0, 3.0, 4.0, 5.0]
