"""The models of tests/models written for jax.numpy, as their JAX user would: `f(x) -> log density`.

Each takes the module (so that JAX is imported only by who asks) and the data.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.by_hand import HALF_LOG_2PI, jax_eight_schools, jax_radon
from tests.models.adbench import _lower, _wishart

Density = Callable[[Any], Any]


def normal(jnp: Any, x: Any, mean: Any, sd: Any) -> Any:
    return -0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - HALF_LOG_2PI


def at_zero(x: Any, sd: float) -> Any:
    return -0.5 * (x / sd) ** 2 - math.log(sd) - HALF_LOG_2PI


def wells(jax: Any, data: dict[str, Any]) -> Density:
    """Switching wells."""
    jnp = jax.numpy
    distance, arsenic = np.array(data["dist"], float), np.array(data["arsenic"], float)
    cd, ca = (distance - distance.mean()) / 100, arsenic - arsenic.mean()
    columns = [cd, ca, cd * ca, np.array(data["assoc"]), np.array(data["educ"]) / 4]
    design, y = jnp.asarray(np.stack(columns, 1)), jnp.asarray(data["switched"], float)

    def logp(x: Any) -> Any:
        eta = x[0] + design @ x[1:]
        return jnp.sum(y * eta - jax.nn.softplus(eta))

    return logp


def negbin(jax: Any, data: dict[str, Any]) -> Density:
    """Counts by year."""
    jnp, lgamma = jax.numpy, jax.scipy.special.gammaln
    year, count = jnp.asarray(data["year"], float), jnp.asarray(data["C"], float)

    def logp(x: Any) -> Any:
        phi = jnp.exp(x[3])
        log_mu = x[0] + x[1] * year + x[2] * year**2
        log_total = jnp.logaddexp(x[3], log_mu)
        terms = lgamma(count + phi) - lgamma(phi) - lgamma(count + 1)
        terms = terms + phi * (x[3] - log_total) + count * (log_mu - log_total)
        prior = 2 * math.log(0.1) + x[3] - 0.1 * phi
        return jnp.sum(terms) + jnp.sum(at_zero(x[:3], 5.0)) + prior + x[3]

    return logp


def mixture(jax: Any, data: dict[str, Any]) -> Density:
    """Two components in one dimension."""
    jnp = jax.numpy
    y = jnp.asarray(data["y"], float)

    def logp(x: Any) -> Any:
        mu, sigma = jnp.stack([x[0], x[0] + jnp.exp(x[1])]), jnp.exp(x[2:4])
        log_theta, log_rest = -jax.nn.softplus(-x[4]), -jax.nn.softplus(x[4])
        each = normal(jnp, y[:, None], mu, sigma) + jnp.stack([log_theta, log_rest])
        beta = 5 * (log_theta + log_rest) + math.lgamma(10) - 2 * math.lgamma(5)
        prior = jnp.sum(at_zero(sigma, 2.0)) + jnp.sum(at_zero(mu, 2.0)) + beta
        return jnp.sum(jax.nn.logsumexp(each, axis=1)) + prior + x[1] + x[2] + x[3]

    return logp


def hier_2pl(jax: Any, data: dict[str, Any]) -> Density:
    """Item response."""
    jnp, persons, items = jax.numpy, int(data["J"]), int(data["I"])
    i, j = jnp.asarray(data["ii"]), jnp.asarray(data["jj"])
    y = jnp.asarray(data["y"], float)

    def logp(x: Any) -> Any:
        theta, xi1 = x[:persons], x[persons : persons + items]
        xi2 = x[persons + items : persons + 2 * items]
        mu, log_tau, z = x[-5:-3], x[-3:-1], jnp.tanh(x[-1])
        tau, log_rest = jnp.exp(log_tau), jnp.log1p(-z * z)
        white1 = (xi1 - mu[0]) / tau[0]
        white2 = ((xi2 - mu[1]) / tau[1] - z * white1) / jnp.sqrt(1 - z * z)
        pairs = jnp.sum(at_zero(white1, 1.0) + at_zero(white2, 1.0))
        pairs = pairs - items * (jnp.sum(log_tau) + 0.5 * log_rest)
        eta = jnp.exp(xi1[i]) * (theta[j] - xi2[i])
        prior = at_zero(mu[0], 1.0) + at_zero(mu[1], 5.0) + jnp.sum(log_tau - 0.1 * tau)
        prior = prior + 2 * math.log(0.1) + 4 * log_rest + jnp.sum(at_zero(theta, 1.0))
        return jnp.sum(y * eta - jax.nn.softplus(eta)) + pairs + prior

    return logp


def iris(jax: Any, data: dict[str, Any]) -> Density:
    """Softmax regression."""
    jnp = jax.numpy
    features, y = jnp.asarray(data["X"], float), jnp.asarray(data["y"])

    def logp(x: Any) -> Any:
        log_p = jax.nn.log_softmax(x[:3] + features @ jnp.reshape(x[3:], (4, 3)), axis=1)
        return jnp.sum(log_p[jnp.arange(y.size), y]) + jnp.sum(at_zero(x, 2.5))

    return logp


def weibull(jax: Any, data: dict[str, Any]) -> Density:
    """Survival times."""
    jnp = jax.numpy
    features, event = jnp.asarray(data["X"], float), jnp.asarray(data["event"], float)
    log_t = jnp.log(jnp.asarray(data["t"], float))

    def logp(x: Any) -> Any:
        log_lam, k = x[0] + features @ x[1:4], jnp.exp(x[4])
        ratio = log_t - log_lam
        terms = event * (x[4] - log_lam + (k - 1) * ratio) - jnp.exp(k * ratio)
        prior = at_zero(x[0], 5.0) + jnp.sum(at_zero(x[1:4], 2.0))
        return jnp.sum(terms) + prior + 2 * x[4] - k

    return logp


def ar_k(jax: Any, data: dict[str, Any]) -> Density:
    """Autoregression."""
    jnp, y, order = jax.numpy, np.array(data["y"], float), int(data["K"])
    lags = jnp.asarray(np.stack([y[order - 1 - k : y.size - 1 - k] for k in range(order)], 1))
    late = jnp.asarray(y[order:])

    def logp(x: Any) -> Any:
        mean, sigma = x[0] + lags @ x[1 : 1 + order], jnp.exp(x[-1])
        cauchy = -math.log(math.pi * 2.5) - jnp.log1p((sigma / 2.5) ** 2)
        prior = jnp.sum(at_zero(x[: 1 + order], 10.0)) + cauchy + x[-1]
        return jnp.sum(normal(jnp, late, mean, sigma)) + prior

    return logp


def gp(jax: Any, data: dict[str, Any]) -> Density:
    """Gaussian process."""
    jnp = jax.numpy
    place, y = jnp.asarray(data["x"], float), jnp.asarray(data["y"], float)

    def logp(x: Any) -> Any:
        rho, alpha, sigma = jnp.exp(x[0]), jnp.exp(x[1]), jnp.exp(x[2])
        distance = (place[:, None] - place) / rho
        kernel = alpha**2 * jnp.exp(-0.5 * distance**2) + sigma * jnp.eye(len(data["y"]))
        factor = jnp.linalg.cholesky(kernel)
        white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        prior = 25 * math.log(4) - math.lgamma(25) + 24 * x[0] - 4 * rho
        prior = prior + at_zero(alpha, 2.0) + at_zero(sigma, 1.0)
        log_det = jnp.sum(jnp.log(jnp.diagonal(factor)))
        return jnp.sum(at_zero(white, 1.0)) - log_det + prior + jnp.sum(x)

    return logp


def gmm(jax: Any, data: dict[str, Any]) -> Callable:
    """Mixture of Gaussians: `f(alphas, means, icf)`."""
    jnp = jax.numpy
    x = jnp.asarray(data["x"], float)
    (n, d), k, gamma = np.shape(data["x"]), len(data["alphas"]), float(data["gamma"])
    table, constant = _lower(d), _wishart(d, k, gamma, int(data["m"]))

    def logp(alphas: Any, means: Any, icf: Any) -> Any:
        log_scale, below = icf[:, :d], icf[:, d:]
        padded = jnp.concatenate([below, jnp.zeros((k, 1))], axis=1)
        factors = jnp.reshape(padded[:, table], (k, d, d))
        factors = factors + jnp.eye(d) * jnp.exp(log_scale)[:, None, :]
        white = (x - means[:, None, :]) @ jnp.swapaxes(factors, 1, 2)
        inner = (alphas + jnp.sum(log_scale, 1))[:, None] - 0.5 * jnp.sum(white**2, 2)
        sizes = jnp.sum(jnp.exp(2 * log_scale)) + jnp.sum(below**2)
        found = jnp.sum(jax.nn.logsumexp(inner, axis=0)) - n * jax.nn.logsumexp(alphas)
        prior = 0.5 * gamma**2 * sizes - int(data["m"]) * jnp.sum(log_scale)
        return found - n * d / 2 * math.log(2 * math.pi) + prior + constant

    return logp


def bundle(jax: Any, data: dict[str, Any]) -> Callable:
    """Bundle adjustment: errors and Jacobian blocks, `f(cameras, points, w, features)`."""
    jnp = jax.numpy
    of_camera, of_point = jnp.asarray(data["obs"]).T

    def rotate(rotation: Any, x: Any) -> Any:
        squared = rotation @ rotation
        angle = jnp.sqrt(jnp.where(squared > 0, squared, 1.0))
        axis = rotation / angle
        turned = jnp.cos(angle) * x + jnp.sin(angle) * jnp.cross(axis, x)
        turned = turned + (1 - jnp.cos(angle)) * (axis @ x) * axis
        return jnp.where(squared > 0, turned, x + jnp.cross(rotation, x))

    def residual(camera: Any, point: Any, w: Any, feature: Any) -> Any:
        y = rotate(camera[:3], point - camera[3:6])
        p = y[:2] / y[2]
        squared = p @ p
        p = p * (1 + camera[9] * squared + camera[10] * squared**2)
        return w * (p * camera[6] + camera[7:9] - feature)

    def weight(w: Any) -> Any:
        return 1 - w * w

    def both(cameras: Any, points: Any, w: Any, features: Any) -> Any:
        each = (cameras[of_camera], points[of_point], w, features)
        blocks = jax.vmap(jax.jacrev(residual, (0, 1, 2)))(*each)
        out = jnp.concatenate([*blocks[:2], blocks[2][:, :, None]], axis=2)
        return {
            "reproj_err": jax.vmap(residual)(*each),
            "w_err": weight(w),
            "jac_blocks": out,
            "jac_w": jax.vmap(jax.grad(weight))(w),
        }

    return both


JAX: dict[str, Callable[[Any, dict[str, Any]], Density]] = {
    "eight_schools_noncentered": lambda jax, data: jax_eight_schools(jax.numpy, data),
    "radon_intercept_slope": lambda jax, data: jax_radon(jax.numpy, data),
    "wells_daae_c": wells,
    "negbin_glm": negbin,
    "low_dim_gauss_mix": mixture,
    "hier_2pl": hier_2pl,
    "softmax_iris": iris,
    "weibull_survival": weibull,
    "arK": ar_k,
    "gp_regr": gp,
}
