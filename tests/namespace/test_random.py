"""Draws: the same on every backend, those of jax.random, and of the right distributions."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import lazyarr as xp
from lazyarr import function, random, symbol
from lazyarr.errors import ChoiceError, DTypeError, ShapeError
from tests.backend_params import BACKENDS, parameter

KEY = random.key(2026)

# Salmon et al. (2011), known answers of Threefry-2x32 with 20 rounds: key, counter, result.
KNOWN = [
    (0, 0, 0x6B20015999BA4EFE),
    (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x1CB996FCBB002BE7),
    (0x13198A2E03707344, 0x243F6A8885A308D3, 0xC4923A9C483DF7A0),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_known_answers(backend):
    from lazyarr.graph.registry import op

    k, c = (symbol(n, shape=(3,), dtype=xp.uint64) for n in "kc")
    f = function([k, c], [xp.Array(op.threefry(k._v, c._v))], backend=backend)
    keys, counters, answers = (np.array(v, np.uint64) for v in zip(*KNOWN, strict=True))
    np.testing.assert_array_equal(f(keys, counters)[0], answers)


def drawn(key):
    """Integers, which agree to the bit, and draws that rounding may change in the last place."""
    first, second = random.split(key)
    exact = [
        first, random.fold_in(second, 7), random.bits(key, (2, 3)),
        random.bits(key, 5, dtype=xp.uint8), random.randint(key, (4,), -3, 10**12),
        random.uniform(key, (3,)), random.uniform(key, 4, dtype=xp.float32),
        random.permutation(key, 7),
    ]  # fmt: skip
    close = [
        random.normal(key, (5,)), random.normal(key, (5,), dtype=xp.float32),
        random.gumbel(key, 3), random.exponential(key, 3),
    ]  # fmt: skip
    return exact, close


# Numba takes seconds to compile a draw: its bits are in test_known_answers, a draw in the next one.
@pytest.mark.parametrize("backend", [parameter(n) for n in ("c", "jax", "torch")])
def test_the_same_key_gives_the_same_draws_everywhere(backend):
    k = symbol("k", shape=(2,), dtype=xp.uint32)
    exact, close = drawn(k)
    got = function([k], [*exact, *close], backend=backend)(np.asarray(KEY))
    want = function([k], [*exact, *close], backend="interpret")(np.asarray(KEY))
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype == w.dtype
        if i < len(exact):
            np.testing.assert_array_equal(g, w)
        else:
            np.testing.assert_allclose(g, w, rtol=1e-5 if w.dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_state_and_reseeding(backend):
    state = xp.shared(np.asarray(random.key(1)), name="state")
    following, here = random.split(state)
    draw = random.normal(here, (3,))
    f = function([], [draw, draw * 1], updates=[(state, following)], backend=backend)
    a, again = f()
    b, _ = f()
    np.testing.assert_array_equal(a, again)  # a key used twice gives the same draws
    assert not np.any(a == b)
    state.set_value(np.asarray(random.key(1)))
    np.testing.assert_array_equal(f()[0], a)


JAX = """
import json, jax, numpy as np
jax.config.update("jax_enable_x64", True)
r, k = jax.random, jax.random.PRNGKey(2026)
out = [r.split(k), r.split(k, (2, 2)), r.fold_in(k, 7), r.bits(k, (2, 3), "uint64"),
       r.bits(k, (5,), "uint8"), r.bits(k, (5,), "uint32"), r.uniform(k, (3,), "float64"),
       r.uniform(k, (3,), "float32"), r.uniform(k, (3,), "float64", -2, 3),
       r.normal(k, (5,), "float64")]
print(json.dumps([np.asarray(x).tolist() for x in out]))
"""


def test_the_draws_are_those_of_jax():
    pytest.importorskip("jax")
    run = subprocess.run([sys.executable, "-c", JAX], capture_output=True, text=True, check=True)
    k = KEY
    ours = [
        random.split(k), random.split(k, (2, 2)), random.fold_in(k, 7), random.bits(k, (2, 3)),
        random.bits(k, 5, dtype=xp.uint8), random.bits(k, 5, dtype=xp.uint32),
        random.uniform(k, 3), random.uniform(k, 3, dtype=xp.float32),
        random.uniform(k, 3, minval=-2, maxval=3),
    ]  # fmt: skip
    *exact, normal = json.loads(run.stdout)
    for got, want in zip(ours, exact, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want, np.asarray(got).dtype))
    np.testing.assert_allclose(np.asarray(random.normal(k, 5)), normal, rtol=1e-12)


N = 20_000
DISTRIBUTIONS = {
    "uniform": (lambda k: random.uniform(k, N), stats.uniform()),
    "normal": (lambda k: random.normal(k, N), stats.norm()),
    "normal float32": (lambda k: random.normal(k, N, dtype=xp.float32), stats.norm()),
    "exponential": (lambda k: random.exponential(k, N), stats.expon()),
    "gumbel": (lambda k: random.gumbel(k, N), stats.gumbel_r()),
    "laplace": (lambda k: random.laplace(k, N), stats.laplace()),
    "logistic": (lambda k: random.logistic(k, N), stats.logistic()),
    "cauchy": (lambda k: random.cauchy(k, N), stats.cauchy()),
    "gamma 0.3": (lambda k: random.gamma(k, 0.3, N), stats.gamma(0.3)),
    "gamma 7": (lambda k: random.gamma(k, 7.0, N), stats.gamma(7)),
    "beta": (lambda k: random.beta(k, 2.0, 0.7, N), stats.beta(2, 0.7)),
    "student_t": (lambda k: random.student_t(k, 4.0, N), stats.t(4)),
    "truncated": (lambda k: random.truncated_normal(k, -1, 2, N), stats.truncnorm(-1, 2)),
    "dirichlet": (
        lambda k: random.dirichlet(k, xp.asarray([1.0, 2, 3]), N)[:, 1],
        stats.beta(2, 4),
    ),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name):
    draw, law = DISTRIBUTIONS[name]
    assert stats.kstest(np.asarray(draw(KEY)), law.cdf).pvalue > 1e-3


def test_frequencies():
    p = np.array([0.1, 0.2, 0.7])
    draws = {
        "categorical": (random.categorical(KEY, xp.log(xp.asarray(p)), shape=N), p),
        "choice": (random.choice(KEY, 3, N, p=xp.asarray(p)), p),
        "randint": (random.randint(KEY, N, 0, 3), np.full(3, 1 / 3)),
        "bernoulli": (xp.astype(random.bernoulli(KEY, 0.9, N), xp.int64), [0.1, 0.9]),
    }
    for name, (x, law) in draws.items():
        found = np.bincount(np.asarray(x), minlength=len(law))
        assert stats.chisquare(found, np.asarray(law) * N).pvalue > 1e-3, name
    keys = random.split(KEY, 3000)
    firsts = xp.vectorize(lambda k: random.choice(k, 3, 2, replace=False, p=xp.asarray(p)))(keys)
    found = np.bincount(np.asarray(firsts)[:, 0], minlength=3)
    assert stats.chisquare(found, p * 3000).pvalue > 1e-3


def test_shapes():
    x = symbol("x", shape=("n", 3))
    drawn = function([x], [random.normal(KEY, x.sizes), random.permutation(KEY, x)])
    for n in (0, 1, 4):
        noise, mixed = drawn(np.arange(3.0 * n).reshape(n, 3))
        assert noise.shape == (n, 3)
        np.testing.assert_array_equal(np.sort(mixed, axis=0), np.arange(3.0 * n).reshape(n, 3))
    named = random.normal(KEY, {"city": 2, "day": 3})
    assert named.dims == ("city", "day")
    np.testing.assert_array_equal(named.values, np.asarray(random.normal(KEY, (2, 3))))
    batch = xp.vectorize(lambda k: random.normal(k, 2))(random.split(KEY, 3))
    rows = [np.asarray(random.normal(random.split(KEY, 3)[i, :], 2)) for i in range(3)]
    np.testing.assert_allclose(np.asarray(batch), rows, rtol=1e-14)


def test_derivatives_go_through_parameters():
    mu = symbol("mu")
    loss = xp.sum((mu + 2 * random.normal(KEY, 5)) ** 2)
    value = function([mu], [xp.grad(loss, mu)])(0.0)[0]
    np.testing.assert_allclose(value, 4 * np.sum(np.asarray(random.normal(KEY, 5))))


def test_errors_teach():
    with pytest.raises(DTypeError, match="random.key"):
        random.normal(xp.asarray([1.0, 2.0]), 3)
    with pytest.raises(DTypeError, match="float32 or float64"):
        random.normal(KEY, 3, dtype=xp.int32)
    with pytest.raises(ChoiceError, match="at least 3 and below 3"):
        random.randint(KEY, 2, 3, 3)
    with pytest.raises(ChoiceError, match="4 of 3"):
        random.choice(KEY, 3, 4, replace=False)
    with pytest.raises(ShapeError, match="one integer"):
        random.key(xp.asarray([1, 2]))
    with pytest.raises(DTypeError, match="integer"):
        random.key(1.5)
