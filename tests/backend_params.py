"""The ways to run a graph, as test parameters; one is skipped where its package is missing."""

import importlib.util

import pytest

NEEDS = {"numba": "numba", "jax": "jax", "torch": "torch"}


def parameter(name: str) -> object:
    """A backend's name, marked to be skipped when its package is not installed."""
    package = NEEDS.get(name)
    missing = package is not None and importlib.util.find_spec(package) is None
    marks = [pytest.mark.skip(reason=f"{package} is not installed")] if missing else []
    return pytest.param(name, marks=marks)


MACHINES = [parameter(name) for name in ("c", "numba", "jax", "torch")]
BACKENDS = [parameter("interpret"), *MACHINES]
