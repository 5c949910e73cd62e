"""The facts are whole, every function has a recipe, and the rules of special values agree."""

import itertools
import math
import warnings

import numpy as np
import pytest

from conformance import spec
from conformance.libraries import Library
from conformance.own import catalogue, inspection, special
from conformance.own.draw import Fixed
from conformance.own.recipes import RECIPES

pytestmark = pytest.mark.fast


def test_there_are_267_entries() -> None:
    assert len(spec.entries()) == 267


def test_every_function_and_operator_is_asked_for_values() -> None:
    asked = set(RECIPES) | set(inspection.ASKED) | {"__array_namespace_info__"}
    kinds = ("function", "extension_function", "method", "operator")
    assert not {e.key for e in spec.entries() if e.kind in kinds} - asked


def test_recipes_are_of_the_standard() -> None:
    assert set(RECIPES) <= {e.key for e in spec.entries()}


def test_recipes_are_deterministic() -> None:
    for key, make in RECIPES.items():
        texts = [[make(Fixed((), seed)).text(key) for seed in range(3)] for _ in range(2)]
        assert texts[0] == texts[1]


def test_ids_are_unique() -> None:
    ids = [c.id for c in catalogue.checks(Library("numpy"))]
    assert len(ids) == len(set(ids))


def test_promotion_is_symmetric() -> None:
    for a, b in itertools.product(spec.DTYPES, repeat=2):
        assert spec.promote(a, b) == spec.promote(b, a)


def test_every_rule_speaks_of_something() -> None:
    for rule in special.rules():
        samples = rule.samples()
        assert samples, rule
        for result in rule.results:  # every word of a result is known
            special.accepts(result, math.nan, samples[0] or (0.0,), strict=False)


# Where NumPy itself does not keep the rules, it cannot say whether they agree.
NOT_NUMPY = {"expm1", "sign", "floor_divide"}


def test_numpy_keeps_the_rules_elsewhere() -> None:
    """A witness that the rules are written down right: none contradicts IEEE and C99."""
    library = Library("numpy")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for check in special.checks():
            if check.entry not in NOT_NUMPY:
                special.ask_special(library, check, None)
