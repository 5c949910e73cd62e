"""The namespace: errors at the call, shapes that depend on data, updates, copies, interchange."""

import math

import numpy as np
import pytest

import lazyarr as xp

pytestmark = pytest.mark.fast

MATRIX = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def interpreted():
    with xp.set_options(tier="interpret"):
        yield


def array(value: object = MATRIX, **kwargs: object) -> xp.Array:
    return xp.asarray(value, **kwargs)


# -- names ----------------------------------------------------------------------------------------


def test_every_name_has_a_docstring_and_a_signature() -> None:
    for module in (xp, xp.linalg, xp.fft, xp.special):
        names = module.__all__ if module is not xp else dir(xp)
        for name in names:
            f = getattr(module, name)
            if getattr(f, "__module__", "") == "lazyarr":
                assert f.__doc__ and f.__signature__


def test_results_of_decompositions_have_names() -> None:
    a = array(np.eye(3))
    assert xp.linalg.svd(a)._fields == ("U", "S", "Vh")
    assert xp.linalg.qr(a)._fields == ("Q", "R")
    assert xp.linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert xp.linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert xp.linalg.eig(a)._fields == ("eigenvalues", "eigenvectors")


# -- errors that types and static values suffice for ----------------------------------------------

ERRORS = [
    ("axis", lambda a: xp.sum(a, axis=2), IndexError),
    ("index", lambda a: a[2], IndexError),
    ("negative index", lambda a: a[-3], IndexError),
    ("too many indices", lambda a: a[0, 0, 0], IndexError),
    ("mask of another size", lambda a: a[array([True, False, True])], IndexError),
    ("mask of another shape", lambda a: a[xp.ones((2, 4), dtype=xp.bool)], IndexError),
    ("update by such a mask", lambda a: a.__setitem__(array([True] * 3), 0), IndexError),
    ("matmul", lambda a: a @ a, ValueError),
    ("matmul of a number", lambda a: xp.matmul(a, array(1.0)), ValueError),
    ("vecdot", lambda a: xp.vecdot(a, xp.ones((2, 4))), ValueError),
    ("vecdot along no axis", lambda a: xp.vecdot(a, a, axis=3), ValueError),
    ("cross", lambda a: xp.linalg.cross(xp.ones((2, 4)), xp.ones((2, 4))), ValueError),
    ("squeeze", lambda a: xp.squeeze(a, 0), ValueError),
    ("expand_dims", lambda a: xp.expand_dims(a, axis=4), IndexError),
    ("broadcasting", lambda a: a + xp.ones((4,)), ValueError),
    ("broadcast_to", lambda a: xp.broadcast_to(a, (3, 3)), ValueError),
    ("nonzero of a number", lambda a: xp.nonzero(array(1.0)), ValueError),
    ("reshape", lambda a: xp.reshape(a, (4,)), ValueError),
    ("concat", lambda a: xp.concat([a, xp.ones((2, 2, 1))]), ValueError),
    ("stack", lambda a: xp.stack([a, xp.ones((3, 2))]), ValueError),
    ("tensordot", lambda a: xp.tensordot(a, a, axes=1), ValueError),
    ("permute_dims", lambda a: xp.permute_dims(a, (0, 0)), ValueError),
    ("moveaxis", lambda a: xp.moveaxis(a, (0, 1), 0), ValueError),
    ("roll", lambda a: xp.roll(a, (1, 2), axis=0), ValueError),
    ("repeat", lambda a: xp.repeat(a, array([1, 2]), axis=1), ValueError),
    ("take", lambda a: xp.take(a, array([5]), axis=1), IndexError),
    ("take_along_axis", lambda a: xp.take_along_axis(a, array([[3]]), axis=1), IndexError),
    ("a size below 0", lambda a: xp.zeros((-1, 2)), ValueError),
    ("max over nothing", lambda a: xp.max(xp.ones((0,))), ValueError),
    ("argmin over nothing", lambda a: xp.argmin(xp.ones((0, 3)), axis=0), ValueError),
    ("searchsorted", lambda a: xp.searchsorted(a, a), ValueError),
    ("cumulative_sum", lambda a: xp.cumulative_sum(a), ValueError),
    ("inv", lambda a: xp.linalg.inv(a), ValueError),
    ("solve", lambda a: xp.linalg.solve(xp.eye(2), xp.ones((3,))), ValueError),
    ("fft of no elements", lambda a: xp.fft.fft(a, n=0), ValueError),
    ("meshgrid", lambda a: xp.meshgrid(a, a), ValueError),
    ("T", lambda a: xp.ones((2, 2, 2)).T, ValueError),
    ("share a list", lambda a: xp.asarray([1.0], copy=False), ValueError),
    ("share another dtype", lambda a: xp.asarray(a, dtype=xp.float32, copy=False), ValueError),
    ("bits of floats", lambda a: a & a, TypeError),
    ("shift of floats", lambda a: a << 1, TypeError),
    ("logic of numbers", lambda a: xp.logical_and(a, a), TypeError),
    ("order of complex", lambda a: array([1j]) < 1, TypeError),
    ("sort of complex", lambda a: xp.sort(array([1j])), TypeError),
    ("complex to float", lambda a: xp.astype(array([1j]), xp.float64), TypeError),
    ("complex into float", lambda a: a.__setitem__(0, 1j), TypeError),
    ("inv of integers", lambda a: xp.linalg.inv(array([[1, 2], [3, 4]])), TypeError),
    ("fft of bool", lambda a: xp.fft.fft(a > 0), TypeError),
    ("number too large", lambda a: array([1], dtype=xp.int8) + 300, OverflowError),
    ("len of a number", lambda a: len(array(1)), TypeError),
    ("hash", hash, TypeError),
]


@pytest.mark.parametrize(("run", "error"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS])
def test_errors_at_the_call(run, error: type) -> None:
    a = array()
    with xp.no_implicit_eval(), pytest.raises(error):
        run(a)


# -- shapes that depend on data -------------------------------------------------------------------


def test_nonzero_and_masks_know_their_shapes() -> None:
    a = array([[0, 1, 2], [3, 0, 0]])
    rows, columns = xp.nonzero(a)
    assert rows.shape == (3,) and columns.compute().tolist() == [1, 2, 0]
    assert a[a > 1].shape == (2,)
    assert a[a > 9].shape == (0,)
    assert a[array([True, False])].shape == (1, 3)
    assert a[:, array([True, False, True])].shape == (2, 2)
    assert array(5)[array(True)].shape == (1,)
    assert array(5)[array(False)].shape == (0,)


def test_masks_of_size_0_select_nothing() -> None:
    assert xp.ones((0, 3))[xp.ones((0,), dtype=xp.bool)].shape == (0, 3)


def test_unique() -> None:
    x = array([[3.0, math.nan, 1.0], [1.0, 3.0, math.nan]])
    values, indices, inverse, counts = xp.unique_all(x)
    assert values.shape == (4,) and counts.compute().tolist() == [2, 2, 1, 1]
    flat = np.asarray(x).ravel()
    np.testing.assert_array_equal(flat[indices.compute()], values.compute())
    np.testing.assert_array_equal(values.compute()[inverse.compute()], np.asarray(x))
    assert xp.unique_values(array([2, 1, 2])).compute().tolist() == [1, 2]


def test_repeat() -> None:
    x = array()
    assert xp.repeat(x, 2, axis=1).shape == (2, 6)
    for repeats, axis in ((array([1, 0, 2]), 1), (array([2, 1]), 0), (array(3), None)):
        want = np.repeat(MATRIX, np.asarray(repeats), axis)
        np.testing.assert_array_equal(xp.repeat(x, repeats, axis=axis).compute(), want)


def test_derivatives_flow_through_them() -> None:
    x = array([3.0, 1.0, 3.0, 2.0])
    assert xp.grad(xp.sum(x[x > 1.5] ** 2), x).compute().tolist() == [6, 0, 6, 4]
    assert xp.grad(xp.sum(xp.unique_values(x)), x).compute().tolist() == [1, 1, 0, 1]
    weights = array([1.0, 2.0, 4.0])
    y = xp.sum(xp.repeat(x, array([1, 0, 2, 0])) * weights)
    assert xp.grad(y, x).compute().tolist() == [1, 0, 6, 0]


def test_symbols_have_sizes_that_running_finds() -> None:
    x = xp.symbol("x", shape=(3,))
    times = xp.astype(x > 0, xp.int64)
    for y in (*xp.nonzero(x), xp.unique_values(x), x[x > 0], xp.repeat(x, times)):
        assert y.shape == (None,)


# -- reading and updating -------------------------------------------------------------------------

CUBE = np.arange(24.0).reshape(2, 3, 4)
INDEX = np.array([[0, 2], [1, 1]])
KEYS = [
    (1,), (-1, 2), (slice(None), 1), (..., 0), (slice(None, None, -1),), (None, 0), (),
    (1, slice(0, 3, 2), None), (slice(5, 1),), INDEX % 2, (slice(None), INDEX), (..., INDEX),
    (INDEX % 2, INDEX), (1, INDEX), (INDEX % 2, slice(None), INDEX), (slice(None), INDEX, 0),
    (0, slice(None), INDEX), (INDEX % 2, 1, INDEX), CUBE > 11,
    (slice(None), CUBE[0, :, 0] > 3), (..., CUBE[0, 0] > 1), CUBE[:, :, 0] > 6, True, False,
    (np.array([0, 1]), np.array([2, 0]), np.array([3, 3])),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_read_as_numpy_does(key) -> None:
    np.testing.assert_array_equal(array(CUBE)[key].compute(), CUBE[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_keys_write_as_numpy_does(key, full: bool) -> None:
    want = CUBE.copy()
    value = -1.0 - np.arange(want[key].size).reshape(want[key].shape) if full else -1.0
    want[key] = value
    x, before = array(CUBE), array(CUBE)
    other = x.at[key].set(value)
    x[key] = value
    np.testing.assert_array_equal(x.compute(), want)
    np.testing.assert_array_equal(other.compute(), want)
    np.testing.assert_array_equal(before.compute(), CUBE)
    assert x.dtype == xp.float64


def test_setting_by_a_mask_needs_no_value_of_it() -> None:
    x = xp.symbol("x", shape=(None, 3))
    y = xp.asarray(x)
    y = y.at[x > 1].set(0.0)
    f = xp.function([x], y, backend="interpret")
    np.testing.assert_array_equal(f(MATRIX), np.where(MATRIX > 1, 0, MATRIX))


def test_an_update_is_seen_by_every_name_and_by_no_other_handle() -> None:
    x = array()
    same, other = x, array(x, copy=True)
    x[0, 0] = 9
    assert float(same[0, 0]) == 9 and float(other[0, 0]) == 0
    x += 1
    assert float(same[0, 0]) == 9 and float(x[0, 0]) == 10


# -- copies and interchange -----------------------------------------------------------------------


def test_asarray_copies_or_shares() -> None:
    source = np.arange(3.0)
    copied, shared = xp.asarray(source), xp.asarray(source, copy=False)
    source[0] = 7
    assert float(copied[0]) == 0 and float(shared[0]) == 7


def test_asarray_takes_lists_with_arrays() -> None:
    out = xp.asarray([array([1, 2]), array([3, 4])], dtype=xp.float32)
    assert out.dtype == xp.float32 and out.shape == (2, 2)


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("view", [False, True])
def test_dlpack_both_ways(copy: bool | None, view: bool) -> None:
    x = array()
    x.compute()
    x = x[:, 1:] if view else x
    out = np.from_dlpack(x, copy=copy)
    np.testing.assert_array_equal(out, np.asarray(x))
    np.testing.assert_array_equal(xp.from_dlpack(out, copy=copy).compute(), out)
    assert x.__dlpack_device__() == (1, 0)


def test_an_exported_copy_is_not_the_value() -> None:
    x = array()
    out = np.from_dlpack(x, copy=True)
    out[:] = 5
    np.testing.assert_array_equal(x.compute(), MATRIX)


def test_torch_reads_and_gives_arrays() -> None:
    torch = pytest.importorskip("torch")
    x = array()
    assert torch.from_dlpack(x).tolist() == MATRIX.tolist()
    np.testing.assert_array_equal(xp.from_dlpack(torch.ones(2, 3)).compute(), np.ones((2, 3)))


# -- dtypes ---------------------------------------------------------------------------------------


def test_limits_are_python_numbers() -> None:
    info = xp.finfo(xp.complex64)
    assert type(info.eps) is float and info.bits == 32 and info.dtype == xp.float32
    assert xp.iinfo(xp.uint64).max == 2**64 - 1 and type(xp.iinfo(xp.int8).min) is int


def test_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_device() in info.devices()
    assert info.dtypes(kind=("bool", "signed integer")).keys() == {
        "bool", "int8", "int16", "int32", "int64",
    }  # fmt: skip


@pytest.mark.fast
@pytest.mark.parametrize("name", ["fft", "linalg", "random", "special"])
def test_a_prompt_offers_functions_alone(name: str) -> None:
    space = getattr(xp, name)
    assert dir(space) == sorted(space.__all__)
    assert all(callable(getattr(space, n)) for n in dir(space))
