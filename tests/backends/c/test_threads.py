"""Loops that threads share give what one thread gives."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends.base import get_backend
from lazyarr.backends.c import compiler
from lazyarr.backends.c import print as printer
from lazyarr.errors import ArgumentError
from lazyarr.graph.evaluate import evaluate
from tests.backends.loop.cases import CASES
from tests.backends.loop.test_cases import assert_same, expanded

pytestmark = [pytest.mark.backends]


@pytest.fixture
def threaded(monkeypatch):
    if not compiler.find_compiler().openmp:
        pytest.skip("the compiler has no OpenMP")
    monkeypatch.setattr(printer, "LEAST_WORK", 0)
    with xp.set_options(threads=2):
        yield


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str, threaded) -> None:
    graph, arrays = CASES[name]()
    program = get_backend("c").compile(expanded(graph))
    for _ in range(3):
        out, code = program(arrays)
        assert code == 0
        assert_same(out, evaluate(graph, arrays))


def normalised(x):
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return [e / xp.sum(e, axis=-1, keepdims=True), xp.tanh(x) * 2, xp.var(xp.exp(x), axis=1)]


@pytest.mark.parametrize("shape", [(37, 53), (371, 5)])
def test_threads_change_no_bit_of_rows_and_elements(shape: tuple, threaded) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    results = []
    for threads in (1, 2, 3):
        with xp.set_options(threads=threads):
            x = xp.symbol("x", dtype="float64", shape=(None, None))
            f = xp.function([x], normalised(x), backend="c")
            assert ("omp parallel" in f.source) == (threads > 1)
            results.append(f(values))
    for more in results[1:]:
        for a, b in zip(results[0], more, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none(value: object) -> None:
    with pytest.raises(ArgumentError, match="threads"):
        xp.set_options(threads=value)
