"""A library is checked in a process of its own, which may die or hang."""

import os

import pytest

from conformance import __main__
from conformance.own import supervise
from conformance.own.check import FAILED, PASSED, TIMEOUT, Options

MODULE = """
import os, time
from numpy import *
from numpy import bool_ as bool
from numpy import __array_namespace_info__

def roll(x, shift, /, *, axis=None):
    os._exit(9)

def flip(x, /, *, axis=None):
    while True:  # an exception does not end this
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
ONLY = ["manipulation/roll/values", "manipulation/flip/values", "manipulation/tile/values"]


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    """A module whose roll ends the process and whose flip cannot be stopped."""
    (tmp_path / "hostile_arrays.py").write_text(MODULE, encoding="utf-8")
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join(filter(None, [str(tmp_path), inherited]))
    monkeypatch.setenv("PYTHONPATH", path)
    return "hostile_arrays"


def test_a_dying_process_fails_one_check_only(module, monkeypatch) -> None:
    monkeypatch.setattr(supervise, "GRACE", 1.0)
    found = supervise.check(module, Options(examples=3, seconds=2.0), ONLY)
    outcomes = {r.id.split("/")[1]: r.outcome for r in found.results}
    assert outcomes == {"roll": FAILED, "flip": TIMEOUT, "tile": PASSED}
    assert "code 9" in next(r.why for r in found.results if "roll" in r.id)


def test_a_library_that_cannot_be_loaded_is_said(capsys) -> None:
    assert __main__.main(["own", "no_such_arrays"]) == 1
    assert "No module named 'no_such_arrays'" in capsys.readouterr().err


def test_progress_is_said(capsys) -> None:
    assert __main__.main(["own", "numpy", "--only", "manipulation/tile", "--examples", "3"]) == 0
    out = capsys.readouterr()
    assert "checks, 0 failed" in out.err
    assert "numpy" in out.out and "5 passed" in out.out
