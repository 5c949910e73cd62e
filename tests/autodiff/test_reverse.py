"""Reverse mode of every op: against differences, by type, and with zero cotangents."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lazyarr.autodiff.reverse import carries_derivative, pullback, varied
from lazyarr.backends.driver import Program
from lazyarr.errors import GradientError
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import NoGradient
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.traverse import Graph, toposort
from lazyarr.namespace.derivatives import lowered
from tests.autodiff.derivative import (
    STEP,
    Recording,
    differences,
    differentiable,
    inner,
    smooth,
)
from tests.strategies.compare import assert_same
from tests.strategies.samples import samples_of
from tests.strategies.values import draw

TOGETHER = {"numba": 1}  # ops in one program, 12 elsewhere; Numba's time grows faster than it
COMPILED = ["c", *filter(None, os.environ.get("LAZYARR_TEST_BACKENDS", "").split(","))]
# Strict expected failures, by test and op; the table may only shrink.
HOLES = {
    ("test_against_differences", "stop_gradient"): "it hides its operand from derivatives",
}


def every(test: Callable) -> Callable:
    """Run a test for every op with a derivative."""
    names = [
        pytest.param(name, marks=pytest.mark.xfail(reason=HOLES[test.__name__, name], strict=True))
        if (test.__name__, name) in HOLES
        else name
        for name in differentiable()
    ]
    return pytest.mark.parametrize("name", names)(test)


def close(got: object, want: object, label: object, tolerance: float = 1e-6) -> None:
    scale = 1 + float(np.max(np.abs(want), initial=0))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale, err_msg=str(label))


@every
def test_against_differences(name: str) -> None:
    for sample in smooth(name):
        recording = Recording(sample)
        weights = recording.weights()
        got = recording.run(recording.reverse(), weights)
        for g, (want, exact) in zip(got, differences(recording, weights), strict=True):
            close(g, want, sample, 1e-9 if exact else 1e-6)


@every
def test_second_order(name: str) -> None:
    """The gradient of <gradient, direction> is the difference of the gradient along it."""
    for sample in smooth(name):
        recording = Recording(sample)
        weights, directions = recording.weights(), recording.directions()
        gradient = recording.reverse()
        up, down = (
            recording.run(gradient, weights, arrays=recording.moved(directions, by))
            for by in (STEP, -STEP)
        )
        want = inner([(a - b) / (2 * STEP) for a, b in zip(up, down, strict=True)], directions)
        close(recording.curvature(weights, directions), want, sample, 1e-5)


@every
def test_repeated_operand(name: str) -> None:
    """f(x, x): both cotangents count, once each."""
    for sample in smooth(name):
        x = sample.arrays[0]
        if len(sample.arrays) != 2 or {a.shape for a in sample.arrays} != {x.shape}:
            continue
        twice = replace(sample, arrays=(x,), apply=lambda v, f=sample.apply: f(v, v))
        recording = Recording(twice)
        weights = recording.weights()
        if not all(np.isfinite(y).all() for y in recording.values()):
            continue
        got = recording.run(recording.reverse(), weights)
        for g, (want, exact) in zip(got, differences(recording, weights), strict=True):
            close(g, want, sample, 1e-9 if exact else 1e-6)


@every
def test_single_precision(name: str) -> None:
    """The gradient in float32 is that in float64, as far as its digits go."""
    for sample in smooth(name):
        single = replace(sample, arrays=tuple(narrowed(a, "float32") for a in sample.arrays))
        double = replace(sample, arrays=tuple(narrowed(a, "float64") for a in single.arrays))
        low, high = Recording(single), Recording(double)
        weights = low.weights()
        got = low.run(low.reverse(), weights)
        want = high.run(high.reverse(), [w.astype(np.result_type(w, "f8")) for w in weights])
        for g, w, x in zip(got, want, low.wrt, strict=True):
            assert g.dtype == x.dtype
            close(g, w, sample, 1e-3)


def narrowed(a: np.ndarray, dtype: str) -> np.ndarray:
    """A real floating array in another precision."""
    return a.astype(dtype) if a.dtype.kind == "f" else a


@pytest.mark.parametrize(
    "name", [n for n in differentiable() if OPS[n].kind in ("elementwise", "reduction")]
)
def test_named_dims(name: str) -> None:
    """The same op on named operands: aligned by name, the gradient is that by position."""
    for sample in smooth(name):
        if any(a.ndim > 1 for a in sample.arrays) and OPS[name].kind == "elementwise":
            continue
        recording = Recording(sample)
        rank = len(sample.arrays) if OPS[name].kind == "elementwise" else sample.arrays[0].ndim
        dims = "abc"[:rank]
        outer = [v for v in recording.symbols]
        if OPS[name].kind == "elementwise":
            named = [op.with_dims(v, (d,)) for v, d in zip(outer, dims, strict=True)]
            outer = [
                op.expand_dims(v, axis=tuple(k for k in range(rank) if k != i))
                for i, v in enumerate(outer)
            ]
        else:
            named = [op.with_dims(v, tuple(dims)) for v in outer]
        y, plain = sample.apply(*named), sample.apply(*outer)
        assert y.type.named and y.shape == plain.shape
        seed = symbol(plain.type)
        (low,), _ = lowered([y])
        found = [pullback([out], recording.wrt, [seed]) for out in (low, plain)]
        weights = [draw(tuple(plain.shape), plain.dtype, 0.2)]
        graph = Graph(
            [*recording.symbols, seed], [g for row in found for g in row if g is not None]
        )
        values = evaluate(graph, [*sample.arrays, *weights])
        half = len(values) // 2
        for a, b in zip(values[:half], values[half:], strict=True):
            assert_same(a, b, sample)


@every
def test_types(name: str) -> None:
    """A cotangent has the type of its operand: dtypes, broadcasting and unknown sizes."""
    for sample in samples_of(name):
        for sizes in (False, True) if sample.symbolic else (False,):
            recording = Recording(sample, sizes)
            found = pullback(recording.outputs, recording.wrt, recording.seeds)
            for x, g in zip(recording.wrt, found, strict=True):
                assert g is None or g.type is x.type, (sample, sizes)


@every
def test_zero_cotangent_stays_zero(name: str) -> None:
    """Exactly 0 through every op, at NaN, infinities and the edges of domains."""
    for sample in samples_of(name):
        recording = Recording(sample)
        if not recording.outputs:
            continue
        nothing = [np.zeros(v.shape, v.dtype) for v in recording.seeds]
        for g in recording.run(recording.reverse(), nothing):
            assert not np.any(g), sample  # NaN counts as true


@every
def test_unknown_sizes(name: str) -> None:
    """The gradient of a graph with unknown sizes, run at sizes that may be 1 or 0."""
    samples = [s for s in smooth(name) if s.symbolic]
    known, unknown = [Recording(s) for s in samples], [Recording(s, sizes=True) for s in samples]
    for recording, other in zip(known, unknown, strict=True):
        if not recording.wrt or not recording.outputs:
            continue
        weights = recording.weights()
        want = recording.run(recording.reverse(), weights)
        given = [*other.symbols, *other.seeds]
        program = Program(Graph(given, other.reverse()), "interpret")
        for g, w in zip(program([*recording.sample.arrays, *weights]), want, strict=True):
            assert_same(g, w, recording.sample)


def derivatives_of(recording: Recording) -> list[Variable]:
    """The gradient, the tangents of the outputs, and the second derivative along a direction."""
    found = [*recording.reverse(), *recording.forward()]
    with suppress(GradientError):  # no second derivative; HOLES says why
        curvature = recording.curvatures()["forward over reverse"]
        found += [] if curvature is None else [curvature]
    return found


@cache
def on(backend: str, names: tuple[str, ...]) -> dict[str, list | Exception]:
    """Rows (sample, gradients, expected) by op, compiled together, or alone when that fails."""
    given, arrays, outputs, want, rows = [], [], [], [], []
    try:
        recordings = [Recording(s) for name in names for s in smooth(name)]
        for r in recordings:
            weights, directions = r.weights(), r.directions()
            found = derivatives_of(r)
            given += [*r.symbols, *r.seeds, *r.tangents]
            arrays += [*r.sample.arrays, *weights, *directions]
            want.append(r.run(found, weights or [], directions))
            outputs += found
        values = iter(Program(Graph(given, outputs), backend)(arrays))
    except Exception as error:
        if len(names) == 1:
            return {names[0]: error}
        return {k: v for name in names for k, v in on(backend, (name,)).items()}
    for r, w in zip(recordings, want, strict=True):
        rows.append((r.sample, [next(values) for _ in w], w))
    return {name: [row for row in rows if row[0].op == name] for name in names}


@pytest.mark.backends
@pytest.mark.parametrize("backend", COMPILED)
@every
def test_compiled(backend: str, name: str) -> None:
    """The derivatives of an op, compiled: on C, and on what LAZYARR_TEST_BACKENDS names.

    LAZYARR_TEST_BACKENDS=numba,jax,torch pytest tests/autodiff/test_reverse.py -k compiled
    """
    names, together = differentiable(), TOGETHER.get(backend, 12)
    start = names.index(name) // together * together
    rows = on(backend, tuple(names[start : start + together]))[name]
    if isinstance(rows, Exception):
        raise rows
    for sample, values, expected in rows:
        for value, want in zip(values, expected, strict=True):
            assert_same(value, want, (backend, sample), ulps=256)


@pytest.mark.parametrize("name", [o.name for o in OPS.values() if isinstance(o.vjp, NoGradient)])
def test_refusal_gives_the_reason(name: str) -> None:
    """An op without a derivative says why, unless its result could not carry one."""
    for sample in samples_of(name):
        symbols = sample.symbols()
        outputs = [v for v in sample.record(symbols) if carries_derivative(v)]
        wrt = [v for v in symbols if carries_derivative(v)]
        if varied(toposort(outputs), wrt).isdisjoint(outputs):
            continue
        with pytest.raises(GradientError, match=OPS[name].vjp.reason[:20]):
            pullback(outputs, wrt, [symbol(v.type) for v in outputs])
