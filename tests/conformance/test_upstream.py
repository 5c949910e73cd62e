"""The consortium's suite: what is said without it, its folder of links, how a report is read."""

import argparse
from collections import Counter

import pytest

from conformance import __main__, upstream

pytestmark = pytest.mark.fast


@pytest.fixture
def checkouts(tmp_path, monkeypatch) -> dict:
    """Folders that look like the two checkouts, without their tests."""
    tests, standard = tmp_path / "tests", tmp_path / "standard"
    (tests / "array_api_tests").mkdir(parents=True)
    (tests / "conftest.py").write_text("", encoding="utf-8")
    (standard / "src" / "array_api_stubs").mkdir(parents=True)
    monkeypatch.setenv(upstream.TESTS, str(tests))
    monkeypatch.setenv(upstream.STANDARD, str(standard))
    return {upstream.TESTS: tests, upstream.STANDARD: standard}


@pytest.mark.parametrize("missing", [upstream.TESTS, upstream.STANDARD])
def test_without_a_checkout_it_is_not_run(checkouts, missing, monkeypatch, capsys) -> None:
    monkeypatch.delenv(missing)
    assert __main__.main(["upstream"]) == upstream.NOT_RUN != 0
    assert f"not run: {missing} is not set" in capsys.readouterr().err


def test_a_folder_that_is_no_checkout_is_not_run(checkouts, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv(upstream.TESTS, str(tmp_path))
    assert __main__.main(["upstream"]) == upstream.NOT_RUN
    assert "holds no array_api_tests" in capsys.readouterr().err


def test_another_commit_is_said(checkouts, capsys) -> None:
    upstream.say_commits(checkouts)
    out = capsys.readouterr().out
    assert all(commit in out for commit in upstream.PINNED.values())


def test_the_submodule_is_linked(checkouts, tmp_path) -> None:
    suite = upstream.link(tmp_path, checkouts)
    assert (suite / "conftest.py").is_symlink()
    assert (suite / "array-api" / "src" / "array_api_stubs").is_dir()


def test_backend_and_tier_reach_the_process(tmp_path) -> None:
    args = argparse.Namespace(module="lazyarr", backend="c", tier="compile", as_is=False)
    env = upstream.environment(args, tmp_path)
    assert (env["LAZYARR_BACKEND"], env["LAZYARR_TIER"]) == ("c", "compile")
    assert env["ARRAY_API_TESTS_MODULE"] == "lazyarr"


def test_a_report_is_sorted_by_chapter() -> None:
    crash = {"crash": {"message": "AssertionError: no\nmore"}}
    skip = {"outcome": "skipped", "longrepr": "('f.py', 3, 'Skipped: flaky')"}
    found = upstream.read(
        "lazyarr",
        {
            "tests": [
                {"nodeid": "array_api_tests/test_fft.py::test_a", "outcome": "passed"},
                {"nodeid": "array_api_tests/test_fft.py::test_b", "outcome": "failed",
                 "call": crash},
                {"nodeid": "array_api_tests/test_linalg.py::test_c", "outcome": "skipped",
                 "call": skip},
            ]
        },
    )  # fmt: skip
    assert dict(found.outcomes) == {
        "fft": Counter(passed=1, failed=1),
        "linalg": Counter(skipped=1),
    }
    assert found.failures == [("array_api_tests/test_fft.py::test_b", "AssertionError: no")]
    assert found.skips == Counter(flaky=1)
    assert found.bad == 1


def test_counters_are_printed() -> None:
    found = upstream.Upstream("lazyarr", {"fft": Counter(passed=1)})
    found.counts = Counter(keys=10, hits=6, misses=4, compiles=4, interpretations=0)
    found.steps = Counter({"native c": 3, "fallback c": 1, "op sort": 1})
    text = upstream.text(found)
    assert "evaluations 10, interpreted 0, compiles 4, hits 6" in text
    assert "c: 3 native steps of 4 (75.0%)" in text
    assert "by reference: sort 1" in text
