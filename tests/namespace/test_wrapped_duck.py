"""xarray's own tests of wrapped arrays, with lazyarr as the array library.

Of 98, xarray expects 7 to fail with every library; one of these passes where numbagg is installed.
"""

import importlib.util

import pytest

pytest.importorskip("xarray")
for _marker in ("flaky", "network", "mypy", "slow_hypothesis"):  # that xarray's tests use
    pytest.mark._config.addinivalue_line("markers", f"{_marker}: of xarray")  # type: ignore
duck = pytest.importorskip("xarray.tests.test_duck_array_wrapping")

# Nothing beside what xarray itself expects to fail with every library (bottleneck, numbagg, SciPy).
HOLES: dict = {}

duck.NAMESPACE_ARRAYS["lazyarr"] = {
    "attrs": {"array": "Array", "constructor": "asarray"},
    "xfails": HOLES,
}
LAZY = pytest.mark.parametrize("namespace", ["lazyarr"])

if importlib.util.find_spec("numbagg"):
    duck.TestDataArrayMethods.test_rolling_exp_reduce.pytestmark = []

TestTopLevel = duck.TestTopLevelMethods
TestDataArray = duck.TestDataArrayMethods
for _tests in (TestTopLevel, TestDataArray):
    _tests.pytestmark = [LAZY]
