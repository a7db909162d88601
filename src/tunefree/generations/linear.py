"""Linear models of few rows: logistic regression, ridge regression, and regression of logarithms, at several penalties.

Penalties form a path: the weights of each penalty are the start for the next smaller one. Newton's method finds few
weights, and L-BFGS (Liu, Nocedal: On the limited memory BFGS method, 1989; from scipy) many. With a logarithmic link,
second derivatives are expected ones (Nelder, Wedderburn: Generalized linear models, JRSS A 135, 1972).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.numbers import clip, scaled
from tunefree.core.schema import FROM_ZERO, Limits
from tunefree.generations.kinds import Kind
from tunefree.generations.problem import USUAL, Problem, Settings, mean_and_dispersion, scaled_targets
from tunefree.losses import Square
from tunefree.losses.objectives import Objective, measured

MOST_WEIGHTS = 512  # of all outputs together, for which a Hessian is computed
MOST_OF_NEWTON = 128  # likewise for classes, beyond which L-BFGS is faster
MOST_PRODUCTS = 2**21  # of numbers and weights in one pass over the rows
MOST_LEVELS = 32  # categories of a column that have a weight, the most frequent ones
STRENGTHS = (0.1, 1.0, 10.0)  # inverses of the penalty on half of the squared weights
STEPS, MOST_ITERATIONS = 25, 100  # largest numbers of steps of Newton's method and of iterations of L-BFGS
NEAR, NEAR_OF_LBFGS = 1e-6, 1e-5  # the last step lowers the objective by a smaller part of it
FARTHEST_MARGIN = 300.0  # largest absolute margin that is a logarithm
FARTHEST = 8.0  # standard deviations from the mean, where numbers are clipped
FORBIDDING = 1e12  # penalty that fixes weights at 0: those of monotone columns that had the wrong sign without it
# The value and the gradient (d, K) of an objective at weights (d, K), and a function for its Hessian (K d, K d), where
# outputs follow each other.
Evaluated = tuple[float, np.ndarray, Callable[[], np.ndarray]]


class Linear(NamedTuple):
    """Linear models of columns, one for each strength."""

    sources: Annotated[np.ndarray, "int64[d]", FROM_ZERO]  # the column of each weight
    # The category id of each weight; NaN for weights of numbers.
    levels: Annotated[np.ndarray, "float64[d]", Limits(may_be_missing=True)]
    means: Annotated[np.ndarray, "float64[d]"]  # of numbers, and shares of categories; they replace missing values
    scales: Annotated[np.ndarray, "float64[d]", Limits(low=5e-324)]
    # (strengths, d + 1, K), with the constant first; K = 1 for numbers and two classes
    weights: Annotated[np.ndarray, "float64[3, d+1, outputs]"]

    @property
    def n_leaves(self) -> int:
        """The number of leaves, which linear models do not have."""
        return 0

    @property
    def n_outputs(self) -> int:
        """The number of margins of a row."""
        return self.weights.shape[2]

    def apply(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """An empty array of leaves (n, 0), and the margins (strengths, n, K) of rows."""
        features = design(columns, *self[:4])
        margins = np.zeros((len(self.weights), len(features), self.n_outputs))
        write_margins(np.ascontiguousarray(features.T), np.ascontiguousarray(self.weights), margins)
        return np.empty((len(features), 0), np.int32), margins

    def check(self, n_columns: int) -> None:
        """Raise a ModelError if it has weights of columns beyond ``n_columns``."""
        if (self.sources >= n_columns).any():
            raise ModelError("a linear generation in the file is damaged; train the model anew")


@compiled
def write_features(
    columns: Annotated[np.ndarray, "float64[rows, weights]"],
    levels: Annotated[np.ndarray, "float64[weights]"],
    means: Annotated[np.ndarray, "float64[weights]"],
    scales: Annotated[np.ndarray, "float64[weights]"],
    features: Annotated[np.ndarray, "float64[features, rows]"],
) -> None:
    """Write the standardised features of rows behind the constant; columns are in the order of the weights."""
    for i in range(len(columns)):
        for j in range(columns.shape[1]):
            x, is_missing = columns[i, j], math.isnan(columns[i, j])
            if math.isnan(levels[j]):
                away = ((means[j] if is_missing else x) / 2.0 - means[j] / 2.0) / scales[j] * 2.0
                features[1 + j, i] = clip(away, FARTHEST)
            else:
                features[1 + j, i] = means[j] if is_missing else np.float64(x == levels[j])


def design(columns: np.ndarray, sources: Any, levels: Any, means: Any, scales: Any) -> np.ndarray:
    """The constant and the standardised features (n, 1 + d) of rows, contiguous for each feature."""
    features = np.ones((1 + len(sources), len(columns)))
    write_features(np.ascontiguousarray(columns[:, sources]), levels, means, scales, features)
    return features.T


def _features(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The sources, levels, means and scales of the weights, see :class:`Linear`."""
    features = list[tuple[float, ...]]()
    for j, column in enumerate(problem.columns.T):
        known = column[~np.isnan(column)]
        if problem.is_categorical[j]:
            ids, counts = np.unique(known, return_counts=True)
            kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
            shares = counts[kept] / len(known)
            features += [(j, level, share, 1.0) for level, share in zip(ids[kept], shares, strict=True)]
        elif len(known) and known.min() < known.max():
            most = float(np.abs(known).max())
            parts = known / most
            features.append((j, np.nan, np.mean(parts) * most, max(np.std(parts) * most, 1e-300)))
    sources, levels, means, scales = np.ascontiguousarray(np.array(features, np.float64).reshape(-1, 4).T)
    return sources.astype(np.int64), levels, means, scales


def grow_linear(problem: Problem, seed: int = 0, settings: Settings = USUAL) -> Linear | None:
    """Linear models of a problem; None if they would have too many weights, or for unsupported losses of numbers.

    Weights of monotone columns have the sign of the column, or are 0. Neither seed nor settings have an effect.
    """
    n_outputs = problem.n_outputs
    if problem.n_classes == 0 and not (isinstance(problem.loss, Square) or problem.has_log_link):
        return None
    features = _features(problem)
    n_weights = (1 + len(features[0])) * n_outputs
    is_small = n_weights <= MOST_WEIGHTS
    if not is_small and (not problem.n_classes or n_weights * len(problem.targets) > MOST_PRODUCTS):
        return None
    X = design(problem.columns, *features)
    weights = np.zeros((X.shape[1], n_outputs))
    weights[0] = problem.start()
    path, signs = [], np.zeros(X.shape[1])
    if problem.signs is not None:
        signs[1:] = problem.signs[features[0]]
    with threads.one_for_products():
        for strength in STRENGTHS:
            penalty = np.full(X.shape[1], 1.0 / strength)
            penalty[0] = 1e-10
            for _ in range(2 if signs.any() else 1):  # again with weights of the wrong sign fixed at 0
                if problem.n_classes or problem.has_log_link:
                    evaluate = _log_link if problem.has_log_link else _log_loss
                    minimise = _newton if n_weights <= MOST_OF_NEWTON or problem.has_log_link else _lbfgs
                    weights = minimise(partial(evaluate, X, problem, penalty), weights)
                else:
                    weights = _ridge(X, problem, penalty)
                penalty[signs * weights[:, 0] < 0.0] = FORBIDDING
            weights[signs * weights[:, 0] < 0.0] = 0.0
            path.append(weights)
    if problem.has_log_link:
        constant = np.eye(X.shape[1])[:, :1] * np.log(mean_and_dispersion(problem.targets, problem.weights)[0])
        path = [weights + constant for weights in path]
    return Linear(*features, np.stack(path))


def _ridge(X: np.ndarray, problem: Problem, penalty: np.ndarray) -> np.ndarray:
    centre, spread, y, *_ = scaled_targets(problem)
    weighted = X * problem.weights[:, None]
    weights = scaled(np.linalg.solve(weighted.T @ X + np.diag(penalty), weighted.T @ y)[:, None], spread)
    weights[0] = scaled(weights[0], 1.0, centre)
    return weights


def _log_link(X: np.ndarray, problem: Problem, penalty: np.ndarray, weights: np.ndarray) -> Evaluated:
    """The penalised loss, in units of the dispersion, with expected second derivatives.

    Margins are logarithms of the targets' means over the mean of all.
    """
    mean, dispersion = mean_and_dispersion(problem.targets, problem.weights)
    y, row_weights = np.minimum(problem.targets / mean, 1e100), problem.weights / dispersion
    q, r, b = problem.loss.power - 1.0, 2.0 - problem.loss.power, weights[:, 0]
    margins = X @ b
    losses = measured(Objective("regression", problem.loss), y, margins[:, None])
    value = float(np.sum(row_weights * np.minimum(losses, 1e200)) + 0.5 * np.sum(penalty * b**2))
    margins = np.clip(margins, -FARTHEST_MARGIN, FARTHEST_MARGIN)
    expected = row_weights * np.exp(r * margins)
    gradient = X.T @ (expected - row_weights * y * np.exp(-q * margins)) + penalty * b
    return value, gradient[:, None], lambda: (X * expected[:, None]).T @ X + np.diag(penalty + 1e-9)


def _log_loss(X: np.ndarray, problem: Problem, penalty: np.ndarray, weights: np.ndarray) -> Evaluated:
    margins, codes, row_weights = weights.T @ X.T, problem.targets.astype(np.int64), problem.weights
    n_outputs, rows = len(margins), np.arange(len(X))
    if n_outputs == 1:
        margins = np.concatenate([np.zeros((1, len(X))), margins])
    margins -= margins.max(axis=0)
    shares = np.exp(margins)
    totals = shares.sum(axis=0)
    loss = row_weights @ (np.log(totals) - margins[codes, rows])
    shares /= totals
    residuals = shares * row_weights
    residuals[codes, rows] -= row_weights
    gradient = (residuals[-n_outputs:] @ X).T + penalty[:, None] * weights
    value = float(loss + 0.5 * np.sum(penalty[:, None] * weights**2))
    diagonal, probabilities = np.tile(penalty, n_outputs) + 1e-9, shares[-n_outputs:].T
    return value, gradient, lambda: _hessian(X, probabilities, row_weights) + np.diag(diagonal)


def _lbfgs(evaluate: Callable[[np.ndarray], Evaluated], weights: np.ndarray) -> np.ndarray:
    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient, _ = evaluate(flat.reshape(weights.shape))
        return value, gradient.ravel()

    from scipy.optimize import minimize  # which takes longer to import than most models to grow

    options = {"maxiter": MOST_ITERATIONS, "ftol": NEAR_OF_LBFGS}
    solution = minimize(value_and_gradient, weights.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.array(solution.x).reshape(weights.shape)


def _newton(evaluate: Callable[[np.ndarray], Evaluated], weights: np.ndarray) -> np.ndarray:
    """Newton's method from initial weights, with steps halved until the objective falls."""
    value, gradient, hessian = evaluate(weights)
    for _ in range(STEPS):
        step = np.linalg.solve(hessian(), gradient.T.reshape(-1)).reshape(weights.shape[::-1]).T
        size = 1.0
        while size > 1e-4 and not (after := evaluate(weights - size * step))[0] < value:
            size /= 2.0
        if size <= 1e-4 or value - after[0] < NEAR * abs(value):
            break
        weights = weights - size * step
        value, gradient, hessian = after
    return weights


def _hessian(X: np.ndarray, P: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
    """Second derivatives (K d, K d) of the log-loss: sum of h (diag(p) - p p') x x', at probabilities p of rows.

    Blocks of two classes come from one product of a matrix with its transpose, of which BLAS computes half.
    """
    (n, d), n_outputs = X.shape, P.shape[1]
    hessian = np.empty((n_outputs * d, n_outputs * d))
    if n_outputs > 1:
        shares = (np.sqrt(row_weights)[:, None] * P)[:, :, None] * X[:, None, :]
        factor = shares.reshape(n, n_outputs * d)
        hessian[:] = -(factor.T @ factor)
    for k in range(n_outputs):
        factor = X * np.sqrt(row_weights * P[:, k] * (1.0 - P[:, k]))[:, None]
        block = slice(k * d, (k + 1) * d)
        hessian[block, block] = factor.T @ factor
    return hessian


@compiled
def write_margins(
    features: Annotated[np.ndarray, "float64[features, rows]"],
    weights: Annotated[np.ndarray, "float64[strengths, features, outputs]"],
    margins: Annotated[np.ndarray, "float64[strengths, rows, outputs]"],
) -> None:
    """Add the margins of rows with standardised features."""
    for j in range(len(features)):
        for s in range(len(weights)):
            for k in range(weights.shape[2]):
                for i in range(features.shape[1]):  # contiguous, so that several rows are added at once
                    margins[s, i, k] += features[j, i] * weights[s, j, k]


KIND = Kind(grow_linear)
