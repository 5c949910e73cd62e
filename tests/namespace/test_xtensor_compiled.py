"""The calls of the oracle as programs: symbols for data, on backends and with unknown sizes.

All calls of a run are the outputs of few programs, so that compiling stays affordable.
LAZYARR_ORACLE_COMPILED sets the number of examples of each case, LAZYARR_ORACLE_BACKENDS the
backends (`c` unless set; `numba,jax,torch` for the others), LAZYARR_ORACLE_FAMILIES the cases (all
unless set), LAZYARR_ORACLE_GROUPS the number of programs, of which smaller ones compile faster.
"""

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.errors import ConcretizationError, DimError
from lazyarr.graph import shapes
from lazyarr.graph.node import symbol
from lazyarr.namespace.tree import flatten
from lazyarr.xtensor.types import XTensorType

xr = pytest.importorskip("xarray")

from tests.namespace import named_cases_handle, named_cases_labels, named_cases_series  # noqa: E402, F401
from tests.namespace.named_cases import CASES  # noqa: E402
from tests.namespace.test_xtensor_oracle import COMPUTING, RAISED  # noqa: E402

pytestmark = [pytest.mark.backends, pytest.mark.slow]

EXAMPLES = int(os.environ.get("LAZYARR_ORACLE_COMPILED", "20"))
OF_UNKNOWN_SIZES = min(EXAMPLES, 6)
BACKENDS = os.environ.get("LAZYARR_ORACLE_BACKENDS", "c").split(",")
GROUPS = int(os.environ.get("LAZYARR_ORACLE_GROUPS", "4"))
FAMILIES = os.environ.get("LAZYARR_ORACLE_FAMILIES", ",".join(CASES)).split(",")
HOLES: set[tuple[str, str]] = set()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = xr.get_options()["arithmetic_join"]
    xr.set_options(arithmetic_join="exact")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    xr.set_options(arithmetic_join=before)


class Calls:
    """Calls of cases on symbols, with what they must give."""

    def __init__(self) -> None:
        self.inputs: list[XTensor] = []
        self.values: list[np.ndarray] = []
        self.outputs: list[XTensor] = []
        self.wanted: list[Any] = []
        self.tags: list[tuple[str, int]] = []
        self.refused: set[str] = set()

    def add(self, name: str, seed: int, stand_in: Callable[[Any], XTensor]) -> None:
        arrays, f = CASES[name](np.random.default_rng(seed))
        try:
            want = f(*arrays)
        except RAISED:
            return
        symbols = [stand_in(a) for a in arrays]
        try:
            got = f(*symbols)
        except ConcretizationError:
            self.refused.add(name)
            return
        except DimError:  # what was stacked without known sizes has no labels to unstack by
            assert name == "unstack"
            self.refused.add(name)
            return
        if not any(isinstance(g, XTensor) for g in flatten(got)[0]):
            return
        self.inputs += symbols
        self.values += [a.values for a in arrays]
        for g, w in zip(flatten(got)[0], flatten(want)[0], strict=True):
            if isinstance(g, XTensor):
                self.outputs.append(g)
                self.wanted.append(w)
                self.tags.append((name, seed))

    def compare(self, backend: str) -> None:
        found = xp.function(self.inputs, self.outputs, backend=backend)(*self.values)
        for g, w, tag in zip(found, self.wanted, self.tags, strict=True):
            assert g.dims == w.dims and g.dtype == w.dtype, tag
            np.testing.assert_allclose(g.values, w.values, rtol=2e-5, atol=1e-5, err_msg=str(tag))


def of_known_size(array: Any) -> XTensor:
    """A symbol with the labels of an array."""
    x = XTensor(array)
    return XTensor._of(symbol(x._v.type, None), x._coords, x._name, x._attrs)


def unknown_sizes() -> Callable[[Any], XTensor]:
    """Make symbols whose dims without coordinates have unknown sizes, equal for equal names."""
    found: dict[str, shapes.Size] = {}

    def stand_in(array: Any) -> XTensor:
        x = XTensor(array)
        used = {d for c in x._coords.values() for d in c.dims}
        sizes = tuple(
            s if d in used or s == 1 else found.setdefault(d, shapes.unknown(d))
            for d, s in x.sizes.items()
        )
        kind = XTensorType(x.dtype, x.dims, sizes)
        return XTensor._of(symbol(kind, None), x._coords, x._name, x._attrs)

    return stand_in


@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("backend", BACKENDS)
def test_on_backends(backend: str, group: int) -> None:
    calls = Calls()
    every = [(name, seed) for seed in range(EXAMPLES) for name in FAMILIES]
    for name, seed in every[group::GROUPS]:
        if (backend, name) not in HOLES:
            calls.add(name, seed, of_known_size)
    assert calls.refused <= COMPUTING
    if calls.outputs:
        calls.compare(backend)


@pytest.mark.parametrize(("backend", "name"), sorted(HOLES))
@pytest.mark.xfail(reason="a hole of the table", strict=True)
def test_holes(backend: str, name: str) -> None:
    calls = Calls()
    for seed in range(EXAMPLES):
        calls.add(name, seed, of_known_size)
    calls.compare(backend)


# What needs a size while recording, and says so: positions become labels or constant places.
SIZED = COMPUTING | {
    "attributes", "coarsen", "coarsen_construct", "coarsen_reduce", "coordinates_read", "cross",
    "cumulative", "drop_isel", "ends", "filled", "interpolate_na", "isel", "pad", "roll", "stack",
    "unstack",
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in CASES if n not in COMPUTING])
def test_unknown_sizes(name: str) -> None:
    for seed in range(OF_UNKNOWN_SIZES):
        calls = Calls()
        calls.add(name, seed, unknown_sizes())
        assert not calls.refused or name in SIZED
        if calls.outputs:
            calls.compare("interpret")
