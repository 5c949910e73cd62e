"""Reference models whose density is a loop: time series, a hidden chain, an epidemic.

As in `tests/models/models.py`, every model is `logp(x, data)` of the flat unconstrained vector.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import lazyarr as xp
from lazyarr import special
from tests.models.models import cauchy, normal, normal_at_zero

Data = Mapping[str, Any]


def array(data: Data, name: str) -> Any:
    """An input of the model."""
    return xp.asarray(np.asarray(data[name], np.float64))


def log_sigmoid(u: Any) -> Any:
    """The logarithm of the logistic function."""
    return -special.softplus(-u)


def interval(u: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """A value between two bounds and the log of its derivative."""
    width = high - low
    log_width = math.log(width) if isinstance(width, float) else xp.log(width)
    return low + width * special.expit(u), log_width + log_sigmoid(u) + log_sigmoid(-u)


def simplex(u: Any, size: int) -> tuple[Any, Any]:
    """A point of a simplex by breaking a stick, as a list, and the log of the Jacobian."""
    left, log_left, total, out = 1.0, 0.0, 0.0, []
    for k in range(size - 1):
        shifted = u[k] - math.log(size - 1 - k)
        z = special.expit(shifted)
        out.append(left * z)
        log_z, log_rest = log_sigmoid(shifted), log_sigmoid(-shifted)
        total = total + log_z + log_rest + log_left
        left, log_left = left * (1 - z), log_left + log_rest
    return [*out, left], total


def ar_k(x: Any, data: Data) -> Any:
    """Autoregression of order K, as a loop over its lags. x = alpha, beta[K], log sigma."""
    order, y = int(data["K"]), array(data, "y")
    alpha, beta, sigma = x[0], x[1 : 1 + order], xp.exp(x[1 + order])

    def step(past: Any, value: Any) -> Any:
        mean = alpha + sum(beta[k] * past[k] for k in range(order))
        return (value, *past[:-1]), normal(value, mean, sigma)

    start = tuple(y[order - 1 - k] for k in range(order))
    _, terms = xp.scan(step, start, y[order:])
    prior = normal_at_zero(alpha, 10.0) + xp.sum(normal_at_zero(beta, 10.0))
    return xp.sum(terms) + prior + cauchy(sigma, 2.5) + x[1 + order]


def arma11(x: Any, data: Data) -> Any:
    """Autoregression and moving average of order 1. x = mu, phi, theta, log sigma."""
    y = array(data, "y")
    mu, phi, theta, sigma = x[0], x[1], x[2], xp.exp(x[3])

    def step(state: Any, value: Any) -> Any:
        before, error = state
        new = value - (mu + phi * before + theta * error)
        return (value, new), new

    first = y[0] - (mu + phi * mu)
    _, errors = xp.scan(step, (y[0], first), y[1:])
    terms = normal(first, 0.0, sigma) + xp.sum(normal(errors, 0.0, sigma))
    prior = normal_at_zero(mu, 10.0) + normal_at_zero(phi, 2.0) + normal_at_zero(theta, 2.0)
    return terms + prior + cauchy(sigma, 2.5) + x[3]


def garch11(x: Any, data: Data) -> Any:
    """A variance that depends on the last error and variance. x = mu, a0, a1, b1 transformed."""
    y = array(data, "y")
    mu, a0 = x[0], xp.exp(x[1])
    a1, log_a1 = interval(x[2], 0.0, 1.0)
    b1, log_b1 = interval(x[3], 0.0, 1.0 - a1)

    def step(variance: Any, value: Any) -> Any:
        error = value - mu
        return a0 + a1 * error * error + b1 * variance, xp.sqrt(variance)

    _, sigma = xp.scan(step, xp.asarray(float(data["sigma1"]) ** 2), y)
    return xp.sum(normal(y, mu, sigma)) + x[1] + log_a1 + log_b1


def hmm_gaussian(x: Any, data: Data) -> Any:
    """Hidden chain of three states with normal emissions, by the forward algorithm."""
    k, y = int(data["K"]), array(data, "y")
    start, jacobian = simplex(x[: k - 1], k)
    rows = []
    for i in range(k):
        first = (k - 1) * (1 + i)
        row, term = simplex(x[first : first + k - 1], k)
        rows.append(xp.stack([xp.log(v) for v in row]))
        jacobian = jacobian + term
    u = x[(k - 1) * (k + 1) :]
    steps = xp.concat([u[:1], xp.exp(u[1:k])])
    mu, sigma = xp.cumulative_sum(steps), xp.exp(u[k:])
    jacobian = jacobian + xp.sum(u[1:k]) + xp.sum(u[k:])
    trans = xp.stack(rows)

    def step(a: Any, value: Any) -> Any:
        new = special.logsumexp(a[:, None] + trans, axis=0) + normal(value, mu, sigma)
        return new, None

    first = xp.stack([xp.log(v) for v in start]) + normal(y[0], mu, sigma)
    last, _ = xp.scan(step, first, y[1:])
    return special.logsumexp(last) + jacobian


def lotka_volterra(x: Any, data: Data) -> Any:
    """Predators and prey by Runge-Kutta steps inside a loop over the years; all parameters > 0."""
    p = xp.exp(x)
    al, be, ga, de, z0, s = p[0], p[1], p[2], p[3], p[4:6], p[6:8]
    y, h = array(data, "y"), 1 / 20

    def slope(u: Any, v: Any) -> Any:
        return (al - be * v) * u, (-ga + de * u) * v

    def step(state: Any, _: Any) -> Any:
        u, v = state
        u1, v1 = slope(u, v)
        u2, v2 = slope(u + h / 2 * u1, v + h / 2 * v1)
        u3, v3 = slope(u + h / 2 * u2, v + h / 2 * v2)
        u4, v4 = slope(u + h * u3, v + h * v3)
        return (
            u + h / 6 * (u1 + 2 * u2 + 2 * u3 + u4),
            v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4),
        ), None

    def year(state: Any, _: Any) -> Any:
        state, _ = xp.scan(step, state, length=20)
        return state, xp.stack(list(state))

    _, z = xp.scan(year, (z0[0], z0[1]), length=len(data["ts"]))

    def lognormal(value: Any, mean: Any, sd: Any) -> Any:
        return normal(xp.log(value), mean, sd) - xp.log(value)

    prior = normal(al, 1.0, 0.5) + normal(ga, 1.0, 0.5) + normal(be, 0.05, 0.05)
    prior = prior + normal(de, 0.05, 0.05) + xp.sum(lognormal(s, -1.0, 1.0))
    prior = prior + xp.sum(lognormal(z0, math.log(10), 1.0))
    likelihood = xp.sum(lognormal(array(data, "y_init"), xp.log(z0), s))
    return likelihood + xp.sum(lognormal(y, xp.log(z), s)) + prior + xp.sum(x)


def uk_drivers_state_space(x: Any, data: Data) -> Any:
    """Level and season of a monthly series; the season is a loop over its last eleven values."""
    y, n = array(data, "y"), len(data["y"])
    mean, sd = float(np.mean(data["y"])), float(np.std(data["y"], ddof=1))
    mu, log_mu = interval(x[:n], mean - 3 * sd, mean + 3 * sd)
    seasonal, beta, lam = x[n : 2 * n], x[2 * n], x[2 * n + 1]
    u = x[2 * n + 2 :]
    s = xp.cumulative_sum(xp.exp(u))

    def step(past: Any, value: Any) -> Any:
        return (value, *past[:-1]), normal(value, -sum(past), s[0])

    start = tuple(seasonal[10 - k] for k in range(11))
    _, season = xp.scan(step, start, seasonal[11:])
    level = normal(mu[1:], mu[:-1], s[1])
    fitted = mu + beta * array(data, "x") + lam * array(data, "w") + seasonal
    student = math.lgamma(2.5) - math.lgamma(2.0) - 0.5 * math.log(4 * math.pi)
    prior = xp.sum(student - 2.5 * xp.log1p(s * s / 4))
    terms = xp.sum(season) + xp.sum(level) + xp.sum(normal(y, fitted, s[2]))
    return terms + prior + xp.sum(log_mu) + xp.sum(u)


def covid19imperial_v2(x: Any, data: Data) -> Any:
    """Infections and deaths of 14 countries: a renewal process over a growing history."""
    days, m = np.shape(data["deaths"])
    first = int(data["N0"])
    p = xp.exp(x)
    mu, ah, kappa, y = p[:m], p[m : m + 6], p[m + 6], p[m + 7 : 2 * m + 7]
    phi, tau, ifr = p[2 * m + 7], p[2 * m + 8], p[2 * m + 9 :]
    effect = xp.matmul(array(data, "X"), ah - math.log(1.05) / 6)  # country, day
    reproduction = mu[:, None] * xp.exp(-effect)
    weights = xp.concat([xp.flip(array(data, "SI")), xp.zeros(days)])
    population = array(data, "pop")

    def step(state: Any, now: Any) -> Any:
        history, total = state
        day, r = now
        total = total + history[:, day - 1]
        past = xp.matmul(history, xp.window(weights, days - day, days))
        new = (1 - total / population) * r * past
        return (history.at[:, day].set(new), total), None

    seeded = xp.concat(
        [xp.broadcast_to(y[:, None], (m, first)), xp.zeros((m, days - first))], axis=1
    )
    now = (xp.arange(first, days), xp.permute_dims(reproduction, (1, 0))[first:])
    (infections, _), _ = xp.scan(step, (seeded, (first - 1) * y), now)
    kernel = np.zeros((m, days, days))  # deaths on a day from infections on another
    for day in range(days):
        for before in range(day):
            kernel[:, day, before] = np.asarray(data["f"])[day - before - 1]
    deaths = ifr[:, None] * xp.matmul(xp.asarray(kernel), infections[:, :, None])[:, :, 0]
    counts = np.asarray(data["deaths"], np.float64).T
    day = np.arange(days)
    seen = (day >= np.asarray(data["EpidemicStart"])[:, None] - 1) & (
        day < np.asarray(data["N"])[:, None]
    )
    k = xp.asarray(np.where(seen, counts, 0.0))
    expected = xp.where(xp.asarray(seen), deaths, 1.0)
    lgamma = special.gammaln
    terms = lgamma(k + phi) - lgamma(phi) - lgamma(k + 1) + phi * xp.log(phi / (phi + expected))
    terms = terms + k * xp.log(expected / (phi + expected))
    prior = math.log(0.03) - 0.03 * tau + xp.sum(-xp.log(tau) - y / tau)
    prior = prior + normal_at_zero(phi, 5.0) + normal_at_zero(kappa, 0.5)
    prior = prior + xp.sum(normal(mu, 3.28, kappa)) + xp.sum(normal(ifr, 1.0, 0.1))
    gamma = -math.lgamma(0.1667) + (0.1667 - 1) * xp.log(ah) - ah
    return xp.sum(xp.where(xp.asarray(seen), terms, 0.0)) + prior + xp.sum(gamma) + xp.sum(x)


LOOPS: dict[str, Callable[[Any, Data], Any]] = {
    "arK": ar_k,
    "arma11": arma11,
    "garch11": garch11,
    "hmm_gaussian": hmm_gaussian,
    "lotka_volterra": lotka_volterra,
    "uk_drivers_state_space": uk_drivers_state_space,
    "covid19imperial_v2": covid19imperial_v2,
}
