"""Program: a graph as the source text of a Python function, one assignment per node.

The text reads `def program(v0, v1): ...` with every argument explicit; unknown sizes arrive as a
tuple of ints, `program(sizes, v0, v1)`. A scan's body is a function inside it. Nothing recurses
over nodes, so depth is no limit.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lazyarr.backends.array.elementwise import elementwise, operand_dtype, row
from lazyarr.backends.array.indexing import INDEXING, basic_index
from lazyarr.backends.array.kinds import CREATION, MOVEMENT, contraction, cumulative, reduction
from lazyarr.backends.array.table import Table, Unsupported
from lazyarr.backends.array.text import INT32, Module, Scope
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import knows_sizes
from lazyarr.graph.scalar import PRIMS, var
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph, toposort
from lazyarr.graph.types import TensorType, TupleType, Type


@dataclass
class Program:
    """The text of a graph and what running it needs."""

    source: str
    function: Callable
    atoms: tuple  # the unknown sizes that it takes, in order
    used: tuple[int, ...]  # which inputs it takes, in order
    residents: tuple[np.ndarray, ...]  # arrays of the graph itself, further arguments
    checked: bool  # whether it returns an error code after its outputs
    owned: tuple[bool, ...]  # per output: whether nothing else can share its memory
    lines: int


def write(graph: Graph, table: Table) -> Program:
    """Return the program of a graph; Unsupported when the table has no words for a node."""
    atoms = input_atoms(graph)
    module = Module(table, atoms)
    scope = Scope(module)
    order = graph.toposort()
    read = _read(order, graph.outputs)
    used = tuple(i for i, v in enumerate(graph.inputs) if v in read)
    for i in used:
        scope.names.setdefault(graph.inputs[i], module.name("v"))
    used = tuple(i for k, i in enumerate(used) if graph.inputs[i] not in
                 [graph.inputs[j] for j in used[:k]])  # fmt: skip
    statements(scope, order, graph.outputs)
    outputs = [scope.arg(v) for v in graph.outputs]
    params = [scope.names[graph.inputs[i]] for i in used]
    params += [name for name, _ in module.residents.values()]
    source = _text(scope, atoms, params, outputs)
    return Program(
        source=source,
        function=_executed(source, module.globals),
        atoms=atoms,
        used=used,
        residents=tuple(a for _, a in module.residents.values()),
        checked=scope.checked,
        owned=_owned(graph.outputs, table),
        lines=source.count("\n"),
    )


def _text(scope: Scope, atoms: tuple, params: list[str], outputs: list[str]) -> str:
    """Return the text of the whole function."""
    head = [f"{scope.tuple([f'n{i}' for i in range(len(atoms))])} = sizes"] if atoms else []
    head += scope.module.size_lines
    if scope.checked:
        head.append(f"e = {scope.module.constant(0, INT32)}")
    result = scope.tuple([*outputs, "e"] if scope.checked else outputs)
    lines = [*head, *scope.lines, f"return {result}"]
    params = ["sizes", *params] if atoms else params
    known = [f"# {k} = {v}, {d}" for (v, d), k in scope.module.constants.items()]
    body = [f"    {text}" for text in lines]
    return "\n".join([*known, f"def program({', '.join(params)}):", *body, ""])


def _executed(source: str, names: dict[str, object]) -> Callable:
    """Return the function that a text defines."""
    place = dict(names)
    exec(compile(source, "<lazyarr program>", "exec"), place)
    return place["program"]


def input_atoms(graph: Graph) -> tuple:
    """Return the unknowns that the shapes of the inputs tell, in order."""
    found: dict[Atom, None] = {}
    for v in graph.inputs:
        for size in getattr(v.type, "shape", ()):
            form = linear_form(size)
            if form is not None:
                found[form[0]] = None
    return tuple(found)


def linear_form(size: object) -> tuple[Atom, int, int] | None:
    """Return (atom, factor, offset) of a size `factor * atom + offset`, else None.

    >>> n = shapes.unknown("n")
    >>> linear_form(2 * n + 1)
    (n, 2, 1)
    """
    if not isinstance(size, Size):
        return None
    terms = dict(size.terms)
    offset = terms.pop((), 0)
    if len(terms) == 1:
        ((mono, factor),) = terms.items()
        if len(mono) == 1:
            return mono[0], factor, offset
    return None


def _read(order: list[Variable], outputs: tuple) -> set[Variable]:
    """Return the nodes that some node reads or that are outputs."""
    found = set(outputs)
    for v in order:
        found.update(x for x in v.inputs if x.__class__ is Variable)
    return found


def statements(scope: Scope, order: list[Variable], outputs: tuple) -> None:
    """Write one assignment per node, and drop each value after its last use."""
    last: dict[Variable, int] = {}
    for i, v in enumerate(order):
        for x in v.inputs:
            if x.__class__ is Variable:
                last[x] = i
    kept = set(outputs)
    dying: dict[int, list[Variable]] = {}
    for v, i in last.items():
        if v not in kept and v.expr is not None:
            dying.setdefault(i, []).append(v)
    for i, v in enumerate(order):
        if v in scope.names or v.expr is None:
            continue
        text = expression(scope, v)
        scope.names[v] = name = scope.module.name("v")
        scope.line(f"{name} = {text}")
        if scope.module.table.frees:
            dead = [scope.names[x] for x in dying.get(i, ())] + scope.temporaries
            if dead:
                scope.line(f"del {', '.join(dead)}")
        scope.temporaries.clear()


def expression(scope: Scope, node: Variable) -> str:
    """Return the text that computes a node from the names of its operands."""
    op = node.op
    if op.kind == "elementwise":
        return elementwise(scope, node)
    if op.name in scope.module.table.rows:
        return row(scope, node, [scope.arg(x) for x in node.inputs])
    writer = _BY_NAME.get(op.name) or _BY_KIND.get(op.kind)
    if writer is None:
        raise Unsupported(f"{op.name} has no words.")
    return writer(scope, node)


# -- library and control --------------------------------------------------------------------------


def _cholesky(scope: Scope, node: Variable) -> str:
    """The factor; that every matrix had one is a check."""
    x = node.inputs[0]
    both = scope.temporary(scope.call("cholesky", scope.arg(x), over=x.type.dtype))
    scope.check(f"{both}[1]")
    return f"{both}[0]"


def _solve(scope: Scope, node: Variable) -> str:
    a, b = (scope.arg(x, node.dtype) for x in node.inputs)
    return scope.call("solve_triangular", a, b, over=node.dtype, **node.params)


def _foreign(scope: Scope, node: Variable) -> str:
    """A function written in this namespace is called where it stands."""
    table = scope.module.table
    function = node.params["function"].inlined(table.name) if table.name else None
    if function is None or not knows_sizes(node):
        raise Unsupported(f"{node.params['function']} is not written in this namespace.")
    name = scope.module.name("foreign")
    scope.module.globals[name] = function
    return f"{name}({', '.join(scope.arg(x) for x in node.inputs)})"


def _pick(scope: Scope, node: Variable) -> str:
    return f"{scope.arg(node.inputs[0])}[{node.params['index']}]"


def _scan(scope: Scope, node: Variable) -> str:
    """A body function, then one call of the word `scan` on carries and xs."""
    p, inputs = node.params, node.inputs
    n, m = p["n_carry"], p["n_carry"] + p["n_xs"]
    module, body = scope.module, p["body"]
    captures = dict(zip(body.inputs[m:], (scope.arg(x) for x in inputs[m:]), strict=True))
    inner = Scope(module, captures)
    for v in body.inputs[:m]:
        inner.names[v] = module.name("v")
    statements(inner, toposort(body.outputs), body.outputs)
    results = [inner.arg(v) for v in body.outputs]
    n_y = len(results) - p["until"]
    stop = results[n_y:]
    carry = [inner.names[v] for v in body.inputs[:n]]
    xs = [inner.names[v] for v in body.inputs[n:m]]
    if inner.checked:
        scope.checked = True
        carry, results = [*carry, "e"], [*results[:n], "e", *results[n:]]
    k, n_y = len(carry), n_y + inner.checked
    name = module.name("body")
    scope.line(f"def {name}(carry, xs):")
    unpack = [f"{scope.tuple(part)} = {source}" for part, source in
              ((carry, "carry"), (xs, "xs")) if part]  # fmt: skip
    result = ", ".join([scope.tuple(results[:k]), scope.tuple(results[k:n_y]), *stop])
    result = f"return {result}"
    for text in (*unpack, *inner.lines, result):
        scope.line(f"    {text}")
    init = scope.tuple([*(scope.arg(x) for x in inputs[:n]), *carry[n:]])
    given = scope.tuple([scope.arg(x) for x in inputs[n:m]])
    stacked = body.outputs[n : len(body.outputs) - p["until"]]
    ys = module.literal(tuple((v.type.shape, v.dtype) for v in stacked))
    args = [name, init, given, f"ys={ys}"]
    if p["counted"]:
        args.append(f"count={scope.arg(inputs[-1])}")
    flags = {"length": p["length"], "reverse": p["reverse"], "until": p["until"]}
    made = scope.temporary(scope.call("scan", *args, **flags))
    count = f", {made}[2]" if p["until"] else ""
    if inner.checked:
        scope.line(f"e = {made}[0][{n}]")
        return f"(*{made}[0][:{n}], *{made}[1]{count})"
    return f"(*{made}[0], *{made}[1]{count})"


_BY_NAME: dict[str, Callable] = {
    **MOVEMENT,
    **CREATION,
    **INDEXING,
    "basic_index": basic_index,
    "cholesky_lower": _cholesky,
    "solve_matrix": _solve,
    "scan": _scan,
    "foreign": _foreign,
    "pick": _pick,
}
_BY_KIND: dict[str, Callable] = {
    "reduction": reduction,
    "cumulative": cumulative,
    "contraction": contraction,
}


# -- who owns a result ----------------------------------------------------------------------------


def _owned(outputs: tuple, table: Table) -> tuple[bool, ...]:
    """Tell of each output whether its memory is its own in a namespace that computes at once."""
    seen: set[Variable] = set()
    found = []
    for v in outputs:
        found.append(
            v not in seen
            and v.expr is not None
            and v.op.name not in table.rows  # a row may return its operand
            and _allocates(v)
        )
        seen.add(v)
    return tuple(found)


def _allocates(node: Variable) -> bool:
    """Whether computing a node makes new memory, never a view of an operand."""
    op = node.op
    if isinstance(node.type, TupleType):
        return False
    if op.kind == "elementwise":
        if op.formula is None:  # computed by a step before
            return False
        compute = op.compute_dtype(node)
        scalars = [var(i, operand_dtype(node, i, compute)) for i in range(len(node.inputs))]
        root = op.formula(*scalars, **node.params)
        return root.prim in PRIMS and root.dtype == node.dtype and compute.kind != "c"
    if op.kind == "reduction":
        return bool(node.params["axis"]) and op.combine not in ("argmax", "argmin")
    return op.name in ("take_set", "take_add", "set_at", "add_at", "solve_matrix", "take")


def supported(node: Variable, table: Table) -> bool:
    """Tell whether a table has words for a node."""
    module = Module(table)
    scope = Scope(module)
    if node.op.kind == "elementwise" and node.op.formula is None and node.op.name not in table.rows:
        return False
    if not all(_is_plain(v.type) for v in (node, *node.inputs) if v.__class__ is Variable):
        return False
    for v in (node, *node.inputs):
        if v.__class__ is Variable:
            _know_sizes(module, v)
    for x in node.inputs:
        if x.__class__ is Variable:
            scope.names[x] = "x"
    for value in node.params.values():
        if isinstance(value, Graph):
            for v in toposort([*value.outputs, *value.inputs]):
                _know_sizes(module, v)
    try:
        expression(scope, node)
    except Unsupported:
        return False
    return True


def _is_plain(t: Type) -> bool:
    """Tell whether a type is a tensor or several."""
    return isinstance(t, TensorType | TupleType)


def _know_sizes(module: Module, v: Variable) -> None:
    """Give every unknown of a node a name."""
    types = v.type.types if isinstance(v.type, TupleType) else (v.type,)
    sizes = [s for t in types for s in t.shape]
    sizes += [s for s in v.params.values() if isinstance(s, Size)]
    sizes += [s for s in v.inputs if isinstance(s, Size)]
    sizes += [s for p in v.params.values() if isinstance(p, tuple) for s in p]
    for s in sizes:
        for atom in shapes.atoms(s):
            module.sizes.setdefault(atom, "n")
