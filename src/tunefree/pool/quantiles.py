"""Quantiles of the targets of rows to come: by the scores of rows of their context, see :mod:`tunefree.intervals`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.pool.contexts import NEW, Context, by_context
from tunefree.pool.pool import Pool


def quantiles(
    pool: Pool,
    X: Any,
    predictions: np.ndarray,
    levels: np.ndarray,
    asked: list[str],
    exposure: np.ndarray | None = None,
    are_ends: bool = False,
) -> np.ndarray:
    """Quantiles (n, L) of the targets of rows, which are numbers, of which (n,) is predicted.

    ``asked`` names each level in the message of an error. With ``are_ends`` two levels each are the ends of an
    interval, and after a pass they are moved as far as it takes to contain the prediction. With the losses of counts
    and amounts logarithms are predicted, targets are at least 0, and rows may have exposures (n,).
    """
    members, loss = pool.members, pool.members.loss
    exposure = np.ones(len(predictions)) if exposure is None else exposure
    if members.predicts_logarithms:
        predictions, weights, least = predictions - math.log(pool.unit), exposure ** (2.0 - loss.power), 0.0
    else:
        predictions, weights, least = predictions / pool.unit, exposure, -math.inf
    matrix = members.matrix(X)

    def scores(number: int, rows: Any) -> np.ndarray:
        """Quantiles of the scores in the units of the rows, (n, L)."""
        context, moved = _scoring(pool, number, levels.tolist()), levels
        if are_ends and pool.has_finished:
            moved = context.conformal.levels_around(levels.reshape(-1, 2)).ravel()
        named = zip(moved.tolist(), asked, strict=True)
        bounds = [_quantile(pool, context, level, name) for level, name in named]
        units = context.conformal.units.of(matrix[rows], predictions[rows], weights[rows])
        return units[:, None] * np.array(bounds)

    contexts = members.contexts_of(members.digests(X, matrix), len(matrix))
    means = np.asarray(loss.response(predictions))
    order, bounds = np.argsort(levels, kind="stable"), np.empty((len(predictions), len(levels)))
    with np.errstate(over="ignore"):
        scale = (exposure * pool.unit)[:, None]
        bounds[:, order] = np.sort((means[:, None] + by_context(contexts, scores)) * scale, axis=1)
    return np.maximum(bounds, least)


def quantile(pool: Pool, level: float, asked: str, code: int | None = None, number: int = NEW) -> float:
    """The quantile of the scores of rows to come of a context, unless there is too little evidence.

    Scores are how far off numbers are, or those of classes (:mod:`tunefree.intervals.sets`), of all or of one.
    """
    return _quantile(pool, _scoring(pool, number, [level], code), level, asked, code)


def _scoring(pool: Pool, number: int, levels: list[float], code: int | None = None) -> Context:
    """The context whose scores bound those of rows of one: the other one, if it alone has enough of them."""
    contexts = sorted(
        pool.contexts, key=lambda context: context is not pool.contexts[min(number, len(pool.contexts) - 1)]
    )
    enough = (context for context in contexts if context.conformal.has_enough(levels, pool.has_finished, code))
    return next(enough, contexts[0])


def _quantile(pool: Pool, context: Context, level: float, asked: str, code: int | None = None) -> float:
    if not pool.has_finished:
        return context.conformal.quantile(level, False, asked, code)
    curve = context.conformal.curve()
    if pool.members.growth is None:  # there is nothing that lags behind
        curve = curve._replace(slope=0.0, is_known=False)
    return context.frozen.quantile(level, context.conformal.quantile(level, True, asked, code, curve), curve, code)
