"""Split conformal prediction: a quantile of the scores of rows before they were learned bounds the score of a new row.

With exchangeable scores the quantile of the finite-sample rank covers a new row with the requested probability (Vovk,
Gammerman, Shafer: Algorithmic learning in a random world, 2005, section 2.2; Papadopoulos, Proedrou, Vovk, Gammerman:
Inductive confidence machines for regression, ECML 2002). Models keep learning, so scores of earlier rows come from
models that had learned less. They count less (Barber, Candes, Ramdas, Tibshirani: Conformal prediction beyond
exchangeability, Annals of Statistics 2023): with weights w_i, and 1 for the new row, the quantile of the distribution

    sum_i w_i / (1 + sum_j w_j) delta(s_i) + 1 / (1 + sum_j w_j) delta(infinity)                       (their eq. 9)

covers it with at least the requested probability, less sum_i w_i d_i / (1 + sum_j w_j), where d_i is the distance in
total variation between the scores and the scores with row i and the new row swapped (their Theorem 2).
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.core.errors import ModelError

HASTE = 2.0  # the score of row t of n has the weight (t / n)^HASTE, like the weights of the mixture in their means

SURE, SURE_BY_CURVE = 3.0, 1.0  # standard errors; the latter where scores follow a learning curve
MORE = "learn more rows, or ask for less"


def recency(numbers: np.ndarray) -> np.ndarray:
    """Weights of scores (n,) by their row numbers, from 1, relative to the latest score."""
    return (numbers / np.max(numbers, initial=1)) ** HASTE


def checked_parts(name: str, parts: object) -> np.ndarray:
    """Coverages or levels of quantiles, each between 0 and 1, as an array; errors name the parameter.

    >>> checked_parts("coverage", 0.9), checked_parts("quantiles", [0.1, 0.5])
    (array([0.9]), array([0.1, 0.5]))
    """
    try:
        plain = np.asarray(parts)
    except ValueError:  # lists of several lengths
        plain = np.empty(0)
    if plain.ndim > 1 or plain.dtype.kind not in "iuf" or not plain.size:
        raise ModelError(f"`{name}` must be a number between 0 and 1, or a list of these, not {parts!r}")
    array = np.atleast_1d(plain.astype(np.float64))
    for part in array[~((array > 0.0) & (array < 1.0))].tolist():
        percent = f"; for {part:g} per cent pass {part / 100.0:g}" if 1.0 < part < 100.0 else ""
        raise ModelError(f"`{name}` must lie between 0 and 1, not be {part:g}{percent}")
    return array


def check_enough(asked: str, level: float, evidence: float) -> None:
    """Raise a ModelError where the evidence is too small for the level of a quantile.

    >>> check_enough("coverage 0.9", 0.95, 19.0)
    >>> check_enough("coverage 0.9", 0.05, 12.4)
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: coverage 0.9 takes the evidence of 19 rows, and there is evidence of 12; ...
    """
    least = evidence_for(level)
    if evidence < least:
        least = math.ceil(least)
        rows = f"{least} row{'s' * (least > 1)}"
        raise ModelError(f"{asked} takes the evidence of {rows}, and there is evidence of {int(evidence)}; {MORE}")


def evidence_for(level: float) -> float:
    """The smallest number of rows for a quantile of this level."""
    extreme = max(level, 1.0 - level)
    return extreme / (1.0 - extreme) * (1.0 - 1e-9)  # tolerates rounding


def quantile(scores: np.ndarray, weights: np.ndarray, level: float) -> float:
    """The weighted conformal quantile of scores; below a level of 1/2, minus the quantile of the negative scores.

    Weights are above 0, and a new row has weight 1. The quantile is infinite if there are too few scores for the level.

    >>> scores = np.arange(1.0, 20.0)
    >>> [quantile(scores, np.ones(19), level) for level in (0.05, 0.5, 0.9, 0.95, 0.96)]
    [1.0, 10.0, 18.0, 19.0, inf]
    """
    if level < 0.5:
        return -quantile(-scores, weights, 1.0 - level)
    order = np.argsort(scores, kind="stable")
    totals = np.cumsum(weights[order])
    evidence = float(totals[-1]) if len(totals) else 0.0
    index = int(np.searchsorted(totals, level * (evidence + 1.0) * (1.0 - 1e-12)))
    return float(scores[order[index]]) if index < len(scores) else math.inf


def levels_around(levels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Levels (c, 2) of the ends of intervals, shifted to include the prediction (score 0) where evidence allows.

    >>> scores = np.arange(-15.0, 4.0)
    >>> levels_around(np.array([[0.25, 0.75], [0.05, 0.95]]), scores, np.ones(19))
    array([[0.3 , 0.8 ],
           [0.05, 0.95]])
    """
    evidence, coverages = float(weights.sum()) + 1.0, levels[:, 1] - levels[:, 0]
    highest = min(float(weights[scores <= 0.0].sum()), evidence - 1.0) / evidence
    lowest = 1.0 - min(float(weights[scores >= 0.0].sum()), evidence - 1.0) / evidence
    low = np.clip(levels[:, 0], lowest - coverages, highest)
    low = np.where((low > 1.0 / evidence) & (low + coverages < 1.0 - 1.0 / evidence), low, levels[:, 0])
    return np.stack([low, low + coverages], axis=1)


def wider(bound: float, scores: np.ndarray, weights: np.ndarray, level: float, sure: float = SURE) -> float:
    """A bound, or a quantile of other scores, where significantly many of these scores are beyond the bound.

    Their share is significant if it exceeds the expected share by more than ``sure`` standard errors.

    >>> near, far = np.arange(-100.0, 100.0), np.arange(-200.0, 200.0)
    >>> [wider(90.0, scores, np.ones(len(scores)), 0.95) for scores in (near, far)]
    [90.0, 180.0]
    """
    evidence, tail = float(weights.sum()), min(level, 1.0 - level)
    if (1.0 - tail) * (evidence + 1.0) > evidence:
        return bound
    is_beyond = scores < bound if level < 0.5 else scores > bound
    beyond = float(weights[is_beyond].sum()) / evidence
    error = math.sqrt(tail * (1.0 - tail) * float((weights**2).sum())) / evidence
    if beyond - tail <= sure * error:
        return bound
    return min(bound, quantile(scores, weights, level)) if level < 0.5 else max(bound, quantile(scores, weights, level))
