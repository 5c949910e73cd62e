"""Functions of others that are part of compiled programs: C sources, functions of Numba, memory."""

import importlib.util
import pickle
import shutil
import subprocess

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.c.foreign import names_in
from lazyarr.backends.loop.check import check
from lazyarr.backends.loop.interpret import run
from lazyarr.backends.loop.plan import plan
from lazyarr.errors import ArgumentError, LazyArrError
from lazyarr.graph.traverse import Graph
from tests.backend_params import BACKENDS, parameter

POINT = np.linspace(0.3, 1.7, 5)
COMPILED = [parameter(name) for name in ("c", "numba")]
on_backends = pytest.mark.parametrize("backend", BACKENDS)
INSIDE = [parameter("interpret"), *COMPILED]  # elsewhere these functions are called from Python
on_inside = pytest.mark.parametrize("backend", INSIDE)
on_compiled = pytest.mark.parametrize("backend", COMPILED)
needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba is not installed"
)
LOOP = "for (int64_t i = 0; i < n; i++)"


def mapped(name, body, before="", **options):
    """A C function of one array by a formula of x[i]."""
    text = (
        f"{before}\nvoid {name}(int64_t n, const double *x, double *y) {{ {LOOP} y[i] = {body}; }}"
    )
    return xp.wrap_c(text, f"{name}(n, x: float64[n]) -> y: float64[n]", **options)


# -- C sources -------------------------------------------------------------------------------------


def test_a_source_is_part_of_the_file():
    cube = mapped("cube", "x[i] * x[i] * x[i]", vjp=lambda g, y, x: (3 * g * x * x,))
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], xp.value_and_grad(xp.sum(cube(x) + cube(x + 1)), x), backend="c")
    assert f.source.count("x[i] * x[i] * x[i]") == 1 and not f.fallbacks()
    value, slope = f(POINT)
    np.testing.assert_allclose(value, np.sum(POINT**3 + (POINT + 1) ** 3))
    np.testing.assert_allclose(slope, 3 * POINT**2 + 3 * (POINT + 1) ** 2)
    again = pickle.loads(pickle.dumps(f.program.variants[(), ()].steps[0].run))
    np.testing.assert_allclose(again.call(POINT)[0], value)


@on_compiled
def test_sources_with_equal_names(backend):
    """Functions get names of their own; other names that two sources share part them."""
    one = mapped("f", "help(x[i])", "static double help(double x) { return x + 1; }")
    two = mapped("f", "help(x[i]) * k", "static double k = 10; double help(double x) { return x; }")
    three = mapped("g", "k - x[i]", "static const double k = 7;\n#define LEFT k")
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], [one(x), two(x), three(x), one(two(x))], backend=backend)
    wanted = [POINT + 1, POINT * 10, 7 - POINT, POINT * 10 + 1]
    for got, want in zip(f(POINT), wanted, strict=True):
        np.testing.assert_allclose(got, want)
    assert not f.fallbacks()


@on_compiled
def test_macros_and_flags(backend):
    """Macros hold in the source alone; flags that would change the file part it from the file."""
    ten = mapped("f", "FACTOR * x[i]", flags=["-DFACTOR=10"])
    two = mapped("g", "FACTOR * x[i]", flags=["-DFACTOR=2", "-O1"])
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], ten(x) + two(x), backend=backend)
    np.testing.assert_allclose(f(POINT), 12 * POINT)
    if backend == "c":
        assert "FACTOR * x[i]" in f.source and "#define FACTOR 2" not in f.source


def test_names_in_a_source():
    functions, others = names_in(
        '#include <math.h>\n#define TWO 2 /* f( */\nstruct pair { double a; };\n'
        'static int table[3] = {1, 2, 3}; // g() {\n'
        'double f(double (*h)(int), char c) { if (c) { return k("{"); } return table[0]; }\n'
    )  # fmt: skip
    assert functions == {"f"} and others == {"TWO", "pair", "table"}


@on_backends
def test_codes_of_failures(backend):
    root = xp.wrap_c(
        "int root(const double *x, double *y) { if (*x < 0) return 3; *y = sqrt(*x); return 0; }",
        "int root(x: float64[]) -> y: float64[]",
    )
    x = xp.symbol("x")
    f = xp.function([x], root(x * 2) + 1, backend=backend)
    assert f(8.0) == 5
    with pytest.raises(LazyArrError, match="returned the code 3"):
        f(-1.0)


@on_inside
def test_dtypes_numbers_and_matrices(backend):
    mix = xp.wrap_c(
        """
        void mix(int64_t n, int64_t m, _Bool up, int8_t k, uint16_t u, float s,
                 const float *a, const int32_t *b, float *c, int64_t *d)
        {
            for (int64_t i = 0; i < n * m; i++) c[i] = up ? a[i] + k * s : a[i] - u;
            for (int64_t j = 0; j < m; j++) d[j] = b[j] + (int64_t)n;
        }
        """,
        "mix(n, m, up: bool, k: int8, u: uint16, s: float32, a: float32[n, m], b: int32[m])"
        " -> (c: float32[n, m], d: int64[m])",
    )
    dtypes = ["bool", "int8", "uint16", "float32"]
    scalars = [xp.symbol(d, dtype=d) for d in dtypes]
    a = xp.symbol("a", shape=(None, None), dtype="float32")
    b = xp.symbol("b", shape=(None,), dtype="int32")
    c, d = mix(*scalars, xp.permute_dims(a, (1, 0)), b)
    f = xp.function([*scalars, a, b], [c * 2, d], backend=backend)
    matrix, row = np.arange(6, dtype="float32").reshape(2, 3), np.array([5, 6], "int32")
    for up in (True, False):
        got = f(up, -3, 9, 0.5, matrix, row)
        np.testing.assert_array_equal(got[0], 2 * (matrix.T - 1.5 if up else matrix.T - 9))
        np.testing.assert_array_equal(got[1], [8, 9])


@on_backends
def test_inside_loops_with_derivatives(backend):
    """A function in the body of a scan, its rule in the body of the derivative."""
    soft = mapped("soft", "tanh(x[i])", vjp=lambda g, y, x: (g * (1 - y * y),))
    x = xp.symbol("x", shape=(3, 4))

    def through(f):
        last, ys = xp.scan(lambda c, row: (f(c) + row, f(row * c)), xp.zeros(4), x)
        return [last, ys, *xp.value_and_grad(xp.sum(last) + xp.sum(ys), x)]

    rows = np.stack([POINT[:4], -POINT[:4], POINT[1:]])
    f = xp.function([x], through(soft), backend=backend)
    want = xp.function([x], through(xp.tanh), backend="interpret")(rows)
    for a, b in zip(f(rows), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert not f.fallbacks() or backend in ("jax", "torch")


@on_inside
def test_loops_call_back_what_only_python_can_call(backend):
    """The loop is compiled all the same; errors are told as they are elsewhere."""

    def careful(c, row):
        if row[0] > 100:
            raise ValueError("too large")
        row *= 2  # declared: it is a copy
        return c * 0.5 + row, np.int64(row.size)

    f = xp.wrap_numpy(
        careful,
        out=lambda c, row: [(c.dtype, c.shape), ("int64", ())],
        overwrites=[1],
        vjp=lambda g, y, c, row: (g[0] * 0.5, g[0] * 2),
    )
    x = xp.symbol("x", shape=(None, None))

    def step(c, row):
        new, size = f(c, row)
        return new, row * size

    last, ys = xp.scan(step, xp.zeros(x.sizes[1]), x)
    g = xp.function([x], [last, ys, xp.grad(xp.sum(last), x)], backend=backend)
    rows = np.linspace(-1, 1, 12).reshape(4, 3)
    want = np.zeros(3)
    for row in rows:
        want = want * 0.5 + 2 * row
    for _ in range(2):
        got = g(rows)
        np.testing.assert_allclose(got[0], want)
        np.testing.assert_allclose(got[1], 3 * rows)
        np.testing.assert_allclose(got[2], 2 * 0.5 ** np.arange(4)[::-1, None] * np.ones(3))
    called = [s for s in g.fallbacks() if "called back" in s]
    assert called == g.fallbacks() and bool(called) == (backend != "interpret")
    with pytest.raises(ValueError, match="too large"):
        g(rows * 1000)
    np.testing.assert_array_equal(rows, np.linspace(-1, 1, 12).reshape(4, 3))


def test_exported_with_its_source(tmp_path):
    """What is exported holds the sources of others too."""
    cube = mapped("cube", "x[i] * x[i] * x[i]", vjp=lambda g, y, x: (3 * g * x * x,))
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], xp.value_and_grad(xp.sum(cube(x)), x), backend="c")
    f.export_c(tmp_path, "cubes")
    cc = shutil.which("cc") or pytest.skip("no C compiler")
    line = [cc, "-O2", "cubes.c", "main.c", "-lm", "-o", "run"]
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    numbers = " ".join(map(repr, POINT.tolist()))
    out = subprocess.run(
        [tmp_path / "run", "5"], input=numbers, capture_output=True, text=True, check=True
    ).stdout
    np.testing.assert_allclose(np.array(out.split(), float), [np.sum(POINT**3), *3 * POINT**2])


def test_checked_and_interpreted_plan():
    """The loop family's own checker and interpreter know these calls."""
    cube = mapped("cube", "x[i] * x[i] * x[i]")
    x = xp.symbol("x", shape=(5,))
    y = cube(x + 1) * 2
    made = plan(Graph([x._v], [y._v]))
    check(made)
    (got,), code = run(made, [POINT])
    assert code == 0
    np.testing.assert_allclose(got, 2 * (POINT + 1) ** 3)


# -- functions of Numba ----------------------------------------------------------------------------


@needs_numba
@on_inside
def test_functions_of_numba(backend):
    numba = pytest.importorskip("numba")

    @numba.njit
    def stats(x, power, k):
        total = 0.0
        for v in x.flat:
            total += v**power
        return total + k[()], x.T * 2, x > 1

    f = xp.wrap_numba(
        stats,
        out=lambda x, power, k: [("float64", ()), (x.dtype, x.shape[::-1]), ("bool", x.shape)],
    )
    x, k = xp.symbol("x", shape=(None, 2)), xp.symbol("k")
    total, turned, large = f(x * 3, 2, k)
    g = xp.function([x, k], [total + 1, turned, large], backend=backend)
    rows = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    got = g(rows, 2.0)
    np.testing.assert_allclose(got[0], np.sum((3 * rows) ** 2) + 3)
    np.testing.assert_allclose(got[1], 6 * rows.T)
    np.testing.assert_array_equal(got[2], 3 * rows > 1)
    assert not g.fallbacks()


@needs_numba
@on_inside
def test_numba_functions_that_raise_or_give_other_shapes(backend):
    numba = pytest.importorskip("numba")

    @numba.njit
    def picky(x):
        if x[0] < 0:
            raise ValueError("negative")
        return x[:2] if x[0] > 1 else x

    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], xp.wrap_numba(picky, out=0)(x) * 2, backend=backend)
    np.testing.assert_allclose(f(np.array([0.5, 2.0, 3.0])), [1, 4, 6])
    with pytest.raises(ValueError, match="negative"):
        f(np.array([-0.5, 2.0, 3.0]))
    with pytest.raises(LazyArrError, match="disagree|declared|size|shape"):
        f(np.array([1.5, 2.0, 3.0]))


@needs_numba
@on_compiled
def test_numba_functions_with_declared_types_and_cfuncs(backend):
    numba = pytest.importorskip("numba")
    typed = numba.njit("float64[::1](float64[::1])")(lambda x: x + 1)
    number = numba.cfunc("float64(float64, float64)")(lambda a, b: a * b)

    @numba.cfunc("void(int64, CPointer(float64), CPointer(float64))")
    def pointers(n, x, y):
        for i in range(n):
            y[i] = x[i] * x[i]

    square = xp.wrap_numba(pointers, signature="pointers(n, x: float64[n]) -> y: float64[n]")
    x, k = xp.symbol("x", shape=(None,)), xp.symbol("k")
    out = [xp.wrap_numba(typed, out=0)(x), xp.wrap_numba(number, out=0)(k, k), square(x)]
    f = xp.function([x, k], out, backend=backend)
    got = f(POINT, 3.0)
    for a, b in zip(got, [POINT + 1, 9.0, POINT**2], strict=True):
        np.testing.assert_allclose(a, b)
    assert not f.fallbacks()
    with pytest.raises(ArgumentError, match="signature="):
        xp.wrap_numba(pointers, out=0)


@needs_numba
@on_compiled
def test_programs_with_functions_of_numba_are_pickled(backend):
    numba = pytest.importorskip("numba")
    x = xp.symbol("x", shape=(5,))
    inner = xp.wrap_numba(numba.njit(lambda x: x * 3), out=0)
    g = xp.function([x], inner(x + 1) + 1, backend=backend)
    again = pickle.loads(pickle.dumps(g.program.variants[(), ()].steps[0].run))
    outputs, code = again([POINT])
    assert code == 0
    np.testing.assert_allclose(outputs[0], (POINT + 1) * 3 + 1)


# -- memory ----------------------------------------------------------------------------------------

SPOIL = """
void spoil(int64_t n, double *x, const double *k, double *y)
{
    for (int64_t i = 0; i < n; i++) { x[i] = x[i] * 2; }
    for (int64_t i = 0; i < n; i++) { y[i] = x[i] + k[i]; x[i] = -1e300; }
}
"""
SIGNATURE = "spoil(n, x: float64[n], k: float64[n]) -> y: float64[n]"


def spoiled(x, k):
    """What the functions that overwrite give."""
    return 2 * x + k


def spoilers():
    """The same function, which writes its first operand, in C and as Python of NumPy."""

    def python(x, k):
        x *= 2
        y = x + k
        x[...] = -1e300
        return y

    return {
        "c": xp.wrap_c(SPOIL, SIGNATURE, overwrites=["x"], aliases={"y": ["k"]}),
        "numpy": xp.wrap_numpy(python, out=0, overwrites=[0], aliases={0: [1]}),
    }


@on_backends
@pytest.mark.parametrize("language", ["c", "numpy"])
def test_what_is_overwritten_is_seen_by_nobody(language, backend):
    f = spoilers()[language]
    x, k = xp.symbol("x", shape=(None,)), xp.symbol("k", shape=(None,))
    constant = xp.asarray(POINT + 5)
    middle = xp.exp(x)
    twice = xp.sin(x)

    def outputs(f):
        return [
            f(x, k),  # an input
            f(constant, k),  # a constant
            f(middle, k) + middle,  # a value that is needed later
            f(xp.cos(x), xp.tanh(k)),  # temporaries of their own
            f(xp.log(x), k + x) * 2,
            f(twice, twice),  # the same operand twice
            f(f(x, k), f(k, x)),  # results of the same function
            x + k,
        ]

    g = xp.function([x, k], outputs(f), backend=backend)
    given = [POINT.copy(), POINT[::-1].copy()]
    want = xp.function([x, k], outputs(spoiled), backend="interpret")(*given)
    for _ in range(2):  # the constants are still there
        for i, (a, b) in enumerate(zip(g(*given), want, strict=True)):
            np.testing.assert_allclose(a, b, err_msg=str(i))
    np.testing.assert_array_equal(given[0], POINT)
    np.testing.assert_array_equal(given[1], POINT[::-1])


@on_backends
def test_overwriting_in_loops(backend):
    f = spoilers()["c"]
    x = xp.symbol("x", shape=(4, 3))

    def through(f):
        def step(c, row):
            new = f(c, row)
            return new * 0.5 + f(xp.exp(-c), row), f(row, c)

        return list(xp.scan(step, xp.ones(3), x))

    rows = np.linspace(-1, 1, 12).reshape(4, 3)
    g = xp.function([x], through(f), backend=backend)
    want = xp.function([x], through(spoiled), backend="interpret")(rows)
    for a, b in zip(g(rows), want, strict=True):
        np.testing.assert_allclose(a, b)


def test_nothing_is_copied_that_need_not_be():
    """A temporary that only the call reads is given away; of several inputs the first that fits."""
    both = xp.wrap_c(
        "void both(int64_t n, const double *a, const double *b, double *y)"
        f" {{ {LOOP} y[i] = a[i] - b[i]; }}",
        "both(n, a: float64[n], b: float64[n]) -> y: float64[n]",
        aliases={"y": ["a", "b"]},
    )
    x = xp.symbol("x", shape=(200,))
    f = xp.function([x], xp.sum(both(x, xp.exp(x))), backend="c")
    np.testing.assert_allclose(f(np.zeros(200)), -200)
    assert f.source.count("double m") <= 2  # exp(x) and the result are one buffer
    spoil = spoilers()["c"]
    g = xp.function([x], xp.sum(spoil(xp.exp(x), x)), backend="c")
    h = xp.function([x], xp.sum(spoil(x, x + 1)), backend="c")
    assert "overwrites it" not in g.explain() and "overwrites it" in h.explain()


@on_inside
def test_undeclared_writes_are_refused(backend):
    def careless(x):
        x += 1
        return x

    x = xp.symbol("x", shape=(5,))
    f = xp.function([x], xp.wrap_numpy(careless, out=0)(x), backend=backend)
    given = POINT.copy()
    with pytest.raises(ValueError, match="read-only"):
        f(given)
    g = xp.function([x], xp.wrap_numpy(careless, out=0, overwrites=[0])(x), backend=backend)
    np.testing.assert_allclose(g(given), POINT + 1)
    np.testing.assert_array_equal(given, POINT)


@on_backends
def test_results_that_are_views_of_arguments(backend):
    """Reversed, transposed, and the argument itself: what is returned is fresh memory."""
    f = xp.wrap_numpy(lambda x: (x[::-1], x), out=[0, 0], aliases={0: [0], 1: [0]})
    x = xp.symbol("x", shape=(5,))
    given = POINT.copy()
    for out in xp.function([x], list(f(x)), backend=backend)(given):
        out += 1
    np.testing.assert_array_equal(given, POINT)


def test_unknown_buffers_are_refused():
    with pytest.raises(ArgumentError, match="no buffer 'z'"):
        xp.wrap_c(SPOIL, SIGNATURE, overwrites=["z"])
    with pytest.raises(ArgumentError, match="no buffer 'q'"):
        xp.wrap_c(SPOIL, SIGNATURE, aliases={"y": ["q"]})
