"""Programs that are kept on disk: known structures are not lowered again, in no process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from lazyarr.backends import store
from lazyarr.backends.cache import open_cache
from lazyarr.backends.digest import digest
from lazyarr.errors import BoundsError, DimError, ShapeError
from lazyarr.graph.traverse import Graph
from lazyarr.passes import pipeline
from tests.backend_params import BACKENDS

pytestmark = pytest.mark.backends
ROOT = Path(__file__).resolve().parents[2]
KEPT = [b for b in BACKENDS if getattr(b, "values", (b,))[0] in ("c", "numba")]
kept = pytest.mark.parametrize("backend", KEPT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def own_cache(folder):
    with xp.set_options(cache_dir=folder):
        yield


def done(run):
    """Run, and return how often a program was loaded and how often one was built."""
    before = xp.stats()
    result = run()
    after = xp.stats()
    return result, *(after.get(k, 0) - before.get(k, 0) for k in ("loads", "compiles"))


def curve(scale, name="x", **options):
    """A function with a constant array, an unknown size and a gradient."""
    x = xp.symbol(name, shape=(None,))
    y = xp.sum(xp.exp(x * xp.asarray(np.asarray(scale, float))))
    return xp.function([x], xp.value_and_grad(y, x), **options)


@kept
def test_the_same_structure_is_loaded(backend):
    a = np.array([0.5, 1.0])
    first = curve([2.0, 3.0], backend=backend)
    again, loads, compiles = done(lambda: curve([2.0, 3.0], name="speed", backend=backend))
    assert (loads, compiles) == (1, 0)
    for got, want in zip(again(a), first(a), strict=True):
        np.testing.assert_array_equal(got, want)
    assert again.source == first.source and "part0" in again.explain()


@kept
@pytest.mark.parametrize("size", [None, 10])
def test_what_is_loaded_is_called_as_fast(backend, size):
    """Pickled dtypes are not NumPy's own; what compares them by identity must not mind."""
    x = xp.symbol("x", shape=(size,))
    slow = []
    for _ in range(2):
        f = xp.function([x], x * 3 + 7, backend=backend)
        again = pickle.loads(pickle.dumps(f))
        for g in (f, again):
            assert g.inputs[0].dtype is np.dtype("float64")
            slow.append(g.fast is not None and given_up(g))
    assert not any(slow)


def given_up(f) -> int:
    """How often the short way of calling gives up on an array that fits."""
    counted: list = []
    own = f._call
    f._call = lambda *args, **kwargs: counted.append(1) or own(*args, **kwargs)
    f._shorten()
    f(np.ones(10))
    return len(counted)


@kept
def test_data_is_no_part_of_a_structure(backend):
    curve([2.0, 3.0], backend=backend)
    f, loads, compiles = done(lambda: curve([5.0, 7.0], backend=backend))
    assert (loads, compiles) == (1, 0)
    a = np.array([0.5, 1.0])
    np.testing.assert_allclose(f(a)[0], np.sum(np.exp(a * [5.0, 7.0])))
    np.testing.assert_allclose(f(a)[1], np.exp(a * [5.0, 7.0]) * [5.0, 7.0])


@kept
def test_patterns_of_sizes_are_kept_too(backend):
    def run():
        x, y = xp.symbol("x", shape=(None,)), xp.symbol("y", shape=(None,))
        f = xp.function([x, y], x * y + 5, backend=backend)
        return f([2.0], [3.0, 4.0]), f([2.0, 1.0], [3.0, 4.0])

    done(run)
    (wide, same), loads, compiles = done(run)
    assert (loads, compiles) == (2, 0)
    np.testing.assert_array_equal(wide, [11, 13])
    np.testing.assert_array_equal(same, [11, 9])


@kept
def test_steps_by_reference_are_kept(backend):
    def run():
        x = xp.symbol("x", shape=(None,))
        f = xp.function([x], xp.sum(xp.sort(xp.exp(x)) * x), backend=backend)
        return f([3.0, 1.0, 2.0]), f.fallbacks()

    (want, steps), _, _ = done(run)
    (got, again), loads, compiles = done(run)
    assert compiles == 0 and loads == 1
    assert got == want and again == steps


def test_errors_speak_of_this_graph():
    """Names, sizes and places in messages are those of the graph at hand, not of the first one."""

    def build(n, m):
        x, y = xp.symbol("x", shape=(n,)), xp.symbol("y", shape=(m,))
        return xp.function([x, y], x + y, backend="c")

    def take(name):
        x, i = xp.symbol("x", shape=(None,)), xp.symbol(name, shape=(None,), dtype=xp.int64)
        return xp.function([x, i], xp.take(x, i), backend="c")

    def named(name):
        x = xp.symbol(name, dims="obs", shape=None)
        y = xp.symbol("y", dims="obs", shape=None)
        return xp.function([x, y], x + y, backend="c")

    build("n", "m"), take("i"), named("height")
    f, loads, _ = done(lambda: build("rows", "columns"))
    assert loads == 1
    line = f"{__file__}:{build.__code__.co_firstlineno + 2}"
    with pytest.raises(ShapeError, match="3.*2") as caught:
        f(np.ones(3), np.ones(2))
    assert line in str(caught.value)
    g, loads, _ = done(lambda: take("places"))
    assert loads == 1
    with pytest.raises(BoundsError, match="7"):
        g(np.ones(3), np.array([7]))
    h, loads, _ = done(lambda: named("weight"))
    assert loads == 1
    with pytest.raises(DimError, match="weight"):
        h(np.ones(3), np.ones(2))


@pytest.mark.parametrize("damage", ["garbage", "empty", "other object"])
def test_what_does_not_load_is_made_again(damage):
    curve([1.0, 2.0], backend="c")
    name = curve([1.0, 2.0], backend="c").program._entry(((), ()))
    text = {"garbage": b"\x80junk", "empty": b"", "other object": pickle.dumps("no program")}
    open_cache().discard(name)
    open_cache().build(name, lambda path: (path / "program.pickle").write_bytes(text[damage]))
    f, _, compiles = done(lambda: curve([1.0, 2.0], backend="c"))
    assert compiles == 1
    np.testing.assert_allclose(f(np.zeros(2))[0], 2)
    _, loads, compiles = done(lambda: curve([1.0, 2.0], backend="c"))
    assert (loads, compiles) == (1, 0)


def graph_of(f, *shapes, dtype="float64"):
    inputs = [xp.symbol(f"x{i}", shape=s, dtype=dtype) for i, s in enumerate(shapes)]
    return Graph([x._v for x in inputs], [f(*inputs)._v])


def test_digests_tell_structures_apart():
    a, b = xp.asarray(np.ones(3)), xp.asarray(np.ones(3))
    different = [
        graph_of(lambda x: x + x, (None,)),
        graph_of(lambda x: x - x, (None,)),
        graph_of(lambda x: x + 1, (None,)),
        graph_of(lambda x: x + 2, (None,)),
        graph_of(lambda x: x + 1.0, (None,)),
        graph_of(lambda x: x + x, (3,)),
        graph_of(lambda x: x + x, (None,), dtype="float32"),
        graph_of(lambda x, y: x + y, (None,), (None,)),
        graph_of(lambda x, y: x + y, ("same",), ("same",)),
        graph_of(lambda x, y: y + x, ("same",), ("same",)),
        graph_of(lambda x: xp.sum(x, axis=0), (None, None)),
        graph_of(lambda x: xp.sum(x, axis=1), (None, None)),
        graph_of(lambda x: x + a + b, (3,)),
        graph_of(lambda x: x + a + a, (3,)),
    ]
    names = [digest(g) for g in different]
    assert None not in names and len(set(names)) == len(names)


def test_digests_ignore_names_and_data():
    one = graph_of(lambda x: xp.sin(x) + xp.asarray(np.ones(3)), (None,))
    two = graph_of(lambda x: xp.sin(x) + xp.asarray(np.arange(3.0)), (None,))
    assert digest(one) == digest(two)


def test_functions_from_outside_have_no_digest():
    twice = xp.wrap_numpy(lambda x: 2 * x, lambda x: x)
    assert digest(graph_of(twice, (3,))) is None


def test_nothing_is_kept_while_rules_from_outside_take_part(monkeypatch):
    monkeypatch.setattr(pipeline.ADDED, "version", pipeline.ADDED.version + 1)
    _, loads, compiles = done(lambda: curve([1.0, 2.0], backend="c"))
    assert (loads, compiles) == (0, 1)


def test_the_files_of_the_package_take_part(monkeypatch):
    graph = graph_of(lambda x: x + 1, (None,))
    backend = xp.get_backend("c")
    before = store.name_of(backend, graph)
    monkeypatch.setattr(store, "package_stamp", lambda: "other files")
    assert before != store.name_of(backend, graph)


PROGRAM = """
import sys
import numpy as np
import lazyarr as xp
x = xp.symbol("x", shape=(None,))
data = xp.asarray(np.arange(4.0))
y = xp.sum(xp.exp(x) * data) + xp.sum(xp.std(x) * x)
f = xp.function([x], xp.value_and_grad(y, x), backend=sys.argv[1])
f(np.ones(4))
print(xp.stats()["compiles"], xp.stats()["interpretations"])
"""


@kept
def test_a_new_process_compiles_nothing(backend, tmp_path):
    seen = []
    for seed in ("1", "2", "3"):
        env = {**os.environ, "LAZYARR_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
        env["PYTHONHASHSEED"] = seed
        run = [sys.executable, "-c", PROGRAM, backend]
        ended = subprocess.run(run, capture_output=True, text=True, env=env)
        assert ended.returncode == 0, ended.stderr
        seen.append((ended.stdout.split()[0], len(list(tmp_path.rglob("manifest")))))
    assert seen[0][0] == "1"
    assert seen[1:] == [("0", seen[0][1])] * 2
