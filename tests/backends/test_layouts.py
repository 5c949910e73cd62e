"""Arrays in Fortran order, permuted and reversed: read as they lie, with the same results."""

import pickle

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends import layouts
from lazyarr.backends.base import get_backend
from lazyarr.backends.layouts import Layout, layout_of
from lazyarr.errors import LazyArrError
from tests.backend_params import parameter

BACKENDS = [parameter("c"), parameter("numba")]


@pytest.fixture
def at_once(monkeypatch):
    """Programs for layouts are made at the first call."""
    monkeypatch.setattr(layouts, "LEAST", 1)
    for name in ("c", "numba"):
        monkeypatch.setattr(type(get_backend(name)), "relayout", 1, raising=True)


VIEWS = {
    "Fortran": lambda a: np.asfortranarray(a),
    "upside down": lambda a: a[::-1],
    "backwards": lambda a: a[:, ::-1],
    "turned round": lambda a: np.asfortranarray(a)[::-1, ::-1],
    "every other": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "some columns": lambda a: np.concatenate([a, a], axis=1)[:, : a.shape[1]],
    "one row again": lambda a: np.broadcast_to(a[:1], a.shape),
    "read-only": lambda a: _locked(np.asfortranarray(a)),
}


def _locked(a: np.ndarray) -> np.ndarray:
    a.setflags(write=False)
    return a


def work(x):
    return xp.sum(xp.exp(x), axis=0), x * 2 + xp.max(x, axis=1, keepdims=True), xp.mean(x)


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
def test_values(backend: str, at_once) -> None:
    x = xp.symbol("x", shape=(None, None))
    f = xp.function([x], list(work(x)), backend=backend)
    plain = xp.function([x], list(work(x)), backend="interpret")
    for shape in ((9, 5), (1, 7), (30, 1)):
        a = np.random.default_rng(0).normal(size=shape)
        for name, view in VIEWS.items():
            given = view(a)
            for got, want in zip(f(given), plain(given), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=name)
    made = f.program.layouts.programs
    assert {k[0] for k in made} >= {Layout((1, 0), ()), Layout((0, 1), (0,)), Layout((0, 1), (1,))}
    again = pickle.loads(pickle.dumps(f))
    given = np.asfortranarray(np.ones((3, 2)))
    np.testing.assert_array_equal(again(given)[1], np.full((3, 2), 3.0))


@pytest.mark.backends
def test_three_axes_several_inputs_and_out(at_once) -> None:
    x, y = xp.symbol("x", shape=(None, 4, None)), xp.symbol("y", shape=(4, None))
    f = xp.function([x, y], xp.sum(x * y, axis=1) + 1, backend="c")
    rng = np.random.default_rng(0)
    for axes in ((0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        lying = rng.normal(size=tuple((5, 4, 6)[d] for d in axes))
        a, b = lying.transpose(np.argsort(axes)), np.asfortranarray(rng.normal(size=(4, 6)))
        assert a.shape == (5, 4, 6)
        out = np.empty((5, 6))
        assert f(a, b, out=out) is out
        np.testing.assert_allclose(out, np.sum(a * b, axis=1) + 1, rtol=1e-12)


@pytest.mark.backends
@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_speak_of_the_arrays_as_they_are(backend: str, at_once) -> None:
    n = xp.symbol("x", shape=(None, 3)).shape[0]
    x, y = xp.symbol("x", shape=(n, 3)), xp.symbol("y", shape=(n,))
    f = xp.function([x, y], x + xp.expand_dims(y, axis=1), backend=backend)
    said = []
    for given in (np.ones((5, 3)), np.asfortranarray(np.ones((5, 3)))):
        with pytest.raises(LazyArrError) as caught:
            f(given, np.ones(4))
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.fast
def test_a_program_is_made_when_it_is_worth_it() -> None:
    x = xp.symbol("x", shape=(None, None))
    f = xp.function([x], x + 1, backend="c")
    small, large = np.ones((20, 30)), np.ones((400, 500))
    for a in (small.T, large[:, ::2], large):
        f(a)
    assert not f.program.layouts.programs
    assert not f.program.layouts.copied
    f(large.T)
    assert f.program.layouts.copied == {(Layout((1, 0), ()),): large.nbytes}
    assert not f.program.layouts.programs
    f.program.layouts.enough = large.nbytes
    f(large.T)
    assert list(f.program.layouts.programs) == [(Layout((1, 0), ()),)]


@pytest.mark.fast
def test_layouts() -> None:
    a = np.zeros((100, 20, 30))
    assert layout_of(a) is None
    assert layout_of(a[:, ::2]) is None
    assert layout_of(np.broadcast_to(a[:1], a.shape)) is None
    assert layout_of(a.transpose(1, 2, 0)) == Layout((2, 0, 1), ())
    assert layout_of(a[::-1].T) == Layout((2, 1, 0), (2,))
    assert layout_of(np.zeros(10**5)[::-1]) == Layout((0,), (0,))


@pytest.mark.backends
def test_named_dims_and_state(at_once) -> None:
    x = xp.symbol("x", dims=("a", "b"), shape=(None, None), dtype=xp.float64)
    total = xp.shared(np.asfortranarray(np.zeros((6, 4))))
    f = xp.function([x], (x - x.mean("b")).sum("a"), updates=[(total, total + x.data)], backend="c")
    a = np.asfortranarray(np.random.default_rng(0).normal(size=(6, 4)))
    for _ in range(2):
        got = f(a)
    np.testing.assert_allclose(np.asarray(got), (a - a.mean(1, keepdims=True)).sum(0), rtol=1e-12)
    np.testing.assert_array_equal(total.get_value(), a + a)
