"""A pytest plugin for the upstream run: writes what lazyarr's driver did when the session ends.

The file is named by CONFORMANCE_STATS, one per process. Steps are counted where programs are built:
native ones, and those that run by an op's reference, by backend and by op.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

_steps: "Counter[str]" = Counter()


def _watch_driver() -> None:
    from lazyarr.backends import driver  # only when lazyarr is the module under test

    build = driver.build

    def counted(graph, pattern, backend):
        try:
            variant = build(graph, pattern, backend)
        except Exception as error:
            _steps[f"error {backend.name}: {type(error).__name__}"] += 1
            raise
        for step in variant.steps:
            if step.node is None:
                _steps[f"native {backend.name}"] += 1
            else:
                _steps[f"fallback {backend.name}"] += 1
                dtype = getattr(step.node.type, "dtype", "")
                _steps[f"op {step.node.op.name} {dtype}".rstrip()] += 1
        return variant

    driver.build = counted


def pytest_configure(config):
    """Watch the driver from the start."""
    if os.environ.get("ARRAY_API_TESTS_MODULE") == "lazyarr":
        _watch_driver()


def pytest_sessionfinish(session):
    """Write the counters of this process."""
    target = os.environ.get("CONFORMANCE_STATS")
    if target and "lazyarr" in sys.modules and "lazyarr.backends.stats" in sys.modules:
        counts = sys.modules["lazyarr.backends.stats"].stats()
        text = json.dumps({"counts": counts, "steps": dict(_steps)})
        Path(f"{target}.{os.getpid()}").write_text(text, encoding="utf-8")
