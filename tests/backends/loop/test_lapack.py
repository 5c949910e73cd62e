"""Addresses of BLAS and LAPACK, with and without SciPy."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from lazyarr.backends.loop import lapack

pytestmark = [pytest.mark.fast, pytest.mark.backends]


def test_the_address_is_the_function():
    pytest.importorskip("scipy")
    table = lapack.pointers(["dpotrf", "no_such_function", "dgemm"])
    assert table[0] and table[2]
    assert table[1] is None
    dpotrf = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(table[0])
    matrix = np.array([[4.0, 2.0], [2.0, 5.0]])
    n, info = ctypes.c_int(2), ctypes.c_int(7)
    dpotrf(b"U", ctypes.byref(n), matrix.ctypes.data, ctypes.byref(n), ctypes.byref(info))
    assert info.value == 0
    np.testing.assert_allclose(np.tril(matrix), np.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]))


def test_no_names_give_a_table_all_the_same():
    assert ctypes.addressof(lapack.pointers([]))


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_scipy_every_address_is_null():
    run(
        "import sys\n"
        "sys.modules['scipy'] = None\n"
        "from lazyarr.backends.loop import lapack\n"
        "assert list(lapack.pointers(['dgemm'])) == [None]\n"
    )


def test_scipy_linalg_can_be_imported_afterwards():
    pytest.importorskip("scipy")
    run(
        "import sys\n"
        "from lazyarr.backends.loop import lapack\n"
        "before = lapack.address('dgemm'), lapack.address('dpotrf')\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "import scipy.linalg.cython_blas\n"
        "assert scipy.linalg.cython_blas.__name__ == 'scipy.linalg.cython_blas'\n"
        "import scipy.linalg.cython_lapack as c\n"
        "lapack.address.cache_clear(); lapack._capsules.cache_clear()\n"
        "assert before == (lapack.address('dgemm'), lapack.address('dpotrf'))\n"
        "assert scipy.linalg.cholesky([[4.0]])[0, 0] == 2\n"
    )
