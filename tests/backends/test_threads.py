"""Threads: a sample of `python -m tests.backends.fuzz_threads 300`."""

import importlib.util

import pytest

from tests.backends.fuzz_threads import rounds

pytestmark = pytest.mark.backends
NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="no numba")


@pytest.mark.parametrize(
    ("backend", "n"), [("interpret", 15), ("c", 15), pytest.param("numba", 3, marks=NUMBA)]
)
def test_eight_threads_record_force_compile_and_call(backend, n):
    assert not rounds(n, backend)
