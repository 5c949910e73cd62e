"""What a backend does not do yet. The tables may only shrink.

A row of `HOLES` is a strict expected failure of `test_ops.py`, a row of `REFERENCE` an op that must
be seen to run by its reference there: when it is mended the row has to go.
"""

HOLES: dict[tuple[str, str], str] = {}

_SORTING = "no sorting in generated code yet"
REFERENCE: dict[tuple[str, str], str] = {
    (backend, op): _SORTING
    for backend in ("c", "numba", "jax", "torch")
    for op in ("sort", "argsort", "search_sorted")
}

# Dtypes for which a framework has no kernels in most ops: there the reference may run.
WITHOUT_KERNELS = {("torch", "uint16"), ("torch", "uint64")}
