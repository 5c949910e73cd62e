"""`own` on NumPy, array-api-strict and lazyarr, each in a process; lazyarr against its baseline."""

import importlib.util

import pytest

from conformance import baseline
from conformance.own import supervise
from conformance.own.check import Options
from tests.backend_params import parameter

pytestmark = pytest.mark.slow

# What these libraries are known not to do; functions, since a version may fix or break a case.
KNOWN = {
    "numpy": {
        "__array_api_version__", "argsort", "clip", "expm1", "fft.fftfreq", "fft.rfftfreq", "finfo",
        "iinfo", "linalg.eig", "linalg.eigvals", "sign", "sort",
    },
    "array_api_strict": {"expm1", "isin"},
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_eager_libraries_fail_only_what_is_known(name) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    run = supervise.check(name, Options(examples=5))
    assert not run.error
    assert len(run.results) > 2000
    new = {r.id: r.why for r in supervise.bad(run) if r.id.split("/")[1] not in KNOWN[name]}
    assert not new


@pytest.mark.parametrize(
    "name",
    ["lazyarr:interpret", pytest.param("lazyarr:c", marks=pytest.mark.backends)],
)
def test_lazyarr_fails_only_its_baseline(name) -> None:
    run = supervise.check(name, Options(examples=3))
    assert not run.error
    assert len(run.results) > 2400
    assert not baseline.verdict(run)


@pytest.mark.backends
@pytest.mark.parametrize("backend", [parameter("torch"), parameter("jax")])
def test_special_cases_of_the_array_libraries(backend: str) -> None:
    run = supervise.check(f"lazyarr:{backend}", Options(examples=3), ["special"])
    assert not run.error
    assert len(run.results) > 800
    assert not supervise.bad(run)
