"""Cold compilation of eight schools' value and gradient: a fresh process, no cached program.

Counted: recording, differentiating, lowering, the C compiler, loading; CPU time of the process and
of the compiler it starts, without the imports. Bar: 0.3 s. JAX is asked the same beside it. What is
done once on a machine (asking the compiler what it can do, building the launcher) is shown apart.
"Known key" is the same in another process, which finds the program on disk; it counts all from the
first recorded operation to the first result.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import timing

BAR = 0.3
KNOWN = 0.02
ROUNDS = 5
ROOT = Path(__file__).resolve().parents[1]

CLOCK = """
import json, os, resource, sys, time
import numpy as np
def clock():
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime
entry = json.load(open("tests/data/models/eight_schools_noncentered.json"))
x = np.array(entry["points"][1]["point"])
"""
OURS = """
import lazyarr as xp
from tests.models.models import compiled
xp.function, xp.value_and_grad, xp.symbol, xp.exp, xp.XTensor  # names load when used
from lazyarr.backends.c import compiler, launcher
from lazyarr.backends.driver import Program
from lazyarr.backends.c import backend
start = clock()
compiler.find_compiler()
launcher.extension()
print(clock() - start)
start = clock()
result = compiled("eight_schools_noncentered", entry["data"], x.size, "c")(x)
print(clock() - start)
"""
JAX = """
import jax
jax.config.update("jax_enable_x64", True)
from benchmarks.by_hand import jax_eight_schools
jax.numpy.zeros(3).block_until_ready()
start = clock()
f = jax.jit(jax.value_and_grad(jax_eight_schools(jax.numpy, entry["data"])))
jax.block_until_ready(f(x))
print(clock() - start)
"""


def fresh(code: str, cache: str, limit: float | None = None) -> list[float]:
    """The CPU seconds that a fresh process prints; `limit` are its seconds of wall time."""
    env = {**os.environ, "LAZYARR_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    env["PYTHONPYCACHEPREFIX"] = str(Path(cache) / "pyc")
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", CLOCK + code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=limit)
    if done.returncode:
        raise SystemExit(done.stderr)
    return [float(word) for word in done.stdout.split()]


def one_round() -> tuple[float, float, float, float]:
    """Toolchain, cold, the same again with a warm cache, and JAX."""
    with tempfile.TemporaryDirectory() as cache:
        once, cold = fresh(OURS, cache)
        again, warm = fresh(OURS, cache)
        (jax,) = fresh(JAX, cache)
    return once, cold, again + warm, jax


def main() -> None:
    """Print the two medians and their ratio."""
    timing.one_thread()
    rounds = [one_round() for _ in range(ROUNDS)]
    once, ours, known, jax = (statistics.median(column) for column in zip(*rounds, strict=True))
    print("eight schools, value and gradient, cold compile (CPU seconds, compiler included)")
    print(f"  lazyarr C {ours:6.3f} s   bar {BAR} s: {timing.verdict(ours, BAR)}")
    print(f"  once on a machine {once:6.3f} s")
    says = timing.verdict(known, KNOWN)
    print(f"  known key in a new process {known:6.3f} s   bar {KNOWN}: {says}")
    print(f"  jax.jit   {jax:6.3f} s   lazyarr / jax {ours / jax:.2f}")


if __name__ == "__main__":
    main()
