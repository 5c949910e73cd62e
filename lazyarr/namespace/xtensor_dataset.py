"""XDataset: several XTensors by name that share coordinates, after `xr.Dataset`.

It is a thin mapping: a method applies to each variable that has the dims it names. For more, take
the variables.

>>> from lazyarr import XTensor
>>> d = XDataset({"a": XTensor([1.0, 2.0], dims="x"), "b": XTensor(3.0)})
>>> (d * 2).sum("x")["a"].item(), sorted(d.sizes.items())
(6.0, [('x', 2)])
"""

import operator
from collections.abc import Callable, Iterator, Mapping

from lazyarr.backends.implicit import compute_nodes
from lazyarr.config import options
from lazyarr.errors import DimError, LabelError, near_match
from lazyarr.namespace import xtensor_text
from lazyarr.namespace.tree import CONTAINERS
from lazyarr.namespace.xtensor import XTensor, as_xtensor
from lazyarr.namespace.xtensor_data import is_labelled
from lazyarr.namespace.xtensor_join import align
from lazyarr.xtensor.coords import Coords
from lazyarr.xtensor.joining import merge
from lazyarr.xtensor.kinds import joined_sizes


def is_foreign(value: object) -> bool:
    """Tell whether a value is an xr.DataArray."""
    return is_labelled(value) and hasattr(value, "coords") and not isinstance(value, XTensor)


def as_labelled(value: object) -> object:
    """Return a computed XTensor as an xr.DataArray."""
    return value.to_xarray() if isinstance(value, XTensor) else value


class XDataset(Mapping):
    """Lazy arrays by name with shared coordinates and attributes.

    data_vars: XTensors, xr.DataArrays, `(dims, values)`, or an xr.Dataset. Labels of one dim must
    be equal, or are joined as `arithmetic_join` says.
    """

    def __init__(self, data_vars: object, coords: Mapping | None = None, attrs=None):
        if hasattr(data_vars, "data_vars"):
            attrs = dict(data_vars.attrs) if attrs is None else attrs
            coords = dict(data_vars.coords) if coords is None else coords
            data_vars = dict(data_vars.data_vars)
        made = {str(k): _variable(v) for k, v in data_vars.items()}  # type: ignore[attr-defined]
        moved = align(list(made.values()), options.arithmetic_join) if made else []
        self._vars = {k: x.rename(k) for k, x in zip(made, moved, strict=True)}
        if coords:
            self._vars = {
                k: x.assign_coords({n: c for n, c in coords.items() if _fits(c, n, x)})
                for k, x in self._vars.items()
            }
        self.attrs = dict(attrs or {})

    @classmethod
    def _of(cls, variables: Mapping, attrs: Mapping | None = None) -> "XDataset":
        """Return a dataset of variables as they are."""
        self = object.__new__(cls)
        self._vars, self.attrs = dict(variables), dict(attrs or {})
        return self

    # -- mapping ----------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> XTensor:
        try:
            return self._vars[name]
        except KeyError:
            for x in self._vars.values():
                if name in x.coords:
                    return x[name]
            raise LabelError(
                f"there is no variable {name!r}.{near_match(name, self._vars)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._vars)

    def __len__(self) -> int:
        return len(self._vars)

    def __repr__(self) -> str:
        return xtensor_text.dataset_text(self)

    def _repr_html_(self) -> str:
        return xtensor_text.dataset_html(self)

    def _ipython_key_completions_(self) -> list[str]:
        return [*self._vars, *self.coords]

    @property
    def data_vars(self) -> dict[str, XTensor]:
        """The variables by name."""
        return dict(self._vars)

    @property
    def sizes(self) -> dict:
        """The size of each dimension of any variable."""
        return joined_sizes(tuple(x._v.type for x in self._vars.values()))

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of any variable."""
        return tuple(self.sizes)

    @property
    def coords(self) -> Coords:
        """The coordinates of all variables."""
        return merge([x._coords for x in self._vars.values()], "override")

    # -- from all variables -----------------------------------------------------------------------

    def map(self, func: Callable, args: tuple = (), **kwargs: object) -> "XDataset":
        """Return `func` of each variable."""
        return XDataset(
            {k: func(x, *args, **kwargs) for k, x in self._vars.items()}, attrs=self.attrs
        )

    def assign(self, variables: Mapping | None = None, **kw: object) -> "XDataset":
        """Return the dataset with variables added or replaced; a function gets the dataset."""
        new = {**(variables or {}), **kw}
        made = {k: v(self) if callable(v) else v for k, v in new.items()}
        return XDataset({**self._vars, **made}, attrs=self.attrs)

    def compute(self):
        """Compute all variables in one program, and return an xr.Dataset."""
        compute_nodes([x._v for x in self._vars.values()])
        return self.to_xarray()

    def to_xarray(self):
        """Compute, and return an xr.Dataset."""
        import xarray as xr

        return xr.Dataset({k: x.to_xarray() for k, x in self._vars.items()}, attrs=self.attrs)

    def _each(self, name: str, args: tuple, kwargs: dict) -> "XDataset":
        """Apply a method to each variable, with those of its dims that the variable has."""
        named = _named_dims(name, args, kwargs)
        for d in named:
            if d not in self.sizes:
                raise DimError(
                    f"{name}: there is no dimension {d!r} among {self.dims}."
                    f"{near_match(d, self.dims)}"
                )
        out = {}
        for k, x in self._vars.items():
            keep = [d for d in named if d in x.dims]
            if named and not keep:
                out[k] = x
            else:
                own, kw = _restricted(name, args, kwargs, x)
                out[k] = getattr(x, name)(*own, **kw)
        return XDataset._of(out, self.attrs)


def _variable(value: object) -> XTensor:
    if isinstance(value, tuple):
        return XTensor(value[1], dims=value[0])
    return as_xtensor(value)


def _fits(coord: object, name: object, x: XTensor) -> bool:
    dims = getattr(coord, "dims", None)
    if dims is None:
        dims = coord[0] if isinstance(coord, tuple) else (name,)
        dims = (dims,) if isinstance(dims, str) else dims
    return set(dims) <= set(x.dims)


class Notes:
    """Attributes as something that can be hashed: equal where they read alike."""

    __slots__ = ("attrs", "text")

    def __init__(self, attrs: Mapping):
        self.attrs = dict(attrs)
        self.text = repr(self.attrs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Notes) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Datasets:
    """How pytrees see datasets, xarray's and lazyarr's: variables are children.

    What is built of xr.DataArrays is an xr.Dataset, everything else is an XDataset.
    """

    @staticmethod
    def holds(value: object) -> bool:
        """Tell whether a value is a dataset."""
        return hasattr(type(value), "data_vars")

    @staticmethod
    def parts(value: object) -> tuple[tuple, list, Notes]:
        """Return names, variables and attributes."""
        variables = dict(value.data_vars)  # type: ignore[attr-defined]
        return tuple(variables), list(variables.values()), Notes(value.attrs)  # type: ignore

    @staticmethod
    def build(keys: tuple, children: list, static: Notes) -> object:
        """Return the dataset of variables."""
        variables = dict(zip(keys, children, strict=True))
        if not children or not all(is_foreign(c) for c in children):
            return XDataset._of(variables, static.attrs)
        import xarray as xr

        return xr.Dataset(variables, attrs=static.attrs)


CONTAINERS.append(Datasets)

_REDUCING = ("sum", "mean", "prod", "max", "min", "std", "var", "any", "all", "count", "median")
_SELECTING = ("isel", "sel", "head", "tail", "thin", "shift", "roll", "drop_isel", "drop_sel")
_UNIFORM = ("astype", "fillna", "isnull", "notnull", "where", "clip", "round")


def _named_dims(name: str, args: tuple, kwargs: dict) -> list[str]:
    """The dims that a call names."""
    if name in _SELECTING:
        return [*(args[0] if args else ()), *(k for k in kwargs if k not in _OPTIONS)]
    if name in _REDUCING:
        dim = args[0] if args else kwargs.get("dim")
        return [] if dim is None or dim is ... else [dim] if isinstance(dim, str) else list(dim)
    return []


_OPTIONS = ("drop", "method", "tolerance", "fill_value", "roll_coords", "missing_dims")


def _restricted(name: str, args: tuple, kwargs: dict, x: XTensor) -> tuple[tuple, dict]:
    """The arguments of a call without the dims that a variable lacks."""
    if name in _SELECTING:
        keys = {
            **(args[0] if args else {}),
            **{k: v for k, v in kwargs.items() if k not in _OPTIONS},
        }
        rest = {k: v for k, v in kwargs.items() if k in _OPTIONS}
        return ({d: v for d, v in keys.items() if d in x.dims},), rest
    if name in _REDUCING:
        dims = _named_dims(name, args, kwargs)
        rest = {k: v for k, v in kwargs.items() if k != "dim"}
        return ([d for d in dims if d in x.dims] if dims else None,), rest
    return args, kwargs


def _method(name: str) -> Callable:
    def call(self, *args, **kwargs):
        return self._each(name, args, kwargs)

    call.__name__, call.__doc__ = name, f"Return `{name}` of each variable that has the dims."
    return call


def _operator(f: Callable, swap: bool) -> Callable:
    def call(self, other):
        if isinstance(other, XDataset):
            shared = [k for k in self if k in other]
            pairs = {k: (self[k], other[k]) for k in shared}
        else:
            pairs = {k: (x, other) for k, x in self._vars.items()}
        return XDataset._of(
            {k: f(b, a) if swap else f(a, b) for k, (a, b) in pairs.items()}, self.attrs
        )

    return call


for _name in (*_REDUCING, *_SELECTING, *_UNIFORM):
    setattr(XDataset, _name, _method(_name))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(XDataset, f"__{_name}__", _operator(getattr(operator, _name), False))
    setattr(XDataset, f"__r{_name}__", _operator(getattr(operator, _name), True))
