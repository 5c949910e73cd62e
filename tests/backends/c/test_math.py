"""Math functions of compiled programs: within 4 ulp on large samples, and right at the edges.

Three ways of computing them: as programs do, as they do where the libc has no vector functions, and
`precise`. All functions of a dtype are one program, each of inputs of its own.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.c import compiler

pytestmark = [pytest.mark.backends]

MODES = ["vector", "without libmvec", "precise"]
DTYPES = ["float64", "float32"]
BARS = {"vector": 4.0, "without libmvec": 3.0, "precise": 3.0}
MANY, FEW = 100_000, 1000  # elements of a sample, where NumPy and where mpmath is the reference
TOP = {"float64": 290, "float32": 35}  # decimal exponents of large numbers
HUGE = {"float64": 709.0, "float32": 88.0}
LEAST = {"float64": (745.1, 708.0), "float32": (103.9, 87.3)}  # exp is subnormal between -these
Sample = Callable[[np.random.Generator, int, str], np.ndarray]


def signs(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], n)


def everywhere(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """Numbers of all sizes and both signs."""
    return signs(rng, n) * 10.0 ** rng.uniform(-TOP[dtype], TOP[dtype], n)


def within(low: float, high: float) -> Sample:
    return lambda rng, n, dtype: rng.uniform(low, high, n)


def positive(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return np.abs(everywhere(rng, n, dtype))


def exponents(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return rng.uniform(-HUGE[dtype], HUGE[dtype], n)


def vanishing(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    least, most = LEAST[dtype]
    return rng.uniform(-least, -most, n)


def subnormal(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    facts = np.finfo(dtype)
    return signs(rng, n) * rng.integers(1, 2**facts.nmant, n) * float(facts.smallest_subnormal)


def above_zero(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return np.abs(subnormal(rng, n, dtype))


def near_one(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return 1 + signs(rng, n) * 10.0 ** rng.uniform(-np.finfo(dtype).precision, -0.5, n)


def near_quarters(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """The numbers next to multiples of pi / 2."""
    x = (rng.integers(-1000, 1000, n) * (np.pi / 2)).astype(dtype)
    return np.nextafter(x, x + signs(rng, n).astype(dtype))


LITTLE = within(-1e-3, 1e-3)
NUMPY: dict[str, list[Sample]] = {  # the reference is NumPy's function in the next wider dtype
    "exp": [exponents, within(-1, 1), vanishing, subnormal],
    "expm1": [exponents, within(-1, 1), LITTLE, subnormal],
    "log": [positive, within(0.5, 2), near_one, above_zero],
    "log2": [positive, within(0.5, 2), near_one, above_zero],
    "log10": [positive, within(0.5, 2), near_one, above_zero],
    "log1p": [positive, within(-0.9, 2), LITTLE, within(-1, -0.9), subnormal],
    "sin": [within(-100, 100), everywhere, near_quarters, subnormal],
    "cos": [within(-100, 100), everywhere, near_quarters, subnormal],
    "tan": [within(-10, 10), everywhere, near_quarters, subnormal],
    "asin": [within(-1, 1), LITTLE, subnormal],
    "acos": [within(-1, 1), within(0.999, 1)],
    "atan": [everywhere, within(-3, 3), subnormal],
    "sinh": [within(-20, 20), exponents, LITTLE, subnormal],
    "cosh": [within(-20, 20), exponents],
    "tanh": [within(-20, 20), within(-1, 1), LITTLE, subnormal],
    "asinh": [everywhere, within(-3, 3), LITTLE, subnormal],
    "acosh": [within(1, 100), positive, within(1, 1.001)],
    "atanh": [within(-0.99, 0.99), within(-1, 1), LITTLE, subnormal],
}
MPMATH: dict[str, tuple[Callable, list[Sample]]] = {
    "erf": (mpmath.erf, [within(-6, 6), within(-0.5, 0.5), LITTLE, subnormal]),
    "erfc": (mpmath.erfc, [within(-6, 9), within(9, 26.5)]),
    "gammaln": (
        mpmath.loggamma,
        [within(0, 3), within(0.9, 1.1), within(1.9, 2.1), within(0, 50), positive, above_zero],
    ),
    "digamma": (mpmath.digamma, [within(0, 3), within(1.4, 1.5), within(0, 50), within(10, 1e6)]),
}


def pairs(first: Sample, second: Sample) -> Sample:
    return lambda rng, n, dtype: np.stack([first(rng, n, dtype), second(rng, n, dtype)])


def alike(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    x = everywhere(rng, n, dtype)
    return np.stack([x, x * rng.uniform(0.1, 10, n)])


def powers(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """Results of all sizes."""
    x = 10.0 ** rng.uniform(-8, 8, n)
    y = rng.uniform(-1, 1, n) * TOP[dtype] / np.maximum(np.abs(np.log10(x)), 0.3)
    return np.stack([x, y])


def powers_near_one(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    away = 10.0 ** rng.uniform(-12 if dtype == "float64" else -6, -1, n)
    y = signs(rng, n) / away * rng.uniform(0.1, HUGE[dtype], n)
    return np.stack([1 + signs(rng, n) * away, y])


def powers_below_zero(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    return np.stack([-(10.0 ** rng.uniform(-3, 3, n)), rng.integers(-9, 10, n)])


def vanishing_powers(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    least, most = LEAST[dtype]
    return np.stack([np.full(n, 2.0), rng.uniform(-least, -most, n) / np.log(2)])


ONES = within(-1, 1)
BINARY: dict[str, tuple[Callable, list[Sample]]] = {
    "pow": (
        np.power,
        [powers, powers_near_one, powers_below_zero, vanishing_powers, pairs(above_zero, ONES)],
    ),
    "atan2": (
        np.arctan2,
        [alike, pairs(everywhere, everywhere), pairs(ONES, ONES), pairs(subnormal, subnormal)],
    ),
    "hypot": (
        np.hypot,
        [alike, pairs(everywhere, everywhere), pairs(ONES, ONES), pairs(subnormal, subnormal)],
    ),
}
NAMES = [*NUMPY, *MPMATH, *BINARY]
EDGES = [
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 5e-324,
    1e300, -1e300, 709.7, 709.8, 710.5, -708.5, -745.1, -745.2, -745.3, -1e4, 1e-30, 1.5, 3.0, -3.0,
    1e-45, -1e-45, 1e-40, 3e38, 88.7, 88.8, -87.4, -103.9, -104.1, 2.2250738585072014e-308,
]  # fmt: skip


def function_of(name: str) -> Callable:
    return getattr(xp, name, None) or getattr(xp.special, name)


@cache
def program(dtype: str, mode: str, backend: str = "c") -> Callable:
    """Every function of NAMES, with an input of its own or two."""
    given = [
        [xp.symbol(f"{name}{k}", dtype=dtype, shape=(None,)) for k in range(1 + (name in BINARY))]
        for name in NAMES
    ]
    outputs = [function_of(name)(*x) for name, x in zip(NAMES, given, strict=True)]
    found = compiler.find_compiler()
    with pytest.MonkeyPatch.context() as patch, xp.set_options(precise=mode == "precise"):
        if mode == "without libmvec":
            bare = replace(found, vector=frozenset())
            patch.setattr(compiler, "find_compiler", lambda: bare)
        return xp.function([x for xs in given for x in xs], outputs, backend=backend)


def computed(call: Callable, name: str, x: np.ndarray) -> np.ndarray:
    """What a program gives for one of its functions; the others get one number each."""
    arrays = []
    for other in NAMES:
        rows = x.reshape(1 + (name in BINARY), -1) if other == name else np.full((2, 2), 1.5)
        arrays += list(rows[: 1 + (other in BINARY)].astype(x.dtype))
    with np.errstate(all="ignore"):
        return call(*arrays)[NAMES.index(name)]


@cache
def sampled(name: str, k: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A sample, and the exact values as far as a wider dtype has them."""
    rng, wide = np.random.default_rng(0), np.longdouble if dtype == "float64" else np.float64
    if name not in MPMATH:
        exact, samples = BINARY.get(name) or (numpy_function(name), NUMPY[name])
        with np.errstate(all="ignore"):
            x = samples[k](rng, MANY, dtype).astype(dtype)
            return x, exact(*x.astype(wide).reshape(1 + (name in BINARY), -1))
    exact, samples = MPMATH[name]
    x = samples[k](rng, FEW, dtype).astype(dtype)
    x = x[np.abs(x) < (1e300 if dtype == "float64" else 1e35)]
    with mpmath.workdps(60):
        digits = [mpmath.nstr(exact(mpmath.mpf(float(v))), 25) for v in x]
    return x, np.array([np.longdouble(text) for text in digits])


def numpy_function(name: str) -> Callable:
    return getattr(np, {"asin": "arcsin"}.get(name, name))


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest distance in units of the last place of the exact value."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        unit = np.spacing(np.abs(rounded)).astype(want.dtype)
        distance = np.abs(got.astype(want.dtype) - want) / unit
    equal = (got == rounded) & np.isinf(rounded) | np.isnan(got) & np.isnan(rounded)
    return float(np.max(np.where(equal, 0, np.nan_to_num(distance, nan=np.inf))))


def cases() -> list:
    every = {**NUMPY, **{k: v[1] for k, v in {**MPMATH, **BINARY}.items()}}
    return [(name, k) for name in NAMES for k in range(len(every[name]))]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_ulp(name: str, dtype: str, mode: str) -> None:
    call = program(dtype, mode)
    for k in [k for n, k in cases() if n == name]:
        x, want = sampled(name, k, dtype)
        assert ulps(computed(call, name, x), want) <= BARS[mode], k


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_edges(name: str, dtype: str, mode: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array(EDGES, dtype)
        x = np.stack([a.ravel() for a in np.meshgrid(x, x)]) if name in BINARY else np.tile(x, 3)
    got = computed(program(dtype, mode), name, x)
    want = computed(program(dtype, "vector", "interpret"), name, x)
    tolerance = 1e-14 if dtype == "float64" else 1e-6
    least = 4 * float(np.finfo(dtype).smallest_subnormal)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=least)
    np.testing.assert_array_equal(got == 0, want == 0)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("mode", ["vector", "precise"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_single_numbers(dtype: str, mode: str) -> None:
    """Outside loops digamma is as exact as in them, near its root too."""
    x = xp.symbol("x", dtype=dtype, shape=())
    with xp.set_options(precise=mode == "precise"):
        f = xp.function([x], xp.special.digamma(x), backend="c")
    values, want = sampled("digamma", 1, dtype)
    assert ulps(np.array([f(v) for v in values[:200]]), want[:200]) <= BARS["vector"]


def test_precise_calls_libm() -> None:
    assert "vexp" not in program("float64", "precise").source


def test_logarithms_are_our_own_where_the_libc_has_no_vector_functions() -> None:
    source = program("float64", "without libmvec").source
    assert "vlog_float64(" in source and "vlog1p_float64(" in source and "vexpm1_float64(" in source
    if "log" in compiler.find_compiler().vector:
        assert "vlog_float64(" not in program("float64", "vector").source


def test_dear_functions_stay_in_vector_loops() -> None:
    if not {"log", "sin"} <= compiler.find_compiler().vector:
        pytest.skip("no vector functions")
    assert "vlgamma_float64(" in program("float64", "vector").source
