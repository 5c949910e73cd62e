"""Contractions and linear algebra. Source: Array API standard 2025.12, linear algebra extension.

`contract` is the one product: two operands with a label per axis, summed over the labels that the
result lacks. `matmul`, `tensordot` and `vecdot` are expressions of it.
"""

import math

import numpy as np

from lazyarr.errors import DTypeError, LinAlgError, ShapeError
from lazyarr.graph import dtypes, shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.op import common_dtype
from lazyarr.graph.ops._declare import axis_of, composite, declare, operands_of, variable_of
from lazyarr.graph.ops.complex_numbers import conjugate
from lazyarr.graph.ops.creation import FAR
from lazyarr.graph.ops.indexing import slice_axis
from lazyarr.graph.registry import OPS, op
from lazyarr.graph.types import TensorType

MOST_PRODUCTS = 1 << 20  # that one array holds
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _agree(a: object, b: object, what: str) -> object:
    """Return the common size of a contracted or shared axis."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ShapeError(f"{what}: sizes {a} and {b} differ.")
    return a if isinstance(a, int) else b


def _contract_infer(types, params):
    a_labels, b_labels, out = params["spec"]
    sizes: dict[int, object] = {}
    for labels, t in ((a_labels, types[0]), (b_labels, types[1])):
        for label, size in zip(labels, t.shape, strict=True):
            sizes[label] = size if label not in sizes else _agree(sizes[label], size, "contract")
    dtype = dtypes.promote(types[0].dtype, types[1].dtype)
    return TensorType(dtype, tuple(sizes[label] for label in out))


def einsum_text(spec: tuple) -> str:
    """Return a contraction in einsum's notation.

    >>> einsum_text(((0, 1), (1, 2), (0, 2)))
    'ab,bc->ac'
    """
    a, b, out = ("".join(_LETTERS[i] for i in labels) for labels in spec)
    return f"{a},{b}->{out}"


def absorbed_sum(absorb, concat, a, b, summed):
    """Sum `absorb(a, b)` over the first axes, without an array of many products at once.

    `absorb` and `concat(arrays, axis)` are those of the namespace of two arrays of one rank.
    """
    shape = tuple(n if m == 1 else m for n, m in zip(a.shape, b.shape, strict=True))
    axis = max(range(len(shape)), key=shape.__getitem__)
    if math.prod(shape) <= MOST_PRODUCTS:
        return absorb(a, b).sum(tuple(range(summed)))
    parts = []
    for half in (slice(0, shape[axis] // 2), slice(shape[axis] // 2, None)):
        here = (slice(None),) * axis + (half,)
        halves = (x if x.shape[axis] == 1 else x[here] for x in (a, b))
        parts.append(absorbed_sum(absorb, concat, *halves, summed))
    return parts[0] + parts[1] if axis < summed else concat(parts, axis - summed)


def _contract_reference(a, b, *, spec, absorb):
    plain = np.einsum(einsum_text(spec), a, b)
    if not absorb or not np.isnan(np.sum(plain)):
        return plain
    order = tuple(dict.fromkeys((*spec[0], *spec[1])))
    summed = [k for k in order if k not in spec[2]]
    order = (*summed, *spec[2])
    spread = []
    for x, labels in ((a, spec[0]), (b, spec[1])):
        own = tuple(k for k in order if k in labels)
        x = np.einsum(einsum_text((labels, (), own)).replace(",", ""), x)
        spread.append(np.expand_dims(x, tuple(i for i, k in enumerate(order) if k not in own)))
    return absorbed_sum(OPS["absorb"].reference, np.concatenate, *spread, len(summed))


def _contract_vjp(g, y, a, b, *, spec, absorb):
    la, lb, lo = spec
    return _weighted(g, b, (lo, lb, la)), _weighted(g, a, (lo, la, lb))


def _contract_jvp(tangents, y, a, b, *, spec, absorb):
    la, lb, lo = spec
    ta, tb = tangents
    by_a = None if ta is None else _weighted(ta, b, spec)
    by_b = None if tb is None else _weighted(tb, a, (lb, la, lo))
    return by_b if by_a is None else by_a if by_b is None else op.add(by_a, by_b)


def _weighted(g, x, spec):
    """A cotangent times an operand: a contraction, or `absorb` where nothing is summed."""
    labels_g, labels_x, out = spec
    if {*labels_g, *labels_x} - {*out} or len({*out}) != len(out):
        return op.contract(g, x, spec, absorb=True)
    return op.absorb(_over(g, labels_g, out), _over(x, labels_x, out))


def _over(x, labels, out):
    """An operand with the axes of labels in the order of the result, size 1 for others."""
    order = sorted(range(len(labels)), key=lambda i: out.index(labels[i]))
    if order != list(range(len(order))):
        x = op.permute_dims(x, tuple(order))
    missing = tuple(i for i, k in enumerate(out) if k not in labels)
    return op.expand_dims(x, axis=missing) if missing else x


@declare(
    "contraction",
    infer=_contract_infer,
    reference=_contract_reference,
    vjp=_contract_vjp,
    jvp=_contract_jvp,
    public=False,
)
def contract(a, b, spec, /, *, absorb=False):
    """The product of two arrays, summed over the labels that the result lacks.

    `spec` holds a tuple of labels per operand and one for the result; no operand has a label of its
    own that the result lacks too. With `absorb` the products are those of the op of that name: 0
    where a factor is 0. All backends take plain products first, and where a sum is NaN those.
    """
    labels_a, labels_b, out = spec
    known_a, known_b = set(labels_b) | set(out), set(labels_a) | set(out)
    if not (set(labels_a) <= known_a and set(labels_b) <= known_b):
        raise ShapeError(f"contract: {einsum_text(spec)} sums a label of one operand alone.")
    spec = tuple(labels_a), tuple(labels_b), tuple(out)
    return (a, b), {"spec": spec, "absorb": bool(absorb)}


def _numeric_pair(x1, x2, what):
    """Two arrays of numbers; booleans beside numbers count as 0 and 1, as in a product."""
    x1, x2 = (variable_of(v) for v in operands_of(x1, x2))
    a, b = x1.type.dtype, x2.type.dtype
    if a == b == dtypes.bool_:
        raise DTypeError(f"{what} takes numeric dtypes, got bool; cast with astype.")
    if dtypes.bool_ in (a, b):
        x1, x2 = (op.astype(x1, b), x2) if a == dtypes.bool_ else (x1, op.astype(x2, a))
    return x1, x2


def _without_ones(x: Variable, labels: tuple, other: dict) -> tuple[Variable, tuple]:
    """Drop batch axes of size 1 where the other operand is longer: they broadcast."""
    ones = tuple(
        i for i, label in enumerate(labels)
        if x.shape[i] == 1 and label in other and other[label] != 1
    )  # fmt: skip
    if not ones:
        return x, labels
    return op.squeeze(x, ones), tuple(v for i, v in enumerate(labels) if i not in ones)


def _product(a: Variable, b: Variable, la: tuple, lb: tuple, out: tuple, shared: set) -> Variable:
    """Contract two operands whose labels in `shared` are batch axes that may broadcast."""
    sizes_a = {k: s for k, s in zip(la, a.shape, strict=True) if k in shared}
    sizes_b = {k: s for k, s in zip(lb, b.shape, strict=True) if k in shared}
    a, la = _without_ones(a, la, sizes_b)
    b, lb = _without_ones(b, lb, sizes_a)
    return op.contract(a, b, (la, lb, out))


def _matmul(a, b):
    lead_a, lead_b = max(a.ndim - 2, 0), max(b.ndim - 2, 0)
    rank = max(lead_a, lead_b)
    batch = tuple(range(rank))
    row, inner, col = rank, rank + 1, rank + 2
    la = batch[rank - lead_a :] + ((row, inner) if a.ndim > 1 else (inner,))
    lb = batch[rank - lead_b :] + ((inner, col) if b.ndim > 1 else (inner,))
    out = batch + ((row,) if a.ndim > 1 else ()) + ((col,) if b.ndim > 1 else ())
    return _product(a, b, la, lb, out, set(batch))


@composite(expand=_matmul, accepts="numeric", facts=frozenset({"positional"}))
def matmul(x1, x2, /):
    """Matrix product over the last two axes, batched over the others."""
    x1, x2 = _numeric_pair(x1, x2, "matmul")
    if not x1.ndim or not x2.ndim:
        raise ShapeError("matmul: operands need at least 1 dimension; use multiply for scalars.")
    inner = x2.shape[-2] if x2.ndim > 1 else x2.shape[0]
    _agree(x1.shape[-1], inner, f"matmul of {x1.shape} and {x2.shape}")
    return (x1, x2), {}


def _tensordot(a, b, *, axes):
    over_a, over_b = axes
    la = tuple(range(a.ndim))
    lb = tuple(over_a[over_b.index(i)] if i in over_b else a.ndim + i for i in range(b.ndim))
    out = tuple(i for i in la if i not in over_a) + tuple(i for i in lb if i >= a.ndim)
    return op.contract(a, b, (la, lb, out))


@composite(expand=_tensordot, accepts="numeric", facts=frozenset({"positional"}))
def tensordot(x1, x2, /, *, axes=2):
    """Sum of products over pairs of axes: a count of trailing and leading ones, or two lists."""
    x1, x2 = _numeric_pair(x1, x2, "tensordot")
    if isinstance(axes, int):
        axes = (tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes)))
    over_a = tuple(axis_of(x1, i) for i in axes[0])
    over_b = tuple(axis_of(x2, i) for i in axes[1])
    if len(over_a) != len(over_b):
        raise ShapeError(f"tensordot: {len(over_a)} and {len(over_b)} axes cannot be paired.")
    for i, j in zip(over_a, over_b, strict=True):
        _agree(x1.shape[i], x2.shape[j], f"tensordot over axes {i} and {j}")
    return (x1, x2), {"axes": (over_a, over_b)}


def _vecdot(a, b, *, axis):
    a = conjugate(a)
    rank = max(a.ndim, b.ndim)
    la = tuple(range(rank - a.ndim, rank))
    lb = tuple(range(rank - b.ndim, rank))
    over = rank + axis
    out = tuple(i for i in range(rank) if i != over)
    return _product(a, b, la, lb, out, set(out))


@composite(expand=_vecdot, accepts="numeric", since="2022.12", facts=frozenset({"positional"}))
def vecdot(x1, x2, /, *, axis=-1):
    """Sum of conj(x1) * x2 along one axis, batched over the others."""
    x1, x2 = _numeric_pair(x1, x2, "vecdot")
    for x in (x1, x2):
        axis_of(x, axis)
    _agree(x1.shape[axis], x2.shape[axis], f"vecdot of {x1.shape} and {x2.shape}")
    return (x1, x2), {"axis": axis_of(x1, axis) - x1.ndim}


def adjoint(x: Variable) -> Variable:
    """Record the conjugate transpose of matrices."""
    return conjugate(op.matrix_transpose(x))


# -- triangles ------------------------------------------------------------------------------------


def _triangle(x, *, k, lower):
    rows = op.expand_dims(op.arange(x.shape[-2]), axis=1)
    cols = op.arange(x.shape[-1])
    reach = op.add(rows, k)
    keep = op.less_equal(cols, reach) if lower else op.greater_equal(cols, reach)
    return op.where(keep, x, 0)


def _matrices(x: object, what: str) -> Variable:
    x = variable_of(x)
    if x.ndim < 2:
        raise ShapeError(f"{what} needs at least 2 dimensions, got shape {x.shape}.")
    return x


@composite(expand=lambda x, *, k: _triangle(x, k=k, lower=True), jvp="linear")
def tril(x, /, *, k=0):
    """The lower triangle of the last two axes, zeros above the k-th diagonal."""
    return (_matrices(x, "tril"),), {"k": min(max(int(k), -FAR), FAR)}


@composite(expand=lambda x, *, k: _triangle(x, k=k, lower=False), jvp="linear")
def triu(x, /, *, k=0):
    """The upper triangle of the last two axes, zeros below the k-th diagonal."""
    return (_matrices(x, "triu"),), {"k": min(max(int(k), -FAR), FAR)}


def _diagonal(x, *, offset):
    keys = [slice(None)] * (x.ndim - 2)
    rows = slice(max(-offset, 0), None)
    cols = slice(max(offset, 0), None)
    if offset:
        x = op.basic_index(x, (*keys, rows, cols))
    n, m = x.shape[-2:]
    if n is not m and n != m:
        shorter = n + m - shapes.maximum(n, m)
        for axis in (x.ndim - 2, x.ndim - 1):
            x = slice_axis(x, axis, 0, shorter)
    return op.main_diagonal(x)


@composite(expand=_diagonal, name="diagonal")
def diagonal(x, /, *, offset=0):
    """A diagonal of the last two axes."""
    x = variable_of(x)
    if x.ndim < 2:
        raise ShapeError(f"diagonal needs at least 2 dimensions, got shape {x.shape}.")
    return (x,), {"offset": int(offset)}


@composite(expand=lambda x, *, offset, dtype: op.sum(
    op.diagonal(x, offset=offset), axis=-1, dtype=dtype))  # fmt: skip
def trace(x, /, *, offset=0, dtype=None):
    """The sum of a diagonal of the last two axes."""
    return (variable_of(x),), {"offset": int(offset), "dtype": dtype}


# -- decompositions and solvers -------------------------------------------------------------------


def square_matrix(x: object, what: str) -> Variable:
    """Return an operand that holds square matrices of a floating dtype."""
    x = variable_of(x)
    if x.type.dtype not in dtypes.CATEGORIES["floating-point"]:
        raise DTypeError(f"{what} takes floating-point dtypes, got {x.type.dtype}.")
    if x.ndim < 2:
        raise ShapeError(f"{what} needs at least 2 dimensions, got shape {x.shape}.")
    _agree(x.shape[-1], x.shape[-2], f"{what} of a matrix that is not square")
    return x


def _cholesky_reference(x):
    try:
        out = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        raise LinAlgError(f"cholesky: matrix {_first_bad(x)} is not positive definite.") from None
    if np.isnan(np.diagonal(out, axis1=-2, axis2=-1)).any():
        raise LinAlgError(f"cholesky: matrix {_first_bad(x)} holds NaN.")
    return out


def _first_bad(x: np.ndarray) -> str:
    for index in np.ndindex(x.shape[:-2]):
        try:
            if np.isnan(np.diagonal(np.linalg.cholesky(x[index]))).any():
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            return f"at batch index {index}" if index else "argument"
    return "argument"


def _cholesky_vjp(g, y, x):
    """Reverse rule with a Hermitian cotangent. Source: Murray 2016, arXiv 1602.07527."""
    across = conjugate(y)
    *batch, i, j, k = range(y.ndim + 1)
    spec = ((*batch, i, j), (*batch, j, k), (*batch, i, k))
    inner = op.tril(op.contract(adjoint(y), conjugate(g), spec, absorb=True))
    n, dtype = x.shape[-1], dtypes.real_of(x.dtype)
    inner = op.multiply(inner, op.subtract(1, op.multiply(op.eye(n, dtype=dtype), 0.5)))
    half = solve_lower(across, adjoint(inner), trans=True)
    full = solve_lower(across, adjoint(half), trans=True)
    return (conjugate(op.multiply(op.add(full, adjoint(full)), 0.5)),)


@declare(
    "library",
    name="cholesky_lower",
    infer=lambda types, params: types[0],
    reference=_cholesky_reference,
    vjp=_cholesky_vjp,
    facts=frozenset({"matrix", "square"}),
    public=False,
)
def cholesky_lower(x, /):
    """The lower Cholesky factor; only the lower triangle of x is read."""
    return (x,), {}


@composite(
    expand=lambda x, *, upper: adjoint(op.cholesky_lower(x)) if upper else op.cholesky_lower(x),
    accepts="floating-point",
)
def cholesky(x, /, *, upper=False):
    """Cholesky factor of symmetric positive-definite matrices over the last two axes.

    Raises LinAlgError, which names the batch index, when a matrix is not positive definite.
    """
    return (square_matrix(x, "cholesky"),), {"upper": bool(upper)}


def _solve_reference(a, b, *, lower, trans, unit):
    """Substitution, one row at a time."""
    if trans:
        a, lower = np.swapaxes(a, -1, -2), not lower
    n = a.shape[-1]
    out = np.array(np.broadcast_to(b, b.shape))
    for i in range(n) if lower else range(n - 1, -1, -1):
        done = slice(0, i) if lower else slice(i + 1, n)
        out[..., i, :] -= np.einsum("...k,...kj->...j", a[..., i, done], out[..., done, :])
        if not unit:
            out[..., i, :] /= a[..., i, i, None]
    return out


def _solve_vjp(g, y, a, b, *, lower, trans, unit):
    back = op.solve_matrix(a, g, lower=lower, trans=not trans, unit=unit)
    left, right = (y, back) if trans else (back, y)
    outer = op.negative(op.matmul(left, op.matrix_transpose(right)))
    k = (-1 if lower else 1) if unit else 0
    return (op.tril(outer, k=k) if lower else op.triu(outer, k=k)), back


def _solve_infer(types, params):
    a, b = types
    _agree(a.shape[-1], b.shape[-2], f"solve_triangular of {a.shape} and {b.shape}")
    return b


@declare(
    "library",
    infer=_solve_infer,
    reference=_solve_reference,
    vjp=_solve_vjp,
    facts=frozenset({"matrix", "square"}),
    public=False,
)
def solve_matrix(a, b, /, *, lower, trans, unit):
    """Solve a triangular system for the columns of b; batch axes are equal."""
    return (a, b), {"lower": lower, "trans": trans, "unit": unit}


def solve_lower(a: Variable, b: Variable, trans: bool) -> Variable:
    """Record the solution of a lower triangular system, or of its transpose."""
    return op.solve_matrix(a, b, lower=True, trans=trans, unit=False)


def _solve_triangular(a, b, *, lower, trans, unit):
    column = b.ndim == 1
    if column:
        b = op.expand_dims(b, axis=1)
    dtype = common_dtype(op.add, (a.type, b.type))
    a, b = (v if v.dtype == dtype else op.astype(v, dtype) for v in (a, b))
    batch = a.shape[:-2] if a.ndim > b.ndim else b.shape[:-2]
    a, b = (
        v if v.shape[:-2] == batch else op.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (a, b)
    )
    out = op.solve_matrix(a, b, lower=lower, trans=trans, unit=unit)
    return op.squeeze(out, out.ndim - 1) if column else out


@composite(expand=_solve_triangular, accepts="floating-point")
def solve_triangular(a, b, /, *, lower=True, trans=False, unit_diagonal=False):
    """Solve a x = b (or its transpose) for a triangular a; b is a vector or a matrix of columns."""
    a, b = square_matrix(a, "solve_triangular"), variable_of(b)
    return (a, b), {"lower": bool(lower), "trans": bool(trans), "unit": bool(unit_diagonal)}
