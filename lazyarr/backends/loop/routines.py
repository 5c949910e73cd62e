"""The meaning of library routines: what each writes, by NumPy, into the memory of its results.

A routine takes its results (one array, or a list), its operands and its sizes as flat memory, and
says whether it succeeded.
"""

from collections.abc import Callable

import numpy as np

from lazyarr.graph.registry import OPS


def _matrices(memory: np.ndarray, *shape: int) -> np.ndarray:
    return memory[: int(np.prod(shape, dtype=int))].reshape(shape)


def _cholesky(out: np.ndarray, operands: list, sizes: list) -> bool:
    batch, n = sizes
    try:
        _matrices(out, batch, n, n)[...] = np.linalg.cholesky(_matrices(operands[0], batch, n, n))
    except np.linalg.LinAlgError:
        return False
    return True


def _solve_triangular(out: np.ndarray, operands: list, sizes: list) -> bool:
    batch, n, k, lower, trans, unit = sizes
    x, a = _matrices(out, batch, n, k), _matrices(operands[0], batch, n, n)
    x[...] = _matrices(operands[1], batch, n, k)
    if trans:
        a = np.swapaxes(a, 1, 2)
    down = bool(lower) != bool(trans)
    with np.errstate(all="ignore"):
        for i in range(n) if down else reversed(range(n)):
            done = slice(0, i) if down else slice(i + 1, n)
            x[:, i] -= np.einsum("bp,bpj->bj", a[:, i, done], x[:, done])
            if not unit:
                x[:, i] /= a[:, i, i, None]
    return True


def _product(spec: tuple, a: np.ndarray, b: np.ndarray, absorb: int) -> np.ndarray:
    return OPS["contract"].reference(a, b, spec=spec, absorb=bool(absorb))


def _gemm(out: np.ndarray, operands: list, sizes: list) -> bool:
    batch, m, n, k, at, bt, absorb = sizes
    a = _matrices(operands[0], batch, *((k, m) if at else (m, k)))
    b = _matrices(operands[1], batch, *((n, k) if bt else (k, n)))
    with np.errstate(all="ignore"):
        x, y = a.mT if at else a, b.mT if bt else b
        _matrices(out, batch, m, n)[...] = _product(((0, 1, 2), (0, 2, 3), (0, 1, 3)), x, y, absorb)
    return True


def _gemv(out: np.ndarray, operands: list, sizes: list) -> bool:
    m, k, at, absorb = sizes
    a = _matrices(operands[0], k, m).T if at else _matrices(operands[0], m, k)
    with np.errstate(all="ignore"):
        out[:m] = _product(((0, 1), (1,), (0,)), a, operands[1][:k], absorb)
    return True


def _solve(out: np.ndarray, operands: list, sizes: list) -> bool:
    batch, n, k = sizes
    a, b = _matrices(operands[0], batch, n, n), _matrices(operands[1], batch, n, k)
    try:
        _matrices(out, batch, n, k)[...] = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return False
    return True


def _inverse(out: np.ndarray, operands: list, sizes: list) -> bool:
    batch, n = sizes
    try:
        _matrices(out, batch, n, n)[...] = np.linalg.inv(_matrices(operands[0], batch, n, n))
    except np.linalg.LinAlgError:
        return False
    return True


def _determinant(out: np.ndarray, operands: list, sizes: list) -> bool:
    batch, n = sizes
    out[:batch] = np.linalg.det(_matrices(operands[0], batch, n, n))
    return True


def _write(results: list, values: tuple) -> bool:
    for memory, value in zip(results, values, strict=True):
        if memory.size >= value.size:  # else nothing reads it
            memory[: value.size] = value.reshape(-1)
    return True


def _routine(shaped: Callable, function: Callable) -> Callable:
    """Return the routine of a function of matrices and flags; its failure is a LinAlgError."""

    def run(results: list, operands: list, sizes: list) -> bool:
        x, flags = shaped(operands[0], sizes)
        try:
            return _write(results, function(x, *flags))
        except np.linalg.LinAlgError:
            return False

    return run


def _of_square(memory: np.ndarray, sizes: list) -> tuple:
    batch, n, *flags = sizes
    return _matrices(memory, batch, n, n), flags


def _of_any(memory: np.ndarray, sizes: list) -> tuple:
    batch, m, n, *flags = sizes
    return _matrices(memory, batch, m, n), flags


def _along(operand: np.ndarray, sizes: list) -> np.ndarray:
    return _matrices(operand, *sizes[:3])


def _sort(out: np.ndarray, operands: list, sizes: list) -> bool:
    found = np.sort(_along(operands[0], sizes), axis=1, kind="stable")
    found = np.flip(found, 1) if sizes[3] else found
    return _write([out], (found,))


def _argsort(out: np.ndarray, operands: list, sizes: list) -> bool:
    x = _along(operands[0], sizes)
    x = np.flip(x, 1) if sizes[3] else x
    found = np.argsort(x, axis=1, kind="stable")
    return _write([out], (np.flip(x.shape[1] - 1 - found, 1) if sizes[3] else found,))


def _search(out: np.ndarray, operands: list, sizes: list) -> bool:
    n, m, right = sizes
    side = "right" if right else "left"
    return _write([out], (np.searchsorted(operands[0][:n], operands[1][:m], side=side),))


NORMS = ("backward", "ortho", "forward")


def _fourier(out: np.ndarray, operands: list, sizes: list) -> bool:
    inverse, norm = sizes[3:]
    function = np.fft.ifft if inverse else np.fft.fft
    return _write([out], (function(_along(operands[0], sizes), axis=1, norm=NORMS[norm]),))


def _fourier_half(out: np.ndarray, operands: list, sizes: list) -> bool:
    return _write([out], (np.fft.rfft(_along(operands[0], sizes), axis=1, norm=NORMS[sizes[3]]),))


def _fourier_real(out: np.ndarray, operands: list, sizes: list) -> bool:
    n, norm = sizes[3:]
    x = _along(operands[0], sizes)
    return _write([out], (np.fft.irfft(x, n, axis=1, norm=NORMS[norm]),))


ROUTINES: dict[str, Callable] = {
    "solve": _solve,
    "inverse": _inverse,
    "determinant": _determinant,
    "cholesky": _cholesky,
    "solve_triangular": _solve_triangular,
    "gemm": _gemm,
    "gemv": _gemv,
    "slogdet": _routine(_of_square, lambda x: tuple(np.linalg.slogdet(x))),
    "qr": _routine(
        _of_any,
        lambda x, complete: tuple(np.linalg.qr(x, mode="complete" if complete else "reduced")),
    ),
    "svd": _routine(
        _of_any, lambda x, full, vectors: tuple(np.linalg.svd(x, full_matrices=bool(full)))
    ),
    "eigh": _routine(_of_square, lambda x, vectors: tuple(np.linalg.eigh(x))),
    "eig": _routine(_of_square, lambda x, vectors: tuple(np.linalg.eig(x))),
    "sort": _sort,
    "argsort": _argsort,
    "search": _search,
    "fourier": _fourier,
    "fourier_half": _fourier_half,
    "fourier_real": _fourier_real,
}
