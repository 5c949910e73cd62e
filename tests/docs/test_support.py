"""The table of docs/support-matrix.md is what its generator writes."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from lazyarr.backends.loop.lapack import address

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("numba", "jax", "torch", "scipy")

# A process of its own: other tests declare ops.
CURRENT = """
from docs.tables.support import PAGE, page
text = PAGE.read_text(encoding="utf-8")
assert page(text) == text, "run python -m docs.tables.support"
"""


def test_table_is_current() -> None:
    if not all(map(importlib.util.find_spec, NEEDED)) or address("z@fft") is None:
        pytest.skip("the table is that of a machine with every backend")
    done = subprocess.run([sys.executable, "-c", CURRENT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
