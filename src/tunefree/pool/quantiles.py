"""Quantiles, intervals and sets for the targets of future rows.

They are computed from the scores of rows of the same context, see :mod:`tunefree.intervals`. All functions raise a
ModelError if there are too few scores for a level or coverage.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.intervals.sets import class_scores, draws_of
from tunefree.mixing.bases import LEAST
from tunefree.pool.contexts import Context, by_context
from tunefree.pool.model import Model
from tunefree.pool.pool import Pool


def target_quantiles(
    model: Any, X: Any, predictions: np.ndarray, levels: np.ndarray, exposure: np.ndarray | None = None
) -> np.ndarray:
    """Quantiles (n, L) of numeric targets, for rows with predictions (n, 1) by a model with a pool.

    With losses of counts and amounts, predictions are logarithms, and rows may have exposures (n,).
    """
    asked = [f"the quantile {level:g}" for level in levels.tolist()]
    return _quantiles(model.pool, X, predictions[:, 0], levels, asked, exposure)


def target_intervals(
    model: Any, X: Any, predictions: np.ndarray, coverages: np.ndarray, exposure: np.ndarray | None = None
) -> np.ndarray:
    """Intervals (n, c, 2) for numeric targets: quantiles with equal probabilities below and above.

    They contain the prediction, with unequal probabilities if necessary, unless the loss is the quantile loss of
    another quantile than the median.
    """
    levels = np.stack([(1.0 - coverages) / 2.0, (1.0 + coverages) / 2.0], axis=1).ravel()
    asked, loss = [f"coverage {coverage:g}" for coverage in np.repeat(coverages, 2).tolist()], model.pool.members.loss
    is_middle = getattr(loss, "tau", 0.5) == 0.5  # else the prediction is a quantile
    bounds = _quantiles(model.pool, X, predictions[:, 0], levels, asked, exposure, are_ends=is_middle)
    bounds = bounds.reshape(len(predictions), -1, 2)
    if not is_middle:
        return bounds
    middles = predictions[:, 0] if exposure is None else predictions[:, 0] + np.log(exposure)
    middles = np.asarray(loss.response(middles))[:, None]
    return np.stack([np.minimum(bounds[:, :, 0], middles), np.maximum(bounds[:, :, 1], middles)], axis=2)


def has_intervals(model: Any, coverage: float) -> bool:
    """Whether a model has intervals of this coverage: a pool predicts numbers, and there are enough scores."""
    if model.task != "regression" or model.pool is None:
        return False
    levels = [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0]
    contexts, is_over = model.pool.contexts, model.pool.has_finished
    return all(any(context.conformal.has_enough([level], is_over) for context in contexts) for level in levels)


def class_sets(model: Model, X: Any, margins: np.ndarray, coverages: np.ndarray, by_class: bool = False) -> np.ndarray:
    """A mask (n, c, K) of the classes in the prediction sets of a pool for rows with these margins.

    With ``by_class``, the coverage holds for the rows of each class, not only for all rows together.
    """
    pool, n_classes = model.pool, len(model.classes)
    if n_classes < 2 or pool is None:
        return np.ones((len(margins), len(coverages), n_classes), bool)
    scores = class_scores(np.log(np.maximum(model.probabilities(margins), LEAST)), draws_of(X))
    codes: list[int | None] = [*range(n_classes)] if by_class else [None]
    _, contexts = pool.recognised(X, pool.members.matrix(X))

    def bounds(number: int, rows: Any) -> np.ndarray:
        """The largest scores (n, c, K or 1) of classes in the sets, for rows of a context."""
        quantiles = []
        for coverage in coverages.tolist():
            asked = [f"coverage {coverage:g}" + ("" if k is None else f" of class {model.classes[k]!r}") for k in codes]
            contexts_of_codes = [_context_with_scores(pool, number, [coverage], code) for code in codes]
            by_code = zip(contexts_of_codes, asked, codes, strict=True)
            quantiles.append([_quantile(pool, context, coverage, name, code) for context, name, code in by_code])
        return np.tile(np.array(quantiles), (len(contexts[rows]), 1, 1))

    return scores[:, None] <= by_context(contexts, bounds)


def _quantiles(
    pool: Pool,
    X: Any,
    predictions: np.ndarray,
    levels: np.ndarray,
    asked: list[str],
    exposure: np.ndarray | None,
    are_ends: bool = False,
) -> np.ndarray:
    """Quantiles (n, L) of rows with predictions (n,).

    ``asked`` names each level in error messages. With ``are_ends``, pairs of levels are ends of intervals, and after a
    pass they are moved as far as necessary for the interval to contain the prediction.
    """
    members, loss = pool.members, pool.members.loss
    exposure = np.ones(len(predictions)) if exposure is None else exposure
    if members.predicts_logarithms:
        predictions, weights, least = predictions - math.log(pool.unit), exposure ** (2.0 - loss.power), 0.0
    else:
        predictions, weights, least = predictions / pool.unit, exposure, -math.inf
    matrix = members.matrix(X)

    def scores(number: int, rows: Any) -> np.ndarray:
        """Quantiles (n, L) of the scores, multiplied by the units of the rows."""
        context, moved = _context_with_scores(pool, number, levels.tolist()), levels
        if are_ends and pool.has_finished:
            moved = context.conformal.levels_around(levels.reshape(-1, 2)).ravel()
        named = zip(moved.tolist(), asked, strict=True)
        bounds = [_quantile(pool, context, level, name) for level, name in named]
        units = context.conformal.units.of(matrix[rows], predictions[rows], weights[rows])
        return units[:, None] * np.array(bounds)

    _, contexts = pool.recognised(X, matrix)
    means = np.asarray(loss.response(predictions))
    order, bounds = np.argsort(levels, kind="stable"), np.empty((len(predictions), len(levels)))
    with np.errstate(over="ignore"):
        scale = (exposure * pool.unit)[:, None]
        bounds[:, order] = np.sort((means[:, None] + by_context(contexts, scores)) * scale, axis=1)
    return np.maximum(bounds, least)


def _context_with_scores(pool: Pool, number: int, levels: list[float], code: int | None = None) -> Context:
    """The context whose scores are used for rows of a context: the other one if only that has enough scores."""
    contexts = sorted(
        pool.contexts, key=lambda context: context is not pool.contexts[min(number, len(pool.contexts) - 1)]
    )
    enough = (context for context in contexts if context.conformal.has_enough(levels, pool.has_finished, code))
    return next(enough, contexts[0])


def _quantile(pool: Pool, context: Context, level: float, asked: str, code: int | None = None) -> float:
    """The quantile of the scores of future rows; scores are scaled residuals of numbers, or scores of classes."""
    if not pool.has_finished:
        return context.conformal.quantile(level, False, asked, code)
    curve = context.conformal.curve()
    if pool.members.growth is None:  # without generations nothing lags behind
        curve = curve._replace(slope=0.0, is_known=False)
    return context.frozen.quantile(level, context.conformal.quantile(level, True, asked, code, curve), curve, code)
