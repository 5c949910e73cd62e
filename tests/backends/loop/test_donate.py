"""Results in the memory of donated inputs: whatever the program, they are the same results."""

import numpy as np
import pytest

import lazyarr as xp
from tests.backend_params import parameter

pytestmark = pytest.mark.backends

PROGRAMS = {
    "elementwise": lambda x, y: x * y + 1,
    "several": lambda x, y: [x + y, x - y, y * 2],
    "itself": lambda x, y: [x, x * 2, y],
    "swapped": lambda x, y: [y, x],
    "flip": lambda x, y: xp.flip(x, axis=0) + y,
    "transposed": lambda x, y: x.T + y,
    "shifted": lambda x, y: xp.concat([x[1:], x[:1]], axis=0) * y,
    "stencil": lambda x, y: x.at[1:-1].set(x[:-2] + x[2:]),
    "update": lambda x, y: x.at[2].set(y[1]),
    "updates": lambda x, y: x.at[0].set(x[1]).at[1].set(x[0] + y[0]),
    "added": lambda x, y: x.at[1:3].add(y[:2]),
    "centred": lambda x, y: [x - xp.mean(x, axis=0), xp.std(x)],
    "scaled rows": lambda x, y: x / xp.sum(x, axis=1, keepdims=True),
    "scaled columns": lambda x, y: x / xp.sum(x, axis=0, keepdims=True),
    "running": lambda x, y: xp.cumulative_sum(x, axis=0) + y,
    "product": lambda x, y: [x @ y, x + 1],
    "chain": lambda x, y: [xp.exp(x), xp.exp(x) @ y, xp.sum(x)],
    "sorted": lambda x, y: xp.sort(x, axis=1) - x,
    "taken": lambda x, y: xp.take(x, xp.asarray(np.array([3, 2, 1, 0])), axis=0),
    "loop": lambda x, y: xp.scan(lambda c, _: (c * 0.5 + xp.sum(y), xp.sum(c)), x, length=3),
    "system": lambda x, y: [xp.linalg.solve(x + 10 * xp.eye(4), y), x - y],
    "gradient": lambda x, y: xp.value_and_grad(xp.sum(xp.sin(x) * y), x),
}


FEW = ("several", "updates", "scaled rows", "chain")


@pytest.mark.parametrize(
    ("name", "backend", "threads"),
    [
        *((name, "c", threads) for threads in (1, 2) for name in PROGRAMS),
        *(
            pytest.param(name, *parameter("numba").values, 1, marks=parameter("numba").marks)
            for name in FEW
        ),
    ],
)
def test_donated_programs(name, backend, threads):
    x, y = xp.symbol("x", shape=(None, None)), xp.symbol("y", shape=(None, None))
    outputs = PROGRAMS[name](x, y)
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    want = xp.function([x, y], outputs, backend="interpret")(a, b)
    with xp.set_options(threads=threads):
        f = xp.function([x, y], outputs, backend=backend, donate=[x, y])
    for got, expected in zip(_flat(f(a.copy(), b.copy())), _flat(want), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)
    block = rng.normal(size=(5, 4))  # donated inputs that overlap
    want = xp.function([x, y], outputs, backend="interpret")(block[:4], block[1:])
    for got, expected in zip(_flat(f(block[:4], block[1:])), _flat(want), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def _flat(values):
    if isinstance(values, list | tuple):
        return [leaf for v in values for leaf in _flat(v)]
    return [values]
