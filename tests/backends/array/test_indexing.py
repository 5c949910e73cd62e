"""Reading and writing regions and elements against the interpreter."""

import numpy as np
import pytest

from lazyarr.graph.ops.indexing import getitem, update
from lazyarr.graph.registry import op
from tests.backends.array.family import FAMILY, agrees, backend, expanded, leaf, sizes

pytestmark = pytest.mark.backends
S = slice
KEYS = [
    0,
    -1,
    (S(None), 2),
    S(1, 3),
    S(None, None, 2),
    S(None, None, -1),
    (S(4, 0, -2), None, S(1, 4, 2)),
    (None, 3, None, S(None, None, -3)),
    (S(2, 2), S(None)),
    (S(5, 1), S(3, 0, -5)),
    ...,
    (2, 3),
    (S(None), S(None, 2)),
]


@pytest.mark.parametrize("dtype", ["float64", "uint16", "bool"])
@pytest.mark.parametrize("name", FAMILY)
def test_regions_are_read_and_written(name: str, dtype: str) -> None:
    x = leaf(dtype, 5, 6)
    value = np.arange(30).reshape(5, 6).astype(dtype)
    inputs, arrays, outputs = [x], [value], []
    for key in KEYS:
        outputs.append(getitem(x, key))
        v = np.asarray(value[key])
        inputs.append(leaf(dtype, *v.shape))
        arrays.append((v * 2).astype(dtype))
        outputs.append(update(x, key, inputs[-1]))
        if dtype != "bool":
            outputs.append(update(x, key, inputs[-1], how="add"))
    agrees(name, inputs, outputs, arrays)


@pytest.mark.parametrize("name", FAMILY)
def test_starts_known_at_run_time(name: str) -> None:
    x, i, j, v = leaf("float64", 5, 6), leaf("int64"), leaf("int64"), leaf("float64", 6)
    window = {"spec": (("slice", 1), ("slice", -2)), "lengths": (2, 2)}
    outputs = [
        getitem(x, i),
        getitem(x, (i, j)),
        getitem(x, (S(1, 4), j, None)),
        getitem(x, (S(None, None, -1), i)),
        update(x, i, v),
        update(x, (i, j), op.sum(v)),
        update(x, i, v, how="add"),
        op.basic_index.record((x, i, 5), window),
        op.basic_index.record((x, 1, op.add(i, 2)), window),
        op.set_at(x, op.reshape(getitem(v, S(0, 4)), (2, 2)), i, op.add(i, 2), **window),
        op.add_at(x, op.reshape(getitem(v, S(0, 4)), (2, 2)), i, op.add(i, 2), **window),
    ]
    arrays = [np.arange(30.0).reshape(5, 6), np.array(2), np.array(-2), np.arange(6.0) + 50]
    run = agrees(name, [x, i, j, v], outputs, arrays)
    for k in (5, -6):
        assert run([arrays[0], np.array(k), *arrays[2:]])[1] != 0


@pytest.mark.parametrize("name", FAMILY)
def test_take(name: str) -> None:
    x, i, s = leaf("float64", 3, 4), leaf("int8", 2, 2), leaf("uint8")
    outputs = [
        op.take(x, i, axis=0),
        op.take(x, i, axis=1),
        op.take(x, s, axis=1),
        getitem(x, (i, op.add(i, 1))),
        getitem(x, (S(None), i)),
    ]
    arrays = [
        np.arange(12.0).reshape(3, 4),
        np.array([[0, 1], [-2, 1]], "int8"),
        np.array(1, "uint8"),
    ]
    run = agrees(name, [x, i, s], outputs, arrays)
    assert run([arrays[0], np.array([[0, 0], [3, 0]], "int8"), arrays[2]])[1] != 0


@pytest.mark.parametrize("dtype", ["float64", "uint32", "int8"])
@pytest.mark.parametrize("name", FAMILY)
def test_scatter(name: str, dtype: str) -> None:
    x, i = leaf(dtype, 4, 3), leaf("int64", 2, 3)
    v, w = leaf(dtype, 2, 3, 3), leaf(dtype, 4, 2, 3)
    k, u = leaf("int64"), leaf(dtype, 3)
    outputs = [
        write(*args, axis=axis)
        for write in (op.take_set, op.take_add)
        for args, axis in (((x, i, v), 0), ((x, i, w), 1), ((x, k, u), 0))
    ]
    index = np.array([[0, 2, 0], [2, 2, 1]])
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0, 90, s).astype(dtype) for s in ((4, 3), (2, 3, 3), (4, 2, 3), (3,))]
    arrays = [arrays[0], index, arrays[1], arrays[2], np.array(1), arrays[3]]
    agrees(name, [x, i, v, w, k, u], outputs, arrays)


@pytest.mark.parametrize("name", FAMILY)
def test_nothing_is_scattered(name: str) -> None:
    x, i, v = leaf("float64", 4), leaf("int64", 0), leaf("float64", 0)
    outputs = [op.take_set(x, i, v, axis=0), op.take_add(x, i, v, axis=0), op.take(x, i, axis=0)]
    agrees(name, [x, i, v], outputs, [np.ones(4), np.zeros(0, "int64"), np.zeros(0)])
    e, j = leaf("float64", 0, 2), leaf("int64", 1)
    run = backend(name).compile(expanded([e, j], [op.take(e, j, axis=0)]))
    assert run([np.zeros((0, 2)), np.array([0])])[1] == 1


@pytest.mark.parametrize("name", FAMILY)
def test_many_duplicates(name: str) -> None:
    n = 200_000
    x, i, v = leaf("float64", 100), leaf("int64", n), leaf("float64", n)
    index = np.random.default_rng(2).integers(0, 100, n)
    outputs = [op.take_set(x, i, v, axis=0), op.take_add(x, i, v, axis=0)]
    if name == "torch":
        torch = pytest.importorskip("torch")
        before = torch.get_num_threads()
        torch.set_num_threads(2)
    arrays = [np.zeros(100), index, np.arange(n) * 1.0]
    for _ in range(3):
        agrees(name, [x, i, v], outputs, arrays)
    if name == "torch":
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", FAMILY)
def test_sizes_of_windows(name: str) -> None:
    n = sizes("n")[0]
    x = leaf("float64", n)
    keys = [
        S(None, -1),
        S(1, None),
        S(None, None, -1),
        S(None, None, 2),
        S(3, None, -1),
        S(-2, None),
    ]
    outputs = [getitem(x, key) for key in keys]
    outputs += [update(x, key, 0.0) for key in keys]
    run = agrees(name, [x], outputs, [np.arange(5.0)])
    for k in (0, 2, 3):
        got, code = run([np.arange(float(k))])
        assert code == 0
        for g, key in zip(got, keys, strict=False):
            np.testing.assert_array_equal(g, np.arange(float(k))[key])
