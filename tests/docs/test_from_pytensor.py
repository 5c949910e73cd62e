"""The page for users of PyTensor names what exists, and the names that they look for."""

import re
from pathlib import Path

import pytest

import lazyarr as xp
from lazyarr.namespace.compiled import Function
from lazyarr.passes import pipeline

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "from-pytensor.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| `")]
HERE = " ".join(row.split(" | ", 1)[1] for row in ROWS)
pytestmark = pytest.mark.fast

WANTED = """
    Op Apply make_node perform L_op R_op view_map destroy_map OpFromGraph shared updates givens
    optdb FunctionGraph scan c_code CLinkerType jax_funcify
""".split()


@pytest.mark.parametrize("name", WANTED)
def test_names_that_are_looked_for(name):
    assert any(re.search(rf"\b{name}\b", row.split(" | ")[0]) for row in ROWS)


def test_names_of_ours_exist():
    for name in re.findall(r"xp\.(\w+)", HERE):
        assert hasattr(xp, name), name
    for name in re.findall(r"\bf\.(\w+)", HERE):
        assert hasattr(Function, name) or name == "explain", name
    for name in re.findall(r"pipeline\.(\w+)", HERE):
        assert hasattr(pipeline, name) or name == "py", name
    for page in re.findall(r"extending/[\w-]+\.md", HERE):
        assert (DOCS / page).exists(), page
