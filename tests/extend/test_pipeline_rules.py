"""Rules and backends from outside, found by the pipeline and by entry points."""

import importlib.metadata

import numpy as np

import lazyarr as xp
from lazyarr.passes import pipeline
from tests.extend.my_rules import MINE
from tests.extend.toy.backend import ToyBackend


def test_rules_join_the_pipeline():
    x = xp.symbol("x", shape=(3,))
    y = xp.cosh(x) * xp.cosh(x) - xp.sinh(x) * xp.sinh(x)
    before = pipeline.fingerprint()
    pipeline.use_rules(MINE, "hyperbolic_unit")
    try:
        assert pipeline.fingerprint() != before
        f = xp.function([x], y, backend="interpret")
        assert "hyperbolic_unit 1" in f.explain()
        assert (f(np.array([0.0, 5.0, 300.0])) == 1).all()
    finally:
        pipeline.ADDED.remove("hyperbolic_unit")


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
