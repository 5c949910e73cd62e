"""Known failures of lazyarr, a list that may only shrink.

`baseline.json` maps a library's name to the checks that it is known to fail, with the reason. A
failure that is not listed is an error. So is a listed check that passes, in a run with the number
of examples that the file names: strike it out.
"""

import json
from pathlib import Path

from conformance.own import supervise
from conformance.own.check import PASSED
from conformance.own.supervise import Run

PATH = Path(__file__).with_name("baseline.json")


def known(library: str, path: Path | None = None) -> dict[str, str] | None:
    """Return the checks that a library is known to fail; None when it has no list."""
    return _read(path)["libraries"].get(library)


def _read(path: Path | None) -> dict:
    return json.loads((path or PATH).read_text(encoding="utf-8"))


def verdict(run: Run, path: Path | None = None, complete: bool = True) -> list[str]:
    """Return what is wrong with a run, a line each: new failures, and listed ones that passed."""
    listed = known(run.name, path)
    wrong = supervise.bad(run)
    if listed is None:
        return [f"{run.name}: {len(wrong)} checks failed"] if wrong else []
    out = [f"{run.name}: new failure {r.id}: {r.why}" for r in wrong if r.id not in listed]
    failed = {r.id for r in wrong}
    seen = {r.id for r in run.results}
    if run.examples != _read(path)["examples"]:
        return out
    for check in listed:
        if check in seen and check not in failed:
            out.append(f"{run.name}: {check} passes; strike it from the baseline")
        elif check not in seen and complete:
            out.append(f"{run.name}: the baseline names {check}, which is no check")
    return out


def strike(run: Run, path: Path | None = None) -> list[str]:
    """Take the checks that passed off a library's list, and return them; nothing is ever added."""
    data = _read(path)
    listed = data["libraries"].get(run.name, {})
    passed = {r.id for r in run.results if r.outcome == PASSED}
    gone = [check for check in listed if check in passed]
    for check in gone:
        del listed[check]
    (path or PATH).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return gone
