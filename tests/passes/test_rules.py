"""One test for every rule: both sides are equal, bit for bit or as exact arithmetic says."""

import numpy as np
import pytest
from mpmath import mp, mpf

from lazyarr.graph.check import check
from lazyarr.graph.evaluate import evaluate
from lazyarr.graph.node import Variable
from lazyarr.graph.rewrite import Rule, RuleSet, Walk
from lazyarr.graph.traverse import Graph, leaves
from lazyarr.passes.algebra import ALGEBRA
from lazyarr.passes.composites import COMPOSITES
from lazyarr.passes.fold import FOLD
from lazyarr.passes.movement import MOVEMENT
from lazyarr.passes.regroup import REGROUP
from lazyarr.passes.stabilize import STABILIZE
from tests.passes.instances import instances, values

pytestmark = pytest.mark.fast

# `drop_rule` needs what only `custom_vjp` and `custom_jvp` record; their tests run it everywhere.
MADE_BY_USERS = {"drop_rule"}
EXACT = [
    rule
    for rule in (*ALGEBRA.select(without=["fast_math"]), *FOLD, *MOVEMENT, *REGROUP, *COMPOSITES)
    if rule.name not in MADE_BY_USERS
]


def by_name(rules: list[Rule]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("rule", rules, ids=[r.name for r in rules])


def both_sides(rule: Rule, node: Variable) -> tuple[Graph, Graph, bool]:
    before = Graph([v for v in leaves([node]) if v.is_symbol], [node])
    walk = Walk(RuleSet("one", [rule]))
    after = walk.graph(before)
    assert after.outputs[0].type is node.type
    check(after)
    return before, after, bool(walk.fired)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    nan = np.isnan(a) & np.isnan(b)
    return bool((nan | ((a == b) & (np.signbit(a) == np.signbit(b)))).all())


@by_name(EXACT)
def test_both_sides_are_equal(rule: Rule) -> None:
    fired = 0
    regroups = bool(rule.tags & {"accumulate", "regroup"}) and "rounding" in rule.tags
    for node in instances(rule.pattern, 60):
        before, after, did = both_sides(rule, node)
        fired += did
        for seed in range(3 if did else 0):
            arrays = [values(v, seed, not regroups) for v in before.inputs]
            with np.errstate(all="ignore"):
                (a,), (b,) = evaluate(before, arrays), evaluate(after, arrays)
            if "rounding" in rule.tags and a.dtype.kind in ("fc" if regroups else "f"):
                eps, tiny = np.finfo(a.dtype).eps, np.finfo(a.dtype).tiny
                np.testing.assert_allclose(a, b, rtol=4 * eps, atol=8 * eps if regroups else tiny)
                assert regroups or (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()
            else:
                assert same_bits(a, b), (rule.doc, node.inputs, arrays, a, b)
    assert fired, f"no instance of {rule.doc} was rewritten"


# -- stabilizing rules, against exact arithmetic --------------------------------------------------

MP = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "divide": lambda a, b: a / b,
    "negative": lambda a: -a, "exp": mp.exp, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "sqrt": mp.sqrt, "square": lambda a: a * a, "erf": mp.erf, "erfc": mp.erfc,
    "expit": lambda a: 1 / (1 + mp.exp(-a)), "abs": abs,
}  # fmt: skip
POINTS = [
    -750.0, -300.0, -40.0, -2.5, -1.0, -0.7, -1e-3, -1e-12, 1e-300, 1e-12, 1e-3, 0.4, 0.99, 2.5,
    30.0, 300.0, 709.0,
]  # fmt: skip
AT_THE_EDGE = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]


def exact(node: object, env: dict) -> object:
    """Evaluate an elementwise expression of few nodes with 400 digits."""
    if not isinstance(node, Variable):
        return mpf(node)
    if node in env:
        return env[node]
    return MP[node.op.name](*(exact(v, env) for v in node.inputs))


def scalar_instances(rule: Rule):
    return (n for n in instances(rule.pattern, 40, ["float64"]) if n.shape == ())


ELEMENTWISE = [r for r in STABILIZE if "composite" not in r.tags]


@by_name(ELEMENTWISE)
def test_stabilized_is_the_exact_value(rule: Rule) -> None:
    before, after, did = both_sides(rule, next(scalar_instances(rule)))
    assert did
    rng = np.random.default_rng(1)
    for x in POINTS:
        point = [x, *rng.choice(POINTS, len(before.inputs) - 1)]
        with mp.workdps(400):
            env = dict(zip(before.inputs, map(mpf, point), strict=True))
            try:
                wanted = exact(before.outputs[0], env)
            except (ValueError, ZeroDivisionError):
                continue
            if not isinstance(wanted, mpf):  # a logarithm of a negative number
                continue
            wanted = float(wanted)
        (got,) = evaluate(after, [np.asarray(v) for v in point])
        np.testing.assert_allclose(
            got, wanted, rtol=2e-13, atol=1e-320, err_msg=f"{rule.doc} {point}"
        )


@by_name(ELEMENTWISE)
def test_stabilized_edges(rule: Rule) -> None:
    """NaN and infinities stay, unless an intermediate caused them; undefined stays NaN."""
    before, after, _ = both_sides(rule, next(scalar_instances(rule)))
    for x in [*AT_THE_EDGE, -800.0, 800.0, -2.0]:
        point = [np.asarray(x) for _ in before.inputs]
        (a,), (b,) = evaluate(before, point), evaluate(after, point)
        if np.isnan(a) and np.isfinite(x):
            assert np.isnan(b), (rule.doc, x)
        elif not np.isfinite(x):
            assert np.isnan(a) or a == b, (rule.doc, x, a, b)
        assert np.isnan(a) or not np.isnan(b), (rule.doc, x, a, b)


@by_name([r for r in STABILIZE if "composite" in r.tags])
def test_stabilized_over_an_axis(rule: Rule) -> None:
    fired = 0
    for node in instances(rule.pattern, 40, ["float64"]):
        before, after, did = both_sides(rule, node)
        fired += did
        x = np.random.default_rng(0).normal(size=before.inputs[0].shape)
        np.testing.assert_allclose(evaluate(before, [x])[0], evaluate(after, [x])[0], rtol=1e-12,
                                   atol=1e-14)  # fmt: skip
        if did and x.ndim:
            far = np.where(np.arange(x.size).reshape(x.shape) % 2, 1e3, -1e3)
            assert np.isfinite(evaluate(after, [far])[0]).all()
    assert fired


def test_every_rule_is_an_equation() -> None:
    for rule in [*EXACT, *STABILIZE, *ALGEBRA]:
        assert "->" in rule.doc, rule.name
