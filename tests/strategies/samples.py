"""Samples of every op of the catalogue, found from its kind.

`SAMPLES[kind](op)` gives a few deterministic samples of an op: operands by shape (broadcasting,
0-d, empty, size 1), by dtype (those that the op accepts) and with special values. Elementwise,
reduction and cumulative ops are sampled from their declaration alone; the other kinds need to know
what operands make sense together, which `RECIPES` says by name (an op without one is tried
as a function of square matrices). A recipe comes before the kind's own sampler.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

import lazyarr.backends.driver  # noqa: F401  (declares the whole catalogue)
from lazyarr.graph import dtypes
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import Op
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import OPS
from lazyarr.graph.shapes import unknown
from lazyarr.graph.types import TensorType, TupleType
from tests.strategies.recipes import (  # noqa: F401  (each declares its recipes)
    control,
    creation,
    decompositions,
    drawing,
    elementwise,
    fourier,
    indexing,
    linalg,
    movement,
    searching,
    special_functions,
    statistical,
)
from tests.strategies.recipes.declare import RECIPES
from tests.strategies.values import DTYPES, NARROW, draw, special


@dataclass(frozen=True, eq=False)
class Sample:
    """One application: concrete operands, and how it is recorded on symbols for them."""

    op: str
    label: str
    arrays: tuple
    apply: Callable
    smooth: bool = False  # float64 and differentiable at these values
    symbolic: bool = True  # the sizes of the operands may be unknown

    def __repr__(self) -> str:
        return f"{self.op}: {self.label}"

    def symbols(self, sizes: bool = False) -> list[Variable]:
        """Symbols for the operands; with `sizes` every size is an unknown of its own."""
        return [
            symbol(TensorType(a.dtype, tuple(unknown("n") if sizes else n for n in a.shape)))
            for a in self.arrays
        ]

    def record(self, symbols: list[Variable]) -> list[Variable]:
        """Record the application; the outputs are tensors."""
        out = self.apply(*symbols)
        return picks(out) if isinstance(out.type, TupleType) else [out]


def accepted(op: Op) -> list[np.dtype]:
    """The sampled dtypes that the operands of an op may have."""
    if op.accepts in ("floating-point", "real floating-point"):
        return list(DTYPES)  # others are computed as float64
    return [d for d in DTYPES if d in dtypes.CATEGORIES[op.accepts]]


def arity(op: Op) -> int:
    """How many operands a call takes by position."""
    parameters = inspect.signature(op.prepare).parameters.values()
    return sum(p.kind is not p.KEYWORD_ONLY and p.default is p.empty for p in parameters)


# -- elementwise ----------------------------------------------------------------------------------

SHAPES = {
    1: [((),), ((2, 3),), ((0, 3),), ((1, 1),)],
    2: [
        ((), (3,)),
        ((2, 1), (1, 3)),
        ((2, 3), (3,)),
        ((0, 3), (1, 3)),
        ((1,), (4,)),
        ((4,), (4,)),
        ((0, 1), (1, 2)),
    ],
    3: [((), (3,), ()), ((2, 1), (3,), (2, 3)), ((0, 1), (1, 2), ()), ((4,), (1,), (4,))],
}
PAIRS = [("float64", "float32"), ("int32", "float32"), ("uint8", "int64"), ("int64", "float64"),
         ("uint8", "int32")]  # fmt: skip
SMOOTH = [(-1.7, -0.6, 0.4, 1.3), (0.15, 0.35, 0.65, 0.85), (1.2, 1.4, 1.9, 2.7)]


def _operand_dtypes(op: Op, dtype: np.dtype, n: int) -> list[np.dtype]:
    """The dtype for promoted operands, bool for a condition."""
    promoted = range(n) if op.promoted is None else op.promoted
    return [dtype if i in promoted else np.dtype(bool) for i in range(n)]


def _outer(arrays: list[np.ndarray]) -> tuple:
    """Arrays of one axis as arrays that broadcast to every combination."""
    n = len(arrays)
    return tuple(a.reshape([-1 if i == j else 1 for j in range(n)]) for i, a in enumerate(arrays))


def of_elementwise(op: Op) -> Iterator[Sample]:
    """Special values in every combination for each dtype, shapes, mixed dtypes, raw scalars."""
    n, allowed = arity(op), accepted(op)
    extreme = not op.accepts.endswith("floating-point")
    narrow = [d for d in NARROW if d in dtypes.CATEGORIES[op.accepts]]
    for dtype in (*allowed, *narrow):
        pools = [special(d, extreme) for d in _operand_dtypes(op, dtype, n)]
        pools = [p if n < 3 else p[:12] for p in pools]
        yield Sample(op.name, f"{dtype} special", _outer(pools), op)
    first = allowed[0]
    for shapes in SHAPES[n]:
        kinds = _operand_dtypes(op, first, n)
        arrays = (draw(s, d, i) for i, (s, d) in enumerate(zip(shapes, kinds, strict=True)))
        yield Sample(op.name, f"shapes {shapes}", tuple(arrays), op)
    yield from _mixed(op, n, allowed)
    yield from _smooth(op, n)


def _mixed(op: Op, n: int, allowed: list) -> Iterator[Sample]:
    """Operands of two dtypes, and Python scalars on either side."""
    if n != 2 or op.promoted is not None:
        return
    for names in PAIRS:
        pair = [np.dtype(d) for d in names]
        both = dtypes.promote(*pair)
        if all(d in allowed for d in (*pair, both)):
            arrays = tuple(draw((4,), d, i) for i, d in enumerate(pair))
            yield Sample(op.name, f"{names[0]} with {names[1]}", arrays, op)
    for dtype in allowed:
        x = (draw((4,), dtype),)
        raw = True if dtype.kind == "b" else 0.75 if dtype.kind == "f" else 3
        yield Sample(op.name, f"{dtype} with {raw}", x, lambda x, raw=raw: op(x, raw))
        yield Sample(op.name, f"{raw} with {dtype}", x, lambda x, raw=raw: op(raw, x))


def _smooth(op: Op, n: int) -> Iterator[Sample]:
    """Points inside the domain of the op, away from ties and jumps."""
    if np.dtype("float64") not in accepted(op):
        return
    for values in SMOOTH:
        kinds = _operand_dtypes(op, np.dtype("float64"), n)
        arrays = [
            np.array([v + 0.03 * i for v in np.roll(values, i)])
            if kind.kind == "f"
            else np.array([True, False, False, True])
            for i, kind in enumerate(kinds)
        ]
        with np.errstate(all="ignore"):
            inside = np.isfinite(op.reference(*arrays)).all()
        if inside:
            yield Sample(op.name, f"smooth at {values}", tuple(arrays), op, smooth=True)
            wide = tuple(a[: 3 - i].reshape((-1, 1) if i else (-1,)) for i, a in enumerate(arrays))
            yield Sample(op.name, f"smooth, broadcast, at {values}", wide, op, smooth=True)


# -- reductions and cumulative ops ----------------------------------------------------------------

_EXTREMES = ("max", "min", "argmax", "argmin")


def _axes(op: Op) -> list:
    single = [None, 0, 1, -1]
    return single if op.combine in ("argmax", "argmin") else [*single, (0, 2), ()]


def _named(op: Op, name: str) -> bool:
    return name in inspect.signature(op.prepare).parameters


def _with(op: Op, **params: object) -> Callable:
    return lambda x: op(x, **params)


def of_reduction(op: Op) -> Iterator[Sample]:
    """Axes, keepdims, dtypes, NaN, empty axes where they are legal, 0-d and size 1."""
    for dtype in accepted(op):
        x = (draw((2, 3, 4), dtype),)
        axes = _axes(op) if dtype == np.float64 else [None, 1]
        for axis, keep in itertools.product(axes, (False, True)):
            call = _with(op, axis=axis, keepdims=keep)
            label = f"{dtype} axis {axis} keepdims {keep}"
            yield Sample(op.name, label, x, call, smooth=dtype == np.float64)
        pool = special(dtype)
        yield Sample(op.name, f"{dtype} special", (pool,), op)
        if dtype.kind == "f":
            finite = pool[np.isfinite(pool)]
            yield Sample(op.name, f"{dtype} finite", (finite,), op)
            rows = np.array([[1, 5, 5, -1], [np.nan, 1, np.nan, 9], [-np.inf, 0, np.inf, 7]], dtype)
            yield Sample(op.name, f"{dtype} rows", (rows,), _with(op, axis=1))
    for dtype in NARROW:
        if dtype in dtypes.CATEGORIES[op.accepts]:
            pools = np.stack([special(dtype), special(dtype)[::-1]])
            yield Sample(op.name, f"{dtype} special", (pools,), _with(op, axis=1))
    first = accepted(op)[0]
    for shape, axis in (((), None), ((1,), 0), ((1, 3), 0), ((3, 1), 1), ((1, 1), None)):
        yield Sample(op.name, f"{shape} axis {axis}", (draw(shape, first),), _with(op, axis=axis))
    empties = [((0, 3), 1), ((2, 0), 0)]
    if op.combine not in _EXTREMES:
        empties += [((0, 3), 0), ((0,), None), ((2, 0), None), ((2, 0, 3), (1, 2))]
    for shape, axis in empties:
        call = _with(op, axis=axis)
        label = f"empty {shape} axis {axis}"
        yield Sample(op.name, label, (draw(shape, first),), call, symbolic=axis is not None)
    if _named(op, "dtype"):
        for source, target in (("int32", "float32"), ("float64", "float32"), ("uint8", "int32")):
            call = _with(op, dtype=target, axis=0)
            yield Sample(op.name, f"{source} in {target}", (draw((3, 2), source),), call)


def of_cumulative(op: Op) -> Iterator[Sample]:
    """Axes, with and without the initial value, dtypes, special values, empty and size 1."""
    for dtype in accepted(op):
        x = (draw((2, 3, 4), dtype),)
        axes = (0, 1, -1) if dtype == np.float64 else (1,)
        for axis, initial in itertools.product(axes, (False, True)):
            call = _with(op, axis=axis, include_initial=initial)
            label = f"{dtype} axis {axis} initial {initial}"
            yield Sample(op.name, label, x, call, smooth=dtype == np.float64)
        yield Sample(op.name, f"{dtype} special", (special(dtype),), op)
    for shape in ((0,), (1,), (0, 3), (2, 0), (1, 4)):
        for initial in (False, True):
            call = _with(op, axis=0, include_initial=initial)
            yield Sample(op.name, f"{shape} initial {initial}", (draw(shape),), call)
    for source, target in (("int32", "float32"), ("float64", "float32")):
        call = _with(op, dtype=target, axis=0)
        yield Sample(op.name, f"{source} in {target}", (draw((3, 2), source),), call)


# -- every other kind -----------------------------------------------------------------------------


def from_recipe(op: Op) -> Iterator[Sample]:
    """The recipe of an op, whole for its first dtype, its first samples for the others."""
    recipe = RECIPES[op.name]
    for dtype in recipe.dtypes:
        rows = recipe.rows(np.dtype(dtype))
        for row in rows if dtype == recipe.dtypes[0] else itertools.islice(rows, recipe.others):
            floats = [a.dtype == np.float64 for a in row.arrays if a.dtype.kind == "f"]
            smooth = row.smooth and dtype == "float64" and all(floats) and bool(floats)
            label = f"{dtype} {row.label}"
            yield Sample(op.name, label, tuple(row.arrays), row.apply, smooth, row.symbolic)


def guessed(op: Op) -> Iterator[Sample]:
    """An op that no recipe knows: square matrices for its operands, if it takes them."""
    arrays = tuple(draw((3, 3), shift=i) for i in range(max(arity(op), 1)))
    sample = Sample(op.name, "square matrices", arrays, op, smooth=True)
    try:
        sample.record(sample.symbols())
    except Exception:
        return
    yield sample


# Ops whose meaning is a function of the user's: they have tests of their own.
UNSAMPLED = {"foreign", "with_rule", "composed", "composed_with_rule"}


def sampled_ops() -> list[str]:
    """The names of the ops that have samples, or must get some."""
    return [name for name, op in OPS.items() if name not in UNSAMPLED and not _of_a_test(op)]


def _of_a_test(op: Op) -> bool:
    """Tell whether a test has declared an op in this process."""
    parts = (op.prepare, op.infer, op.reference, op.formula, op.expand)
    return any(getattr(f, "__module__", None) and f.__module__.startswith("tests") for f in parts)


SAMPLES: dict[str, Callable[[Op], Iterator[Sample]]] = {
    "elementwise": of_elementwise,
    "reduction": of_reduction,
    "cumulative": of_cumulative,
}


@cache
def samples_of(name: str) -> tuple[Sample, ...]:
    """The samples of an op."""
    op = OPS[name]
    if name in RECIPES:
        return tuple(from_recipe(op))
    return tuple(SAMPLES.get(op.kind, guessed)(op))
