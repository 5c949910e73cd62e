"""A lazyarr function inside JAX: the C program called by XLA against the same function in jnp.

Value and gradient under `jax.jit`, arrays on JAX's device, a call until its results are there, at
several sizes. `as_jax()` is the program as jnp code, `as_jax(native=True)` the C program through
XLA's foreign interface.
"""

from benchmarks.timing import interleave, one_thread, verdict

one_thread()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import lazyarr as xp  # noqa: E402

BAR = 2.0
SIZES = (1, 10, 100, 1_000, 10_000, 100_000)


def written(x, k, np):
    """The function: a sum of soft steps and a penalty."""
    return np.sum(np.log1p(np.exp(x * k))) + np.sum(x * x) * 0.5


def main() -> None:
    """Print a row for each size."""
    jax.config.update("jax_enable_x64", True)
    x, k = xp.symbol("x", shape=(None,)), xp.symbol("k")
    f = xp.function([x, k], written(x, k, xp), backend="c")
    functions = {
        "jnp": lambda x, k: written(x, k, jnp),
        "as_jax": f.as_jax(),
        "native": f.as_jax(native=True),
    }
    both = {name: jax.jit(jax.value_and_grad(g, argnums=(0, 1))) for name, g in functions.items()}
    print("value and gradient, us a call of one CPU; bar 2 x jnp")
    for n in SIZES:
        point = jnp.asarray(np.linspace(-1, 1, n)), jnp.asarray(1.5)

        def call(g, point=point):
            return lambda: jax.block_until_ready(g(*point))

        times = interleave({name: call(g) for name, g in both.items()})
        ratio = times["native"] / times["jnp"]
        row = "  ".join(f"{name} {t * 1e6:8.1f}" for name, t in times.items())
        print(f"n = {n:<7} {row}  native / jnp {ratio:.2f} {verdict(ratio, BAR)}")


if __name__ == "__main__":
    main()
