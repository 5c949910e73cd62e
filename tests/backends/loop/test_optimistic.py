"""Loops on plain products: a NaN of theirs is seen in the end, whatever way it takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.loop.check import check
from lazyarr.backends.loop.interpret import run
from lazyarr.backends.loop.ir import For, Let, Store, walk
from lazyarr.backends.loop.plan import Plan, plan
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.traverse import Graph
from lazyarr.passes import pipeline
from tests.backend_params import BACKENDS

STEPS = 40


def rooted(x: Any, w: Any) -> Any:
    """A root whose derivative is infinite where its cotangent is 0."""
    c, ys = xp.scan(
        lambda c, e: (c * w + xp.where(e > 0, xp.sqrt(e * w), 0.0), c * e), 0.5, x
    )  # fmt: skip
    return c + xp.sum(ys)


def delayed(x: Any, w: Any) -> Any:
    """What is added up reaches its sum through lags, from the last step not at all."""
    step = xp.lagged(lambda past, e: w * past[2] + xp.where(e > 0, xp.log(e * w), e), (1, 2, 3))
    return xp.sum(xp.scan(step, (0.1, 0.2, 0.3), x)[1][:-5])


def masked(x: Any, w: Any) -> Any:
    """A product that a choice may drop: it is tested where it is made."""

    def step(c: Any, e: Any) -> Any:
        root = xp.sqrt(xp.maximum(e, 0.0) * w)
        return xp.where(e > 0.5, c + root, c * 0.9), root * c

    c, ys = xp.scan(step, 0.3, x)
    return c * c + xp.sum(xp.where(x > 0, ys, 0.0))


def infinite(x: Any, w: Any) -> Any:
    """Sums that are infinite, so that their total is NaN without any NaN."""

    def step(c: Any, e: Any) -> Any:
        return (c[0] + w * e, c[1] - w * e, c[2] * 0.5 + w), None

    (a, b, c), _ = xp.scan(step, (xp.asarray(np.inf), xp.asarray(-np.inf), 0.0), x)
    return xp.where(a > b, c, a)


PROGRAMS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (rooted, delayed, masked, infinite)
}


def points() -> list[np.ndarray]:
    x = np.random.default_rng(3).normal(size=STEPS)
    with_zeros = np.where(np.arange(STEPS) % 7 == 3, 0.0, x)
    return [x, with_zeros, np.zeros(STEPS), np.where(x > 1, np.inf, x), np.abs(x)]


@pytest.mark.backends
@pytest.mark.parametrize("backend", [b for b in BACKENDS if b.values[0] != "interpret"])
def test_backends_agree(backend: str) -> None:
    x, w = xp.symbol("x", shape=(STEPS,)), xp.symbol("w", shape=())
    found = [xp.value_and_grad(f(x, w), [x, w]) for f in PROGRAMS.values()]
    want = xp.function([x, w], found, backend="interpret")
    got = xp.function([x, w], found, backend=backend)
    for point in points():
        with np.errstate(all="ignore"):
            pairs = zip(got(point, 0.7), want(point, 0.7), strict=True)
        for (value, slopes), (value_there, slopes_there) in pairs:
            np.testing.assert_allclose(value, value_there, rtol=1e-11)
            for a, b in zip(slopes, slopes_there, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def in_loops(prim: str, made: Plan) -> int:
    """The number of serial loops whose body applies a primitive."""
    loops = [n for f in made.functions for n in walk(f.body) if isinstance(n, For)]
    return sum(
        any(isinstance(n, Let) and n.value.prim == prim for n in loop.body)
        for loop in loops
        if loop.kind == "serial"
    )


def simple(**how: Any) -> tuple[Plan, Callable[..., list]]:
    """Value and gradient of a loop of products: its plan, and its meaning."""
    x, w = xp.symbol("x", shape=(STEPS,)), xp.symbol("w", shape=())
    last, _ = xp.scan(lambda c, e: (c * w + e * c, None), 0.5, x)
    value, slopes = xp.value_and_grad(last, [x, w])
    graph = pipeline.run(Graph([x._v, w._v], [v._v for v in (value, *slopes)]))
    made = plan(graph, **how)
    check(made)
    return made, lambda *arrays: evaluate(graph, arrays)


def assert_meaning(made: Plan, meaning: Callable[..., list]) -> None:
    for point in points():
        arrays = [point, np.array(0.7)]
        with np.errstate(all="ignore"):
            out, code = run(made, arrays)
            want = meaning(*arrays)
        assert code == 0
        for a, b in zip(out, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.fast
def test_a_loop_is_taken_again_with_tests() -> None:
    """Plain products first; the loop with tests takes no step unless a carry is NaN."""
    made, meaning = simple()
    again = [
        n for f in made.functions for n in walk(f.body)
        if isinstance(n, For) and n.kind == "serial" and n.extent.prim == "var"
    ]  # fmt: skip
    assert in_loops("absorb", made) == 1 == len(again)
    assert any(isinstance(n, Let) and n.value.prim == "absorb" for n in again[0].body)
    assert_meaning(made, meaning)


@pytest.mark.fast
def test_carries_of_several_functions_stay_in_registers() -> None:
    """A loop whose carries another function starts or reads does not go through memory."""
    made, meaning = simple(segment=1)
    assert len(made.functions) > 2
    loops = [n for f in made.functions for n in f.body if isinstance(n, For)]
    stores = [n for loop in loops for n in walk(loop.body) if isinstance(n, Store)]
    assert stores and all(made.shapes[n.buffer] not in ((), (1,)) for n in stores)
    assert_meaning(made, meaning)
