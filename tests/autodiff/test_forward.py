"""Forward mode of every op, against reverse mode."""

import numpy as np

from lazyarr.autodiff.forward import pushforward
from tests.autodiff.derivative import Recording, inner, smooth
from tests.autodiff.test_reverse import close, every
from tests.strategies.samples import samples_of


@every
def test_against_reverse(name: str) -> None:
    """<cotangents, J tangents> = <J^T cotangents, tangents>."""
    for sample in smooth(name):
        recording = Recording(sample)
        weights, directions = recording.weights(), recording.directions()
        pushed = recording.run(recording.forward(), tangents=directions)
        pulled = recording.run(recording.reverse(), weights)
        close(inner(pushed, weights), inner(pulled, directions), sample, 1e-10)


@every
def test_types(name: str) -> None:
    """A tangent has the type of its output."""
    for sample in samples_of(name):
        recording = Recording(sample)
        found = pushforward(recording.outputs, recording.wrt, recording.tangents)
        for y, t in zip(recording.outputs, found, strict=True):
            assert t is None or t.type is y.type, sample


@every
def test_zero_tangent_stays_zero(name: str) -> None:
    for sample in samples_of(name):
        recording = Recording(sample)
        nothing = [np.zeros(v.shape, v.dtype) for v in recording.tangents]
        for t in recording.run(recording.forward(), tangents=nothing):
            assert not np.any(t), sample  # NaN counts as true


@every
def test_second_order_in_every_mode(name: str) -> None:
    """All ways to the product of a Hessian with a direction, twice, agree."""
    for sample in smooth(name):
        recording = Recording(sample)
        if not recording.wrt or not recording.outputs:
            continue
        weights, directions = recording.weights(), recording.directions()
        want = recording.curvature(weights, directions)
        ways = {k: v for k, v in recording.curvatures().items() if v is not None}
        for way, got in zip(
            ways, recording.run([*ways.values()], weights, directions), strict=True
        ):
            close(got, want, (way, sample), 1e-9)
