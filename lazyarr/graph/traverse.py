"""Walking, rebuilding and comparing graphs. Everything is iterative: depth is never a limit."""

import copyreg
from collections.abc import Callable, Iterable, Mapping, Sequence

from lazyarr.errors import GraphError
from lazyarr.graph import shapes
from lazyarr.graph.node import UNSET, Call, Variable
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType, TupleType, Type


def toposort(outputs: Iterable[Variable], stop: Iterable[Variable] = ()) -> list[Variable]:
    """Return all nodes that outputs depend on, leaves first, not looking below `stop`."""
    seen = set(stop)
    found = [v for v in seen]
    stack = [v for v in outputs if v.__class__ is Variable]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        found.append(v)
        if v.expr is not None:
            stack.extend(x for x in v.expr if x.__class__ is Variable and x not in seen)
    found.sort(key=lambda v: v.seq)
    return found


def found_first(
    order: Sequence[Variable], inputs: Sequence[Variable]
) -> tuple[list[Variable], dict[Variable, list[Variable]]]:
    """Return nodes in an order in which what finds a size comes before what speaks of it.

    A size that depends on data is told by the result of a node; others may need it that do not
    read that result. With the order, for each such node the finders that it waits for.
    """
    finders = [v for v in order if v.expr is not None and "finds_sizes" in v.op.facts]
    if not finders:
        return list(order), {}
    known = {a for v in inputs for a in sizes_spoken_of(v)}
    by_atom: dict[object, Variable] = {}
    for f in finders:
        for a in _type_atoms(f.type) - known:
            by_atom.setdefault(a, f)
    waits: dict[Variable, list[Variable]] = {}
    for v in order:
        found = {by_atom[a] for a in sizes_spoken_of(v) if a in by_atom} - {v}
        if found and v.expr is not None:
            waits[v] = sorted(found, key=lambda f: f.seq)
    first = [v for v in order if v in set(inputs)]
    return first + _by_need(order, set(first), waits), waits


def _by_need(order: Sequence[Variable], given: set, waits: Mapping) -> list[Variable]:
    """Return the nodes that are not given, each after its operands and those it waits for."""
    inside, done, entered = set(order), set(given), set(given)
    out: list[Variable] = []
    for root in order:
        stack = [root]
        while stack:
            v = stack[-1]
            if v not in entered:
                entered.add(v)
                operands = [x for x in v.inputs if x.__class__ is Variable]
                needs = (*operands, *waits.get(v, ()))
                stack.extend(x for x in needs if x in inside and x not in entered)
                continue
            stack.pop()
            if v not in done:
                done.add(v)
                out.append(v)
    return out


def sizes_spoken_of(node: Variable) -> set:
    """Return the unknown sizes that a node speaks of: in its type, operands and parameters."""
    found = _type_atoms(node.type)
    stack: list = [x for x in node.inputs if isinstance(x, Size)]
    if node.expr is not None:
        stack += [value for name, value in node.call.params if name in node.op.sizes]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack.extend(value)
        elif isinstance(value, Size):
            found |= shapes.atoms(value)
    return found


def _type_atoms(type_: Type) -> set:
    if isinstance(type_, TupleType):
        return {a for t in type_.types for a in _type_atoms(t)}
    return {a for s in getattr(type_, "shape", ()) if isinstance(s, Size) for a in shapes.atoms(s)}


def leaves(outputs: Iterable[Variable]) -> list[Variable]:
    """Return the leaves that outputs depend on, in the order in which they were made."""
    return [v for v in toposort(outputs) if v.expr is None]


def clients(nodes: Iterable[Variable]) -> dict[Variable, list[Variable]]:
    """Return the consumers of each node among `nodes`."""
    found: dict[Variable, list[Variable]] = {}
    for v in nodes:
        for x in v.inputs:
            if x.__class__ is Variable:
                found.setdefault(x, []).append(v)
    return found


def with_inputs(node: Variable, inputs: Sequence) -> Variable:
    """Return the node itself when its inputs are unchanged, else the same call on new inputs."""
    if all(a is b for a, b in zip(node.inputs, inputs, strict=True)):
        return node
    out = node.op.apply(node.call, tuple(inputs))
    out.name, out.site = node.name, node.site
    return out


def substitute(
    outputs: Sequence[Variable],
    mapping: Mapping[Variable, object],
    rule: Callable[[Variable], object] | None = None,
) -> list:
    """Return outputs rebuilt with nodes replaced; `rule` may replace each rebuilt node again."""
    done: dict[Variable, object] = {}
    for v in toposort(outputs, stop=[k for k in mapping if k.__class__ is Variable]):
        if v in mapping:
            done[v] = mapping[v]
            continue
        if v.expr is not None:
            new = with_inputs(v, [done[x] if x.__class__ is Variable else x for x in v.inputs])
        else:
            new = v
        done[v] = new if rule is None else rule(new)
    return [done[v] for v in outputs]


def map_sizes(graph: "Graph", mapping: Mapping) -> "Graph":
    """Return the graph with size atoms replaced in all types, size parameters and size operands."""
    done: dict[Variable, Variable] = {}
    for v in graph.toposort():
        new_type = _map_type(v.type, mapping)
        if v.expr is None:
            done[v] = v if new_type is v.type else Variable(new_type, None, v.value, v.name)
            continue
        call = _map_call(v.call, mapping)
        inputs = [
            done[x] if x.__class__ is Variable else shapes.replace(x, mapping) for x in v.inputs
        ]
        same = call is v.call and new_type is v.type
        if same and all(a is b for a, b in zip(inputs, v.inputs, strict=True)):
            done[v] = v
            continue
        done[v] = Variable(new_type, (call, *inputs), UNSET, v.name)
        done[v].site = v.site
    return Graph([done[v] for v in graph.inputs], [done[v] for v in graph.outputs])


def _map_type(t: Type, mapping: Mapping) -> Type:
    if isinstance(t, TensorType):
        if not any(isinstance(s, Size) for s in t.shape):
            return t
        return t.with_shape(tuple(shapes.replace(s, mapping) for s in t.shape))
    if isinstance(t, TupleType):
        return TupleType(tuple(_map_type(x, mapping) for x in t.types))
    return t


def _map_call(call: Call, mapping: Mapping) -> Call:
    if not call.op.sizes:
        return call
    params = []
    for name, value in call.params:
        if name in call.op.sizes:
            value = _map_param(value, mapping)
        params.append((name, value))
    return Call(call.op, tuple(params))


def _map_param(value: object, mapping: Mapping) -> object:
    if isinstance(value, tuple):
        return tuple(_map_param(x, mapping) for x in value)
    if isinstance(value, Graph):
        return map_sizes(value, mapping)
    return shapes.replace(value, mapping)


class Graph:
    """Inputs (leaves) and outputs; compared and hashed by structure.

    Raises GraphError when an output depends on a symbol that is not an input.
    """

    __slots__ = ("inputs", "outputs", "_key")

    def __init__(self, inputs: Iterable[Variable], outputs: Iterable[Variable]):
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self._key: tuple | None = None

    def toposort(self) -> list[Variable]:
        """Return all nodes, inputs included and nothing below them, leaves first."""
        return toposort(self.outputs, stop=self.inputs)

    def missing(self) -> list[Variable]:
        """Return the symbols that outputs depend on and that are no inputs."""
        given = set(self.inputs)
        return [v for v in self.toposort() if v.is_symbol and v not in given]

    def key(self) -> tuple:
        """Return a hashable description: equal keys compute equal things from equal inputs."""
        if self._key is None:
            self._key = structure(self.inputs, self.outputs)
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return f"Graph({len(self.inputs)} inputs, {len(self.outputs)} outputs)"

    def __reduce__(self):
        nodes = [*self.inputs, *self.outputs]
        return _revive_graph, (linearize(nodes), len(self.inputs))


def structure(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> tuple:
    """Return the structure of a graph as nested tuples; data leaves are compared by identity."""
    number = {v: i for i, v in enumerate(inputs)}
    rows: list = [tuple(v.type for v in inputs)]
    for v in toposort(outputs, stop=inputs):
        if v in number:
            continue
        number[v] = len(number)
        if v.expr is None:
            rows.append((v.type, v if v.is_symbol else _Same(v.value)))
            continue
        args = [number[x] if x.__class__ is Variable else (x.__class__, repr(x)) for x in v.inputs]
        rows.append((v.call, *args))
    rows.append(tuple(number[v] for v in outputs))
    return tuple(rows)


class _Same:
    """Compares an array by identity, and keeps it alive."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def linearize(outputs: Sequence[Variable]) -> tuple:
    """Return a flat, picklable form of a graph: rows that name earlier rows by number."""
    order = toposort(outputs)
    number = {v: i for i, v in enumerate(order)}
    rows = []
    for v in order:
        args = tuple(_Ref(number[x]) if x.__class__ is Variable else x for x in v.inputs)
        value = v.value if v.expr is None else UNSET
        rows.append((v.type, v.call, args, value, v.name))
    return tuple(rows), tuple(number[v] for v in outputs)


class _Ref:
    __slots__ = ("i",)

    def __init__(self, i: int):
        self.i = i

    def __reduce__(self):
        return _Ref, (self.i,)


def revive_all(flat: tuple) -> list[Variable]:
    """Rebuild the outputs of `linearize`."""
    rows, outputs = flat
    nodes: list[Variable] = []
    for type_, call, args, value, name in rows:
        expr = None
        if call is not None:
            expr = (call, *(nodes[a.i] if isinstance(a, _Ref) else a for a in args))
        if value is not UNSET:
            value.flags.writeable = False
        nodes.append(Variable(type_, expr, value, name))
    return [nodes[i] for i in outputs]


def revive(flat: tuple, i: int) -> Variable:
    """Rebuild one output of `linearize`."""
    return revive_all(flat)[i]


def _reduce_variable(node: Variable) -> tuple:
    return revive, (linearize([node]), 0)


copyreg.pickle(Variable, _reduce_variable)


def _revive_graph(flat: tuple, n_inputs: int) -> Graph:
    nodes = revive_all(flat)
    return Graph(nodes[:n_inputs], nodes[n_inputs:])


def inline(graph: Graph, args: Sequence) -> list:
    """Return the outputs of a graph with its inputs replaced by args."""
    if len(args) != len(graph.inputs):
        raise GraphError(f"the graph takes {len(graph.inputs)} inputs, got {len(args)}.")
    return substitute(graph.outputs, dict(zip(graph.inputs, args, strict=True)))
