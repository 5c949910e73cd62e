"""Every row of the benchmark of array work computes the same by hand and in lazyarr."""

import numpy as np
import pytest

from benchmarks.rows import ROWS, agree, by_hand, compiled

pytestmark = [pytest.mark.fast, pytest.mark.backends]


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.kernel and "1e+07" not in r.name], ids=lambda r: r.name
)
def test_agreement(row) -> None:
    arguments = row.arguments(np.random.default_rng(1))
    arguments = tuple(np.asarray(a, "float64") for a in arguments)
    ours = compiled(row, arguments)
    hand = by_hand(row, arguments, "float64", np.asarray(ours()), False)
    agree(row, {"ours": ours, "hand": hand}, "float64")
