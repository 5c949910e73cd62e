"""Running one graph on a backend of the array family and on the interpreter."""

import importlib.util
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import LazyArrError
from lazyarr.graph import shapes
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.registry import OPS
from lazyarr.graph.rewrite import rewrite
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType
from lazyarr.passes.composites import COMPOSITES


def _family_member(name: str) -> object:
    missing = importlib.util.find_spec(name) is None
    marks = [pytest.mark.skip(reason=f"{name} is not installed")] if missing else []
    return pytest.param(name, marks=marks)


FAMILY = [_family_member(name) for name in ("numpy", "torch", "jax")]
EAGER = FAMILY[:2]


@cache
def backend(name: str):
    module = importlib.import_module(f"lazyarr.backends.{name}.backend")
    return getattr(module, f"{name.capitalize()}Backend")()


def leaf(dtype: object, *shape: object) -> Variable:
    return symbol(TensorType(np.dtype(dtype), shape))


def expanded(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Graph:
    """The graph with its composites expanded, as a backend gets it."""
    return rewrite(Graph(inputs, outputs), COMPOSITES)


def native(graph: Graph, name: str) -> Graph:
    """The outputs of a graph whose nodes a backend supports, all of them."""
    back = backend(name)
    kept = [v for v in graph.outputs if all(back.supports(x) for x in Graph((), [v]).toposort())]
    return Graph(graph.inputs, kept)


def same(got: np.ndarray, want: np.ndarray, label: object, ulps: float = 64) -> None:
    """Equal dtypes, shapes, values up to rounding, NaNs, infinities and signs of zeros."""
    assert got.dtype == want.dtype, label
    assert got.shape == want.shape, label
    if want.dtype.kind in "fc":
        tol = ulps * np.finfo(want.dtype).eps
        np.testing.assert_allclose(
            got, want, rtol=tol, atol=tol / 4, equal_nan=True, err_msg=str(label)
        )
    else:
        np.testing.assert_array_equal(got, want, err_msg=str(label))


def agrees(name: str, inputs, outputs, arrays, ulps: float = 64, partly: bool = False):
    """Compare a backend with the interpreter on every output; return the executable.

    With `partly`, outputs that the backend leaves to the reference are skipped.
    """
    graph = expanded(inputs, outputs)
    if partly:
        graph = native(graph, name)
    for v in graph.toposort():
        assert backend(name).supports(v), v
    run = backend(name).compile(graph)
    before = [a.copy() for a in arrays]
    want = evaluate(graph, arrays)
    got, code = run(arrays)
    assert code == 0
    for v, g, w in zip(graph.outputs, got, want, strict=True):
        same(
            g, w, (name, v.call, [x.type if isinstance(x, Variable) else x for x in v.inputs]), ulps
        )
        assert g.flags.writeable
        assert not any(np.may_share_memory(g, a) for a in arrays)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)
    for i, g in enumerate(got):
        assert not any(np.may_share_memory(g, h) for h in got[:i])
    return run


def every_elementwise(*operands: Variable) -> list[Variable]:
    """Every elementwise op without a check that takes these operands."""
    found = []
    for record in OPS.values():
        if record.kind != "elementwise" or record.check is not None or record.name == "astype":
            continue
        if record.formula is None:  # it runs by its reference everywhere
            continue
        try:
            found.append(record(*operands))
        except (LazyArrError, TypeError):
            continue
    return found


def sizes(*names: str) -> list:
    return [shapes.unknown(n) for n in names]
