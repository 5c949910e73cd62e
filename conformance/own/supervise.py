"""Checking a library in a process of its own, which may hang or crash without ending the run."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from conformance.own.check import FAILED, PASSED, TIMEOUT, Options, Result

ROOT = Path(__file__).resolve().parents[2]
GRACE = 20.0  # seconds beyond a check's limit before its process is ended
STARTING = 180.0  # seconds for a library to load


@dataclass
class Run:
    """The results of a library."""

    name: str  # of the library asked
    version: str = ""
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    examples: int = 0

    @property
    def counts(self) -> Counter:
        """How many checks ended in which way."""
        return Counter(r.outcome for r in self.results)


class Worker:
    """One process, and the lines that it writes."""

    def __init__(self, command: list[str], done: list[str]):
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
        env.setdefault("OMP_NUM_THREADS", "1")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env
        )
        self.process.stdin.write("\n".join(done))
        self.process.stdin.close()
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.errors: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._keep, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _keep(self) -> None:
        for line in self.process.stderr:
            self.errors = [*self.errors[-20:], line.rstrip()]

    def next(self, seconds: float) -> dict | None:
        """Return the next line, None at the end; TimeoutError when none comes in time."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            self.process.kill()
            raise TimeoutError from None
        return None if line is None else json.loads(line)


def check(
    library: str,
    options: Options,
    only: list[str] | None = None,
    progress: Callable[[Run, int, str], None] = lambda run, total, current: None,
) -> Run:
    """Check a library; a process that hangs or dies is replaced by one that does the rest."""
    command = [
        sys.executable, "-m", "conformance.own.worker", library, "--examples",
        str(options.examples), "--seconds", str(options.seconds), "--only", *(only or []),
    ]  # fmt: skip
    found = Run(library, examples=options.examples)
    begin = time.perf_counter()
    while True:
        worker = Worker(command, [r.id for r in found.results])
        current = _follow(worker, found, options, progress)
        worker.process.wait()
        if current is None:
            break
        if not current:
            found.error = next(reversed(worker.errors), "the process ended at once")
            break
    found.seconds = round(time.perf_counter() - begin, 1)
    return found


def _follow(worker: Worker, found: Run, options: Options, progress: Callable) -> str | None:
    """Read a process to its end; return the check in which it died, "" for none, None if done."""
    current, total = "", 0
    limit = STARTING
    try:
        while (line := worker.next(limit)) is not None:
            limit = options.seconds + GRACE
            if "total" in line:
                total, found.version = line["total"], line["version"]
            elif "start" in line:
                current = line["start"]
                progress(found, total, current)
            else:
                found.results.append(Result(**line))
                current = ""
    except TimeoutError:
        if current:
            found.results.append(Result(current, TIMEOUT, f"no answer in {limit:g} s", limit))
        return current
    if worker.process.wait() == 0:
        progress(found, total, "")
        return None
    if current:
        code = worker.process.returncode
        why = f"the process ended with code {code}: {' '.join(worker.errors[-1:])}"
        found.results.append(Result(current, FAILED, why[:300]))
    return current


def bad(run: Run) -> list[Result]:
    """Return the results that are no pass and no skip."""
    return [r for r in run.results if r.outcome in (FAILED, TIMEOUT)]


def good(run: Run) -> bool:
    """Tell whether a library was checked and nothing failed."""
    return not run.error and not bad(run) and any(r.outcome == PASSED for r in run.results)
