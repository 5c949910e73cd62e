"""Statements of the nodes that are stored: one builder per kind or op.

`lower(graph)` is the whole way from a graph to a program in index notation.
"""

from collections.abc import Iterable

import numpy as np

from lazyarr.backends.loop import library, native, scans
from lazyarr.backends.loop.affine import Affine, Axis, Dynamic, of
from lazyarr.backends.loop.lower import Program, Scope, View, copy_into
from lazyarr.backends.loop.notation import (
    Access,
    Position,
)
from lazyarr.backends.loop.order import walk
from lazyarr.backends.loop.rules import as_index, position
from lazyarr.backends.loop.sizes import Sizes
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph

INT64 = np.dtype("int64")


def lower(graph: Graph, forced: Iterable[Variable] = ()) -> Program:
    """Return the program of a graph; `forced` are nodes to store that would be inline."""
    program = Program(graph, Sizes(graph))
    scope = Scope(program, graph, forced)
    for k, v in enumerate(graph.inputs):
        shape = scope.shape(v)
        buffer = program.buffer("x", v.dtype, shape, kind="input", number=k)
        scope.views[v] = View(buffer, shape)
    copies = []
    for k, v in enumerate(graph.outputs):
        shape = scope.shape(v)
        buffer = program.buffer("y", v.dtype, shape, kind="output", number=k)
        view = View(buffer, shape)
        if not scope.assign(v, view):
            copies.append((v, view))
    scope.run(build)
    for v, view in copies:
        copy_into(scope, v, view)
    program.steps = scope.steps
    return program


def build(scope: Scope, node: Variable) -> None:
    """Append the steps that compute one root."""
    (BUILDERS.get(node.op.name) or BUILDERS.get(node.op.kind) or build_map)(scope, node)


def build_map(scope: Scope, node: Variable) -> None:
    """out[i] = element"""
    view = scope.views.get(node) or scope.store(node)  # a carry may be replaced where it lies
    axes, index = scope.axes(scope.shape(node))
    memo: dict = {}
    value = scope.element(node, index, memo, deep=True)
    scope.emit(view, index, axes, value, memo, label=node.op.name)


def build_reduction(scope: Scope, node: Variable) -> None:
    """out[kept] (combine)= x[all axes]; argmax and argmin keep the int64 position"""
    x, over = node.inputs[0], node.params["axis"]
    view = scope.store(node)
    shape = scope.shape(x)
    axes, index = scope.axes(shape)
    by_dim = [next(iter(i.terms), (None,))[0] for i in index]
    reduced = tuple(a for d, a in enumerate(by_dim) if d in over and a is not None)
    kept = [i for d, i in enumerate(index) if d not in over]
    if node.params["keepdims"]:
        kept = [of(0) if d in over else i for d, i in enumerate(index)]
    memo: dict = {}
    value = scope.element(x, index, memo)
    combine = node.op.combine
    bound = _bound(value, axes) if combine == "add" else None
    if bound is not None:  # what is zero beyond a number of elements is not visited there
        (axis,), last = axes, scalar.maximum(bound, scalar.const(0, INT64))
        last = scalar.minimum(last, position(of(axis.extent)))
        axes = (Axis(Dynamic(last), axis.name),)
        index = tuple(of(axes[0]) if i.axis is axis else i for i in index)
        reduced, memo = axes, {}
        value = scope.element(x, index, memo).args[1]
    if combine.startswith("arg"):
        extra = {"argument": _flat_position(index, shape, over)}
    else:
        value, extra = scalar.cast(value, node.dtype), {}
    if not reduced and not combine.startswith("arg"):
        scope.emit(view, kept, axes, value, memo, label=node.op.name)
        return
    if not reduced:
        zero = scalar.const(0, INT64)
        scope.emit(view, kept, axes, zero, label=node.op.name)
        return
    scope.emit(
        view, kept, axes, value, memo, reduced=reduced, combine=combine, label=node.op.name, **extra
    )


def _bound(value: scalar.Scalar, axes: tuple) -> scalar.Scalar | None:
    """Return s where a value along its one axis i is that of where(i < s, ..., 0)."""
    if len(axes) != 1 or value.prim != "select" or value.args[2].prim != "const":
        return None
    test, zero = value.args[0], value.args[2].args[0]
    if test.prim != "lt" or zero != 0 or str(zero).startswith("-"):
        return None
    left, right = test.args
    if left.prim != "var" or not isinstance(left.args[0], Position):
        return None
    if left.args[0].index.axis is not axes[0] or right.dtype != INT64:
        return None
    for e in walk([right]):
        if e.prim == "var":
            name = e.args[0]
            places = name.index if isinstance(name, Access) else (name.index,)
            if any(key is axes[0] for i in places for key, _ in i.terms):
                return None
    return right


def _flat_position(index: tuple, shape: tuple, over: tuple):
    out = of(0)
    for d in over:
        out = out * shape[d] + index[d]
    return position(out)


def build_cumulative(scope: Scope, node: Variable) -> None:
    """out[.., k] = out[.., k-1] (combine) x[.., k], kept in a register along the axis"""
    x, axis = node.inputs[0], node.params["axis"]
    view = scope.store(node)
    shape = scope.shape(x)
    axes, index = scope.axes(shape)
    out = list(index)
    if node.params["include_initial"]:
        others, first = scope.axes([1 if d == axis else s for d, s in enumerate(shape)])
        start = scalar.const(scalar.identity(node.op.combine, node.dtype), node.dtype)
        scope.emit(view, first, others, start, label=node.op.name, disjoint=True)
        out[axis] = out[axis] + 1
    memo: dict = {}
    value = scalar.cast(scope.element(x, index, memo), node.dtype)
    running = index[axis].axis
    if running is None:
        scope.emit(view, out, axes, value, memo, label=node.op.name)
    else:
        axes = (*(a for a in axes if a is not running), running)
        scope.emit(
            view, out, axes, value, memo,
            combine=node.op.combine, running=running, label=node.op.name,
        )  # fmt: skip


def build_concat(scope: Scope, node: Variable) -> None:
    """Several stores into one output, each at its offset."""
    view, axis, offset = scope.views.get(node) or scope.store(node), node.params["axis"], 0
    for k, x in enumerate(node.inputs):
        shape = scope.shape(x)
        if k in scope.parts.get(node, ()):
            offset = offset + shape[axis]
            continue
        axes, index = scope.axes(shape)
        memo: dict = {}
        value = scope.element(x, index, memo)
        out = (*index[:axis], index[axis] + offset, *index[axis + 1 :])
        scope.emit(view, out, axes, value, memo, label="concat", disjoint=True)
        offset = offset + shape[axis]


def build_stack(scope: Scope, node: Variable) -> None:
    """Several stores into one output, each at its place on the new axis."""
    view, axis = scope.store(node), node.params["axis"]
    for k, x in enumerate(node.inputs):
        axes, index = scope.axes(scope.shape(x))
        memo: dict = {}
        value = scope.element(x, index, memo)
        out = (*index[:axis], of(k), *index[axis:])
        scope.emit(view, out, axes, value, memo, label="stack", disjoint=True)


def _target_copy(scope: Scope, node: Variable) -> View:
    """Return the place of an updated array, holding the old one; in place where nobody sees it."""
    if node in scope.views:  # a carry that is updated where it lies
        return scope.views[node]
    x = node.inputs[0]
    if scope.in_place(node) and scope.targets.get(node, scope.views[x]) is scope.views[x]:
        scope.views[node] = scope.views[x]
        return scope.views[x]
    view = scope.store(node)
    copy_into(scope, x, view, label=f"{node.op.name} (copy)")
    return view


def build_update(scope: Scope, node: Variable) -> None:
    """set_at and add_at: a region of a copy is replaced or increased."""
    view = _target_copy(scope, node)
    v = node.inputs[1]
    axes, index = scope.axes(scope.shape(v))
    memo: dict = {}
    out, starts, outer = [], iter(node.inputs[2:]), iter(index)
    for entry in node.params["spec"]:
        if entry[0] == "new":
            next(outer)
            continue
        form = _amount(scope, next(starts), memo)
        if entry[0] == "slice":
            form = form + next(outer) * entry[1]
        out.append(Affine(form.terms, scope.sizes.canon(form.const)))
    value = scalar.cast(scope.element(v, index, memo), node.dtype)
    combine = "add" if node.op.name == "add_at" else None
    scope.emit(view, out, axes, value, memo, combine=combine, label=node.op.name)


def _amount(scope: Scope, value: object, memo: dict) -> Affine:
    return as_index(scope.element(value, (), memo)) if value.__class__ is Variable else of(value)


def build_scatter(scope: Scope, node: Variable) -> None:
    """take_set and take_add: elements of a copy at dynamic places, in C order of the indices."""
    view = _target_copy(scope, node)
    _, indices, v = node.inputs
    axis, rank = node.params["axis"], indices.ndim
    shape = scope.shape(v)
    whole = (*shape[:axis], *scope.shape(indices), *shape[axis + rank :])
    axes, index = scope.axes(whole)
    memo: dict = {}
    where = scope.element(indices, index[axis : axis + rank], memo)
    value = scalar.cast(scope.element(v, index, memo), node.dtype)
    out = (*index[:axis], as_index(where), *index[axis + rank :])
    combine = "add" if node.op.name == "take_add" else None
    scope.emit(view, out, axes, value, memo, combine=combine, label=node.op.name)


def build_contract(scope: Scope, node: Variable) -> None:
    """out[kept labels] += a * b over the other labels; a large matrix product is a library call."""
    a, b = node.inputs
    la, lb, lo = node.params["spec"]
    if (form := library.product_of(scope, node)) is not None:
        library.build_product(scope, node, form)
        return
    view = scope.store(node)
    sizes: dict[int, object] = {}
    for x, labels in ((a, la), (b, lb)):
        for label, s in zip(labels, scope.shape(x), strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = s
    order = [*lo, *(label for label in sizes if label not in lo)]
    axes, index = scope.axes([sizes[label] for label in order], "c")
    at = dict(zip(order, index, strict=True))
    reduced = tuple(at[label].axis for label in order if label not in lo)
    reduced = tuple(r for r in reduced if r is not None)
    memo: dict = {}
    left = scope.element(a, tuple(at[label] for label in la), memo)
    right = scope.element(b, tuple(at[label] for label in lb), memo)
    factors = scalar.cast(left, node.dtype), scalar.cast(right, node.dtype)
    value = _absorbed(*factors) if node.params["absorb"] else _product(*factors)
    out = tuple(at[label] for label in lo)
    combine = "or" if node.dtype.kind == "b" else "add"
    scope.emit(
        view, out, axes, value, memo,
        reduced=reduced, combine=combine if reduced else None, label="contract",
    )  # fmt: skip


def _product(a, b):
    return a & b if a.dtype.kind == "b" else a * b


def _absorbed(a, b):
    return scalar.absorb(a, b) if a.dtype.kind == "f" else OPS["absorb"].formula(a, b)


def build_scan(scope: Scope, node: Variable) -> None:
    """A loop whose body is a scope of its own."""
    scans.build_scan(scope, node, build)


BUILDERS = {
    "reduction": build_reduction,
    "cumulative": build_cumulative,
    "concat": build_concat,
    "stack": build_stack,
    "set_at": build_update,
    "add_at": build_update,
    "take_set": build_scatter,
    "take_add": build_scatter,
    "contract": build_contract,
    **library.BUILDERS,
    "foreign": native.build_foreign,
    "scan": build_scan,
}
