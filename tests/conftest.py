"""A test run keeps its compiled programs in a folder of its own, child processes included."""

import os
import shutil
import tempfile

import pytest

FOLDER = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the cache folder before any test module imports lazyarr; failing rules raise."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("LAZYARR_STRICT", "1")
    if hasattr(config, "workerinput"):  # a worker shares the folder of the run
        return
    config.stash[FOLDER] = tempfile.mkdtemp(prefix="lazyarr-tests-")
    os.environ["LAZYARR_CACHE_DIR"] = config.stash[FOLDER]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache folder."""
    folder = config.stash.get(FOLDER, None)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
