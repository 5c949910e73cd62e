"""The models of models_jax.py in PyTensor: the same text, given PyTensor's functions.

`thunk` makes a compiled value and gradient as a PyTensor user would; None without PyTensor, or for
what its functions do not say (bundle adjustment needs `vmap`).
"""

import importlib.util
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import models_jax

NAMES = (
    "exp log log1p sum tanh sqrt stack concatenate reshape swapaxes arange eye diagonal where zeros"
).split()


def names_of_jax() -> Any:
    """PyTensor's functions under JAX's names."""
    import pytensor.tensor as pt
    from pytensor.tensor import slinalg

    jnp = SimpleNamespace(**{name: getattr(pt, name) for name in NAMES})
    jnp.float64, jnp.logaddexp = "float64", pt.logaddexp
    jnp.asarray = lambda a, dtype=None: pt.as_tensor_variable(np.asarray(a, dtype))
    jnp.linalg = SimpleNamespace(cholesky=slinalg.cholesky)
    scipy = SimpleNamespace(
        special=SimpleNamespace(gammaln=pt.gammaln),
        linalg=SimpleNamespace(solve_triangular=slinalg.solve_triangular),
    )
    nn = SimpleNamespace(
        softplus=pt.softplus, log_softmax=pt.special.log_softmax, logsumexp=pt.logsumexp
    )
    return SimpleNamespace(numpy=jnp, scipy=scipy, nn=nn)


def installed() -> bool:
    """Tell whether PyTensor can be imported."""
    return importlib.util.find_spec("pytensor") is not None


def thunk(name: str, stored: dict[str, Any]) -> Callable[[], Any] | None:
    """A compiled value and gradient, NumPy in and NumPy out; None where it cannot be."""
    if not installed() or name == "adbench_ba":
        return None
    import pytensor
    import pytensor.tensor as pt

    pytensor.config.floatX = "float64"
    data = stored["data"]
    if name == "adbench_gmm":
        arrays = [np.asarray(data[k], float) for k in ("alphas", "means", "icf")]
        make = models_jax.gmm
    else:
        arrays = [np.array(stored["points"][1]["point"])]
        make = models_jax.JAX[name]
    inputs = [pt.tensor(f"x{i}", dtype="float64", shape=a.shape) for i, a in enumerate(arrays)]
    value = make(names_of_jax(), data)(*inputs)
    slopes = pytensor.grad(value, inputs)
    call = pytensor.function(inputs, [value, *slopes], trust_input=True)
    return lambda: call(*arrays)
