"""The table of names is what the oracle says, and the page holds it."""

import pytest

pytest.importorskip("xarray")

from lazyarr import XTensor  # noqa: E402
from tests.namespace import named_table  # noqa: E402

pytestmark = pytest.mark.fast

# A part of dates is read from a coordinate, not from an array of numbers.
OF_COORDINATES = {"dt"}


def test_every_counted_name_exists() -> None:
    known = named_table.names()
    for name in named_table.passing():
        assert name in known
        assert hasattr(XTensor, name) or name in OF_COORDINATES, name


def test_enough_names() -> None:
    assert len(named_table.passing()) >= 97


def test_the_page_holds_the_table() -> None:
    """Run `python -m tests.namespace.named_table` after adding a case."""
    assert named_table.written() == named_table.table()
