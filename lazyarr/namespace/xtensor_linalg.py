"""Linear algebra on XTensors: `dims` says which dimensions are rows and columns, never guessed.

The rows and columns are brought last, the positional function is recorded over all other dims as
batch, and the result is named.
"""

from collections.abc import Callable, Sequence

from lazyarr.errors import ArgumentError, DimError
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import OPS, op
from lazyarr.namespace.xtensor import XTensor, as_xtensor, dot, wrap_named
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
    return _solved(
        a, b, given, found,
        lambda m, right: op.solve_triangular(
            m, right, lower=lower, trans=trans, unit_diagonal=unit_diagonal
        ),
        (rows, cols),
    )  # fmt: skip


def _solved(
    a: XTensor, b: XTensor, given: str, found: str, solver: Callable, matrix_dims: tuple = ()
) -> XTensor:
    """Solve with the matrices of a, for every column of b; `found` takes the place of `given`."""
    rows, cols = matrix_dims or (given, found)
    if given not in b.dims:
        raise DimError(f"the right side has dims {b.dims}, it needs {given!r}.")
    if found in b.dims:
        raise DimError(f"the right side already has {found!r}, which the result will have.")
    batch = _batch(a, rows, cols)
    columns = tuple(d for d in b.dims if d != given and d not in batch)
    sizes = {d: s for d, s in joined_sizes((a._v.type, b._v.type)).items() if d in batch}
    matrix = transpose(a._v, (*batch, rows, cols))
    wide = broadcast(b._v, {**sizes, given: b.sizes[given], **{d: b.sizes[d] for d in columns}})
    right = unnamed(wide)
    lead = tuple(sizes.values())
    n = right.shape[len(lead)]
    flat = op.reshape(right, (*lead, n, -1)) if len(columns) != 1 else right
    out = solver(unnamed(matrix), flat)
    if len(columns) != 1:
        out = op.reshape(out, right.shape)
    return wrap_named(op.with_dims(out, (*batch, found, *columns)), (a, b))


# -- functions of one matrix, or a few ------------------------------------------------------------

# The dims of each result: r rows, c columns, o the new dim `out_dim`.
FORMS: dict[str, tuple[str, ...]] = {
    "inv": ("rc",),
    "pinv": ("cr",),
    "det": ("",),
    "matrix_rank": ("",),
    "trace": ("",),
    "slogdet": ("", ""),
    "eigvalsh": ("c",),
    "svdvals": ("o",),
    "eigh": ("c", "rc"),
    "svd": ("ro", "o", "oc"),
    "qr": ("ro", "oc"),
}
REDUCED = {"svd": {"full_matrices": False}, "qr": {"mode": "reduced"}}


def _form(name: str) -> Callable:
    """The named form of a function of matrices: rows and columns last, results named."""
    shapes, record = FORMS[name], OPS[name]

    def call(x, /, *, dims=None, out_dim="component", **params):
        x = as_xtensor(x)
        rows, cols = _matrix_dims(x, dims, name)
        for key, value in REDUCED.get(name, {}).items():
            if params.setdefault(key, value) != value:
                raise ArgumentError(f"{name} of named arrays takes {key}={value!r}.")
        batch = _batch(x, rows, cols)
        made = record(unnamed(transpose(x._v, (*batch, rows, cols))), **params)
        names = {"r": rows, "c": cols, "o": out_dim}
        nodes = picks(made) if len(shapes) > 1 else (made,)
        out = tuple(
            _named(node, (*batch, *(names[k] for k in form)), x)
            for node, form in zip(nodes, shapes, strict=True)
        )
        return out[0] if len(out) == 1 else out

    call.__name__, call.__doc__ = name, record.doc
    return call


def _named(node: Variable, dims: tuple, x: XTensor) -> XTensor:
    """A result under its dims, with the coordinates of x that lie on them."""
    named = op.with_dims(node, dims)
    return x._of(named, x._coords.within(dims), x._name, x._attrs)


inv, pinv, det = _form("inv"), _form("pinv"), _form("det")
matrix_rank, trace, slogdet = _form("matrix_rank"), _form("trace"), _form("slogdet")
eigvalsh, svdvals, eigh = _form("eigvalsh"), _form("svdvals"), _form("eigh")
svd, qr = _form("svd"), _form("qr")


def solve(a: object, b: object, /, *, dims=None) -> XTensor:
    """Return the solution x of a x = b for a over dims (rows, columns).

    b has the rows, and the result the columns in their place; every other dim is batch.
    """
    a, b = as_xtensor(a), as_xtensor(b)
    rows, cols = _matrix_dims(a, dims, "solve")
    return _solved(a, b, rows, cols, lambda m, right: op.solve(m, right))


def _norm(name: str, x: object, dims: object, **params: object) -> XTensor:
    x = as_xtensor(x)
    many = x.dims if dims is None else as_dims(dims)
    order = (*_batch(x, *many), *many)
    plain = unnamed(transpose(x._v, order))
    if name == "vector_norm":
        params["axis"] = tuple(range(len(order) - len(many), len(order)))
    return _named(OPS[name](plain, **params), _batch(x, *many), x)


def vector_norm(x: object, /, *, dims=None, ord: float = 2) -> XTensor:  # noqa: A002
    """Return the norm over dims (all unless named) of the elements as one vector."""
    return _norm("vector_norm", x, dims, ord=ord)


def matrix_norm(x: object, /, *, dims=None, ord: object = "fro") -> XTensor:  # noqa: A002
    """Return the norm of the matrices over dims (rows, columns)."""
    x = as_xtensor(x)
    return _norm("matrix_norm", x, _matrix_dims(x, dims, "matrix_norm"), ord=ord)


def matmul(a: object, b: object, /, *, dims=None) -> XTensor:
    """Return the matrix product over dims ((rows, shared), (shared, columns))."""
    if dims is None or len(dims) != 2:
        raise DimError("matmul needs dims=((rows, shared), (shared, columns)).")
    (rows, left), (right, cols) = (as_dims(d) for d in dims)
    a, b = as_xtensor(a), as_xtensor(b)
    if left != right:
        b = b.rename({right: left})
    return dot(a, b, dim=left).transpose(..., rows, cols)


def einsum(dims: Sequence, *operands: object) -> XTensor:
    """Return the sum of products: `einsum([("i", "j"), ("j", "k"), ("i", "k")], a, b)`.

    One tuple of dims for each operand, and one for the result (without it, dims that several
    operands have are summed over). Dims that no tuple names are batch.
    """
    handles = [as_xtensor(x) for x in operands]
    if len(dims) not in (len(handles), len(handles) + 1):
        raise ArgumentError(f"einsum: {len(dims)} tuples of dims for {len(handles)} operands.")
    named = [as_dims(d) for d in dims]
    for x, own in zip(handles, named, strict=False):
        for d in own:
            x.get_axis_num(d)
    uses = [d for own in named[: len(handles)] for d in own]
    if len(named) > len(handles):
        kept = set(named[-1])
    else:
        kept = {d for d in uses if uses.count(d) == 1}
    return dot(*handles, dim=[d for d in dict.fromkeys(uses) if d not in kept])


def diagonal(x: object, /, *, dims=None, offset: int = 0, out_dim: str | None = None) -> XTensor:
    """Return a diagonal over two dims, as a last dim `out_dim` (the rows' name unless given)."""
    x = as_xtensor(x)
    rows, cols = _matrix_dims(x, dims, "diagonal")
    batch = _batch(x, rows, cols)
    taken = op.diagonal(unnamed(transpose(x._v, (*batch, rows, cols))), offset=offset)
    return wrap_named(op.with_dims(taken, (*batch, out_dim or rows)), (x,))
