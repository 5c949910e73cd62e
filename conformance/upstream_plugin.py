"""A pytest plugin for the upstream run: writes what lazyarr's driver did when the session ends.

The file is named by CONFORMANCE_STATS, one per process. Steps are counted where programs are built:
native ones, and those that run by an op's reference, by backend and by op.

It also mends one comparison of the suite, unless CONFORMANCE_AS_IS is set: `test_can_cast` looks up
pairs of dtypes and takes the answer for missing ones, None, for a dtype, since
`np.dtype("float64") == None` is true. So it demands of every library whose dtypes are NumPy's that
complex numbers can be cast to float64. With the mend, a missing pair gives what equals nothing.
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
    driver.store.name_of = lambda *args: None  # what is kept on disk is not built

    def counted(graph, pattern, backend, *more):
        try:
            variant = build(graph, pattern, backend, *more)
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


class _NoPromotion:
    """What a missing pair of dtypes promotes to: equal to no dtype."""


_NOTHING = _NoPromotion()


def _mend_lookup(helpers) -> None:
    table = helpers.promotion_table
    table.get = lambda pair, default=_NOTHING: table[pair] if pair in table else default


def pytest_collection_finish(session):
    """Mend the lookup once the suite's helpers are there."""
    helpers = sys.modules.get("array_api_tests.dtype_helpers")
    if helpers is not None and not os.environ.get("CONFORMANCE_AS_IS"):
        _mend_lookup(helpers)


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
