"""Loops with carries: the body as a scope of its own, and carries that change where they lie.

A carry is a buffer that its updates are stored to at the end of a step. Where a step only updates
it, region by region or elementwise, that happens in place; everything that the updates read of
carries in their old state is computed before.
"""

from collections.abc import Callable

import numpy as np

from lazyarr.backends.loop.affine import Axis, of
from lazyarr.backends.loop.lower import UPDATES, Scope, View, copy_into
from lazyarr.backends.loop.notation import Repeat, Statement, accesses, reads, writes
from lazyarr.backends.loop.rules import as_index, position
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph

INT64 = np.dtype("int64")


def build_scan(scope: Scope, node: Variable, build: Callable) -> None:
    """A loop whose body is a scope of its own; carries are buffers updated at its end."""
    p, program = node.params, scope.program
    body, n_carry, n_xs = p["body"], p["n_carry"], p["n_xs"]
    length = scope.sizes.canon(p["length"])
    step, count = Axis(length, "step"), None
    t, last = of(step), of(length)
    if p["counted"]:
        count = scope.element(node.inputs[-1], (), {})
        last = as_index(count)
    if p["reverse"]:
        t = t * -1 + (last + -1)
    chains = carried_in_place(body, n_carry)
    held = operands_of(chains, body, n_carry)
    inner = Scope(program, body, {*scope.forced, *held})
    carries = []
    for k in range(n_carry):
        x = node.inputs[k]
        view = _result(scope, node, k, x.dtype, scope.shape(x))
        copy_into(scope, x, view, label="scan (initial carry)")
        carries.append(view)
        inner.views[body.inputs[k]] = view
        inner.views.update(dict.fromkeys(chains.get(k, ()), view))
    for k in range(n_carry, len(node.inputs)):
        view, inside = scope.view(node.inputs[k]), body.inputs[k]
        if view is None:
            inner.given[inside] = scope, node.inputs[k], t
        else:
            inner.views[inside] = view.at(t) if k < n_carry + n_xs else view
    stacks, copies = [], []
    for k, v in enumerate(body.outputs[n_carry : len(body.outputs) - p["until"]], start=n_carry):
        whole = _result(scope, node, k, v.dtype, (length, *inner.shape(v)))
        stacks.append(whole)
        view = whole.at(t)
        if not inner.assign(v, view):
            copies.append((v, view))
    inner.run(build)
    for v, view in [*copies, *inner.late]:
        copy_into(inner, v, view, label="scan (output)")
    stop = _stop(scope, inner, node, step) if p["until"] else None
    updates = _carry_updates(inner, body, carries, chains, held, build)
    _repeat(scope, Repeat(step, inner.steps, updates, "scan", count, stop), carries)
    if p["until"] or p["counted"]:
        _clear(scope, node, length, stacks)


def _repeat(scope: Scope, repeat: Repeat, carries: list) -> None:
    """Append a loop with what it reads and writes."""
    every = [*repeat.body, *repeat.updates]
    repeat.reads = set().union(*(reads(s) for s in every)) | {v.buffer for v in carries}
    repeat.writes = set().union(*(writes(s) for s in every)) | {v.buffer for v in carries}
    if repeat.count is not None:
        repeat.reads |= {a.buffer for a in accesses(repeat.count)}
    scope.steps.append(repeat)


def _stop(scope: Scope, inner: Scope, node: Variable, step: Axis):
    """Count the steps, store whether this one is the last, and return the place of that."""
    number = len(node.params["body"].outputs) - 1
    count = _result(scope, node, number, INT64, ())
    scope.emit(count, (), (), scalar.const(0, INT64), label="scan (count)")
    inner.emit(count, (), (), position(of(step) + 1), label="scan (count)")
    place = View(scope.program.buffer("m", np.dtype(bool), ()), ())
    copy_into(inner, node.params["body"].outputs[-1], place, label="scan (until)")
    return place.access(())


def _clear(scope: Scope, node: Variable, length: object, stacks: list) -> None:
    """Zero what the loop left unwritten: the elements from its number of steps on."""
    p = node.params
    if p["until"]:
        count = scalar.var(scope.views[node, len(p["body"].outputs) - 1].access(()), INT64)
    else:
        count = scope.element(node.inputs[-1], (), {})
    step = Axis(length, "rest")
    rest, steps = scalar.sub(position(of(length)), count), []
    outer, scope.steps = scope.steps, steps
    for whole in stacks:
        axes, index = scope.axes(whole.shape[1:])
        zero = scalar.const(0, whole.buffer.dtype)
        where = (as_index(count) + of(step), *index)
        scope.emit(whole, where, axes, zero, label="scan (zeros)")
    scope.steps = outer
    if steps:
        _repeat(scope, Repeat(step, steps, [], "scan (zeros)", rest), [])


def _result(scope: Scope, node: Variable, k: int, dtype, shape: tuple) -> View:
    """Return the place of one output of a scan."""
    view = scope.targets.get((node, k)) or View(scope.program.buffer("s", dtype, shape), shape)
    view = view.reshaped(shape)
    scope.views[node, k] = view
    return view


def _carry_updates(
    inner: Scope, body: Graph, carries: list, chains: dict, held: list, build: Callable
) -> list[Statement]:
    """Return the statements that store the new carries; a carry they read is copied out first."""
    places = {c.buffer for c in carries}
    moved = []
    for k, (old, v) in enumerate(zip(carries, body.outputs, strict=False)):
        if v is body.inputs[k] or k in chains:
            continue
        source = inner.view(v)
        if source is None or source.buffer in places:
            source = _copied_out(inner, v)
        moved.append((old, source))
    for x in held:
        view = inner.view(x)
        if view is not None and view.buffer in places:
            inner.views[x] = _copied_out(inner, x)
    count = len(inner.steps)
    for chain in chains.values():
        for node in chain:
            build(inner, node)
    for old, source in moved:
        axes, index = inner.axes(old.shape)
        value = scalar.var(source.access(index), old.buffer.dtype)
        inner.emit(old, index, axes, value, label="scan (carry)")
    updates, inner.steps[count:] = inner.steps[count:], []
    return updates


def _copied_out(scope: Scope, node: Variable) -> View:
    """Copy a node to memory of its own."""
    fresh = View(scope.program.buffer("m", node.dtype, scope.shape(node)), scope.shape(node))
    copy_into(scope, node, fresh, label="scan (moved carry)")
    return fresh


def carried_in_place(body: Graph, n_carry: int) -> dict[int, list[Variable]]:
    """Return for carries that only become updates of themselves the chain of these updates.

    A link replaces a region, or combines the whole array with another elementwise. Nobody else may
    see a link of the chain: then it happens after all else in a step, in place.
    """
    users: dict[Variable, int] = {}
    for v in (*body.outputs, *(x for node in body.toposort() for x in node.inputs)):
        if v.__class__ is Variable:
            users[v] = users.get(v, 0) + 1
    found = {}
    for k in range(n_carry):
        chain, v, c = [], body.outputs[k], body.inputs[k]
        while v.op is not None and users[v] == 1:
            below = _link(v, c)
            if below is None:
                break
            chain.insert(0, v)
            v = below
        if chain and v is c:
            after = [*chain[1:], None]
            found[k] = [
                v for v, w in zip(chain, after, strict=True)
                if v.op.kind != "elementwise" or w is None or w.op.kind != "elementwise"
            ]  # fmt: skip
    return found


def _link(v: Variable, c: Variable) -> Variable | None:
    """Return what a node updates in place, on the way to a carry; None when it does not."""
    if v.op.name in UPDATES:
        return v.inputs[0]
    if v.op.kind != "elementwise" or v.op.check is not None or not c.ndim or v.type is not c.type:
        return None
    way = [x for x in v.inputs if x.__class__ is Variable and x.type is c.type and _leads(x, c)]
    return way[0] if len(way) == 1 else None


def _leads(v: Variable, c: Variable) -> bool:
    """Tell whether links lead from a node to a carry."""
    while v is not c:
        if v.op is None or not v.inputs or v.type is not c.type:
            return False
        if v.op.name in UPDATES:
            v = v.inputs[0]
        elif v.op.kind == "elementwise":
            below = _link(v, c)
            if below is None:
                return False
            v = below
        else:
            return False
    return True


def operands_of(chains: dict[int, list[Variable]], body: Graph, n_carry: int) -> list[Variable]:
    """Return what chains read that a carry in its old state is needed for: it is computed before.

    All operands of updates are. Of an elementwise link, what does not depend on a carry is computed
    in it, and what does and is smaller than the whole is not.
    """
    found: dict[Variable, None] = {}
    carried = set(body.inputs[:n_carry])
    for v in body.toposort():
        if any(x in carried for x in v.inputs if x.__class__ is Variable):
            carried.add(v)
    for k, chain in chains.items():
        own = body.inputs[k]
        for node in chain:
            if node.op.name in UPDATES:
                others = [x for x in node.inputs[1:] if x.__class__ is Variable]
                found.update(dict.fromkeys(others))
                continue
            others = [x for x in node.inputs if x.__class__ is Variable]
            while others:
                x = others.pop()
                if x not in carried or x in chain or x is own:
                    continue
                spreads = x.expr is not None and (
                    x.op.kind == "elementwise" or x.op.name in ("broadcast_to", "expand_dims")
                )
                if spreads and x.type.ndim and x.op.check is None:
                    others.extend(y for y in x.inputs if y.__class__ is Variable)
                else:
                    found[x] = None
    return list(found)
