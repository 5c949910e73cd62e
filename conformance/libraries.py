"""A library under test: its namespace, how NumPy arrays get in and out, and its options.

A name is a module (`numpy`, `array_api_strict`), a short name of one (`jax`, `torch`, `dask`), or
lazyarr with a backend and a tier (`lazyarr`, `lazyarr:c`, `lazyarr:jax:auto`).
"""

import importlib
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import numpy as np

from conformance.spec import DTYPES

ALIASES = {
    "jax": "jax.numpy",
    "torch": "array_api_compat.torch",
    "dask": "array_api_compat.dask.array",
    "strict": "array_api_strict",
}


class Missing(Exception):
    """A name of the standard that a library does not have."""


class Library:
    """One namespace, as the checks see it."""

    def __init__(self, name: str, namespace: object = None):
        module, *options = name.split(":")
        self.name = name
        self.module = ALIASES.get(module, module)
        self.options = dict(zip(("backend", "tier"), options, strict=False))
        if self.options and self.module != "lazyarr":
            raise ValueError(f"{name}: only lazyarr takes a backend, as in lazyarr:c")
        if self.options.get("backend", "interpret") != "interpret":
            self.options.setdefault("tier", "compile")
        if self.module.startswith("jax"):
            importlib.import_module("jax").config.update("jax_enable_x64", True)
        self.xp = importlib.import_module(self.module) if namespace is None else namespace

    @property
    def version(self) -> str:
        """The version that the library states."""
        parts = self.module.split(".")
        top = importlib.import_module(parts[parts[0] == "array_api_compat"])
        return str(getattr(top, "__version__", "unknown"))

    def active(self) -> AbstractContextManager:
        """Return the context in which the library runs as its name says."""
        return self.xp.set_options(**self.options) if self.options else nullcontext()

    # -- lazy namespaces --------------------------------------------------------------------------

    @property
    def lazy(self) -> bool:
        """Whether the library can be forbidden to compute."""
        return hasattr(self.xp, "no_implicit_eval")

    def recording(self) -> AbstractContextManager:
        """Return a context in which computing is an error, where the library has one."""
        return self.xp.no_implicit_eval() if self.lazy else nullcontext()

    @property
    def strict(self) -> bool:
        """Whether the first form of a special case is demanded where the standard allows two."""
        return self.module == "lazyarr"

    # -- names ------------------------------------------------------------------------------------

    def get(self, path: str) -> object:
        """Return what a dotted name means: `"sum"`, `"linalg.svd"`."""
        found = self.xp
        for part in path.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                raise Missing(f"{path} is missing") from None
        return found

    @cached_property
    def dtypes(self) -> dict[str, object]:
        """The dtypes of the standard that the library has, by name."""
        found = {}
        for name in DTYPES:
            d = getattr(self.xp, name, None)
            if name == "bool" and d in (None, bool):
                d = getattr(self.xp, "bool_", d)
            if d is not None:
                found[name] = d
        return found

    def dtype(self, name: str) -> object:
        """Return the library's object for a dtype."""
        if name not in self.dtypes:
            raise Missing(f"the dtype {name} is missing")
        return self.dtypes[name]

    def dtype_name(self, dtype: object) -> str:
        """Return the standard's name of one of the library's dtypes."""
        for name, d in self.dtypes.items():
            if dtype == d:
                return name
        return str(dtype)

    @cached_property
    def defaults(self) -> dict[str, str]:
        """The default dtypes, as the library states them."""
        kinds = {"real floating": "float64", "complex floating": "complex128",
                 "integral": "int64", "indexing": "int64"}  # fmt: skip
        info = getattr(self.xp, "__array_namespace_info__", None)
        if info is not None:
            stated = info().default_dtypes()
            kinds.update({k: self.dtype_name(v) for k, v in stated.items()})
        return kinds

    # -- arrays -----------------------------------------------------------------------------------

    def array(self, value: np.ndarray) -> object:
        """Return a NumPy array as the library's."""
        return self.xp.asarray(np.array(value), dtype=self.dtype(str(value.dtype)))

    def is_array(self, value: object) -> bool:
        """Tell whether a result is an array rather than a Python number."""
        return hasattr(value, "dtype") and hasattr(value, "shape")

    def numpy(self, value: object) -> np.ndarray:
        """Return an array of the library as NumPy's."""
        if isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
            return np.asarray(value)
        if hasattr(value, "resolve_conj"):  # torch keeps conjugates and signs pending
            return value.detach().resolve_conj().resolve_neg().numpy()
        out = np.asarray(value)
        return np.from_dlpack(value) if out.dtype == object else out


def load(name: str) -> Library:
    """Return a library by its name; ImportError or ValueError says why there is none."""
    return Library(name)
