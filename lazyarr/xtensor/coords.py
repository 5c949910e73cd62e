"""Coordinates: immutable labels, known while recording, held by handles and never by the graph.

An `Index` is the interned labels of one dimension; equal labels are the same object, so that
comparing two is mostly an identity test. A `Coord` is what `coords` maps a name to: an index, or
other values along some dims. All label work ends in positions, which become positional ops.

>>> Index(["a", "b"]) is Index(["a", "b"])
True
>>> Index([10, 20, 30]).find(20)
1
"""

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from lazyarr.errors import CoordError, DimError, LabelError, near_match
from lazyarr.graph.shapes import Size

_lock = threading.Lock()
_table: "weakref.WeakValueDictionary[tuple, Index]" = weakref.WeakValueDictionary()


def _frozen(values: object) -> np.ndarray:
    array = np.array(values)
    array.flags.writeable = False
    return array


def content(array: np.ndarray) -> tuple:
    """Return a hashable description of an array's elements."""
    if array.dtype.kind == "O":
        return array.shape, tuple((type(v), v) for v in array.ravel().tolist())
    return array.shape, array.dtype.str, array.tobytes()


class Index:
    """The labels of a dimension; with `levels` each label is a tuple of one label of each."""

    __slots__ = ("labels", "levels", "key", "_places", "__weakref__")

    def __new__(cls, labels: object, levels: tuple = ()):
        """Return the interned index of one-dimensional labels."""
        array = np.asarray(getattr(labels, "values", labels))
        if array.ndim != 1:
            raise CoordError(f"labels of a dimension have one axis, got shape {array.shape}.")
        key = (*content(array), levels)
        found = _table.get(key)
        if found is None:
            with _lock:
                found = _table.get(key)
                if found is None:
                    found = object.__new__(cls)
                    found.labels, found.key, found._places = _frozen(array), key, None
                    found.levels = levels
                    _table[key] = found
        return found

    def __reduce__(self):
        return Index, (self.labels, self.levels)

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator:
        return iter(self.labels)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.labels, dtype=dtype)

    def __repr__(self) -> str:
        return f"Index({shown(self.labels)})"

    def equals(self, other: "Index") -> bool:
        """Tell whether the labels are equal in order (an int equals a float of its value)."""
        return self is other or same_values(self.labels, other.labels)

    def places(self) -> dict:
        """Return the positions of each label."""
        if self._places is None:
            places: dict = {}
            for i, label in enumerate(elements(self.labels)):
                places.setdefault(label, []).append(i)
            self._places = places
        return self._places

    def find(self, label: object, method: str | None = None, tolerance: object = None):
        """Return the position of a label, or all positions of one that occurs more than once.

        Raises LabelError with the nearest label when there is none.
        """
        if self.labels.dtype.kind in "mM" or method is not None:
            return self._by_pandas(label, method, tolerance)
        plain = label.item() if isinstance(label, np.generic | np.ndarray) else label
        found = self.places().get(plain)
        if found is None:
            raise self._missing(label)
        return found[0] if len(found) == 1 else np.array(found)

    def find_all(self, labels: object, method: str | None = None, tolerance: object = None):
        """Return the positions of many labels as an array of their shape."""
        wanted = np.asarray(labels)
        if wanted.dtype.kind == "b":
            raise LabelError("a boolean mask selects positions; use isel.")
        flat = [self.find(v, method, tolerance) for v in elements(wanted)]
        if any(not isinstance(i, int) for i in flat):
            raise LabelError("a label that occurs more than once cannot be in a list of labels.")
        return np.array(flat, np.int64).reshape(wanted.shape)

    def positions(self, wanted: np.ndarray, missing: bool = False) -> np.ndarray:
        """Return every position of some labels; with `missing` unknown ones are passed over."""
        found: list = []
        for label in elements(wanted):
            try:
                found.append(np.atleast_1d(np.arange(len(self))[self.find(label)]))
            except LabelError:
                if not missing:
                    raise
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def find_slice(self, labels: slice) -> slice:
        """Return the positions between two labels, both included.

        In an ordered index the labels need not occur.
        """
        kind = self.labels.dtype.kind
        if kind in "mMO" and not (kind == "O" and _ordered(self.labels)):
            return self._slice_by_pandas(labels)
        step = _direction(self.labels)
        bounds = [b.item() if isinstance(b, np.generic) else b for b in (labels.start, labels.stop)]
        start = self._bound(bounds[0], step, last=False)
        stop = self._bound(bounds[1], step, last=True)
        if start is not None and stop is not None and start > stop:
            raise LabelError(
                f"a slice from {bounds[0]!r} to {bounds[1]!r} runs against the order of the labels "
                f"({shown(self.labels)}); exchange its bounds."
            )
        return slice(start, stop, labels.step)

    def _bound(self, label: object, step: int, last: bool) -> int | None:
        if label is None:
            return None
        found = self.places().get(label)
        if found is not None:
            return found[-1] + 1 if last else found[0]
        if not step:
            raise self._missing(label)
        if isinstance(label, str) != (self.labels.dtype.kind in "UO"):
            raise self._missing(label)
        if step > 0:
            return int(np.searchsorted(self.labels, label))
        return len(self) - int(np.searchsorted(self.labels[::-1], label))

    def _missing(self, label: object) -> LabelError:
        hint = near_match(label, self.labels.tolist()) if isinstance(label, str) else ""
        return LabelError(f"there is no label {label!r} among {shown(self.labels)}.{hint}")

    def _by_pandas(self, label: object, method: str | None, tolerance: object):
        import pandas as pd

        index = pd.Index(self.labels)
        try:
            if method is None:
                found = index.get_loc(label)
            else:
                (found,) = index.get_indexer([label], method=method, tolerance=tolerance)
        except KeyError:
            raise self._missing(label) from None
        if isinstance(found, slice):
            return found
        if isinstance(found, np.ndarray):
            return np.flatnonzero(found)
        if found < 0:
            raise self._missing(label)
        return int(found)

    def _slice_by_pandas(self, labels: slice) -> slice:
        import pandas as pd

        try:
            return pd.Index(self.labels).slice_indexer(labels.start, labels.stop, labels.step)
        except KeyError as error:
            raise self._missing(error.args[0]) from None


def elements(wanted: np.ndarray) -> list:
    """Return values as a list of Python objects, dates as NumPy's."""
    return list(wanted.ravel()) if wanted.dtype.kind in "mM" else wanted.ravel().tolist()


def _ordered(labels: np.ndarray) -> bool:
    return all(isinstance(v, str) for v in labels.tolist())


def _direction(labels: np.ndarray) -> int:
    """1 for rising labels, -1 for falling ones, 0 for no order."""
    if bool(np.all(labels[:-1] <= labels[1:])):
        return 1
    return -1 if bool(np.all(labels[:-1] >= labels[1:])) else 0


def shown(labels: np.ndarray, most: int = 6) -> str:
    """Return the first labels as text."""
    labels = labels.ravel()
    texts = [str(v) if labels.dtype.kind in "mM" else repr(v) for v in elements(labels[:most])]
    return ", ".join(texts) + (f", ... ({len(labels)} labels)" if len(labels) > most else "")


def same_values(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether two arrays hold equal values, NaN equal to NaN."""
    if a is b:
        return True
    if a.shape != b.shape:
        return False
    same = np.asarray(a == b)
    if same.shape != a.shape:
        return False
    if a.dtype.kind in "fcmM" and b.dtype.kind == a.dtype.kind:
        same = same | ((a != a) & (b != b))
    return bool(same.all())


class Coord:
    """Values along dims; an index when it names the dim that it lies on."""

    __slots__ = ("dims", "values", "index", "attrs", "name")

    def __init__(
        self,
        dims: tuple,
        values: object = None,
        index: Index | None = None,
        attrs: dict | None = None,
        name: str | None = None,
    ):
        self.dims, self.index, self.attrs, self.name = dims, index, dict(attrs or {}), name
        self.values = index.labels if index is not None else values

    @classmethod
    def of(cls, name: str, dims: tuple, values: object, attrs: dict | None = None) -> "Coord":
        """Return the coordinate of a name: an index when its only dim is the name."""
        if dims == (name,):
            return cls(dims, None, values if isinstance(values, Index) else Index(values), attrs)
        values = values.labels if isinstance(values, Index) else values
        return cls(dims, values if hasattr(values, "_v") else _frozen(values), None, attrs)

    def __reduce__(self):
        return Coord, (self.dims, self.values, self.index, self.attrs, self.name)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple:
        """The sizes of the values."""
        return tuple(np.shape(self.values))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.values.dtype

    def __repr__(self) -> str:
        held = isinstance(self.values, np.ndarray) and self.dims
        text = shown(self.values) if held else self.values
        return f"<Coord ({', '.join(self.dims)}) {self.values.dtype} {text}>"

    @property
    def key(self) -> object:
        """What equal coordinates share."""
        if self.index is not None:
            return self.dims, self.index.key
        held = self.values
        return self.dims, content(held) if isinstance(held, np.ndarray) else id(held)

    @property
    def dt(self) -> "Dates":
        """Parts of dates: `coord.dt.month`."""
        return Dates(self)

    def equals(self, other: "Coord") -> bool:
        """Tell whether dims and values are equal; lazy values are compared by identity."""
        if self is other or self.dims != other.dims:
            return self is other
        if self.index is not None and other.index is not None:
            return self.index.equals(other.index)
        a, b = self.values, other.values
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return same_values(a, b)
        return a is b


class Dates:
    """Parts of the dates of a coordinate, each a coordinate of numbers (or of text)."""

    __slots__ = ("coord",)

    def __init__(self, coord: Coord):
        if coord.values.dtype.kind not in "mM":
            raise CoordError(f"dt needs dates, the coordinate holds {coord.values.dtype}.")
        self.coord = coord

    def __getattr__(self, name: str) -> Coord:
        return date_part(self.coord, name)

    def strftime(self, form: str) -> Coord:
        """Return the dates as text."""
        import pandas as pd

        texts = pd.DatetimeIndex(self.coord.values.ravel()).strftime(form).to_numpy(object)
        return Coord(self.coord.dims, texts.reshape(self.coord.shape), None, None, "strftime")


def date_part(coord: Coord, name: str) -> Coord:
    """Return a part of dates by pandas' name (year, month, dayofyear, season, ...)."""
    import pandas as pd

    dates = pd.DatetimeIndex(coord.values.ravel())
    if name == "season":
        found = np.array(["DJF", "MAM", "JJA", "SON"])[dates.month.to_numpy() % 12 // 3]
    else:
        found = getattr(dates, name, None)
        if found is None or callable(found):
            known = [n for n in dir(dates) if not n.startswith("_")]
            raise LabelError(f"dates have no part {name!r}.{near_match(name, known)}")
    values = np.asarray(found)
    values = values.astype(np.int64) if values.dtype.kind in "iu" else values
    return Coord(coord.dims, values.reshape(coord.shape), None, None, name)


class Coords(Mapping):
    """An immutable mapping from names to coordinates."""

    __slots__ = ("_items", "_hash", "_known", "__weakref__")

    def __init__(self, items: Mapping[str, Coord] | None = None):
        self._items = dict(items or {})
        self._hash: int | None = None
        self._known: dict[tuple, Coords] = {}  # what was asked of it before

    def __getitem__(self, name: str) -> Coord:
        try:
            return self._items[name]
        except KeyError:
            raise LabelError(
                f"there is no coordinate {name!r}.{near_match(name, self._items)}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset((k, c.key) for k, c in self._items.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Coords) or set(self) != set(other):
            return False
        return all(c.equals(other[k]) for k, c in self._items.items())

    def __reduce__(self):
        return Coords, (self._items,)

    def __repr__(self) -> str:
        return f"Coords({', '.join(f'{k} {c.dims}' for k, c in self._items.items())})"

    def index(self, dim: str) -> Index | None:
        """Return the index of a dimension, None where it has no labels."""
        found = self._items.get(dim)
        return found.index if found is not None else None

    def where(self, keep: Callable[[str, Coord], bool]) -> "Coords":
        """Return the coordinates for which a test of name and coordinate holds."""
        kept = {k: c for k, c in self._items.items() if keep(k, c)}
        return self if len(kept) == len(self._items) else Coords(kept)

    def within(self, dims: Iterable[str]) -> "Coords":
        """Return the coordinates that lie on some of the given dims."""
        if not self._items:
            return self
        asked = tuple(dims)
        found = self._known.get(asked)
        if found is None:
            known = set(asked)
            found = self.where(lambda name, c: known.issuperset(c.dims))
            self._remember(asked, found)
        return self if found is EMPTY_CHANGE else found

    def _remember(self, key: tuple, found: "Coords") -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = EMPTY_CHANGE if found is self else found  # a cycle would live on

    def without_dim(self, *dims: str) -> "Coords":
        """Return the coordinates that do not lie on dims."""
        return self.where(lambda name, c: not set(dims) & set(c.dims)) if dims else self

    def drop(self, names: Iterable[str]) -> "Coords":
        """Return the others, or raise LabelError for an unknown name."""
        gone = {name for name in names if self[name] is not None}
        return self.where(lambda name, c: name not in gone)

    def assign(self, new: Mapping[str, Coord]) -> "Coords":
        """Return the coordinates with some added or replaced."""
        return Coords({**self._items, **new}) if new else self

    def rename(self, names: Mapping[str, str]) -> "Coords":
        """Return the coordinates under other names of dims and of themselves."""
        out: dict[str, Coord] = {}
        for name, c in self._items.items():
            dims = tuple(names.get(d, d) for d in c.dims)
            out[names.get(name, name)] = Coord.of(
                names.get(name, name), dims, c.index or c.values, c.attrs
            )
        return Coords(out)

    def isel(self, keys: Mapping[str, object]) -> "Coords":
        """Return the coordinates at positions; a key that is None has no known positions.

        A key is an int, a slice, or `(dims, positions)`.
        """
        if not self._items:
            return self
        asked = _static_key(keys)
        found = None if asked is None else self._known.get(asked)
        if found is None:
            found = self._selected(keys)
            if asked is not None:
                self._remember(asked, found)
        return self if found is EMPTY_CHANGE else found

    def _selected(self, keys: Mapping[str, object]) -> "Coords":
        out: dict[str, Coord] = {}
        for name, c in self._items.items():
            used = {d: keys[d] for d in c.dims if d in keys}
            if not used:
                out[name] = c
            elif all(k is not None for k in used.values()) and isinstance(c.values, np.ndarray):
                dims, values = take_values(c.dims, c.values, used)
                if c.index is None or dims != (name,):
                    out[name] = Coord(dims, _frozen(values), None, c.attrs)
                else:
                    out[name] = Coord(dims, None, Index(values, c.index.levels), c.attrs)
        return Coords(out)


_MOST_KNOWN = 64
_MOST_POSITIONS = 256


def _static_key(keys: Mapping[str, object]) -> tuple | None:
    """Return keys by dim as something that can be hashed, None for one that is long or unknown."""
    found: list = [None]  # no dim, so that it is no tuple of dims
    for dim, key in keys.items():
        if key.__class__ is int:
            found.append((dim, key))
        elif key.__class__ is slice:
            found.append((dim, key.start, key.stop, key.step))  # type: ignore[attr-defined]
        elif key.__class__ is tuple and key[1].size <= _MOST_POSITIONS:  # type: ignore[index]
            found.append((dim, key[0], key[1].shape, key[1].tobytes()))  # type: ignore[index]
        else:
            return None
    return tuple(found)


EMPTY = Coords()
EMPTY_CHANGE = Coords()  # stands for "the same coordinates" in what is remembered
_known: "weakref.WeakValueDictionary[tuple, Coords]" = weakref.WeakValueDictionary()


def shared(coords: Coords) -> Coords:
    """Return the one object for equal coordinates, which most arrays of a program share."""
    try:
        key = tuple((k, c.key, tuple(c.attrs.items())) for k, c in coords._items.items())
        return _known.setdefault(key, coords)
    except TypeError:  # attributes that cannot be hashed
        return coords


def take_values(dims: tuple, values: np.ndarray, keys: Mapping[str, object]) -> tuple:
    """Return (dims, values) of labelled values at positions, pointwise where keys share dims."""
    parts = []
    for dim, size in zip(dims, values.shape, strict=True):
        key = keys.get(dim, slice(None))
        if isinstance(key, slice):
            parts.append(((dim,), np.arange(size)[key]))
        elif isinstance(key, tuple):
            parts.append(key)
        else:
            parts.append(((), np.asarray(key)))
    out = tuple(dict.fromkeys(d for part, _ in parts for d in part))
    mesh = []
    for part, where in parts:
        order = sorted(range(len(part)), key=lambda i: out.index(part[i]))
        shape = tuple(where.shape[part.index(d)] if d in part else 1 for d in out)
        mesh.append(np.transpose(where, order).reshape(shape))
    return out, values[tuple(mesh)]


def make_coords(given: Mapping, dims: tuple, sizes: Mapping[str, object]) -> Coords:
    """Return coordinates given by a user for an array of dims and sizes.

    A value is labels along the dim of its name, `(dims, values)`, a scalar, or an array with dims.
    """
    made = {str(name): _make_coord(str(name), v, dims, sizes) for name, v in given.items()}
    return shared(Coords(made))


def _make_coord(name: str, given: object, dims: tuple, sizes: Mapping[str, object]) -> Coord:
    attrs: dict = {}
    if isinstance(given, Coord):
        own, values, attrs = given.dims, given.index or given.values, given.attrs
    elif isinstance(given, tuple) and len(given) in (2, 3):
        own = (given[0],) if isinstance(given[0], str) else tuple(given[0])
        values, attrs = given[1], dict(given[2]) if len(given) == 3 else {}
    elif hasattr(given, "dims") and not isinstance(given, np.ndarray | Index):
        own, attrs = tuple(given.dims), dict(getattr(given, "attrs", {}))
        values = given if hasattr(given, "_v") else given.values  # type: ignore[attr-defined]
    else:
        values = given if isinstance(given, Index) else np.asarray(given)
        own = (name,) if isinstance(given, Index) or values.ndim else ()
    shape = (len(values),) if isinstance(values, Index) else np.shape(values)
    for dim, size in zip(own, shape, strict=True):
        if dim not in dims:
            raise DimError(
                f"coordinate {name!r} lies on dim {dim!r}, which is not one of {dims}."
                f"{near_match(dim, dims)}"
            )
        if size is not None and not isinstance(sizes[dim], Size) and sizes[dim] != size:
            raise CoordError(
                f"coordinate {name!r} has {size} labels, dimension {dim!r} has size {sizes[dim]}."
            )
    return Coord.of(name, own, values, attrs)
