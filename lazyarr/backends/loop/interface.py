"""What a planned program takes and returns, and which sizes it relies on, for those who call it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod

from lazyarr.backends.loop.plan import Plan
from lazyarr.errors import ShapeError
from lazyarr.graph.shapes import EVALUATE, Atom, Size, atoms, bind, evaluate, lone_atom
from lazyarr.graph.types import TensorType


@dataclass(frozen=True)
class Interface:
    """What a program takes and returns.

    `atoms` are the unknown sizes in the order of the program's `dim`; each must be a size of some
    input by itself. The program relies on the pairs in `equal` being equal, and on no size in
    `nonzero` being 0; a call for which that is not so is a mismatch.
    """

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    atoms: tuple[Atom, ...] = ()
    _: KW_ONLY
    equal: tuple[tuple[int | Size | Atom, int | Size | Atom], ...] = ()
    nonzero: tuple[Size, ...] = ()
    names: tuple[str, ...] = ()

    def name(self, i: int) -> str:
        """Return how messages call input `i`."""
        given = self.names[i] if i < len(self.names) else ""
        return f"input {given!r}" if given else f"input {i}"


def interface_of(plan: Plan, names: tuple[str, ...] = ()) -> Interface:
    """Return what a planned program takes, returns and relies on."""
    sizes = plan.program.sizes
    # the program needs plan.atoms; the other unknown sizes of inputs follow, for the checks
    found = dict.fromkeys(plan.atoms)
    for type_ in plan.inputs:
        found.update(dict.fromkeys(atom for s in type_.shape if (atom := lone_atom(s))))
    outputs = (t.with_shape(tuple(sizes.canon(s) for s in t.shape)) for t in plan.outputs)
    equal = ((atom, sizes.canon(size)) for atom, size in sizes.mapping.items())
    return Interface(
        inputs=plan.inputs,
        outputs=tuple(outputs),
        atoms=tuple(found),
        # what a scan's body calls by names of its own follows from the rest
        equal=tuple(pair for pair in equal if _free(pair[0]) | atoms(pair[1]) <= found.keys()),
        names=names,
    )


def _free(atom: Atom) -> set[Atom]:
    """Return the unknown sizes that an atom depends on."""
    if atom.kind == "dim":
        return {atom}
    return set().union(*(atoms(argument) for argument in atom.args))


def check_sizes(interface: Interface, shapes: Sequence[tuple[int, ...]]) -> dict[Atom, int]:
    """Return the values of the unknown sizes; ShapeError where an input has another size."""
    env = bind((t.shape for t in interface.inputs), shapes)
    for i, (type_, shape) in enumerate(zip(interface.inputs, shapes, strict=True)):
        for axis, (size, n) in enumerate(zip(type_.shape, shape, strict=True)):
            wanted = evaluate(size, env)
            if wanted != n:
                shown = f"{size} = {wanted}" if isinstance(size, Size) else wanted
                name = interface.name(i)
                raise ShapeError(f"{name} must have size {shown} along axis {axis}, got {shape}")
    return env


def output_shapes(interface: Interface, env: dict[Atom, int]) -> list[tuple[int, ...]] | None:
    """Return the shapes of the results; None where sizes are not what the program relies on."""
    try:
        if any(_value(a, env) != _value(b, env) for a, b in interface.equal):
            return None
        if not all(_value(size, env) for size in interface.nonzero):
            return None
        return [tuple(_value(size, env) for size in type_.shape) for type_ in interface.outputs]
    except (ShapeError, ZeroDivisionError):
        return None


def _value(size: object, env: dict[Atom, int]) -> int:
    """Evaluate a size as launchers do: the broadcast of two sizes needs them to be equal."""
    if isinstance(size, Atom):
        return _atom_value(size, env)
    if not isinstance(size, Size):
        return size
    return sum(
        factor * prod(_atom_value(atom, env) for atom in monomial)
        for monomial, factor in size.terms
    )


def _atom_value(atom: Atom, env: dict[Atom, int]) -> int:
    if atom in env:
        return env[atom]
    arguments = [_value(argument, env) for argument in atom.args]
    if atom.kind == "bc" and arguments[0] != arguments[1]:
        raise ShapeError(f"sizes {arguments[0]} and {arguments[1]} differ")
    return EVALUATE[atom.kind](*arguments)
