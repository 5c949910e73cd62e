"""The launchers, fast and portable: what they check, convert, allocate and report."""

import ctypes
import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from lazyarr.backends.c import launcher
from lazyarr.backends.c.compiler import load
from lazyarr.backends.c.launcher import (
    SIZES_DISAGREE,
    Interface,
    Pointers,
    as_input,
    empty,
    extension,
    launch,
    size_code,
)
from lazyarr.errors import ArgumentError, DTypeError, OverflowValueError, ShapeError
from lazyarr.graph.shapes import broadcast_size, evaluate, floordiv, maximum, slice_of, unknown
from tests.backends.c.programs import BOOL, F4, F8, I8, SOURCE, address, fail, t

pytestmark = [pytest.mark.fast, pytest.mark.backends]


@pytest.fixture(params=["native", "portable"])
def program(request):
    """Return a function that makes a callable of one of the C functions above."""
    if request.param == "native" and extension() is None:
        pytest.fail(f"the launcher could not be built: {launcher.obstacle}")

    def make(name, inputs, outputs, atoms=(), *, equal=(), arena="", table=(), **options):
        pointers = Pointers(
            address(name),
            address(arena) if arena else 0,
            ctypes.addressof(table) if table else 0,
            keep=(load(SOURCE), table),
        )
        face = Interface(
            tuple(inputs), tuple(outputs), tuple(atoms), equal=tuple(equal), names=("x", "y")
        )
        options.setdefault("on_code", fail)
        options.setdefault("returns", "single" if len(outputs) == 1 else "list")
        portable = request.param == "portable"
        return launch(face, pointers, portable=portable, **options)

    return make


@pytest.fixture
def add_one(program):
    n = unknown("n")
    return program("add_one", [t((n,))], [t((n,))], [n.atom])


def test_a_call(add_one):
    x = np.arange(10.0)
    y = add_one(x)
    np.testing.assert_array_equal(y, x + 1)
    assert type(y) is np.ndarray
    assert y.dtype == F8
    assert y.flags.c_contiguous and y.flags.writeable and y.flags.aligned
    assert add_one(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("count", [1, 7, 8, 100, 255, 256, 257, 5000, 1 << 18])
def test_results_are_fresh_aligned_and_alias_nothing(add_one, count):
    x = np.arange(float(count))
    results = [add_one(x) for _ in range(20)]
    for y in results:
        assert y.ctypes.data % 64 == 0
        assert not np.shares_memory(x, y)
        np.testing.assert_array_equal(y, x + 1)
        y[...] = -1
    spans = sorted((y.ctypes.data, y.ctypes.data + y.nbytes) for y in results)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_other_layouts_are_converted(add_one):
    x = np.arange(20.0)
    for odd in (x[::2], x[::-1], x.astype(">f8"), x.view(np.matrix)[0].A1, list(x), tuple(x)):
        np.testing.assert_array_equal(add_one(odd), np.asarray(odd) + 1)
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(F8)
    np.testing.assert_array_equal(add_one(unaligned), x + 1)
    # the same dtype as another object, and a subclass
    np.testing.assert_array_equal(add_one(np.frombuffer(x, np.dtype("=f8"))), x + 1)
    np.testing.assert_array_equal(add_one(np.ma.array(x)), x + 1)
    readonly = x.copy()
    readonly.flags.writeable = False
    np.testing.assert_array_equal(add_one(readonly), x + 1)


def test_integers_in_a_list_are_cast_and_int_arrays_are_not(add_one):
    np.testing.assert_array_equal(add_one([1, 2]), [2.0, 3.0])
    with pytest.raises(DTypeError, match=r"input 'x' must have dtype float64, got int64"):
        add_one(np.arange(3))
    with pytest.raises(DTypeError, match="float32"):
        add_one(np.ones(3, F4))
    with pytest.raises(DTypeError, match="complex"):
        add_one([1j])


def test_wrong_calls(add_one):
    with pytest.raises(ArgumentError, match="takes 1 inputs, got 2"):
        add_one(np.ones(2), np.ones(2))
    with pytest.raises(ArgumentError, match="takes 1 inputs, got 0"):
        add_one()
    with pytest.raises(ArgumentError, match="position"):
        add_one(x=np.ones(2))
    with pytest.raises(ShapeError, match=r"input 'x' must have 1 axes, got shape \(2, 2\)"):
        add_one(np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="not an array"):
        add_one([[1], [1, 2]])
    assert add_one.exact() is NotImplemented
    assert add_one.exact([1.0]) is NotImplemented


def test_static_sizes_are_checked(program):
    f = program("nothing", [t((4,))], [t((4,))])
    with pytest.raises(ShapeError, match=r"'x' must have size 4 along axis 0, got \(5,\)"):
        f(np.ones(5))


def test_equal_unknowns_are_checked(program):
    n = unknown("n")
    f = program("nothing", [t((n,)), t((n,))], [t((n,))], [n.atom])
    assert f(np.ones(3), np.ones(3)).shape == (3,)
    with pytest.raises(ShapeError, match="size n is 3 in one input and 4 in another"):
        f(np.ones(3), np.ones(4))


def test_two_unknowns(program):
    n, m = unknown("n"), unknown("m")
    f = program("outer", [t((n,)), t((m,))], [t((n, m))], [n.atom, m.atom])
    x, y = np.arange(3.0), np.arange(5.0)
    np.testing.assert_array_equal(f(x, y), np.outer(x, y))


def test_computed_sizes_of_inputs(program):
    n = unknown("n")
    # the polynomial comes before the input that binds n
    f = program("nothing", [t((2 * n + 1,)), t((n,))], [t((n * n,))], [n.atom])
    assert f(np.ones(7), np.ones(3)).shape == (9,)
    with pytest.raises(
        ShapeError, match=r"'x' must have size 2\*n \+ 1 = 7 along axis 0, got \(8,\)"
    ):
        f(np.ones(8), np.ones(3))


SIZES = {
    "polynomial": lambda n, m: 3 * n * n - 2 * m + 7,
    "negative": lambda n, m: 100 - n * m,
    "floordiv": lambda n, m: floordiv(n + 3, m + 1),
    "max": lambda n, m: maximum(n, 2 * m),
    "nested": lambda n, m: maximum(floordiv(n, 2), floordiv(m, 3)) * n + 1,
    "slice": lambda n, m: slice_of(n, slice(1, -1, 2))[1],
    "slice back": lambda n, m: slice_of(n, slice(None, 2, -1))[1],
    "slice far": lambda n, m: slice_of(n, slice(-100, 100, 3))[1],
    "slice by size": lambda n, m: slice_of(n, slice(m, None))[1],
    "slice start": lambda n, m: slice_of(n, slice(-2, None))[0] + 5,
    "slice start back": lambda n, m: slice_of(n, slice(-2, None, -2))[0] + 5,
}


@pytest.mark.parametrize("name", SIZES)
def test_output_sizes(program, name):
    n, m = unknown("n"), unknown("m")
    size = SIZES[name](n, m)
    f = program("nothing", [t((n,)), t((m,))], [t((size,))], [n.atom, m.atom])
    for a in range(8):
        for b in range(4):
            wanted = evaluate(size, {n.atom: a, m.atom: b})
            assert f(np.ones(a), np.ones(b)).shape == (wanted,)


def test_sizes_that_do_not_agree_go_to_on_code(program):
    n, m = unknown("n"), unknown("m")
    both = broadcast_size(n, m).atom
    calls = []
    f = program(
        "nothing",
        [t((n,)), t((m,))],
        [t(())],
        [n.atom, m.atom],
        equal=[(both, n)],
        on_code=lambda code, args: calls.append((code, [a.shape for a in args])),
    )
    assert f(np.ones(3), np.ones(3)).shape == ()
    assert f(np.ones(3), np.ones(1)) is None
    assert f(np.ones(3), np.ones(4)) is None
    assert calls == [(SIZES_DISAGREE, [(3,), (1,)]), (SIZES_DISAGREE, [(3,), (4,)])]


def test_a_size_of_one_can_be_rejected(program):
    n = unknown("n")
    f = program("add_one", [t((n,))], [t((n,))], [n.atom], reject_one=True)
    assert f(np.ones(2)).shape == (2,)
    with pytest.raises(ShapeError, match=r"size of 1 \(n\)"):
        f(np.ones(1))
    g = program(
        "add_one",
        [t((n,))],
        [t((n,))],
        [n.atom],
        reject_one=True,
        on_mismatch=lambda *args: ("other", args),
    )
    x = np.ones(1)
    assert g(x) == ("other", (x,))


def test_an_unknown_that_no_input_has(program):
    n, m = unknown("n"), unknown("m")
    with pytest.raises(ValueError, match="by itself"):
        program("nothing", [t((n,)), t((2 * m,))], [t(())], [n.atom, m.atom])


@pytest.mark.parametrize(
    "values",
    [
        (1.5, 2.5, 3, True),
        (1, 2.5, 3, False),
        (np.float64(1.5), np.float32(2.5), np.int64(3), np.bool_(True)),
        (np.array(1.5), np.array(2.5, F4), np.array(3), np.array(True)),
        (True, 2, True, True),
    ],
)
def test_numbers(program, values):
    f = program("scalars", [t(), t((), F4), t((), I8), t((), BOOL)], [t()])
    result = f(*values)
    assert isinstance(result, np.ndarray)
    assert result.shape == ()
    assert result == sum(float(v) for v in values)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ((1.0, 1.0, 2**63, True), OverflowValueError),
        ((1.0, 1.0, 1.0, True), DTypeError),
        ((1.0, 1.0, 1, 1), DTypeError),
        ((1j, 1.0, 1, True), DTypeError),
        ((1.0, np.float64(1), 1, True), DTypeError),
        ((np.int64(1), 1.0, 1, True), DTypeError),
        (("1", 1.0, 1, True), DTypeError),
        ((None, 1.0, 1, True), DTypeError),
        ((np.ones(1), 1.0, 1, True), ShapeError),
    ],
)
def test_numbers_that_do_not_fit(program, values, error):
    f = program("scalars", [t(), t((), F4), t((), I8), t((), BOOL)], [t()])
    with pytest.raises(error):
        f(*values)


@pytest.mark.parametrize("code", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?"])
def test_every_dtype_as_number_and_array(program, code):
    dtype = np.dtype(code)
    f = program("nothing", [t((), dtype), t((2,), dtype)], [t((3,), dtype)])
    assert f(1, np.ones(2, dtype)).dtype == dtype if code != "?" else True
    assert f(dtype.type(1), np.ones(2, dtype)).shape == (3,)
    limit = np.iinfo(dtype).max if dtype.kind in "iu" else 1.0 if dtype.kind == "f" else True
    assert f(limit, np.ones(2, dtype)).shape == (3,)
    if dtype.kind in "iu":
        for wrong in (int(limit) + 1, int(np.iinfo(dtype).min) - 1):
            with pytest.raises(OverflowValueError):
                f(wrong, np.ones(2, dtype))


def test_codes(program):
    seen = []
    f = program("code", [t((), I8)], [t((2,))], on_code=lambda *given: seen.append(given) or "x")
    assert f(0).shape == (2,)
    assert f(7) == "x"
    assert f(-3) == "x"
    assert [code for code, _ in seen] == [7, -3]
    g = program("code", [t((), I8)], [t((2,))])
    with pytest.raises(RuntimeError, match="code 5 for 1 arguments"):
        g(5)


@pytest.mark.parametrize("count", [1, 100, 511, 512, 513, 1 << 18])
def test_the_arena(program, count):
    n = unknown("n")
    f = program("arena", [t((n,))], [t((n,))], [n.atom], arena="arena_size")
    x = np.arange(float(count))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), 2 * x[::-1])


def test_the_table(program):
    table = (ctypes.c_void_p * 1)(address("twice"))
    assert program("table", [t()], [t()], table=table)(4.0) == 8.0


def test_what_is_returned(program):
    two = [t((2,)), t((3,))]
    assert [y.shape for y in program("nothing", [], two, returns="list")()] == [(2,), (3,)]
    assert isinstance(program("nothing", [], two, returns="list")(), list)
    assert isinstance(program("nothing", [], two, returns="tuple")(), tuple)
    assert program("nothing", [], [], returns="list")() == []
    with pytest.raises(ValueError):
        program("nothing", [], two, returns="both")


def test_more_than_the_stack_holds(program):
    f = program("many", [t()] * 100, [t()] * 100)
    assert f(*[np.array(1.0)] * 100) == [1.0 + k for k in range(100)]
    assert f(*[1.0] * 100) == [1.0 + k for k in range(100)]


def test_bound_inputs(program):
    n, m = unknown("n"), unknown("m")
    x, y = np.arange(3.0), np.arange(5.0)
    f = program("outer", [t((n,)), t((m,))], [t((n, m))], [n.atom, m.atom], bound=(x, None))
    np.testing.assert_array_equal(f(y), np.outer(x, y))
    np.testing.assert_array_equal(f(list(y)), np.outer(x, y))
    with pytest.raises(ArgumentError, match="takes 1 inputs, got 2"):
        f(x, y)


def test_nothing_leaks(program):
    n = unknown("n")
    f = program("add_one", [t((n,))], [t((n,))], [n.atom])
    g = program("code", [t((), I8)], [t((1000,))], on_code=lambda code, args: None)
    x, odd, one = np.ones(10), np.ones(20)[::2], np.array(1)
    square = np.ones((2, 2))

    def once() -> None:
        f(x), f(odd), g(one), f.exact(1, 2)
        for wrong in (square, "x"):
            with pytest.raises((ShapeError, DTypeError)):
                f(wrong)

    once()
    before = [sys.getrefcount(thing) for thing in (x, odd, one, x.dtype, f)]
    for _ in range(100):
        once()
    after = [sys.getrefcount(thing) for thing in (x, odd, one, x.dtype, f)]
    assert all(b - a < 20 for a, b in zip(before, after, strict=True))


def test_a_program_in_a_cycle_is_collected(program):
    class Holder:
        def on_code(self, code, args):
            return None

    holder = Holder()
    holder.call = program("code", [t((), I8)], [t()], on_code=holder.on_code)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_results_outlive_everything(program):
    n = unknown("n")
    f = program("add_one", [t((n,))], [t((n,))], [n.atom])
    y = f(np.ones(4))
    view = y[1:]
    del f, y
    gc.collect()
    np.testing.assert_array_equal(view, np.full(3, 2.0))


def test_threads(program):
    n = unknown("n")
    f = program("arena", [t((n,))], [t((n,))], [n.atom], arena="arena_size")
    wrong = []

    def work(seed: int) -> None:
        for k in range(200):
            x = np.full((seed * 97 + k * 31) % 3000 + 1, float(seed))
            if not np.array_equal(f(x), 2 * x):
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_long_work_runs_without_the_lock(program):
    f = program("spin", [t((), I8)], [t()])
    f(3_000_000)  # the first call shows that it is long
    stamps = []
    worker = threading.Thread(target=lambda: (f(150_000_000), stamps.append(time.perf_counter())))
    start = time.perf_counter()
    worker.start()
    ticks = 0
    while worker.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert stamps[0] - start > 0.05
    assert ticks > 10


# --------------------------------------------------------------------------------------- the parts


def test_as_input_keeps_what_fits():
    x = np.ones(3)
    assert as_input(t((3,)), x, "x") is x


def test_empty_is_aligned():
    for shape in [(), (3,), (5, 7)]:
        y = empty(F4, shape)
        assert y.shape == shape
        assert y.ctypes.data % 64 == 0


def test_size_code_of_an_int_is_the_int():
    assert size_code(5, {}) == 5
