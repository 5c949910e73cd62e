"""A process that checks one library and writes a line of JSON for each step.

`{"total": n}` first; `{"start": id}` before a check; its result after it. Ids on standard input,
one a line, are left out: those that an earlier process has done.
"""

import argparse
import json
import os
import sys

from conformance.libraries import load
from conformance.own import catalogue
from conformance.own.check import Options
from conformance.own.draw import numpy_strategies
from conformance.own.run import run


def main() -> None:
    """Run the checks that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints goes with the errors
    done = set(sys.stdin.read().splitlines())

    def say(**what: object) -> None:
        out.write(json.dumps(what) + "\n")

    numpy_strategies()  # so that no check pays for it
    library = load(args.name)
    checks = catalogue.checks(library, args.only)
    say(total=len(checks), version=library.version)
    options = Options(args.examples, args.seconds)
    rest = [c for c in checks if c.id not in done]
    for result in run(library, rest, options, lambda check: say(start=check.id)):
        say(**result.plain())


if __name__ == "__main__":
    main()
