"""Threads: a sample of `python -m tests.backends.fuzz_threads 300`."""

import pytest

from tests.backends.fuzz_threads import rounds

pytestmark = pytest.mark.backends


@pytest.mark.parametrize("backend", ["interpret", "c"])
def test_eight_threads_record_force_compile_and_call(backend):
    assert not rounds(15, backend)
