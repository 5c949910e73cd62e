"""Sorting in both directions, and reversal, of every real dtype on every backend."""

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import BACKENDS

DTYPES = ["bool", "float32", "float64"] + [f"{k}int{n}" for k in ("", "u") for n in (8, 16, 32, 64)]


def numbers(dtype: str) -> np.ndarray:
    top = np.iinfo(dtype).max if "int" in dtype else 1
    return np.array([[0, top, 1, 0], [1, 0, top, top]], dtype)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_dtype(backend: str) -> None:
    arrays = [numbers(d) for d in DTYPES]
    symbols = [xp.symbol(d, shape=(2, 4), dtype=d) for d in DTYPES]
    outputs, wanted = [], []
    for x, a in zip(symbols, arrays, strict=True):
        rising = np.argsort(a, axis=1, kind="stable")
        falling = 3 - np.flip(np.argsort(np.flip(a, 1), axis=1, kind="stable"), 1)
        outputs += [xp.sort(x), xp.sort(x, descending=True), xp.argsort(x)]
        outputs += [xp.argsort(x, descending=True), xp.flip(x, axis=1), x[::-1, :]]
        wanted += [np.sort(a), np.sort(a)[:, ::-1], rising, falling, a[:, ::-1], a[::-1]]
    for got, want in zip(
        xp.function(symbols, outputs, backend=backend)(*arrays), wanted, strict=True
    ):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
