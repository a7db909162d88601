"""Comparators of algorithms, and the best comparator in hindsight."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

BISECTION_STEPS = 24  # bisection steps for the multiplier of the norm constraint
LOWEST, HIGHEST = -12.0, 12.0  # range of log10 of this multiplier, divided by the number of rounds


class Comparator(NamedTuple):
    """A fixed function and its losses on the stream."""

    weights: np.ndarray  # (d, K) weights, or (T, K) coefficients
    norms: np.ndarray  # (K,) norms in the space of the algorithm
    predictions: np.ndarray  # (T, K)
    losses: np.ndarray  # (T,)


def comparator_of(result: Any, u: Any) -> Comparator:
    """Return the comparator with the given weights, or coefficients."""
    K, n = result.stream.n_outputs, result.X.shape[1] if result.gram is None else result.rounds
    weights = np.asarray(u, np.float64)
    if weights.size != n * K:
        meant = f"{n} weights, one a feature" if result.gram is None else f"{n} coefficients, one a row"
        raise ValueError(f"a comparator of {result.name} has {meant}{' and class' * (K > 1)}, not {weights.shape}")
    weights = weights.reshape(n, K)
    predictions = (result.X if result.gram is None else result.gram) @ weights
    squares = (weights**2).sum(axis=0) if result.gram is None else (weights * predictions).sum(axis=0)
    return Comparator(weights, np.sqrt(np.maximum(squares, 0.0)), predictions, losses_of(result, predictions))


def losses_of(result: Any, predictions: np.ndarray) -> np.ndarray:
    """Return the losses (T,) of predictions (T, K)."""
    pairs = zip(result.y, predictions, strict=True)
    return np.array([result.loss.value(y, margins) for y, margins in pairs])


def best_comparator(result: Any, radius: float | None = None) -> Comparator:
    """Return the comparator with the least total loss among functions of norm at most ``radius``, or any norm.

    It minimises the loss plus a multiple of the squared norm; bisection finds the multiple at which the norm equals
    the radius. With a kernel, the minimiser is a combination of k(x_t, .), t = 1 .. T (representer theorem).
    """
    if radius is not None and not radius >= 0.0:
        raise ValueError(f"the radius must be at least 0, not {radius}")
    features, back = _features(result)
    if radius == 0.0 or not features.any():
        return comparator_of(result, np.zeros((len(back), result.stream.n_outputs)))
    start = np.zeros((features.shape[1], result.stream.n_outputs))
    weights = _minimise(result, features, 0.0 if radius is None else 10.0**LOWEST, start)
    if radius is not None and np.linalg.norm(weights) > radius:
        low, high, weights = LOWEST, HIGHEST, start
        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2.0
            weights = _minimise(result, features, result.rounds * 10.0**middle, weights)
            low, high = (middle, high) if np.linalg.norm(weights) > radius else (low, middle)
        weights = weights * (radius / max(float(np.linalg.norm(weights)), 1e-300))
    return comparator_of(result, back @ weights)


def _features(result: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return features (T, r) that preserve norms, and the matrix that converts their weights to weights of a result."""
    if result.gram is None:
        return result.X, np.eye(result.X.shape[1])
    values, vectors = np.linalg.eigh(result.gram)
    used = values > values.max(initial=0.0) * 1e-12
    roots = np.sqrt(values[used])
    return vectors[:, used] * roots, vectors[:, used] / roots


def _minimise(result: Any, features: np.ndarray, penalty: float, start: np.ndarray) -> np.ndarray:
    """Return weights (r, K) that minimise the total loss plus penalty / 2 ||w||^2.

    ``start``: initial weights. For L-BFGS the features are rescaled, such that a loss of curvature 1 / 4 has about the
    same curvature in each.
    """
    bends = 0.25 * (features**2).sum(axis=0) + penalty
    units = 1.0 / np.sqrt(np.where(bends > 0.0, bends, 1.0))[:, None]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w = units * flat.reshape(start.shape)
        margins = features @ w
        slopes = np.array([result.loss.slope(y, row) for y, row in zip(result.y, margins, strict=True)])
        value = losses_of(result, margins).sum() + 0.5 * penalty * (w**2).sum()
        return float(value), (units * (features.T @ slopes + penalty * w)).ravel()

    options = {"maxiter": 500, "maxfun": 2000, "ftol": 1e-12, "gtol": 1e-7}
    least = minimize(objective, (start / units).ravel(), jac=True, method="L-BFGS-B", options=options)
    return units * least.x.reshape(start.shape) if math.isfinite(least.fun) else start
