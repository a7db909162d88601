"""The prediction of a mixture of predictions: for probabilities their mean, for numbers theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core import compiled
from tunefree.core.generic import generic
from tunefree.core.numbers import finite, largest, softplus
from tunefree.losses.objectives import Binary, Multinomial, OneAgainstAll, Regression

LEAST = 1e-290  # probabilities below are computed by their logarithms


@generic
def aggregate(objective: Any, shares: np.ndarray, predictions: np.ndarray, aggregated: np.ndarray) -> None:
    """Write the prediction (K,) of a mixture of predictions (N, K)."""
    raise TypeError(f"{type(objective).__name__} is not an objective")


@aggregate.register(Binary)
def aggregate_binary(objective, shares, predictions, aggregated):
    """The log-odds of the mean probability."""
    yes, no = 0.0, 0.0
    for m in range(len(shares)):
        margin = predictions[m, 0]
        odds = math.exp(-abs(margin))
        less, more = shares[m] * odds / (1.0 + odds), shares[m] / (1.0 + odds)
        yes += more if margin > 0.0 else less
        no += less if margin > 0.0 else more
    aggregated[0] = math.log(yes / no) if min(yes, no) > LEAST else far_log_odds(shares, predictions)


@compiled.inline
def far_log_odds(shares, predictions):
    """The log-odds of a mean probability so near 0 or 1 that one of them would underflow."""
    least_yes, least_no = math.inf, math.inf
    for m in range(len(shares)):
        if shares[m] > 0.0:
            least_yes = min(least_yes, softplus(-predictions[m, 0]))
            least_no = min(least_no, softplus(predictions[m, 0]))
    yes, no = 0.0, 0.0
    for m in range(len(shares)):
        if shares[m] > 0.0:
            yes += shares[m] * math.exp(least_yes - softplus(-predictions[m, 0]))
            no += shares[m] * math.exp(least_no - softplus(predictions[m, 0]))
    return (math.log(yes) - least_yes) - (math.log(no) - least_no)


@aggregate.register(Multinomial)
def aggregate_multinomial(objective, shares, predictions, aggregated):
    """The logarithms of the mean probabilities."""
    totals, likely = np.empty(len(shares)), np.empty(len(aggregated))
    for k in range(len(aggregated)):
        aggregated[k] = 0.0
    for m in range(len(shares)):
        peak, total = largest(predictions[m]), 0.0
        for k in range(len(aggregated)):
            likely[k] = math.exp(predictions[m, k] - peak)
            total += likely[k]
        totals[m] = peak + math.log(total)
        for k in range(len(aggregated)):
            aggregated[k] += shares[m] / total * likely[k]
    for k in range(len(aggregated)):
        if aggregated[k] > LEAST:
            aggregated[k] = math.log(aggregated[k])
        else:
            aggregated[k] = far_logarithm(shares, predictions, totals, k)


@compiled.inline
def far_logarithm(shares, predictions, totals, k):
    """The logarithm of the mean probability of a class that would underflow."""
    greatest, total = -math.inf, 0.0
    for m in range(len(shares)):
        if shares[m] > 0.0:
            greatest = max(greatest, predictions[m, k] - totals[m])
    for m in range(len(shares)):
        if shares[m] > 0.0:
            total += shares[m] * math.exp(predictions[m, k] - totals[m] - greatest)
    return greatest + math.log(total)


for mean_kind in (OneAgainstAll, Regression):

    @aggregate.register(mean_kind)
    def aggregate_mean(objective, shares, predictions, aggregated):
        """The mean; losses are convex, so its loss is at most the mean of the members' losses."""
        for k in range(len(aggregated)):
            aggregated[k] = 0.0
            for m in range(len(shares)):
                aggregated[k] += shares[m] * predictions[m, k]
            aggregated[k] = finite(aggregated[k])  # shares may add up to a little more than 1
