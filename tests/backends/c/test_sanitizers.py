"""Generated code under the address and undefined-behaviour sanitizers.

`make sanitize` runs the catalogue of ops the same way.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.backends, pytest.mark.slow]

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"


def sanitized(folder: Path) -> dict[str, str]:
    """The environment of a process whose programs are built with sanitizers."""
    gcc = shutil.which("gcc")
    found = []
    for name in ("libasan.so", "libubsan.so"):
        if gcc is None:
            pytest.skip("gcc is not here")
        path = subprocess.run([gcc, f"-print-file-name={name}"], capture_output=True, text=True)
        found.append(path.stdout.strip())
    if not all(os.path.isabs(path) for path in found):
        pytest.skip("gcc has no sanitizers")
    return {
        **os.environ,
        "CC": f"{gcc} {FLAGS}",
        "LD_PRELOAD": ":".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",
        "LAZYARR_CACHE_DIR": str(folder),
        "LAZYARR_LAUNCHER": "ctypes",
    }


@pytest.mark.parametrize(
    "chosen",
    [
        ["tests/backends/loop/test_cases.py", "-k", "not loops and not numba"],
        ["tests/backends/loop/test_random.py", "-k", "not loops and not numba"],
        ["tests/backends/c/test_sums.py", "-k", "ends_of_blocks or infinities or overflows"],
    ],
    ids=["cases", "random", "sums"],
)
def test_clean(chosen: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen]
    done = subprocess.run(command, env=sanitized(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout


def test_a_fault_is_noticed(tmp_path: Path) -> None:
    code = (
        "from lazyarr.backends.c.compiler import load\n"
        "load('int f(int i) { int a[4] = {0}; return a[i]; }').f(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=sanitized(tmp_path), capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "out of bounds" in done.stderr or "AddressSanitizer" in done.stderr
