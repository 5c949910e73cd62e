"""Handle: what an XTensor holds, what it tells without computing, and how it computes.

A node of named type stands in the graph; coordinates, name and attrs are beside it.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from lazyarr.config import options
from lazyarr.config import set_options as option_block
from lazyarr.errors import ArgumentError, ConcretizationError, near_match
from lazyarr.graph.node import Variable, data
from lazyarr.graph.traverse import leaves, substitute
from lazyarr.namespace import xtensor_text
from lazyarr.namespace.array import Array, concrete
from lazyarr.namespace.xtensor_data import named_node, to_xarray_coords
from lazyarr.xtensor.coords import EMPTY, Coords, Index, make_coords
from lazyarr.xtensor.naming import unnamed


class Handle:
    """A named node with its coordinates, name and attributes; `XTensor` adds the operations."""

    __slots__ = ("_v", "_coords", "_name", "_attrs", "__weakref__")
    __array_priority__ = 2000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: object, dims=None, coords=None, name=None, attrs=None):
        self._v, own = named_node(data, dims)
        given = make_coords(coords, self.dims, self.sizes) if coords else EMPTY
        self._coords = own.coords
        if given:
            self._coords = own.coords.assign(given) if own.coords else given
        self._name = own.name if name is None else name
        self._attrs = dict(attrs) if attrs is not None else own.attrs

    @classmethod
    def _of(cls, variable: Variable, coords: Coords | None, name=None, attrs=None) -> "Handle":
        """Return the handle of a named node."""
        self = object.__new__(cls)
        self._v, self._name, self._attrs = variable, name, attrs
        self._coords = EMPTY if coords is None else coords
        return self

    def _like(self, variable: Variable, coords: Coords | None = None) -> "Handle":
        """Return a result of this array alone: its name, attrs, and the coordinates that remain."""
        if coords is None:
            coords = self._coords.within(variable.type.dims)
        return self._of(variable, coords, self._name, self._attrs)

    def _with_value(self, value: np.ndarray) -> "Handle":
        """Return the same labels around a computed array."""
        return self._like(data(value, self._v.type.with_shape(value.shape)), self._coords)

    # -- attributes -------------------------------------------------------------------------------

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return self._v.type.dims

    @property
    def sizes(self) -> dict:
        """The size of each dimension; unknown ones are symbols that count as integer operands."""
        return self._v.type.sizes

    @property
    def shape(self) -> tuple:
        """The sizes in order: ints, and None where a symbol leaves one unknown (see `sizes`)."""
        return tuple(s if s.__class__ is int else None for s in self._v.type.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._v.type.ndim

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self._v.type.dtype

    @property
    def size(self) -> int | None:
        """The number of elements, None when a size is unknown."""
        return None if None in self.shape else int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int | None:
        """The bytes of the elements, None when a size is unknown."""
        return None if self.size is None else self.size * self.dtype.itemsize

    @property
    def coords(self) -> Coords:
        """The coordinates by name."""
        return self._coords

    @property
    def indexes(self) -> dict[str, Index]:
        """The labels of each dimension that has some."""
        return {k: c.index for k, c in self._coords.items() if c.index is not None}

    @property
    def name(self) -> str | None:
        """The name of the array."""
        return self._name

    @property
    def attrs(self) -> dict:
        """What the array is annotated with (a copy)."""
        return dict(self._attrs or {})

    @property
    def data(self) -> Array:
        """The positional lazy array, its axes in the order of `dims`."""
        return Array(unnamed(self._v))

    tensor = data

    @property
    def values(self) -> np.ndarray:
        """The computed elements."""
        return np.array(concrete(self._v, "values"))

    def get_axis_num(self, dim: str) -> int:
        """Return the position of a dimension."""
        return self._v.type.axis(dim)

    def get_index(self, key: str) -> Index:
        """Return the labels of a dimension, its positions where it has none."""
        size = self.shape[self.get_axis_num(key)]
        found = self._coords.index(key)
        if found is None and size is None:
            raise ConcretizationError(f"the size of {key!r} is not known while recording.")
        return Index(np.arange(size)) if found is None else found

    @property
    def xindexes(self) -> dict[str, Index]:
        """The labels of each dimension that has some."""
        return self.indexes

    # -- computing --------------------------------------------------------------------------------

    def to_xarray(self):
        """Compute, and return an xr.DataArray with the same dims, coords, name and attrs."""
        import xarray as xr

        coords = to_xarray_coords(self._coords)
        out = xr.DataArray(self.values, coords, self.dims, self._name, self.attrs)
        bare = [k for k, c in self._coords.items() if c.dims == (k,) and c.index is None]
        return out.drop_indexes(bare) if bare else out

    def compute(self, backend: str | None = None, inputs: Mapping | None = None):
        """Compute, and return an xr.DataArray, or an XTensor where xarray is not installed.

        backend: where to compute, the one in the options unless given. inputs: values for symbols,
        by symbol or by the name of one.
        """
        out = self if inputs is None else self._with_inputs(inputs)
        with option_block(backend=backend or options.backend):
            out = self._with_value(out.values)
        try:
            return out.to_xarray()
        except ImportError:
            return out

    def _with_inputs(self, inputs: Mapping) -> "Handle":
        """Return the array with values in place of symbols."""
        symbols = {v.name: v for v in leaves([self._v]) if v.is_symbol}
        values = {}
        for key, value in inputs.items():
            node = symbols.get(key) if isinstance(key, str) else key._v
            if node is None:
                hint = near_match(key, [n for n in symbols if n])
                raise ArgumentError(f"compute: no symbol is called {key!r}.{hint}")
            array = node.type.filter(value)
            values[node] = data(array, node.type.with_shape(array.shape))
        return self._like(*substitute([self._v], values), self._coords)

    def to_numpy(self) -> np.ndarray:
        """Return the computed elements."""
        return self.values

    def as_numpy(self):
        """Return the same labels around the computed elements."""
        return self._with_value(self.values)

    def _item(self, what: str) -> np.ndarray:
        if self.size != 1:
            raise ArgumentError(f"{what} needs one element, the array has sizes {self.sizes}.")
        return concrete(self._v, what).reshape(())

    def item(self):
        """Return the only element as a Python number."""
        return self._item("item()").item()

    def __bool__(self) -> bool:
        return bool(self._item("bool()"))

    def __int__(self) -> int:
        return int(self._item("int()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise ArgumentError(f"only integer arrays can be an index, this is {self.dtype}.")
        return int(self._item("operator.index()"))

    def __float__(self) -> float:
        return float(self._item("float()"))

    def __complex__(self) -> complex:
        return complex(self._item("complex()"))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(concrete(self._v, "conversion to NumPy"), dtype=dtype)

    def __len__(self) -> int:
        if not self.ndim:
            raise ArgumentError("len() of an array without dims.")
        if self.shape[0] is None:
            raise ConcretizationError(f"the size of {self.dims[0]!r} is not known while recording.")
        return self.shape[0]

    def __iter__(self) -> Iterator["Handle"]:
        return (self[i] for i in range(len(self)))

    def __copy__(self) -> "Handle":
        return self.copy()

    def __deepcopy__(self, memo: dict) -> "Handle":
        return self.copy()

    def __reduce__(self):
        out = self
        if not any(v.is_symbol for v in leaves([self._v])):
            out = self._with_value(self.values)
        return type(self)._of, (out._v, out._coords, out._name, out._attrs)

    def __repr__(self) -> str:
        return xtensor_text.text(self)

    def _repr_html_(self) -> str:
        return xtensor_text.html(self)

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.dims, *self._coords]

    def __dir__(self) -> list[str]:
        return [n for n in object.__dir__(self) if not n.startswith("_abc")]
