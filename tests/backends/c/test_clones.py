"""Vector functions used often are called, not written into loops, and give the same values."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.c import clones, compiler

pytestmark = [pytest.mark.backends]


MANY = 32


def many(x, f, count: int = MANY):
    total = x
    for k in range(count):
        total = total + f(x * (0.1 + k / count)) * (k + 1)
    return total


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["exp", "tanh", "gammaln", "digamma"])
def test_values_stay_what_they_were(name: str, dtype: str) -> None:
    f = getattr(xp, name, None) or getattr(xp.special, name)
    x = xp.symbol("x", dtype=dtype, shape=(None,))
    factors = [0.1 + k / MANY for k in range(MANY)]
    often = xp.function([x], [f(x * factor) for factor in factors], backend="c")
    assert ("noinline, const" in often.source) == compiler.find_compiler().clones
    once = xp.function([x], f(x), backend="c")
    for n in (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 1000):
        values = np.linspace(0.1, 20, n, dtype=dtype)
        for factor, got in zip(factors, often(values), strict=True):
            np.testing.assert_array_almost_equal_nulp(got, once(values * x.dtype.type(factor)), 4)


def test_few_uses_are_written_into_the_loop() -> None:
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], many(x, xp.exp, 4), backend="c")
    assert "always_inline" in f.source


def test_loops_call_the_vector_versions() -> None:
    if not compiler.find_compiler().clones:
        pytest.skip("this compiler makes no vector versions")
    x = xp.symbol("x", shape=(None,))
    f = xp.function([x], many(x, xp.exp), backend="c")
    assert f.source.count("#pragma omp declare simd") == len(clones.WIDTHS)
    _, path = compiler.build(f.source)
    assert b"_vexp_float64\0" in path.read_bytes()


def test_precise_programs_have_none() -> None:
    x = xp.symbol("x", shape=(None,))
    with xp.set_options(precise=True):
        f = xp.function([x], many(x, xp.exp), backend="c")
    assert "declare simd" not in f.source
