"""The launcher as an extension module: memory, speed, and life without it."""

import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

from lazyarr.backends.c import launcher
from lazyarr.backends.c.compiler import load
from lazyarr.backends.c.launcher import Interface, Pointers, extension, launch
from lazyarr.graph.shapes import unknown
from tests.backends.c.programs import F8, SOURCE, address, fail, t

pytestmark = [pytest.mark.fast, pytest.mark.backends]


@pytest.fixture
def module():
    if extension() is None:
        pytest.fail(f"the launcher could not be built: {launcher.obstacle}")
    return extension()


def test_results_own_their_memory(module):
    y = module.empty(F8, (3, 4))
    assert y.flags.owndata
    y[...] = 5
    y.resize((100, 4), refcheck=False)
    assert y.ctypes.data % 64 == 0
    assert (y[:3] == 5).all()
    y.resize((1, 4), refcheck=False)
    assert (y == 5).all()
    assert module.empty(F8, ()).shape == ()
    with pytest.raises(ValueError):
        module.empty(F8, (-1,))
    with pytest.raises(MemoryError):
        module.empty(F8, (1 << 40, 1 << 40))
    with pytest.raises(MemoryError):
        module.empty(F8, (1 << 58,))


def test_freed_memory_is_used_again_up_to_a_limit(module):
    old = module.pool_limit(1 << 24)
    try:
        first = module.empty(F8, (1 << 17,))
        place = first.ctypes.data
        del first
        assert module.empty(F8, (1 << 17,)).ctypes.data == place
        assert module.pool_limit(0) == 1 << 24
        for _ in range(100):
            module.empty(F8, (1 << 17,))
    finally:
        module.pool_limit(old)


def test_tracemalloc_sees_results(module):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = module.empty(F8, (1 << 17,))
        assert tracemalloc.get_traced_memory()[0] - before >= y.nbytes
        del y
        assert tracemalloc.get_traced_memory()[0] - before < 1 << 16
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "code", [(), (9,), (1, 0), (1, 5, 9), (2, 9), (0, 1, 0, 2, 9), (99, 9), (0, 9)]
)
def test_malformed_size_programs_are_refused(module, code):
    with pytest.raises(ValueError, match="malformed"):
        module.Program(
            entry=address("nothing"),
            arena=0,
            table=0,
            n_dims=1,
            inputs=((F8, ((1, 0, 9),)),),
            outputs=((F8, (code,)),),
            checks=(),
            bound=(),
            keep=None,
            on_mismatch=fail,
            on_code=fail,
            returns=0,
            reject_one=False,
        )


def test_a_call_is_quick(module):
    """A tenth of the bars (1 and 2 us) is what a quiet machine needs; shared ones get all of it."""
    n = unknown("n")
    face = Interface((t((n,)),), (t((n,)),), (n.atom,))
    f = launch(face, Pointers(address("add_one"), keep=load(SOURCE)), fail, returns="single")
    x = np.arange(10.0)
    assert _best(f, x) < 1e-6
    many = Interface((t((n,)),) * 20, (t((n,)),), (n.atom,))
    f = launch(many, Pointers(address("nothing"), keep=load(SOURCE)), fail, returns="single")
    assert _best(f, *[x] * 20) < 2e-6


def _best(f, *args, repeat: int = 20, number: int = 500) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            f(*args)
        times.append((time.perf_counter() - start) / number)
    return min(times)


# ------------------------------------------------------------------------------ when it is missing


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("os.environ['LAZYARR_LAUNCHER'] = 'ctypes'", "LAZYARR_LAUNCHER"),
        ("sysconfig.get_path = lambda *_: '/nowhere'", "Python.h"),
        ("launcher.build = refuse", "no linker"),
    ],
)
def test_without_the_extension_calls_work_all_the_same(change, reason):
    code = f"""
import os, sysconfig, ctypes, numpy as np
from lazyarr.backends.c import launcher
from lazyarr.backends.c.compiler import load
from lazyarr.errors import BackendError
from lazyarr.graph.types import TensorType
def refuse(*args):
    raise BackendError("no linker")
library = load({SOURCE!r})
{change}
entry = ctypes.cast(library.nothing, ctypes.c_void_p).value
face = launcher.Interface((TensorType("float64", (3,)),), (TensorType("float64", (3,)),))
f = launcher.launch(face, launcher.Pointers(entry, keep=library), print, returns="single")
assert launcher.extension() is None
assert {reason!r} in launcher.obstacle, launcher.obstacle
assert isinstance(f, launcher.PortableProgram)
assert f(np.ones(3)).shape == (3,)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
