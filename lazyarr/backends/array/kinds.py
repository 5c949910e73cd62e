"""One writer per kind: reductions, cumulative, movement, creation and contraction as expressions.

Each is a function from a scope and a node to the text that computes it.
"""

from collections.abc import Callable

import numpy as np

from lazyarr.backends.array.table import Unsupported
from lazyarr.backends.array.text import BOOL, INT64, Scope
from lazyarr.graph import scalar, shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.linalg import einsum_text

FLOAT64 = np.dtype("float64")
_SUMS = {"add": "sum", "mul": "prod"}
_TESTS = {"and": "all", "or": "any"}
_RUNNING = {"add": "cumulative_sum", "mul": "cumulative_prod"}


# -- reductions and cumulative --------------------------------------------------------------------


def reduction(scope: Scope, node: Variable) -> str:
    """The operand cast to the dtype of the result, then combined over the axes."""
    x, combine = node.inputs[0], node.op.combine
    axis, keep = node.params["axis"], node.params["keepdims"]
    if combine in ("argmax", "argmin"):
        return _extreme_index(scope, node)
    dtype = BOOL if combine in _TESTS else node.dtype
    text = scope.arg(x, dtype)
    if not axis:
        return text
    if combine in _SUMS:
        return scope.arithmetic(
            _SUMS[combine], [(text, dtype)], dtype, axis=axis, dtype=dtype, keepdims=keep
        )
    word = _TESTS.get(combine, combine)
    if word not in ("all", "any", "max", "min"):
        raise Unsupported(f"a reduction by {combine}.")
    return scope.arithmetic(word, [(text, dtype)], dtype, axis=axis, keepdims=keep)


def _extreme_index(scope: Scope, node: Variable) -> str:
    x, axis, keep = node.inputs[0], node.params["axis"], node.params["keepdims"]
    text = scope.arg(x)
    if len(axis) != 1:  # all axes: the position in the flattened array
        text = scope.move(
            "reshape", text, dtype=x.type.dtype, shape=(shapes.product(x.type.shape),)
        )
    over = axis[0] if len(axis) == 1 else 0
    keep = keep and len(axis) == 1
    out = scope.arithmetic(node.op.combine, [(text, x.type.dtype)], INT64, axis=over, keepdims=keep)
    return scope.call("reshape", out, shape=node.type.shape) if len(axis) != 1 else out


def cumulative(scope: Scope, node: Variable) -> str:
    """A running sum or product, behind the identity when the initial element is included."""
    x, dtype, axis = node.inputs[0], node.dtype, node.params["axis"]
    word = _RUNNING.get(node.op.combine)
    if word is None:
        raise Unsupported(f"a running {node.op.combine}.")
    out = scope.arithmetic(word, [(scope.arg(x, dtype), dtype)], dtype, axis=axis, dtype=dtype)
    if not node.params["include_initial"]:
        return out
    shape = tuple(1 if i == axis else s for i, s in enumerate(x.type.shape))
    first = scope.module.constant(scalar.identity(node.op.combine, dtype), dtype)
    head = scope.move("broadcast_to", first, dtype=dtype, shape=shape)
    return _join(scope, "concat", [head, out], dtype, axis)


# -- movement -------------------------------------------------------------------------------------


def _moving(*parameters: str) -> Callable:
    """A writer of an op that is a word of the namespace with the same parameters."""

    def write(scope: Scope, node: Variable) -> str:
        given = {k: node.params[k] for k in parameters}
        return scope.move(node.op.name, scope.arg(node.inputs[0]), dtype=node.dtype, **given)

    return write


def _identity(scope: Scope, node: Variable) -> str:
    return scope.arg(node.inputs[0])


def _joining(scope: Scope, node: Variable) -> str:
    texts = [scope.arg(x) for x in node.inputs]
    return _join(scope, node.op.name, texts, node.dtype, node.params["axis"])


def _join(scope: Scope, word: str, texts: list[str], dtype: np.dtype, axis: int) -> str:
    bits = scope.module.table.movable.get(dtype)
    if bits is not None:
        texts = [scope.bits(t, bits) for t in texts]
    out = scope.call(word, scope.tuple(texts), axis=axis)
    return out if bits is None else scope.bits(out, dtype)


# -- creation -------------------------------------------------------------------------------------


def _full(scope: Scope, node: Variable) -> str:
    value = scope.arg(node.inputs[0], node.dtype)
    return scope.move("broadcast_to", value, dtype=node.dtype, shape=node.type.shape)


def _arange(scope: Scope, node: Variable) -> str:
    start, step = node.inputs
    exact = all(isinstance(v, int | shapes.Size) for v in (start, step)) and node.dtype.kind in "iu"
    dtype = INT64 if exact else FLOAT64
    out = scope.call("arange", scope.module.size(node.params["length"]), dtype=dtype)
    if not (isinstance(step, int) and step == 1):
        out = scope.call("multiply", scope.arg(step, dtype), out, over=dtype)
    if not (isinstance(start, int) and start == 0):
        out = scope.call("add", scope.arg(start, dtype), out, over=dtype)
    return scope.cast(out, dtype, node.dtype)


def _size_value(scope: Scope, node: Variable) -> str:
    return scope.call("asarray", scope.module.size(node.params["size"]), dtype=INT64)


# -- contraction ----------------------------------------------------------------------------------


def contraction(scope: Scope, node: Variable) -> str:
    """A product of two operands; where it absorbs, its word gets the factors side by side too."""
    la, lb, out = node.params["spec"]
    summed = [k for k in la if k not in out]
    if not node.params["absorb"]:
        return _product(scope, node)
    if len({*la}) < len(la) or len({*lb}) < len(lb) or not summed:
        raise Unsupported("a product that absorbs, of repeated labels or without a sum.")
    args = [(_product(scope, node), node.dtype)]
    for x, labels in zip(node.inputs, (la, lb), strict=True):
        text = _spread(scope, scope.arg(x, node.dtype), labels, (*summed, *out))
        args.append((text, node.dtype))
    return scope.arithmetic("absorbed_product", args, node.dtype, summed=len(summed))


def _product(scope: Scope, node: Variable) -> str:
    """A product of two operands by `multiply` or `matmul`, labels brought into its order."""
    dtype, spec = node.dtype, node.params["spec"]
    a, b = ((scope.arg(x, dtype), x.type.shape) for x in node.inputs)
    la, lb, out = spec
    if len(set(la)) < len(la) or len(set(lb)) < len(lb):
        texts = [(repr(einsum_text(spec)), BOOL), (a[0], dtype), (b[0], dtype)]
        return scope.arithmetic("einsum", texts, dtype)
    contracted = [k for k in la if k in lb and k not in out]
    if not contracted:
        sides = [
            (_spread(scope, text, labels, out), dtype) for (text, _), labels in ((a, la), (b, lb))
        ]
        return scope.arithmetic("multiply", sides, dtype)
    own_a = [k for k in out if k not in lb]
    own_b = [k for k in out if k not in la]
    if own_a and own_b and out.index(own_b[0]) < out.index(own_a[0]):
        a, b, la, lb, own_a, own_b = b, a, lb, la, own_b, own_a
    sizes = {**dict(zip(la, a[1], strict=True)), **dict(zip(lb, b[1], strict=True))}
    batch = [k for k in out if k in la and k in lb]
    left = _matrix(scope, a[0], la, batch, own_a, contracted, sizes)
    right = _matrix(scope, b[0], lb, batch, contracted, own_b, sizes)
    text = scope.arithmetic("matmul", [(left, dtype), (right, dtype)], dtype)
    order = [*batch, *own_a, *own_b]
    if not _plain(batch, own_a) or not _plain(batch, own_b):
        text = scope.call("reshape", text, shape=tuple(sizes[k] for k in order))
    return _permuted(scope, text, order, list(out))


def _plain(batch: list, own: list) -> bool:
    """Whether an operand's own labels are one axis of the product (without batch axes: or none)."""
    return len(own) == 1 or (not own and not batch)


def _matrix(scope, text, labels, batch, rows, columns, sizes) -> str:
    """Return an operand as matrices [*batch, rows, columns], or as a vector."""
    text = _permuted(scope, text, list(labels), [*batch, *rows, *columns])
    if len(rows) == len(columns) == 1 or (not batch and len(rows) + len(columns) == 1):
        return text
    merged = [shapes.product(sizes[k] for k in part) for part in (rows, columns)]
    if not batch:  # an operand without labels of its own is a vector
        merged = [m for m, part in zip(merged, (rows, columns), strict=True) if part]
    return scope.call("reshape", text, shape=(*(sizes[k] for k in batch), *merged))


def _permuted(scope: Scope, text: str, have: list, want: list) -> str:
    """Return an expression with its labelled axes in another order."""
    if have == want:
        return text
    return scope.call("permute_dims", text, axes=tuple(have.index(k) for k in want))


def _spread(scope: Scope, text: str, labels: tuple, out: tuple) -> str:
    """Return an operand with its axes in the order of the result, size 1 where it has none."""
    text = _permuted(scope, text, list(labels), [k for k in out if k in labels])
    absent = tuple(i for i, k in enumerate(out) if k not in labels)
    lead = next((i for i, k in enumerate(out) if k in labels), len(out))
    absent = tuple(i for i in absent if i >= lead)  # leading ones broadcast by themselves
    if not absent:
        return text
    return scope.call("expand_dims", text, axis=tuple(i - lead for i in absent))


MOVEMENT = {
    "permute_dims": _moving("axes"),
    "expand_dims": _moving("axis"),
    "squeeze": _moving("axis"),
    "flip": _moving("axis"),
    "broadcast_to": _moving("shape"),
    "reshape": _moving("shape"),
    "main_diagonal": _moving(),
    "specify_shape": _identity,
    "concat": _joining,
    "stack": _joining,
}
CREATION = {"full": _full, "arange": _arange, "size_value": _size_value}
