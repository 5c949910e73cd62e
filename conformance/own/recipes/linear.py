"""Linear algebra: products against NumPy, decompositions by what they promise."""

import numpy as np

from conformance.own.check import Mismatch
from conformance.own.compare import TOLERANCE
from conformance.own.recipes._recipe import Case, DType, recipe, size_of
from conformance.own.recipes.reducing import accumulated, wider


def _matrix(d, category: str = "floating", rows: int | None = None, cols: int | None = None):
    """A stack of matrices with small whole numbers."""
    batch = d.shape(0, 1, 2, 1)
    n = d.integer(1, 3) if rows is None else rows
    m = d.integer(1, 3) if cols is None else cols
    return d.array(d.dtype(category), (*batch, n, m), -4, 4)


def square(d, category: str = "floating") -> np.ndarray:
    """A stack of square matrices with a strong diagonal."""
    n = d.integer(1, 3)
    x = _matrix(d, category, n, n)
    return (np.round(x) + 20 * np.eye(n)).astype(x.dtype)


def hermitian(d) -> np.ndarray:
    """A stack of positive definite matrices."""
    x = square(d)
    return ((x + np.conj(np.swapaxes(x, -1, -2))) / 2).astype(x.dtype)


def near(found: np.ndarray, expected: np.ndarray, what: str, scale: float) -> None:
    """Demand that a product of factors gives the matrix back."""
    limit = TOLERANCE[str(found.dtype)] * scale * 20
    if found.shape != expected.shape:
        raise Mismatch(f"{what} has shape {found.shape}, expected {expected.shape}")
    if found.size and not np.max(np.abs(found - expected)) <= limit:
        error = np.max(np.abs(found - expected))
        raise Mismatch(f"{what} differs by {error:.3g}, expected at most {limit:.3g}")


def adjoint(x: np.ndarray) -> np.ndarray:
    """The conjugate transpose of each matrix."""
    return np.conj(np.swapaxes(x, -1, -2))


@recipe("matmul", "linalg.matmul")
def matmul(d, name):
    """Matrices, stacks of them, and vectors."""
    a, b = d.pair("numeric")
    n, k, m = d.integer(0, 3), d.integer(0, 3), d.integer(0, 3)
    s1, s2 = d.broadcastable(2)
    s1, s2 = d.choice([((*s1, n, k), (*s2, k, m)), ((k,), (k,)), ((n, k), (k,)), ((k,), (k, m))])
    x1, x2 = d.array(a, s1, 0, 3), d.array(b, s2, 0, 3)
    return Case([x1, x2], {}, np.matmul(wider(x1), wider(x2)), scale=100)


@recipe("vecdot", "linalg.vecdot")
def vecdot(d, name):
    """The first operand is conjugated."""
    a, b = d.pair("numeric")
    s1, s2 = d.broadcastable(2)
    k = d.integer(0, 3)
    x1, x2 = d.array(a, (*s1, k), 0, 3), d.array(b, (*s2, k), 0, 3)
    answer = np.sum(np.conj(wider(x1)) * wider(x2), axis=-1)
    return Case([x1, x2], {"axis": -1} if d.boolean() else {}, answer, scale=100)


@recipe("tensordot", "linalg.tensordot")
def tensordot(d, name):
    """A number of axes, or pairs of them."""
    a, b = d.pair("numeric")
    p, q, r, s = (d.integer(1, 3) for _ in range(4))
    x1 = d.array(a, (p, q, r), 0, 3)
    shape, axes = d.choice(
        [((q, r, s), 2), ((r, s), 1), ((s,), 0), ((r, s, p), ((0, 2), (2, 0))),
         ((q, s), ((1,), (0,)))]
    )  # fmt: skip
    x2 = d.array(b, shape, 0, 3)
    answer = np.tensordot(wider(x1), wider(x2), axes)
    return Case([x1, x2], {"axes": axes}, answer, scale=300)


@recipe("linalg.outer")
def outer(d):
    """Two vectors."""
    a, b = d.pair("numeric")
    x1, x2 = d.array(a, (d.integer(0, 3),), 0, 9), d.array(b, (d.integer(0, 3),), 0, 9)
    return Case([x1, x2], {}, np.outer(wider(x1), wider(x2)), scale=100)


@recipe("linalg.cross")
def cross(d):
    """Vectors of three along an axis."""
    a, b = d.pair("numeric")
    if "u" in (a[0], b[0]):
        a = b = "int64"
    batch = d.shape(0, 2, 3, 1)
    x1, x2 = d.array(a, (*batch, 3), -5, 5), d.array(b, (*batch, 3), -5, 5)
    answer = np.cross(wider(x1), wider(x2))
    return Case([x1, x2], {}, answer, scale=100)


@recipe("linalg.diagonal")
def diagonal(d):
    """Any diagonal of each matrix."""
    x, offset = _matrix(d, "any"), d.integer(-2, 2)
    return Case([x], {"offset": offset}, np.diagonal(x, offset, -2, -1))


@recipe("linalg.trace")
def trace(d):
    """The sum along a diagonal, perhaps in another dtype."""
    x, offset = _matrix(d, "numeric"), d.integer(-2, 2)
    kwargs: dict = {"offset": offset}
    if d.boolean():
        kwargs["dtype"] = DType(accumulated(str(x.dtype)))
    answer = np.trace(wider(x), offset, -2, -1)
    return Case([x], kwargs, np.asarray(answer), scale=20)


@recipe("linalg.det", "linalg.slogdet")
def determinants(d, key):
    """By cofactors in NumPy's precision."""
    x = square(d)
    sign, log = np.linalg.slogdet(wider(x))
    answer = np.asarray(sign * np.exp(log)) if key.endswith(".det") else (sign, log)
    return Case([x], {}, answer, scale=1e5 if key.endswith(".det") else 10)


@recipe("linalg.inv")
def inv(d):
    """Well-conditioned matrices."""
    x = square(d)
    return Case([x], {}, np.linalg.inv(wider(x)), scale=10)


@recipe("linalg.pinv")
def pinv(d):
    """Any rectangle of full rank."""
    x = square(d)
    x = x[..., : d.integer(1, x.shape[-1])]
    return Case([x], {}, np.linalg.pinv(wider(x)), scale=100)


@recipe("linalg.solve")
def solve(d):
    """A vector, or a stack of matrices, on the right."""
    x1 = square(d)
    vector = d.boolean()
    n = x1.shape[-1]
    shape = (n,) if vector else (*x1.shape[:-2], n, d.integer(1, 2))
    x2 = d.array(str(x1.dtype), shape, -9, 9)
    right = wider(x2)[:, None] if vector else wider(x2)
    answer = np.linalg.solve(wider(x1), right)
    return Case([x1, x2], {}, answer[..., 0] if vector else answer, scale=10)


@recipe("linalg.matrix_power")
def matrix_power(d):
    """Powers of either sign, and 0."""
    x, n = square(d), d.integer(-2, 3)
    answer = np.linalg.matrix_power(wider(x), n)
    return Case([x, n], {}, answer, scale=size_of(answer) * 10)


@recipe("linalg.matrix_rank")
def matrix_rank(d):
    """Full, or one less."""
    x = square(d)
    if x.shape[-1] > 1 and d.boolean():
        x = x.copy()
        x[..., -1] = x[..., 0]
    return Case([x], {}, np.asarray(np.linalg.matrix_rank(wider(x), rtol=1e-4)))


@recipe("linalg.matrix_norm")
def matrix_norm(d):
    """Every order of the standard."""
    x = _matrix(d)
    order = d.choice(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
    keep = d.boolean()
    answer = np.linalg.norm(wider(x), ord=order, axis=(-2, -1), keepdims=keep)
    kwargs = {"ord": order, "keepdims": keep}
    return Case([x], kwargs, np.asarray(answer), scale=1e3 if order in ("nuc", 2, -2) else 50)


@recipe("linalg.vector_norm")
def vector_norm(d):
    """Any axes; orders that are whole, infinite, or not whole."""
    x = d.array(d.dtype("floating"), d.shape(1, 3, 3, 1), nonzero=True)
    axis = d.choice([None, d.axis(x.ndim), tuple(range(x.ndim))])
    order, keep = d.choice([2, 1, 0, np.inf, -np.inf, 3, 0.5, -1]), d.boolean()
    whole = axis if axis is not None else tuple(range(x.ndim))
    size = np.abs(wider(x))
    if order in (np.inf, -np.inf):
        answer = (np.max if order > 0 else np.min)(size, axis=whole, keepdims=keep)
    elif order == 0:
        answer = np.sum(size != 0, axis=whole, keepdims=keep).astype(float)
    else:
        answer = np.sum(size**order, axis=whole, keepdims=keep) ** (1 / order)
    kwargs = {"axis": axis, "ord": order, "keepdims": keep}
    return Case([x], kwargs, answer, scale=size_of(answer) * 10)


@recipe("linalg.cholesky")
def cholesky(d):
    """Either triangle."""
    x, upper = hermitian(d), d.boolean()
    answer = np.linalg.cholesky(wider(x))
    return Case([x], {"upper": upper}, adjoint(answer) if upper else answer, scale=10)


@recipe("linalg.qr")
def qr(d):
    """Orthonormal columns, an upper triangle, and the matrix as their product."""
    x, mode = _matrix(d), d.choice(["reduced", "complete"])
    n, m = x.shape[-2:]
    k = min(n, m) if mode == "reduced" else n

    def verify(out: list) -> None:
        q, r = out
        near(q @ r, x, "Q @ R", size_of(x))
        near(adjoint(q) @ q, _eye(q, k), "adjoint(Q) @ Q", 1)
        near(r, np.triu(r), "R below the diagonal", 1e-9)
        if q.shape[-2:] != (n, k) or r.shape[-2:] != (k, m):
            raise Mismatch(f"Q and R have shapes {q.shape} and {r.shape} in mode {mode}")

    return Case([x], {"mode": mode}, None, verify=verify)


@recipe("linalg.svd")
def svd(d):
    """Orthonormal factors around a descending diagonal."""
    x, full = _matrix(d), d.boolean()
    n, m = x.shape[-2:]
    k = min(n, m)

    def verify(out: list) -> None:
        u, s, vh = out
        near(u[..., :, :k] * s[..., None, :] @ vh[..., :k, :], x, "U @ diag(S) @ Vh", size_of(x))
        near(adjoint(u) @ u, _eye(u, u.shape[-1]), "adjoint(U) @ U", 1)
        near(vh @ adjoint(vh), _eye(vh, vh.shape[-2]), "Vh @ adjoint(Vh)", 1)
        if not (np.all(s >= 0) and np.all(np.diff(s, axis=-1) <= 1e-4)):
            raise Mismatch(f"S is not descending: {s.tolist()}")
        wanted = ((n, n), (m, m)) if full else ((n, k), (k, m))
        if (u.shape[-2:], vh.shape[-2:]) != wanted:
            raise Mismatch(f"U and Vh have shapes {u.shape} and {vh.shape}")

    return Case([x], {"full_matrices": full}, None, verify=verify)


def _eye(like: np.ndarray, n: int) -> np.ndarray:
    return np.broadcast_to(np.eye(n, dtype=like.dtype), (*like.shape[:-2], n, n))


@recipe("linalg.svdvals")
def svdvals(d):
    """Descending."""
    x = _matrix(d)
    return Case([x], {}, np.linalg.svd(wider(x), compute_uv=False), scale=1e2)


@recipe("linalg.eigh", "linalg.eigvalsh")
def symmetric_eigen(d, key):
    """Ascending eigenvalues, orthonormal eigenvectors."""
    x = hermitian(d)
    if key.endswith("eigvalsh"):
        return Case([x], {}, np.linalg.eigvalsh(wider(x)), scale=100)

    def verify(out: list) -> None:
        w, v = out
        near(x @ v, v * w[..., None, :], "x @ V", size_of(x))
        near(adjoint(v) @ v, _eye(v, v.shape[-1]), "adjoint(V) @ V", 1)
        if not np.all(np.diff(w, axis=-1) >= -1e-4):
            raise Mismatch(f"the eigenvalues are not ascending: {w.tolist()}")

    return Case([x], {}, None, verify=verify)


@recipe("linalg.eig", "linalg.eigvals")
def general_eigen(d, key):
    """Eigenvalues in any order, and vectors that belong to them."""
    x = square(d)
    wanted = np.linalg.eigvals(wider(x).astype(complex))

    def verify(out: list) -> None:
        w = out[0]
        if w.shape != wanted.shape:
            raise Mismatch(f"the eigenvalues have shape {w.shape}, expected {wanted.shape}")
        near(np.sum(w, -1), np.sum(wanted, -1), "their sum", 500)
        near(np.prod(w, -1), np.prod(wanted, -1), "their product", 1e6)
        if len(out) > 1:
            near(x.astype(w.dtype) @ out[1], out[1] * w[..., None, :], "x @ V", 500)

    return Case([x], {}, None, verify=verify)
