"""Random loops against JAX: value, gradient, and the derivative of the gradient along a direction.

    python -m tests.namespace.fuzz_control 200 [first seed] [backend]

A body is a random program of two scalar carries, a vector carry that a step may overwrite in place,
two xs, and captured weights, one of them read by an index that changes; some loops are nested, run
backwards, stop early (compared on their first steps) or keep checkpoints.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

import lazyarr as xp

N = 3  # elements of the vector carry and of the weights


def chosen_step(rng: np.random.Generator) -> Callable[..., Any]:
    """Return a random step `(c, d, h, x, z, w, i, ns) -> (c, d, h, y)` in any namespace."""
    kinds = rng.integers(0, 9, size=8)
    places = rng.integers(0, 64, size=(8, 2))
    write, outputs = int(rng.integers(0, 4)), rng.integers(0, 64, size=4)

    def step(c: Any, d: Any, h: Any, x: Any, z: Any, w: Any, i: Any, ns: Any) -> Any:
        pool = [c, d, x, z, w[0], w[i], ns.sum(h * w), h[1]]
        for kind, (a, b) in zip(kinds, places, strict=True):
            left, right = pool[a % len(pool)], pool[b % len(pool)]
            pool.append(COMBINE[kind](left, right, ns))
        new_c, new_d, value, y = (pool[-1 - k % 6] for k in outputs)
        if write == 1:
            h = h.at[i].set(ns.tanh(value))
        elif write == 2:
            h = h.at[i].add(0.1 * ns.sin(value))
        elif write == 3:
            h = 0.5 * h + ns.tanh(value) * w
        return 0.5 * ns.tanh(new_c) + 0.3 * x, ns.sin(new_d), h, y

    return step


COMBINE: list[Callable[..., Any]] = [
    lambda a, b, ns: a + b,
    lambda a, b, ns: a * b,
    lambda a, b, ns: a - 0.5 * b,
    lambda a, b, ns: ns.sin(a) * b,
    lambda a, b, ns: a / (1.5 + b * b),
    lambda a, b, ns: ns.exp(-a * a) + b,
    lambda a, b, ns: ns.where(a > 0.1, ns.sqrt(ns.where(a > 0.1, a, 1.0) + b * b), b),
    lambda a, b, ns: ns.log(1.0 + a * a),
    lambda a, b, ns: ns.tanh(a + b),
]


def program(seed: int) -> Callable[..., Any]:
    """Return a random loss `(xs, zs, w, ns, scan) -> number`."""
    rng = np.random.default_rng(seed)
    step, inner = chosen_step(rng), chosen_step(rng)
    nested, reverse, stops, how = rng.random() < 0.3, rng.random() < 0.4, rng.random() < 0.3, None
    if rng.random() < 0.3:
        how = ("sqrt", 2, 3)[int(rng.integers(0, 3))]
    level = float(rng.uniform(-0.2, 0.4))

    def loss(xs: Any, zs: Any, w: Any, ns: Any, scan: Callable[..., Any], index: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            c, d, h = carry
            c, d, h, y = step(c, d, h, x[0], x[1], w, x[2] % N, ns)
            if nested:
                start = (c, 0.5 * d, h)
                (c, d, _), ys = scan(
                    lambda s, e: pack(inner(*s, e[0], e[1], w, e[2] % N, ns)),
                    start, (xs[:3], zs[:3], index[:3]), False, None, None,
                )  # fmt: skip
                y = y + ns.sum(ys)
            return (c, d, h), y

        until = (lambda s: s[0] > level) if stops else None
        start = (xs[0] * 0.5, zs[1], w * 0.2)
        (c, d, h), ys = scan(body, start, (xs, zs, index), reverse, until, how)
        return c + d + ns.sum(h) + ns.sum(ys * ys)

    return loss


def pack(out: Any) -> Any:
    """The result of a step as carry and y."""
    return out[:3], out[3]


def our_scan(body, start, xs, reverse, until, how) -> Any:
    out = xp.scan(body, start, xs, reverse=reverse, until=until, checkpoint=how)
    return out[0], out[1]


def jax_scan(body, start, xs, reverse, until, how) -> Any:
    """lax.scan; with `until`, one that keeps its carries once it is true, with ys zero."""
    if until is None:
        return lax.scan(body, start, xs, reverse=reverse)

    def masked(carry: Any, x: Any) -> Any:
        done, inside = carry
        new, y = body(inside, x)
        kept = jax.tree.map(lambda a, b: jax.numpy.where(done, a, b), inside, new)
        return (done | until(kept), kept), jax.numpy.where(done, 0.0, y)

    (_, last), ys = lax.scan(masked, (False, start), xs, reverse=reverse)
    return last, ys


def compare(seed: int, backend: str) -> float:
    """Return the largest relative difference of value, gradient and second derivative."""
    rng = np.random.default_rng(seed + 10_000)
    point = [rng.normal(size=6), rng.normal(size=6), rng.normal(size=N)]
    loss, order = program(seed), np.arange(6)

    def theirs(*p: Any) -> Any:
        return loss(*p, jax.numpy, jax_scan, jax.numpy.asarray(order))

    given = tuple(map(jax.numpy.asarray, point))
    slope = jax.grad(theirs, argnums=(0, 1, 2))
    want = [theirs(*given), *slope(*given), *jax.jvp(slope, given, given)[1]]
    symbols = [xp.symbol(f"p{k}", shape=p.shape) for k, p in enumerate(point)]

    def ours(*p: Any) -> Any:
        return loss(*p, xp, our_scan, xp.asarray(order))

    gradient = xp.grad(ours, argnums=(0, 1, 2))

    def joined(*p: Any) -> Any:
        return xp.concat(list(gradient(*p)))

    out = [ours(*symbols), *xp.jvp(joined, symbols, symbols)]
    got = xp.function(symbols, out, backend=backend)(*point)
    want = [want[0], np.concatenate(want[1:4]), np.concatenate(want[4:])]
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        scale = max(1.0, float(np.max(np.abs(b))))
        worst = max(worst, float(np.max(np.abs(a - b))) / scale)
    return worst


def main(arguments: list[str]) -> None:
    """Compare so many seeds and say how many agree."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_parallel_codegen_split_count=1")  # hung once
    jax.config.update("jax_enable_x64", True)
    count = int(arguments[0]) if arguments else 200
    first = int(arguments[1]) if len(arguments) > 1 else 0
    backend = arguments[2] if len(arguments) > 2 else "c"
    worst, bad = 0.0, []
    for seed in range(first, first + count):
        error = compare(seed, backend)
        worst = max(worst, error)
        if not error < 1e-9:
            bad.append(seed)
            print(f"seed {seed}: differs by {error:.2g}", flush=True)
    print(f"{count - len(bad)} of {count} random loops agree on {backend}; worst {worst:.1g}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1:])
