"""Every form of loop on every backend: derivatives to order 3, batches, names, unknown lengths."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.backends
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def patient(*slow: str) -> list[Any]:
    """The backends, of those that compile slowly only what LAZYARR_TEST_BACKENDS names.

    LAZYARR_TEST_BACKENDS=numba,jax pytest tests/namespace/test_control_everywhere.py
    """
    named = os.environ.get("LAZYARR_TEST_BACKENDS", "").split(",")
    return [b for b in BACKENDS if b.values[0] not in slow or b.values[0] in named]


# -- derivatives to order 3 -----------------------------------------------------------------------


def nested(b: Any) -> Any:
    """(b^2)^3"""

    def outer(c: Any, _: Any) -> Any:
        return c * xp.scan(lambda d, _: (d * b, None), 1.0, length=2)[0], None

    return xp.scan(outer, 1.0, length=3)[0]


def stopping(b: Any) -> Any:
    """b^4: the fourth power is the first beyond 2.5"""
    return xp.scan(lambda c, _: (c * b, None), 1.0, length=9, until=lambda c: c > 2.5)[0]


def stopped_ys(b: Any) -> Any:
    """A sum over ys of which those after the stop are zero: b^2 each, two of them."""
    return xp.sum(xp.scan(lambda c, _: (c + 1, b * b), 0, length=9, until=lambda c: c >= 2)[1])


def segments(b: Any) -> Any:
    """b^7 in segments"""
    return xp.scan(lambda c, _: (c * b, None), 1.0, length=7, checkpoint="sqrt")[0]


def stopping_segments(b: Any) -> Any:
    """b^4 in segments of 3"""
    step = lambda c, _: (c * b, None)  # noqa: E731
    return xp.scan(step, 1.0, length=9, until=lambda c: c > 2.5, checkpoint=3)[0]


def while_less(b: Any) -> Any:
    """b^4"""
    return xp.while_loop(lambda c: c < 2.5, lambda c: c * b, 1.0, max_steps=20)


def computed(b: Any) -> Any:
    """b^3, three steps because of a value"""
    n = xp.astype(xp.floor(b * 2.4), xp.int64)
    return xp.fori_loop(0, n, lambda i, c: c * b, 1.0, max_steps=5)


def chosen(b: Any) -> Any:
    """b^3"""
    return xp.cond(b > 1, lambda b: b * b * b, lambda b: b, b)


def switched(b: Any) -> Any:
    """b^5"""
    return xp.switch(2, [lambda b: b, lambda b: b**2, lambda b: b**5], b)


def mapped(b: Any) -> Any:
    """3 b^3"""
    return xp.sum(xp.map(lambda e: e * e * e, xp.stack([b, b, b])))


def associative(b: Any) -> Any:
    """b + b^2 + b^3, of which b^3 alone is kept"""
    return xp.associative_scan(lambda x, y: x * y, xp.stack([b, b, b]))[2]


def history(b: Any) -> Any:
    """h[t] = h[t - 1] b"""
    start = xp.zeros(5).at[0].set(1.0)
    h, _ = xp.scan(lambda h, t: (h.at[t].set(h[t - 1] * b), None), start, xp.arange(1, 5))
    return h[4]


def lags(b: Any) -> Any:
    """y[t] = y[t - 2] b: b^3 after six steps"""
    return xp.scan(xp.lagged(lambda p, _: p[0] * b, (2,)), (1.0, 1.0), length=6)[1][-1]


def batched(b: Any) -> Any:
    """2 b^4 by a loop over a batch"""
    power = lambda e: xp.scan(lambda c, _: (c * e, None), 1.0, length=4)[0]  # noqa: E731
    return xp.sum(xp.vectorize(power)(xp.stack([b, b])))


MONOMIALS = {  # program -> (factor, exponent)
    nested: (1, 6), stopping: (1, 4), stopped_ys: (2, 2), segments: (1, 7),
    stopping_segments: (1, 4), while_less: (1, 4), computed: (1, 3), chosen: (1, 3),
    switched: (1, 5), mapped: (3, 3), associative: (1, 3), history: (1, 4), lags: (1, 3),
    batched: (2, 4),
}  # fmt: skip


def derivatives(f: Callable[[Any], Any], x: Any) -> list[Any]:
    """f and its first three derivatives: reverse once, then forward."""
    out, g = [f(x)], xp.grad(f)
    for _ in range(3):
        out.append(g(x))
        g = (lambda h: lambda b: xp.jvp(h, (b,), (1.0,))[1])(g)
    return out


FEW = [nested, while_less, history]


@pytest.mark.parametrize("backend", patient("numba", "jax"))
def test_derivatives_to_order_3(backend: str) -> None:
    check_derivatives(backend, [f for f in MONOMIALS if f not in FEW])


@every_backend
def test_derivatives_of_few_to_order_3(backend: str) -> None:
    check_derivatives(backend, FEW)


def check_derivatives(backend: str, programs: list[Callable]) -> None:
    x, b = xp.symbol("b", shape=()), 1.3
    found = [v for f in programs for v in derivatives(f, x)]
    got = [float(np.asarray(v)) for v in xp.function([x], found, backend=backend)(b)]
    want = []
    for factor, n in (MONOMIALS[f] for f in programs):
        for k in range(4):
            falling = np.prod([n - i for i in range(k)])
            want.append(factor * falling * b ** (n - k) if k <= n else 0.0)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


# -- batches --------------------------------------------------------------------------------------


def smoothed(x: Any, k: Any) -> Any:
    c, ys = xp.scan(lambda c, e: (c * 0.5 + e * k, c * e), 0.0, x)
    return c + xp.sum(ys)


def until_large(x: Any, k: Any) -> Any:
    c, ys, n = xp.scan(lambda c, e: (c + e * e, c * k), 0.0, x, until=lambda c: c > 2 * k)
    return c + xp.sum(ys) + n


def doubling(x: Any, k: Any) -> Any:
    return xp.while_loop(lambda c: c < k * 20, lambda c: c * 1.7 + xp.sum(x * x), 1.0, max_steps=40)


def counted(x: Any, k: Any) -> Any:
    n = xp.astype(k, xp.int64)
    return xp.fori_loop(0, n, lambda i, c: c * 0.5 + x[i], 1.0, max_steps=4)


def branches(x: Any, k: Any) -> Any:
    low = xp.cond(k > 2, lambda: xp.sum(x), lambda: k * x[0])
    return low + xp.switch(xp.astype(k, xp.int64), [lambda: x[1], lambda: k, lambda: x[2] * k])


def elements(x: Any, k: Any) -> Any:
    running = xp.associative_scan(lambda a, b: a * 0.5 + b * k, x)
    return xp.sum(xp.map(lambda e: xp.sin(e) * k, x)) + xp.sum(running * running)


def in_segments(x: Any, k: Any) -> Any:
    return xp.scan(lambda c, e: (xp.tanh(c * k + e), None), 0.1, x, checkpoint=2)[0]


def nest(x: Any, k: Any) -> Any:
    def outer(c: Any, e: Any) -> Any:
        d, _, _ = xp.scan(
            lambda d, f: (d + f * e, None), c, x, until=lambda d: d > k
        )  # fmt: skip
        return d * 0.5, d

    c, ys = xp.scan(outer, 0.0, x, reverse=True)
    return c + xp.sum(ys * ys)


BATCHED = (smoothed, until_large, doubling, counted, branches, elements, in_segments, nest)
XS = np.array([[0.5, -1.0, 2.0, 1.5], [1.0, 0.3, -0.2, 0.7], [-0.4, 0.1, 0.2, -2.0]])
KS = np.array([1.5, 3.0, 0.5])


@pytest.mark.parametrize("backend", patient("numba"))
def test_batches_of_every_form(backend: str) -> None:
    """A batch is its elements one by one, with their gradients."""
    x, k = xp.symbol("x", shape=(3, 4)), xp.symbol("k", shape=(3,))
    one = xp.symbol("one", shape=(4,)), xp.symbol("of", shape=())
    both = [xp.value_and_grad(f, argnums=(0, 1)) for f in BATCHED]
    call = xp.function([x, k], [xp.vectorize(f)(x, k) for f in both], backend=backend)
    alone = xp.function(list(one), [f(*one) for f in both], backend="interpret")
    found = call(XS, KS)
    for i in range(3):
        for got, want in zip(found, alone(XS[i], KS[i]), strict=True):
            np.testing.assert_allclose(np.asarray(got[0])[i], want[0], rtol=1e-11)
            for a, b in zip(got[1], want[1], strict=True):
                np.testing.assert_allclose(np.asarray(a)[i], b, rtol=1e-10, atol=1e-12)


# -- unknown lengths, None, names -----------------------------------------------------------------


@every_backend
def test_gradients_of_unknown_zero_and_unit_lengths(backend: str) -> None:
    x, w = xp.symbol("x", shape=(None,)), xp.symbol("w", shape=())

    def loss(x: Any, w: Any) -> Any:
        start = {"a": 0.5, "b": None}
        last, ys = xp.scan(
            lambda c, e: ({"a": c["a"] * w + e["p"], "b": None}, (c["a"] * e["p"], None)),
            start, {"p": x, "q": None},
        )  # fmt: skip
        lag = xp.scan(xp.lagged(lambda p, e: p[0] * w + p[1] * e, (1, 2)), (0.3, w), x)[1]
        back = xp.scan(lambda c, e: (xp.sin(c * e) + w, c), 0.2, x, reverse=True)[1]
        stop = xp.scan(lambda c, e: (c + e * e * w, None), 0.0, x, until=lambda c: c > 1.5)[0]
        return last["a"] + xp.sum(ys[0]) + xp.sum(lag * lag) + xp.sum(back) + stop

    outputs = list(xp.value_and_grad(loss, argnums=(0, 1))(x, w))
    call = xp.function([x, w], outputs, backend=backend)
    plain = xp.function([x, w], outputs, backend="interpret")
    for size in (0, 1, 2, 4):
        (a, da), (b, db) = call(XS[0, :size], 0.7), plain(XS[0, :size], 0.7)
        np.testing.assert_allclose(a, b, rtol=1e-13)
        for got, want in zip(da, db, strict=True):
            assert np.shape(got) == np.shape(want)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@every_backend
def test_named_dimensions(backend: str) -> None:
    """Walks, stops, checkpoints and gradients over a named dimension give what positions give."""
    rows = xp.symbol("rows", shape=(3, 4), dims=("i", "time"))
    w = xp.symbol("w", shape=(3,), dims=("i",))
    start = XTensor(np.zeros(3), dims=("i",))

    def loss(w: Any, **how: Any) -> Any:
        out = xp.scan(lambda c, v: (c * 0.5 + v * w, c * v), start, rows, dim="time", **how)
        return out[0].sum() + (out[1] * out[1]).sum()

    ways = [{}, {"reverse": True}, {"checkpoint": 2}, {"until": lambda c: c.sum() > 1.0}]
    out = xp.scan(
        lambda c, v: (c + v * w, c + w), start, rows, dim="time", until=lambda c: c.max() > 2
    )
    with xp.set_options(skipna=False):
        results = [xp.value_and_grad(lambda w, h=h: loss(w, **h))(w) for h in ways]
    call = xp.function([rows, w], [*results, *out[1:]], backend=backend)
    plain = xp.function([rows, w], [*results, *out[1:]], backend="interpret")
    *got, ys, count = call(XS, KS)
    *want, ys_there, count_there = plain(XS, KS)
    for (a, da), (b, db) in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-13)
        assert da.dims == ("i",)
        np.testing.assert_allclose(np.asarray(da), np.asarray(db), rtol=1e-12)
    assert ys.dims == ("time", "i") and int(count) == int(count_there) < 4
    np.testing.assert_allclose(np.asarray(ys), np.asarray(ys_there), rtol=1e-13)


@every_backend
def test_prefix_sums_have_a_triangular_jacobian(backend: str) -> None:
    x = xp.symbol("x", shape=(5,))
    sums = lambda x: xp.scan(lambda c, e: (c + e, c + e), 0.0, x)[1]  # noqa: E731
    found = [xp.jacobian(sums, mode=m)(x) for m in ("reverse", "forward")]
    for got in xp.function([x], found, backend=backend)(np.arange(5.0)):
        np.testing.assert_array_equal(got, np.tril(np.ones((5, 5))))


@every_backend
def test_a_trace_is_zero_beyond_the_steps_taken(backend: str) -> None:
    """Called again with fewer steps: nothing of the longer run is left in what is stored."""
    x, n = xp.symbol("x", shape=(6,)), xp.symbol("n", shape=(), dtype="int64")
    total, ys, _ = xp.scan(
        lambda c, e: ((c[0] * e, c[1] + 1), c[0]),
        (1.0, xp.asarray(0)), x, until=lambda c: c[1] >= n,
    )  # fmt: skip
    loss = total[0] + xp.sum(ys * ys)
    call = xp.function([x, n], [ys, xp.grad(loss, x)], backend=backend)
    point = np.linspace(0.5, 1.5, 6)
    for steps in (6, 2, 1):
        ys, slope = call(point, steps)
        taken = np.concatenate([[1.0], np.cumprod(point)])[:steps]
        np.testing.assert_allclose(ys, [*taken, *np.zeros(6 - steps)])
        assert np.all(np.asarray(slope)[steps:] == 0) and np.all(np.asarray(slope)[:steps] != 0)
