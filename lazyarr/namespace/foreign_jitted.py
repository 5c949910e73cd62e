"""`as_numba`: a compiled function as a function that Numba compiles into the user's own.

The wrapper reads sizes from the arrays, makes the results, and calls the entry of the program; what
the program knows of data stays where it is, and its addresses are part of the function.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lazyarr.backends.driver import Program
from lazyarr.errors import GraphError
from lazyarr.graph.shapes import Atom, Size, lone_atom

_TEXT = """
def {name}({names}):
    dim = np.array([{dims}], np.int64)
{checks}
{made}
    code = entry({arguments})
    if code:
        raise ValueError("{name}: a check failed, code", code)
    return {results}
"""


def as_numba(program: Program, name: str, single: bool) -> Callable:
    """Return the function compiled by Numba when it is first called on types."""
    numba = importlib.import_module("numba")
    module = importlib.import_module("lazyarr.backends.numba.foreign")
    variant = Program(program.graph, "numba", stored=False).variant(((), ()))
    run: Any = variant.direct
    if run is None or not hasattr(run, "entry"):
        held = ", ".join(program.fallbacks()) or "a step of Python"
        raise GraphError(f"the function is not Numba alone: it needs {held}.")
    made, scope = run.made, {"np": np, "entry": run.entry, "flat": module.flat}
    free = len(made.given) - len(variant.constants)
    names = [f"x{k}" for k in range(free)]
    words = _Words(made.given, names)
    for k, value in enumerate(variant.constants):
        array = np.ascontiguousarray(value).reshape(-1)
        scope[f"held{k}"] = module.held(array)
    checks = [
        f'    if {words.size(a)} != {words.size(b)}:\n        raise ValueError("sizes disagree")'
        for a, b in variant.sizes.remaining()[0]
    ]
    checks += [
        f'    if {place} == 1:\n        raise ValueError("a size that is not known must not be 1")'
        for place in words.places.values()
    ]
    shapes = ["".join(f"{words.size(s)}, " for s in shape) or "1," for shape, _ in made.shapes]
    outs = [
        f"    y{k} = np.empty(({shape}), np.{_word(dtype)})"
        for k, (shape, (_, dtype)) in enumerate(zip(shapes, made.shapes, strict=True))
    ]
    results = [f"y{k}" if s else f"y{k}[0]" for k, (s, _) in enumerate(made.shapes)]
    flat = [
        f"flat({n}, np.{_word(d)})" if s else f"np.array([{n}], np.{_word(d)})"
        for n, s, d in zip(names, made.given, run.dtypes, strict=False)
    ]
    held = [f"held{k}()" for k in range(len(variant.constants))]
    text = _TEXT.format(
        name=name,
        names=", ".join(names),
        dims=", ".join([*map(words.size, made.atoms), *map(str, run.dim.tolist())]) or "0",
        checks="\n".join(checks),
        made="\n".join(outs),
        arguments=", ".join(
            ["dim", *flat, *held, *(f"y{k}.reshape(-1)" for k in range(len(outs)))]
        ),
        results=results[0] if single else f"({', '.join(results)},)",
    )
    exec(text, scope)
    return numba.njit(scope[name])


def _word(dtype: np.dtype) -> str:
    return "bool_" if dtype.kind == "b" else dtype.name


class _Words:
    """Sizes as text over the shapes of the arguments."""

    def __init__(self, given: Sequence[tuple], names: Sequence[str]):
        self.places: dict[Atom, str] = {}
        for n, shape in zip(names, given, strict=False):
            for d, size in enumerate(shape):
                atom = lone_atom(size)
                if atom is not None:
                    self.places.setdefault(atom, f"{n}.shape[{d}]")

    def size(self, size: object) -> str:
        """Return a size, or an atom, as text."""
        if isinstance(size, Atom):
            return self._atom(size)
        if not isinstance(size, Size):
            return str(size)
        terms = [" * ".join([str(k), *map(self._atom, mono)]) for mono, k in size.terms]
        return f"({' + '.join(terms) or '0'})"

    def _atom(self, atom: Atom) -> str:
        if atom in self.places:
            return self.places[atom]
        parts = [self.size(a) for a in atom.args]
        if atom.kind == "floordiv":
            return f"({parts[0]} // {parts[1]})"
        if atom.kind in ("max", "bc"):
            return f"max({', '.join(parts)})"
        raise GraphError(f"the size {atom} cannot be told by the arguments alone.")
