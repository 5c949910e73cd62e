"""Plans as a whole: deep and wide graphs, memory, repeatable text."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from lazyarr.backends.base import get_backend
from lazyarr.backends.c.print import to_c
from lazyarr.backends.loop.check import check
from lazyarr.backends.loop.interpret import run
from lazyarr.backends.loop.plan import SEGMENT, plan
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from tests.backends.loop.cases import K, M, N, leaf
from tests.backends.loop.test_cases import RUNNERS, WAYS, assert_same, expanded


def chain(x: Variable, count: int) -> Variable:
    y = x
    for _ in range(count // 2):
        y = op.sin(y) + x
    return y


def test_a_deep_chain_is_cut_into_functions_that_share_two_slots() -> None:
    x = leaf(N)
    p = plan(Graph([x], [chain(x, 4000)]))
    check(p)
    assert len(p.functions) > 4000 / (3 * SEGMENT)
    assert len(p.slot_bytes) == 2


@pytest.mark.slow
@pytest.mark.backends
def test_twenty_thousand_operations_compile_in_twenty_seconds() -> None:
    x = leaf(N)
    graph = Graph([x], [chain(x, 20_000)])
    start = time.perf_counter()
    program = get_backend("c").compile(graph)
    assert time.perf_counter() - start < 20
    values = np.linspace(0, 1, 7)
    out, _ = program([values])
    assert_same(out, evaluate(graph, [values]))


def test_sharing_does_not_multiply_work() -> None:
    x = leaf(N)
    y = x
    for _ in range(60):
        y = y * y * 0.5
    p = plan(Graph([x], [y]))
    values = np.array([0.5, 1.0])
    assert_same(run(p, [values])[0], evaluate(Graph([x], [y]), [values]))
    assert len(to_c(p).text) < 20_000


@pytest.mark.parametrize("way", WAYS)
def test_many_duplicates_add_up(way: str) -> None:
    v, i = leaf(N), leaf(N, dtype="int64")
    graph = expanded(Graph([v, i], [op.take_add(op.zeros((3,)), op.wrap_index(i, 3), v, axis=0)]))
    for n in (1, 6, 7, 8, 101):
        rng = np.random.default_rng(n)
        arrays = [rng.normal(size=n), rng.integers(-3, 3, size=n)]
        out, code = RUNNERS[way](graph, arrays)
        assert code == 0
        assert_same(out, evaluate(graph, arrays))


EMPTY = {
    "rows": lambda x, i: op.take(x, i, axis=0),
    "columns": lambda x, i: op.take(x, i, axis=1),
    "computed rows": lambda x, i: op.take(op.exp(x), i, axis=0) * 2,
    "a sum": lambda x, i: op.sum(op.take(op.exp(x), i, axis=0)),
    "of a sum": lambda x, i: op.take(op.sum(x, axis=1), i, axis=0),
    "pairs": lambda x, i: op.take(x, i, axis=0) + op.take(x, op.flip(i, axis=0), axis=0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EMPTY)
def test_nothing_is_read_of_an_empty_array(way: str, name: str) -> None:
    """The interpreter of loops fails where an index leaves its array, whatever is done with it."""
    x, i = leaf(N, M), leaf(K, dtype="int64")
    rows = "columns" not in name
    index = op.wrap_index(i, x.shape[0 if rows else 1])
    graph = expanded(Graph([x, i], [EMPTY[name](x, index)]))
    shape = (0, 3) if rows else (3, 0)
    out, code = RUNNERS[way](graph, [np.zeros(shape), np.zeros(2, "int64")])
    assert code > 0
    out, code = RUNNERS[way](graph, [np.zeros(shape), np.zeros(0, "int64")])
    assert code == 0 and out[0].size == (1 if name == "a sum" else 0)


def test_the_arena_holds_what_the_sizes_need() -> None:
    x = leaf(N)
    p = plan(Graph([x], [op.flip(op.cumulative_sum(op.exp(x), axis=0), axis=0) * 2]))
    (atom,) = p.atoms
    assert p.arena_bytes({atom: 1000}) >= 1000 * 8
    assert p.arena_bytes({atom: 0}) >= 64


TEXT = """
from tests.backends.loop.cases import CASES
from tests.backends.loop.test_cases import expanded
from lazyarr.backends.loop.plan import plan
from lazyarr.backends.c.print import to_c
from lazyarr.backends.numba.print import to_python
import hashlib
digest = hashlib.sha256()
for make in CASES.values():
    p = plan(expanded(make()[0]))
    digest.update(to_c(p).text.encode() + to_python(p).text.encode())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_the_text_does_not_depend_on_the_hash_seed() -> None:
    seen = set()
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            [sys.executable, "-c", TEXT], env=env, capture_output=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1
