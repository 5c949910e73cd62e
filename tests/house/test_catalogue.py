"""Every op of the catalogue says all that an op must say."""

import pytest

import lazyarr.backends.driver  # noqa: F401  (declares the whole catalogue)
from lazyarr.graph.op import KINDS, NoGradient, Op
from lazyarr.graph.registry import OPS

pytestmark = pytest.mark.fast

# What a kind's lowering reads, beside what every op has.
NEEDED = {"elementwise": "formula", "reduction": "combine", "cumulative": "combine"}

every_op = pytest.mark.parametrize("op", list(OPS.values()), ids=list(OPS))


@every_op
def test_name_and_kind(op: Op) -> None:
    assert OPS[op.name] is op
    assert op.kind in KINDS


@every_op
def test_meaning(op: Op) -> None:
    """The interpreter needs a reference; an op with none is expanded into ops that have one."""
    assert op.reference is not None or op.expand is not None
    if op.kind == "composite":
        assert op.expand is not None


@every_op
def test_what_its_kind_needs(op: Op) -> None:
    needed = NEEDED.get(op.kind)
    if needed is not None and op.expand is None and "by_reference" not in op.facts:
        assert getattr(op, needed) is not None, f"a {op.kind} op needs a {needed}"


@every_op
def test_derivative_or_reason(op: Op) -> None:
    """A composite is differentiated through its expansion when it has no rule of its own."""
    if op.vjp is None:
        assert op.expand is not None, "declare vjp, or NO_GRADIENT with the reason"
    for rule in (op.vjp, op.jvp):
        if isinstance(rule, NoGradient):
            assert len(rule.reason.split()) >= 3, "NO_GRADIENT needs a reason"


@every_op
def test_docstring(op: Op) -> None:
    first = (op.doc or "").strip().partition("\n")[0]
    assert len(first) > 10 and first.endswith("."), "the first line is a sentence"


def test_every_kind_is_in_use() -> None:
    assert {op.kind for op in OPS.values()} == set(KINDS)
