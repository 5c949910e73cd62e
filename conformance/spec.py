"""The facts of the standard: names, signatures, dtype categories, promotion. No prose.

>>> entry = function("sum")
>>> entry.chapter, [p["name"] for p in entry.params]
('statistical', ['x', 'axis', 'dtype', 'keepdims'])
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

VERSION = "2025.12"
PATH = Path(__file__).with_name("spec_2025_12.json")

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGER = SIGNED + UNSIGNED
REAL_FLOATING = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
CATEGORIES = {
    "bool": BOOL,
    "integer": INTEGER,
    "bool_or_integer": BOOL + INTEGER,
    "real_floating": REAL_FLOATING,
    "complex_floating": COMPLEX,
    "floating": REAL_FLOATING + COMPLEX,
    "real": INTEGER + REAL_FLOATING,
    "bool_or_real": BOOL + INTEGER + REAL_FLOATING,
    "numeric": INTEGER + REAL_FLOATING + COMPLEX,
    "any": BOOL + INTEGER + REAL_FLOATING + COMPLEX,
}
DTYPES = CATEGORIES["any"]

# A chapter of the report for each group of the facts.
CHAPTERS = {
    "constant": "constants", "namespace": "constants", "dtype": "data types",
    "dtype_object": "data types", "data_type": "data types", "info": "inspection",
    "array_attribute": "array object", "array_method": "array object",
    "operator_reflected": "operators", "operator_inplace": "operators",
    "linear_algebra": "linear algebra",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One name of the standard."""

    name: str
    group: str
    kind: str
    params: tuple[dict, ...] = field(default=(), hash=False)
    out_dtype: str | None = None
    data_dependent: bool = False

    @property
    def chapter(self) -> str:
        """The row of the report that the entry belongs to."""
        return CHAPTERS.get(self.group, self.group)

    @property
    def key(self) -> str:
        """The name of the entry among all: functions of extensions carry the extension's name."""
        return f"{self.group}.{self.name}" if self.group in ("linalg", "fft") else self.name

    def dtypes_of(self, i: int = 0) -> tuple[str, ...]:
        """Return the dtypes that an array parameter takes."""
        return CATEGORIES[self.params[i].get("dtypes", "any")]


@cache
def facts() -> dict:
    """Return the file of facts."""
    return json.loads(PATH.read_text(encoding="utf-8"))


@cache
def entries() -> tuple[Entry, ...]:
    """Return every entry of the standard."""
    return tuple(
        Entry(
            e["name"],
            e["group"],
            e["kind"],
            tuple(e.get("params", ())),
            e.get("out_dtype"),
            bool(e.get("data_dependent_shape")),
        )
        for e in facts()["entries"]
    )


@cache
def _by_key() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for e in entries():
        if e.group != "dtype_object":  # `__eq__` of dtypes, beside that of arrays
            found.setdefault(e.key, e)
    return found


def function(key: str) -> Entry:
    """Return the entry of a function: `"sum"`, `"linalg.svd"`, `"__add__"`."""
    return _by_key()[key]


def promote(*names: str) -> str | None:
    """Return the dtype that the standard's table gives, None where it gives none."""
    out = names[0]
    for name in names[1:]:
        found = facts()["promotion"].get(f"{out},{name}")
        if found is None:
            return None
        out = found
    return out


def promotable(category: str) -> list[tuple[str, str]]:
    """Return the pairs of dtypes of a category that promote, to a dtype of the category."""
    names = CATEGORIES[category]
    return [(a, b) for a in names for b in names if promote(a, b) in names]
