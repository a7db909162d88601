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
from tunefree.mixing.bases import enter, is_awake, total_awake, update_exponential
from tunefree.mixing.corrections import UNIT, learn_gradient, round_of, write_weights

WIDEST = 10.0  # difference of a member from the base, in units of the base's residual, as a feature
WIDEST_BASE = 30.0  # likewise of the base from the mean target
BEYOND = 0.5  # of the range of the targets, by which predictions may lie beyond it
BEGUN = 5.0  # rounds after which corrections see more than a constant: before, no residual is typical
LEAST_LOSS, MOST_LOSS = 1e-290, 1e300  # typical losses below the first are 0; losses are at most the second


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
    """A prediction within the range of the targets so far, widened by a part of it: a linear truth goes on beyond."""
    if known.highest[()] < known.lowest[()]:
        return bounded(number)
    beyond = BEYOND * known.highest[()] - BEYOND * known.lowest[()]
    return bounded(min(max(number, known.lowest[()] - beyond), known.highest[()] + beyond))


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
def write_candidates(first, second, known, members, begun, weight, row, steps):
    """Write the features, and the predictions of the corrections; ``steps`` (2,) are these wherever they are."""
    write_features(members, row.candidates[0], known, begun, row.features)
    for i in range(len(row.features)):
        row.ranges[i] = abs(row.features[i])
    write_weights(first, 0, row, known.steepest[0], weight)
    write_weights(second, 1, row, known.steepest[1], weight)
    for c in range(2):
        step = 0.0
        for i in range(len(row.features)):
            step += row.weights[c, i] * row.features[i]
        steps[c] = row.candidates[0] + known.residual[()] * clip(step, 1e30)
        row.candidates[1 + c] = within(known, steps[c])


@compiled.inline
def write_gradient(known, loss, y, step, c, row):
    """Write the gradient of correction ``c`` where it predicts ``step``; returns the trace of the second derivative.

    Predictions are in units of the residual, and losses of twice the typical one. Slopes are clipped at the steepest
    before.
    """
    typical, steep, bend, norm = known.typical[0], 0.0, 0.0, 0.0
    if typical > 0.0:
        steep = clip(slope(loss, y, step) / typical * (0.5 * known.residual[()]), 1e50)
        bend = max(curvature(loss, y, step) * 0.5 * known.residual[()] * known.residual[()] / typical, 0.0)
    clipped = clip(steep, known.steepest[c])
    known.steepest[c] = max(known.steepest[c], abs(steep))
    for i in range(len(row.features)):
        row.gradient[i] = clipped * row.features[i]
        norm += row.features[i] * row.features[i]
    return max(bend, clipped * clipped if bend == 0.0 else 0.0) * norm


@compiled.inline
def learn_target(known, loss, y, base, mixed, pace):
    """Let what is known of the targets, and the typical losses, follow a target."""
    known.lowest[()], known.highest[()] = min(known.lowest[()], y), max(known.highest[()], y)
    known.mean[()] += pace * (y - known.mean[()])
    square = known.residual[()] * known.residual[()]
    known.residual[()] = math.sqrt(square + pace * ((base - y) * (base - y) - square))
    for level in range(2):
        of_level = min(value(loss, y, base if level == 0 else mixed), MOST_LOSS)
        typical = known.typical[level] + pace * (of_level - known.typical[level])
        known.typical[level] = typical if typical > LEAST_LOSS else 0.0


@compiled.inline
def learn_weights(base, top, account, known, loss, members, y, mixed, weight, row):
    """Let the weights of members and candidates follow a target."""
    losses, unit = np.empty(len(members)), 8.0 * known.typical[0]
    for i in range(len(members)):
        losses[i] = value(loss, y, within(known, members[i, 0])) if is_awake(members[i]) else math.nan
    update_exponential(base, losses, weight / unit if unit > 0.0 else 0.0)
    for c in range(3):
        row.losses[c] = value(loss, y, row.candidates[c])
    enter(account, top, row.losses, value(loss, y, mixed), weight, 8.0 * known.typical[1])


@compiled.entry
def mix(base, first, second, top, account, known, loss, members, y, weight, is_over, mixed):
    """Write the mixed predictions (n, 1) of rows, and learn those of a weight above 0, each after its prediction.

    ``members`` (n, M, 1) are predictions, NaN of a member that sleeps; see :func:`tunefree.mixing.classes.mix`.
    """
    n, n_members = members.shape[:2]
    row, steps = round_of(np.empty(n_members + 2), np.empty(3), n_members + 2), np.empty(2)
    used = top.means if is_over else top.weights
    for t in range(n):
        relative, target, begun = weight[t], bounded(y[t]), base.rounds[()] > BEGUN
        row.candidates[0] = mean_of(base.means if is_over else base.weights, members[t], known)
        write_candidates(first, second, known, members[t], begun, relative, row, steps)
        mixed[t, 0] = used[0] * row.candidates[0] + used[1] * row.candidates[1] + used[2] * row.candidates[2]
        if relative > 0.0:
            learn_gradient(first, row, write_gradient(known, loss, target, steps[0], 0, row), relative)
            learn_gradient(second, row, write_gradient(known, loss, target, steps[1], 1, row), relative)
            pace = min(relative / (base.rounds[()] + 1.0), 1.0)
            learn_target(known, loss, target, row.candidates[0], mixed[t, 0], pace)
            learn_weights(base, top, account, known, loss, members[t], target, mixed[t, 0], relative, row)
