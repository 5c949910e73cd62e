"""A loop that divides by one number may multiply by its reciprocal, within an ulp, never otherwise.

Infinities, zeros and numbers near the ends of the range divide as the interpreter divides.
"""

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import parameter

pytestmark = pytest.mark.backends

WORK = {
    "cheap": lambda x, d: x / d,
    "two divisors": lambda x, d: xp.maximum((x - d) / d, x / (d + 1)),
    "dear": lambda x, d: xp.tanh(x) / d,
    "rows": lambda x, d: x / xp.expand_dims(xp.min(x, axis=-1), axis=-1) * d,
    "peaks": lambda x, d: xp.max(x / d, axis=-1),
}


def divisors(dtype: str) -> list[float]:
    info = np.finfo(dtype)
    edges = [info.smallest_subnormal, info.tiny, info.max, info.max / 2, 2.0 / info.max]
    return [3.0, -7.0, 0.1, 0.0, -0.0, np.inf, -np.inf, np.nan, *map(float, edges)]


def numbers(length: int, dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    x = np.random.default_rng(length).normal(size=(2, length)).astype(dtype)
    x[1, :7] = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.smallest_subnormal]
    return x


@pytest.mark.parametrize("backend", [parameter("c"), parameter("numba")])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quotients(dtype: str, work: str, backend: str) -> None:
    x = xp.symbol("x", dtype=dtype, shape=(None, None))
    d = xp.symbol("d", dtype=dtype, shape=())
    f, oracle = (xp.function([x, d], WORK[work](x, d), backend=b) for b in (backend, "interpret"))
    for length in (7, 15, 40, 700):
        values = numbers(length, dtype)
        for divisor in divisors(dtype):
            with np.errstate(all="ignore"):
                want = oracle(values, np.asarray(divisor, dtype))
            got = f(values, np.asarray(divisor, dtype))
            assert np.array_equal(np.isnan(got), np.isnan(want)), divisor
            fine = np.isfinite(want)
            assert np.array_equal(got[~fine], want[~fine], equal_nan=True), divisor
            with np.errstate(over="ignore"):
                near = 4 * np.spacing(np.abs(want[fine]))
            assert np.all(np.abs(got[fine] - want[fine]) <= near), divisor
