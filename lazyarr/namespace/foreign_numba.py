"""`wrap_numba`: functions compiled by Numba, which programs of Numba and C call themselves."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lazyarr.errors import ArgumentError
from lazyarr.graph.node import Variable
from lazyarr.graph.ops.foreign import Layout, Native, knows_sizes
from lazyarr.namespace.foreign_arguments import Arguments
from lazyarr.namespace.foreign_c import Address, CCode, declared_c, parse
from lazyarr.namespace.foreign_rules import NumpyCode, Ruled, Rules, wrap_numpy


@dataclass(frozen=True)
class NumbaCode(NumpyCode):
    """A function compiled by Numba; with plain arguments it is part of compiled programs."""

    guarded = False

    def native(self, arguments: Arguments, node: Variable, callee: Ruled) -> Native | None:
        """Return how compiled programs call the function, None where Python must."""
        flat = all(tree.kind is None for tree, _ in arguments.trees) and not arguments.names
        plain = all(x is None or isinstance(x.value, bool | int | float) for x in arguments.leaves)
        stacks = not callee.stacked or self.batch is True
        if not (flat and plain and stacks and knows_sizes(node)):
            return None
        layout = Layout.of(node)
        numbers = iter(range(len(layout.inputs)))
        places = tuple(next(numbers) if x is None else (x.value,) for x in arguments.leaves)
        module = importlib.import_module("lazyarr.backends.numba.foreign")
        ins, outs = layout.inputs, layout.outputs
        code = module.Jitted(self.function, places, ins, outs, len(layout.sizes))
        if not code.fits():
            return None
        rules = callee.rules
        return Native(callee.name, layout.parameters(), code, True, rules.overwrites, rules.aliases)


def wrap_numba(
    f: Callable | None = None,
    out: object = None,
    name: str | None = None,
    *,
    signature: str | None = None,
    **rules: Any,
):
    """Return a Numba function of arrays, compiled here if it is not yet, as `wrap_numpy` does.

    On Numba it is part of the program, on C it is called by a pointer; elsewhere, and where its
    arguments are nested, it is called from Python. A `cfunc` of pointers needs the `signature` that
    `wrap_c` takes. The rest is as for `wrap_numpy`.

    >>> f = wrap_numba(lambda x, k: x * k, out=0)                        # doctest: +SKIP
    """
    if f is None:
        return lambda g: wrap_numba(g, out, name, signature=signature, **rules)
    if importlib.util.find_spec("numba") is None:
        raise ArgumentError(
            "wrap_numba needs the package numba; install it with `pip install lazyarr[numba]`."
        )
    if signature is not None:
        return _by_pointer(f, signature, name, **rules)
    native = f if hasattr(f, "py_func") else _compiled(f)
    label = name or getattr(f, "__name__", "f")
    made = wrap_numpy(native, out, label, **rules)
    made.code = NumbaCode(native, rules.get("batch"))
    return made


def _compiled(f: Any) -> Any:
    """Return a Python function, or that of a cfunc of numbers, compiled for arrays."""
    numba = importlib.import_module("numba")
    if not hasattr(f, "address"):
        return numba.njit(f)
    if any(isinstance(t, numba.types.CPointer) for t in f._sig.args):
        raise ArgumentError(
            f"{f} takes pointers; say what they are by `signature=`, such as "
            "'f(n, x: float64[n]) -> y: float64[n]'."
        )
    return numba.njit(f._pyfunc)


def _by_pointer(
    f: Any,
    signature: str,
    name: str | None,
    vjp: Callable | None = None,
    jvp: Callable | None = None,
    overwrites: Any = (),
    aliases: Any = None,
    dims: object = None,
) -> Any:
    """Return a cfunc with a signature of sizes and buffers as a function that records."""
    if not hasattr(f, "address"):
        raise ArgumentError(f"`signature=` is for a cfunc, which has an address; {f} has none.")
    found = replace(parse(signature), overwrites=tuple(overwrites))
    return declared_c(CCode(Address(f), found), Rules(vjp, jvp), aliases, name, dims)
