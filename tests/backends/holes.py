"""What a backend does not do yet. The tables may only shrink.

A row of `HOLES` is a strict expected failure of `test_ops.py`, a row of `REFERENCE` an op that must
be seen to run by its reference there: when it is mended the row has to go.
"""

HOLES: dict[tuple[str, str], str] = {}

# Ops that only their reference computes so far, and where.
_UNCOMPILED: dict[str, tuple] = {
    "no words for decompositions yet": (
        ("jax", "torch"),
        ("inv", "solve_system", "det", "slogdet", "eigh", "eig", "svd", "qr"),
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
}
