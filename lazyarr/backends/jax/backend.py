"""JaxBackend: programs over jax.numpy, traced and compiled by XLA, in 64 bits for the call only."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager

import jax
import numpy as np

from lazyarr.backends.array.backend import ArrayBackend, writable
from lazyarr.backends.array.program import Program
from lazyarr.backends.cache import default_limit, open_cache
from lazyarr.backends.jax.table import make_table
from lazyarr.config import options

LARGE = 1 << 17  # bytes from which a copy costs more than a view


def _sixty_four() -> Callable[[], AbstractContextManager]:
    """Return what makes a thread-local 64-bit context, by the name it has in this version."""
    if hasattr(jax, "enable_x64"):
        return lambda: jax.enable_x64(True)
    from jax.experimental import enable_x64  # until JAX 0.8

    return enable_x64


@functools.cache
def keep_compiled() -> None:
    """Let XLA keep what it compiles in the cache folder: a setting of the whole process.

    A folder that the user gave JAX already is left alone.
    """
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(open_cache().root / ".jax"))
        jax.config.update("jax_compilation_cache_max_size", default_limit())
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


class JaxBackend(ArrayBackend):
    """JAX: one jitted function per program, compiled again for each new set of sizes."""

    name = "jax"
    by_shape = True  # each new set of sizes compiles

    def __init__(self) -> None:
        super().__init__()
        self.table = make_table()
        self.context = _sixty_four()  # type: ignore[method-assign]

    def prepare(self, program: Program) -> Callable:
        """Return the function jitted, its sizes static."""
        if options.jax_cache:
            keep_compiled()
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
