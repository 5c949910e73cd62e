"""Alignment: several indexes of one dimension become one, and each array is taken to it.

A join of labels is solved when it is recorded. What is left for an array is a list of positions,
-1 for a label that it lacks: one `take`, and one `where` for the joins that fill.

>>> join_indexes("outer", "x", [Index([3, 1]), Index([2, 1])]).labels.tolist()
[1, 2, 3]
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lazyarr.errors import ArgumentError, CoordError
from lazyarr.graph.node import Variable, data
from lazyarr.graph.ops.indexing import gather
from lazyarr.graph.registry import op
from lazyarr.xtensor.coords import EMPTY, Coord, Coords, Index, shown
from lazyarr.xtensor.naming import unnamed
from lazyarr.xtensor.types import XTensorType

# -- joins of labels ------------------------------------------------------------------------------


def _exact(dim: str, indexes: Sequence[Index], tolerance: object) -> Index:
    first, *rest = indexes
    for other in rest:
        if not first.equals(other) and not _near(first, other, tolerance):
            raise CoordError(
                f"labels of dimension {dim!r} differ: {difference(first.labels, other.labels)}. "
                "Ask for a join with align(..., join='inner'), or drop the labels of one side with "
                f"drop_vars({dim!r})."
            )
    return first


def _override(dim: str, indexes: Sequence[Index], tolerance: object) -> Index:
    first, *rest = indexes
    for other in rest:
        if len(other) != len(first):
            raise CoordError(
                f"join='override' needs equal sizes; dimension {dim!r} has {len(first)} labels in "
                f"one operand and {len(other)} in another."
            )
    return first


def _inner(dim: str, indexes: Sequence[Index], tolerance: object) -> Index:
    first, *rest = indexes
    known = [set(_keys(i)) for i in rest]
    kept = [i for i, key in enumerate(_keys(first)) if all(key in k for k in known)]
    if not kept and all(len(i) for i in indexes):
        raise CoordError(
            f"the labels of dimension {dim!r} have none in common: "
            f"{difference(first.labels, rest[0].labels)}."
        )
    return Index(first.labels[kept])


def _outer(dim: str, indexes: Sequence[Index], tolerance: object) -> Index:
    labels = np.concatenate([i.labels for i in _same_kind(indexes)])
    try:
        return Index(np.unique(labels))
    except TypeError:  # labels without an order stay as they appear
        return Index(np.array(list(dict.fromkeys(labels.tolist())), labels.dtype))


JOINS: dict[str, Callable] = {
    "exact": _exact,
    "override": _override,
    "inner": _inner,
    "outer": _outer,
    "left": lambda dim, indexes, tolerance: indexes[0],
    "right": lambda dim, indexes, tolerance: indexes[-1],
}
FILLING = frozenset({"outer", "left", "right"})
MOVING = FILLING | {"inner"}


def join_indexes(join: str, dim: str, indexes: Sequence[Index], tolerance: object = None) -> Index:
    """Return the index of a dimension that several arrays share, or raise CoordError."""
    if join not in JOINS:
        raise ArgumentError(f"join is one of {', '.join(map(repr, JOINS))}; got {join!r}.")
    first = indexes[0]
    if all(first.equals(i) for i in indexes[1:]):
        return first
    if join not in ("exact", "override"):
        for i in indexes:
            _refuse_duplicates(dim, i)
    return JOINS[join](dim, indexes, tolerance)


def _refuse_duplicates(dim: str, index: Index) -> None:
    twice = [label for label, places in index.places().items() if len(places) > 1]
    if twice:
        raise CoordError(
            f"labels of dimension {dim!r} cannot be joined: {twice[0]!r} occurs more than once. "
            f"Drop the others first with drop_duplicates({dim!r})."
        )


def _near(a: Index, b: Index, tolerance: object) -> bool:
    if (
        tolerance is None
        or len(a) != len(b)
        or {a.labels.dtype.kind, b.labels.dtype.kind} - set("fiu")
    ):
        return False
    return bool(np.all(np.abs(a.labels - b.labels) <= tolerance))


def _same_kind(indexes: Sequence[Index]) -> list[Index]:
    """Bring dates of several units to the finest of them."""
    if all(i.labels.dtype.kind in "mM" for i in indexes):
        dtype = np.result_type(*(i.labels.dtype for i in indexes))
        return [Index(i.labels.astype(dtype)) for i in indexes]
    return list(indexes)


def _keys(index: Index) -> list:
    return (
        index.labels.astype("M8[ns]").tolist()
        if index.labels.dtype.kind == "M"
        else index.labels.tolist()
    )


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """Describe how two label arrays differ."""
    if len(a) != len(b):
        return f"{shown(a)} and {shown(b)}"
    same = np.asarray(a == b)
    places = range(len(a)) if same.shape != a.shape else np.flatnonzero(~same)
    first = [f"{shown(a[i : i + 1])} and {shown(b[i : i + 1])}" for i in places[:3]]
    text = f"at {len(places)} of {len(a)} positions, such as {', '.join(first)}"
    if a.dtype.kind in "fiu" and b.dtype.kind in "fiu" and "f" in a.dtype.kind + b.dtype.kind:
        text += f"; the largest difference is {np.nanmax(np.abs(a - b)):.3g}"
    elif same.shape == a.shape and sorted(map(repr, a.tolist())) == sorted(map(repr, b.tolist())):
        text += "; both hold the same labels in another order"
    return text


# -- to other labels ------------------------------------------------------------------------------


def positions_in(
    index: Index, target: Index, method: str | None = None, tolerance: object = None
) -> np.ndarray:
    """Return where each label of `target` stands in `index`, -1 where it does not."""
    if method is not None or tolerance is not None:
        import pandas as pd

        found = pd.Index(index.labels).get_indexer(
            pd.Index(target.labels), method=method, tolerance=tolerance
        )
        return np.asarray(found, np.int64)
    a, b = _same_kind([index, target])
    places = {key: i for i, key in reversed(list(enumerate(_keys(a))))}
    return np.array([places.get(key, -1) for key in _keys(b)], np.int64)


def take_filled(x: Variable, dim: str, where: np.ndarray, fill: object) -> Variable:
    """Record the elements at positions along a dim, `fill` at -1; `fill` None fills nothing."""
    axis = x.type.axis(dim)
    taken = gather(unnamed(x), data(np.maximum(where, 0)), axis)
    out = op.with_dims(taken, x.type.dims)
    if fill is None:
        return out
    there = data(where >= 0, XTensorType(np.bool_, (dim,), where.shape))
    return _kept_order(op.where(there, out, fill), x.type.dims)


def _kept_order(v: Variable, dims: tuple) -> Variable:
    if v.type.dims == dims:
        return v
    return op.permute_dims(v, tuple(v.type.dims.index(d) for d in dims))


def reindex_coords(coords: Coords, dim: str, target: Index, where: np.ndarray) -> Coords:
    """Return coordinates at positions along a dim, whose labels become those of `target`."""
    out: dict[str, Coord] = {}
    for name, c in coords.items():
        if dim not in c.dims:
            out[name] = c
        elif name == dim:
            out[name] = Coord((dim,), None, target, c.attrs)
        elif isinstance(c.values, np.ndarray):
            values = np.take(c.values, np.maximum(where, 0), c.dims.index(dim))
            out[name] = Coord.of(name, c.dims, blanked(values, c.dims.index(dim), where), c.attrs)
    if dim not in out:
        out[dim] = Coord((dim,), None, target)
    return Coords(out)


def blanked(values: np.ndarray, axis: int, where: np.ndarray) -> np.ndarray:
    """Return values with NaN, or what stands for it, where a position is -1."""
    if np.all(where >= 0):
        return values
    kind = values.dtype.kind
    if kind in "biu":
        values = values.astype(object if kind == "b" else np.float64)
    elif kind in "US":
        values = values.astype(object)
    blank = np.array("NaT", values.dtype) if kind in "mM" else np.nan
    key = [slice(None)] * values.ndim
    key[axis] = where < 0
    out = values.copy()
    out[tuple(key)] = blank
    return out


# -- coordinates of a result ----------------------------------------------------------------------


def merge(many: Sequence[Coords], join: str = "exact") -> Coords:
    """Return the coordinates of a result of several operands that have been aligned.

    Indexes of one dim must agree as the join says; of other coordinates equal ones are kept,
    conflicting ones dropped.
    """
    first, *rest = [c for c in many if c._items] or [EMPTY]
    if all(c is first for c in rest):
        return first
    if len(rest) == 1:
        key = (id(first), id(rest[0]), join)
        found = _merged.get(key)
        if found is None:
            if len(_merged) > _MOST:
                _merged.clear()
            found = _merged[key] = (_merge(first, rest, join), first, rest[0])
        return found[0]
    return _merge(first, rest, join)


_merged: dict[tuple, tuple] = {}  # holds the merged ones, so that their ids stay theirs
_MOST = 1024


def _merge(first: Coords, rest: Sequence[Coords], join: str) -> Coords:
    out = dict(first._items)
    dropped: set[str] = set()
    for coords in rest:
        for name, c in coords._items.items():
            have = out.get(name)
            if have is None:
                if name not in dropped:
                    out[name] = c
            elif have.index is not None and c.index is not None:
                if join_indexes(join, name, [have.index, c.index]) is not have.index:
                    out[name] = c
            elif c.index is not None:
                out[name] = c
            elif have.index is None and not have.equals(c):
                del out[name]
                dropped.add(name)
    return Coords(out)


def shared_dims(many: Iterable[Coords]) -> dict[str, list[Index]]:
    """Return the indexes of each dim that some operand has labels for, in order."""
    found: dict[str, list[Index]] = {}
    for coords in many:
        for name, c in coords._items.items():
            if c.index is not None:
                found.setdefault(name, []).append(c.index)
    return found
