"""Two objectives of the ADBench collection: a Gaussian mixture and bundle adjustment.

Bundle adjustment gives sparse Jacobians: one block for each observation, all blocks at once by
`vectorize(jacobian(...))`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import lazyarr as xp
from lazyarr import special

Data = Mapping[str, Any]


def _lower(d: int) -> np.ndarray:
    """Where each entry of a flat d x d matrix stands in (strict lower triangle by columns, 0)."""
    count = d * (d - 1) // 2
    table = np.full((d, d), count)
    rows, columns = np.array([(i, j) for j in range(d) for i in range(j + 1, d)]).T
    table[rows, columns] = np.arange(count)
    return table.ravel()


def _wishart(d: int, k: int, gamma: float, m: int) -> float:
    """The part of the prior that depends on no parameter."""
    n = d + m + 1
    gammas = sum(math.lgamma((n - j) / 2) for j in range(d))
    multi = d * (d - 1) / 4 * math.log(math.pi) + gammas
    return -k * (n * d * math.log(gamma / math.sqrt(2)) - multi)


def gmm(alphas: Any, means: Any, icf: Any, data: Data) -> Any:
    """Log posterior of a mixture of Gaussians, given by factors of the inverse covariances."""
    x = np.asarray(data["x"], np.float64)
    (n, d), k, gamma = x.shape, alphas.shape[0], float(data["gamma"])
    log_scale, below = icf[:, :d], icf[:, d:]
    padded = xp.concat([below, xp.zeros((k, 1))], axis=1)
    factors = xp.reshape(xp.take(padded, _lower(d), axis=1), (k, d, d))
    factors = factors + xp.eye(d) * xp.exp(log_scale)[:, None, :]
    shifted = xp.asarray(x) - means[:, None, :]
    white = xp.matmul(shifted, xp.matrix_transpose(factors))
    weight = alphas + xp.sum(log_scale, axis=1)
    inner = weight[:, None] - 0.5 * xp.sum(white**2, axis=2)
    norm = -n * d / 2 * math.log(2 * math.pi)
    likelihood = xp.sum(special.logsumexp(inner, axis=0)) - n * special.logsumexp(alphas)
    sizes = xp.sum(xp.exp(2 * log_scale)) + xp.sum(below**2)
    prior = 0.5 * gamma**2 * sizes - int(data["m"]) * xp.sum(log_scale)
    return norm + likelihood + prior + _wishart(d, k, gamma, int(data["m"]))


def rotate(rotation: Any, x: Any) -> Any:
    """Rodrigues' rotation of a point; at no rotation to first order."""
    squared = xp.vecdot(rotation, rotation)
    angle = xp.sqrt(squared)
    axis = rotation / angle
    turned = xp.cos(angle) * x + xp.sin(angle) * xp.linalg.cross(axis, x)
    turned = turned + (1 - xp.cos(angle)) * xp.vecdot(axis, x) * axis
    return xp.where(squared > 0, turned, x + xp.linalg.cross(rotation, x))


def residual(camera: Any, point: Any, w: Any, feature: Any) -> Any:
    """The weighted reprojection error of one observation."""
    y = rotate(camera[:3], point - camera[3:6])
    p = y[:2] / y[2]
    squared = xp.vecdot(p, p)
    p = p * (1 + camera[9] * squared + camera[10] * squared**2)
    return w * (p * camera[6] + camera[7:9] - feature)


def weight_error(w: Any) -> Any:
    """What keeps a weight near 1."""
    return 1 - w * w


def compiled_gmm(data: Data, backend: str) -> tuple[Callable, list[np.ndarray]]:
    """Value and gradient as a compiled function, and its arguments."""
    arrays = [np.asarray(data[name], np.float64) for name in ("alphas", "means", "icf")]
    symbols = [xp.symbol(f"p{i}", shape=a.shape) for i, a in enumerate(arrays)]
    both = xp.value_and_grad(lambda *p: gmm(*p, data), (0, 1, 2))(*symbols)
    return xp.function(symbols, both, backend=backend), arrays


def compiled_ba(data: Data, backend: str) -> tuple[Callable, list[np.ndarray]]:
    """Errors and the blocks of their Jacobians as a compiled function, and its arguments."""
    arrays = [np.asarray(data[name], np.float64) for name in ("cams", "X", "w", "feats")]
    cameras, points, w, features = (xp.symbol(f"p{i}", shape=a.shape) for i, a in enumerate(arrays))
    of_camera, of_point = np.asarray(data["obs"], np.int64).T
    each = (cameras[of_camera], points[of_point], w, features)
    blocks = xp.vectorize(xp.jacobian(residual, (0, 1, 2)))(*each)
    out = {
        "reproj_err": xp.vectorize(residual)(*each),
        "w_err": xp.vectorize(weight_error)(w),
        "jac_blocks": xp.concat([*blocks[:2], blocks[2][:, :, None]], axis=2),
        "jac_w": xp.vectorize(xp.grad(weight_error))(w),
    }
    return xp.function([cameras, points, w, features], out, backend=backend), arrays
