"""Sizes: identity means provably equal, and every size has the value that its parts give."""

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazyarr.errors import ShapeError
from lazyarr.graph import shapes
from lazyarr.graph.shapes import Size, evaluate, unknown

pytestmark = pytest.mark.fast
N, M, K = unknown("n"), unknown("m"), unknown("k")
VALUES = {N.atom: 4, M.atom: 3, K.atom: 1}
_LEAVES = st.one_of(st.integers(-3, 5), st.sampled_from([N, M, K]))
EXPRESSIONS = st.recursive(
    _LEAVES,
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner),
    max_leaves=8,
)


def build(tree: object, env: dict | None = None) -> object:
    """The size (or, with values, the int) that a tree of operations describes."""
    if not isinstance(tree, tuple):
        return env[tree.atom] if env is not None and isinstance(tree, Size) else tree
    symbol, a, b = tree[0], build(tree[1], env), build(tree[2], env)
    return a + b if symbol == "+" else a - b if symbol == "-" else a * b


@given(EXPRESSIONS)
def test_value_of_any_polynomial(tree: object) -> None:
    assert evaluate(build(tree), VALUES) == build(tree, VALUES)


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_equal_polynomials_are_one_object(x: object, y: object, z: object) -> None:
    a, b, c = build(x), build(y), build(z)
    pairs = [(a + b, b + a), (a * b, b * a), ((a + b) * c, a * c + b * c), ((a - b) + b, a)]
    for left, right in pairs:
        assert left is right or (isinstance(left, int) and left == right)


@given(EXPRESSIONS, st.sampled_from([N, M, K]), _LEAVES)
def test_replacing_agrees_with_evaluating(tree: object, atom: Size, new: object) -> None:
    size = build(tree)
    env = {**VALUES, atom.atom: evaluate(new, VALUES)}
    assert evaluate(shapes.replace(size, {atom.atom: new}), VALUES) == evaluate(size, env)


def test_folding() -> None:
    assert N + 0 is N and N * 1 is N and N * 0 == 0 and N - N == 0
    assert (2 * N + 6) // 2 is N + 3
    assert (N * M) // N is M
    assert N // N == 1
    assert evaluate((N + 1) // 2, VALUES) == 2
    assert (N + 1) // 2 is (1 + N) // 2  # computed sizes are interned too
    assert 7 // N is not 7 // M


def test_names_do_not_matter() -> None:
    assert unknown("n") is not unknown("n")
    assert unknown("n") != unknown("n")


@given(st.integers(0, 6), st.none() | st.integers(-8, 8), st.none() | st.integers(-8, 8),
       st.sampled_from([None, 1, 2, 3, -1, -2]))  # fmt: skip
def test_slices_of_unknown_sizes_are_pythons(n: int, start, stop, step) -> None:
    begin, length, by = shapes.slice_of(N, slice(start, stop, step))
    env = {N.atom: n}
    picked = list(range(n))[slice(start, stop, step)]
    assert evaluate(length, env) == len(picked)
    first = evaluate(begin, env)
    assert [first + by * i for i in range(len(picked))] == picked


def test_broadcasting() -> None:
    assert shapes.broadcast((N, 1), (3,)) == (N, 3)
    assert shapes.broadcast((N,), (N,)) == (N,)
    assert shapes.broadcast() == ()
    assert shapes.broadcast((N,), (3,)) == (3,)  # to be verified when called
    both = shapes.broadcast((N,), (M,))[0]
    for n, m, want in ((4, 4, 4), (1, 3, 3), (3, 1, 3), (1, 1, 1), (0, 1, 0)):
        assert evaluate(both, {N.atom: n, M.atom: m}) == want
    with pytest.raises(ShapeError, match="4 and 3"):
        evaluate(both, {N.atom: 4, M.atom: 3})
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(2,\)"):
        shapes.broadcast((2, 3), (2,))


def test_binding() -> None:
    assert shapes.bind([(N, 2), (M,)], [(5, 2), (7,)]) == {N.atom: 5, M.atom: 7}
    with pytest.raises(ShapeError, match="n is 5 in one input and 6 in another"):
        shapes.bind([(N,), (N,)], [(5,), (6,)])
    with pytest.raises(ShapeError, match="m is not known"):
        evaluate(N * M, {N.atom: 1})


def test_atoms_of_computed_sizes() -> None:
    size = (N + M) // 2 + shapes.maximum(K, 2)
    assert shapes.atoms(size) == {N.atom, M.atom, K.atom}
    assert shapes.lone_atom(N) is N.atom
    assert shapes.lone_atom(2 * N) is None
    with pytest.raises(ShapeError, match="single"):
        (N + 1).atom  # noqa: B018


def test_text() -> None:
    assert str(2 * N * M - 3) in ("2*n*m - 3", "2*m*n - 3")
    assert str((N + 1) // 2) == "floordiv(n + 1, 2)"


def test_pickle_keeps_what_is_equal_equal() -> None:
    a, b, c = pickle.loads(pickle.dumps((N + 1, N, (N + M) // 2)))
    assert a is b + 1
    assert shapes.atoms(c) >= shapes.atoms(b)


def test_product_and_slices_of_known_sizes() -> None:
    assert shapes.product([2, N, 3]) is 6 * N
    for n, step in itertools.product((0, 1, 5), (1, -1, 2)):
        begin, length, _ = shapes.slice_of(n, slice(None, None, step))
        assert length == len(range(n)[::step])
        assert isinstance(begin, int)
    with pytest.raises(ShapeError, match="step"):
        shapes.slice_of(3, slice(None, None, 0))
