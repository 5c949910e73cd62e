"""The table of docs/derivatives.md is what its generator writes."""

from docs.tables.derivatives import CONVENTIONS, PAGE, page
from lazyarr.graph.registry import OPS


def test_table_is_current() -> None:
    """When it is not: `python -m docs.tables.derivatives`."""
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def test_conventions_are_of_ops() -> None:
    assert set(CONVENTIONS) <= set(OPS)
