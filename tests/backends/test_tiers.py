"""When structures are compiled: at second sight, from disk, in the background, by sizes on JAX."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends import base, implicit, tiers
from lazyarr.backends.c.backend import CBackend
from tests.backend_params import parameter

pytestmark = pytest.mark.backends
ROOT = Path(__file__).resolve().parents[2]


def gained(run):
    """What the counters gain while something runs."""
    before = xp.stats()
    run()
    after = xp.stats()
    return {k: after[k] - before.get(k, 0) for k in after if after[k] != before.get(k, 0)}


def child(code: str, cache: Path, **more: str) -> list[str]:
    """The words that a fresh process prints."""
    env = {**os.environ, "LAZYARR_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **more}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


SCRIPT = """
import numpy as np
import lazyarr as xp
def step(x, rate):
    return xp.sum(xp.exp(-rate * x) * x ** 2, axis=0)
x = np.linspace(0, 1, 12).reshape(4, 3)
for rate in (0.5, 0.7, 0.9):
    got = np.asarray(step(xp.asarray(x), rate))
    assert np.allclose(got, np.sum(np.exp(-rate * x) * x ** 2, axis=0))
for _ in range(3):
    y = xp.XTensor(x, dims=("a", "b"))
    np.asarray(y.mean("a") + y)
made = xp.stats()
print(made["compiles"], made["interpretations"])
"""


@pytest.mark.parametrize("backend", [parameter("c"), parameter("numba")])
def test_a_structure_known_on_disk_is_never_interpreted(backend, tmp_path):
    first = child(SCRIPT, tmp_path, LAZYARR_BACKEND=backend, PYTHONHASHSEED="1")
    assert int(first[0]) > 0 and int(first[1]) > 0
    for seed in ("2", "3"):
        again = child(SCRIPT, tmp_path, LAZYARR_BACKEND=backend, PYTHONHASHSEED=seed)
        assert again == ["0", "0"]


def test_compiling_in_the_background():
    def evaluate():
        x = xp.asarray(np.arange(1.0, 6.0))
        return float(xp.sum(xp.cos(x) * xp.log(x) - 0.25))

    a = np.arange(1.0, 6.0)
    want = np.sum(np.cos(a) * np.log(a) - 0.25)
    with xp.set_options(background=True, backend="c", precise=True):
        first = gained(lambda: np.testing.assert_allclose(evaluate(), want))
        assert first.get("interpretations") == 1
        assert tiers.wait_for_compiles(120)
        later = gained(lambda: np.testing.assert_allclose(evaluate(), want))
        assert later.get("hits") == 1 and "interpretations" not in later


def test_large_work_does_not_wait_for_the_background():
    ready = threading.Event()

    class Slow(CBackend):
        name = "slow"
        depends_on = None

        def compile(self, graph, donated=()):
            ready.wait(60)
            return super().compile(graph)

    base.register_backend("slow", Slow)
    x = np.linspace(0.0, 1.0, 2_000_000)
    with xp.set_options(background=True, backend="slow"):
        for _ in range(2):
            y = xp.asarray(x)
            got = float(xp.max(xp.exp(y) - y * 2 + xp.sqrt(y)))
            assert got == pytest.approx(np.max(np.exp(x) - x * 2 + np.sqrt(x)))
        ready.set()
        assert tiers.wait_for_compiles(120)
        assert gained(lambda: float(xp.max(xp.exp(y) - y * 2 + xp.sqrt(y)))).get("hits") == 1


def test_what_cannot_be_compiled_stays_interpreted():
    class Broken(CBackend):
        name = "broken"
        depends_on = None

        def compile(self, graph, donated=()):
            raise RuntimeError("no")

    base.register_backend("broken", Broken)
    with xp.set_options(background=True, backend="broken"):
        for _ in range(3):
            assert float(xp.sum(xp.asarray([1.0, 2.0]) * 3.5)) == 10.5
            assert tiers.wait_for_compiles(60)
    assert xp.stats()["background errors"] == 1


def test_options_of_the_caller_hold_in_the_background():
    seen = []
    with xp.set_options(skipna=False, precise=True):
        tiers.WORKER.submit(lambda: seen.append(xp.get_options()))
        assert tiers.wait_for_compiles(60)
        assert seen == [xp.get_options()]
    assert implicit.get_options().precise is False


JAX = """
import numpy as np
import lazyarr as xp
counts = []
for n in (3, 3, 3, 5, 5, 5):
    x = xp.asarray(np.arange(float(n)))
    before = xp.stats()["interpretations"]
    assert float(xp.sum(x * x + 1)) == np.sum(np.arange(n) ** 2.0 + 1)
    counts.append(xp.stats()["interpretations"] - before)
f = xp.function([x := xp.symbol("x", shape=(None,))], x + 1, backend="jax")
before = xp.stats()["interpretations"]
f(np.ones(7))
print(*counts, xp.stats()["interpretations"] - before)
"""


@pytest.mark.parametrize("backend", [parameter("jax")])
def test_new_sizes_on_jax_are_interpreted_once(backend, tmp_path):
    words = child(JAX, tmp_path, LAZYARR_BACKEND=backend)
    assert [int(w) for w in words[3:]] == [1, 0, 0, 0]
    assert sum(int(w) for w in words[:3]) <= 2 and words[2] == "0"
    assert not list(tmp_path.rglob("*-cache"))


@pytest.mark.parametrize("backend", [parameter("jax")])
def test_xla_keeps_its_programs_when_asked(backend, tmp_path):
    child(JAX, tmp_path, LAZYARR_BACKEND=backend, LAZYARR_JAX_CACHE="1")
    assert list(tmp_path.rglob("*-cache"))
