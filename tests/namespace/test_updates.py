"""Functional updates `x.at[key].set|add|multiply|min|max(v)`, on arrays and named arrays."""

import numpy as np
import pytest

import lazyarr as xp
from lazyarr import function, symbol
from tests.backend_params import BACKENDS

UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
X = np.array([[3.0, -1, 2], [0.5, 4, -2]])
KEYS = {
    "element": (0, 1),
    "slice": (slice(None), slice(None, None, 2)),
    "row": 1,
    "duplicates": (np.array([0, 1, 0, 0]), np.array([2, 1, 2, 0])),
    "rows": np.array([1, 1, -2]),
    "mask": X > 0,
    "column and rows": (np.array([1, 1]), slice(0, 2)),
}


@pytest.mark.parametrize("how", UFUNCS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_as_numpy_would(backend, how):
    x, v = symbol("x", shape=("n", 3)), symbol("v")
    wholes = {name: getattr(x.at[key], how)(v) for name, key in KEYS.items() if name != "mask"}
    wholes["mask"] = getattr(x.at[x > 0], how)(v)
    wholes["a number"] = getattr(x.at[0], how)(2)
    wholes["values"] = getattr(x.at[np.array([1, 1])], how)(xp.asarray([[1.0, 2, 3], [-1, 5, 0]]))
    f = function([x, v], wholes, backend=backend)
    for name, got in f(X, 1.5).items():
        want = X.copy()
        key, value = KEYS.get(name), 1.5
        if name == "a number":
            key, value = 0, 2
        if name == "values":
            key, value = np.array([1, 1]), np.array([[1.0, 2, 3], [-1, 5, 0]])
        UFUNCS[how].at(want, key, value)
        np.testing.assert_allclose(got, want, rtol=1e-15, err_msg=name)


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_derivatives(backend):
    x, v = symbol("x", shape=(4,)), symbol("v", shape=(3,))
    index = np.array([1, 1, 3])
    for how in UFUNCS:
        loss = xp.sum(getattr(x.at[index], how)(v) * xp.asarray([1.0, 2, 3, 4]))
        f = function([x, v], xp.grad(loss, [x, v]), backend=backend)
        a, b = np.array([1.0, 2, 3, 4]), np.array([0.5, 2.5, 7.0])
        for got, position in zip(f(a, b), (0, 1), strict=True):
            for i in range(got.size):
                sides = []
                for step in (1e-6, -1e-6):
                    args = [a.copy(), b.copy()]
                    args[position][i] += step
                    out = args[0]
                    UFUNCS[how].at(out, index, args[1])
                    sides.append(out @ np.array([1.0, 2, 3, 4]))
                np.testing.assert_allclose(got[i], (sides[0] - sides[1]) / 2e-6, atol=1e-6)


def test_named_and_integers():
    x = xp.XTensor([1, 2, 3], dims="t", coords={"t": [10, 20, 30]})
    out = x.at[{"t": 1}].multiply(5).at[{"t": 0}].max(4).at[{"t": 2}].min(-1)
    assert out.values.tolist() == [4, 10, -1] and out.dtype == np.int64
    assert out.coords["t"].values.tolist() == [10, 20, 30]
    y = xp.asarray([1, 2, 3]).at[xp.asarray([0, 0])].multiply(3)
    assert y.dtype == np.int64 and np.asarray(y).tolist() == [9, 2, 3]
