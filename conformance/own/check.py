"""What a check is, and the ways it can end."""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass

from conformance.libraries import Library, Missing

PASSED, FAILED, SKIPPED, TIMEOUT = "passed", "failed", "skipped", "timeout"


class Mismatch(AssertionError):
    """A library's answer is not the standard's."""


class Skip(Exception):
    """A check does not apply to a library; the message says why."""


class OutOfTime(BaseException):
    """The time of a check is up. Not an Exception: nothing on the way may swallow it."""


@dataclass(frozen=True)
class Options:
    """How checks are run."""

    examples: int = 20
    seconds: float = 30.0


@dataclass(frozen=True)
class Check:
    """One question to a library: the aspect of an entry of the standard."""

    chapter: str
    entry: str
    aspect: str
    ask: Callable[[Library, "Check", Options], None]
    detail: str = ""

    @property
    def id(self) -> str:
        """The name of the check: `statistical/sum/values`."""
        tail = f" {self.detail}" if self.detail else ""
        return f"{self.chapter}/{self.entry}/{self.aspect}{tail}"


@dataclass(frozen=True)
class Result:
    """How a check ended."""

    id: str
    outcome: str
    why: str = ""
    seconds: float = 0.0

    def plain(self) -> dict:
        """Return the result as plain data."""
        return {k: v for k, v in asdict(self).items() if v != ""}


def perform(check: Check, library: Library, options: Options) -> Result:
    """Ask a library a question, and say how it ended."""
    start = time.perf_counter()
    outcome, why = PASSED, ""
    try:
        with library.active(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check.ask(library, check, options)
    except Skip as error:
        outcome, why = SKIPPED, str(error)
    except (Mismatch, Missing) as error:
        outcome, why = FAILED, str(error)
    except OutOfTime:
        outcome, why = TIMEOUT, f"more than {options.seconds:g} s"
    except Exception as error:  # whatever a library raises is its answer
        outcome, why = FAILED, describe(error)
    return Result(check.id, outcome, brief(why), round(time.perf_counter() - start, 3))


def describe(error: BaseException) -> str:
    """Return an error as a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def brief(text: str, limit: int = 400) -> str:
    """Return a text on one line, cut to a length."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
