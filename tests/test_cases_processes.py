"""Known traps of array compilers that need processes: paths, homes, compilers, pickles, depth."""

import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import BACKENDS, parameter

pytestmark = pytest.mark.backends
ROOT = Path(__file__).resolve().parents[1]
backends = pytest.mark.parametrize("backend", BACKENDS)

USE = """
import sys
import numpy as np
import lazyarr as xp
x = xp.symbol("x", shape=(None,))
f = xp.function([x], xp.sum(xp.exp(x) * 2), backend=sys.argv[1])
a = np.linspace(0, 1, 5)
assert abs(f(a) - 2 * np.exp(a).sum()) < 1e-12
y = xp.asarray(a)
for k in range(3):
    assert abs(float(xp.sum(y * y + k)) - (a * a + k).sum()) < 1e-12
print("right")
"""


def run(code: str, *args: str, cwd: Path | None = None, without: tuple = (), **more: str):
    """A fresh process; `without` names variables that it does not get."""
    env = {k: v for k, v in os.environ.items() if k not in without}
    env |= {"PYTHONPATH": str(ROOT), **more}
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, env=env, cwd=cwd
    )


@backends
def test_accents_and_spaces_in_cache_and_cwd(backend: str, tmp_path: Path) -> None:
    here = tmp_path / "Márton dir" / "é ü"
    here.mkdir(parents=True)
    done = run(USE, backend, cwd=here, LAZYARR_CACHE_DIR=str(here / "ca che"))
    assert done.stdout.strip() == "right", done.stderr


@pytest.mark.parametrize("home", ["missing", "a file", "read-only", "relative"])
@pytest.mark.parametrize("backend", ["c", "auto"])
def test_homes_that_cannot_hold_a_cache(backend: str, home: str, tmp_path: Path) -> None:
    """A private temporary folder serves instead, with one warning."""
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    (fixed / ".cache").write_text("")  # also where the user may write everywhere
    fixed.chmod(0o500)
    homes = {"missing": "/proc/no/home", "a file": str(tmp_path / "file"), "relative": "no/home"}
    code = USE + "\nimport os, tempfile\nprint([oct(os.stat(os.path.join(tempfile.gettempdir(), d))"
    code += '.st_mode & 0o777) for d in os.listdir(tempfile.gettempdir()) if "lazyarr" in d])'
    done = run(
        code,
        backend,
        cwd=tmp_path,
        without=("LAZYARR_CACHE_DIR", "XDG_CACHE_HOME"),
        HOME=homes.get(home, str(fixed)),
        TMPDIR=str(tmp_path / "tmp"),
    )
    assert done.stdout.splitlines() == ["right", "['0o700']"], done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert "LAZYARR_CACHE_DIR" in done.stderr
    assert not list((tmp_path / "tmp").iterdir())


def test_a_cache_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    """Another user may have made the folder first, to plant programs in it."""
    folder = tmp_path / "cache"
    (folder / "v1").mkdir(parents=True)
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 12345, 12345)
    done = run(USE, "c", LAZYARR_CACHE_DIR=str(folder))
    assert done.stdout.strip() == "right", done.stderr
    assert "12345" in done.stderr and done.stderr.count("RuntimeWarning") == 1
    assert not list((folder / "v1").iterdir())


def test_the_cache_is_closed_to_others(tmp_path: Path) -> None:
    done = run(USE, "c", LAZYARR_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((tmp_path / "cache" / "v1").stat().st_mode) == 0o700


COMPILER = """
import sys, time
import numpy as np
start = time.perf_counter()
import lazyarr as xp
seconds = time.perf_counter() - start
a = np.arange(4.0)
for _ in range(3):
    assert float(xp.sum(xp.asarray(a) * 2)) == 12
x = xp.symbol("x", shape=(None,))
assert xp.function([x], xp.sum(x))(a) == 6
try:
    xp.function([x], xp.sum(x), backend="c")
except xp.errors.BackendError as error:
    print(f"{seconds < 1}|{error}")
"""


@pytest.mark.parametrize("case", ["no compiler", "a compiler that is gone", "no path at all"])
def test_without_a_c_compiler(case: str, tmp_path: Path) -> None:
    """Importing is silent, the default backend runs, backend="c" raises one clear error."""
    block = "import sys; sys.modules['ziglang'] = None\n"  # the wheel with a compiler counts too
    more = {"PATH": str(tmp_path), "LAZYARR_CACHE_DIR": str(tmp_path / "cache")}
    without: tuple = ("CC",)
    if case == "a compiler that is gone":
        more["CC"], without = str(tmp_path / "gone" / "cc"), ()
    if case == "no path at all":
        del more["PATH"]
        without = ("CC", "PATH")
    if case == "no path at all" and os.path.exists("/bin/cc"):
        more["PATH"] = ""  # where PATH is missing, a default one is searched
    done = run(block + COMPILER, without=without, **more)
    assert done.returncode == 0 and not done.stderr, done.stderr
    fast, message = done.stdout.strip().split("|", 1)
    assert fast == "True"
    assert "compiler" in message and "install" in message
    if case == "a compiler that is gone":
        assert str(tmp_path / "gone" / "cc") in message


LOAD = """
import sys
import cloudpickle
import numpy as np
f = cloudpickle.load(open(sys.argv[1], "rb"))
import lazyarr as xp
from lazyarr.passes import pipeline
print(f(np.array([1.0, 2.0, 3.0]))["sum"], xp.stats()["compiles"])
"""


@backends
def test_cloudpickled_functions(backend: str, tmp_path: Path) -> None:
    """A compiled function, and one in a closure, load elsewhere without lowering."""
    cloudpickle = pytest.importorskip("cloudpickle")
    x = xp.symbol("x", shape=(3,))
    f = xp.function([x], {"sum": xp.sum(x * x)}, backend=backend)
    path = tmp_path / "f.pickle"
    path.write_bytes(cloudpickle.dumps(lambda a: f(a)))
    done = run(LOAD, str(path))
    assert done.stdout.split() == ["14.0", "0"], done.stderr


DEEP = """
import pickle, sys
import numpy as np
import lazyarr as xp
assert sys.getrecursionlimit() == 1000
backend, n = sys.argv[1], int(sys.argv[2])
x = xp.symbol("x", shape=())
y = x
for _ in range(n):
    y = xp.sin(y) + x
slopes = [] if backend == "jax" else [xp.grad(y, x)]
f = xp.function([x], [y, *slopes], backend=backend)
value, slope = 0.1, 1.0
for _ in range(n):
    slope, value = np.cos(value) * slope + 1, np.sin(value) + 0.1
got = f(0.1)
assert np.allclose(got, [value, slope][: len(got)], rtol=1e-9), got
assert len(repr(y)) < 10_000
again = pickle.loads(pickle.dumps(y))
del y
g = xp.compute(xp.asarray(1.0) * 2)
z = xp.asarray(0.1)
w = z
for _ in range(n):
    w = xp.sin(w) + z
assert abs(float(w) - value) < 1e-9
del f, again, w, z
print("right")
"""
DEPTHS = {"interpret": 1_500, "c": 1_500, "torch": 1_500, "jax": 1_100}


@pytest.mark.parametrize("backend", [parameter(name) for name in DEPTHS])
def test_depth(backend: str) -> None:
    """Graphs deeper than Python's recursion limit compile, run, print, pickle and are freed.

    All but JAX also differentiate: XLA takes long for so many statements, and so does LLVM, with
    which Numba is not tried here. `benchmarks.deep` runs 20,000 operations.
    """
    done = run(DEEP, backend, str(DEPTHS[backend]))
    assert done.stdout.strip() == "right", done.stderr


def test_an_array_that_is_shared_on_purpose() -> None:
    """`copy=False` is a view, `copy=True` and the default are snapshots."""
    a = np.ones(3)
    view, snapshot = xp.asarray(a, copy=False), xp.asarray(a)
    a[0] = 9
    assert float(snapshot[0]) == 1
    assert float(view[0]) == 9
    assert pickle.loads(pickle.dumps(snapshot))[0] == 1
