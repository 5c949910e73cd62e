"""The consortium's suite, run from a checkout of yours against any module.

Nothing of it is copied: a scratch folder of links joins the checkout of array-api-tests, named by
LAZYARR_ARRAY_API_TESTS, with that of array-api, named by LAZYARR_ARRAY_API, which the suite expects
as a submodule. The run is derandomized, has no deadline, and happens in a process of its own.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from conformance.spec import VERSION

TESTS = "LAZYARR_ARRAY_API_TESTS"
STANDARD = "LAZYARR_ARRAY_API"
PINNED = {
    TESTS: "55fcc60179efa2680ddd6cd926ddf17b83530e2b",
    STANDARD: "5f847a3858875c682ae901aa22b0413bf24be9da",
}
ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = 3


class NotRun(Exception):
    """The suite cannot run here; the message says what is missing."""


@dataclass
class Upstream:
    """What a run of the suite gave."""

    module: str
    outcomes: dict[str, Counter] = field(default_factory=dict)
    failures: list[tuple[str, str]] = field(default_factory=list)
    skips: Counter = field(default_factory=Counter)
    counts: Counter = field(default_factory=Counter)
    steps: Counter = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def total(self) -> Counter:
        """The outcomes of all chapters."""
        return sum(self.outcomes.values(), Counter())

    @property
    def bad(self) -> int:
        """How many tests did not pass and were not skipped by the suite itself."""
        return sum(n for kind, n in self.total.items() if kind not in ("passed", "skipped"))


def checkout(variable: str) -> Path:
    """Return the folder that a variable names, or raise NotRun."""
    text = os.environ.get(variable)
    if not text:
        raise NotRun(f"{variable} is not set; it names a checkout (commit {PINNED[variable]}).")
    path = Path(text).expanduser().resolve()
    inside = "array_api_tests" if variable == TESTS else "src/array_api_stubs"
    if not (path / inside).is_dir():
        raise NotRun(f"{variable}={text} holds no {inside}.")
    return path


def commit_of(path: Path) -> str | None:
    """Return the commit of a checkout, None where git cannot say."""
    command = ["git", "-C", str(path), "rev-parse", "HEAD"]
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return out.stdout.strip()


def say_commits(paths: dict[str, Path]) -> None:
    """Print a line for each checkout whose commit is not the pinned one."""
    for variable, path in paths.items():
        found = commit_of(path)
        if found != PINNED[variable]:
            print(f"note: {variable} is at {found or 'an unknown commit'}, not {PINNED[variable]}")


def link(folder: Path, paths: dict[str, Path]) -> Path:
    """Make the folder of links that looks like a checkout with its submodule."""
    suite = folder / "suite"
    suite.mkdir()
    for item in paths[TESTS].iterdir():
        if item.name not in ("array-api", ".git", ".hypothesis", ".pytest_cache"):
            (suite / item.name).symlink_to(item)
    (suite / "array-api").symlink_to(paths[STANDARD])
    return suite


def environment(args: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Return the variables of the process that runs the suite."""
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["ARRAY_API_TESTS_MODULE"] = args.module
    env["ARRAY_API_TESTS_VERSION"] = VERSION
    env["CONFORMANCE_STATS"] = str(folder / "stats")
    env["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    env["PYTHONHASHSEED"] = "0"
    if args.as_is:
        env["CONFORMANCE_AS_IS"] = "1"
    if args.module.startswith("jax"):
        env["JAX_ENABLE_X64"] = "1"
    if args.backend:
        env["LAZYARR_BACKEND"] = args.backend
    if args.tier:
        env["LAZYARR_TIER"] = args.tier
    return env


def command(args: argparse.Namespace, folder: Path) -> list[str]:
    """Return the command line of pytest."""
    out = [
        sys.executable, "-m", "pytest", "-p", "conformance.upstream_plugin", "-p",
        "no:cacheprovider", "-q", "--no-header", "--tb=no", "-rN", "--disable-warnings",
        "--json-report", f"--json-report-file={folder / 'report.json'}",
        "--json-report-omit", "log", "warnings", "streams", "keywords", "--derandomize",
        f"--max-examples={args.max_examples}", "--disable-deadline",
    ]  # fmt: skip
    if args.jobs > 1:
        out += ["-n", str(args.jobs)]
    out += args.pytest or []
    return [*out, *(args.tests or ["array_api_tests/"])]


def run(args: argparse.Namespace) -> Upstream:
    """Run the suite and read its report; progress goes to the terminal."""
    paths = {variable: checkout(variable) for variable in (TESTS, STANDARD)}
    for package in ("pytest", "pytest_jsonreport", "hypothesis", "ndindex"):
        if importlib.util.find_spec(package) is None:
            raise NotRun(f"the suite needs {package}: pip install {package.replace('_', '-')}")
    say_commits(paths)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        suite = link(folder, paths)
        out = subprocess.run(command(args, folder), cwd=suite, env=environment(args, folder))
        report = folder / "report.json"
        if not report.exists():
            raise NotRun(f"pytest ended with code {out.returncode} and wrote no report.")
        found = read(args.module, json.loads(report.read_text(encoding="utf-8")))
        for path in folder.glob("stats.*"):
            one = json.loads(path.read_text(encoding="utf-8"))
            found.counts.update(one["counts"])
            found.steps.update(one["steps"])
    found.seconds = time.perf_counter() - start
    if not found.total:
        raise NotRun(f"no test ran (pytest's code {out.returncode}).")
    return found


def read(module: str, report: dict) -> Upstream:
    """Sort the tests of a JSON report by chapter, which is the file that they are in."""
    found = Upstream(module, defaultdict(Counter))
    for test in report["tests"]:
        chapter = Path(test["nodeid"].split("::")[0]).stem.removeprefix("test_")
        found.outcomes[chapter][test["outcome"]] += 1
        stages = [test.get(stage, {}) for stage in ("setup", "call", "teardown")]
        crash = next((s["crash"]["message"] for s in stages if "crash" in s), "")
        if test["outcome"] == "skipped":
            found.skips[_reason(stages)] += 1
        elif test["outcome"] != "passed":
            found.failures.append((test["nodeid"], crash.splitlines()[0] if crash else ""))
    for collector in report.get("collectors", ()):
        if collector["outcome"] == "failed":
            found.outcomes["collection"]["error"] += 1
            text = str(collector.get("longrepr", "")).strip().splitlines()
            found.failures.append((collector["nodeid"], text[-1] if text else ""))
    return found


def _reason(stages: list[dict]) -> str:
    text = next((str(s["longrepr"]) for s in stages if s.get("longrepr")), "")
    return text.rsplit("Skipped: ", 1)[-1].rstrip("')\"")


def text(found: Upstream, listed: int = 60) -> str:
    """Return the table of a run, its failures, and lazyarr's counters."""
    lines = [f"{'chapter':44}{'passed':>8}{'failed':>8}{'skipped':>8}"]
    for chapter, c in [*sorted(found.outcomes.items()), ("all", found.total)]:
        bad = sum(n for kind, n in c.items() if kind not in ("passed", "skipped"))
        lines.append(f"{chapter:44}{c['passed']:8}{bad:8}{c['skipped']:8}")
    lines += [f"FAILED {nodeid}  {why[:160]}" for nodeid, why in found.failures[:listed]]
    if len(found.failures) > listed:
        lines.append(f"... and {len(found.failures) - listed} more")
    lines += [f"skipped by the suite: {n} x {why}" for why, n in found.skips.most_common()]
    lines.append(f"{found.module}: {found.seconds:.0f} s")
    if found.counts:
        lines += counters(found)
    return "\n".join(lines)


def counters(found: Upstream) -> list[str]:
    """Return lines about evaluations, compiles, hits, and native steps per backend."""
    c, s = found.counts, found.steps
    evaluations = c["keys"] + c["interpretations"] - min(c["interpretations"], c["misses"])
    lines = [
        f"evaluations {evaluations}, interpreted {c['interpretations']}, "
        f"compiles {c['compiles']}, hits {c['hits']}"
    ]
    for name in sorted({k.split()[1] for k in s if k.startswith(("native ", "fallback "))}):
        native, other = s[f"native {name}"], s[f"fallback {name}"]
        share = 100 * native / (native + other)
        lines.append(f"{name}: {native} native steps of {native + other} ({share:.1f}%)")
    lines += [f"not compiled: {n} x {k}" for k, n in s.items() if k.startswith("error ")]
    slow = [(k.removeprefix("op "), n) for k, n in s.most_common() if k.startswith("op ")]
    if slow:
        lines.append("by reference: " + ", ".join(f"{name} {n}" for name, n in slow[:30]))
    return lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("tests", nargs="*", help="test files or ids within the suite (default all)")
    parser.add_argument("--module", default="lazyarr", help="the namespace (default lazyarr)")
    parser.add_argument("--backend", help="lazyarr's backend: interpret, c, numba, jax, torch")
    parser.add_argument("--tier", choices=("auto", "interpret", "compile"), help="lazyarr's tier")
    parser.add_argument("--max-examples", type=int, default=100, help="per test (default 100)")
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="without the mend of test_can_cast (docs/conformance.md)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes, with pytest-xdist")
    parser.add_argument("--pytest", action="append", help="one more option for pytest")
    parser.add_argument("--json", type=Path, help="also write the result to this file")


def main(args: argparse.Namespace) -> int:
    """Run and print; 0 when nothing failed, 1 when something did, 3 when the suite did not run."""
    try:
        found = run(args)
    except NotRun as error:
        print(f"not run: {error}", file=sys.stderr)
        return NOT_RUN
    print(text(found))
    if args.json:
        args.json.write_text(json.dumps(to_json(found), indent=1), encoding="utf-8")
    return 1 if found.bad else 0


def to_json(found: Upstream) -> dict:
    """Return a run as plain data."""
    return {
        "module": found.module,
        "pinned": PINNED,
        "chapters": {k: dict(v) for k, v in sorted(found.outcomes.items())},
        "failures": found.failures,
        "skips": dict(found.skips),
        "counts": dict(found.counts),
        "steps": dict(found.steps),
        "seconds": round(found.seconds, 1),
    }
