"""The derivative of `scan`: a loop back over what the forward loop kept.

Its carries are the cotangents of the carries, the sums of those of the captures (which seed the
body's derivative, so that an indexed capture costs a slice a step), and carries that are undone:
where a step overwrites a region of a carry, only the region is kept and the carry is rebuilt. What
is kept of the rest is the cheapest cut of the body between what is free and what is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lazyarr.errors import GradientError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.control_cut import cheapest_cut, elements
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, inline, substitute, toposort
from lazyarr.graph.types import TupleType

UNBOUNDED = 2**62  # the length of a loop that may take any number of steps


def picks(node: Variable) -> list[Variable]:
    """Return every output of a node with several."""
    return [op.pick(node, i) for i in range(len(node.type.types))]


def is_float(v: Variable) -> bool:
    """Tell whether a value can carry a derivative."""
    t = v.type
    if isinstance(t, TupleType):
        return any(x.dtype.kind in "fc" for x in t.types)
    return t.dtype.kind in "fc"


def reached(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[set[int]]:
    """Return for each output the numbers of the inputs that it depends on through floats."""
    found: dict[Variable, set[int]] = {}
    for i, v in enumerate(inputs):
        if is_float(v):
            found.setdefault(v, set()).add(i)
    for v in toposort(outputs):
        if v not in found and v.expr is not None and is_float(v):
            below = [found[x] for x in v.inputs if x.__class__ is Variable and x in found]
            if below:
                found[v] = set().union(*below)
    return [found.get(v, set()) for v in outputs]


@dataclass
class _Active:
    """Which inputs of a body vary, and which of its outputs a cotangent reaches."""

    carries: list[int]  # that have a cotangent
    ys: list[int]
    captures: list[int]
    xs: list[int]

    @classmethod
    def of(cls, ctx, gs, inputs: Sequence[Variable], body: Graph, n: int, m: int) -> "_Active":
        """Find both by fixpoints; n carries, and xs up to m."""
        depends = reached(body.inputs, body.outputs)
        has = getattr(gs, "has", lambda k: True)
        wanted = getattr(ctx, "wants", lambda v: True)
        varied = {i for i, v in enumerate(body.inputs) if is_float(v) and wanted(inputs[i])}
        while more := {k for k in range(n) if depends[k] & varied} - varied:
            varied |= more
        active = {
            k for k, d in enumerate(depends) if has(k) and (k in varied if k < n else d & varied)
        }
        while True:
            read = set().union(*(depends[k] for k in active)) & varied
            more = {i for i in read if i < n} - active
            if not more:
                break
            active |= more
        return cls(
            sorted(k for k in active if k < n),
            sorted(k for k in active if k >= n),
            sorted(i for i in read if i >= m),
            sorted(i for i in read if n <= i < m),
        )


@dataclass
class _Step:
    """One step back, in terms of the nodes of the forward body."""

    bars: list[Variable]
    sums: list[Variable]
    y_bars: list[Variable]
    outputs: list[Variable]  # new cotangents of carries, new sums, cotangents of xs
    undone: dict[int, "_Undo"] = field(default_factory=dict)


@dataclass
class _Undo:
    """A carry of which a step overwrites a region: the region before, and the carry after."""

    carry: Variable
    new: Variable
    region: Variable
    after: Variable

    def rebuilt(self) -> Variable:
        """The carry before the step."""
        _, _, *starts = self.new.inputs
        p = self.new.params
        return op.set_at(self.after, self.region, *starts, spec=p["spec"], lengths=p["lengths"])


def scan_vjp(ctx, gs, y, *inputs, **params):
    """Walk back over the loop, as far as it came."""
    body, n, m = params["body"], params["n_carry"], params["n_carry"] + params["n_xs"]
    if params["length"] == UNBOUNDED:
        raise GradientError(
            "a loop that may take any number of steps has no reverse derivative, which must store "
            "every step; give it `max_steps`, or use jvp."
        )
    active = _Active.of(ctx, gs, inputs, body, n, m)
    out: list = [None] * len(inputs)
    if not active.carries and not active.ys:
        return tuple(out)
    step = _step_back(ctx, body, active)
    kept, known = _residuals(step, body, n, m)
    n_out = len(body.outputs) - params["until"]
    outputs = [*body.outputs[:n_out], *kept, *body.outputs[n_out:]]
    forward = op.scan(inputs=inputs, **{**params, "body": Graph(body.inputs, outputs)})
    stored = [op.pick(forward, n_out + j) for j in range(len(kept))]
    loop = _Back(step, body, inputs, n, m)
    loop.keep(kept, stored, known)
    for i in range(n, m):
        loop.keep([body.inputs[i]], [inputs[i]], {})
    loop.keep(step.y_bars, [gs(k) for k in active.ys], {})
    has = getattr(gs, "has", lambda k: True)
    init = [
        gs(k) if has(k) else op.zeros(inputs[k].shape, dtype=inputs[k].dtype)
        for k in active.carries
    ]
    init += [op.zeros(inputs[i].shape, dtype=inputs[i].dtype) for i in active.captures]
    init += [op.pick(forward, k) for k in step.undone]
    count = None
    if params["until"]:
        count = op.pick(forward, len(outputs) - 1)
    elif params["counted"]:
        count = inputs[-1]
    back = picks(loop.scan(init, count, params))
    places = [*active.carries, *active.captures]
    for i, v in zip(places, back, strict=False):
        out[i] = v
    for i, v in zip(active.xs, back[len(init) :], strict=True):
        out[i] = v
    return tuple(out)


def _step_back(ctx, body: Graph, active: _Active) -> _Step:
    bars = [symbol(body.inputs[k].type) for k in active.carries]
    sums = [symbol(body.inputs[i].type) for i in active.captures]
    y_bars = [symbol(body.outputs[k].type) for k in active.ys]
    wrt = [body.inputs[i] for i in (*active.carries, *active.captures, *active.xs)]
    start = {body.inputs[i]: u for i, u in zip(active.captures, sums, strict=True)}
    found = ctx.seeded(
        [body.outputs[k] for k in (*active.carries, *active.ys)], wrt, [*bars, *y_bars], start
    )
    return _Step(bars, sums, y_bars, found)


def _residuals(step: _Step, body: Graph, n: int, m: int) -> tuple[list, dict]:
    """Return what the forward loop stores, and what stands for other nodes in the step back."""
    fresh = {*step.bars, *step.sums, *step.y_bars}
    unknown = set(fresh)
    order = toposort(step.outputs)
    for v in order:
        if v.expr is not None and any(x in unknown for x in v.inputs if x.__class__ is Variable):
            unknown.add(v)
    needed = {
        x
        for v in order
        if v in unknown
        for x in v.inputs
        if x.__class__ is Variable and x not in unknown
    }
    needed.update(v for v in step.outputs if v not in unknown)
    carries = list(dict.fromkeys(body.inputs[:n]))
    free = set(body.inputs[n:])
    captures = set(body.inputs[m:])
    kept = cheapest_cut(needed, carries, free, captures)
    for k in range(n):
        undo = _undo(body, k, kept)
        if undo is not None:
            step.undone[k] = undo
    if not step.undone:
        return kept, {}
    for undo in step.undone.values():
        free.update((undo.carry, undo.new))
        needed.update(x for x in undo.new.inputs[2:] if x.__class__ is Variable)
    regions = [undo.region for undo in step.undone.values()]
    kept = [v for v in cheapest_cut(needed - free, carries, free, captures) if v not in regions]
    known: dict = {}
    for undo in step.undone.values():
        known[undo.new] = undo.after
        known[undo.carry] = undo.rebuilt()
    return [*kept, *regions], known


def _undo(body: Graph, k: int, kept: list) -> _Undo | None:
    """Return how to undo a step on a carry that would be stored whole, None where it cannot be."""
    c, new = body.inputs[k], body.outputs[k]
    if new.op is None or new.op.name not in ("set_at", "add_at") or new.inputs[0] is not c:
        return None
    if c not in kept and new not in kept:
        return None
    starts = new.inputs[2:]
    if c in toposort([x for x in starts if x.__class__ is Variable]):
        return None
    p = new.params
    if elements(new.inputs[1].type) >= elements(c.type):
        return None
    region = op.basic_index.record((c, *starts), {"spec": p["spec"], "lengths": p["lengths"]})
    return _Undo(c, new, region, symbol(c.type))


class _Back:
    """The loop back under construction: what is walked over, what is captured, and the body."""

    def __init__(self, step: _Step, body: Graph, inputs: Sequence[Variable], n: int, m: int):
        self.step, self.captured = step, dict(zip(body.inputs[m:], inputs[m:], strict=True))
        self.inside: list[Variable] = []
        self.xs: list[Variable] = []
        self.known: dict[Variable, Variable] = {}
        self.body, self.inputs, self.n = body, inputs, n

    def keep(self, nodes: Sequence[Variable], stacked: Sequence[Variable], known: dict) -> None:
        """Walk over stacked values of nodes of the forward body."""
        for v, xs in zip(nodes, stacked, strict=True):
            inner = v if v.expr is None and v not in self.body.inputs[: self.n] else symbol(v.type)
            if inner is not v:
                self.known[v] = inner
            self.inside.append(inner)
            self.xs.append(xs)
        self.known.update(known)

    def scan(self, init: list, count: Variable | None, params: dict) -> Variable:
        """Record the loop back."""
        step = self.step
        outputs = [*step.outputs]
        n_sums = len(step.bars) + len(step.sums)
        outputs[n_sums:n_sums] = [undo.carry for undo in step.undone.values()]
        direct = {v: s for v, s in self.known.items() if s.expr is None}
        rebuilt = {
            v: substitute([s], direct)[0] for v, s in self.known.items() if s.expr is not None
        }
        outputs = substitute(outputs, {**direct, **rebuilt})
        carry = [*step.bars, *step.sums, *(undo.after for undo in step.undone.values())]
        outputs, invariant = self._hoisted(outputs, {*carry, *self.inside})
        captures = [(v, x) for v, x in self.captured.items()] + invariant
        if count is not None:
            captures.append((symbol(count.type), count))
        inner = [*carry, *self.inside, *(v for v, _ in captures)]
        return op.scan(
            Graph(inner, outputs),
            (*init, *self.xs, *(x for _, x in captures)),
            length=params["length"],
            reverse=not params["reverse"],
            n_carry=len(carry),
            n_xs=len(self.xs),
            counted=count is not None,
        )

    def _hoisted(self, outputs: list, moving: set) -> tuple[list, list]:
        """Take what depends on captures alone out of the loop, unless computing it can fail."""
        order = toposort(outputs)
        inside, pinned = set(moving), set()
        for v in order:
            below = [x for x in v.inputs if x.__class__ is Variable]
            if any(x in inside for x in below):
                inside.add(v)
            elif v.expr is not None and (_can_fail(v) or any(x in pinned for x in below)):
                pinned.add(v)
        read = {x for v in order if v in inside or v in pinned for x in v.inputs
                if x.__class__ is Variable}  # fmt: skip
        read.update(outputs)
        chosen = [
            v for v in order
            if v in read and v not in inside and v not in pinned and v.expr is not None
            and any(x.__class__ is Variable for x in v.inputs)
        ]  # fmt: skip
        if not chosen:
            return outputs, []
        graph = Graph([*self.captured], chosen)
        values = inline(graph, [*self.captured.values()])
        symbols = [symbol(v.type) for v in chosen]
        outputs = substitute(outputs, dict(zip(chosen, symbols, strict=True)))
        return outputs, list(zip(symbols, values, strict=True))


def _can_fail(v: Variable) -> bool:
    return v.op.check is not None or v.op.kind in ("library", "control")
