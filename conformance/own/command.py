"""Checks generated from the standard's facts, for any namespace.

Names, signatures, dtypes, shapes, values, special values; for lazy namespaces also what is computed
when, and errors at the call; for lazyarr's backends also that they agree.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from conformance import baseline
from conformance.own import supervise
from conformance.own.check import Options
from conformance.own.supervise import Run


class Progress:
    """Says how far a run is: one changing line on a terminal, else a line every ten seconds."""

    def __init__(self) -> None:
        self.last = 0.0
        self.begin = time.monotonic()

    def __call__(self, run: Run, total: int, current: str) -> None:
        """Say it, when it is time."""
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self.last < (0.1 if terminal else 10.0) and current:
            return
        self.last = now
        failed = len(supervise.bad(run))
        text = (
            f"{run.name}: {len(run.results)}/{total} checks, {failed} failed, "
            f"{now - self.begin:.0f} s  {current}"
        )
        end = "\r" if terminal and current else "\n"
        print(f"{text[:110]:110}" if terminal else text, end=end, file=sys.stderr, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "libraries", nargs="+", help="numpy, jax, torch, lazyarr, lazyarr:c, any module"
    )
    add_run_arguments(parser)
    parser.add_argument("--list", type=int, default=40, help="failures to print (default 40)")
    parser.add_argument("--json", type=Path, help="write all results to this file")
    parser.add_argument(
        "--strike", action="store_true", help="take what passes off the list of known failures"
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `own` and `report` share."""
    parser.add_argument("--examples", type=int, default=20, help="per drawn check (default 20)")
    parser.add_argument("--seconds", type=float, default=30.0, help="per check (default 30)")
    parser.add_argument("--only", nargs="+", default=[], help="checks whose id holds a word")
    parser.add_argument(
        "--baseline", type=Path, default=None, help="known failures (default: the project's own)"
    )


def text(run: Run, listed: int) -> str:
    """Return the counts by chapter, and the failures."""
    chapters: dict[str, Counter] = {}
    for r in run.results:
        chapters.setdefault(r.id.split("/")[0], Counter())[r.outcome] += 1
    lines = [f"{run.name} {run.version}: {run.seconds} s"]
    for chapter, c in [*chapters.items(), ("all", run.counts)]:
        counts = ", ".join(f"{n} {kind}" for kind, n in sorted(c.items()))
        lines.append(f"  {chapter:16} {counts}")
    wrong = supervise.bad(run)
    lines += [f"  {r.outcome} {r.id}: {r.why}" for r in wrong[:listed]]
    if len(wrong) > listed:
        lines.append(f"  ... and {len(wrong) - listed} more (--list, --json)")
    return "\n".join(lines)


def main(args: argparse.Namespace) -> int:
    """Check and print; 1 when a library fails what its baseline does not name."""
    runs = []
    for name in args.libraries:
        run = supervise.check(name, Options(args.examples, args.seconds), args.only, Progress())
        runs.append(run)
        if run.error:
            print(f"{name}: not checked: {run.error}", file=sys.stderr)
        else:
            print(text(run, args.list))
    if args.json:
        args.json.write_text(json.dumps([as_json(r) for r in runs], indent=1), encoding="utf-8")
    for run in runs if args.strike else ():
        for check in baseline.strike(run, args.baseline):
            print(f"{run.name}: struck {check}")
    verdicts = [baseline.verdict(run, args.baseline, complete=not args.only) for run in runs]
    for lines in verdicts:
        for line in lines:
            print(line)
    return 1 if any(verdicts) or any(r.error for r in runs) else 0


def as_json(run: Run) -> dict:
    """Return a run as plain data."""
    return {
        "library": run.name,
        "version": run.version,
        "seconds": run.seconds,
        "error": run.error,
        "results": [r.plain() for r in run.results],
    }
