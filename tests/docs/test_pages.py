"""The pages of docs/ that hold examples run from top to bottom."""

import doctest
import importlib
import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if ">>>" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_page(page):
    text = page.read_text(encoding="utf-8")
    for package in ("xarray", "jax", "torch", "numba"):
        if package == "xarray" or f"import {package}" in text:
            pytest.importorskip(package)
    if "import jax" in text:  # as in a fresh process, whatever ran before in this one
        importlib.import_module("jax").config.update("jax_enable_x64", False)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_named_example_runs():
    pytest.importorskip("xarray")
    path = DOCS.parent / "examples" / "named_dims.py"
    spec = importlib.util.spec_from_file_location("named_dims_example", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    given, found = example.results("interpret")
    months = given.groupby("time.month")
    for name, want in (("months", months.mean()), ("spread", months.std())):
        xarray = importlib.import_module("xarray")
        xarray.testing.assert_allclose(found[name], want)
    hottest = float(months.mean().max("month").sum())
    moved = given.fillna(0.0) * found["influence"]  # the means are linear in what is there
    assert abs(float(moved.sum()) - hottest) < 1e-9
