"""Reverse mode of every op: against differences, by type, and with zero cotangents."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lazyarr.autodiff.reverse import carries_derivative, pullback, varied
from lazyarr.backends.driver import Program
from lazyarr.errors import GradientError
from lazyarr.graph.node import symbol
from lazyarr.graph.op import NoGradient
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph, toposort
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

TOGETHER = 12
# Strict expected failures, by test and op; the table may only shrink.
HOLES = {
    ("test_against_differences", "stop_gradient"): "it hides its operand from derivatives",
    ("test_second_order", "digamma"): "trigamma has no derivative yet",
    ("test_forward_over_reverse", "digamma"): "trigamma has no derivative yet",
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
        for g, want in zip(got, differences(recording, weights), strict=True):
            close(g, want, sample)


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
        for g, want in zip(got, differences(recording, weights), strict=True):
            close(g, want, sample)


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


@cache
def on(backend: str, names: tuple[str, ...]) -> dict[str, list | Exception]:
    """Rows (sample, gradients, expected) by op, compiled together, or alone when that fails."""
    given, arrays, outputs, want, rows = [], [], [], [], []
    try:
        recordings = [Recording(s) for name in names for s in smooth(name)]
        for r in recordings:
            weights, gradient = r.weights(), r.reverse()
            given += [*r.symbols, *r.seeds]
            arrays += [*r.sample.arrays, *weights]
            want.append(r.run(gradient, weights))
            outputs += gradient
        values = iter(Program(Graph(given, outputs), backend)(arrays))
    except Exception as error:
        if len(names) == 1:
            return {names[0]: error}
        return {k: v for name in names for k, v in on(backend, (name,)).items()}
    for r, w in zip(recordings, want, strict=True):
        rows.append((r.sample, [next(values) for _ in w], w))
    return {name: [row for row in rows if row[0].op == name] for name in names}


@pytest.mark.parametrize("backend", [pytest.param("c", marks=pytest.mark.backends)])
@every
def test_compiled(backend: str, name: str) -> None:
    """The gradient of an op, compiled."""
    names = differentiable()
    start = names.index(name) // TOGETHER * TOGETHER
    rows = on(backend, tuple(names[start : start + TOGETHER]))[name]
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
