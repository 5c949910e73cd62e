"""Linear algebra on XTensors: `dims` says which dimensions are rows and columns, never guessed.

The rows and columns are brought last, the positional function is recorded over all other dims as
batch, and the result is named.
"""

from lazyarr.errors import DimError
from lazyarr.graph.registry import op
from lazyarr.namespace.xtensor import XTensor, as_xtensor, wrap_named
from lazyarr.xtensor.kinds import joined_sizes
from lazyarr.xtensor.moving import broadcast, transpose
from lazyarr.xtensor.naming import unnamed
from lazyarr.xtensor.types import as_dims


def _matrix_dims(x: XTensor, dims: object, what: str) -> tuple[str, str]:
    if dims is None:
        raise DimError(f"{what} needs dims=(rows, columns), two of {x.dims}.")
    pair = as_dims(dims)
    if len(pair) != 2:
        raise DimError(f"{what} needs two dims, rows and columns, got {pair}.")
    for d in pair:
        x.get_axis_num(d)
    return pair


def _batch(x: XTensor, *core: str) -> tuple[str, ...]:
    return tuple(d for d in x.dims if d not in core)


def cholesky(x: object, /, *, dims=None, upper: bool = False) -> XTensor:
    """Return the Cholesky factor of the matrices over two dims, which stay the last two."""
    x = as_xtensor(x)
    rows, cols = _matrix_dims(x, dims, "cholesky")
    order = (*_batch(x, rows, cols), rows, cols)
    factor = op.cholesky(unnamed(transpose(x._v, order)), upper=upper)
    return wrap_named(op.with_dims(factor, order), (x,))


def solve_triangular(
    a: object, b: object, /, *, dims=None, lower: bool = True, trans: bool = False,
    unit_diagonal: bool = False,
) -> XTensor:  # fmt: skip
    """Return the solution x of a x = b for triangular a over dims (rows, columns).

    b has the rows (with `trans` the columns), and the result the other dim in their place; every
    other dim of a and b is batch.
    """
    a, b = as_xtensor(a), as_xtensor(b)
    rows, cols = _matrix_dims(a, dims, "solve_triangular")
    given, found = (cols, rows) if trans else (rows, cols)
    if given not in b.dims:
        raise DimError(f"solve_triangular: b has dims {b.dims}, it needs {given!r}.")
    if found in b.dims:
        raise DimError(f"solve_triangular: b already has {found!r}, which the result will have.")
    batch = _batch(a, rows, cols)
    columns = tuple(d for d in b.dims if d != given and d not in batch)
    sizes = {d: s for d, s in joined_sizes((a._v.type, b._v.type)).items() if d in batch}
    matrix = transpose(a._v, (*batch, rows, cols))
    wide = broadcast(b._v, {**sizes, given: b.sizes[given], **{d: b.sizes[d] for d in columns}})
    right = unnamed(wide)
    lead = tuple(sizes.values())
    n = right.shape[len(lead)]
    flat = op.reshape(right, (*lead, n, -1)) if len(columns) != 1 else right
    out = op.solve_triangular(
        unnamed(matrix), flat, lower=lower, trans=trans, unit_diagonal=unit_diagonal
    )
    if len(columns) != 1:
        out = op.reshape(out, right.shape)
    return wrap_named(op.with_dims(out, (*batch, found, *columns)), (a, b))


def diagonal(x: object, /, *, dims=None, offset: int = 0, out_dim: str | None = None) -> XTensor:
    """Return a diagonal over two dims, as a last dim `out_dim` (the rows' name unless given)."""
    x = as_xtensor(x)
    rows, cols = _matrix_dims(x, dims, "diagonal")
    batch = _batch(x, rows, cols)
    taken = op.diagonal(unnamed(transpose(x._v, (*batch, rows, cols))), offset=offset)
    return wrap_named(op.with_dims(taken, (*batch, out_dim or rows)), (x,))
