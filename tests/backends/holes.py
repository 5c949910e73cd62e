"""What a backend does not do yet. The tables may only shrink.

A row of `HOLES` is a strict expected failure of `test_ops.py`, a row of `REFERENCE` an op that must
be seen to run by its reference there: when it is mended the row has to go.
"""

HOLES: dict[tuple[str, str], str] = {}

# Ops that only their reference computes so far, and where.
_LOOPS = ("c", "numba")
_UNCOMPILED = {
    "no sorting in generated code yet": (("numba",), ("sort", "argsort", "search_sorted")),
    "made of singular values by their reference": (_LOOPS, ("cofactor", "pinv", "matrix_rank")),
    "no decompositions but LU in generated code yet": (
        ("numba",),
        ("slogdet", "eigh", "eig", "svd", "qr"),
    ),
    "no words for decompositions yet": (
        ("jax", "torch"),
        (
            *("inv", "solve_system", "det", "cofactor", "slogdet", "eigh", "eig", "svd", "qr"),
            *("pinv", "matrix_rank"),
        ),
    ),
    "no Fourier transforms in generated code yet": (
        ("numba",),
        ("fourier", "fourier_half", "fourier_real"),
    ),
}
REFERENCE: dict[tuple[str, str], str] = {
    (backend, op): reason
    for reason, (backends, ops) in _UNCOMPILED.items()
    for op in ops
    for backend in backends
}

# Dtypes for which a framework has no kernels in most ops: there the reference may run.
WITHOUT_KERNELS = {
    *(("torch", dtype) for dtype in ("uint16", "uint64")),
    *(("numba", dtype) for dtype in ("complex64", "complex128")),
}
