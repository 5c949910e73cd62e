"""A compiler that fails, files that were damaged, another CPU: an error or the right value."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends import cache, implicit
from lazyarr.backends.c import compiler
from lazyarr.errors import BackendError

pytestmark = pytest.mark.backends
ROOT = Path(__file__).resolve().parents[2]


def recorded(numbers: np.ndarray) -> xp.Array:
    x = xp.asarray(numbers)
    return xp.log1p(xp.exp(x) * 2 + x) / 7


# -- a compiler that fails, in implicit use --------------------------------------------------------

FAILURES = {
    "an error": BackendError("the C compiler was killed (signal 9)"),
    "a system's error": PermissionError(13, "Permission denied"),
}


@pytest.fixture(params=FAILURES)
def failing(request, monkeypatch):
    """A compiler whose facts are known, and that fails from now on; the runs that it had."""
    xp.get_backend("c")
    runs: list = []

    def build(source, *args, **options):
        runs.append(source)
        raise FAILURES[request.param]

    monkeypatch.setattr(implicit, "_tables", {})
    monkeypatch.setattr(implicit, "_current", (None, None))
    monkeypatch.setattr(compiler, "build", build)
    return runs


@pytest.mark.fast
def test_what_cannot_be_compiled_is_interpreted(failing):
    values = np.linspace(-1, 1, 9)
    want = np.log1p(np.exp(values) * 2 + values) / 7
    with xp.set_options(backend="auto", tier="compile", precise=True):
        with pytest.warns(RuntimeWarning, match="interpreted.*'c' failed"):
            np.testing.assert_allclose(np.asarray(recorded(values)), want, rtol=1e-15)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(np.asarray(recorded(values)), want, rtol=1e-15)
    assert len(failing) == 1


@pytest.mark.fast
def test_a_backend_chosen_by_name_raises(failing):
    with xp.set_options(backend="c", tier="compile", precise=True):
        with pytest.raises((BackendError, PermissionError)):
            np.asarray(recorded(np.ones(3)) + len(FAILURES))


# -- new processes ---------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import lazyarr as xp
from lazyarr.backends import cache, implicit
if len(sys.argv) > 1:
    cache._cpu = lambda: sys.argv[1]
x = xp.symbol("x", shape=(None,))
f = xp.function([x], xp.value_and_grad(xp.sum(xp.exp(x) * x), x), backend="c")
value, slope = f([1.0, 2.0])
with xp.set_options(tier="compile"):
    implicit = np.asarray(xp.tanh(xp.asarray([0.5, 1.5])) + 1)
print(value, *slope, *implicit, xp.stats()["compiles"])
"""
a, b = np.array([1.0, 2.0]), np.array([0.5, 1.5])
WANT = [np.sum(np.exp(a) * a), *(np.exp(a) * (a + 1)), *(np.tanh(b) + 1)]


def new_process(folder: Path, *arguments: str) -> int:
    """Run the program; return how many structures it compiled."""
    env = {**os.environ, "LAZYARR_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", PROGRAM, *arguments]
    ended = subprocess.run(run, capture_output=True, text=True, env=env, timeout=120)
    assert ended.returncode == 0, ended.stderr
    *values, compiles = ended.stdout.split()
    np.testing.assert_allclose([float(v) for v in values], WANT, rtol=1e-14)
    return int(compiles)


def flip(data: bytes) -> bytes:
    """Every 97th byte with other bits."""
    return bytes([b ^ 0x5A if k % 97 == 13 else b for k, b in enumerate(data)])


DAMAGE = {
    "flipped": flip,
    "one bit": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1])
    + data[len(data) // 2 + 1 :],
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
}  # fmt: skip


def test_damaged_files_are_made_again(tmp_path):
    assert new_process(tmp_path) > 0
    assert new_process(tmp_path) == 0
    ways = list(DAMAGE.values())
    for turn in range(2):
        found = sorted(p for p in tmp_path.rglob("*") if p.is_file() and p.name != "manifest")
        kinds = {path.name for path in found if path.stat().st_size}
        assert {"program.so", "program.c", "program.pickle", "compiler.json"} <= kinds
        for k, path in enumerate(found):
            if path.stat().st_size:
                path.write_bytes(ways[(k + turn) % len(ways)](path.read_bytes()))
        assert new_process(tmp_path) > 0
    assert new_process(tmp_path) == 0


def test_damaged_lists_of_checksums(tmp_path):
    new_process(tmp_path)
    for k, path in enumerate(sorted(tmp_path.rglob("manifest"))):
        path.write_bytes((flip, DAMAGE["cut"])[k % 2](path.read_bytes()))
    assert new_process(tmp_path) > 0
    assert new_process(tmp_path) == 0


def test_another_cpu_compiles_again(tmp_path):
    """Machines of several kinds may share a folder: each runs what was built for it."""
    one, other = "[('flags', 'avx2')]", "[('flags', 'avx2 avx512f')]"
    for cpu in (one, other):
        assert new_process(tmp_path, cpu) > 0
    libraries = len(list(tmp_path.rglob("program.so")))
    for cpu in (one, other):
        assert new_process(tmp_path, cpu) == 0
    assert len(list(tmp_path.rglob("program.so"))) == libraries


@pytest.mark.fast
def test_the_cpu_is_part_of_every_key(monkeypatch):
    def keys() -> tuple:
        cache.machine.cache_clear()
        return cache.cache_key("c", "source"), cache.cache_key("program", "digest")

    before = keys()
    monkeypatch.setattr(cache, "_cpu", lambda: "[('flags', 'of another machine')]")
    after = keys()
    monkeypatch.undo()
    assert keys() == before
    assert not set(before) & set(after)


@pytest.mark.fast
def test_the_cpu_is_known_by_its_model_and_features():
    if not Path("/proc/cpuinfo").exists():
        pytest.skip("no /proc/cpuinfo")
    text = Path("/proc/cpuinfo").read_text()
    names = [n for n in ("flags", "Features") if f"\n{n}" in text]
    assert names and all(repr(n) in cache.machine() for n in names)
