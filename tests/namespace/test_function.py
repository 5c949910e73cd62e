"""`symbol`, `function`, `jit`, `compute`: pytrees, names, conversions, and what bad input says."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import (
    ArgumentError,
    BackendError,
    ConcretizationError,
    DimError,
    DTypeError,
    GradientError,
    GraphError,
    ShapeError,
)
from tests.backend_params import BACKENDS, MACHINES

pytestmark = pytest.mark.fast


@dataclasses.dataclass
class Point:
    x: object
    y: object


def test_pytrees_in_and_out():
    a, b, c = (xp.symbol(n, shape=(2,)) for n in "abc")
    outputs = {"sum": a + b, "rest": (c, None, Point(a * 2, [b]))}
    f = xp.function([Point(a, b), {"c": c}], outputs, backend="interpret")
    out = f(Point(np.ones(2), np.zeros(2)), {"c": [5, 6]})
    np.testing.assert_array_equal(out["sum"], [1, 1])
    assert out["rest"][1] is None
    assert isinstance(out["rest"][2], Point)
    np.testing.assert_array_equal(out["rest"][0], [5.0, 6.0])


def test_inputs_by_name():
    a, b = xp.symbol("a"), xp.symbol("b")
    f = xp.function([a, b], a - b, backend="interpret")
    assert f(b=1.0, a=3.0) == f(3.0, b=1.0) == 2.0


def test_givens_replace_a_node():
    a, b = xp.symbol("a"), xp.symbol("b")
    f = xp.function([b], a * 2 + 1, givens=[(a, b + 1)], backend="interpret")
    assert f(3.0) == 9.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_fresh_and_writable(backend):
    x = xp.symbol("x", shape=(None,))
    kept = xp.asarray([1.0, 2.0])
    f = xp.function([x], [x, kept, x + kept, x], backend=backend)
    given = np.array([3.0, 4.0])
    first = f(given)
    for a in first:
        assert a.flags.writeable
        a[:] = -1
    np.testing.assert_array_equal(given, [3.0, 4.0])
    again = f(given)
    np.testing.assert_array_equal(again[1], [1.0, 2.0])
    np.testing.assert_array_equal(again[2], [4.0, 6.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_layouts_and_dtypes_that_fit_are_taken(backend):
    x = xp.symbol("x", shape=(None, 2))
    f = xp.function([x], xp.sum(x * 2, axis=0), backend=backend)
    base = np.arange(12.0).reshape(6, 2)
    read_only = base[::-1].copy()
    read_only.flags.writeable = False
    for value in (base, base[::2], base[::-1], np.asfortranarray(base), read_only):
        np.testing.assert_array_equal(f(value), 2 * value.sum(axis=0))
    np.testing.assert_array_equal(f(np.arange(4, dtype=np.int32).reshape(2, 2)), [4.0, 8.0])
    np.testing.assert_array_equal(f([[1, 2]]), [2.0, 4.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_unknown_sizes_broadcast_when_they_are_one(backend):
    x, y = xp.symbol("x", shape=(None,)), xp.symbol("y", shape=(None,))
    f = xp.function([x, y], [x + y, xp.grad(xp.sum(x * y), x)], backend=backend)
    for n, m in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 0), (0, 1)):
        a, b = np.arange(1.0, n + 1), np.arange(2.0, m + 2)
        total, slope = f(a, b)
        np.testing.assert_array_equal(total, a + b)
        want = [b.sum()] if n == 1 else np.broadcast_to(b, (n,))
        np.testing.assert_array_equal(slope, want)
    with pytest.raises(ShapeError, match="sizes 2 and 3 do not broadcast"):
        f(np.zeros(2), np.zeros(3))


def test_jit_traces_once_per_structure():
    seen = []

    @xp.jit(backend="interpret")
    def f(x, n):
        seen.append(n)
        return {"y": x * n, "n": n}

    for value in (1.0, 2.0):
        np.testing.assert_array_equal(f(np.full(3, value), 2)["y"].compute(), np.full(3, 2 * value))
    assert f(np.ones(3), 3)["n"] == 3
    assert seen == [2, 3]


def test_missing_and_unknown_inputs():
    a, b = xp.symbol("alpha"), xp.symbol("beta")
    with pytest.raises(GraphError, match="also depend on .*beta"):
        xp.function([a], a + b)
    f = xp.function([a, b], a + b, backend="interpret")
    with pytest.raises(ArgumentError, match="missing input 'beta'"):
        f(1.0)
    with pytest.raises(ArgumentError, match="unexpected input 'alpa'.*Did you mean 'alpha'"):
        f(1.0, 2.0, alpa=3.0)
    with pytest.raises(GraphError, match="not a symbol"):
        xp.function([a + 1], a)


@pytest.mark.parametrize("backend", [BACKENDS[0], MACHINES[0]])
def test_inputs_of_the_wrong_type(backend):
    x = xp.symbol("x", shape=(None, 3), dtype=xp.float32)
    f = xp.function([x], xp.sum(x), backend=backend)
    with pytest.raises(DTypeError, match="input 'x': expected dtype float32, got float64"):
        f(np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="input 'x': expected 2 dimensions"):
        f(np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match="input 'x'"):
        f(np.zeros((2, 4), np.float32))


def test_named_sizes_that_differ_at_run_time():
    x, y = xp.symbol("x", dims="obs"), xp.symbol("y", dims="obs")
    f = xp.function([x, y], (x * y).sum("obs").data, backend="interpret")
    with pytest.raises(DimError) as caught:
        f(np.zeros(3), np.zeros(4))
    assert all(word in str(caught.value) for word in ("'obs'", "'x'", "'y'", "3", "4"))


def test_truth_of_a_symbol():
    x = xp.symbol("x")
    for ask in (bool, int, float, complex):
        with pytest.raises(ConcretizationError, match=r"'x'.*where") as caught:
            ask(x > 0 if ask is bool else x)
        assert isinstance(caught.value, ValueError)
        assert not isinstance(caught.value, TypeError)


def test_unknown_backend():
    x = xp.symbol("x")
    with pytest.raises(BackendError, match="Did you mean 'torch'"):
        xp.function([x], x, backend="troch")


def test_missing_package_names_the_pip_line(tmp_path):
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n == 'jax' else find(n, *a)\n"
        "import lazyarr as xp\n"
        "x = xp.symbol('x')\n"
        "try: xp.function([x], x, backend='jax')\n"
        "except xp.errors.BackendError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install lazyarr[jax]" in done.stdout


def test_failing_c_compiler_shows_its_message_and_keeps_the_source(tmp_path):
    fake = tmp_path / "cc"
    real = subprocess.run(["which", "cc"], capture_output=True, text=True).stdout.strip() or "cc"
    fake.write_text(
        "#!/bin/sh\n"
        f'for a in "$@"; do if [ "${{a%.c}}" != "$a" ] && grep -q kernel "$a"; then '
        'echo "no disk today" >&2; exit 1; fi; done\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    code = (
        "import lazyarr as xp\n"
        "x = xp.symbol('x')\n"
        "try: xp.function([x], xp.exp(x), backend='c')\n"
        "except xp.errors.BackendError as e: print(e)\n"
    )
    env = {**os.environ, "CC": str(fake), "LAZYARR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert "no disk today" in done.stdout
    assert ".c" in done.stdout


def test_gradients_asked_of_the_wrong_thing():
    x = xp.symbol("x", shape=(3,))
    n = xp.symbol("n", shape=(3,), dtype=xp.int64)
    with pytest.raises(GradientError, match="one number"):
        xp.grad(x * 2, x)
    with pytest.raises(GradientError, match="int64"):
        xp.grad(xp.sum(x * n), n)


def test_compute_needs_values():
    x = xp.symbol("x")
    with pytest.raises(ConcretizationError, match="'x'"):
        xp.compute(x + 1)
    a = xp.asarray([1.0])
    assert xp.compute({"a": a + 1})["a"] == [2.0]
