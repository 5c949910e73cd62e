"""Rules and backends from outside, found by the pipeline and by entry points."""

import importlib.metadata

import numpy as np

import lazyarr as xp
from lazyarr.graph.pattern import p, var
from lazyarr.graph.rewrite import RuleSet
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
