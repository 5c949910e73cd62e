"""How the samples of an op are told by name, for the ops whose kind does not tell.

A recipe is a generator of rows `(label, arrays, apply)` for one dtype; `dtypes` are those it runs
for, the first with all rows, the others with the first `others` rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

EVERY = ("float64", "float32", "int64", "int32", "uint8", "bool")
NUMBERS = EVERY[:-1]
FLOATS = EVERY[:2]


@dataclass(frozen=True)
class Row:
    """One sample: operands, how they are applied, and what may be done with it."""

    label: str
    arrays: list
    apply: Callable
    smooth: bool = True
    symbolic: bool = True


@dataclass(frozen=True)
class Recipe:
    """The rows of an op for a dtype, and the dtypes to run it for."""

    rows: Callable[[np.dtype], Iterator[Row]]
    dtypes: tuple = EVERY
    others: int = 2


RECIPES: dict[str, Recipe] = {}


def recipe(*names: str, dtypes: tuple = EVERY, others: int = 2) -> Callable:
    """Declare the decorated generator as the recipe of ops; it gets the op's name and a dtype."""

    def declare(rows: Callable) -> Callable:
        for name in names:
            RECIPES[name] = Recipe(lambda d, name=name: rows(name, d), dtypes, others)
        return rows

    return declare
