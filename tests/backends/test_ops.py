"""Every op on every backend gives what the interpreter gives: one test over ops x backends.

The samples come from the op's kind. Many ops share one compiled program; what it gives is cached,
and each test looks at its op. A program that cannot be compiled or run is tried again op by op.
"""

from dataclasses import dataclass
from functools import cache

import pytest

from lazyarr.graph.node import Variable
from lazyarr.graph.registry import OPS
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TupleType
from tests.backend_params import MACHINES
from tests.backends.holes import HOLES, REFERENCE, WITHOUT_KERNELS
from tests.strategies.compare import assert_same, assert_same_zeros
from tests.strategies.groups import Recorded
from tests.strategies.samples import Sample, sampled_ops, samples_of

# Ops in one program. Compilers take more than linear time.
TOGETHER = {"c": 24, "numba": 8, "jax": 12, "torch": 24}
# Samples of an op, spread over all of them, where compiling each costs a quarter of a second.
AT_MOST = {"numba": 2}
# The everyday run: an op of each kind on C.
FAST = ("add", "where", "sum", "argmax", "cumulative_sum", "flip", "concat", "arange", "take",
        "take_add", "contract", "cholesky", "scan", "logsumexp")  # fmt: skip
# Facts of ops that run on the host on every backend.
HOST = frozenset({"by_reference", "finds_sizes"})
# Results in which the sign of a zero is the sum's own business, or the standard leaves it open.
ANY_ZERO = {"maximum", "minimum", "clip_low", "clip_high", "clip", "max", "min"}


@dataclass
class Outcome:
    """What a backend gave for the samples of one op."""

    samples: list[Sample]
    values: list
    expected: list
    fallbacks: list[Variable]  # what ran by its reference


def chosen(name: str, backend: str) -> list[Sample]:
    """The samples of an op for a backend."""
    every = samples_of(name)
    if not every:
        return []
    most = AT_MOST.get(backend, len(every))
    step = max(most - 1, 1)
    places = [i * (len(every) - 1) // step for i in range(most)]
    return [every[i] for i in dict.fromkeys(places)]


def conceded(node: Variable, backend: str) -> bool:
    """Whether the framework has no kernels for a dtype of a node."""
    types = [node.type, *(x.type for x in node.inputs if isinstance(x, Variable))]
    single = [s for t in types for s in (t.types if isinstance(t, TupleType) else (t,))]
    return any((backend, t.dtype.name) in WITHOUT_KERNELS for t in single)


@cache
def together(names: tuple[str, ...], backend: str) -> dict[str, Outcome | Exception]:
    """Run ops in one program; by themselves when that fails."""
    samples = [s for name in names for s in chosen(name, backend)]
    try:
        recorded = Recorded(samples)
        values, fallbacks = recorded.run(backend)
    except Exception as error:
        if len(names) == 1:
            return {names[0]: error}
        return {k: v for name in names for k, v in together((name,), backend).items()}
    found = {}
    rows = list(zip(samples, values, recorded.expected(), strict=True))
    for name in names:
        own = [row for row in rows if row[0].op == name]
        left = [v for v in fallbacks if v.op.name == name]
        found[name] = Outcome([r[0] for r in own], [r[1] for r in own], [r[2] for r in own], left)
    return found


def outcome(name: str, backend: str) -> Outcome:
    """What a backend gives for an op, as part of its group."""
    if name in FAST:
        names = list(FAST)
    else:
        names = [n for n in sampled_ops() if n not in FAST]
    start = names.index(name) // TOGETHER[backend] * TOGETHER[backend]
    group = tuple(names[start : start + TOGETHER[backend]])
    found = together(group, backend)[name]
    if isinstance(found, Exception):
        raise found
    return found


def cases() -> list:
    """Ops x backends, with the known holes as strict expected failures."""
    found = []
    for machine in MACHINES:
        (backend,) = machine.values
        for name in sampled_ops():
            marks = [*machine.marks, pytest.mark.backends]
            if (backend, name) in HOLES:
                marks.append(pytest.mark.xfail(reason=HOLES[backend, name], strict=True))
            elif backend == "c" and name in FAST:
                marks.append(pytest.mark.fast)
            found.append(pytest.param(name, backend, marks=marks, id=f"{backend}-{name}"))
    return found


@pytest.mark.parametrize(("name", "backend"), cases())
def test_op(name: str, backend: str) -> None:
    got = outcome(name, backend)
    if (backend, name) in REFERENCE or HOST & OPS[name].facts:
        assert got.fallbacks, "it is compiled: remove it from REFERENCE"
    else:
        assert all(conceded(v, backend) for v in got.fallbacks), got.fallbacks
    for sample, values, expected in zip(got.samples, got.values, got.expected, strict=True):
        for value, want in zip(values, expected, strict=True):
            assert_same(value, want, (backend, sample))
            if want.dtype.kind == "f" and name not in ANY_ZERO:
                assert_same_zeros(value, want, (backend, sample))


@pytest.mark.fast
@pytest.mark.parametrize("name", sampled_ops())
def test_interpreter(name: str) -> None:
    """The interpreter's values have the type that was predicted, and an op has samples."""
    samples = samples_of(name)
    assert samples, "give the op a recipe in tests/strategies/recipes"
    for sample in samples:
        recorded = Recorded([sample])
        (values,) = recorded.expected()
        for value, node in zip(values, recorded.outputs, strict=True):
            assert value.dtype == node.dtype, sample
            assert value.ndim == node.ndim, sample
            for found, size in zip(value.shape, node.shape, strict=True):
                assert found == size or isinstance(size, Size), sample
