"""The shortest way from Python to a Numba program, where no C compiler makes a shorter one.

A function is written for the program. It takes arrays that fit exactly; what does not goes to
`on_mismatch`, a code to `on_code`. What follows from the shapes is remembered for shapes that came
before.
"""

from collections.abc import Callable, Sequence

import numpy as np

from lazyarr.backends.loop.interface import Interface, check_sizes, output_shapes
from lazyarr.errors import ShapeError
from lazyarr.graph.dtypes import own

REMEMBERED = 1000
"""Combinations of shapes of which is remembered what follows from them."""


def launcher(
    entry: Callable[..., int],
    face: Interface,
    addresses: np.ndarray,
    bound: Sequence[np.ndarray | None],
    *,
    on_code: Callable[[int, tuple], object],
    on_mismatch: Callable[..., object],
    returns: str,
    reject_one: bool = False,
) -> Callable[..., object]:
    """Return a callable of positional arrays.

    The program takes in front the unknown sizes of the interface, then `addresses`. `bound` holds
    for each input an array that is given now, or None. With `reject_one` a size of 1 that is not
    known is a mismatch.
    """
    free = [i for i in range(len(face.inputs)) if i >= len(bound) or bound[i] is None]
    names: dict[str, object] = {
        "entry": entry, "on_code": on_code, "on_mismatch": on_mismatch, "empty": np.empty,
        "array": np.ndarray, "known": {}, "follow": _Follow(face, addresses, bound, reject_one),
    }  # fmt: skip
    fits, passed = [], []
    for i, type_ in enumerate(face.inputs):
        if i not in free:
            names[f"x{i}"] = np.ascontiguousarray(bound[i], type_.dtype).reshape(-1)
            passed.append(f"x{i}")
            continue
        names[f"d{i}"] = own(type_.dtype)
        fits.append(
            f"type(x{i}) is array and x{i}.dtype is d{i} "
            f"and x{i}.flags.c_contiguous and x{i}.flags.aligned"
        )
        passed.append(_flat(f"x{i}", type_.ndim))
    for k, type_ in enumerate(face.outputs):
        names[f"e{k}"] = own(type_.dtype)
        passed.append(_flat(f"y{k}", type_.ndim))
    exec(_text(free, fits, passed, len(face.outputs), returns), names)
    return names["call"]


def _text(free: list[int], fits: list[str], passed: list[str], made: int, returns: str) -> str:
    """Return the function: inputs that the call gives, what they must be, what is passed."""
    results = ", ".join(f"y{k}" for k in range(made))
    result = {"list": f"[{results}]", "tuple": f"({results},)", "single": "y0"}[returns]
    body = [
        "def call(*args):",
        f"    if len(args) != {len(free)}:",
        "        return on_mismatch(*args)",
        *([f"    {', '.join(f'x{i}' for i in free)}, = args"] if free else []),
        f"    if not ({' and '.join(fits) or True}):",
        "        return on_mismatch(*args)",
        f"    key = ({''.join(f'x{i}.shape, ' for i in free)})",
        "    found = known.get(key)",
        "    if found is None:",
        f"        if len(known) > {REMEMBERED}:",
        "            known.clear()",
        "        found = follow(key)",
        "        if found is None:",
        "            return on_mismatch(*args)",
        "        known[key] = found",
        f"    dim, {''.join(f's{k}, ' for k in range(made))} = found",
        *(f"    y{k} = empty(s{k}, e{k})" for k in range(made)),
        f"    code = entry({', '.join(['dim', *passed])})",
        f"    return on_code(code, args) if code else {result}",
    ]
    return "\n".join(body)


class _Follow:
    """What follows from the shapes of a call: the numbers in front, and the shapes of results."""

    def __init__(
        self,
        face: Interface,
        addresses: np.ndarray,
        bound: Sequence[np.ndarray | None],
        reject_one: bool,
    ):
        self.face, self.addresses, self.reject_one = face, addresses, reject_one
        self.bound = [None if a is None else a.shape for a in bound]
        self.bound += [None] * (len(face.inputs) - len(bound))

    def __call__(self, given: tuple) -> tuple | None:
        """Return them, or None for shapes that the program is not made for."""
        rest = iter(given)
        shapes = [next(rest) if shape is None else shape for shape in self.bound]
        if any(len(s) != t.ndim for s, t in zip(shapes, self.face.inputs, strict=True)):
            return None
        try:
            env = check_sizes(self.face, shapes)
        except (ShapeError, ZeroDivisionError):
            return None
        made = output_shapes(self.face, env)
        if made is None or (self.reject_one and 1 in env.values()):
            return None
        sizes = [env[atom] for atom in self.face.atoms]
        return np.array([*sizes, *self.addresses], np.int64), *made


def _flat(name: str, ndim: int) -> str:
    return name if ndim == 1 else f"{name}.reshape(-1)"
