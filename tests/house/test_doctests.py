"""The examples in docstrings run."""

import doctest
import importlib

import pytest

from tests.house.source import MODULES

# A machine's folder needs its package; its examples run where the package is installed.
NEEDS = {
    "lazyarr.backends.numba": "numba",
    "lazyarr.backends.jax": "jax",
    "lazyarr.backends.torch": "torch",
}
NAMES = [
    name
    for name, module in MODULES.items()
    if ">>>" in module.path.read_text(encoding="utf-8") and not name.endswith("__main__")
]


@pytest.mark.fast
@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    for folder, package in NEEDS.items():
        if name.startswith(folder):
            pytest.importorskip(package)
    result = doctest.testmod(
        importlib.import_module(name),
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert result.failed == 0
