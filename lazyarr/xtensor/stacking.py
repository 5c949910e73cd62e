"""Labels of several dims as one: what `stack` and `unstack` do to coordinates.

The index of a stacked dim holds tuples, and keeps the labels of each level in their order.
"""

import math
from collections.abc import Mapping

import numpy as np

from lazyarr.xtensor.coords import Coord, Coords, Index, elements
from lazyarr.xtensor.joining import blanked


def _tuples(columns: list[np.ndarray]) -> np.ndarray:
    out = np.empty(len(columns[0]), object)
    out[:] = list(zip(*map(elements, columns), strict=True))
    return out


def stack_coords(coords: Coords, sizes: Mapping[str, int], new: str, makes_index: bool) -> Coords:
    """Return coordinates whose dims in `sizes` have become one, laid out in C order."""
    out: dict[str, Coord] = {}
    shape = tuple(sizes.values())
    mesh = dict(zip(sizes, np.indices(shape).reshape(len(shape), -1), strict=True))
    for name, c in coords.items():
        used = [d for d in c.dims if d in sizes]
        if not used:
            out[name] = c
        elif isinstance(c.values, np.ndarray) and not (name in sizes and makes_index):
            first = np.moveaxis(c.values, [c.dims.index(d) for d in used], range(len(used)))
            flat = first[tuple(mesh[d] for d in used)]
            rest = tuple(d for d in c.dims if d not in sizes)
            out[name] = Coord((*rest, new), np.moveaxis(flat, 0, -1), None, c.attrs)
    if makes_index:
        levels, codes = {}, {}
        for d, n in sizes.items():
            index = coords.index(d) or Index(np.arange(n))
            levels[d], place = _distinct(index)
            codes[d] = place[mesh[d]]
        out.update(level_coords(new, levels, codes, coords))
    return Coords(out)


def _distinct(index: Index) -> tuple[Index, np.ndarray]:
    """Return the labels that differ, in order of appearance, and the place of each among them."""
    places = index.places()
    if len(places) == len(index):
        return index, np.arange(len(index))
    of_label = np.zeros(len(index), np.int64)
    for i, where in enumerate(places.values()):
        of_label[where] = i
    return Index(index.labels[[where[0] for where in places.values()]]), of_label


def levels_of(dim: str, columns: Mapping[str, Coord]) -> dict[str, Coord]:
    """Return the index of a dim whose levels are coordinates along it, and one for each level."""
    levels, codes = {}, {}
    for name, c in columns.items():
        known, place = np.unique(c.values, return_inverse=True)
        levels[name], codes[name] = Index(known), place
    return level_coords(dim, levels, codes, Coords(columns))


def level_coords(
    dim: str, levels: Mapping[str, Index], codes: Mapping[str, np.ndarray], source: Coords
) -> dict[str, Coord]:
    """Return the index of a stacked dim and a coordinate for each of its levels."""
    columns = {name: level.labels[codes[name]] for name, level in levels.items()}
    out = {dim: Coord((dim,), None, Index(_tuples(list(columns.values())), tuple(levels.items())))}
    for name, values in columns.items():
        attrs = source[name].attrs if name in source else {}
        out[name] = Coord((dim,), values, None, attrs)
    return out


def used_levels(index: Index) -> tuple[dict[str, Index], np.ndarray]:
    """Return the labels of each level that occur, and where each label of a stacked index stands
    among all their combinations.
    """
    levels: dict[str, Index] = {}
    places = np.zeros(len(index), np.int64)
    for k, (name, level) in enumerate(index.levels):
        known = level.places()
        codes = np.array([known[label[k]][0] for label in index.labels.tolist()], np.int64)
        used = np.unique(codes)
        if len(used) < len(level):  # as pandas: labels that are left keep their order of appearance
            used = np.array(list(dict.fromkeys(codes.tolist())), np.int64)
        rank = np.zeros(len(level), np.int64)
        rank[used] = np.arange(len(used))
        codes = rank[codes]
        levels[name] = Index(level.labels[used])
        places = places * len(used) + codes
    return levels, places


def unstack_coords(
    coords: Coords, dim: str, levels: Mapping[str, Index], places: np.ndarray
) -> Coords:
    """Return coordinates whose stacked dim has become its levels again."""
    out: dict[str, Coord] = {}
    shape = tuple(len(level) for level in levels.values())
    for name, c in coords.items():
        if dim not in c.dims:
            out[name] = c
        elif name != dim and name not in levels and isinstance(c.values, np.ndarray):
            source = np.full(math.prod(shape), -1, np.int64)
            source[places] = np.arange(len(places))
            flat = np.moveaxis(c.values, c.dims.index(dim), -1)[..., np.maximum(source, 0)]
            flat = blanked(flat, flat.ndim - 1, source)
            rest = tuple(d for d in c.dims if d != dim)
            values = flat.reshape(*flat.shape[:-1], *shape)
            out[name] = Coord((*rest, *levels), values, None, c.attrs)
    for name, level in levels.items():
        out[name] = Coord((name,), None, level, coords[name].attrs if name in coords else {})
    return Coords(out)
