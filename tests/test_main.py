"""`python -m lazyarr` and its cache command."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments, **env):
    done = subprocess.run(
        [sys.executable, "-m", "lazyarr", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **env},
    )
    return done.returncode, done.stdout


def test_report_names_every_backend_and_the_cache(tmp_path):
    code, out = run(LAZYARR_CACHE_DIR=str(tmp_path))
    assert code == 0
    for name in ("interpret", "c", "numba", "jax", "torch"):
        assert f"backend {name}: " in out
    assert str(tmp_path) in out
    assert "numpy" in out


def test_a_machine_without_a_compiler_is_reported(tmp_path):
    code, out = run(LAZYARR_CACHE_DIR=str(tmp_path), PATH=str(tmp_path), CC="")
    assert code == 0
    if "backend c: not available" in out:
        assert "compiler" in out


def test_cache_is_listed_and_cleared(tmp_path):
    make = "import lazyarr as xp; x = xp.symbol('x'); xp.function([x], x + 1, backend='c')"
    env = {**os.environ, "LAZYARR_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", make], env=env, check=True, cwd=ROOT)
    code, out = run("cache", LAZYARR_CACHE_DIR=str(tmp_path))
    assert code == 0
    assert "KiB" in out
    assert run("cache", "clear", LAZYARR_CACHE_DIR=str(tmp_path))[1].startswith("removed ")
    assert "0 entries" in run("cache", LAZYARR_CACHE_DIR=str(tmp_path))[1]
    assert run("nonsense")[0] == 2
