"""`python -m conformance upstream | own | report`; each has --help."""

import argparse
import sys

from conformance import report, upstream
from conformance.own import command


def parser() -> argparse.ArgumentParser:
    """Return the command line of the package."""
    out = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = out.add_subparsers(dest="command", required=True)
    for name, module in (("upstream", upstream), ("own", command), ("report", report)):
        one = commands.add_parser(name, help=module.__doc__.splitlines()[0])
        module.add_arguments(one)
        one.set_defaults(main=module.main)
    return out


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit status."""
    args = parser().parse_args(argv)
    return args.main(args)


if __name__ == "__main__":
    sys.exit(main())
