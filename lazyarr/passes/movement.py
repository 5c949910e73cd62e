"""Movement: views of views become one view, and a view of everything vanishes.

Elements are moved and never computed, so every equation holds exactly. A view that reads at a place
known only while running keeps its check.
"""

from typing import Any

import numpy as np

from lazyarr.graph.node import Variable
from lazyarr.graph.ops.indexing import read_region
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet

MOVEMENT = RuleSet("movement")
rule = MOVEMENT.rule
x = var("x")

# -- views that change nothing --------------------------------------------------------------------


@rule(p.reshape(x))
def same_shape(x: Variable, node: Variable) -> Variable | None:
    """reshape(x, shape of x) -> x"""
    return x if x.type is node.type else None


@rule(p.broadcast_to(x))
def same_size(x: Variable, node: Variable) -> Variable | None:
    """broadcast_to(x, shape of x) -> x"""
    return x if x.type is node.type else None


@rule(p.specify_shape(x))
def shape_known(x: Variable, node: Variable) -> Variable | None:
    """specify_shape(x, shape of x) -> x"""
    return x if x.type is node.type else None


@rule(p.permute_dims(x))
def same_order(x: Variable, node: Variable) -> Variable | None:
    """permute_dims(x, (0, 1, ...)) -> x"""
    return x if node.params["axes"] == tuple(range(x.ndim)) else None


@rule(p.flip(x))
def nothing_flipped(x: Variable, node: Variable) -> Variable | None:
    """flip(x, ()) -> x, also along axes of size 1"""
    return x if all(node.shape[i] == 1 for i in node.params["axis"]) else None


@rule(p.expand_dims(x))
def nothing_added(x: Variable, node: Variable) -> Variable | None:
    """expand_dims(x, ()) -> x"""
    return x if not node.params["axis"] else None


@rule(p.squeeze(x))
def nothing_dropped(x: Variable, node: Variable) -> Variable | None:
    """squeeze(x, ()) -> x"""
    return x if not node.params["axis"] else None


@rule(p.basic_index(x, ...))
def whole_array(x: Variable, node: Variable) -> Variable | None:
    """x[:, :, ...] -> x"""
    whole = all(e == ("slice", 1) for e in node.params["spec"])
    whole = whole and all(_is_zero(s) for s in node.inputs[1:])
    return x if whole and x.type is node.type else None


@rule(p.concat(x))
def single_part(x: Variable) -> Variable:
    """concat([x]) -> x"""
    return x


# -- views of views -------------------------------------------------------------------------------


@rule(p.reshape(p.reshape(x)))
def reshape_twice(x: Variable, node: Variable) -> Variable | None:
    """reshape(reshape(x, s), t) -> reshape(x, t)"""
    return op.reshape(x, node.shape)  # type: ignore[no-any-return]


@rule(p.permute_dims(p.permute_dims(x).named("inner")))
def permute_twice(x: Variable, inner: Variable, node: Variable) -> Variable:
    """permute_dims(permute_dims(x, p), q) -> permute_dims(x, p[q])"""
    first = inner.params["axes"]
    return op.permute_dims(x, tuple(first[i] for i in node.params["axes"]))  # type: ignore[no-any-return]


@rule(p.broadcast_to(p.broadcast_to(x).named("inner")))
def broadcast_twice(x: Variable, inner: Variable, node: Variable) -> Variable | None:
    """broadcast_to(broadcast_to(x, s), t) -> broadcast_to(x, t)"""
    lead = inner.ndim - x.ndim
    certain = all(s == 1 or s == inner.shape[lead + i] for i, s in enumerate(x.shape))
    return op.broadcast_to(x, node.shape) if certain else None


@rule(p.flip(p.flip(x).named("inner")))
def flip_twice(x: Variable, inner: Variable, node: Variable) -> Variable:
    """flip(flip(x, s), t) -> flip(x, s ^ t)"""
    both = set(inner.params["axis"]) ^ set(node.params["axis"])
    return op.flip(x, axis=tuple(sorted(both))) if both else x


@rule(p.squeeze(p.expand_dims(x).named("inner")))
def squeeze_of_expand(x: Variable, inner: Variable, node: Variable) -> Variable | None:
    """squeeze(expand_dims(x, i), i) -> x"""
    return x if inner.params["axis"] == node.params["axis"] else None


@rule(p.expand_dims(p.squeeze(x).named("inner")))
def expand_of_squeeze(x: Variable, inner: Variable, node: Variable) -> Variable | None:
    """expand_dims(squeeze(x, i), i) -> x"""
    same = inner.params["axis"] == node.params["axis"]
    return x if same and x.type is node.type else None


@rule(p.basic_index(p.basic_index(x, ...).named("inner"), ...))
def index_twice(inner: Variable, node: Variable) -> Variable | None:
    """x[s][t] -> x[s of t]"""
    return composed(inner, node)


def _is_zero(start: Any) -> bool:
    return start.__class__ is int and start == 0


def composed(inner: Variable, node: Variable) -> Variable | None:
    """Return one region for a region of a region; None where a new axis is indexed."""
    outer = _entries(node)
    spec: list[tuple[Any, ...]] = []
    starts: list[Any] = []
    lengths: list[Any] = []
    for entry, start, _ in _entries(inner):
        if entry[0] == "int":
            spec.append(entry)
            starts.append(start)
            continue
        while outer and outer[0][0][0] == "new":
            spec.append(outer.pop(0)[0])
        (second, begin, length) = outer.pop(0)
        if entry[0] == "new":
            if not _is_zero(begin) or (second[0] == "slice" and length != 1):
                return None
            spec += [entry] if second[0] == "slice" else []
            continue
        starts.append(_shifted(start, entry[1], begin))
        if second[0] == "slice":
            spec.append(("slice", entry[1] * second[1]))
            lengths.append(length)
        else:
            spec.append(("int",))
    spec += [e for e, _, _ in outer]
    return read_region(inner.inputs[0], tuple(spec), tuple(lengths), tuple(starts))


def _entries(node: Variable) -> list[tuple[tuple[Any, ...], Any, Any]]:
    """Return (spec entry, start, length) for each entry of a region."""
    starts, lengths = iter(node.inputs[1:]), iter(node.params["lengths"])
    return [
        (
            e,
            None if e[0] == "new" else next(starts),
            next(lengths) if e[0] == "slice" else None,
        )
        for e in node.params["spec"]
    ]


def _shifted(start: Any, step: int, begin: Any) -> Any:
    """Return start + step * begin, folded where both are plain."""
    scaled = begin if step == 1 else begin * step
    return scaled if _is_zero(start) else start if _is_zero(scaled) else scaled + start


# -- casts ----------------------------------------------------------------------------------------


@rule(p.astype(x))
def same_dtype(x: Variable, node: Variable) -> Variable | None:
    """astype(x, dtype of x) -> x"""
    return x if x.type is node.type else None


@rule(p.astype(p.astype(x).named("inner")))
def cast_twice(x: Variable, inner: Variable, node: Variable) -> Variable | None:
    """astype(astype(x, s), t) -> astype(x, t) where s holds every value of x"""
    if not holds(inner.dtype, x.dtype):
        return None
    if x.dtype.kind in "fc" and node.dtype.kind in "iu":
        return None  # out of range, the casts of two float dtypes may differ
    through_float = inner.dtype.kind in "fc" and node.dtype.kind in "iu" and x.dtype.kind in "iu"
    if through_float and not holds(node.dtype, x.dtype):
        return None  # out of range, float to int and int to int differ
    return op.astype(x, node.dtype)  # type: ignore[no-any-return]


def holds(wide: np.dtype[Any], narrow: np.dtype[Any]) -> bool:
    """Tell whether a dtype holds every value of another exactly.

    >>> holds(np.dtype("float64"), np.dtype("int32")), holds(np.dtype("float64"), np.dtype("int64"))
    (True, False)
    """
    if wide == narrow or narrow.kind == "b":
        return True
    if wide.kind == "b" or "biufc".index(wide.kind) < "biufc".index(narrow.kind):
        return wide.kind == "i" and narrow.kind == "u" and wide.itemsize > narrow.itemsize
    if narrow.kind in "iu" and wide.kind in "fc":
        digits = {4: 24, 8: 53}[wide.itemsize // (2 if wide.kind == "c" else 1)]
        return narrow.itemsize * 8 - (narrow.kind == "i") <= digits
    if narrow.kind == "i" and wide.kind == "u":
        return False
    parts = (2 if wide.kind == "c" else 1), (2 if narrow.kind == "c" else 1)
    return wide.itemsize // parts[0] >= narrow.itemsize // parts[1]
