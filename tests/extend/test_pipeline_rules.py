"""Rules and backends from outside, found by the pipeline and by entry points."""

import importlib.metadata

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.errors import ArgumentError
from lazyarr.graph.pattern import p, var
from lazyarr.graph.registry import op
from lazyarr.graph.rewrite import RuleSet
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.passes import pipeline
from tests.extend.toy.backend import ToyBackend

INVERSES = RuleSet("inverses")


@INVERSES.rule(p.sinh(p.asinh(var("x"))), "inverse")
def sinh_of_asinh(x):
    """sinh(asinh(x)) -> x"""
    return x


def test_rules_join_the_pipeline():
    x = xp.symbol("x", shape=(3,))
    y = xp.sinh(xp.asinh(x)) * 2
    before = pipeline.fingerprint()
    pipeline.use_rules(INVERSES, "inverse")
    try:
        assert pipeline.fingerprint() != before
        f = xp.function([x], y, backend="interpret")
        assert "sinh_of_asinh 1" in f.explain()
        assert f(np.array([0.1, 5.0, 300.0])).tolist() == [0.2, 10.0, 600.0]
    finally:
        pipeline.ADDED.remove("sinh_of_asinh")


def test_backends_are_found_by_entry_points(monkeypatch):
    class Entry:
        @staticmethod
        def load():
            return ToyBackend

    def found(**chosen):
        known = chosen == {"group": "lazyarr.backends", "name": "toy_by_entry"}
        return [Entry] if known else []

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    assert isinstance(xp.get_backend("toy_by_entry"), ToyBackend)


def halve_sines(graph):
    """Every sine becomes half of it: a pass that shows."""
    sines = [v for v in graph.toposort() if v.op is not None and v.op.name == "sin"]
    halves = {v: op.multiply(v, 0.5) for v in sines}
    return Graph(graph.inputs, substitute(graph.outputs, halves))


HALVES = pipeline.GraphPass("halve_sines", halve_sines)


def entries(monkeypatch, found):
    class Entry:
        value = "a_package:thing"

        @staticmethod
        def load():
            return found

    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group, name: [Entry] if (group, name) == ("lazyarr.passes", "theirs") else [],
    )


def test_passes_and_rules_are_found_by_entry_points(monkeypatch):
    x = xp.symbol("x", shape=(3,))
    point = np.array([0.1, 0.5, 3.0])
    before = pipeline.fingerprint()
    entries(monkeypatch, HALVES)
    pipeline.use_pass("theirs")
    try:
        assert pipeline.fingerprint() != before
        f = xp.function([x], xp.sin(x) + 1, backend="c")
        np.testing.assert_allclose(f(point), np.sin(point) / 2 + 1)
        with pytest.raises(ArgumentError, match="a_package:thing is no RuleSet"):
            pipeline.use_rules("theirs")
    finally:
        pipeline.drop_pass("halve_sines")
    np.testing.assert_allclose(xp.function([x], xp.sin(x), backend="c")(point), np.sin(point))
    assert pipeline.fingerprint() == before
    entries(monkeypatch, INVERSES)
    pipeline.use_rules("theirs", "inverse")
    try:
        assert "sinh_of_asinh 1" in xp.function([x], xp.sinh(xp.asinh(x)) * 2).explain()
    finally:
        pipeline.ADDED.remove("sinh_of_asinh")
    with pytest.raises(ArgumentError, match="no installed package has an entry point 'other'"):
        pipeline.use_pass("other")
