"""Statements that a library computes: products of matrices, factorisations, solutions."""

from lazyarr.backends.loop.lower import Scope, View, copy_into
from lazyarr.backends.loop.notation import Routine
from lazyarr.backends.loop.products import GEMM_LEAST, Product, matrix_product, transposed
from lazyarr.errors import LinAlgError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable


def product_of(scope: Scope, node: Variable) -> Product | None:
    """Return a contraction as a product of stored matrices that is worth a library call."""
    if node.dtype.kind != "f":
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
    return form if all(_is_whole(scope, x) for x in operands) else None


def _is_whole(scope: Scope, x: Variable) -> bool:
    view = scope.view(x)
    return view is not None and not view.prefix


def build_product(scope: Scope, node: Variable, form: Product) -> None:
    """Append the call of gemm or gemv."""
    shape = dict(zip(form.left_labels, scope.shape(form.left), strict=True))
    shape.update(zip(form.right_labels, scope.shape(form.right), strict=True))
    view = dense(scope, node)
    operands = (scope.view(form.left).buffer, scope.view(form.right).buffer)
    m, k = shape[form.row], shape[form.inner]
    at = int(form.left_labels[-1] == form.row)
    if form.column is None:
        routine = Routine("gemv", view.buffer, operands, (m, k, at), label="contract")
    else:
        count = shapes.product(shape[label] for label in form.batch)
        bt = int(form.right_labels[-1] == form.inner)
        sizes = (count, m, shape[form.column], k, at, bt)
        routine = Routine("gemm", view.buffer, operands, sizes, label="contract")
    scope.steps.append(routine)


def build_cholesky(scope: Scope, node: Variable) -> None:
    """A copy, factored in place by the library (batched over leading axes)."""
    view, x = dense(scope, node), node.inputs[0]
    *batch, n, _ = scope.shape(x)
    code = scope.program.code(LinAlgError, "cholesky: a matrix is not positive definite.")
    sizes = (shapes.product(batch), n)
    scope.steps.append(
        Routine("cholesky", view.buffer, (whole(scope, x),), sizes, code, "cholesky")
    )


def build_solve_triangular(scope: Scope, node: Variable) -> None:
    """A copy of the right-hand sides, solved in place (batched over leading axes)."""
    view, (a, b), p = dense(scope, node), node.inputs, node.params
    *batch, n, k = scope.shape(b)
    flags = (int(bool(p["lower"])), int(bool(p["trans"])), int(bool(p["unit"])))
    sizes = (shapes.product(batch), n, k, *flags)
    operands = (whole(scope, a), whole(scope, b))
    scope.steps.append(
        Routine("solve_triangular", view.buffer, operands, sizes, label="solve_triangular")
    )


def build_solve(scope: Scope, node: Variable) -> None:
    """The solution of general systems by an LU factorisation (batched over leading axes)."""
    view, (a, b) = dense(scope, node), node.inputs
    *batch, n, k = scope.shape(b)
    code = scope.program.code(LinAlgError, "solve: a matrix is singular.")
    operands = (whole(scope, a), whole(scope, b))
    sizes = (shapes.product(batch), n, k)
    scope.steps.append(Routine("solve", view.buffer, operands, sizes, code, "solve"))


def build_inverse(scope: Scope, node: Variable) -> None:
    """The inverse by an LU factorisation (batched over leading axes)."""
    view, x = dense(scope, node), node.inputs[0]
    *batch, n, _ = scope.shape(x)
    code = scope.program.code(LinAlgError, "inv: a matrix is singular.")
    sizes = (shapes.product(batch), n)
    scope.steps.append(Routine("inverse", view.buffer, (whole(scope, x),), sizes, code, "inv"))


def build_determinant(scope: Scope, node: Variable) -> None:
    """The product of the pivots of an LU factorisation (batched over leading axes)."""
    view, x = dense(scope, node), node.inputs[0]
    *batch, n, _ = scope.shape(x)
    sizes = (shapes.product(batch), n)
    code = scope.program.code(MemoryError, "det: no memory.")
    scope.steps.append(Routine("determinant", view.buffer, (whole(scope, x),), sizes, code, "det"))


def dense(scope: Scope, node: Variable) -> View:
    """Return a place for a library result, which must not lie inside a larger array."""
    target = scope.targets.get(node)
    if target is not None and target.prefix:
        view = View(scope.program.buffer("m", node.dtype, scope.shape(node)), scope.shape(node))
        scope.views[node] = view
        scope.late.append((node, target))
        return view
    return scope.store(node)


def whole(scope: Scope, x: Variable):
    """Return the buffer of an operand, copied out when it is part of a larger array."""
    view = scope.view(x)
    if not view.prefix:
        return view.buffer
    fresh = View(scope.program.buffer("m", x.dtype, scope.shape(x)), scope.shape(x))
    copy_into(scope, x, fresh)
    return fresh.buffer


BUILDERS = {
    "cholesky_lower": build_cholesky,
    "solve_matrix": build_solve_triangular,
    "solve_system": build_solve,
    "inv": build_inverse,
    "det": build_determinant,
}
