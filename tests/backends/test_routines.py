"""Library routines at their edges: no elements, one, ties, NaN, odd layouts, failures; by backend.

Each test compiles one program for many inputs of unknown sizes and holds it against NumPy.
"""

import subprocess
import sys

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import LinAlgError
from tests.backend_params import parameter

pytestmark = pytest.mark.backends
BACKENDS = [parameter("c"), parameter("numba")]
RNG = np.random.default_rng(5)


def symbols(*arrays: np.ndarray) -> list:
    """Symbols for arrays, every size unknown."""
    return [
        xp.symbol(f"x{i}", shape=tuple(f"n{i}_{d}" for d in range(a.ndim)), dtype=a.dtype)
        for i, a in enumerate(arrays)
    ]


def compiled(backend: str, make, *examples: np.ndarray):
    """A function of arrays like the examples, all of it native."""
    given = symbols(*examples)
    f = xp.function(given, make(*given), backend=backend)
    assert not f.fallbacks()
    return f


# -- sorting and searching ------------------------------------------------------------------------


def ordered(x: np.ndarray, axis: int, falling: bool) -> np.ndarray:
    """The stable order, NaN as the largest."""
    if not falling:
        return np.argsort(x, axis=axis, kind="stable")
    back = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


def rows_to_sort(dtype: np.dtype) -> list[np.ndarray]:
    """Few and many elements, ties, sorted and reversed ones, nothing, special values."""
    if dtype.kind == "f":
        pool = np.array([0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, 0.5, -2.5, 1e30], dtype)
    elif dtype.kind == "b":
        pool = np.array([True, False])
    else:
        info = np.iinfo(dtype)
        pool = np.array([0, 1, 2, 3, info.max, info.min, 5, 77], dtype)
    found = [RNG.choice(pool, shape) for shape in ((3, 7), (2, 1000), (2, 192), (2, 193), (1, 1))]
    found += [np.zeros(shape, dtype) for shape in ((0, 4), (4, 0), (2, 300))]
    many = np.sort(RNG.choice(pool, (1, 400)), axis=1, kind="stable")
    found += [many, many[:, ::-1], np.asfortranarray(found[1]), found[1][:, ::-2]]
    if dtype.kind == "f":
        found.append(RNG.normal(size=(2, 2000)).astype(dtype))
    elif dtype.kind in "iu":
        found.append(RNG.integers(info.min, info.max, (2, 2000), dtype, endpoint=True))
    return found


SORTED = ("float64", "float32", "int64", "int8", "uint16", "uint64", "bool", "int32")


@pytest.mark.parametrize("backend", BACKENDS)
def test_sort(backend: str) -> None:
    # Numba compiles each dtype for a second or two
    for name in SORTED if backend == "c" else SORTED[:1]:
        dtype = np.dtype(name)
        cases = rows_to_sort(dtype)
        ways = [(axis, falling) for axis in (0, 1) for falling in (False, True)]

        def make(x, ways=ways):
            return [f(x, axis=a, descending=d) for a, d in ways for f in (xp.sort, xp.argsort)]

        run = compiled(backend, make, cases[0])
        for x in cases:
            found = run(x)
            for k, (axis, falling) in enumerate(ways):
                label = f"{name} {x.shape} {axis} {falling}"
                order = ordered(x, axis, falling)
                np.testing.assert_array_equal(found[2 * k + 1], order, err_msg=label)
                want = np.sort(x, axis=axis, kind="stable")
                want = np.flip(want, axis) if falling else want
                np.testing.assert_array_equal(found[2 * k], want, err_msg=label)
                if dtype.kind == "f":
                    fine = ~np.isnan(want)
                    signs = np.signbit(found[2 * k])[fine], np.signbit(want)[fine]
                    np.testing.assert_array_equal(*signs, err_msg=label)


@pytest.mark.parametrize("backend", BACKENDS[:1])
def test_searchsorted(backend: str) -> None:
    for name in ("float64", "int32", "uint64"):
        dtype = np.dtype(name)

        def make(x, v):
            return [xp.searchsorted(x, v, side=side) for side in ("left", "right")]

        pool = np.array([1, 3, 3, 3, 5, 9, 9, 100], dtype)
        values = np.array([0, 1, 2, 3, 4, 9, 100, 101, 7], dtype)
        if dtype.kind == "f":
            pool = np.array([-np.inf, -0.0, 0.0, 1, 1, 2, np.inf, np.nan, np.nan])
            values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 1, 9])
        run = compiled(backend, make, pool, values)
        for x in (pool, pool[:1], pool[:0], np.sort(RNG.choice(pool, 1001)), pool[:7]):
            for v in (values, values[:0], values[::-1]):
                for side, found in zip(("left", "right"), run(x, v), strict=True):
                    want = np.searchsorted(x, v, side=side)
                    np.testing.assert_array_equal(found, want, err_msg=f"{name} {x} {side}")


# -- decompositions -------------------------------------------------------------------------------

DTYPES = [np.dtype(d) for d in ("float64", "complex128", "float32", "complex64")]
SHAPES = [(3, 3), (2, 4), (4, 2), (1, 1), (0, 3), (3, 0), (12, 9), (9, 12)]
BATCHES = [(), (2,), (0,)]


def drawn(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """Random numbers of a dtype."""
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)


def close(a: np.ndarray, b: np.ndarray, label: str) -> None:
    """Fail unless two arrays agree to half the digits of their dtype."""
    assert a.dtype == b.dtype and a.shape == b.shape, f"{label}: {a.dtype} {a.shape} {b.shape}"
    limit = 1e-3 if a.dtype.name in ("float32", "complex64") else 1e-9
    np.testing.assert_allclose(a, b, rtol=limit, atol=limit, err_msg=label)


def adjoint(x: np.ndarray) -> np.ndarray:
    """The conjugate transpose."""
    return np.conj(np.swapaxes(x, -1, -2))


def chosen(backend: str) -> list[np.dtype]:
    """All dtypes; for Numba, which takes seconds for each, one."""
    return DTYPES if backend == "c" else DTYPES[1:2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_svd_and_qr(backend: str) -> None:
    def make(x):
        full, thin = xp.linalg.svd(x), xp.linalg.svd(x, full_matrices=False)
        qr = [*xp.linalg.qr(x), *xp.linalg.qr(x, mode="complete")]
        return [*full, *thin, xp.linalg.svdvals(x), *qr]

    for dtype in chosen(backend):
        run = compiled(backend, make, drawn((1, 2, 2), dtype))
        for shape in SHAPES:
            for x in (drawn((2, *shape), dtype), drawn((0, *shape), dtype),
                      np.asfortranarray(drawn((3, *shape), dtype))):  # fmt: skip
                label = f"{dtype} {x.shape}"
                u, s, vh, tu, ts, tvh, values, q, r, cq, cr = run(x)
                k = min(shape)
                close(values, np.linalg.svd(x, compute_uv=False), label)
                close(s, values, label)
                close(ts, values, label)
                close((u[..., :k] * s[..., None, :].astype(dtype)) @ vh[..., :k, :], x, label)
                close((tu * ts[..., None, :].astype(dtype)) @ tvh, x, label)
                for unitary in (u, adjoint(vh), tu, adjoint(tvh), q, cq):
                    n = unitary.shape[-1]
                    eye = np.broadcast_to(np.eye(n, dtype=dtype), (len(x), n, n))
                    close(adjoint(unitary) @ unitary, eye, label)
                close(q @ r, x, label)
                close(cq @ cr, x, label)
                assert cq.shape[-1] == shape[0]
                assert np.array_equal(np.triu(r), r) and np.array_equal(np.triu(cr), cr)


@pytest.mark.parametrize("backend", BACKENDS)
def test_eigenvalues_and_determinants(backend: str) -> None:
    def make(x):
        w, v = xp.linalg.eigh(x)
        e, r = xp.linalg.eig(x)
        sign, size = xp.linalg.slogdet(x)
        return [w, v, xp.linalg.eigvalsh(x), e, r, xp.linalg.eigvals(x), sign, size]

    for dtype in chosen(backend):
        run = compiled(backend, make, drawn((1, 2, 2), dtype))
        for n in (0, 1, 2, 5, 11):
            for x in (drawn((3, n, n), dtype), drawn((0, n, n), dtype),
                      np.asfortranarray(drawn((2, n, n), dtype))):  # fmt: skip
                label = f"{dtype} {x.shape}"
                w, v, values, e, r, only, sign, size = run(x)
                low = np.tril(x)
                whole = low + adjoint(np.tril(x, -1))
                whole = whole - 1j * np.imag(np.eye(n) * low) if dtype.kind == "c" else whole
                whole = whole.astype(dtype)
                close(values, np.linalg.eigvalsh(x), label)
                close(w, values, label)
                close(whole @ v, v * w[..., None, :].astype(dtype), label)
                close(x.astype(r.dtype) @ r, r * e[..., None, :], label)
                close(np.sort_complex(np.round(only, 2)), np.sort_complex(np.round(e, 2)), label)
                if n:
                    close(np.linalg.norm(r, axis=-2), np.ones((len(x), n), values.dtype), label)
                want = np.linalg.slogdet(x)
                close(sign, want[0], label)
                close(size, want[1], label)


@pytest.mark.parametrize("backend", BACKENDS[:1])
def test_slogdet_of_singular_matrices(backend: str) -> None:
    x = np.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]])
    sign, size = compiled(backend, lambda x: [*xp.linalg.slogdet(x)], x)(x)
    want = np.linalg.slogdet(x)
    np.testing.assert_array_equal(sign, want[0])
    np.testing.assert_allclose(size, want[1], rtol=1e-14, atol=1e-14)


FAILURES = {
    "eig of NaN": (lambda x: xp.linalg.eigvals(x), [[1.0, np.nan], [0.0, 1.0]]),
    "eig of inf": (lambda x: xp.linalg.eig(x)[1], [[1.0, np.inf], [0.0, 1.0]]),
    "svd of NaN": (lambda x: xp.linalg.svdvals(x), [[1.0, np.nan], [0.0, 1.0]]),
    "inv": (lambda x: xp.linalg.inv(x), [[1.0, 2.0], [2.0, 4.0]]),
    "cholesky": (lambda x: xp.linalg.cholesky(x), [[1.0, 2.0], [2.0, 1.0]]),
}


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "c") for name in FAILURES), ("eig of NaN", "numba")]
)
def test_failures_are_errors(backend: str, name: str) -> None:
    if backend == "numba":
        pytest.importorskip("numba")
    f, rows = FAILURES[name]
    x = np.stack([np.eye(2), np.array(rows)])
    run = compiled(backend, lambda x: [f(x)], x)
    run(x[:1])
    with pytest.raises(LinAlgError, match="1"):  # the batch index
        run(x)


@pytest.mark.fast
def test_complex_matrices_that_are_not_positive_definite() -> None:
    x = np.array([[2, 1j], [-1j, 3]])
    run = compiled("c", lambda x: [xp.linalg.cholesky(x), xp.linalg.inv(x)], x)
    low, inverse = run(x)
    close(low @ adjoint(low), x, "cholesky")
    close(inverse @ x, np.eye(2, dtype=complex), "inv")
    for n in (1, 3, 8, 9, 20):
        y = drawn((n, n), x.dtype)
        y = y @ adjoint(y) + n * np.eye(n)
        low, inverse = run(y)
        close(low, np.linalg.cholesky(y), f"cholesky {n}")
        close(inverse, np.linalg.inv(y), f"inv {n}")
    with pytest.raises(LinAlgError):
        run(np.array([[1, 2j], [-2j, 1]]))


# -- Fourier transforms ---------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_fourier(backend: str) -> None:
    def make(z, x):
        out = [xp.fft.fft(z, axis=0), xp.fft.ifft(z, axis=1, norm="ortho"), xp.fft.fftn(z)]
        out += [xp.fft.rfft(x, axis=0, norm="forward"), xp.fft.rfft(x), xp.fft.irfft(z, axis=1)]
        return [*out, xp.fft.hfft(z, axis=0, norm="ortho"), xp.fft.ihfft(x)]

    def want(z, x):
        out = [np.fft.fft(z, axis=0), np.fft.ifft(z, axis=1, norm="ortho"), np.fft.fftn(z)]
        out += [np.fft.rfft(x, axis=0, norm="forward"), np.fft.rfft(x), np.fft.irfft(z, axis=1)]
        return [*out, np.fft.hfft(z, axis=0, norm="ortho"), np.fft.ihfft(x)]

    for dtype in (DTYPES[1], DTYPES[3])[: 2 if backend == "c" else 1]:
        z = drawn((4, 5), dtype)
        run = compiled(backend, make, z, z.real)
        for shape in ((4, 5), (2, 2), (3, 101), (8, 64), (1013, 2)):
            z = drawn(shape, dtype)
            x = np.asfortranarray(z.real)
            for k, (a, b) in enumerate(zip(run(z, x), want(z, x), strict=True)):
                close(a, b, f"{k} {dtype} {shape}")


@pytest.mark.fast
def test_fourier_of_nothing_fails_and_of_no_rows_does_not() -> None:
    z = np.zeros((0, 4), complex)
    run = compiled("c", lambda z: [xp.fft.fft(z, axis=1)], z)
    assert run(z)[0].shape == (0, 4)
    with pytest.raises(ValueError):
        run(np.zeros((2, 0), complex))


@pytest.mark.fast
def test_vectors_that_nothing_reads_are_not_computed() -> None:
    given = symbols(np.eye(3))
    text = xp.function(given, [xp.linalg.svdvals(given[0])], backend="c").explain()
    made = next(line for line in text.splitlines() if line.endswith("svd (library)"))
    u, s, vh = made.removesuffix(" = svd (library)").split(", ")
    for vectors in (u.strip(), vh):
        assert f"stack: {vectors} float64[1]" in text
    assert "[n" in text


# -- without the libraries ------------------------------------------------------------------------

WITHOUT = """
import sys
sys.modules["scipy"] = None
import numpy as np
import lazyarr as xp
from lazyarr.backends.loop import transforms
transforms.MODULE = "no.such.module"
x = xp.symbol("x", shape=("n", "n"), dtype="float64")
results = [xp.linalg.svdvals(x), xp.linalg.slogdet(x)[1], xp.abs(xp.fft.fft(x)), xp.linalg.inv(x)]
f = xp.function([x], results, backend="c")
assert sorted(step.split("(")[0] for step in f.fallbacks()) == ["fourier", "svd"], f.fallbacks()
a = np.arange(9.0).reshape(3, 3) + 10 * np.eye(3)
s, size, z, inverse = f(a)
np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False))
np.testing.assert_allclose(size, np.linalg.slogdet(a)[1])
np.testing.assert_allclose(z, np.abs(np.fft.fft(a)))
np.testing.assert_allclose(inverse @ a, np.eye(3), atol=1e-12)
"""


def test_what_needs_a_library_falls_back_without_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
