"""Functions of other libraries that routines call: BLAS and LAPACK, and NumPy's Fourier transforms.

A name is LAPACK's, its first letter for the dtype (s, d, c, z), or that letter and `@` before the
name of a loop of `numpy.fft`. Where a program runs without one, its pointer is NULL.
"""

import numpy as np

# routine -> the functions that it calls, without their letter; `@name.data` belongs to `@name`
EXTERNALS: dict[str, tuple[str, ...]] = {
    "cholesky": ("potrf",),
    "solve_triangular": ("trsm",),
    "gemm": ("gemm", "syrk", "trmm"),
    "gemv": ("gemv",),
    "solve": ("getrf", "getrs"),
    "inverse": ("getrf", "getri"),
    "determinant": ("getrf",),
    "slogdet": ("getrf",),
    "qr": ("geqrf", "orgqr"),
    "svd": ("gesdd",),
    "eigh": ("syevd",),
    "eig": ("geev",),
    "fourier": ("@fft", "@fft.data", "@ifft", "@ifft.data"),
    "fourier_half": ("@rfft_n_even", "@rfft_n_even.data", "@rfft_n_odd", "@rfft_n_odd.data"),
    "fourier_real": ("@irfft", "@irfft.data"),
}
# Routines that have no loops of their own to take instead.
NEEDED = frozenset({"qr", "svd", "eigh", "eig", "fourier", "fourier_half", "fourier_real"})
REAL = frozenset({"sort", "argsort", "search"})  # routines that compare elements
COMPLEX = {"syevd": "heevd", "orgqr": "ungqr"}  # names that differ for complex matrices
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def externals_of(routine: str, dtype: np.dtype) -> tuple[str, ...]:
    """Return the names of the functions that a routine may call for a dtype.

    >>> externals_of("eigh", np.dtype("complex128"))
    ('zheevd',)
    """
    names = EXTERNALS.get(routine, ())
    if dtype.kind == "c":
        names = tuple(COMPLEX.get(name, name) for name in names)
    return tuple(LETTERS[dtype.name] + name for name in names)
