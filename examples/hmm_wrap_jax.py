"""A hidden Markov model written in JAX, used as one operation of a lazyarr program, and sampled.

Eight sequences of 70 observations, three hidden states. The likelihood is a `lax.scan` inside a
`vmap`; wrapped, it is a node like any other: lazyarr differentiates through it, and value and
gradient are one call of the JAX function. Prints likelihood and gradients for three settings on
each backend. Then a posterior, the likelihood with priors written in lazyarr, is sampled twice:
by nutpie, which calls the function compiled for C, and by blackjax, which compiles what `as_jax`
gives with its own sampler. The draws must agree with each other and with what made the data.

Run with `python examples/hmm_wrap_jax.py [picture.png]` where lazyarr[all,samplers] is installed;
without the samplers, they are left out.
"""

import argparse
import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lazyarr as xp
from lazyarr.errors import BackendError

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "foreign" / "hmm.json"
PICTURE = ROOT / "docs" / "images" / "hmm_trace.png"
BACKENDS = ("interpret", "c", "numba", "jax", "torch")
STATES = 3
NAMES = ("signal", "noise", "stay 0", "stay 1", "stay 2")  # what is reported of a draw
SIZE = 2 + (STATES - 1) + STATES * (STATES - 1)


def logsumexp(x: Any, axis: int) -> Any:
    """Log of a sum of exponentials whose gradient is 0 where every term is."""
    top = jax.lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True))
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    return jnp.log(jnp.sum(jnp.exp(x - top), axis=axis)) + jnp.squeeze(top, axis)


def log_likelihood(y: Any, signal: Any, noise: Any, log_start: Any, log_step: Any) -> Any:
    """Log likelihood of all sequences (rows of y) by the forward algorithm."""
    means = signal * jnp.arange(STATES)

    def emission(value: Any) -> Any:
        z = (value - means) / noise
        return -0.5 * z * z - jnp.log(noise) - 0.5 * jnp.log(2 * jnp.pi)

    def one(row: Any) -> Any:
        def step(alpha: Any, value: Any) -> tuple:
            return logsumexp(alpha[:, None] + log_step, 0) + emission(value), None

        alpha, _ = jax.lax.scan(step, log_start + emission(row[0]), row[1:])
        return logsumexp(alpha, 0)

    return jnp.sum(jax.vmap(one)(y))


hmm = xp.wrap_jax(log_likelihood, name="hmm")


def read() -> tuple[np.ndarray, list[dict]]:
    """Return the observations and the settings, with their exact values."""
    found = json.loads(DATA.read_text(encoding="utf-8"))
    for case in found["cases"]:
        rows = [[-np.inf if v is None else v for v in row] for row in case["logA"]]
        case["logA"] = np.array(rows)
    return np.array(found["y"]), found["cases"]


def compiled(backend: str) -> Any:
    """Return the likelihood and its gradients by the four parameters, compiled for a backend."""
    y, _ = read()
    signal, noise = xp.symbol("signal"), xp.symbol("noise")
    start, step = xp.symbol("start", shape=(STATES,)), xp.symbol("step", shape=(STATES, STATES))
    value = hmm(y, signal, noise, start, step)
    wrt = [signal, noise, start, step]
    return xp.function(wrt, xp.value_and_grad(value, wrt), backend=backend)


def show_values() -> None:
    """Print values and gradients on every backend, and the time of a call."""
    _, cases = read()
    for backend in BACKENDS:
        try:
            f = compiled(backend)
        except BackendError as error:
            print(f"{backend}: {error}")
            continue
        print(f"{backend}: {len(f.fallbacks())} host step(s)")
        for case in cases:
            point = [case["signal"], case["noise"], np.array(case["logpi"]), case["logA"]]
            value, slopes = f(*point)
            print(f"  {case['name']:6} {value:.6f}  signal {slopes[0]:.4f}  noise {slopes[1]:.4f}")
            assert abs(value - case["logp"]) < 1e-8 * abs(case["logp"])
            assert all(np.isfinite(s).all() for s in slopes)
        start = time.perf_counter()
        for _ in range(100):
            f(*point)
        print(f"  value and four gradients: {(time.perf_counter() - start) * 1e4:.0f} us")


# -- the posterior ---------------------------------------------------------------------------------


def posterior() -> tuple:
    """Return the unconstrained parameters, the log posterior, and what is reported of a draw.

    Logits are relative to the first state; signal, log(noise) and logits have normal priors.
    """
    x = xp.symbol("x", shape=(SIZE,))
    signal, noise = x[0], xp.exp(x[1])

    def logs(free: Any) -> Any:
        zero = xp.zeros((*free.shape[:-1], 1))
        return xp.special.log_softmax(xp.concat([zero, free], axis=-1), axis=-1)

    start = logs(x[2 : 1 + STATES])
    step = logs(xp.reshape(x[1 + STATES :], (STATES, STATES - 1)))
    centre = xp.asarray(np.array([1.0, -1.0, *np.zeros(SIZE - 2)]))
    width = xp.asarray(np.array([0.5, 1.0, *np.full(SIZE - 2, 2.0)]))
    prior = -0.5 * xp.sum(((x - centre) / width) ** 2)
    value = hmm(read()[0], signal, noise, start, step) + prior
    stay = xp.exp(xp.linalg.diagonal(step))
    return x, value, xp.concat([xp.stack([signal, noise]), stay])


def truth() -> np.ndarray:
    """Return what the data was made with."""
    case = read()[1][0]
    return np.array([case["signal"], case["noise"], *np.exp(np.diag(case["logA"]))])


def first(chains: int, seed: int = 1) -> np.ndarray:
    """Return where chains start: near the middle of the priors."""
    middle = np.array([1.0, -1.0, *np.zeros(SIZE - 2)])
    return middle + 0.1 * np.random.default_rng(seed).normal(size=(chains, SIZE))


def by_nutpie(chains: int, draws: int, tune: int, seed: int = 1) -> np.ndarray:
    """Sample by nutpie, in threads that call the function compiled for C."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    x, value, reported = posterior()
    density = xp.function([x], xp.value_and_grad(value, x), backend="c")
    report = xp.function([x], reported, backend="c")
    model = from_pyfunc(
        SIZE,
        lambda: density,
        lambda *seeds: lambda point: {"reported": report(point)},
        [np.dtype("float64")],
        [(len(NAMES),)],
        ["reported"],
        make_initial_point_fn=lambda seed: first(1, seed)[0],
    )
    found = nutpie.sample(
        model, draws=draws, tune=tune, chains=chains, seed=seed, progress_bar=False
    )
    return np.asarray(found.posterior["reported"])


def by_blackjax(chains: int, draws: int, tune: int, seed: int = 1) -> np.ndarray:
    """Sample by blackjax, whose sampler is compiled together with the log density."""
    import blackjax

    x, value, reported = posterior()
    density = xp.function([x], value, backend="jax").as_jax()
    report = xp.function([x], reported, backend="jax").as_jax()
    with jax.enable_x64(True):

        def one(key: Any, point: Any) -> Any:
            warm, key = jax.random.split(key)
            adapt = blackjax.window_adaptation(blackjax.nuts, density, target_acceptance_rate=0.9)
            (state, settings), _ = adapt.run(warm, point, num_steps=tune)
            step = blackjax.nuts(density, **settings).step

            def draw(state: Any, key: Any) -> tuple:
                state, _ = step(key, state)
                return state, report(state.position)

            return jax.lax.scan(draw, state, jax.random.split(key, draws))[1]

        keys = jax.random.split(jax.random.key(seed), chains)
        return np.asarray(jax.jit(jax.vmap(one))(keys, jnp.asarray(first(chains, seed))))


def diagnose(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, standard deviation, split R-hat and Monte Carlo error of each quantity.

    Draws are chains x draws x quantities; the error is that of the means of 20 batches a chain.
    """
    halves = np.concatenate(np.split(draws[:, : draws.shape[1] // 2 * 2], 2, axis=1))
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    rhat = np.sqrt((n - 1) / n + between / within)
    size = draws.shape[1] // 20
    batches = draws[:, : 20 * size].reshape(-1, size, draws.shape[2]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    flat = draws.reshape(-1, draws.shape[2])
    return flat.mean(axis=0), flat.std(axis=0, ddof=1), rhat, error


def compare(found: dict[str, np.ndarray]) -> None:
    """Print what the samplers found; fail where they differ or have not converged."""
    summaries = {name: diagnose(draws) for name, draws in found.items()}
    for name, (mean, sd, rhat, error) in summaries.items():
        print(name)
        for row in zip(NAMES, truth(), mean, sd, error, rhat, strict=True):
            print(
                "  {:7} true {:.3f}  mean {:.4f}  sd {:.4f}  mcse {:.5f}  R-hat {:.4f}".format(*row)
            )
        assert (rhat < 1.02).all(), f"{name} has not converged"
        assert (np.abs(mean - truth()) < 3 * sd).all(), f"{name} is far from the truth"
    if len(summaries) == 2:
        a, b = summaries.values()
        apart = np.abs(a[0] - b[0]) / np.hypot(a[3], b[3])
        print(f"the means differ by at most {apart.max():.2f} Monte Carlo errors")
        assert (apart < 3).all()


def trace(found: dict[str, np.ndarray], path: Path) -> None:
    """Draw densities and traces of every chain."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(
        len(NAMES), 1 + len(found), figsize=(11, 9), squeeze=False, layout="constrained"
    )
    for row, (label, true) in enumerate(zip(NAMES, truth(), strict=True)):
        for column, (name, draws) in enumerate(found.items(), start=1):
            each = draws[..., row]
            axes[row, 0].hist(each.ravel(), 50, density=True, histtype="step", label=name)
            axes[row, column].plot(each.T, linewidth=0.4)
            axes[row, column].axhline(true, color="black", linewidth=0.8)
            axes[0, column].set_title(f"{name}: chains, and the truth")
        axes[row, 0].axvline(true, color="black", linewidth=0.8)
        axes[row, 0].set_ylabel(label)
    axes[0, 0].legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=55)
    print(f"wrote {path}")


def main() -> None:
    """Show values and gradients, sample, compare, draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    options = parser.parse_args()
    show_values()
    samplers = {"nutpie": by_nutpie, "blackjax": by_blackjax}
    found = {}
    for name, sample in samplers.items():
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed; `pip install lazyarr[samplers]`")
            continue
        start = time.perf_counter()
        found[name] = sample(options.chains, options.draws, options.tune)
        print(f"{name}: {options.chains} chains of {options.draws} draws", end=" ")
        print(f"in {time.perf_counter() - start:.1f} s, compilation included")
    if found:
        compare(found)
        if importlib.util.find_spec("matplotlib") is not None:
            trace(found, options.picture)


if __name__ == "__main__":
    main()
