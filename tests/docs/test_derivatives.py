"""The table of docs/derivatives.md is what its generator writes."""

import subprocess
import sys
from pathlib import Path

from docs.tables.derivatives import CONVENTIONS
from lazyarr.graph.registry import OPS

ROOT = Path(__file__).resolve().parents[2]

# A process of its own: other tests declare ops.
CURRENT = """
from docs.tables.derivatives import PAGE, page
text = PAGE.read_text(encoding="utf-8")
assert page(text) == text, "run python -m docs.tables.derivatives"
"""


def test_table_is_current() -> None:
    done = subprocess.run([sys.executable, "-c", CURRENT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_conventions_are_of_ops() -> None:
    assert set(CONVENTIONS) <= set(OPS)
