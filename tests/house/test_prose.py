"""Each package folder explains itself on a page, and the project speaks of itself alone."""

import subprocess
from pathlib import Path

import pytest

from tests.house.source import PACKAGE, ROOT

pytestmark = pytest.mark.fast

PAGE_LINES = 60
SKIPPED = {".git", ".venv", "build", "__pycache__", ".ci"}
# Put together from parts, so that this file does not hold them.
FORBIDDEN = ["/".join(["..", "shared"]), "/".join(["", "work", ""]), "/".join(["", "tmp", "bash"])]


def texts() -> list[Path]:
    """The repository's files, as git lists them where it can."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:
        paths = [path for path in ROOT.rglob("*") if not SKIPPED & set(path.parts)]
    return [p for p in paths if p.is_file() and not SKIPPED & set(p.relative_to(ROOT).parts)]


def folders() -> list[Path]:
    return sorted({path.parent for path in PACKAGE.rglob("*.py")})


def test_folders_are_packages() -> None:
    """A folder without `__init__.py` would be left out of the wheel."""
    wrong = [str(folder) for folder in folders() if not (folder / "__init__.py").is_file()]
    assert not wrong, "no __init__.py in: " + ", ".join(wrong)


def test_package_folders_have_a_readme() -> None:
    inner = [folder for folder in folders() if folder != PACKAGE]
    wrong = [str(folder) for folder in inner if not (folder / "README.md").is_file()]
    assert not wrong, "no README.md in: " + ", ".join(wrong)


def test_readmes_of_folders_are_at_most_a_page() -> None:
    long = {p: p.read_text(encoding="utf-8").count("\n") for p in PACKAGE.rglob("README.md")}
    wrong = [f"{path}: {lines} lines" for path, lines in long.items() if lines > PAGE_LINES]
    assert not wrong, "\n".join(wrong)


def test_the_project_speaks_of_itself_alone() -> None:
    wrong = []
    for path in texts():
        text = path.read_bytes().decode("utf-8", "replace")
        wrong += [f"{path} holds {word}" for word in FORBIDDEN if word in text]
    assert not wrong, "\n".join(wrong)
