"""Calls of Numba programs of unknown sizes, by address and by Python (as without a compiler)."""

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError, DTypeError, LazyArrError, ShapeError

numba = pytest.importorskip("numba")
backend = pytest.importorskip("lazyarr.backends.numba.backend")
pytestmark = [pytest.mark.backends]


@pytest.fixture(params=["address", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(backend, "native_launch", lambda: None)
    elif backend.native_launch() is None:
        pytest.skip("needs a C compiler and the headers of Python")
    return request.param


def softened() -> tuple[list, list]:
    """Inputs and outputs of a program with temporaries, several results and a 0-d input."""
    x, s = xp.symbol("x", shape=("n", "m")), xp.symbol("s", shape=())
    y = xp.symbol("y", shape=("m",))
    e = xp.exp(x - xp.max(x, axis=0)) * s
    return [x, s, y], [e / xp.sum(e, axis=0) + y, xp.sum(x, axis=1)]


def expected(x: np.ndarray, s: float, y: np.ndarray) -> list[np.ndarray]:
    e = np.exp(x - x.max(0)) * s
    return [e / e.sum(0) + y, x.sum(1)]


def layouts(x: np.ndarray) -> list:
    frozen = x.copy()
    frozen.flags.writeable = False
    odd = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(x.shape)
    odd[...] = x
    wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3))
    wide[::2, ::3] = x
    swapped = x.astype(x.dtype.newbyteorder())
    turned = x[::-1, ::-1].copy()[::-1, ::-1]
    return [x, frozen, odd, wide[::2, ::3], np.asfortranarray(x), turned, swapped, x.tolist()]


def test_arrays_of_every_layout(way: str) -> None:
    call = xp.function(*softened(), backend="numba")
    assert call.fast is not None and call.fast_out == (way == "address")
    for n, m in ((2, 3), (7, 16), (100, 33)):
        x, y = np.random.default_rng(n).normal(size=(n, m)), np.arange(float(m))
        for given in layouts(x):
            for s in (2.0, np.float64(2.0), np.array(2.0)):
                for got, want in zip(call(given, s, y), expected(x, 2.0, y), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)
                    assert got.flags.writeable and got.flags.c_contiguous
                    assert not np.shares_memory(got, x) and not np.shares_memory(got, y)


def test_empty_arrays_and_sizes_of_1(way: str) -> None:
    x, y = xp.symbol("x", shape=(None, None)), xp.symbol("y", shape=(None, None))
    call = xp.function([x, y], [x * y, xp.sum(x, axis=0)], backend="numba")
    for a, b in (((0, 3), (0, 3)), ((2, 0), (2, 0)), ((1, 3), (2, 3)), ((2, 3), (1, 1))):
        given = np.ones(a) * 2, np.ones(b) * 3
        product, total = call(*given)
        np.testing.assert_array_equal(product, given[0] * given[1])
        np.testing.assert_array_equal(total, given[0].sum(0))


def test_what_does_not_fit_is_an_error(way: str) -> None:
    call = xp.function(*softened(), backend="numba")
    x, y = np.ones((2, 3)), np.ones(3)
    with pytest.raises(ShapeError, match="4"):
        call(x, 1.0, np.ones(4))
    with pytest.raises(LazyArrError, match="2 dimensions"):
        call(np.ones(3), 1.0, y)
    with pytest.raises(DTypeError):
        call(x.astype(complex), 1.0, y)
    with pytest.raises(ArgumentError):
        call(x, 1.0)
    with pytest.raises(LazyArrError):
        call(x, 1.0, y, y)
    for got, want in zip(call(x, 1.0, y), expected(x, 1.0, y), strict=True):
        np.testing.assert_allclose(got, want)


def test_a_failing_check(way: str) -> None:
    x, i = xp.symbol("x", shape=(None,)), xp.symbol("i", shape=(None,), dtype="int64")
    call = xp.function([x, i], xp.take(x, i), backend="numba")
    np.testing.assert_array_equal(call(np.arange(3.0), np.array([2, -1])), [2.0, 2.0])
    with pytest.raises(IndexError):
        call(np.arange(3.0), np.array([0, 3]))


def test_library_routines_get_their_addresses(way: str) -> None:
    a = xp.symbol("a", shape=("n", "n"))
    call = xp.function([a], xp.linalg.inv(a), backend="numba")
    for n in (2, 9):
        x = np.random.default_rng(n).normal(size=(n, n)) + 4 * np.eye(n)
        np.testing.assert_allclose(x @ call(x), np.eye(n), atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        call(np.zeros((3, 3)))


def test_results_in_given_arrays(way: str) -> None:
    call = xp.function(*softened(), backend="numba")
    x, y = np.random.default_rng(0).normal(size=(4, 5)), np.arange(5.0)
    first, second = np.empty((4, 5)), np.empty(4)
    want = expected(x, 2.0, y)
    found = call(x, 2.0, y, out=[first, second])
    assert found[0] is first and found[1] is second
    for got, right in zip(found, want, strict=True):
        np.testing.assert_allclose(got, right, atol=1e-14)
    found = call(x, 2.0, y, out=[None, second])
    assert found[1] is second and found[0] is not first
    apart = np.empty((8, 5))[::2]  # strided: written all the same
    np.testing.assert_allclose(call(x, 2.0, y, out=[apart, None])[0], want[0], atol=1e-14)
    kept = x.copy()
    np.testing.assert_allclose(call(kept, 2.0, y, out=[kept, None])[0], want[0], atol=1e-14)
    with pytest.raises(ShapeError):
        call(x, 2.0, y, out=[np.empty((5, 5)), None])
    with pytest.raises(LazyArrError):
        call(x, 2.0, y, out=[first.astype("float32"), None])


def test_donated_inputs(way: str) -> None:
    x, y = xp.symbol("x", shape=("n",)), xp.symbol("y", shape=("n",))
    call = xp.function([x, y], xp.exp(x) + y, backend="numba", donate=[x])
    for n in (3, 1000):
        given, other = np.linspace(0, 1, n), np.arange(float(n))
        want = np.exp(given) + other
        got = call(given, other)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        assert (got is given) == (way == "address")
        np.testing.assert_array_equal(other, np.arange(float(n)))
        shared = np.linspace(0, 1, n)
        np.testing.assert_allclose(call(shared, shared), np.exp(np.linspace(0, 1, n)) + shared)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        call(frozen, np.ones(3))


def test_trusted_inputs_and_shared_variables(way: str) -> None:
    x = xp.symbol("x", shape=("n",))
    call = xp.function([x], x * 2.0, backend="numba", trust_inputs=True)
    np.testing.assert_array_equal(call(np.arange(5.0)), np.arange(5.0) * 2)
    np.testing.assert_array_equal(call(np.ones(1)), [2.0])
    state = xp.shared(np.zeros(3))
    step = xp.function([x], xp.sum(x), updates=[(state, state + xp.sum(x))], backend="numba")
    assert [float(step(np.ones(n))) for n in (2, 5)] == [2.0, 5.0]
    np.testing.assert_array_equal(state.get_value(), [7.0, 7.0, 7.0])


def test_earlier_results_stay(way: str) -> None:
    x = xp.symbol("x", shape=(None,))
    call = xp.function([x], x + 1.0, backend="numba")
    kept = [call(np.full(n, float(n))) for n in (2, 3, 2, 3, 5000)]
    for got, n in zip(kept, (2, 3, 2, 3, 5000), strict=True):
        np.testing.assert_array_equal(got, np.full(n, n + 1.0))


def test_many_threads(way: str) -> None:
    call = xp.function(*softened(), backend="numba")
    wrong: list[Exception] = []

    def work(seed: int) -> None:
        try:
            for k in range(30):
                n, m = 2 + (seed + k) % 5, 3 + 2000 * (k % 3)
                x, y = np.random.default_rng(seed).normal(size=(n, m)), np.ones(m)
                for got, want in zip(call(x, 2.0, y), expected(x, 2.0, y), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_program_loads_from_a_pickle(way: str) -> None:
    call = xp.function(*softened(), backend="numba")
    again = pickle.loads(pickle.dumps(call))
    x, y = np.arange(6.0).reshape(2, 3), np.ones(3)
    for a, b in zip(again(x, 3.0, y), call(x, 3.0, y), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.fast is not None


def test_a_program_that_raises_is_not_taken_for_one_that_succeeds() -> None:
    """Numba returns 0 from a C function that raised."""
    launch = backend.native_launch()
    if launch is None:
        pytest.skip("needs a C compiler and the headers of Python")
    x = xp.symbol("x", shape=(None,))
    run = xp.function([x], x + 1.0, backend="numba").program.variant(((), ())).direct
    check = "    if sizes[0] > 2:\n        raise MemoryError\n    x0 = "
    raising = run.source.replace("    x0 = ", check)
    scope: dict = {}
    exec(raising.replace("cache=True", "cache=False"), scope)
    entry = numba.cfunc(scope["kernel_at_type"])(scope["kernel_at"])
    codes: list[int] = []
    call = launch(
        run.made.interface, {**run.pointers, "entry": entry.address, "keep": entry},
        lambda code, args: codes.append(code), returns="single",
    )  # fmt: skip
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        assert call(np.ones(3)) is None
    finally:
        sys.unraisablehook = before
    assert codes == [-1]


_CHILD = """
import numpy as np, lazyarr as xp
x = xp.symbol("x", shape=(None,))
call = xp.function([x], xp.exp(x) + 1.0, backend="numba")
assert call(np.zeros(3)).tolist() == [2.0, 2.0, 2.0]
run = call.program.variant(((), ())).direct
entry = run.pointers["keep"][0] if run.launch else run.entry
hits = entry.cache_hits if run.launch else sum(entry.stats.cache_hits.values())
print("hits", hits)
"""


def test_another_process_compiles_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "LAZYARR_CACHE_DIR": str(tmp_path)}
    hits = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _CHILD], env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        hits.append(done.stdout.split()[-1])
    assert hits == ["0", "1"]
