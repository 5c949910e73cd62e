"""Value and gradient of the models of tests/models: lazyarr on C and Numba, JAX, PyTensor.

    python -m benchmarks.models [c] [numba] [model ...]

One process, one thread, interleaved rounds, medians of CPU time. lazyarr's row is the whole Python
call, NumPy arrays in, fresh NumPy arrays out; JAX's takes and leaves arrays on its device (its best
case) and waits for the result. Every contestant is first compared with the stored reference or with
the others. Compile times are those of a new process with an empty cache on disk.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lazyarr
from benchmarks import models_jax, models_pytensor, timing

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "models"
GOALS = {"eight_schools_noncentered": 0.2, "radon_intercept_slope": 0.2} | dict.fromkeys(
    ("wells_daae_c", "negbin_glm", "low_dim_gauss_mix", "hier_2pl", "softmax_iris",
     "weibull_survival"), 0.5
)  # fmt: skip
MODELS = (*GOALS, "arK", "gp_regr", "adbench_gmm", "adbench_ba")
BACKENDS = ("c", "numba")
PEER = "pytensor"  # where it is installed
Thunk = Callable[[], Any]


def entry(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def lazyarr_thunk(name: str, stored: dict[str, Any], backend: str) -> Thunk:
    """The model on a backend, NumPy in and NumPy out."""
    from tests.models import adbench, models

    data = stored["data"]
    if name.startswith("adbench"):
        make = adbench.compiled_gmm if name == "adbench_gmm" else adbench.compiled_ba
        call, arrays = make(data, backend)
        return lambda: call(*arrays)
    point = np.array(stored["points"][1]["point"])
    call = models.compiled(name, data, point.size, backend)
    return lambda: call(point)


def jax_thunk(name: str, stored: dict[str, Any]) -> Thunk:
    """jax.jit, 64 bits, called on device arrays and waited for."""
    import jax

    jax.config.update("jax_enable_x64", True)
    data = stored["data"]
    if name == "adbench_ba":
        f = jax.jit(models_jax.bundle(jax, data))
        keys = ("cams", "X", "w", "feats")
    elif name == "adbench_gmm":
        f = jax.jit(jax.value_and_grad(models_jax.gmm(jax, data), (0, 1, 2)))
        keys = ("alphas", "means", "icf")
    else:
        f = jax.jit(jax.value_and_grad(models_jax.JAX[name](jax, data)))
        keys = ()
    given = [data[k] for k in keys] or [stored["points"][1]["point"]]
    arrays = [jax.numpy.asarray(a, float) for a in given]
    return lambda: jax.block_until_ready(f(*arrays))


def flat(result: Any) -> list[np.ndarray]:
    """The arrays of a result in order."""
    if isinstance(result, dict):
        result = [result[k] for k in sorted(result)]
    if isinstance(result, tuple | list):
        return [a for part in result for a in flat(part)]
    return [np.asarray(result)]


def check(name: str, who: str, result: Any, want: Any) -> None:
    """Refuse to time something that computes something else."""
    for got, right in zip(flat(result), flat(want), strict=True):
        scale = max(1.0, float(np.max(np.abs(right))))
        if not np.max(np.abs(got - right)) < 1e-8 * scale:
            raise SystemExit(f"{name} on {who} differs from the reference")


def compare(name: str, backends: tuple[str, ...], peers: tuple[str, ...] = ()) -> None:
    """Print a model's row: times, ratios, compile times."""
    stored = entry(name)
    makers: dict[str, Callable[[], Thunk]] = {
        b: lambda b=b: lazyarr_thunk(name, stored, b) for b in backends
    }
    makers["jax"] = lambda: jax_thunk(name, stored)
    if PEER in peers:
        makers[PEER] = lambda: models_pytensor.thunk(name, stored)
    thunks, compiling, reference = {}, {}, None
    for who, make in makers.items():
        start = time.process_time()
        made = make()
        if made is None:
            continue
        thunks[who], first = made, made()
        compiling[who] = time.process_time() - start
        point = stored.get("points", (None, None))[1]
        want = None if point is None else (point["logp"], np.array(point["grad"]))
        reference = want if point is not None else reference or first
        check(name, who, first, reference)
    times = timing.interleave(thunks)
    cells = [
        f"{who} {times[who] * 1e6:9.2f} us {times[who] / times['jax']:6.2f} x" for who in times
    ]
    compiled = " ".join(f"{compiling[who]:6.2f}" for who in thunks)
    goal = GOALS.get(name, 1.0)
    says = timing.verdict(times[backends[0]] / times["jax"], goal)
    print(f"{name:26s} {'   '.join(cells)}   {compiled} s   goal {goal}: {says}", flush=True)


def main(names: tuple[str, ...]) -> None:
    """Print the table."""
    timing.one_thread()
    lazyarr.set_options(cache_dir=tempfile.mkdtemp())
    backends = tuple(b for b in BACKENDS if b in names) or BACKENDS
    peers = (PEER,) if models_pytensor.installed() else ()
    who = ", ".join([*backends, "jax", *peers])
    print(f"value and gradient, one call: {who}, each with its ratio to JAX; "
          f"seconds to the first result: the same")  # fmt: skip
    chosen = [n for n in names if n not in (*BACKENDS, PEER)]
    for name in chosen or MODELS:
        compare(name, backends, peers)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
