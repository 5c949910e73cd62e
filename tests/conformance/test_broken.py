"""A namespace that breaks the standard is caught, by the check that looks at what it breaks."""

import pytest

from conformance.own import catalogue
from conformance.own.check import FAILED, PASSED, TIMEOUT, Options, Result
from conformance.own.run import run
from tests.conformance import broken


def ask(library, word: str, seconds: float = 30.0) -> dict[str, Result]:
    """Run the checks with a word in their ids, and return the results by id."""
    checks = catalogue.checks(library, [word])
    assert checks, f"no check has {word}"
    return {r.id: r for r in run(library, checks, Options(examples=8, seconds=seconds))}


@pytest.mark.parametrize(
    "changes, check, says",
    [
        ({"sum": broken.wrong_dtype}, "statistical/sum/dtype", "expected int64"),
        ({"sin": broken.wrong_value}, "elementwise/sin/values", "expected"),
        ({"max": broken.wrong_shape}, "statistical/max/shape", "has shape"),
        ({"flip": None}, "manipulation/flip/name", "flip is missing"),
        ({"flip": None}, "manipulation/flip/values", "flip is missing"),
        ({"concat": broken.wrong_signature}, "manipulation/concat/signature", "no default"),
        ({"hypot": broken.wrong_special}, "elementwise/hypot/special inf, any", "is nan"),
        ({"pi": 3.14}, "constants/pi/name", "3.14"),
    ],
)
def test_a_broken_function_is_caught(changes, check, says) -> None:
    found = ask(broken.numpy_with(**changes), check)
    assert {r.outcome for r in found.values()} == {FAILED}
    assert all(says in r.why for r in found.values())


def test_the_rest_of_a_broken_namespace_passes() -> None:
    found = ask(broken.numpy_with(sin=broken.wrong_value), "elementwise/cos/")
    assert {r.outcome for r in found.values()} == {PASSED}


def test_a_failure_names_the_call() -> None:
    why = ask(broken.numpy_with(sin=broken.wrong_value), "elementwise/sin/values")
    assert next(iter(why.values())).why.startswith("sin(")


def test_the_same_failure_is_found_again() -> None:
    runs = [ask(broken.numpy_with(sum=broken.wrong_dtype), "sum/dtype") for _ in range(2)]
    assert [r.why for r in runs[0].values()] == [r.why for r in runs[1].values()]


def test_a_call_that_hangs_is_given_up() -> None:
    found = ask(broken.numpy_with(flip=broken.slow), "manipulation/flip/values", seconds=0.5)
    assert [r.outcome for r in found.values()] == [TIMEOUT]


@pytest.mark.parametrize(
    "changes, check, says",
    [
        ({"cos": broken.computes_while_recording}, "laziness/cos/records", "Concretization"),
        ({"expand_dims": broken.no_error}, "laziness/expand_dims/error", "no error"),
        ({"asarray": broken.shares}, "laziness/copies/aliasing a NumPy array", "expected 1.0"),
    ],
)
def test_a_broken_lazy_namespace_is_caught(changes, check, says) -> None:
    found = ask(broken.lazyarr_with(**changes), check)
    assert {r.outcome for r in found.values()} == {FAILED}
    assert all(says in r.why for r in found.values())


def test_a_sound_lazy_namespace_passes() -> None:
    found = ask(broken.lazyarr_with(), "laziness/cos/")
    assert {r.outcome for r in found.values()} == {PASSED}
