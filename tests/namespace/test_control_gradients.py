"""Derivatives of loops: against closed forms, differences and each other, to order 3."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import GradientError
from lazyarr.graph.traverse import toposort
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.fast
every_backend = pytest.mark.parametrize("backend", BACKENDS)

XS = np.array([0.3, -0.4, 0.9, 0.2, -0.7])
W = np.array([0.4, 0.8, -0.3])


def power(b: Any, steps: int) -> Any:
    return xp.scan(lambda c, _: (c * b, None), 1.0, length=steps)[0]


def derivatives(f: Callable[[Any], Any], x: Any, order: int) -> list[Any]:
    """f and its derivatives: reverse once, then forward."""
    out, g = [f(x)], xp.grad(f)
    for _ in range(order):
        out.append(g(x))
        g = (lambda h: lambda b: xp.jvp(h, (b,), (1.0,))[1])(g)
    return out


@every_backend
def test_powers_to_order_3(backend: str) -> None:
    """An invariant base captured by a product: no trace may share a buffer with what it traces."""
    x, b = xp.symbol("b", shape=()), 1.3
    found = [v for steps in (1, 2, 3, 4) for v in derivatives(lambda b, n=steps: power(b, n), x, 3)]
    got = [float(np.asarray(v)) for v in xp.function([x], found, backend=backend)(b)]
    want = []
    for n in (1, 2, 3, 4):
        for k in range(4):
            factor = np.prod([n - i for i in range(k)])
            want.append(factor * b ** (n - k) if k <= n else 0.0)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_reverse_three_times() -> None:
    f: Any = lambda b: power(b, 4)  # noqa: E731
    for want in (1.3**4, 4 * 1.3**3, 12 * 1.3**2, 24 * 1.3):
        assert np.isclose(float(f(xp.asarray(1.3))), want)
        f = xp.grad(f)


def pytrees(xs: Any, w: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        h, s = c
        h = xp.tanh(h * w[0] + x * w[1])
        return (h, s * w[2] + h), h * s

    (h, s), ys = xp.scan(body, (0.3, 1.0), xs)
    return h + s + xp.sum(ys**2)


def stopping(xs: Any, w: Any) -> Any:
    c, ys, _ = xp.scan(
        lambda c, x: (c * 1.3 + xp.sin(x * w[0]), c * w[1]), 0.6, xs, until=lambda c: c > 1.1
    )
    return c + xp.sum(ys * ys)


def checkpointed(xs: Any, w: Any) -> Any:
    total = 0.0
    for k in ("sqrt", 2, 7):
        c, ys = xp.scan(
            lambda c, x: (xp.tanh(c * w[0] + x), c * w[1] * x), 0.6, xs, checkpoint=k,
            reverse=k == 2,
        )  # fmt: skip
        total = total + c + xp.sum(ys * ys * xp.arange(5.0))
    return total


def growing(xs: Any, w: Any) -> Any:
    """A history: each element from all before; a carry that is written in place."""

    def body(h: Any, i: Any) -> Any:
        return h.at[i].set(xp.tanh(xp.sum(h * h) * w[0] + w[1] * xs[i])), None

    h, _ = xp.scan(body, xs * w[2], xp.arange(5))
    return xp.sum(h * h)


def captured_twice(xs: Any, w: Any) -> Any:
    """Captures read through two nestings, one by an index that changes."""

    def outer(c: Any, i: Any) -> Any:
        d, _ = xp.scan(lambda d, _: (xp.sin(d * w[0]) + xs[i] * w[1], None), c, length=3)
        return d, d * xs[i] * w[2]

    c, ys = xp.scan(outer, w[2], xp.arange(5))
    return c + xp.sum(ys)


def history_in_a_loop(xs: Any, w: Any) -> Any:
    """A history that a nested loop captures."""

    def body(h: Any, i: Any) -> Any:
        s, _ = xp.scan(lambda s, e: (s * w[0] + e * e, None), 0.0, h)
        return h.at[i].set(s * w[1]), None

    h, _ = xp.scan(body, xs, xp.arange(5))
    return xp.sum(h * w[2])


def choices(xs: Any, w: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        new = xp.cond(x > 0, lambda x: xp.sqrt(x * w[0]) + c, lambda x: c * w[1] * x, x)
        return new, xp.switch(xp.sum(x > 0.5), [lambda: x * w[2], lambda: xp.exp(c)])

    c, ys = xp.scan(body, 0.5, xs)
    return c + xp.sum(ys)


def guarded(xs: Any, w: Any) -> Any:
    """A root of negative numbers behind where."""
    c, ys = xp.scan(
        lambda c, x: (
            c * w[0] + xp.where(x > 0, xp.sqrt(x * w[1]), 0.0),
            xp.where(x > 0, xp.log(x), c),
        ),
        0.5, xs,
    )  # fmt: skip
    return c + xp.sum(ys)


def while_and_for(xs: Any, w: Any) -> Any:
    a = xp.while_loop(lambda c: c < 5.0, lambda c: c * (1.5 + w[0]) + 0.1, w[1], max_steps=9)
    b = xp.fori_loop(0, xp.sum(xs > 0), lambda i, c: c * w[2] + xs[i], 1.0, max_steps=5)
    return a * b + xp.sum(xp.associative_scan(lambda a, b: a * b + a, xs))


def lags(xs: Any, w: Any) -> Any:
    step = xp.lagged(lambda past, x: w[0] * past[0] + w[1] * past[1] + x, (1, 3))
    return xp.sum(xp.scan(step, (0.1, w[2], 0.3), xs)[1] ** 2)


PROGRAMS = {
    f.__name__: f
    for f in (
        pytrees, stopping, checkpointed, growing, captured_twice, history_in_a_loop, choices,
        guarded, while_and_for, lags,
    )
}  # fmt: skip


def differences(value: Callable[..., Any], point: list[np.ndarray]) -> list[np.ndarray]:
    out = []
    for k, p in enumerate(point):
        slope = np.zeros(p.shape)
        for i in np.ndindex(p.shape):
            both = []
            for sign in (1, -1):
                moved = [q.copy() for q in point]
                moved[k][i] += sign * 1e-6
                both.append(float(np.asarray(value(*moved))))
            slope[i] = (both[0] - both[1]) / 2e-6
        out.append(slope)
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_by_differences(name: str) -> None:
    xs, w = xp.symbol("xs", shape=(5,)), xp.symbol("w", shape=(3,))
    loss = PROGRAMS[name](xs, w)
    value = xp.function([xs, w], loss, backend="interpret")
    first = xp.grad(loss, [xs, w])
    along = xp.sum(first[0] * xp.cos(xs)) + xp.sum(first[1] * w)
    call = xp.function([xs, w], [first, xp.grad(along, [xs, w]), along], backend="interpret")
    gradient, second, _ = call(XS, W)
    inner = xp.function([xs, w], along, backend="interpret")
    for got, want in zip(gradient, differences(value, [XS, W]), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6, atol=1e-8)
    for got, want in zip(second, differences(inner, [XS, W]), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-7)


@every_backend
@pytest.mark.parametrize("name", PROGRAMS)
def test_backends_agree(name: str, backend: str) -> None:
    """Value, gradient, and a directional derivative of the gradient."""
    if backend == "interpret":
        pytest.skip("is what the others are compared with")
    xs, w = xp.symbol("xs", shape=(5,)), xp.symbol("w", shape=(3,))
    f = PROGRAMS[name]
    value, gradient = xp.value_and_grad(lambda w: f(xs, w))(w)
    _, second = xp.jvp(xp.grad(lambda w: f(xs, w)), (w,), (xp.asarray(W),))
    results = [
        xp.function([xs, w], [value, gradient, second], backend=b)(XS, W)
        for b in ("interpret", backend)
    ]
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-12)


def test_steps_after_the_stop_contribute_nothing() -> None:
    def f(x: Any) -> Any:
        _, ys, _ = xp.scan(lambda c, e: (c + 1, xp.sqrt(e)), 0, x, until=lambda c: c >= 2)
        return xp.sum(ys)

    g = xp.grad(f)(xp.asarray([4.0, 1.0, 0.0, -1.0])).compute()
    assert g.tolist() == [0.25, 0.5, 0.0, 0.0]


def test_prefix_sums_have_a_triangular_jacobian() -> None:
    def sums(x: Any) -> Any:
        return xp.scan(lambda c, e: (c + e, c + e), 0.0, x)[1]

    x = xp.asarray(XS)
    for mode in ("reverse", "forward"):
        got = xp.jacobian(sums, mode=mode)(x).compute()
        np.testing.assert_array_equal(got, np.tril(np.ones((5, 5))))


def test_an_unbounded_loop_says_what_reverse_needs() -> None:
    f = lambda x: xp.while_loop(lambda c: c < 9.0, lambda c: c * x, x)  # noqa: E731
    with pytest.raises(GradientError, match="max_steps"):
        xp.grad(f)(xp.asarray(2.0))
    _, slope = xp.jvp(f, (xp.asarray(2.0),), (xp.asarray(1.0),))
    assert float(slope) == 4 * 2.0**3


def stored(loss: Any, by: Any) -> int:
    """Elements that the loops of a gradient stack, the carries of all steps among them."""
    nodes = toposort([xp.grad(loss, by)._v])
    return sum(
        int(np.prod(t.shape))
        for v in nodes
        if v.op is not None and v.op.name == "scan"
        for t in v.type.types[v.params["n_carry"] :]
    )


def test_a_history_is_not_stored_once_per_step() -> None:
    w = xp.symbol("w", shape=())
    start = xp.zeros(50).at[0].set(w)

    def body(h: Any, i: Any) -> Any:
        return h.at[i].set(xp.tanh(xp.sum(h * h) * w)), None

    h, _ = xp.scan(body, start, xp.arange(1, 50))
    assert stored(xp.sum(h), w) < 10 * 50


def test_checkpoints_bound_what_is_stored() -> None:
    w = xp.symbol("w", shape=())

    def loss(**how: Any) -> Any:
        c, _ = xp.scan(lambda c, _: (xp.sin(c * w) + xp.cos(c), None), w, length=10_000, **how)
        return c

    assert stored(loss(), w) >= 10_000
    assert stored(loss(checkpoint="sqrt"), w) <= 400
    assert stored(loss(checkpoint=1000), w) <= 100


def test_vectorized_loops_end_each_at_its_own_step() -> None:
    x, limit = xp.asarray([1.5, 2.0, 3.0]), xp.asarray([10.0, 100.0, 0.5])

    def f(x: Any, k: Any) -> Any:
        return xp.while_loop(lambda c: c < k, lambda c: c * x, 1.0, max_steps=30)

    pairs = list(zip(x, limit, strict=True))
    many = xp.vectorize(f)
    np.testing.assert_allclose(many(x, limit).compute(), [float(f(a, k)) for a, k in pairs])
    slopes = [float(xp.grad(f)(a, k)) for a, k in pairs]
    np.testing.assert_allclose(xp.vectorize(xp.grad(f))(x, limit).compute(), slopes)
    inside = xp.grad(lambda x: xp.sum(many(x, limit)))(x).compute()
    np.testing.assert_allclose(inside, slopes)

    def g(x: Any) -> Any:
        return xp.scan(lambda c, e: (c + e * x, c), 0.0, xp.arange(1.0, 5.0), until=lambda c: c > 7)

    found = [v.compute() for v in xp.vectorize(g)(x)]
    for i, one in enumerate(x):
        for got, want in zip(found, g(one), strict=True):
            np.testing.assert_allclose(got[i], want.compute())
