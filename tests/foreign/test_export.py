"""Compiled functions as functions of JAX, of Torch and of C."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import GraphError
from tests.models.models import compiled as compile_model

DATA = Path(__file__).resolve().parents[1] / "data" / "models"

POINT = np.linspace(0.3, 1.7, 5)


def example():
    """A function of an unknown size with data, an index, a loop, and its exact values."""
    x, k = xp.symbol("x", shape=(None,)), xp.symbol("k")
    weights = xp.asarray(np.array([1.0, 2.0, 3.0]))
    last, _ = xp.scan(lambda c, v: (c * 0.5 + v, c), xp.asarray(0.0), x)
    value = xp.sum(xp.log1p(xp.exp(x * k))) + xp.sum(weights * k) + last + x[-1]
    return x, k, value


def exact(x, k):
    last = 0.0
    for v in x:
        last = last * 0.5 + v
    return np.sum(np.log1p(np.exp(x * k))) + 6 * k + last + x[-1]


def slope(x, k):
    return (
        k / (1 + np.exp(-x * k))
        + 0.5 ** np.arange(len(x))[::-1]
        + (np.arange(len(x)) == len(x) - 1)
    )


@pytest.mark.parametrize("rules", [True, False])
@pytest.mark.parametrize("wide", [True, False])
def test_as_jax(wide, rules):
    jax = pytest.importorskip("jax")
    x, k, value = example()
    f = xp.function([x, k], {"value": value, "twice": x * 2}, backend="interpret").as_jax(
        rules=rules
    )
    tol = 1e-12 if wide else 1e-5
    with jax.enable_x64(wide):
        dtype = "float64" if wide else "float32"
        point = jax.numpy.asarray(POINT, dtype)
        out = jax.jit(f)(point, 1.5)
        assert out["value"].dtype == out["twice"].dtype == dtype
        np.testing.assert_allclose(out["value"], exact(POINT, 1.5), rtol=tol)
        g = jax.jit(jax.grad(lambda x: f(x, k=1.5)["value"]))(point)
        np.testing.assert_allclose(g, slope(POINT, 1.5), rtol=10 * tol)
        rows = jax.vmap(lambda x: f(x, 1.5)["value"])(jax.numpy.stack([point, point + 1]))
        np.testing.assert_allclose(rows, [exact(POINT, 1.5), exact(POINT + 1, 1.5)], rtol=tol)
        twice = jax.jacrev if rules else jax.jacfwd
        h = twice(jax.grad(lambda x: f(x, 1.5)["value"]))(point)
        s = 1 / (1 + np.exp(-1.5 * POINT))
        np.testing.assert_allclose(h, np.diag(1.5**2 * s * (1 - s)), rtol=100 * tol, atol=tol)


def test_as_jax_keeps_the_conventions_of_derivatives():
    jax = pytest.importorskip("jax")
    x, k = xp.symbol("x", shape=(3,)), xp.symbol("k", shape=(3,), dtype="int32")
    y = xp.sum(xp.log1p(xp.exp(x)) + xp.abs(x) * k + xp.where(x > 0, xp.sqrt(x), 0.0))
    f = xp.function([x, k], y, backend="c").as_jax()
    g = jax.grad(f)(np.zeros(3, "float32"), np.ones(3, "int32"))
    np.testing.assert_array_equal(g, 0.5)


def test_as_jax_of_a_wrapped_function():
    jax = pytest.importorskip("jax")
    x = xp.symbol("x", shape=(None,))
    inner = xp.wrap_jax(lambda x: jax.numpy.sin(x), name="inner")
    f = xp.function([x], xp.sum(inner(x) ** 2), backend="c").as_jax()
    g = jax.grad(f)(jax.numpy.asarray(POINT, "float32"))
    np.testing.assert_allclose(g, np.sin(2 * POINT), rtol=1e-5)
    h = xp.function([x], xp.wrap_numpy(np.sin, out=0)(x), backend="c").as_jax()
    with pytest.raises(GraphError, match="no way to run foreign"):
        h(POINT)


def test_as_torch():
    torch = pytest.importorskip("torch")
    x, k, value = example()
    f = xp.function([x, k], [value, x * 2], backend="interpret").as_torch()
    point = torch.tensor(POINT, requires_grad=True)
    out, twice = f(point, 1.5)
    np.testing.assert_allclose(out.item(), exact(POINT, 1.5))
    (g,) = torch.autograd.grad(out, point)
    np.testing.assert_allclose(g, slope(POINT, 1.5))
    np.testing.assert_allclose(twice.detach(), 2 * POINT)


def compiled(folder, paths, name):
    """Build an exported function by one plain line, and return the program."""
    cc = shutil.which("cc") or pytest.skip("no C compiler")
    line = [cc, "-O2", f"{name}.c", "main.c", "-lm", "-o", "run"]
    subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True)
    return folder / "run"


def test_export_c(tmp_path):
    x, k, value = example()
    f = xp.function([x, k], xp.value_and_grad(value, x), backend="c")
    paths = f.export_c(tmp_path, "posterior")
    assert sorted(paths) == ["main.c", "posterior.c", "posterior.h"]
    program = compiled(tmp_path, paths, "posterior")
    numbers = " ".join(f"{v!r}" for v in [*POINT.tolist(), 1.5])
    ran = subprocess.run([program, "5"], input=numbers, capture_output=True, text=True, check=True)
    got = np.array(ran.stdout.split(), float)
    np.testing.assert_allclose(got, [exact(POINT, 1.5), *slope(POINT, 1.5)], rtol=1e-13)
    assert subprocess.run([program], capture_output=True).returncode == 2


def test_as_cfunc():
    x, k, value = example()
    f = xp.function([x, k], xp.value_and_grad(value, x), backend="c").as_cfunc("logp")
    assert f.prototype == (
        "int64_t logp(int64_t x_0, const double *x, const double *k, double *out0, double *out1)"
    )
    out, grad, k = np.zeros(()), np.zeros(5), np.array(1.5)
    arrays = [a.ctypes.data for a in (POINT, k, out, grad)]
    assert f.call(5, *arrays) == 0
    np.testing.assert_allclose(out, exact(POINT, 1.5))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    grad[:] = 0
    assert kind(f.address)(5, *arrays) == 0
    np.testing.assert_allclose(grad, slope(POINT, 1.5))


def test_what_has_no_form_in_c(tmp_path):
    x = xp.symbol("x", shape=(3,))
    f = xp.function([x], xp.wrap_numpy(np.sin, out=0)(x), backend="c")
    with pytest.raises(GraphError, match="not C alone.*foreign"):
        f.export_c(tmp_path)


@pytest.fixture(scope="module")
def radon():
    """The radon model's value and gradient, compiled for C, and its stored points."""
    stored = json.loads((DATA / "radon_intercept_slope.json").read_text(encoding="utf-8"))
    size = len(stored["points"][0]["point"])
    return compile_model("radon_intercept_slope", stored["data"], size, "c"), stored["points"]


def agrees(value, gradient, point):
    scale = max(1.0, float(np.max(np.abs(point["grad"]))))
    assert abs(float(value) - point["logp"]) <= 1e-10 * scale
    np.testing.assert_allclose(gradient, point["grad"], rtol=0, atol=1e-10 * scale)


def test_radon_without_python(tmp_path, radon):
    f, points = radon
    program = compiled(tmp_path, f.export_c(tmp_path, "radon"), "radon")
    for point in points:
        numbers = " ".join(map(repr, point["point"]))
        ran = subprocess.run([program], input=numbers, capture_output=True, text=True, check=True)
        got = np.array(ran.stdout.split(), float)
        agrees(got[0], got[1:], point)


def test_radon_as_jax(radon):
    jax = pytest.importorskip("jax")
    f, points = radon
    with jax.enable_x64(True):
        both = jax.jit(jax.value_and_grad(lambda x: f.as_jax()(x)[0]))
        value, gradient = both(np.array(points[0]["point"]))
        agrees(value, gradient, points[0])
