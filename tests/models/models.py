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


MODELS: dict[str, Callable[[Any, Data], Any]] = {
    "radon_intercept_slope": radon_intercept_slope,
    "eight_schools_noncentered": eight_schools_noncentered,
    "wells_daae_c": wells_daae_c,
    "low_dim_gauss_mix": low_dim_gauss_mix,
    "softmax_iris": softmax_iris,
}


def compiled(name: str, data: Data, size: int, backend: str) -> Any:
    """Value and gradient of a model as one compiled function of the flat parameter vector."""
    with xp.set_options(skipna=False):
        x = xp.symbol("x", shape=(size,), dtype=xp.float64)
        logp = MODELS[name](x, data)
        return xp.function([x], xp.value_and_grad(logp.data, x), backend=backend)
