"""A table of libraries: chapters, how many checks pass, and why not.

As text on the terminal; with --json as data, with --html as a page, with --markdown for documents.
"""

import argparse
import importlib.metadata
import json
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance import baseline, html
from conformance.own import command, supervise
from conformance.own.check import PASSED, SKIPPED, Options, Result
from conformance.own.supervise import Run
from conformance.spec import VERSION

# Chapters that only some libraries have come last.
LAST = ("laziness", "backends")
BEGIN, END = "<!-- report begins -->", "<!-- report ends -->"


@dataclass
class Report:
    """The runs of several libraries, and how they were made."""

    runs: list[Run]
    settings: dict = field(default_factory=dict)

    @property
    def chapters(self) -> list[str]:
        """The rows, in the order of the standard."""
        found = dict.fromkeys(r.id.split("/")[0] for run in self.runs for r in run.results)
        return [c for c in found if c not in LAST] + [c for c in LAST if c in found]

    def of(self, run: Run, chapter: str) -> list[Result]:
        """Return the results of a library in a chapter."""
        return [r for r in run.results if r.id.startswith(f"{chapter}/")]


def cell(results: Sequence[Result]) -> str:
    """Return passed of total; checks that do not apply do not count."""
    counts = Counter(r.outcome for r in results)
    total = sum(counts.values()) - counts[SKIPPED]
    return f"{counts[PASSED]}/{total}" if total else "-"


def table(report: Report) -> list[list[str]]:
    """Return the rows of the table, the first being its head."""
    rows = [["chapter", *(r.name for r in report.runs)]]
    rows += [[c, *(cell(report.of(r, c)) for r in report.runs)] for c in report.chapters]
    return [*rows, ["all", *(cell(r.results) for r in report.runs)]]


def text(report: Report, listed: int = 15) -> str:
    """Return the table, and for each library the functions that fail."""
    rows = table(report)
    widths = [max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0]))]
    lines = [
        row[0].ljust(widths[0])
        + "".join(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    for run in report.runs:
        lines += ["", *why_not(run, listed)]
    return "\n".join(lines)


def why_not(run: Run, listed: int) -> list[str]:
    """Return, a line for each function, how many checks it fails and the first reason."""
    if run.error:
        return [f"{run.name}: not checked: {run.error}"]
    groups = by_function(run)
    head = f"{run.name} {run.version} ({run.seconds:.0f} s): "
    if not groups:
        return [head + "nothing fails"]
    lines = [head + f"{len(supervise.bad(run))} checks of {len(groups)} functions fail"]
    for name, results in list(groups.items())[:listed]:
        aspects = ", ".join(f"{n} {a}" for a, n in Counter(map(aspect, results)).items())
        lines.append(f"  {name} ({aspects}): {results[0].why[:150]}")
    if len(groups) > listed:
        lines.append(f"  ... and {len(groups) - listed} more functions (--json, --html)")
    return lines


def by_function(run: Run) -> dict[str, list[Result]]:
    """Return what fails, by function, those with most failures first."""
    groups: dict[str, list[Result]] = {}
    for r in supervise.bad(run):
        groups.setdefault(r.id.split("/")[1], []).append(r)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def aspect(result: Result) -> str:
    """Return what a check looks at: name, signature, dtype, shape, values, special, ..."""
    return result.id.split("/")[2].split(" ")[0]


def markdown(report: Report) -> str:
    """Return the table and the functions that fail, as Markdown."""
    rows = table(report)
    lines = ["| " + " | ".join(rows[0]) + " |", "|---" + "|--:" * (len(rows[0]) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows[1:]]
    for run in report.runs:
        lines += ["", f"### {run.name} {run.version}", ""]
        groups = by_function(run)
        if run.error or not groups:
            lines.append(run.error or "Nothing fails.")
            continue
        lines += ["| function | checks that fail | for example |", "|---|---|---|"]
        for name, results in groups.items():
            aspects = ", ".join(f"{n} {a}" for a, n in Counter(map(aspect, results)).items())
            why = results[0].why[:160].replace("|", "\\|").replace("`", "'")
            lines.append(f"| {name} | {aspects} | `{why}` |")
    return "\n".join(lines) + "\n"


def update(path: Path, report: Report) -> None:
    """Put the table into a document, between its two marks."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{markdown(report)}\n{END}{after}", encoding="utf-8")


def as_json(report: Report) -> dict:
    """Return a report as plain data."""
    cells = {
        run.name: {c: dict(Counter(r.outcome for r in report.of(run, c))) for c in chapters}
        for chapters in [report.chapters]
        for run in report.runs
    }
    return {
        "standard": VERSION,
        **report.settings,
        "chapters": report.chapters,
        "cells": cells,
        "libraries": [command.as_json(run) for run in report.runs],
    }


def from_json(data: dict) -> Report:
    """Return the report that was written as data."""
    runs = [
        Run(
            one["library"],
            one["version"],
            [Result(**r) for r in one["results"]],
            one["seconds"],
            one["error"],
        )
        for one in data["libraries"]
    ]
    kept = {k: data[k] for k in ("examples", "seconds", "python", "machine", "numpy") if k in data}
    return Report(runs, kept)


def settings(args: argparse.Namespace) -> dict:
    """Return how a report is made, for readers of the file."""
    return {
        "examples": args.examples,
        "seconds": args.seconds,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "numpy": importlib.metadata.version("numpy"),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("libraries", nargs="*", help="numpy, jax, torch, lazyarr:c, any module")
    command.add_run_arguments(parser)
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--html", type=Path, help="write a page to this file")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--update", type=Path, help="put the table into this document")
    parser.add_argument(
        "--from", dest="source", type=Path, nargs="+", help="join --json files, check nothing"
    )


def make(args: argparse.Namespace) -> Report:
    """Check the libraries, or read a report that was written before."""
    if args.source:
        found = [from_json(json.loads(p.read_text(encoding="utf-8"))) for p in args.source]
        return Report([run for r in found for run in r.runs], found[0].settings)
    options = Options(args.examples, args.seconds)
    runs = [
        supervise.check(name, options, args.only, command.Progress()) for name in args.libraries
    ]
    return Report(runs, settings(args))


def main(args: argparse.Namespace) -> int:
    """Make and write a report; 1 when a library with a baseline differs from it."""
    if not args.libraries and not args.source:
        print("name at least one library, or a file with --from", file=sys.stderr)
        return 2
    report = make(args)
    print(text(report))
    if args.json:
        args.json.write_text(json.dumps(as_json(report), indent=1), encoding="utf-8")
    if args.html:
        args.html.write_text(html.page(as_json(report)), encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(markdown(report), encoding="utf-8")
    if args.update:
        update(args.update, report)
    wrong = []
    for run in report.runs:
        if baseline.known(run.name, args.baseline) is not None:
            wrong += baseline.verdict(run, args.baseline, complete=not args.only)
    for line in wrong:
        print(line)
    return 1 if wrong or any(r.error for r in report.runs) else 0
