"""Decompositions, solvers and what they give. Source: Array API standard 2025.12, linear algebra.

Batched over leading axes. Derivatives are those of the cited sources; conjugates follow the
convention of `complex_numbers`: a rule of the literature takes and gives conjugated cotangents.
"""

import numpy as np

from lazyarr.errors import ChoiceError, DTypeError, GradientError, LinAlgError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.op import NO_GRADIENT
from lazyarr.graph.ops._declare import composite, declare, variable_of
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.ops.control import picks
from lazyarr.graph.ops.linalg import adjoint, square_matrix
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType, TupleType

SQUARE = frozenset({"matrix", "square"})
MATRIX = frozenset({"matrix"})


# -- small expressions ----------------------------------------------------------------------------


def product(*factors: Variable) -> Variable:
    """Record a product of matrices from the left."""
    out = factors[0]
    for f in factors[1:]:
        out = op.matmul(out, f)
    return out


def columns(v: Variable) -> Variable:
    """Record a vector that scales the columns of a matrix by broadcasting."""
    return op.expand_dims(v, axis=v.ndim - 1)


def rows(v: Variable) -> Variable:
    """Record a vector that scales the rows of a matrix by broadcasting."""
    return op.expand_dims(v, axis=v.ndim)


def _identity(n, dtype):
    return op.eye(n, dtype=dtype)


def _smaller(shape: tuple) -> object:
    """The smaller of the last two sizes."""
    n, m = shape[-2:]
    return n if n is m or n == m else n + m - shapes.maximum(n, m)


def matrix_operand(x: object, what: str) -> Variable:
    """Return an operand that holds matrices of a floating dtype."""
    x = variable_of(x)
    if x.type.dtype not in dtypes.CATEGORIES["floating-point"]:
        raise DTypeError(f"{what} takes floating-point dtypes, got {x.type.dtype}.")
    if x.ndim < 2:
        raise ShapeError(f"{what} needs at least 2 dimensions, got shape {x.shape}.")
    return x


def _guarded(name: str, run):
    """A reference whose failure is a LinAlgError of lazyarr, which names the batch index."""

    def reference(x, *more, **params):
        try:
            return run(x, *more, **params)
        except np.linalg.LinAlgError as error:
            place = _first_failing(run, x, more, params)
            raise LinAlgError(f"{name}{place}: {error}") from None

    return reference


def _first_failing(run, x, more, params) -> str:
    for index in np.ndindex(x.shape[:-2]):
        try:
            run(x[index], *(m[index] for m in more), **params)
        except np.linalg.LinAlgError:
            return f" of the matrix at batch index {index}" if index else ""
    return ""


# -- inverse, solve, determinants -----------------------------------------------------------------


def _inv_vjp(g, y, x):
    t = op.matrix_transpose(y)
    return (op.negative(product(t, g, t)),)


@declare(
    "library",
    infer=lambda types, params: types[0],
    reference=_guarded("inv", np.linalg.inv),
    vjp=_inv_vjp,
    facts=SQUARE,
)
def inv(x, /):
    """The inverse of square matrices; LinAlgError for a singular one."""
    return (square_matrix(x, "inv"),), {}


def _solve_vjp(g, y, a, b):
    back = op.solve_system(op.matrix_transpose(a), g)
    return op.negative(op.matmul(back, op.matrix_transpose(y))), back


@declare(
    "library",
    infer=lambda types, params: types[1],
    reference=_guarded("solve", np.linalg.solve),
    vjp=_solve_vjp,
    facts=SQUARE,
    public=False,
)
def solve_system(a, b, /):
    """The solution of a x = b for the columns of b; batch axes and dtypes are equal."""
    return (a, b), {}


def _solve(a, b):
    vector = b.ndim == 1
    if vector:
        b = op.expand_dims(b, axis=1)
    dtype = dtypes.promote(a.type.dtype, b.type.dtype)
    a, b = (v if v.type.dtype == dtype else op.astype(v, dtype) for v in (a, b))
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    a, b = (
        v if v.shape[:-2] == batch else op.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (a, b)
    )
    out = op.solve_system(a, b)
    return op.squeeze(out, out.ndim - 1) if vector else out


@composite(expand=_solve, facts=frozenset({"positional"}))
def solve(x1, x2, /):
    """The solution of x1 x = x2; x2 is one vector, or matrices of columns."""
    x1, x2 = square_matrix(x1, "solve"), variable_of(x2)
    if x2.type.dtype not in dtypes.CATEGORIES["floating-point"]:
        raise DTypeError(f"solve takes floating-point dtypes, got {x2.type.dtype}.")
    if not x2.ndim:
        raise ShapeError("solve: the right-hand side needs at least 1 dimension.")
    rows_of = x2.shape[0] if x2.ndim == 1 else x2.shape[-2]
    n = x1.shape[-1]
    if isinstance(n, int) and isinstance(rows_of, int) and n != rows_of:
        raise ShapeError(f"solve: {x1.shape} does not fit the right-hand side {x2.shape}.")
    return (x1, x2), {}


def _scalar_infer(types, params):
    return TensorType(types[0].dtype, types[0].shape[:-2])


@declare(
    "library",
    infer=_scalar_infer,
    reference=np.linalg.det,
    vjp=lambda g, y, x: (op.multiply(rows(rows(g)), op.cofactor(x)),),
    facts=SQUARE,
)
def det(x, /):
    """The determinant of square matrices; its derivative is the adjugate, also if singular."""
    return (square_matrix(x, "det"),), {}


def _cofactor(x):
    """Transposed adjugate: det(U Vh) U adj(S) Vh, conjugated; adj(S) multiplies other values."""
    u, s, vh = picks(op.svd(x, full_matrices=False))
    turn = op.multiply(op.det(u), op.det(vh))
    eye = _identity(x.shape[-1], dtypes.bool_)
    others = op.prod(op.where(eye, 1, op.expand_dims(s, axis=s.ndim - 1)), axis=s.ndim)
    full = op.matmul(op.multiply(u, columns(op.astype(others, x.type.dtype))), vh)
    return op.multiply(conjugate(full), rows(rows(turn)))


def _cofactor_vjp(h, y, x):
    """From C = det(x) x^-T: (sum(h C) C - C h^T C) / det(x); where that is 0, no division."""
    total = op.sum(op.multiply(h, y), axis=(x.ndim - 2, x.ndim - 1), keepdims=True)
    inner = product(y, op.matrix_transpose(h), y)
    d = rows(rows(op.det(x)))
    regular = op.absorb(op.subtract(op.multiply(total, y), inner), op.divide(1, d))
    return (op.where(op.equal(d, 0), _cofactor_slope(h, x), regular),)


def _cofactor_slope(h, x):
    """The same from an SVD x = U S V^H, by products of all singular values but two."""
    u, s, vh = picks(op.svd(x, full_matrices=False))
    eye = _identity(x.shape[-1], dtypes.bool_)
    pair = op.logical_or(op.expand_dims(eye, axis=1), op.expand_dims(eye, axis=0))
    spread = op.expand_dims(s, axis=(s.ndim - 1, s.ndim))
    others = op.prod(op.where(pair, 1, spread), axis=s.ndim + 1)
    g = product(adjoint(u), h, adjoint(vh))
    cross = op.absorb(op.matrix_transpose(g), others)
    own = op.multiply(op.where(eye, 0, others), columns(op.main_diagonal(g)))
    along = op.multiply(_identity(x.shape[-1], s.dtype), columns(op.sum(own, axis=s.ndim)))
    turn = rows(rows(op.multiply(op.det(u), op.det(vh))))
    inner = op.where(eye, along, op.negative(cross))
    return op.multiply(turn, product(conjugate(u), inner, conjugate(vh)))


def _by_transposing(tangents, y, x):
    """Forward mode from the vjp: through the expansion, vectors of equal values would be NaN."""
    return NotImplemented


@composite(expand=_cofactor, vjp=_cofactor_vjp, jvp=_by_transposing, facts=SQUARE, public=False)
def cofactor(x, /):
    """The matrix of cofactors, det(x) times the transposed inverse, also of a singular matrix."""
    return (x,), {}


def _slogdet_infer(types, params):
    t = types[0]
    batch = t.shape[:-2]
    return TupleType((TensorType(t.dtype, batch), TensorType(dtypes.real_of(t.dtype), batch)))


def _slogdet_vjp(ctx, g, y, x):
    """d log|det| = Re tr(x^-1 dx); the sign turns with its imaginary part."""
    weight = g(1)
    if x.type.dtype.kind == "c":
        sign = op.pick(y, 0)
        turn = op.imag(op.multiply(g(0), sign))
        weight = op.add(op.astype(weight, x.type.dtype), op.multiply(turn, 1j))
    return (op.multiply(rows(rows(weight)), op.matrix_transpose(op.inv(x))),)


@declare(
    "library",
    infer=_slogdet_infer,
    reference=lambda x: tuple(np.linalg.slogdet(x)),
    vjp=_slogdet_vjp,
    facts=SQUARE,
)
def slogdet(x, /):
    """Sign and logarithm of the absolute value of the determinant."""
    return (square_matrix(x, "slogdet"),), {}


# -- eigenvalues ----------------------------------------------------------------------------------


def _gaps(values: Variable) -> Variable:
    """1 / (w_j - w_i), 0 on the diagonal, NaN where values are equal."""
    gap = op.subtract(columns(values), rows(values))
    off = op.logical_not(_identity(values.shape[-1], dtypes.bool_))
    inverse = op.divide(1, op.where(op.equal(gap, 0), op.full((), np.nan, dtype=gap.dtype), gap))
    return op.where(off, inverse, 0)


def _eigh_infer(types, params):
    t = types[0]
    values = TensorType(dtypes.real_of(t.dtype), t.shape[:-1])
    return TupleType((values, t))


def _eigh_vjp(ctx, g, y, x):
    """Source: Giles 2008, collected matrix derivative results; the cotangent is Hermitian."""
    w, v = picks(y)
    inner = op.absorb(op.matmul(adjoint(v), conjugate(g(1))), _gaps(w))
    eye = _identity(x.shape[-1], w.dtype)
    full = product(v, op.add(inner, op.multiply(eye, columns(g(0)))), adjoint(v))
    return (conjugate(op.multiply(op.add(full, adjoint(full)), 0.5)),)


@declare(
    "library",
    infer=_eigh_infer,
    reference=_guarded("eigh", lambda x: tuple(np.linalg.eigh(x))),
    vjp=_eigh_vjp,
    facts=SQUARE,
)
def eigh(x, /):
    """Eigenvalues in rising order and eigenvectors of symmetric or Hermitian matrices.

    Only the lower triangle is read; the derivative of eigenvectors of equal eigenvalues is NaN.
    """
    return (square_matrix(x, "eigh"),), {}


@composite(expand=lambda x: op.pick(op.eigh(x), 0))
def eigvalsh(x, /):
    """Eigenvalues of symmetric or Hermitian matrices in rising order."""
    return (square_matrix(x, "eigvalsh"),), {}


def _complex_of(dtype):
    return dtypes.promote(dtype, dtypes.complex64)


def _eig_infer(types, params):
    t = types[0]
    dtype = _complex_of(t.dtype)
    return TupleType((TensorType(dtype, t.shape[:-1]), TensorType(dtype, t.shape)))


def _eig_vjp(ctx, g, y, x):
    """Source: Boeddeker et al. 2017, arXiv 1701.00392, section 4.2; vectors have norm 1."""
    w, v = picks(y)
    vh, gw, gv = adjoint(v), conjugate(g(0)), conjugate(g(1))
    turned = op.matmul(vh, gv)
    eye = _identity(x.shape[-1], dtypes.real_of(w.dtype))
    along = op.astype(op.multiply(eye, op.real(turned)), w.dtype)
    inner = op.absorb(op.subtract(turned, op.matmul(op.matmul(vh, v), along)), conjugate(_gaps(w)))
    full = op.solve(vh, op.matmul(op.add(inner, op.multiply(eye, columns(gw))), vh))
    out = conjugate(full)
    return (out if x.type.dtype.kind == "c" else op.real(out),)


def _eig_reference(x):
    w, v = np.linalg.eig(x)
    dtype = _complex_of(x.dtype)
    return w.astype(dtype), v.astype(dtype)


@declare(
    "library",
    infer=_eig_infer,
    reference=_guarded("eig", _eig_reference),
    vjp=_eig_vjp,
    facts=SQUARE,
    since="2025.12",
)
def eig(x, /):
    """Eigenvalues and eigenvectors of square matrices, always complex."""
    return (square_matrix(x, "eig"),), {}


@composite(expand=lambda x: op.pick(op.eig(x), 0), since="2025.12")
def eigvals(x, /):
    """Eigenvalues of square matrices, always complex."""
    return (square_matrix(x, "eigvals"),), {}


# -- singular values ------------------------------------------------------------------------------


def _svd_infer(types, params):
    t = types[0]
    *batch, m, n = t.shape
    k = _smaller(t.shape)
    whole = params["full_matrices"]
    return TupleType((
        TensorType(t.dtype, (*batch, m, m if whole else k)),
        TensorType(dtypes.real_of(t.dtype), (*batch, k)),
        TensorType(t.dtype, (*batch, n if whole else k, n)),
    ))  # fmt: skip


def _svd_vjp(ctx, g, y, x, *, full_matrices):
    """Source: Townsend 2016, differentiating the singular value decomposition; Wan, Zhang 2019."""
    m, n = x.shape[-2:]
    if full_matrices and m is not n and m != n:
        raise GradientError(
            "svd with full_matrices=True of a matrix that is not square has no derivative; "
            "use svd(x, full_matrices=False), or svdvals."
        )
    u, s, vh = picks(y)
    gu, gs, gvh = conjugate(g(0)), g(1), conjugate(g(2))
    v = adjoint(vh)
    gv = adjoint(gvh)
    gaps = _squared_gaps(s)
    real = u.type.dtype.kind != "c"
    left, right = op.matmul(adjoint(u), gu), op.matmul(vh, gv)
    skew_u, skew_v = (op.subtract(t, adjoint(t)) for t in (left, right))
    core = op.add(
        op.multiply(op.absorb(skew_u, gaps), columns(s)),
        op.multiply(op.absorb(skew_v, gaps), rows(s)),
    )
    eye = _identity(s.shape[-1], s.dtype)
    core = op.add(core, op.multiply(eye, columns(gs)))
    over = op.where(op.equal(s, 0), np.nan, op.divide(1, s))
    if not real:  # the phase that u and v share
        phase = op.multiply(op.imag(op.main_diagonal(left)), 1j)
        core = op.add(core, op.multiply(eye, columns(op.absorb(phase, over))))
    out = product(u, core, vh)
    scaled_u = op.absorb(op.subtract(gu, product(u, left)), columns(over))
    scaled_v = op.absorb(op.subtract(gv, product(v, right)), columns(over))
    out = op.add(out, op.add(op.matmul(scaled_u, vh), op.matmul(u, adjoint(scaled_v))))
    return (conjugate(out),)


def _squared_gaps(s: Variable) -> Variable:
    """1 / (s_j^2 - s_i^2), 0 on the diagonal, NaN where values are equal."""
    gap = op.multiply(op.subtract(columns(s), rows(s)), op.add(columns(s), rows(s)))
    off = op.logical_not(_identity(s.shape[-1], dtypes.bool_))
    return op.where(off, op.divide(1, op.where(op.equal(gap, 0), np.nan, gap)), 0)


@declare(
    "library",
    infer=_svd_infer,
    reference=_guarded(
        "svd", lambda x, *, full_matrices: tuple(np.linalg.svd(x, full_matrices=full_matrices))
    ),
    vjp=_svd_vjp,
    facts=MATRIX,
)
def svd(x, /, *, full_matrices=True):
    """Left vectors, singular values in falling order and adjoint right vectors."""
    return (matrix_operand(x, "svd"),), {"full_matrices": bool(full_matrices)}


@composite(expand=lambda x: op.pick(op.svd(x, full_matrices=False), 1))
def svdvals(x, /):
    """Singular values in falling order."""
    return (matrix_operand(x, "svdvals"),), {}


# -- QR, pseudo-inverse, rank ---------------------------------------------------------------------


def _qr_infer(types, params):
    t = types[0]
    *batch, m, n = t.shape
    k = m if params["mode"] == "complete" else _smaller(t.shape)
    return TupleType((TensorType(t.dtype, (*batch, m, k)), TensorType(t.dtype, (*batch, k, n))))


def _qr_vjp(ctx, g, y, x, *, mode):
    """Source: Walter, Lehmann 2010; Liao et al. 2019, arXiv 1903.09650."""
    m, n = x.shape[-2:]
    square = m is n or m == n
    wide = isinstance(m, int) and isinstance(n, int) and m < n
    if wide or (mode == "complete" and not square):
        raise GradientError(
            f"qr with mode={mode!r} of matrices of shape {(m, n)} has no derivative; it has one "
            "for mode='reduced' and no fewer rows than columns."
        )
    q, r = picks(y)
    gq, gr = conjugate(g(0)), conjugate(g(1))
    inner = op.subtract(op.matmul(r, adjoint(gr)), op.matmul(adjoint(gq), q))
    low = op.tril(inner, k=-1)
    sym = op.add(low, adjoint(low))
    diagonal = op.multiply(_identity(n, x.type.dtype), inner)
    if x.type.dtype.kind == "c":
        diagonal = op.multiply(_identity(n, r.type.dtype), op.real(inner))
    middle = op.add(gq, op.matmul(q, op.add(sym, diagonal)))
    solved = op.solve_triangular(r, adjoint(middle), lower=False)
    return (conjugate(adjoint(solved)),)


@declare(
    "library",
    infer=_qr_infer,
    reference=lambda x, *, mode: tuple(np.linalg.qr(x, mode=mode)),
    vjp=_qr_vjp,
    facts=MATRIX,
)
def qr(x, /, *, mode="reduced"):
    """An orthonormal and an upper triangular factor; mode is "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ChoiceError(f"qr: mode is 'reduced' or 'complete', not {mode!r}.")
    return (matrix_operand(x, "qr"),), {"mode": mode}


def _largest_ignored(x, s, rtol):
    """The largest singular value that counts as 0: by a tolerance, or by the precision of x."""
    first = op.equal(op.arange(s.shape[-1]), 0)  # there may be none
    top = op.sum(op.where(first, s, 0), axis=-1, keepdims=True)
    if rtol:
        return op.multiply(op.expand_dims(rtol[0], axis=rtol[0].ndim), top)
    m, n = x.shape[-2:]
    size = m if m is n else shapes.maximum(m, n)
    eps = float(np.finfo(x.type.dtype).eps)
    return op.multiply(op.multiply(op.full((), size, dtype=s.type.dtype), eps), top)


def _pinv(x, *rtol):
    u, s, vh = picks(op.svd(conjugate(x), full_matrices=False))
    kept = op.greater(s, _largest_ignored(x, s, rtol))
    inverse = op.where(kept, op.divide(1, op.where(kept, s, 1)), 0)
    scaled = op.multiply(op.matrix_transpose(u), rows(op.astype(inverse, x.type.dtype)))
    return op.matmul(op.matrix_transpose(vh), scaled)


def _pinv_vjp(g, y, x, *rtol):
    """Source: Golub, Pereyra 1973, the differentiation of pseudo-inverses."""
    h, p, a = conjugate(g), y, x
    ph, hh = adjoint(p), adjoint(h)
    left = op.subtract(hh, product(a, p, hh))
    right = op.subtract(hh, product(hh, p, a))
    out = op.negative(product(ph, h, ph))
    out = op.add(out, product(left, p, ph))
    out = op.add(out, product(ph, p, right))
    return (conjugate(out), *[None] * len(rtol))


def _with_tolerance(x, rtol, what):
    x = matrix_operand(x, what)
    return (x,) if rtol is None else (x, variable_of(rtol))


@composite(expand=_pinv, vjp=_pinv_vjp)
def pinv(x, /, *, rtol=None):
    """The pseudo-inverse; singular values up to rtol times the largest count as 0."""
    return _with_tolerance(x, rtol, "pinv"), {}


def _matrix_rank(x, *rtol):
    s = op.svdvals(x)
    above = op.greater(s, _largest_ignored(x, s, rtol))
    return op.sum(above, axis=-1, dtype=dtypes.int64)


@composite(
    expand=_matrix_rank,
    vjp=NO_GRADIENT("the result is a count, which carries no derivative"),
)
def matrix_rank(x, /, *, rtol=None):
    """How many singular values are above rtol times the largest."""
    return _with_tolerance(x, rtol, "matrix_rank"), {}


def _matrix_power(x, *, n):
    if n < 0:
        x, n = op.inv(x), -n
    if n == 0:
        return op.broadcast_to(_identity(x.shape[-1], x.type.dtype), x.shape)
    out = None
    while n:
        if n & 1:
            out = x if out is None else op.matmul(out, x)
        n >>= 1
        x = op.matmul(x, x) if n else x
    return out


@composite(expand=_matrix_power)
def matrix_power(x, n, /):
    """The n-th power of square matrices, by squaring; a negative one of the inverse."""
    return (square_matrix(x, "matrix_power"),), {"n": int(n.__index__())}
