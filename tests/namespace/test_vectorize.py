"""`vectorize` against a Python loop, derivatives against closed forms and differences."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, AxisError, DimError, GradientError, ShapeError
from lazyarr.namespace.vectorize import hessian, hvp, jacobian, vectorize
from tests.backend_params import BACKENDS

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 3))
V = RNG.normal(size=3)
A = RNG.normal(size=(5, 3))


def close(a: object, b: object, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def differences(f, x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """The Jacobian of f at x by central differences."""
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = h
        step = step.reshape(x.shape)
        columns.append((np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * h))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*columns[0].shape, *x.shape)


# -- vectorize ------------------------------------------------------------------------------------


def test_over_the_first_axis() -> None:
    f = vectorize(lambda row: xp.sum(xp.exp(row)))
    close(f(X).compute(), np.exp(X).sum(1))


def test_axes_of_arguments_and_results() -> None:
    f = vectorize(lambda a, b, s: (a * b + s, xp.sum(a)), in_axes=(0, 1, None), out_axes=(1, 0))
    y, total = f(X, X.T, 2.0)
    close(y.compute(), (X * X + 2).T)
    close(total.compute(), X.sum(1))
    last = vectorize(lambda a: a * 2, out_axes=-1)
    close(last(X).compute(), (2 * X).T)


def test_pytrees() -> None:
    def f(p: dict, x):
        return {"out": x @ p["w"] + p["b"][0], "none": None, "text": "as it is"}

    p = {"w": RNG.normal(size=(3, 2)), "b": (RNG.normal(size=(4, 2)),)}
    y = vectorize(f, in_axes=({"w": None, "b": (0,)}, 0))(p, X)
    close(y["out"].compute(), X @ p["w"] + p["b"][0])
    assert y["none"] is None and y["text"] == "as it is"


def test_result_without_the_axis() -> None:
    shared, constant = vectorize(lambda x, w: (w * 2, 1.5), in_axes=(0, None))(X, V)
    close(shared.compute(), np.tile(V * 2, (4, 1)))
    close(constant.compute(), np.full(4, 1.5))
    whole, y = vectorize(lambda x, w: (w * 2, x), in_axes=(0, None), out_axes=(None, 0))(X, V)
    close(whole.compute(), V * 2)
    close(y.compute(), X)


def test_as_decorator_with_keyword_arguments() -> None:
    @vectorize
    def f(x, power=1):
        return xp.sum(x**power)

    close(f(X, power=2).compute(), (X**2).sum(1))
    assert f.__name__ == "f"


def test_nested() -> None:
    def f(a, b):
        return xp.sum(a * b) + a[0]

    outer = vectorize(vectorize(f, in_axes=(None, 0)), in_axes=(0, None))
    close(outer(X, A).compute(), X @ A.T + X[:, :1])


def test_indices_and_captures() -> None:
    table = xp.asarray(A)
    close(vectorize(lambda i: table[i, :])(np.array([4, 0, 4])).compute(), A[[4, 0, 4]])
    close(vectorize(lambda i, j: table[i, j])(np.array([4, 0]), np.array([1, -1])).compute(),
          A[[4, 0], [1, -1]])  # fmt: skip


def test_of_scan() -> None:
    def last(row, start):
        return xp.scan(lambda c, x: (c * 0.5 + x, c), start, row)

    final, steps = vectorize(last)(X, np.arange(4.0))
    for k in range(4):
        c, seen = float(k), []
        for x in X[k]:
            seen.append(c)
            c = c * 0.5 + x
        close(final.compute()[k], c)
        close(steps.compute()[k], seen)


def test_of_gradient_and_gradient_of_it() -> None:
    def f(x):
        return xp.sum(xp.sin(x) * xp.sum(x))

    each = np.stack([xp.grad(f)(xp.asarray(row)).compute() for row in X])
    close(vectorize(xp.grad(f))(X).compute(), each)
    close(xp.grad(lambda x: xp.sum(vectorize(f)(x)))(xp.asarray(X)).compute(), each)


def test_gradient_by_something_captured() -> None:
    found = xp.grad(lambda w: xp.sum(vectorize(lambda row: xp.sum(row * w) ** 2)(X)))(xp.asarray(V))
    close(found.compute(), 2 * (X @ V) @ X)


def test_unknown_size() -> None:
    x = xp.symbol("x", shape=(None, 3))
    y = xp.symbol("y", shape=(None,))
    f = xp.function([x, y], vectorize(lambda a, b: xp.sum(a) * b)(x, y), backend="interpret")
    close(f(X, np.arange(4.0)), X.sum(1) * np.arange(4))
    close(f(X[:1], np.ones(1)), X[:1].sum(1))
    with pytest.raises(ShapeError):
        f(X, np.arange(3.0))


def test_errors() -> None:
    with pytest.raises(ShapeError, match="sizes"):
        vectorize(lambda a, b: a)(X, A)
    with pytest.raises(AxisError, match="no axis 0"):
        vectorize(lambda a, b: a)(X, 1.0)
    with pytest.raises(ArgumentError, match="no argument"):
        vectorize(lambda a: a, in_axes=None)(X)
    with pytest.raises(ArgumentError, match="3 entries"):
        vectorize(lambda a: a, in_axes=(0, 0, 0))(X)
    with pytest.raises(ArgumentError, match="structure"):
        vectorize(lambda a: a, out_axes=(0, 0))(X)
    with pytest.raises(ArgumentError, match="out_axes is None"):
        vectorize(lambda a: a, out_axes=None)(X)
    with pytest.raises(ArgumentError, match="dim="):
        vectorize(lambda a: a)(xp.XTensor(X, dims=("a", "b")))


# -- named ----------------------------------------------------------------------------------------


def draws() -> xp.XTensor:
    return xp.XTensor(X, dims=("chain", "p"), coords={"chain": [1, 2, 3, 4], "p": list("abc")})


def weights() -> xp.XTensor:
    return xp.XTensor(V, dims="p", coords={"p": list("abc")})


def test_over_a_dimension() -> None:
    y, running = vectorize(lambda t, w: ((t * w).sum("p"), t.cumsum("p")), dim="chain")(
        draws().transpose("p", "chain"), weights()
    )
    assert y.dims == ("chain",) and running.dims == ("chain", "p")
    assert list(y.coords["chain"].values) == [1, 2, 3, 4]
    assert list(running.coords["p"].values) == list("abc")
    close(y.values, X @ V)
    close(running.values, np.cumsum(X, 1))


def test_dimension_in_pytrees_keywords_and_positional_results() -> None:
    def f(args: dict, scale=1.0):
        return args["t"].data * 2, args["t"].sum() * scale, args["n"] + 1

    found = vectorize(f, dim="chain")({"t": draws(), "n": 3}, scale=draws().sum("p"))
    close(found[0].compute(), 2 * X)
    close(found[1].values, X.sum(1) ** 2)
    close(found[2].compute(), [4, 4, 4, 4])


def test_nested_dimensions() -> None:
    x = xp.XTensor(RNG.normal(size=(2, 4, 3)), dims=("chain", "draw", "p"))
    y = vectorize(vectorize(lambda t: t.max("p"), dim="draw"), dim="chain")(x)
    assert y.dims == ("chain", "draw")
    close(y.values, x.values.max(-1))


def test_gradient_through_named_vectorize() -> None:
    w = weights()
    found = xp.grad(lambda w: (vectorize(lambda t: (t * w).sum() ** 2, dim="chain")(draws())).sum())
    close(found(w).values, 2 * (X @ V) @ X)
    each = vectorize(xp.grad(lambda t: (t**3).sum()), dim="chain")(draws())
    assert each.dims == ("chain", "p")
    close(each.values, 3 * X**2)


def test_named_gradients_nest() -> None:
    """A gradient depends on the named nodes themselves, not on positional copies of them."""
    twice = xp.grad(lambda x: xp.grad(lambda z: (z**3).sum())(x).sum())
    close(twice(weights()).values, 6 * V)
    mixed = xp.grad(lambda x: xp.grad(lambda z: (z**2 * x).sum())(x).sum())
    close(mixed(weights()).values, 4 * V)
    w = weights()
    close(xp.grad((xp.grad((w**3).sum(), w) * w).sum(), w).values, 9 * V**2)


def test_named_errors() -> None:
    with pytest.raises(ArgumentError, match="'draw'"):
        vectorize(lambda t: t, dim="draw")(draws())
    outside = draws()
    with pytest.raises(DimError, match="already"):
        vectorize(lambda t: t * outside, dim="chain")(draws())
    with pytest.raises(ArgumentError, match="needs a name"):
        vectorize(lambda r: weights() * 2)(X)
    with pytest.raises(ValueError):
        other = draws().assign_coords(chain=[5, 6, 7, 8])
        vectorize(lambda a, b: a + b, dim="chain")(draws(), other)


# -- jacobian -------------------------------------------------------------------------------------

FUNCTIONS = {
    "linear": lambda x: xp.asarray(A) @ x,
    "elementwise": lambda x: xp.exp(x) * xp.sin(x),
    "softmax": lambda x: xp.special.softmax(x, axis=0),
    "outer": lambda x: xp.expand_dims(x, axis=1) * xp.tanh(x),
    "sorted out": lambda x: xp.stack([x[0] * x[1], xp.sum(x), x[-1] ** 2]),
    "number": lambda x: xp.sum(x**2),
    "matrix": lambda x: xp.linalg.cholesky(
        xp.expand_dims(x, axis=1) * x + 3.0 * xp.eye(3, dtype=xp.float64)
    ),
    "loop": lambda x: xp.scan(lambda c, e: (xp.sin(c + e), c * e), xp.sum(x), x)[1],
    "gather": lambda x: xp.take(x, xp.asarray([2, 0, 2, 1])) * x[1],
    "updated": lambda x: x.at[1].set(x[0] * x[2]),
    "constant part": lambda x: xp.concat([x, xp.ones(2)]),
}


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian_against_differences(name: str, mode: str | None) -> None:
    f = FUNCTIONS[name]
    found = jacobian(f, mode=mode)(xp.asarray(V))
    close(found.compute(), differences(lambda v: f(xp.asarray(v)).compute(), V), 2e-8)


def test_jacobian_of_a_matrix_by_a_matrix() -> None:
    x = RNG.normal(size=(2, 3))
    found = jacobian(lambda m: m.T @ m)(xp.asarray(x))
    assert found.shape == (3, 3, 2, 3)
    close(found.compute(), differences(lambda m: m.T @ m, x), 1e-8)


def test_jacobian_of_pytrees() -> None:
    def f(p: dict, s):
        return {"y": p["a"] * s, "z": p["b"]}

    p = {"a": xp.asarray(V), "b": xp.asarray(2.0)}
    found = jacobian(f, argnums=(0, 1))(p, xp.asarray(3.0))
    by_p, by_s = ({k: v[i] for k, v in found.items()} for i in (0, 1))
    close(by_p["y"]["a"].compute(), 3 * np.eye(3))
    close(by_p["y"]["b"].compute(), np.zeros(3))
    close(by_p["z"]["b"].compute(), 1.0)
    close(by_s["y"].compute(), V)


def test_jacobian_of_expressions() -> None:
    x, s = xp.asarray(V), xp.asarray(2.0)
    y = x * x * s
    by_x, by_s = jacobian(y, [x, s])
    close(by_x.compute(), np.diag(4 * V))
    close(by_s.compute(), V * V)


def test_jacobian_is_as_wide_as_the_smaller_side() -> None:
    wide = jacobian(lambda x: xp.sum(xp.asarray(A) @ x) * xp.ones(50))(xp.asarray(V))
    close(wide.compute(), np.tile(A.sum(0), (50, 1)))


def test_jacobian_with_unknown_sizes() -> None:
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], jacobian(x**2 + xp.sum(x), x), backend="interpret")
    close(f(V), np.diag(2 * V) + 1)
    close(f(V[:1]), [[2 * V[0] + 1]])


def test_named_jacobian() -> None:
    w = weights()
    found = jacobian(lambda t: t * t.sum())(w)
    assert found.dims == ("p", "p_")
    assert list(found.coords["p_"].values) == list("abc")
    close(found.values, np.diag(np.full(3, V.sum())) + V[:, None])
    wide = jacobian(lambda t: (draws() * t).sum("p"))(w)
    assert wide.dims == ("chain", "p")
    assert list(wide.coords["chain"].values) == [1, 2, 3, 4]
    close(wide.values, X)
    again = jacobian(jacobian(lambda t: t**3))(w)
    assert again.dims == ("p", "p_", "p__")
    close(np.einsum("iii->i", again.values), 6 * V)


def test_jacobian_with_something_beside_the_value() -> None:
    found, aux = jacobian(lambda x: (x**2, {"x": x}), has_aux=True)(V)
    close(found, np.diag(2 * V))
    close(aux["x"], V)
    found, aux = hessian(lambda x: (xp.sum(x**3), x), has_aux=True)(V)
    close(found, np.diag(6 * V))
    close(aux, V)
    with pytest.raises(ArgumentError, match="pair"):
        jacobian(lambda x: x, has_aux=True)(V)
    with pytest.raises(ArgumentError, match="pair"):
        hessian(lambda x: xp.sum(x), has_aux=True)(V)


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
def test_jacobian_by_complex_numbers(backend: str) -> None:
    """Rows are gradients, df/dx + i df/dy; by real numbers a value may be complex."""
    w = np.array([1 + 2j, 3 - 1j, 0.5j])
    z, x = xp.symbol("z", shape=(3,), dtype="complex128"), xp.symbol("x", shape=(3,))
    outputs = []
    for mode in ("forward", "reverse"):
        outputs.append(jacobian(lambda z: xp.real(z * z) + xp.sum(xp.abs(z) ** 2), mode=mode)(z))
        outputs.append(jacobian(lambda x: xp.exp(1j * x), mode=mode)(x))
    found = xp.function([z, x], outputs, backend=backend)(w, V)
    for by_complex, by_real in (found[:2], found[2:]):
        close(by_complex, np.diag(2 * w.conj()) + 2 * w)
        close(by_real, np.diag(1j * np.exp(1j * V)))
    row = xp.grad(lambda z: xp.real(z * z))(w[0])
    close(jacobian(lambda z: xp.real(z * z))(w[:1]), np.asarray(row)[None, None])


def test_jacobian_errors() -> None:
    with pytest.raises(ArgumentError, match="mode"):
        jacobian(lambda x: x, mode="backward")
    with pytest.raises(GradientError, match="complex"):
        jacobian(lambda x: x * 1j)(xp.asarray(V) + 0j)
    with pytest.raises(GradientError, match="int64"):
        jacobian(lambda x: x)(xp.asarray([1, 2]))


# -- second derivatives ---------------------------------------------------------------------------


def objective(x):
    return xp.special.logsumexp(xp.asarray(A) @ x) + x[0] * x[1] ** 2 * x[2]


def test_hessian() -> None:
    found = hessian(objective)(xp.asarray(V)).compute()
    close(found, found.T)
    close(found, differences(lambda v: xp.grad(objective)(xp.asarray(v)).compute(), V), 1e-8)


def test_hessian_by_several() -> None:
    x, s = xp.asarray(V), xp.asarray(2.0)
    y = xp.sum(x**3) * s
    (xx, xs), (sx, ss) = hessian(y, (x, s))
    close(xx.compute(), np.diag(12 * V))
    close(xs.compute(), 3 * V**2)
    close(sx.compute(), 3 * V**2)
    close(ss.compute(), 0)
    found = hessian(lambda p: xp.sum(p["a"] * p["b"]))({"a": x, "b": x})
    close(found["a"]["b"].compute(), np.eye(3))


def test_named_hessian() -> None:
    found = hessian(lambda t: (t**3).sum())(weights())
    assert found.dims == ("p", "p_")
    close(found.values, np.diag(6 * V))
    each = vectorize(hessian(lambda t: (t**3).sum()), dim="chain")(draws())
    assert each.dims == ("chain", "p", "p_")
    close(each.values, np.stack([np.diag(6 * row) for row in X]))


def test_hvp() -> None:
    direction = RNG.normal(size=3)
    want = hessian(objective)(xp.asarray(V)).compute() @ direction
    (found,) = hvp(objective, (xp.asarray(V),), (direction,))
    close(found.compute(), want)
    x = xp.asarray(V)
    close(hvp(objective(x), x, direction).compute(), want)
    a, b = hvp(lambda a, b: xp.sum(a * b), (x, x), (direction, 2 * direction))
    close(a.compute(), 2 * direction)
    close(b.compute(), direction)


def test_named_hvp() -> None:
    w = weights()
    (found,) = hvp(lambda t: (t**3).sum(), (w,), (w * 2,))
    assert found.dims == ("p",)
    close(found.values, 12 * V**2)


# -- backends -------------------------------------------------------------------------------------


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
def test_on_backends(backend: str) -> None:
    x, w = xp.symbol("x", shape=(None, 3)), xp.symbol("w", shape=(3,))
    i = xp.symbol("i", shape=(None,), dtype=xp.int64)

    def step(row, start):
        return xp.scan(lambda c, e: (xp.sin(c + e), c), start, row)[0]

    outputs = (
        vectorize(lambda row: xp.special.softmax(row * w, axis=0))(x),
        vectorize(step, in_axes=(0, None))(x, 0.5),
        vectorize(xp.grad(lambda row: xp.sum(xp.exp(row) * w)))(x),
        vectorize(lambda row, j: row[j] * row, in_axes=(0, None))(x, 1),
        vectorize(lambda j: w[j])(i),
        vectorize(lambda row, j: row.at[j].set(0.0))(x, i),
        jacobian(lambda v: xp.exp(xp.asarray(A) @ v))(w),
        hessian(lambda v: xp.sum(xp.exp(xp.asarray(A) @ v)))(w),
    )
    index = np.array([2, 0, 1, 2])
    got = xp.function([x, w, i], outputs, backend=backend)(X, V, index)
    want = xp.function([x, w, i], outputs, backend="interpret")(X, V, index)
    for a, b in zip(got, want, strict=True):
        close(a, b, 1e-12)
