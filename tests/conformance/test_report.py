"""Reports: the table in every form, and the baseline that may only shrink."""

import json

import pytest

from conformance import __main__, baseline, html, report
from conformance.own.check import FAILED, PASSED, SKIPPED, TIMEOUT, Result
from conformance.own.supervise import Run

pytestmark = pytest.mark.fast

RESULTS = [
    Result("statistical/sum/values", PASSED),
    Result("statistical/sum/dtype", FAILED, "int8, expected </script> int64"),
    Result("statistical/max/signature", SKIPPED, "none to look at"),
    Result("laziness/sum/records", TIMEOUT, "more than 1 s"),
    Result("fft/fft.fft/values", PASSED),
]


@pytest.fixture
def made() -> report.Report:
    runs = [Run("mine", "1.0", RESULTS, 2.0), Run("other", "2.0", RESULTS[:1], 1.0)]
    return report.Report(runs, {"examples": 5})


def test_cells_count_what_applies(made) -> None:
    assert report.table(made) == [
        ["chapter", "mine", "other"],
        ["statistical", "1/2", "1/1"],
        ["fft", "1/1", "-"],
        ["laziness", "0/1", "-"],
        ["all", "2/4", "1/1"],
    ]


def test_text_says_why_not(made) -> None:
    text = report.text(made)
    assert "sum (1 dtype, 1 records): int8" in text
    assert "other 2.0 (1 s): nothing fails" in text


def test_markdown_is_a_table(made) -> None:
    lines = report.markdown(made).splitlines()
    assert lines[0] == "| chapter | mine | other |"
    assert lines[1] == "|---|--:|--:|"
    assert "### mine 1.0" in lines


def test_a_report_is_read_back(made) -> None:
    again = report.from_json(json.loads(json.dumps(report.as_json(made))))
    assert report.text(again) == report.text(made)
    assert again.settings == made.settings


def test_the_page_holds_the_failures_and_no_other_file(made) -> None:
    page = html.page(report.as_json(made))
    assert html.MARK not in page
    assert "expected \\u003c/script>" in page
    assert "src=" not in page and "href=" not in page


def test_the_document_keeps_what_is_around_the_table(tmp_path, made) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    report.update(path, made)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "old" not in text and "| statistical | 1/2 | 1/1 |" in text


@pytest.mark.parametrize(
    "known, says",
    [
        ({"statistical/sum/dtype": "", "laziness/sum/records": ""}, []),
        ({"statistical/sum/dtype": ""}, ["new failure laziness/sum/records"]),
        (dict.fromkeys([r.id for r in RESULTS[:2]] + ["laziness/sum/records"], ""), ["passes;"]),
        ({"statistical/sum/dtype": "", "laziness/sum/records": "", "gone": ""}, ["is no check"]),
    ],
)
def test_the_baseline_only_shrinks(tmp_path, known, says) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"examples": 3, "libraries": {"mine": known}}), encoding="utf-8")
    lines = baseline.verdict(Run("mine", "1.0", RESULTS, examples=3), path)
    assert len(lines) == len(says)
    assert all(word in line for word, line in zip(says, lines, strict=True))


def test_other_numbers_of_examples_do_not_shrink_it(tmp_path) -> None:
    path = tmp_path / "baseline.json"
    known = dict.fromkeys([r.id for r in RESULTS], "")
    path.write_text(json.dumps({"examples": 3, "libraries": {"mine": known}}), encoding="utf-8")
    assert baseline.verdict(Run("mine", "1.0", RESULTS, examples=20), path) == []


def test_striking_takes_off_what_passes_alone(tmp_path) -> None:
    path = tmp_path / "baseline.json"
    known = dict.fromkeys([r.id for r in RESULTS], "why")
    path.write_text(json.dumps({"examples": 3, "libraries": {"mine": known}}), encoding="utf-8")
    run = Run("mine", "1.0", RESULTS, examples=3)
    assert baseline.strike(run, path) == [r.id for r in RESULTS if r.outcome == PASSED]
    assert set(baseline.known("mine", path)) == {r.id for r in RESULTS if r.outcome != PASSED}


def test_a_library_without_a_list_has_to_pass(tmp_path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text('{"examples": 3, "libraries": {}}', encoding="utf-8")
    assert baseline.verdict(Run("mine", "1.0", RESULTS), path) == ["mine: 2 checks failed"]
    assert baseline.verdict(Run("mine", "1.0", RESULTS[:1]), path) == []


def test_a_report_needs_a_library(capsys) -> None:
    assert __main__.main(["report"]) == 2
    assert "at least one library" in capsys.readouterr().err
