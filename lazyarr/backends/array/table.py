"""Table: what one array namespace offers to the programs of the array family.

A program is written in *words*, functions with one exact meaning (README.md lists them). Most words
are functions of the Array API standard and are found in the namespace under their own name; a table
holds only the words that differ there. A word may be given for one category of dtypes alone, as
`sign_float` or `pow_int`, which is preferred where a program computes in that category. A *row* is
a function for a whole op, `row(*operands, **params)`, preferred to the op's formula or kind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from lazyarr.errors import LazyArrError

CATEGORIES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}

# Words that are exact for unsigned 64-bit integers when computed on the same bits, signed.
MODULAR = frozenset(
    "add subtract multiply negative positive bitwise_and bitwise_or bitwise_xor bitwise_invert "
    "bitwise_left_shift equal not_equal where sum prod cumulative_sum cumulative_prod matmul "
    "einsum astype".split()
)


class Unsupported(LazyArrError, NotImplementedError):
    """A node that a namespace has no words for; the driver runs it by its reference."""


class CheckFailed(Exception):
    """Ends an eager program whose check number `code` failed."""

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


def raising_check(holds: Callable) -> Callable:
    """Return the word `check` of a namespace that computes at once: it ends the program.

    `holds` tells whether every element of a predicate is true, as a Python bool.
    """

    def check(error, ok, code):
        if not holds(ok):
            raise CheckFailed(code)
        return error

    return check


@dataclass
class Table:
    """The words of a namespace and its gaps among the dtypes."""

    namespace: object
    dtype: Callable  # a numpy.dtype -> the namespace's dtype object
    constant: Callable  # (Python number, numpy.dtype) -> a 0-d value that programs hold
    words: Mapping[str, Callable] = field(default_factory=dict)
    rows: dict[str, Callable] = field(default_factory=dict)
    # dtypes without arithmetic -> a wider one whose results, cast back, are the same
    wider: Mapping[np.dtype, np.dtype] = field(default_factory=dict)
    # dtypes whose elements cannot be moved -> one of the same width whose can
    movable: Mapping[np.dtype, np.dtype] = field(default_factory=dict)
    # (word, category) that the namespace lacks although it has the word
    missing: frozenset = frozenset()
    name: str = ""  # of the namespace, for foreign functions that are written in it
    frees: bool = True  # whether programs drop temporaries (they compute at once)

    def register(self, op_name: str, row: Callable) -> None:
        """Give an op a row of its own: `row(*operands, **params)` in this namespace."""
        self.rows[op_name] = row

    def find(self, word: str, dtype: np.dtype | None = None) -> tuple[str, Callable]:
        """Return a word's name and function for the category of a dtype; Unsupported without."""
        if dtype is not None:
            category = CATEGORIES[dtype.kind]
            if (word, category) in self.missing:
                raise Unsupported(f"{word} of {dtype} is not in this namespace.")
            special = f"{word}_{category}"
            if special in self.words:
                return special, self.words[special]
        found = self.words.get(word) or getattr(self.namespace, word, None)
        if found is None:
            raise Unsupported(f"this namespace has no {word}.")
        return word, found
