"""The mixture of members that predict numbers, row by row (compiled).

Exponential weights have the rate 1 / (8 typical loss), where the typical loss is the running mean of the mixture's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import bounded, clip
from tunefree.losses.contract import curvature, slope, value
from tunefree.mixing.bases import is_awake, total_awake, update_exponential
from tunefree.mixing.corrections import UNIT, learn_gradient, scale_of, write_weights

WIDEST = 10.0  # difference of a member from the base, in units of the base's residual, as a feature
WIDEST_BASE = 30.0  # likewise of the base from the mean target
BEGUN = 5.0  # rounds after which corrections see more than a constant: before, no residual is typical
LEAST_LOSS = 1e-290  # typical losses below it are 0


class Range(NamedTuple):
    """What is known of the targets so far, and of the losses of the base (0) and of the mixture (1)."""

    lowest: np.ndarray  # () least target, in place
    highest: np.ndarray  # () greatest target, in place
    mean: np.ndarray  # () weighted mean of the targets, in place
    residual: np.ndarray  # () root mean square of the base's residuals, in place
    typical: np.ndarray  # (2,) mean loss, in place
    steepest: np.ndarray  # (2,) largest scaled slope of a correction, in place

    @classmethod
    def create(cls) -> Range:
        """Of no target."""
        scalars = np.array(math.inf), np.array(-math.inf), np.zeros(()), np.zeros(())
        return cls(*scalars, np.zeros(2), np.ones(2))


@compiled.inline
def within(known, number):
    """A prediction within the range of the targets so far."""
    if known.highest[()] < known.lowest[()]:
        return bounded(number)
    return min(max(number, known.lowest[()]), known.highest[()])


@compiled.inline
def mean_of(weights, members, known):
    """The mean of the predictions of members awake; the mean target where all sleep."""
    total, mean = total_awake(weights, members), 0.0
    for i in range(len(members)):
        if is_awake(members[i]):
            mean += weights[i] / total * within(known, members[i, 0]) if total > 0.0 else 0.0
    return mean if total > 0.0 else known.mean[()]


@compiled.inline
def write_features(members, base, known, begun, features):
    """Write the features (M + 2,): members minus the base, the base minus the mean target, and 1."""
    unit = known.residual[()]
    for i in range(len(members)):
        away = within(known, members[i, 0]) - base if begun and is_awake(members[i]) else 0.0
        features[i] = clip(away / unit, WIDEST) / UNIT if unit > 0.0 else 0.0
    away = base - known.mean[()] if begun else 0.0
    features[len(members)] = clip(away / unit, WIDEST_BASE) / UNIT if unit > 0.0 else 0.0
    features[len(members) + 1] = 1.0 / UNIT


@compiled.inline
def scaled_slope(loss, y, prediction, known):
    """The slope of the loss where predictions are in units of the residual, and losses of twice the typical one."""
    typical = known.typical[0]
    return clip(slope(loss, y, prediction) / typical * (0.5 * known.residual[()]), 1e50) if typical > 0.0 else 0.0


@compiled.inline
def learn_target(base, top, known, loss, members, y, candidates, mixed, losses, candidate_losses, weight):
    """Let the range, the typical losses, and the weights of members and candidates follow a target."""
    pace = weight / (base.rounds[()] + 1.0)
    known.lowest[()], known.highest[()] = min(known.lowest[()], y), max(known.highest[()], y)
    known.mean[()] += min(pace, 1.0) * (y - known.mean[()])
    away = candidates[0] - y
    square = known.residual[()] * known.residual[()]
    known.residual[()] = math.sqrt(square + min(pace, 1.0) * (away * away - square))
    for level in range(2):
        of_level = min(value(loss, y, candidates[0] if level == 0 else mixed), 1e300)
        typical = known.typical[level] + min(pace, 1.0) * (of_level - known.typical[level])
        known.typical[level] = typical if typical > LEAST_LOSS else 0.0
    for i in range(len(members)):
        losses[i] = value(loss, y, within(known, members[i, 0])) if is_awake(members[i]) else math.nan
    for c in range(3):
        candidate_losses[c] = value(loss, y, candidates[c])
    update_exponential(base, losses, weight / (8.0 * known.typical[0]) if known.typical[0] > 0.0 else 0.0)
    update_exponential(top, candidate_losses, weight / (8.0 * known.typical[1]) if known.typical[1] > 0.0 else 0.0)


@compiled.entry
def mix(base, first, second, top, known, loss, members, y, weight, is_over, mixed):
    """Write the mixed predictions (n, 1) of rows, and learn those of a weight above 0, each after its prediction.

    ``members`` (n, M, 1) are predictions, NaN of a member that sleeps; see :func:`tunefree.mixing.classes.mix`.
    """
    n, n_members = members.shape[:2]
    n_features = n_members + 2
    features, ranges, gradient = np.empty(n_features), np.empty(n_features), np.empty(n_features)
    weights, candidates, margin = np.empty((2, n_features)), np.empty(3), np.empty(1)
    slopes, losses, candidate_losses = np.empty((2, 1)), np.empty(n_members), np.empty(3)
    for t in range(n):
        relative, target = weight[t], bounded(y[t])
        candidates[0] = mean_of(base.means if is_over else base.weights, members[t], known)
        write_features(members[t], candidates[0], known, base.rounds[()] > BEGUN, features)
        for i in range(n_features):
            ranges[i] = abs(features[i])
        write_weights(first, ranges, scale_of(known.steepest[0], relative), margin, weights[0])
        write_weights(second, ranges, scale_of(known.steepest[1], relative), margin, weights[1])
        steps = np.zeros(2)
        for c in range(2):
            for i in range(n_features):
                steps[c] += weights[c, i] * features[i]
            steps[c] = candidates[0] + known.residual[()] * clip(steps[c], 1e30)
            candidates[1 + c] = within(known, steps[c])
        used = top.means if is_over else top.weights
        mixed[t, 0] = 0.0
        for c in range(3):
            mixed[t, 0] += used[c] * candidates[c]
        if relative > 0.0:
            norm = 0.0
            for i in range(n_features):
                norm += features[i] * features[i]
            for c in range(2):
                steep = scaled_slope(loss, target, steps[c], known)
                bend = curvature(loss, target, steps[c]) * 0.5 * known.residual[()] * known.residual[()]
                bend = max(bend / known.typical[0], 0.0) if known.typical[0] > 0.0 else 0.0
                clipped = clip(steep, known.steepest[c])
                known.steepest[c] = max(known.steepest[c], abs(steep))
                for i in range(n_features):
                    gradient[i] = clipped * features[i]
                trace = max(bend, clipped * clipped if bend == 0.0 else 0.0) * norm
                if c == 0:
                    learn_gradient(first, gradient, trace, relative, slopes)
                else:
                    learn_gradient(second, gradient, trace, relative, slopes)
            of_row = losses, candidate_losses, relative
            learn_target(base, top, known, loss, members[t], target, candidates, mixed[t, 0], *of_row)
