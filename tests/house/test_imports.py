"""What `import lazyarr` loads and costs, seen from a fresh process."""

import json
import statistics
import subprocess
import sys

import pytest

from tests.house.source import ROOT

HEAVY = {"jax", "jaxlib", "torch", "numba", "llvmlite", "xarray", "pandas", "scipy"}

WATCHED = """
import json, sys
import numpy
before = set(sys.modules)
events = []
names = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork")
sys.addaudithook(lambda event, args: events.append(event) if event in names else None)
import lazyarr
print(json.dumps({"modules": sorted(set(sys.modules) - before), "events": events}))
"""

TIMED = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def fresh(code: str) -> str:
    """Output of a program run by a new interpreter in the repository's root."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def watched() -> dict[str, list[str]]:
    return json.loads(fresh(WATCHED))


@pytest.mark.fast
def test_no_framework_is_loaded(watched: dict[str, list[str]]) -> None:
    assert not HEAVY & {name.partition(".")[0] for name in watched["modules"]}


@pytest.mark.fast
def test_no_process_is_started(watched: dict[str, list[str]]) -> None:
    assert watched["events"] == []


@pytest.mark.fast
def test_few_modules_are_loaded(watched: dict[str, list[str]]) -> None:
    """numpy alone loads about 200; the bound is generous, it only catches a package by accident."""
    foreign = [name for name in watched["modules"] if name.partition(".")[0] != "lazyarr"]
    assert len(foreign) < 120, foreign


def test_cost_against_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed here, with a bound that noise does not reach; benchmarks/imports.py measures it."""
    fresh("import lazyarr")
    rounds = [
        (float(fresh(TIMED.format("lazyarr"))), float(fresh(TIMED.format("numpy"))))
        for _ in range(5)
    ]
    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    with capsys.disabled():
        print(f"\nimport lazyarr / import numpy: {ours / theirs:.2f}")
    assert ours < 3 * theirs
