"""From anything that holds numbers to a named node and its labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lazyarr.errors import ArgumentError, DimError
from lazyarr.graph.dtypes import as_dtype
from lazyarr.graph.node import Variable, data
from lazyarr.graph.registry import op
from lazyarr.namespace.array import Array, unwrap
from lazyarr.xtensor.coords import EMPTY, Coord, Coords, Index, shared
from lazyarr.xtensor.types import XTensorType, as_dims


@dataclass
class Labels:
    """What an array says of itself beside its values."""

    coords: Coords = field(default_factory=lambda: EMPTY)
    name: object = None
    attrs: dict | None = None


def is_labelled(value: object) -> bool:
    """Tell whether a value is an array with dims (an XTensor, xr.DataArray or xr.Variable)."""
    cls = type(value)
    return hasattr(cls, "dims") and hasattr(cls, "values") and hasattr(cls, "shape")


def named_node(value: object, dims: object) -> tuple[Variable, Labels]:
    """Return the node of a value, and the labels that it brings.

    `dims` renames an array that has dims, and is needed for one that has none.
    """
    inner = getattr(value, "_v", None)
    if inner.__class__ is Variable and inner.type.named:
        labels = Labels(value._coords, value._name, value._attrs)  # type: ignore[attr-defined]
        return _renamed(inner, labels, dims)
    if is_labelled(value):
        return _renamed(*_from_labelled(value), dims)
    node = value if value.__class__ is Variable else _plain_node(value)
    if node.type.named:
        return _renamed(node, Labels(), dims)
    as_dtype(node.type.dtype)
    if dims is None:
        if node.type.ndim:
            shown = ", ".join(["..."] * node.type.ndim)
            raise DimError(
                f"an array of shape {node.type.shape} needs names for its axes: dims=({shown},)."
            )
        dims = ()
    dims = as_dims(dims)
    if isinstance(value, Array | Variable) or len(dims) != node.type.ndim:
        return op.with_dims(node, dims), Labels()
    return data(node.value, XTensorType(node.type.dtype, dims, node.type.shape)), Labels()


def _plain_node(value: object) -> Variable:
    if isinstance(value, Array):
        return value._v
    node = unwrap(value)
    if isinstance(node, list):
        raise ArgumentError("a list of lazy arrays needs xp.stack before it can have dims.")
    return node if node.__class__ is Variable else data(np.asarray(node))


def _renamed(node: Variable, labels: Labels, dims: object) -> tuple[Variable, Labels]:
    """Give other names to the dims of an array that has some."""
    if dims is None or as_dims(dims) == node.type.dims:
        return node, labels
    new = as_dims(dims)
    out = op.with_dims(node, new)
    names = dict(zip(node.type.dims, new, strict=True))
    return out, Labels(labels.coords.rename(names), labels.name, labels.attrs)


def _from_labelled(array: object) -> tuple[Variable, Labels]:
    """Take values, dims, coords, name and attrs of an xr.DataArray or xr.Variable."""
    dims = as_dims(array.dims)  # type: ignore[attr-defined]
    held = getattr(array, "data", None)
    if isinstance(held, Array):
        node = op.with_dims(held._v, dims)
    else:
        values = np.array(array.values)  # type: ignore[attr-defined]
        node = data(values, XTensorType(as_dtype(values.dtype), dims, values.shape))
    coords = {str(k): _coord(str(k), c) for k, c in getattr(array, "coords", {}).items()}
    return node, Labels(
        shared(Coords(coords)), getattr(array, "name", None), dict(array.attrs) or None
    )


def _coord(name: str, given: object) -> Coord:
    held = given.variable  # type: ignore[attr-defined]
    values = held._data if isinstance(held._data, Array) else np.asarray(held.values)
    if values.dtype == object and values.size and isinstance(values.flat[0], tuple):
        index = given.to_index()  # type: ignore[attr-defined]
        levels = tuple((str(n), Index(v)) for n, v in zip(index.names, index.levels, strict=True))
        return Coord(as_dims(held.dims), None, Index(values, levels), dict(held.attrs))
    bare = name not in getattr(given, "xindexes", {name})
    if bare and as_dims(held.dims) == (name,):
        return Coord((name,), values.copy(), None, dict(held.attrs))
    return Coord.of(name, as_dims(held.dims), values, dict(held.attrs))


def to_xarray_coords(coords: Coords):
    """Return coordinates as xarray's: plain ones, and indexes of several levels."""
    levelled = {k: c.index for k, c in coords.items() if c.index is not None and c.index.levels}
    owned = {name for i in levelled.values() for name, _ in i.levels}
    plain = {
        k: (c.dims, np.asarray(c.values), c.attrs)
        for k, c in coords.items()
        if k not in levelled and not (k in owned and len(c.dims) == 1 and c.dims[0] in levelled)
    }
    if not levelled:
        return plain
    import pandas as pd
    import xarray as xr

    out = xr.Coordinates(plain)
    for dim, index in levelled.items():
        columns = list(zip(*index.labels.tolist(), strict=True)) or [[] for _ in index.levels]
        codes = [level.positions(np.asarray(c)) for (_, level), c in zip(
            index.levels, columns, strict=True)]  # fmt: skip
        many = pd.MultiIndex(
            [level.labels for _, level in index.levels], codes, names=[n for n, _ in index.levels]
        )
        out = out.assign(xr.Coordinates.from_pandas_multiindex(many, dim))
    return out


def either(mapping: object, keywords: Mapping, what: str) -> dict:
    """Return names given as a mapping or as keywords, not both."""
    if mapping is None:
        return dict(keywords)
    if not isinstance(mapping, Mapping):
        raise ArgumentError(f"{what} takes a mapping by name or keywords, got {mapping!r}.")
    if keywords:
        raise ArgumentError(f"{what} takes a mapping or keywords, not both.")
    return dict(mapping)


def merged_attrs(many: Sequence[Mapping | None]) -> dict | None:
    """Return the attributes of several operands, without those that conflict."""
    found: dict = {}
    conflicts = set()
    for attrs in many:
        for key, value in (attrs or {}).items():
            if key not in found:
                found[key] = value
            elif not _same(found[key], value):
                conflicts.add(key)
    return {k: v for k, v in found.items() if k not in conflicts} or None


def _same(a: object, b: object) -> bool:
    return a is b or bool(np.all(np.asarray(a == b)))


def cast(v: Variable, dtype: np.dtype) -> Variable:
    """Return a node in a dtype."""
    return v if v.type.dtype == dtype else op.astype(v, dtype)
