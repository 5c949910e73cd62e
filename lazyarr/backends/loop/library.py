"""Statements that a library computes: products of matrices, factorisations, sorting, transforms."""

from collections.abc import Callable
from dataclasses import dataclass

from lazyarr.backends.loop.lower import Scope, View, copy_into
from lazyarr.backends.loop.notation import Buffer, Routine
from lazyarr.backends.loop.products import GEMM_LEAST, Product, matrix_product, transposed
from lazyarr.errors import LinAlgError, ShapeError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.types import TupleType

NORMS = {"backward": 0, "ortho": 1, "forward": 2}


# -- products of matrices -------------------------------------------------------------------------


def product_of(scope: Scope, node: Variable) -> Product | None:
    """Return a contraction as a product of stored matrices that is worth a library call."""
    if node.dtype.kind not in "fc":
        return None
    operands, labels = [], []
    for x, own in zip(node.inputs, node.params["spec"], strict=False):
        if x.__class__ is not Variable or x.dtype != node.dtype:
            return None
        x, own = transposed(x, own, lambda v: scope.view(v) is not None)
        operands.append(x)
        labels.append(own)
    form = matrix_product(*operands, *labels, node.params["spec"][2])
    if form is None:
        return None
    sides = [s for x in operands for s in scope.shape(x)[len(form.batch) :]]
    if any(isinstance(s, int) and s < GEMM_LEAST for s in sides):
        return None
    return form if all(_is_whole(scope.view(x)) for x in operands) else None


def _is_whole(view: View | None) -> bool:
    return view is not None and not view.prefix and view.longer is None


def build_product(scope: Scope, node: Variable, form: Product) -> None:
    """Append the call of gemm or gemv."""
    shape = dict(zip(form.left_labels, scope.shape(form.left), strict=True))
    shape.update(zip(form.right_labels, scope.shape(form.right), strict=True))
    view = dense(scope, node)
    operands = (scope.view(form.left).buffer, scope.view(form.right).buffer)
    m, k = shape[form.row], shape[form.inner]
    at = int(form.left_labels[-1] == form.row)
    absorb = int(node.params["absorb"])
    if form.column is None:
        routine = Routine("gemv", view.buffer, operands, (m, k, at, absorb), label="contract")
    else:
        count = shapes.product(shape[label] for label in form.batch)
        bt = int(form.right_labels[-1] == form.inner)
        sizes = (count, m, shape[form.column], k, at, bt, absorb)
        routine = Routine("gemm", view.buffer, operands, sizes, label="contract")
    scope.steps.append(routine)


# -- rows: one per op -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """How an op of the kind library becomes a routine: its name, its sizes and flags, its failure.

    `sizes(scope, node, used)` gets the numbers of the results that anything reads.
    """

    routine: str
    sizes: Callable
    message: str = ""
    error: type = LinAlgError
    many: bool = False  # one call for each of several axes
    vectors: frozenset = frozenset()  # results that are left out where nothing reads any of them


def _square(scope: Scope, node: Variable, used: set) -> tuple:
    *batch, n, _ = scope.shape(node.inputs[0])
    return shapes.product(batch), n


def _right_sides(scope: Scope, node: Variable, used: set) -> tuple:
    *batch, n, k = scope.shape(node.inputs[1])
    return shapes.product(batch), n, k


def _triangular(scope: Scope, node: Variable, used: set) -> tuple:
    flags = (int(bool(node.params[name])) for name in ("lower", "trans", "unit"))
    return (*_right_sides(scope, node, used), *flags)


def _eigen(scope: Scope, node: Variable, used: set) -> tuple:
    return (*_square(scope, node, used), int(1 in used))


def _matrix(scope: Scope, node: Variable) -> tuple:
    *batch, m, n = scope.shape(node.inputs[0])
    return shapes.product(batch), m, n


def _singular(scope: Scope, node: Variable, used: set) -> tuple:
    vectors = int(0 in used or 2 in used)
    return (*_matrix(scope, node), int(node.params["full_matrices"]), vectors)


def _orthogonal(scope: Scope, node: Variable, used: set) -> tuple:
    return (*_matrix(scope, node), int(node.params["mode"] == "complete"))


def _along(scope: Scope, node: Variable, axis: int) -> tuple:
    """The numbers of elements before, along and after an axis."""
    shape = scope.shape(node.inputs[0])
    return shapes.product(shape[:axis]), shape[axis], shapes.product(shape[axis + 1 :])


def _sorted(scope: Scope, node: Variable, used: set) -> tuple:
    return (*_along(scope, node, node.params["axis"]), int(node.params["descending"]))


def _searched(scope: Scope, node: Variable, used: set) -> tuple:
    (n,), m = scope.shape(node.inputs[0]), shapes.product(scope.shape(node.inputs[1]))
    return n, m, int(node.params["side"] == "right")


def _fourier(scope: Scope, node: Variable, used: set) -> list:
    p = node.params
    flags = int(p["inverse"]), NORMS[p["norm"]]
    return [(*_along(scope, node, axis), *flags) for axis in p["axes"]]


def _fourier_half(scope: Scope, node: Variable, used: set) -> tuple:
    return (*_along(scope, node, node.params["axis"]), NORMS[node.params["norm"]])


def _fourier_real(scope: Scope, node: Variable, used: set) -> tuple:
    axis = node.params["axis"]
    n = scope.shape(node)[axis]
    return (*_along(scope, node, axis), n, NORMS[node.params["norm"]])


_NONE = "{}: an axis without elements has no Fourier transform."
ROWS: dict[str, Row] = {
    "cholesky_lower": Row("cholesky", _square, "cholesky: a matrix is not positive definite."),
    "solve_matrix": Row("solve_triangular", _triangular),
    "solve_system": Row("solve", _right_sides, "solve: a matrix is singular."),
    "inv": Row("inverse", _square, "inv: a matrix is singular."),
    "det": Row("determinant", _square, "det: no memory.", MemoryError),
    "slogdet": Row("slogdet", _square, "slogdet: no memory.", MemoryError),
    "qr": Row("qr", _orthogonal, "qr: the factorisation failed."),
    "svd": Row("svd", _singular, "svd: it did not converge.", vectors=frozenset({0, 2})),
    "eigh": Row("eigh", _eigen, "eigh: it did not converge.", vectors=frozenset({1})),
    "eig": Row(
        "eig",
        _eigen,
        "eig: it did not converge, or a matrix is not finite.",
        vectors=frozenset({1}),
    ),
    "sort": Row("sort", _sorted, "sort: no memory.", MemoryError),
    "argsort": Row("argsort", _sorted, "argsort: no memory.", MemoryError),
    "search_sorted": Row("search", _searched),
    "fourier": Row("fourier", _fourier, _NONE.format("fft"), ShapeError, many=True),
    "fourier_half": Row("fourier_half", _fourier_half, _NONE.format("rfft"), ShapeError),
    "fourier_real": Row("fourier_real", _fourier_real, _NONE.format("irfft"), ShapeError),
}


def build_row(scope: Scope, node: Variable) -> None:
    """Append the call of the routine of an op."""
    row, name = ROWS[node.op.name], node.op.name
    picks = {v.params["index"]: v for v in scope.order if _picks(v, node)}
    sizes = row.sizes(scope, node, set(picks))
    code = scope.program.code(row.error, row.message) if row.message else 0
    operands = tuple(whole(scope, x) for x in node.inputs if x.__class__ is Variable)
    results = _results(scope, node, picks)
    if not row.many:
        first, *others = results
        routine = Routine(row.routine, first, operands, sizes, code, name, tuple(others))
        scope.steps.append(routine)
        return
    if not sizes:
        copy_into(scope, node.inputs[0], scope.views[node], label=name)
    for k, one in enumerate(sizes):
        target = results[0]
        if k < len(sizes) - 1:
            target = scope.program.buffer("m", node.dtype, scope.shape(node))
        scope.steps.append(Routine(row.routine, target, operands, one, code, name))
        operands = (target,)


def _picks(v: Variable, node: Variable) -> bool:
    return v.op is not None and v.op.name == "pick" and v.inputs[0] is node


def _results(scope: Scope, node: Variable, picks: dict[int, Variable]) -> list[Buffer]:
    """Return the buffers that a routine writes, one for each result."""
    if not isinstance(node.type, TupleType):
        return [dense(scope, node).buffer]
    vectors, found = ROWS[node.op.name].vectors, []
    for k, t in enumerate(node.type.types):
        shape = tuple(scope.sizes.canon(s) for s in t.shape)
        if k in vectors and vectors.isdisjoint(picks):
            shape = (1,)
        target = scope.targets.get((node, k))
        if target is not None and _is_whole(target):
            view = target.reshaped(shape)
        else:
            view = View(scope.program.buffer("m", t.dtype, shape), shape)
            if target is not None:
                scope.late.append((picks[k], target))
        scope.views[node, k] = view
        found.append(view.buffer)
    return found


def dense(scope: Scope, node: Variable) -> View:
    """Return a place for a library result, which must not lie inside a larger array."""
    target = scope.targets.get(node)
    if target is not None and not _is_whole(target):
        view = View(scope.program.buffer("m", node.dtype, scope.shape(node)), scope.shape(node))
        scope.views[node] = view
        scope.late.append((node, target))
        return view
    return scope.store(node)


def whole(scope: Scope, x: Variable) -> Buffer:
    """Return the buffer of an operand, copied out when it is part of a larger array."""
    view = scope.view(x)
    if _is_whole(view):
        return view.buffer
    fresh = View(scope.program.buffer("m", x.dtype, scope.shape(x)), scope.shape(x))
    copy_into(scope, x, fresh)
    return fresh.buffer


BUILDERS = dict.fromkeys(ROWS, build_row)
