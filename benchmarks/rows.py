"""Array work against C by hand, NumPy, jax.jit, loops by hand in Numba, Torch: ratios.

`python -m benchmarks.rows [words of names ...] [--peers] [--fresh]`. One thread, interleaved
rounds, medians of process CPU time. `reuse`: results are dropped, so their memory is used
again, and the kernel by hand writes into one buffer; bar 1.2. `fresh` (--fresh): no memory is used
again on either side. `peer` (--peers): lazyarr over the best of the others; bar 1.05.
"""

import ctypes
import functools
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lazyarr as xp
from benchmarks import rows_numba, timing
from benchmarks.kernels import build, pointer

BAR, BAR_PEER, BAR_SHORT = 1.2, 1.05, 1.3
HALF_LOG_2PI = 0.91893853320467274178


@dataclass(frozen=True)
class Row:
    """One kind of work: its arguments, what it computes, and the kernel by hand."""

    name: str
    arguments: Callable[[np.random.Generator], tuple]
    compute: Callable[..., Any]
    kernel: str = ""
    axis: int = 0
    grads: tuple[int, ...] = ()  # the arguments by which the value is differentiated
    hand: Callable[..., Any] | None = None  # NumPy over BLAS by hand, where that is the aim
    dtypes: tuple[str, ...] = ("float64", "float32")


# -- what is computed -----------------------------------------------------------------------------


def transcendental(ns: Any, x: Any, m: Any, s: Any, a: Any) -> Any:
    return ns.exp(-((x - m) ** 2) / (2 * s * s)) * a + ns.log1p(ns.abs(x))


def memory(ns: Any, x: Any, y: Any) -> Any:
    return (x * 2 + 1) * (x - 3) + y * 0.5


def logpdf_sum(ns: Any, x: Any, mu: Any, s: Any) -> Any:
    return ns.sum(-0.5 * ((x - mu) / s) ** 2 - ns.log(s) - HALF_LOG_2PI)


def logsumexp(ns: Any, x: Any, axis: int) -> Any:
    m = ns.max(x, axis=axis, keepdims=True)
    return ns.squeeze(ns.log(ns.sum(ns.exp(x - m), axis=axis, keepdims=True)) + m, axis=axis)


def softmax(ns: Any, x: Any, axis: int) -> Any:
    e = ns.exp(x - ns.max(x, axis=axis, keepdims=True))
    return e / ns.sum(e, axis=axis, keepdims=True)


def log_softmax(ns: Any, x: Any, axis: int) -> Any:
    shifted = x - ns.max(x, axis=axis, keepdims=True)
    return shifted - ns.log(ns.sum(ns.exp(shifted), axis=axis, keepdims=True))


def variance(ns: Any, x: Any, axis: int) -> Any:
    return ns.mean((x - ns.mean(x, axis=axis, keepdims=True)) ** 2, axis=axis)


def normalise(ns: Any, x: Any, axis: int) -> Any:
    return x / ns.sqrt(ns.sum(x * x, axis=axis, keepdims=True))


def pairwise(ns: Any, x: Any, y: Any) -> Any:
    return ns.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)


def with_transpose(ns: Any, a: Any, b: Any, v: Any) -> Any:
    return ns.sum((a + b.T) * v, axis=0)


def logistic(ns: Any, w: Any, x: Any, y: Any) -> Any:
    t = x @ w
    return ns.sum(ns.log1p(ns.exp(-ns.abs(t))) + ns.maximum(t, t * 0) - y * t)


def logistic_by_hand(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple:
    t = x @ w
    e = np.exp(-np.abs(t))
    p = np.where(t >= 0, 1, e) / (1 + e)
    return np.sum(np.log1p(e) + np.maximum(t, 0) - y * t), (p - y) @ x


def perceptron(ns: Any, w: Any, v: Any, x: Any, y: Any) -> Any:
    return ns.mean((ns.tanh(x @ w) @ v - y) ** 2)


def perceptron_by_hand(w: np.ndarray, v: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple:
    h = np.tanh(x @ w)
    r = h @ v - y
    g = 2 * r / r.size
    return np.mean(r * r), x.T @ (np.outer(g, v) * (1 - h * h)), g @ h


def solve_lower(ns: Any, factor: Any, b: Any) -> Any:
    """Solve a lower triangular system: the standard has no function for it."""
    if ns is xp:
        return xp.linalg.solve_triangular(factor, b, lower=True)
    if ns.__name__.endswith("torch"):
        import torch

        return torch.linalg.solve_triangular(factor, b[:, None], upper=False)[:, 0]
    from jax.scipy.linalg import solve_triangular

    return solve_triangular(factor, b, lower=True)


def gaussian_process(ns: Any, q: Any, d: Any, y: Any, eye: Any) -> Any:
    """Log density of observations at points of squared distances d, up to a constant."""
    k = ns.exp(2 * q[1] - 0.5 * ns.exp(-2 * q[0]) * d) + ns.exp(2 * q[2]) * eye
    factor = ns.linalg.cholesky(k)
    z = solve_lower(ns, factor, y)
    return -0.5 * ns.sum(z * z) - 0.5 * ns.sum(ns.log(ns.sum(factor * eye, axis=0) ** 2))


def gaussian_process_by_hand(q: np.ndarray, d: np.ndarray, y: np.ndarray, eye: np.ndarray) -> tuple:
    from scipy.linalg import lapack

    smooth = np.exp(2 * q[1] - 0.5 * np.exp(-2 * q[0]) * d)
    factor, _ = lapack.dpotrf(smooth + np.exp(2 * q[2]) * eye, lower=1)
    weights, _ = lapack.dpotrs(factor, y, lower=1)
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    slope = 0.5 * (np.outer(weights, weights) - inverse)
    part = slope * smooth
    value = -0.5 * (y @ weights) - np.sum(np.log(np.diag(factor)))
    gradient = [np.exp(-2 * q[0]) * np.sum(part * d), 2 * np.sum(part)]
    return value, np.array([*gradient, 2 * np.exp(2 * q[2]) * np.trace(slope)])


def points(rng: np.random.Generator, n: int) -> tuple:
    t = np.sort(rng.random(n))
    q = np.log(np.array([0.2, 1.0, 0.3]))
    return q, (t[:, None] - t) ** 2, np.sin(6 * t) + 0.3 * rng.normal(size=n), np.eye(n)


# -- the rows -------------------------------------------------------------------------------------


def vector(n: int, *numbers: float) -> Callable:
    return lambda rng: (rng.normal(size=n), *numbers)


def normal(*shapes: tuple) -> Callable:
    return lambda rng: tuple(rng.normal(size=s) for s in shapes)


def coins(rng: np.random.Generator, n: int, k: int) -> tuple:
    return rng.normal(size=k) * 0.1, rng.normal(size=(n, k)), (rng.random(n) < 0.5) * 1.0


def along(compute: Callable) -> list[Row]:
    """The rows of something over the last and the first axis."""
    shape, name, short = (4096, 1024), compute.__name__, (100_000, 8)
    return [
        Row(f"{name} last", normal(shape), compute, f"{name}_last", -1),
        Row(f"{name} first", normal(shape), compute, f"{name}_first", 0),
        Row(f"{name} short", normal(short), compute, f"{name}_last", -1),
    ]


ROWS = [
    *(
        Row(f"transcendental {n:.0e}", vector(n, 0.3, 1.7, 2.5), transcendental, "transcendental")
        for n in (100, 10_000, 10_000_000)
    ),
    Row("memory 1e+02", normal((100,), (100,)), memory, "memory"),
    Row("memory 1e+04", normal((10_000,), (10_000,)), memory, "memory"),
    Row("memory 1e+07", normal((10_000_000,), (10_000_000,)), memory, "memory"),
    Row("logpdf sum", vector(1_000_000, 0.1, 1.3), logpdf_sum, "logpdf_sum"),
    *along(logsumexp),
    *along(softmax),
    *along(log_softmax),
    *along(variance),
    *along(normalise),
    Row("pairwise", normal((1000, 16), (1000, 16)), pairwise, "pairwise"),
    Row("with transpose", normal((1000, 1000), (1000, 1000), (1000,)), with_transpose,
        "with_transpose"),
    Row("logistic", lambda rng: coins(rng, 10_000, 100), logistic, grads=(0,),
        hand=logistic_by_hand),
    Row("perceptron", normal((64, 128), (128,), (2048, 64), (2048,)), perceptron, grads=(0, 1),
        hand=perceptron_by_hand),
    Row("gaussian process", lambda rng: points(rng, 200), gaussian_process, grads=(0,),
        hand=gaussian_process_by_hand, dtypes=("float64",)),
]  # fmt: skip


# -- the contestants ------------------------------------------------------------------------------


@functools.cache
def library(dtype: str) -> ctypes.CDLL:
    """rows.c for one dtype."""
    double = dtype == "float64"
    return build(
        Path(__file__).with_name("rows.c"),
        f"-DT={'double' if double else 'float'}",
        f"-DF(x)=x{'' if double else '##f'}",
    )


def by_hand(row: Row, arguments: tuple, dtype: str, result: np.ndarray, fresh: bool) -> Callable:
    """The kernel of rows.c bound to its arguments; `fresh` makes a new result at each call."""
    if row.hand is not None:
        return lambda: row.hand(*arguments)
    function = getattr(library(dtype), row.kernel)
    number = ctypes.c_double if dtype == "float64" else ctypes.c_float
    sizes = {"pairwise": (1000, 1000, 16), "with_transpose": (1000,)}.get(row.kernel)
    bound = [ctypes.c_long(n) for n in sizes or arguments[0].shape]
    bound += [number(a) if np.ndim(a) == 0 else pointer(a) for a in arguments]
    out = np.empty(result.shape, result.dtype)
    if not fresh:
        bound.append(pointer(out))

        def call(kept: Any = arguments) -> np.ndarray:
            function(*bound)
            return out

        return call

    def make(kept: Any = arguments) -> np.ndarray:
        made = np.empty(result.shape, result.dtype)
        function(*bound, pointer(made))
        return made

    return make


def compiled(row: Row, arguments: tuple, backend: str = "c") -> Callable:
    """lazyarr: sizes unknown, the whole call from NumPy arrays to NumPy arrays."""
    symbols = [
        xp.symbol(f"x{k}", dtype=a.dtype, shape=(None,) * a.ndim) for k, a in enumerate(arguments)
    ]
    f = on(row, xp)
    if row.grads:
        value, grads = xp.value_and_grad(f, argnums=row.grads)(*symbols)
        out: Any = [value, *(grads if isinstance(grads, tuple) else (grads,))]
    else:
        out = f(*symbols)
    call = xp.function(symbols, out, backend=backend)
    return lambda: call(*arguments)


def on(row: Row, ns: Any) -> Callable:
    """What a row computes, over one namespace."""
    if row.kernel.endswith(("_last", "_first")):
        return lambda *a: row.compute(ns, *a, row.axis)
    return lambda *a: row.compute(ns, *a)


def jax_call(row: Row, arguments: tuple) -> Callable:
    import jax

    jax.config.update("jax_enable_x64", True)
    f = on(row, jax.numpy)
    f = jax.jit(jax.value_and_grad(f, row.grads) if row.grads else f)
    device = [jax.numpy.asarray(a) for a in arguments]
    return lambda: jax.block_until_ready(f(*device))


def torch_call(row: Row, arguments: tuple) -> Callable:
    import array_api_compat.torch as ns
    import torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(np.array(a)) for a in arguments]
    wrt = [tensors[k].requires_grad_(True) for k in row.grads]
    f = on(row, ns)
    if not row.grads:
        return lambda: f(*tensors)

    def call() -> tuple:
        value = f(*tensors)
        return value, *torch.autograd.grad(value, wrt)

    return call


def contestants(row: Row, arguments: tuple, dtype: str, peers: bool) -> dict[str, Callable]:
    """Every way to compute a row."""
    call = compiled(row, arguments)
    first = call()
    shaped = np.asarray(first[0] if row.grads else first)
    found = {"lazyarr": call}
    if row.hand is not None or hasattr(library(dtype), row.kernel):
        found["hand"] = by_hand(row, arguments, dtype, shaped, False)
    if not peers:
        return found
    if not row.grads:
        found["numpy"] = lambda: on(row, np)(*arguments)
    if importlib.util.find_spec("jax"):
        found["jax"] = jax_call(row, arguments)
    if importlib.util.find_spec("torch"):
        found["torch"] = torch_call(row, arguments)
    plain = [a if a.ndim else a[()] for a in arguments]
    for name, flags in rows_numba.FLAGS.items():
        if loop := rows_numba.loop(row.kernel or row.compute.__name__, flags):
            found[name] = functools.partial(loop, *plain)
    if "numba" in found:
        found["lazyarr numba"] = compiled(row, arguments, "numba")
    return found


def agree(row: Row, thunks: dict[str, Callable], dtype: str) -> None:
    """Refuse to time something that computes something else."""
    want = None
    for who, thunk in thunks.items():
        out = thunk()
        got = out[0] if row.grads else out
        got = np.asarray(got.detach() if hasattr(got, "detach") else got, np.float64)
        want = got if want is None else want
        scale = np.max(np.abs(want)) * (1e-10 if dtype == "float64" else 2e-4)
        if not np.allclose(got, want, rtol=0, atol=scale):
            raise SystemExit(f"{row.name}: {who} differs by {np.max(np.abs(got - want)):.3g}")


def measure(row: Row, dtype: str, peers: bool, fresh: bool) -> str:
    """Time one row and return its line."""
    numbers = row.arguments(np.random.default_rng(0))
    arguments = tuple(np.asarray(a, dtype) for a in numbers)
    thunks = contestants(row, arguments, dtype, peers)
    agree(row, thunks, dtype)
    rounds = 15 if arguments[0].size > 100_000 else 40
    times = timing.interleave(thunks, rounds)
    ours = times.pop("lazyarr")
    numba = times.pop("lazyarr numba", None)
    if numba is not None:
        times["numba"] = min(
            times["numba"], *(times.pop(f) for f in rows_numba.FLAGS if f != "numba")
        )
    line = f"{row.name:20s} {dtype} {ours * 1e6:10.2f} us"
    if "hand" in times:
        bar = BAR_SHORT if "short" in row.name else BAR
        mark = " " if ours <= bar * times["hand"] else "!"
        line += f"  reuse {ours / times['hand']:5.2f}{mark}"
    if fresh and row.hand is None:
        line += f"  fresh {without_pool(row, arguments, dtype, thunks, rounds):5.2f}"
    others = {k: v for k, v in times.items() if k != "hand"}
    if others:
        best = min(others, key=others.__getitem__)
        mark = " " if ours <= BAR_PEER * others[best] else "!"
        line += f"  peer {ours / others[best]:5.2f}{mark} ({best})"
        line += "".join(f"  {k} {v / ours:.1f}" for k, v in others.items())
    if numba is not None:
        line += f"  numba/loop {numba / times['numba']:.2f}"
    return line


def without_pool(row: Row, arguments: tuple, dtype: str, thunks: dict, rounds: int) -> float:
    """The ratio to the kernel by hand where neither side uses the memory of old results again."""
    from lazyarr.backends.c import launcher

    extension = launcher.extension()
    if extension is None:
        return float("nan")
    before = extension.pool_limit(0)
    try:
        made = by_hand(row, arguments, dtype, np.asarray(thunks["lazyarr"]()), True)
        times = timing.interleave({"ours": thunks["lazyarr"], "hand": made}, rounds)
    finally:
        extension.pool_limit(before)
    return times["ours"] / times["hand"]


def main(words: list[str]) -> None:
    """Print the rows whose names hold a word, all without words."""
    peers, fresh = "--peers" in words, "--fresh" in words
    dtypes = [d for d in ("float64", "float32") if d in words] or ["float64", "float32"]
    wanted = [w for w in words if not w.startswith(("--", "float"))]
    for row in ROWS:
        if not wanted or any(w in row.name for w in wanted):
            for dtype in (d for d in dtypes if d in row.dtypes):
                print(measure(row, dtype, peers, fresh), flush=True)


if __name__ == "__main__":
    timing.one_thread()
    main(sys.argv[1:])
