"""The C backend as a whole: from a graph to numbers, errors and descriptions."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import lazyarr as xp
import lazyarr.graph.ops  # noqa: F401 (declares the ops)
from lazyarr.backends.base import Backend, Executable
from lazyarr.backends.c import compiler
from lazyarr.backends.c.backend import CBackend, describe
from lazyarr.backends.c.launcher import SIZES_DISAGREE
from lazyarr.errors import BackendError, LinAlgError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

pytestmark = [pytest.mark.fast, pytest.mark.backends]


def vector(name: str, size: object = None, dtype: str = "float64") -> Variable:
    return symbol(TensorType(dtype, (unknown(name) if size is None else size,)), name)


def square(name: str) -> Variable:
    n = unknown("n")
    return symbol(TensorType("float64", (n, n)), name)


def compile(*outputs: Variable, inputs: tuple, **options: bool):
    return CBackend(**options).compile(Graph(inputs, outputs))


def test_it_is_a_backend():
    x = vector("x")
    assert isinstance(CBackend(), Backend)
    assert isinstance(compile(op.exp(x), inputs=(x,)), Executable)


def test_unknown_sizes_and_several_outputs():
    x, y = vector("x"), vector("y")
    run = compile(op.add(op.exp(x), y), op.sum(op.multiply(x, y)), inputs=(x, y))
    for n in (0, 2, 1000):
        a, b = np.linspace(0, 1, n), np.linspace(1, 2, n)
        (first, second), code = run([a, b])
        assert code == 0
        np.testing.assert_allclose(first, np.exp(a) + b, rtol=1e-14)
        np.testing.assert_allclose(second, a @ b, rtol=1e-13)


def test_sizes_that_must_be_equal_give_a_code():
    x, y = vector("x"), vector("y")
    # the unknown of y is in no result
    run = compile(op.sum(op.multiply(x, y)), inputs=(x, y))
    assert run([np.ones(3), np.ones(3)])[1] == 0
    for wrong in (np.ones(4), np.ones(1)):
        assert run([np.ones(3), wrong]) == ([], SIZES_DISAGREE)
    with pytest.raises(BackendError, match="sizes are not"):
        run.call(np.ones(3), np.ones(4))


def test_contracted_sizes_must_be_equal():
    a = symbol(TensorType("float64", (unknown("n"), unknown("k"))), "a")
    b = symbol(TensorType("float64", (unknown("m"), 2)), "b")
    run = compile(op.contract(a, b, ((0, 1), (1, 2), (0, 2))), inputs=(a, b))
    (product,), code = run([np.ones((3, 4)), np.ones((4, 2))])
    assert code == 0
    np.testing.assert_array_equal(product, np.full((3, 2), 4.0))
    assert run([np.ones((3, 4)), np.ones((5, 2))]) == ([], SIZES_DISAGREE)


def test_inputs_of_any_layout_are_taken_and_not_written():
    x = vector("x")
    run = compile(op.add(x, 1.0), inputs=(x,))
    values = np.arange(20.0)
    for given in (values, values[::2], values[::-3], values[:0]):
        before = given.copy()
        (result,), code = run([given])
        assert code == 0
        np.testing.assert_array_equal(result, before + 1)
        np.testing.assert_array_equal(given, before)
        assert not np.shares_memory(result, values)


def test_an_input_returned_is_a_copy():
    x = vector("x")
    run = compile(x, x, inputs=(x,))
    values = np.arange(5.0)
    results, _ = run([values])
    for result in results:
        np.testing.assert_array_equal(result, values)
        assert not np.shares_memory(result, values)
    assert not np.shares_memory(*results)


def test_a_failing_check_gives_its_code_and_its_error():
    a = square("a")
    run = compile(op.cholesky_lower(a), inputs=(a,))
    assert run([np.eye(3)])[1] == 0
    outputs, code = run([-np.eye(3)])
    assert outputs == []
    assert run.plan.codes[code][0] is LinAlgError
    with pytest.raises(LinAlgError, match="positive definite"):
        run.call(-np.eye(3))
    assert run.launcher(lambda code, args: (code, args[0].shape))(-np.eye(3)) == (code, (3, 3))


def test_launcher_options():
    x, y = vector("x", 3), vector("y", 3)
    run = compile(op.add(x, y), inputs=(x, y))
    call = run.launcher(print, returns="single", bound=(None, np.ones(3)))
    np.testing.assert_array_equal(call([1.0, 2.0, 3.0]), [2.0, 3.0, 4.0])
    assert isinstance(run.call(np.ones(3), np.ones(3)), list)


def test_launcher_conditions():
    x, y = vector("x"), vector("y")
    run = compile(op.sum(x), op.sum(y), inputs=(x, y))
    n, m = x.type.shape[0], y.type.shape[0]
    for portable in (False, True):
        call = run.launcher(
            lambda code, args: code, equal=[(2 * n, m + 1)], nonzero=[n], portable=portable
        )
        assert isinstance(call(np.ones(3), np.ones(5)), list)
        assert call(np.ones(3), np.ones(6)) == SIZES_DISAGREE
        assert call(np.ones(0), np.ones(0)) == SIZES_DISAGREE
        call = run.launcher(lambda code, args: code, nonzero=[m], portable=portable)
        assert isinstance(call(np.ones(0), np.ones(1)), list)
        assert call(np.ones(1), np.ones(0)) == SIZES_DISAGREE


def test_precise_differs_by_rounding_only():
    x = vector("x")
    values = np.linspace(-5, 5, 1001)
    fast = compile(op.exp(x), inputs=(x,))([values])[0][0]
    exact = compile(op.exp(x), inputs=(x,), precise=True)([values])[0][0]
    np.testing.assert_array_max_ulp(fast, exact, 4)
    assert "simd(" not in compile(op.exp(x), inputs=(x,), precise=True).source


def test_source_and_explanation():
    x = vector("x")
    run = compile(op.exp(x), inputs=(x,))
    assert "exp" in run.source
    assert "exp" in run.explain()


def test_what_is_supported():
    x = vector("x")
    complex_ = vector("z", dtype="complex128")
    supports = CBackend().supports
    assert supports(x)
    assert supports(op.add(x, 1))
    assert supports(op.sum(x, axis=0))
    assert supports(op.reshape(x, (1, -1)))
    assert supports(op.add(complex_, complex_))
    assert supports(op.real(complex_))
    assert not supports(op.repeated(vector("n", dtype="int64")))  # its size is found by running it


def test_threads_compile_and_call_the_same_and_different_graphs():
    wrong = []

    def work(seed: int) -> None:
        for k in range(6):
            x = vector("x")
            run = compile(op.add(op.multiply(x, float(k)), float(seed % 2)), inputs=(x,))
            values = np.arange(10.0) + seed
            results, code = run([values])
            if code or not np.array_equal(results[0], values * k + seed % 2):
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_same_graph_has_the_same_source_in_every_process():
    code = (
        "import hashlib, lazyarr.graph.ops\n"
        "from tests.backends.c.test_backend import *\n"
        "x, y = vector('x'), vector('y')\n"
        "run = compile(op.sum(op.exp(op.multiply(x, y))), op.log1p(x), inputs=(x, y))\n"
        "print(hashlib.sha256(run.source.encode()).hexdigest())\n"
    )
    sources = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(sources) == 1


def test_a_description():
    facts = describe()
    assert facts["available"]
    assert facts["compiler"] == compiler.find_compiler().name
    if os.environ.get("LAZYARR_LAUNCHER") == "ctypes":
        assert facts["launcher"].startswith("ctypes (")
    else:
        assert facts["launcher"] == "extension module"
    assert all(isinstance(value, str | bool) for value in facts.values())


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "/no/such/compiler")
    facts = describe()
    assert not facts["available"]
    assert "/no/such/compiler" in facts["reason"]
    with pytest.raises(BackendError, match="/no/such/compiler"):
        CBackend()


@pytest.mark.parametrize("n", [0, 1, 5, 8, 9, 40])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factorisations_of_every_size(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    a = xp.symbol("a", dtype=dtype, shape=(None, None, None))
    b = xp.symbol("b", dtype=dtype, shape=(None, None, None))
    out = [xp.linalg.solve(a, b), xp.linalg.inv(a), xp.linalg.det(a)]
    f = xp.function([a, b], out, backend="c")
    assert not f.fallbacks()
    x = (rng.normal(size=(3, n, n)) + 2 * np.eye(n)).astype(dtype)
    y = rng.normal(size=(3, n, 4)).astype(dtype)
    wanted = [np.linalg.solve(x, y), np.linalg.inv(x), np.linalg.det(x)]
    for got, want in zip(f(x, y), wanted, strict=True):
        scale = np.max(np.abs(want), initial=1)
        np.testing.assert_allclose(got, want, atol=scale * np.finfo(dtype).eps * 1000)


@pytest.mark.parametrize("n", [3, 12])
def test_singular_matrices(n: int) -> None:
    a = xp.symbol("a", dtype="float64", shape=(None, None))
    inverse, determinant = (
        xp.function([a], f(a), backend="c") for f in (xp.linalg.inv, xp.linalg.det)
    )
    for call in (lambda: inverse(np.zeros((n, n))), lambda: inverse(np.ones((n, n)))):
        with pytest.raises(LinAlgError):
            call()
    assert determinant(np.zeros((n, n))) == 0
