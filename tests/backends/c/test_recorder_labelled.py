"""Compiled recording of labelled arrays: the handles and nodes of Python code; no leak."""

import gc
import itertools
import operator
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import XTensor
from lazyarr.backends.c import recorder
from lazyarr.graph import node as nodes

pytestmark = [pytest.mark.backends]


@pytest.fixture(autouse=True)
def installed():
    module = recorder.module()
    if module is None:
        pytest.skip("the extension module cannot be built here")
    before = list(nodes._native)
    nodes.set_native(module)
    yield module
    nodes.set_native(before[0] if before else None)
    nodes._native[:] = before


SAME = {"a": [10, 20]}


def operands() -> dict[str, Any]:
    """Numbers and arrays that share labels, names and attributes, or do not."""
    ones = np.ones((2, 3))
    first = XTensor(ones, ("a", "b"), SAME, "n")
    return {
        "first": first,
        "same labels": first * 2,
        "other name": XTensor(ones, ("a", "b"), SAME, "m"),
        "no name": XTensor(ones, ("a", "b"), SAME),
        "built name": XTensor(ones, ("a", "b"), SAME, "".join(["n"])),
        "attributes": XTensor(ones, ("a", "b"), SAME, "n", {"u": 1}),
        "other attributes": XTensor(ones, ("a", "b"), SAME, "n", {"u": 2}),
        "no labels": XTensor(ones, ("a", "b")),
        "other dims": XTensor(np.ones(3), "b", {"b": [1, 2, 3]}, "n"),
        "integers": XTensor(np.ones((2, 3), np.int8), ("a", "b"), SAME, "n"),
        "number": 2.0,
        "whole number": 300,
    }


def binary(f: Any, a: Any, b: Any) -> Any:
    try:
        out = f(a, b)
    except (ValueError, TypeError, OverflowError) as error:
        return type(error)
    v = out._v
    return v.type, v.call, v.depth, v.symbolic, out._coords, out._name, out._attrs


FUNCTIONS = [
    operator.add, operator.mul, operator.lt, lambda a, b: -a, lambda a, b: xp.exp(a),
    lambda a, b: abs(a) - b,
]  # fmt: skip


@pytest.mark.parametrize("keep", [True, False])
def test_the_same_handles_are_recorded(installed: Any, keep: bool) -> None:
    given = operands()
    pairs = [(a, b) for a, b in itertools.product(given, given) if "number" not in a]
    with xp.set_options(keep_attrs=keep):
        for f, (a, b) in itertools.product(FUNCTIONS, pairs):
            binary(f, given[a], given[b])  # what is seen for the first time is asked of Python
            compiled = binary(f, given[a], given[b])
            nodes.set_native(None)
            assert compiled == binary(f, given[a], given[b]), (a, b)
            nodes.set_native(installed)


def test_options_are_obeyed() -> None:
    x = XTensor([1.0], "a", {"a": [1]}, attrs={"u": 1})
    for keep in (True, False, True):
        with xp.set_options(keep_attrs=keep):
            assert bool((x + x).attrs) == bool((x + 1.0).attrs) == bool((-x).attrs) == keep


def test_handles_leak_nothing() -> None:
    x = XTensor(np.ones((2, 3)), ("a", "b"), SAME, "n")

    def run() -> None:
        for _ in range(2000):
            y = xp.exp(x * 2.0 + x) - x
        assert y._coords is x._coords and y._name == "n"

    run()
    gc.collect()
    held = sys.getrefcount(x._coords), sys.getrefcount(x._name), sys.getrefcount(None)
    tracemalloc.start()
    run()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    run()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    now = sys.getrefcount(x._coords), sys.getrefcount(x._name), sys.getrefcount(None)
    assert grown < 20_000
    assert all(abs(a - b) < 100 for a, b in zip(held, now, strict=True))
