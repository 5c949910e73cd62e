"""A file has at most 600 lines, a function at most 60, and a module's name says what it holds."""

import ast
from pathlib import Path

import pytest

from tests.house.source import MODULES, ROOT

pytestmark = pytest.mark.fast

FILE_LINES = 600
FUNCTION_LINES = 60
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "misc", "common"}
FOLDERS = ("lazyarr", "conformance", "tests", "benchmarks", "examples")


def files() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_files_are_short() -> None:
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in files()}
    wrong = [f"{path}: {n} lines" for path, n in lengths.items() if n > FILE_LINES]
    assert not wrong, "\n".join(wrong)


def test_functions_are_short() -> None:
    wrong = [
        f"{module.path}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for module in MODULES.values()
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not wrong, "\n".join(wrong)


def test_names_say_something() -> None:
    wrong = [str(path) for path in files() if EMPTY_NAMES & {path.stem, path.parent.name}]
    assert not wrong, "\n".join(wrong)
