"""Reference models, each written once as a user would write it.

Every model is a function `logp(x, data)` of the flat unconstrained parameter vector `x` (a
positional array) and a mapping of inputs; it takes slices of `x`, gives them dims, and returns the
log density with all normalising constants. `MODELS` maps a name to its function, `compiled` to
value and gradient.

Transforms to the unconstrained space: `positive` u -> exp(u), log|J| = u; `interval`
u -> sigmoid(u); `ordered` v0 = u0, vk = v(k-1) + exp(uk).
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import lazyarr as xp
from lazyarr import XTensor, special

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

Data = Mapping[str, Any]


def named(data: Data, name: str, *dims: str, dtype: Any = np.float64) -> XTensor:
    """An input with its dims."""
    return XTensor(np.asarray(data[name], dtype), dims=dims)


def normal(x: Any, mean: Any, sd: Any) -> Any:
    """Log density of a normal."""
    z = (x - mean) / sd
    return -0.5 * z * z - xp.log(sd) - HALF_LOG_2PI


def standard_normal(x: Any) -> Any:
    """Log density of a standard normal."""
    return -0.5 * x * x - HALF_LOG_2PI


def normal_at_zero(x: Any, sd: float) -> Any:
    """Log density of a normal around 0 with a known scale."""
    return -0.5 * (x / sd) ** 2 - (math.log(sd) + HALF_LOG_2PI)


def cauchy(x: Any, scale: float) -> Any:
    """Log density of a Cauchy around 0."""
    return -math.log(math.pi * scale) - xp.log1p((x / scale) ** 2)


def radon_intercept_slope(x: Any, data: Data) -> Any:
    """Radon in homes, intercept and floor effect by county. x = u[3], ar[J], br[J], ma, mb."""
    counties = int(data["J"])
    ar = XTensor(x[3 : 3 + counties], dims=("county",))
    br = XTensor(x[3 + counties : 3 + 2 * counties], dims=("county",))
    mean_a, mean_b = x[-2], x[-1]
    scales = xp.exp(x[:3])
    sd_y, sd_a, sd_b = scales[0], scales[1], scales[2]
    county = named(data, "county", "obs", dtype=np.int64)
    a = (mean_a + sd_a * ar).isel(county=county)
    b = (mean_b + sd_b * br).isel(county=county)
    likelihood = normal(named(data, "log_radon", "obs"), a + named(data, "floor", "obs") * b, sd_y)
    return (
        likelihood.sum("obs")
        + standard_normal(ar).sum("county")
        + standard_normal(br).sum("county")
        + normal_at_zero(mean_a, 10.0)
        + normal_at_zero(mean_b, 10.0)
        + xp.sum(standard_normal(scales))
        + xp.sum(x[:3])
    )


def eight_schools_noncentered(x: Any, data: Data) -> Any:
    """Eight schools, non-centred. x = t[8], mu, log tau."""
    t = XTensor(x[:8], dims=("school",))
    mu, tau = x[8], xp.exp(x[9])
    y, sigma = named(data, "y", "school"), named(data, "sigma", "school")
    return (
        standard_normal(t).sum("school")
        + normal(y, mu + tau * t, sigma).sum("school")
        + normal_at_zero(mu, 5.0)
        + cauchy(tau, 5.0)
        + x[9]
    )


def wells_daae_c(x: Any, data: Data) -> Any:
    """Switching wells, logistic regression with an interaction. x = alpha, beta[5]."""
    distance, arsenic = named(data, "dist", "obs"), named(data, "arsenic", "obs")
    cd = (distance - distance.mean("obs")) / 100
    ca = arsenic - arsenic.mean("obs")
    columns = [cd, ca, cd * ca, named(data, "assoc", "obs"), named(data, "educ", "obs") / 4]
    beta = XTensor(x[1:], dims=("feature",))
    design = xp.stack(columns, axis="feature").transpose("obs", "feature")
    eta = x[0] + (design * beta).sum("feature")
    return (named(data, "switched", "obs") * eta - special.softplus(eta)).sum("obs")


def low_dim_gauss_mix(x: Any, data: Data) -> Any:
    """Two-component Gaussian mixture. x = mu (ordered) [2], log sigma[2], theta (in 0..1)."""
    mu = XTensor(xp.stack([x[0], x[0] + xp.exp(x[1])]), dims=("component",))
    log_sigma = XTensor(x[2:4], dims=("component",))
    sigma = xp.exp(log_sigma)
    log_theta, log_rest = -special.softplus(-x[4]), -special.softplus(x[4])
    weights = XTensor(xp.stack([log_theta, log_rest]), dims=("component",))
    components = normal(named(data, "y", "obs"), mu, sigma) + weights
    beta_5_5 = 4 * (log_theta + log_rest) + math.lgamma(10) - 2 * math.lgamma(5)
    return (
        special.logsumexp(components, axis="component").sum("obs")
        + normal_at_zero(sigma, 2.0).sum("component")
        + normal_at_zero(mu, 2.0).sum("component")
        + beta_5_5
        + x[1]
        + log_sigma.sum("component")
        + (log_theta + log_rest)
    )


def softmax_iris(x: Any, data: Data) -> Any:
    """Softmax regression of iris species. x = b[3], W[4, 3] row-major."""
    b = XTensor(x[:3], dims=("class",))
    weights = XTensor(xp.reshape(x[3:], (4, 3)), dims=("feature", "class"))
    features = named(data, "X", "obs", "feature")
    logits = b + (features * weights).sum("feature")
    log_p = logits - special.logsumexp(logits, axis="class")
    label = named(data, "y", "obs", dtype=np.int64)
    rows = XTensor(np.arange(len(data["y"])), dims=("obs",))
    chosen = log_p.isel({"obs": rows, "class": label})
    return chosen.sum("obs") + xp.sum(normal_at_zero(x, 2.5))


def negbin_glm(x: Any, data: Data) -> Any:
    """Counts by year, negative binomial with a log-quadratic mean. x = b[3], log phi."""
    year, count = named(data, "year", "obs"), named(data, "C", "obs")
    phi = xp.exp(x[3])
    log_mu = x[0] + x[1] * year + x[2] * year**2
    log_total = xp.logaddexp(xp.log(phi), log_mu)
    likelihood = (
        special.gammaln(count + phi)
        - special.gammaln(phi)
        - special.gammaln(count + 1)
        + phi * (x[3] - log_total)
        + count * (log_mu - log_total)
    )
    prior = 2 * math.log(0.1) - math.lgamma(2) + x[3] - 0.1 * phi  # Gamma(2, 0.1)
    return likelihood.sum("obs") + xp.sum(normal_at_zero(x[:3], 5.0)) + prior + x[3]


def hier_2pl(x: Any, data: Data) -> Any:
    """Item response with correlated item parameters.

    x = theta[J], xi1[I], xi2[I], mu[2], log tau[2], u (correlation tanh u).
    """
    persons, items = int(data["J"]), int(data["I"])
    theta = XTensor(x[:persons], dims=("person",))
    xi1 = XTensor(x[persons : persons + items], dims=("item",))
    xi2 = XTensor(x[persons + items : persons + 2 * items], dims=("item",))
    mu, log_tau, u = x[-5:-3], x[-3:-1], x[-1]
    tau, z = xp.exp(log_tau), xp.tanh(u)
    log_rest = xp.log1p(-z * z)  # L = [[1, 0], [z, sqrt(1 - z^2)]]
    white1 = (xi1 - mu[0]) / tau[0]
    white2 = ((xi2 - mu[1]) / tau[1] - z * white1) / xp.sqrt(1 - z * z)
    pairs = standard_normal(white1) + standard_normal(white2)
    pairs = pairs.sum("item") - items * (xp.sum(log_tau) + 0.5 * log_rest)
    i, j = (named(data, name, "obs", dtype=np.int64) for name in ("ii", "jj"))
    eta = xp.exp(xi1.isel(item=i)) * (theta.isel(person=j) - xi2.isel(item=i))
    likelihood = named(data, "y", "obs") * eta - special.softplus(eta)
    return (
        likelihood.sum("obs")
        + pairs
        + standard_normal(theta).sum("person")
        + 3 * log_rest  # LKJ(4), unnormalised: 6 log L_11
        + normal_at_zero(mu[0], 1.0)
        + normal_at_zero(mu[1], 5.0)
        + xp.sum(math.log(0.1) - 0.1 * tau)
        + xp.sum(log_tau)
        + log_rest
    )


def weibull_survival(x: Any, data: Data) -> Any:
    """Censored survival times, Weibull regression. x = b0, b[3], log k."""
    t, event = named(data, "t", "obs"), named(data, "event", "obs")
    b = XTensor(x[1:4], dims=("feature",))
    log_lam = x[0] + named(data, "X", "obs", "feature").dot(b, dim="feature")
    k = xp.exp(x[4])
    log_ratio = xp.log(t) - log_lam
    hazard = x[4] - log_lam + (k - 1) * log_ratio
    likelihood = event * hazard - xp.exp(k * log_ratio)
    prior = normal_at_zero(x[0], 5.0) + xp.sum(normal_at_zero(x[1:4], 2.0))
    return likelihood.sum("obs") + prior + (x[4] - k) + x[4]  # k is Gamma(2, 1)


def ar_k(x: Any, data: Data) -> Any:
    """Autoregression of order five. x = alpha, beta[5], log sigma."""
    y, order = np.asarray(data["y"], np.float64), int(data["K"])
    lags = np.stack([y[order - 1 - k : y.size - 1 - k] for k in range(order)], axis=1)
    mean = x[0] + xp.asarray(lags) @ x[1 : 1 + order]
    sigma = xp.exp(x[-1])
    prior = xp.sum(normal_at_zero(x[: 1 + order], 10.0)) + cauchy(sigma, 2.5) + x[-1]
    return xp.sum(normal(xp.asarray(y[order:]), mean, sigma)) + prior


def gp_regr(x: Any, data: Data) -> Any:
    """Gaussian process with a squared exponential kernel. x = log rho, log alpha, log sigma."""
    place, y = (np.asarray(data[name], np.float64) for name in ("x", "y"))
    rho, alpha, sigma = (xp.exp(x[i]) for i in range(3))
    distance = xp.asarray(place[:, None] - place) / rho
    kernel = alpha**2 * xp.exp(-0.5 * distance**2) + sigma * xp.eye(y.size)
    factor = xp.linalg.cholesky(kernel)
    white = xp.linalg.solve_triangular(factor, xp.asarray(y))
    log_det = xp.sum(xp.log(xp.linalg.diagonal(factor)))
    prior = 25 * math.log(4) - math.lgamma(25) + 24 * x[0] - 4 * rho  # rho is Gamma(25, 4)
    prior = prior + normal_at_zero(alpha, 2.0) + standard_normal(sigma)
    return xp.sum(standard_normal(white)) - log_det + prior + xp.sum(x)


MODELS: dict[str, Callable[[Any, Data], Any]] = {
    "radon_intercept_slope": radon_intercept_slope,
    "eight_schools_noncentered": eight_schools_noncentered,
    "wells_daae_c": wells_daae_c,
    "low_dim_gauss_mix": low_dim_gauss_mix,
    "softmax_iris": softmax_iris,
    "negbin_glm": negbin_glm,
    "hier_2pl": hier_2pl,
    "weibull_survival": weibull_survival,
    "arK": ar_k,
    "gp_regr": gp_regr,
}


def compiled(name: str, data: Data, size: int, backend: str) -> Any:
    """Value and gradient of a model as one compiled function of the flat parameter vector."""
    with xp.set_options(skipna=False):
        x = xp.symbol("x", shape=(size,), dtype=xp.float64)
        logp = MODELS[name](x, data)
        value = logp.data if isinstance(logp, XTensor) else logp
        return xp.function([x], xp.value_and_grad(value, x), backend=backend)
