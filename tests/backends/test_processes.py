"""The disk cache among processes: new processes, many at once, one killed, odd paths."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.backends

PROGRAM = """
import sys
import numpy as np
import lazyarr as xp
rounds = int(sys.argv[1])
for i in range(rounds):
    x = xp.symbol("x", shape=(None,))
    y = xp.sum(xp.exp(x) * float(i % 4 + 2)) + xp.sum(xp.sin(x) ** (i % 3 + 2))
    f = xp.function([x], xp.value_and_grad(y, x), backend="c")
    a = np.linspace(0.0, 1.0, 7)
    want = np.exp(a).sum() * (i % 4 + 2) + (np.sin(a) ** (i % 3 + 2)).sum()
    assert abs(float(f(a)[0]) - want) < 1e-12 * abs(want), i
print("right", xp.stats()["compiles"])
"""


def start(cache: Path, rounds: int, **more: str) -> subprocess.Popen:
    """A fresh interpreter that runs PROGRAM on a cache folder."""
    env = {**os.environ, "LAZYARR_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **more}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(rounds)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def entries(cache: Path) -> set[str]:
    """The finished entries: libraries and programs."""
    return {str(p.relative_to(cache)) for p in cache.rglob("manifest")}


def test_the_hash_seed_makes_no_new_entries(tmp_path):
    seen = []
    for seed in ("0", "1", "2", "random", "4"):
        run = start(tmp_path, 12, PYTHONHASHSEED=seed)
        out, err = run.communicate(timeout=240)
        assert out.startswith("right"), err
        seen.append(entries(tmp_path))
        assert len(seen) == 1 or out.split()[1] == "0"
    assert seen[0]
    assert all(s == seen[0] for s in seen)


def test_many_processes_on_one_empty_cache_one_killed(tmp_path):
    victim = start(tmp_path, 20)
    others = [start(tmp_path, 20) for _ in range(7)]
    time.sleep(1.5)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    for run in others:
        out, err = run.communicate(timeout=300)
        assert out.startswith("right"), err
    made = entries(tmp_path)
    last = start(tmp_path, 20)
    out, err = last.communicate(timeout=240)
    assert out.split() == ["right", "0"], err
    assert entries(tmp_path) == made


def test_accents_and_spaces_in_paths(tmp_path):
    folder = tmp_path / "Márton dir" / "é ü"
    folder.mkdir(parents=True)
    out, err = start(folder, 2).communicate(timeout=120)
    assert out.startswith("right"), err
    assert entries(folder)
