"""The shortest way from Python to a Numba program of known sizes: a function written for it.

It takes arrays that fit exactly; what does not goes to `on_mismatch`, a code to `on_code`.
"""

from collections.abc import Callable, Sequence

import numpy as np


def launcher(
    entry: Callable[..., int],
    dim: np.ndarray,
    inputs: Sequence[tuple],
    outputs: Sequence[tuple],
    bound: Sequence[np.ndarray | None],
    *,
    on_code: Callable[[int, tuple], object],
    on_mismatch: Callable[..., object],
    returns: str,
) -> Callable[..., object]:
    """Return a callable of positional arrays; inputs and outputs are pairs of shape and dtype.

    `dim` is what the program takes in front. `bound` holds for each input an array that is given
    now, or None.
    """
    names: dict[str, object] = {
        "entry": entry, "on_code": on_code, "on_mismatch": on_mismatch, "empty": np.empty,
        "array": np.ndarray, "dim": dim,
    }  # fmt: skip
    fits, passed = [], []
    free = [i for i in range(len(inputs)) if i >= len(bound) or bound[i] is None]
    for i, (shape, dtype) in enumerate(inputs):
        if i not in free:
            names[f"x{i}"] = np.ascontiguousarray(bound[i], dtype).reshape(-1)
            passed.append(f"x{i}")
            continue
        names[f"d{i}"] = dtype
        fits.append(
            f"type(x{i}) is array and x{i}.dtype is d{i} and x{i}.shape == {shape!r} "
            f"and x{i}.flags.c_contiguous and x{i}.flags.aligned"
        )
        passed.append(_flat(f"x{i}", shape))
    made = []
    for k, (shape, dtype) in enumerate(outputs):
        names[f"e{k}"] = dtype
        made.append(f"y{k} = empty({shape!r}, e{k})")
        passed.append(_flat(f"y{k}", shape))
    results = ", ".join(f"y{k}" for k in range(len(outputs)))
    result = {"list": f"[{results}]", "tuple": f"({results},)", "single": "y0"}[returns]
    body = [
        "def call(*args):",
        f"    if len(args) != {len(free)}:",
        "        return on_mismatch(*args)",
        *([f"    {', '.join(f'x{i}' for i in free)}, = args"] if free else []),
        f"    if not ({' and '.join(fits) or True}):",
        "        return on_mismatch(*args)",
        *(f"    {line}" for line in made),
        f"    code = entry({', '.join(['dim', *passed])})",
        f"    return on_code(code, args) if code else {result}",
    ]
    exec("\n".join(body), names)
    return names["call"]


def _flat(name: str, shape: tuple) -> str:
    return name if len(shape) == 1 else f"{name}.reshape(-1)"
