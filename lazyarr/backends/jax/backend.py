"""JaxBackend: programs over jax.numpy, traced and compiled by XLA, in 64 bits for the call only."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import jax
import numpy as np

from lazyarr.backends.array.backend import ArrayBackend, writable
from lazyarr.backends.array.program import Program
from lazyarr.backends.jax.table import make_table

LARGE = 1 << 17  # bytes from which a copy costs more than a view


def _sixty_four() -> Callable[[], AbstractContextManager]:
    """Return what makes a thread-local 64-bit context, by the name it has in this version."""
    if hasattr(jax, "enable_x64"):
        return lambda: jax.enable_x64(True)
    from jax.experimental import enable_x64  # until JAX 0.8

    return enable_x64


class JaxBackend(ArrayBackend):
    """JAX: one jitted function per program, compiled again for each new set of sizes."""

    name = "jax"

    def __init__(self) -> None:
        super().__init__()
        self.table = make_table()
        self.context = _sixty_four()  # type: ignore[method-assign]

    def prepare(self, program: Program) -> Callable:
        """Return the function jitted, its sizes static."""
        return jax.jit(program.function, static_argnums=(0,) if program.atoms else ())

    def resident(self, array: np.ndarray) -> jax.Array:
        """Return the array on the device."""
        return jax.device_put(np.array(array))

    def leave(self, value: jax.Array, owned: bool) -> np.ndarray:
        """Return the result when it is ready: a copy, or where it is large and owned its memory.

        A result that may be an argument is not owned: JAX hands such arguments through.
        """
        if owned and value.nbytes > LARGE:
            return writable(np.asarray(value))
        return np.array(value)

    def describe(self) -> dict:
        """Return version and devices."""
        return {"version": jax.__version__, "devices": [str(d) for d in jax.devices()]}
