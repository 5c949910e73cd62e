"""What a planned program takes and returns, and which sizes it relies on, for those who call it."""

from dataclasses import KW_ONLY, dataclass

from lazyarr.backends.loop.plan import Plan
from lazyarr.graph.shapes import Atom, Size, atoms, lone_atom
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
