"""The scalar language: formulas mean what the references mean, constants are exact."""

import math

import numpy as np
import pytest

import lazyarr.graph.ops  # noqa: F401
from lazyarr.errors import DTypeError
from lazyarr.graph import scalar as s
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph
from tests.strategies.compare import assert_same
from tests.strategies.samples import samples_of

pytestmark = pytest.mark.fast
F8, F4, I4, BOOL = (np.dtype(d) for d in ("f8", "f4", "i4", "?"))
X, Y = s.var("x", F8), s.var("y", F8)


def by_formula(node: Variable, args: list) -> np.ndarray:
    """The value of an elementwise node, element by element through its formula."""
    record, compute = node.op, node.op.compute_dtype(node)
    promoted = range(len(args)) if record.promoted is None else record.promoted
    cast = [np.asarray(a, compute) if i in promoted else np.asarray(a) for i, a in enumerate(args)]
    names = [f"x{i}" for i in range(len(cast))]
    params = node.params
    formula = record.formula(
        *(s.var(n, a.dtype) for n, a in zip(names, cast, strict=True)), **params
    )
    out = s.evaluate(s.cast(formula, node.dtype), dict(zip(names, cast, strict=True)))
    return np.broadcast_to(out, np.broadcast_shapes(*(a.shape for a in cast)))


@pytest.mark.parametrize(
    "name", [o.name for o in OPS.values() if o.kind == "elementwise" and o.formula is not None]
)
def test_formula_means_the_reference(name: str) -> None:
    for sample in samples_of(name):
        symbols = sample.symbols()
        (node,) = sample.record(symbols)
        if node.op.name != name or any(v.dtype.kind == "c" for v in (node, *symbols)):
            continue
        given = dict(zip(symbols, sample.arrays, strict=True))
        args = [given.get(v, v) if isinstance(v, Variable) else v for v in node.inputs]
        if any(isinstance(a, Variable) for a in args):
            continue
        (want,) = evaluate(Graph(symbols, [node]), sample.arrays)
        assert_same(by_formula(node, args), want, sample)


def test_operators_and_numbers() -> None:
    e = (2 - X) * (X + 1) / 3 - (-X)
    x = np.array([0.5, -2.0])
    np.testing.assert_allclose(s.evaluate(e, {"x": x}), (2 - x) * (x + 1) / 3 + x)
    assert ((X < 1) & (X >= 0) | ~(X <= 5)).dtype == BOOL


def test_equality_is_structural_and_keeps_signs_and_nan() -> None:
    assert X + 1 == X + 1.0  # the number takes the dtype of x
    assert hash(X + 1) == hash(X + 1.0)
    assert X + 0.0 != X + (-0.0)
    assert s.const(math.nan, F8) == s.const(math.nan, F8)
    assert s.const(1, F8) != s.const(1, I4)
    assert s.var("x", F8) != s.var("x", F4)


def test_constants_are_cast_as_numpy_does() -> None:
    assert s.const(0.1, F4).args[0] == np.float32(0.1).item()
    assert s.const(True, F8).args[0] == 1.0
    assert s.cast(s.const(2.9, F8), I4).args == (2,)


def test_casts() -> None:
    assert s.cast(X, F8) is X
    values = {"x": np.array([2.9, -2.9, 0.0])}
    np.testing.assert_array_equal(s.evaluate(s.cast(X, I4), values), [2, -2, 0])
    np.testing.assert_array_equal(s.evaluate(s.cast(X, BOOL), values), [True, True, False])


def test_mixed_dtypes_are_refused() -> None:
    with pytest.raises(DTypeError, match="float64 and float32"):
        s.add(X, s.var("y", F4))
    with pytest.raises(DTypeError, match="takes 2 arguments"):
        s.apply("add", X)


@pytest.mark.parametrize("monoid", ["add", "mul", "max", "min", "and", "or"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool"])
def test_identities(monoid: str, dtype: str) -> None:
    """Combining with the identity changes nothing."""
    kind = np.dtype(dtype)
    if (monoid in ("and", "or")) != (kind == BOOL):
        pytest.skip("not a monoid of this dtype")
    values = np.array([0, 1, 1], kind) if kind == BOOL else np.array([0, 3, 100], kind)
    one = s.const(s.identity(monoid, kind), kind)
    x = s.var("x", kind)
    np.testing.assert_array_equal(
        s.evaluate(s.apply(s.MONOIDS[monoid], x, one), {"x": values}), values
    )


def test_cost_counts_shared_parts_once() -> None:
    e = s.exp(X)
    assert s.cost(e + e) == s.cost(e) + 1
    assert s.cost(X) == 0


def test_deep_expressions() -> None:
    e = X
    for _ in range(5000):
        e = e + 1
    assert s.evaluate(e, {"x": np.float64(0)}) == 5000
    assert s.cost(e) == 5000
