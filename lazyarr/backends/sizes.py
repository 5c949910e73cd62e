"""Making unknown sizes usable: what is 1, what is equal, and what must be checked at each call.

A program is specialised to the pattern of its sizes: which unknowns are 1 (they broadcast),
everything else being unknown but not 1. Sizes that an operation needs to be equal are united, and
the equation is verified whenever the program is called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lazyarr.errors import DimError, ShapeError
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.shapes import Atom, Size
from lazyarr.graph.traverse import Graph, map_sizes
from lazyarr.graph.types import TensorType, TupleType


@dataclass
class Equation:
    """Two sizes that must be equal (or a size that must not be 0), and what to say if not."""

    left: object
    right: object
    message: str
    node: Variable | None
    error: type = ShapeError
    place: str = ""

    def __getstate__(self) -> dict:
        return {**self.__dict__, "node": None, "place": self.where_made()}

    def where_made(self) -> str:
        """Return the place in the user's code that needs the equation."""
        return self.place or (self.node.where_made() if self.node is not None else "")

    def verify(self, env: Mapping[Atom, int]) -> None:
        """Raise when the equation does not hold."""
        a, b = shapes.evaluate(self.left, env), shapes.evaluate(self.right, env)
        bad = a == 0 if self.right is None else a != b
        if bad:
            place = self.where_made()
            raise self.error(
                self.message.format(a=a, b=b) + (f"; made at {place}." if place else ".")
            )


@dataclass
class Conditions:
    """What a program relies on: equations for all its unknown sizes, and for those that are left.

    `equal` are pairs of sizes, `nonzero` sizes; they follow from the equations.
    """

    equations: list[Equation]
    equal: list[tuple]
    nonzero: list

    def remaining(self) -> tuple[list[tuple], list]:
        """Return what equations still say about the unknowns left: equal pairs, nonzero sizes."""
        return self.equal, self.nonzero


@dataclass
class Specialised:
    """A graph for one pattern of sizes, with the equations to verify at each call."""

    graph: Graph
    equations: list[Equation] = field(default_factory=list)
    eliminated: list[dict] = field(default_factory=list)

    def settled(self, size: object) -> object:
        """Return a size in terms of the unknowns that are left."""
        for mapping in self.eliminated:
            size = shapes.replace(size, mapping)
        return size

    def conditions(self) -> Conditions:
        """Return what the program of this graph relies on."""
        pairs = [
            (self.settled(e.left), self.settled(e.right))
            for e in self.equations
            if e.right is not None
        ]
        equal = [(a, b) for a, b in pairs if a is not b and a != b]
        nonzero = [self.settled(e.left) for e in self.equations if e.right is None]
        return Conditions(self.equations, equal, nonzero)


def all_shapes(order: Iterable[Variable]) -> list[tuple]:
    """Return the shapes of all tensors among nodes."""
    found = []
    for v in order:
        types = v.type.types if isinstance(v.type, TupleType) else (v.type,)
        found.extend(t.shape for t in types if isinstance(t, TensorType))
    return found


def tellers(
    part: Sequence[Variable], given: Sequence[Variable], known: Iterable[Variable]
) -> list[Variable]:
    """Return values that tell the unknowns of a part of a graph which its inputs do not tell."""
    told = {a for v in given for s in getattr(v.type, "shape", ()) if (a := shapes.lone_atom(s))}
    spoken = [*_sizes_of(part), *(s for shape in all_shapes(given) for s in shape)]
    wanted = {a for s in spoken for a in shapes.atoms(s) if a.kind == "dim"} - told
    found = []
    for v in known if wanted else ():
        new = {a for s in getattr(v.type, "shape", ()) if (a := shapes.lone_atom(s)) in wanted}
        if new:
            wanted -= new
            found.append(v)
    return found


def _sizes_of(nodes: Iterable[Variable]) -> list[Size]:
    """Return every unknown size that nodes speak of: types, operands, parameters, loop bodies."""
    found: list[object] = []
    stack = list(nodes)
    while stack:
        v = stack.pop()
        held = [v.params[name] for name in v.op.sizes] if v.op is not None else []
        while held:
            value = held.pop()
            if isinstance(value, tuple):
                held.extend(value)
            elif isinstance(value, Graph):
                stack.extend(value.toposort())
            else:
                found.append(value)
        found += [x for x in v.inputs if isinstance(x, Size)]
        found += [s for shape in all_shapes([v]) for s in shape]
    return [s for s in found if isinstance(s, Size)]


def free_atoms(graph: Graph) -> set[Atom]:
    """Return the unknown sizes that the inputs of a graph have."""
    return set(input_atoms(graph))


def input_atoms(graph: Graph) -> list[Atom]:
    """Return the unknown sizes of the inputs as they are met: an order that the structure tells."""
    found: dict[Atom, None] = {}
    for v in graph.inputs:
        for s in getattr(v.type, "shape", ()):
            _note_atoms(s, found)
    return list(found)


def _note_atoms(size: object, found: dict[Atom, None]) -> None:
    if isinstance(size, Size):
        for mono, _ in size.terms:
            for a in mono:
                if a.kind == "dim":
                    found[a] = None
                for s in a.args:
                    _note_atoms(s, found)


def derived_tests(graph: Graph) -> list[Size]:
    """Return computed sizes that broadcast against others: whether they are 1 matters."""
    found: dict[Size, None] = {}
    for v in graph.toposort():
        if v.op is None or v.op.kind != "elementwise":
            continue
        for _, s, out in _operand_axes(v):
            if isinstance(s, Size) and s is not out and shapes.lone_atom(s) is None:
                found[s] = None
    return list(found)


def _operand_axes(node: Variable) -> Iterable[tuple]:
    """Yield (operand, its size, size of the result) for each axis of each operand."""
    shape = node.type.shape
    for x in node.inputs:
        if x.__class__ is Variable:
            lead = len(shape) - x.type.ndim
            for i, s in enumerate(x.type.shape):
                yield x, s, shape[lead + i]


def pattern_of(atoms: Sequence[Atom], tests: Sequence[Size], env: Mapping[Atom, int]) -> tuple:
    """Return what a specialisation depends on: the unknowns that are 1, and fixed values."""
    ones = tuple(a for a in atoms if env.get(a) == 1)
    fixed: dict[Atom, int] = {}
    for t in tests:
        if shapes.evaluate(t, env) == 1:
            fixed.update({a: env[a] for a in shapes.atoms(t)})
    return ones, tuple(sorted(fixed.items(), key=lambda kv: kv[0].uid))


def specialise(graph: Graph, pattern: tuple, rewrite: Callable[[Graph], Graph]) -> Specialised:
    """Return the graph for a pattern after `rewrite` (the pipeline), and its equations."""
    ones, fixed = pattern
    mapping: dict = {**dict.fromkeys(ones, 1), **dict(fixed)}
    out = Specialised(map_sizes(graph, mapping) if mapping else graph)
    out.eliminated.append(mapping)
    _unite(out)
    out.graph = rewrite(out.graph)
    _unite(out)
    known = free_atoms(graph)  # what only an operation finds is verified by who reads its result
    out.equations = [
        e for e in out.equations if shapes.atoms(e.left) | shapes.atoms(e.right) <= known
    ]
    return out


def _unite(spec: Specialised) -> None:
    """Replace broadcasts of unknowns and sizes that must be equal by one size each."""
    while True:
        order = spec.graph.toposort()
        new = equations_of(order)
        mapping: dict[Atom, object] = {}
        for eq in new:
            _solve(eq, mapping)
        for atom in _broadcast_atoms(order):
            mapping[atom] = _chosen(atom)
        spec.equations.extend(new)
        if not mapping:
            return
        mapping = {a: _settled(s, mapping) for a, s in mapping.items()}
        spec.eliminated.append(mapping)
        spec.graph = map_sizes(spec.graph, mapping)


def _chosen(atom: Atom) -> object:
    """Of broadcast sizes that are not 1, keep the first: all are equal."""
    return atom.args[0]


def _solve(eq: Equation, mapping: dict) -> None:
    """Use an equation to eliminate a lone unknown, after what is eliminated already."""
    if eq.right is None:
        return
    left, right = _settled(eq.left, mapping), _settled(eq.right, mapping)
    if left is right or left == right:
        return
    for a, b in ((right, left), (left, right)):
        atom = shapes.lone_atom(a)
        if atom is not None and atom.kind == "dim" and atom not in shapes.atoms(b):
            mapping[atom] = b
            return


def _settled(size: object, mapping: dict) -> object:
    """Apply a substitution until nothing changes."""
    while True:
        again = shapes.replace(size, mapping)
        if again is size or again == size:
            return size
        size = again


def _broadcast_atoms(order: Iterable[Variable]) -> list[Atom]:
    found: dict[Atom, None] = {}
    stack = [s for shape in all_shapes(order) for s in shape]
    while stack:
        s = stack.pop()
        if isinstance(s, Size):
            for mono, _ in s.terms:
                for a in mono:
                    if a.kind == "bc":
                        found[a] = None
                    stack.extend(a.args)
    return list(found)


def equations_of(order: Iterable[Variable]) -> list[Equation]:
    """Return the equations between sizes that nodes need and types do not prove."""
    found: list[Equation] = []
    for v in order:
        if v.op is None:
            continue
        rule = _EQUATIONS.get(v.op.name) or _EQUATIONS.get(v.op.kind)
        if rule is not None:
            found.extend(eq for eq in rule(v) if _open(eq))
    return found


def _open(eq: Equation) -> bool:
    """Tell whether an equation is not settled by what is known."""
    if eq.right is None:
        return not isinstance(eq.left, int) or eq.left == 0
    return eq.left is not eq.right and eq.left != eq.right


def _elementwise(node: Variable) -> Iterable[Equation]:
    for _, s, out in _operand_axes(node):
        if s != 1 and s is not out:
            message = f"{node.op.name}: sizes {{a}} and {{b}} do not broadcast"
            yield Equation(_first(out), _first(s), message, node)


def _first(size: object) -> object:
    """Return the size that stands for a broadcast of unknowns: they are equal when none is 1."""
    atom = shapes.lone_atom(size)
    return atom.args[0] if atom is not None and atom.kind == "bc" else size


def _specify(node: Variable) -> Iterable[Equation]:
    x = node.inputs[0]
    dims = node.params.get("dims") or ()
    for i, (a, b) in enumerate(zip(x.type.shape, node.type.shape, strict=True)):
        if dims:
            message = f"dimension {dims[i]!r} has size {{a}} in one operand and {{b}} in another"
            yield Equation(a, b, message, node, DimError)
        else:
            yield Equation(a, b, f"{node.op.name}: sizes {{a}} and {{b}} differ", node)


def _broadcast_to(node: Variable) -> Iterable[Equation]:
    for _, s, out in _operand_axes(node):
        if s != 1:
            yield Equation(s, out, "broadcast_to: size {a} does not broadcast to {b}", node)


def _contract(node: Variable) -> Iterable[Equation]:
    seen: dict[int, object] = {}
    for labels, x in zip(node.params["spec"], node.inputs, strict=False):
        for label, s in zip(labels, x.type.shape, strict=True):
            if label in seen:
                yield Equation(seen[label], s, "product: sizes {a} and {b} differ", node)
            else:
                seen[label] = s


def _reshape(node: Variable) -> Iterable[Equation]:
    total, new = shapes.product(node.inputs[0].type.shape), shapes.product(node.type.shape)
    yield Equation(total, new, "reshape: {a} elements do not fit {b}", node)


def _squeeze(node: Variable) -> Iterable[Equation]:
    for a in node.params["axis"]:
        yield Equation(node.inputs[0].type.shape[a], 1, f"squeeze: axis {a} has size {{a}}", node)


def _join(node: Variable) -> Iterable[Equation]:
    axis = node.params["axis"] if node.op.name == "concat" else None
    first = node.inputs[0].type.shape
    for x in node.inputs[1:]:
        for i, (a, b) in enumerate(zip(first, x.type.shape, strict=True)):
            if i != axis:
                yield Equation(a, b, f"{node.op.name}: sizes {{a}} and {{b}} differ", node)


def _reduction(node: Variable) -> Iterable[Equation]:
    if node.op.combine in ("max", "min", "argmax", "argmin"):
        for a in node.params["axis"]:
            s = node.inputs[0].type.shape[a]
            yield Equation(s, None, f"{node.op.name} over an empty axis: axis {a}", node)


def _library(node: Variable) -> Iterable[Equation]:
    if "square" in node.op.facts:
        yield from _square(node)


def _square(node: Variable) -> Iterable[Equation]:
    n, m = node.inputs[0].type.shape[-2:]
    yield Equation(n, m, f"{node.op.name}: a matrix of {{a}} rows and {{b}} columns", node)


def _scan(node: Variable) -> Iterable[Equation]:
    params = node.params
    for x in node.inputs[params["n_carry"] : params["n_carry"] + params["n_xs"]]:
        yield Equation(x.type.shape[0], params["length"], "scan: {a} elements for {b} steps", node)
    yield from equations_of(params["body"].toposort())


_EQUATIONS = {
    "elementwise": _elementwise,
    "specify_shape": _specify,
    "broadcast_to": _broadcast_to,
    "contract": _contract,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "concat": _join,
    "stack": _join,
    "reduction": _reduction,
    "library": _library,
    "main_diagonal": _square,
    "scan": _scan,
}
