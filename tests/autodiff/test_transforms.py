"""The public transforms: pytrees, auxiliary values, unused inputs, rules of the user's own."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor, special
from lazyarr.errors import ArgumentError, GradientError
from lazyarr.graph.traverse import toposort
from lazyarr.namespace.tree import flatten
from tests.backend_params import BACKENDS

X = np.array([0.1, -2.0, 3.0])
SCALE = 1.5


# -- grad and its options -------------------------------------------------------------------------


def test_pytrees_in_and_out() -> None:
    def f(p: dict[str, Any]) -> Any:
        return xp.sum(p["a"] ** 2) + p["b"][0] * 3

    g = xp.grad(f)({"a": X, "b": [2.0]})
    assert set(g) == {"a", "b"}
    np.testing.assert_array_equal(g["a"].compute(), 2 * X)
    assert float(g["b"][0]) == 3


def test_aux_is_handed_through() -> None:
    def f(x: Any) -> Any:
        return xp.sum(x**2), {"twice": x * 2}

    g, aux = xp.grad(f, has_aux=True)(X)
    np.testing.assert_array_equal(aux["twice"].compute(), 2 * X)
    (value, aux), again = xp.value_and_grad(f, has_aux=True)(X)
    np.testing.assert_array_equal(again.compute(), g.compute())
    assert float(value) == np.sum(X**2)
    with pytest.raises(ArgumentError, match="pair"):
        xp.grad(lambda x: xp.sum(x), has_aux=True)(X)


@pytest.mark.parametrize("numbers", [1, (0, 1), (-1,)])
def test_argnums(numbers: Any) -> None:
    g = xp.grad(lambda x, y: xp.sum(x * y), numbers)(X, X + 1)
    want = {1: X, (0, 1): (X + 1, X), (-1,): (X,)}[numbers]
    np.testing.assert_array_equal(xp.compute(g), want)
    with pytest.raises(ArgumentError, match="argument 2"):
        xp.grad(lambda x, y: xp.sum(x * y), 2)(X, X)


def test_unused_inputs() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 2

    assert float(xp.grad(f, 1)(1.0, 2.0)) == 0
    with pytest.warns(UserWarning, match="input 1"):
        assert float(xp.grad(f, (0, 1), unused="warn")(1.0, 2.0)[1]) == 0
    with pytest.raises(GradientError, match="input 1"):
        xp.value_and_grad(f, (0, 1), unused="raise")(1.0, 2.0)
    x, y = xp.asarray(1.0), xp.asarray(2.0)
    with pytest.raises(GradientError, match="input 0"):
        xp.grad(x * 2, y, unused="raise")
    with pytest.raises(ArgumentError, match="unused"):
        xp.grad(f, unused="ignore")(1.0, 2.0)


def test_integers_are_refused_by_name() -> None:
    with pytest.raises(GradientError, match=r"argument 0\['b'\]\[0\].*int64"):
        xp.grad(lambda d: d["a"])({"a": 1.0, "b": [2]})


def test_complex_values_are_refused() -> None:
    with pytest.raises(GradientError, match="real"):
        xp.grad(lambda z: z * z)(1 + 2j)


def test_gradient_by_a_complex_number_is_steepest_ascent() -> None:
    z = 1 + 2j
    for f, want in ((lambda z: xp.real(z * z), 2 * np.conj(z)), (lambda z: xp.abs(z) ** 2, 2 * z)):
        np.testing.assert_allclose(xp.grad(f)(z).compute(), want)
    assert xp.grad(xp.abs)(0j).compute() == 0


def test_holomorphic_derivative_is_a_jvp() -> None:
    _, t = xp.jvp(lambda z: z**3, (1 + 2j,), (1j,))
    np.testing.assert_allclose(t.compute(), 3 * (1 + 2j) ** 2 * 1j)


# -- vjp, jvp, linearize --------------------------------------------------------------------------


def pair(p: dict[str, Any], q: Any) -> dict[str, Any]:
    return {"u": p["a"] * p["b"], "v": xp.exp(q)}


def test_vjp_of_pytrees() -> None:
    y, back = xp.vjp(pair, {"a": 2.0, "b": 3.0}, X)
    p, q = back({"u": 1.0, "v": X})
    assert (float(p["a"]), float(p["b"])) == (3.0, 2.0)
    np.testing.assert_allclose(q.compute(), X * np.exp(X))
    assert float(y["u"]) == 6
    with pytest.raises(ArgumentError, match="structure"):
        back({"u": 1.0})


def test_jvp_of_pytrees() -> None:
    y, t = xp.jvp(pair, ({"a": 2.0, "b": 3.0}, X), ({"a": 1.0, "b": 10.0}, 2 * X))
    assert float(t["u"]) == 23
    np.testing.assert_allclose(t["v"].compute(), 2 * X * np.exp(X))
    assert float(y["u"]) == 6


def test_linearize_records_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return xp.sin(x), "aux"

    y, push, aux = xp.linearize(f, X, has_aux=True)
    for t in (X, X + 1):
        np.testing.assert_allclose(push(t).compute(), np.cos(X) * t)
    assert calls == [1] and aux == "aux"
    np.testing.assert_allclose(y.compute(), np.sin(X))


def test_linearize_keeps_names() -> None:
    x = XTensor(X, dims=("a",), coords={"a": [1, 2, 3]})
    _, push = xp.linearize(lambda x: x.sum("a") * x, x)
    t = push(x)
    assert t.dims == ("a",)
    assert list(t.coords["a"].values) == [1, 2, 3]


# -- rules of the user's own ----------------------------------------------------------------------


def plain(x: Any, s: Any) -> Any:
    return {"a": xp.log1p(xp.exp(x)) * s, "b": xp.sum(x) * 2}


@xp.custom_vjp
def by_reverse(x: Any, k: int, s: Any) -> Any:
    return {"a": xp.log1p(xp.exp(x)) * s, "b": xp.sum(x) * k}


@by_reverse.defvjp
def _(g: Any, y: Any, x: Any, k: int, s: Any) -> Any:
    return g["a"] * special.expit(x) * s + g["b"] * k, None, xp.sum(g["a"] * y["a"] / s)


@xp.custom_jvp
def by_forward(x: Any, k: int, s: Any) -> Any:
    return {"a": xp.log1p(xp.exp(x)) * s, "b": xp.sum(x) * k}


@by_forward.defjvp
def _(t: Any, y: Any, x: Any, k: int, s: Any) -> Any:
    assert t[1] is None
    slope = t[0] * special.expit(x) * s + t[2] * y["a"] / s
    return {"a": slope, "b": xp.sum(t[0]) * k}


def loss(parts: Callable) -> Callable:
    def f(x: Any, s: Any) -> Any:
        r = parts(x, s)
        return xp.sum(r["a"] ** 2) + r["b"]

    return f


RULED = {
    "vjp": loss(lambda x, s: by_reverse(x, 2, s)),
    "jvp": loss(lambda x, s: by_forward(x, 2, s)),
}


def everything(f: Callable, x: Any, s: Any) -> Any:
    return (
        f(x, s),
        xp.grad(f, (0, 1))(x, s),
        xp.jvp(f, (x, s), (x, s))[1],
        xp.hessian(f)(x, s),
        xp.hvp(f, (x, s), (x, s)),
        xp.grad(lambda x: xp.sum(xp.grad(lambda x: xp.sum(xp.grad(f)(x, s)))(x)))(x),
    )


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", RULED)
def test_own_rule_as_if_found(kind: str, backend: str) -> None:
    """A right rule changes nothing: both modes, three orders, every backend."""
    x, s = xp.symbol("x", shape=(3,)), xp.symbol("s", shape=())
    call = xp.function([x, s], everything(RULED[kind], x, s), backend=backend)
    plainly = xp.function([x, s], everything(loss(plain), x, s), backend="interpret")
    got, want = (flatten(c(X, SCALE))[0] for c in (call, plainly))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert call.fallbacks() == []
    again = pickle.loads(pickle.dumps(call))
    np.testing.assert_array_equal(flatten(again(X, SCALE))[0][0], got[0])


@pytest.mark.parametrize("kind", RULED)
def test_own_rule_is_batched(kind: str) -> None:
    rows = np.stack([X, X + 1, 2 * X])

    def of(f: Callable) -> list:
        each = xp.vectorize(f, in_axes=(0, None))
        within = xp.vectorize(xp.grad(f, (0, 1)), in_axes=(0, None))(rows, SCALE)
        around = xp.grad(lambda r, s: xp.sum(each(r, s)), (0, 1))(rows, SCALE)
        return flatten(xp.compute((within, around)))[0]

    for a, b in zip(of(RULED[kind]), of(loss(plain)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_own_rule_in_a_loop() -> None:
    def of(f: Callable) -> np.ndarray:
        def step(c: Any, _: Any) -> Any:
            return c * 0.9 + xp.exp(-f(c, 0.3)) * c, None

        return xp.grad(lambda x: xp.sum(xp.scan(step, x, length=4)[0]))(X).compute()

    for f in RULED.values():
        np.testing.assert_allclose(of(f), of(loss(plain)), rtol=1e-12)


def test_the_rule_counts_not_the_function() -> None:
    f = xp.custom_vjp(lambda x: xp.astype(x > 0, xp.float64))
    f.defvjp(lambda g, y, x: g * 7)  # a straight-through estimator
    np.testing.assert_array_equal(xp.grad(lambda x: xp.sum(f(x)))(X).compute(), [7, 7, 7])
    assert float(xp.jvp(f, (X,), (X,))[1][0]) == pytest.approx(0.7)


def test_own_rule_with_names() -> None:
    f = xp.custom_vjp(lambda a, b: a * b)
    f.defvjp(lambda g, y, a, b: ((2 * g * b).transpose(), (g * a).sum("t")))
    a = XTensor(np.arange(6.0).reshape(2, 3), dims=("s", "t"), coords={"t": [1, 2, 3]})
    b = XTensor([1.0, 2.0], dims=("s",))
    ga, gb = xp.grad(lambda a, b: f(a, b).sum(), (0, 1))(a, b)
    assert ga.dims == ("s", "t") and gb.dims == ("s",)
    np.testing.assert_array_equal(ga.values, np.array([[2.0], [4.0]]) * np.ones((2, 3)))
    np.testing.assert_array_equal(gb.values, [3.0, 12.0])


def test_own_rule_of_complex_numbers() -> None:
    f = xp.custom_vjp(lambda z: z * z)
    f.defvjp(lambda g, y, z: g * xp.conj(2 * z))
    h = xp.custom_jvp(lambda z: z * z)
    h.defjvp(lambda t, y, z: 2 * z * t[0])
    z = 1 + 2j
    for g in (f, h):
        np.testing.assert_allclose(xp.grad(lambda z, g=g: xp.abs(g(z)))(z).compute(), 2 + 4j)
        np.testing.assert_allclose(xp.jvp(g, (z,), (1j,))[1].compute(), 2 * z * 1j)


def test_derivative_by_what_is_read_from_outside_is_refused() -> None:
    def f(w: Any) -> Any:
        h = xp.custom_vjp(lambda x: x * w)
        h.defvjp(lambda g, y, x: g * w)
        return xp.sum(h(X))

    with pytest.raises(GradientError, match="outside"):
        xp.grad(f)(2.0)
    with pytest.raises(GradientError, match="outside"):
        xp.jvp(f, (2.0,), (1.0,))
    assert float(f(xp.asarray(2.0))) == pytest.approx(2 * X.sum())


def test_a_rule_that_does_not_fit() -> None:
    f = xp.custom_vjp(lambda x, y: x * y)
    with pytest.raises(GradientError, match="no rule"):
        f(X, X)
    f.defvjp(lambda g, y, a, b: (g,))
    with pytest.raises(GradientError, match="1 results for 2"):
        f(X, X)
    f.defvjp(lambda g, y, a, b: (xp.stack([g, g]), g))
    with pytest.raises(GradientError, match="shape"):
        f(X, X)


# -- what a derivative does not look at -----------------------------------------------------------


def test_what_is_stopped_is_not_differentiated() -> None:
    """An op without a derivative below stop_gradient is no obstacle, in both modes."""

    def f(x: Any) -> Any:
        hidden = xp.stop_gradient(xp.sum(xp.linalg.qr(x, mode="complete")[0]))
        return xp.sum(x) * hidden

    x = np.array([[1.0], [2.0]])
    (_, t), g = xp.jvp(f, (x,), (np.ones_like(x),)), xp.grad(f)(x)
    assert float(t) == pytest.approx(float(xp.sum(g)))


# -- sizes and cost -------------------------------------------------------------------------------


@pytest.mark.backends
@pytest.mark.parametrize("backend", ["interpret", "c"])
def test_a_size_that_turns_out_to_be_one(backend: str) -> None:
    x = xp.symbol("x", shape=(None,))
    spread = xp.sum(xp.broadcast_to(x, (3, 5)))
    g = xp.function([x], xp.grad(spread, x), backend=backend)([2.0])
    assert g.shape == (1,)
    total = xp.function([x], xp.grad(xp.sum(x + xp.ones(3)), x), backend=backend)
    np.testing.assert_array_equal(total([2.0]), [3])
    np.testing.assert_array_equal(total([2.0, 1.0, 0.0]), [1, 1, 1])
    np.testing.assert_array_equal(g, [15])


def nodes(handle: Any) -> int:
    return len(toposort([handle._v]))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_a_derivative_grows_as_its_function(mode: str) -> None:
    """Twice the operations, twice the nodes: every extra step costs the same."""

    def chain(n: int) -> Callable:
        def f(x: Any) -> Any:
            y = x
            for _ in range(n):
                y = xp.sin(y) * x + y
            return xp.sum(y)

        return f

    def size(n: int) -> int:
        x = xp.symbol("x", shape=(3,))
        if mode == "reverse":
            return nodes(xp.grad(chain(n))(x))
        return nodes(xp.jvp(chain(n), (x,), (x,))[1])

    small, middle, large = (size(n) for n in (20, 40, 80))
    assert large - middle == 2 * (middle - small)
    assert (middle - small) / 20 <= 4 * 3  # a step has three operations
