"""A rule that fails raises in these tests."""

from collections.abc import Iterator

import pytest

import lazyarr.graph.ops  # noqa: F401  (fills the catalogue)
from lazyarr.graph.rewrite import strict


@pytest.fixture(autouse=True)
def _strict_rules() -> Iterator[None]:
    with strict():
        yield
