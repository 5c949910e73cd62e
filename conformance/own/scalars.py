"""Python numbers as operands: they take the array's dtype, on either side."""

import numpy as np

from conformance import spec
from conformance.libraries import Library
from conformance.own import compare
from conformance.own.check import Check, Mismatch, Options, describe
from conformance.own.draw import Probe
from conformance.own.recipes import RECIPES, elementwise, operators

KINDS = {"b": ("bool",), "i": ("int",), "u": ("int",), "f": ("int", "float")}
NUMBERS = {"bool": True, "int": 2, "float": 1.5, "complex": 1.5 + 1j}
COMPLEX = ("int", "float", "complex")


def functions() -> list[str]:
    """Return the functions and operators of two operands that take Python numbers."""
    return [
        key
        for key in (*elementwise.BINARY_NAMES, *operators.BINARY)
        if spec.function(key).params[1].get("accepts_scalar")
    ]


def calls(key: str, dtype: str) -> list[tuple[object, object]]:
    """Return pairs of operands, one an array and one a Python number."""
    x = np.array([True, False]) if dtype == "bool" else np.array([1, 2, 3], dtype)
    accepted = spec.function(key).params[1]["accepts_scalar"]
    kinds = KINDS.get(x.dtype.kind, COMPLEX)
    numbers = [NUMBERS[k] for k in kinds if k in accepted]
    found: list[tuple[object, object]] = [(x, n) for n in numbers]
    if not key.startswith("__"):  # reflected operators are asked on their own
        found += [(n, x) for n in numbers]
    return found


def ask_scalars(library: Library, check: Check, options: Options) -> None:
    """A number counts as an array of the other operand's dtype."""
    key = check.entry
    name = operators.BINARY.get(key, key)
    act = operators.python(key) if key.startswith("__") else library.get(key)
    missing = [n for n in spec.DTYPES if n not in library.dtypes]
    probe = Probe(missing)
    RECIPES[key](probe)
    for dtype in spec.CATEGORIES[probe.asked[1]]:
        for operands in () if dtype in missing else calls(key, dtype):
            given = [library.array(v) if isinstance(v, np.ndarray) else v for v in operands]
            text = f"{key}({', '.join(_shown(v) for v in operands)})"
            wanted = elementwise.oracle(name)(*(np.asarray(v).astype(dtype) for v in operands))
            result = "bool" if spec.function(key).out_dtype == "bool" else dtype
            try:
                out = act(*given)
                compare.dtype(library.dtype_name(out.dtype), result, text)
                compare.values(library.numpy(out), wanted, 10.0, text)
            except Mismatch:
                raise
            except Exception as error:
                raise Mismatch(f"{text}: {describe(error)}") from None


def _shown(value: object) -> str:
    return f"{value.dtype}:{value.tolist()}" if isinstance(value, np.ndarray) else repr(value)


def checks() -> list[Check]:
    """Return a check for every function and operator that takes Python numbers."""
    return [Check(spec.function(k).chapter, k, "scalars", ask_scalars) for k in functions()]
