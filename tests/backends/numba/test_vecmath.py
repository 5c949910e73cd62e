"""Vector math of Numba programs: within an ulp and a half on large samples, right at the edges."""

import re

import numpy as np
import pytest

import lazyarr as xp

pytest.importorskip("numba")
pytestmark = [pytest.mark.backends]

BAR = {"expm1": 2.0, "tanh": 2.5}  # ulp, 1.5 for the rest
EDGES = [
    0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 1e-310, 5e-324, 1e300, -1e300, 709.7,
    709.8, 710.5, -708.5, -745.1, -745.2, -745.3, -1e4, 1e-30,
    -1 + 2.0**-53, 2.0**-53, -(2.0**-53), 2.0**53,
]  # fmt: skip


def samples(name: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    if name == "exp":
        return np.concatenate([rng.uniform(-708, 709, 20_000), rng.uniform(-1, 1, 20_000)])
    if name in ("expm1", "tanh"):
        near = rng.choice([-1, 1], 20_000) * 10.0 ** rng.uniform(-300, 1.5, 20_000)
        return np.concatenate([rng.uniform(-40, 700, 20_000), rng.uniform(-1, 1, 20_000), near])
    if name == "log1p":
        near = rng.choice([-1, 1], 20_000) * 10.0 ** rng.uniform(-300, -0.001, 20_000)
        return np.concatenate(
            [10.0 ** rng.uniform(-3, 308, 20_000), near, rng.uniform(-1, 2, 9000)]
        )
    return np.concatenate([10.0 ** rng.uniform(-307, 308, 20_000), rng.uniform(0.5, 2, 20_000)])


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "tanh"])
def test_vector_math(name: str) -> None:
    reference = getattr(np, name)
    x = xp.symbol("x", shape=(None,))
    call = xp.function([x], getattr(xp, name)(x), backend="numba")
    assert f"v{name}_float64(" in call.source
    values = samples(name)
    got = call(values)
    want = reference(values.astype(np.longdouble))
    unit = np.spacing(np.abs(want.astype(np.float64))).astype(np.longdouble)
    assert float(np.max(np.abs(got - want) / unit)) <= BAR.get(name, 1.5)
    edges = np.array(EDGES)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(call(edges), reference(edges), rtol=1e-15)
    single = xp.symbol("s", dtype="float32", shape=(None,))
    in_single = xp.function([single], getattr(xp, name)(single), backend="numba")
    with np.errstate(all="ignore"):
        edges = edges.astype(np.float32)
        found = in_single(edges)
        np.testing.assert_allclose(found, reference(edges), rtol=2e-7)
    assert found.dtype == np.float32


def test_digamma_is_exact_near_its_root() -> None:
    x = xp.symbol("x", shape=(None,))
    values = np.random.default_rng(0).uniform(1.4, 1.5, 1000)
    f = xp.special.digamma(x)
    got = xp.function([x], f, backend="numba")(values)
    want = xp.function([x], f, backend="interpret")(values)
    np.testing.assert_array_max_ulp(got, want, 4)


def test_a_precise_program_calls_libm() -> None:
    x = xp.symbol("x", shape=(None,))
    with xp.set_options(precise=True):
        source = xp.function([x], xp.exp(x), backend="numba").source
    assert "vexp" not in source and "math.exp(" in source


def test_offsets_are_unsigned() -> None:
    """A signed offset may count from the end: a test at each access, and no vector code."""
    x = xp.symbol("x", shape=(None,))
    last, _ = xp.scan(lambda c, i: (c + xp.sum(xp.window(x, i, 2)), None), 0.0, xp.arange(3))
    source = xp.function([x], [last, xp.flip(x)], backend="numba").source
    offsets = re.findall(r"\b[xyms]\d+\[(.*?)\]", source)
    assert offsets and all(k.isdigit() or k.startswith("U(") for k in offsets)
