"""The mixture of members that predict classes, row by row (compiled)."""

from __future__ import annotations

import math

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import clip, largest
from tunefree.mixing.bases import enter, is_awake, update_soft, write_mean
from tunefree.mixing.corrections import UNIT, learn_gradient, round_of, write_weights

LEAST_LOG = -30.0  # of a member's log-probability
WIDEST = 10.0  # difference of log-probabilities, as a feature
WIDEST_BASE = 20.0  # log-probability of the base, as a feature
MOST_BIASED = 64  # classes up to which each has a bias


@compiled.inline
def write_features(members, base, features, ranges):
    """Write the features (M + 1, K), members minus the base and the base, centred over the classes, and all ranges.

    The range of a bias is its unit.
    """
    n_members, n_classes = members.shape
    for i in range(n_members + 1):
        centre, least, most = 0.0, math.inf, -math.inf
        for k in range(n_classes):
            if i == n_members:
                features[i, k] = max(base[k], -WIDEST_BASE) / UNIT
            else:
                features[i, k] = clip(members[i, k] - base[k], WIDEST) / UNIT if is_awake(members[i]) else 0.0
            centre += features[i, k] / n_classes
        for k in range(n_classes):
            features[i, k] -= centre
            least, most = min(least, features[i, k]), max(most, features[i, k])
        ranges[i] = most - least
    for i in range(n_members + 1, len(ranges)):
        ranges[i] = 1.0 / UNIT


@compiled.inline
def write_corrected(weights, features, base, corrected):
    """Write the log-probabilities (K,) of the base plus a weighted sum of the features."""
    n_dense, n_classes = features.shape
    for k in range(n_classes):
        corrected[k] = base[k] + (weights[n_dense + k] / UNIT if len(weights) > n_dense else 0.0)
    for i in range(n_dense):
        if weights[i] != 0.0:
            for k in range(n_classes):
                corrected[k] += weights[i] * features[i, k]
    peak, total = largest(corrected), 0.0
    for k in range(n_classes):
        total += math.exp(corrected[k] - peak)
    level = peak + math.log(total)
    for k in range(n_classes):
        corrected[k] -= level


@compiled.inline
def write_gradient(features, corrected, y, gradient):
    """Write the gradient (F,) of the log-loss in the weights; returns the trace of its second derivative."""
    n_dense, n_classes = features.shape
    trace = 0.0
    for i in range(n_dense):
        mean, square = 0.0, 0.0
        for k in range(n_classes):
            part = math.exp(corrected[k]) * features[i, k]
            mean, square = mean + part, square + part * features[i, k]
        gradient[i] = mean - features[i, y]
        trace += max(square - mean * mean, 0.0)
    for k in range(len(gradient) - n_dense):
        p = math.exp(corrected[k])
        gradient[n_dense + k] = (p - (1.0 if k == y else 0.0)) / UNIT
        trace += p * (1.0 - p) / (UNIT * UNIT)
    return trace


@compiled.entry
def mix(base, first, second, top, account, members, y, weight, is_over, mixed):
    """Write mixed log-probabilities (n, K) of rows, and learn those of a weight above 0, each after its prediction.

    ``members`` (n, M, K) are log-probabilities, NaN of a member that sleeps. Weights of rows are relative to their
    mean. Where ``is_over``, means of the members' weights over the stream are used.
    """
    n, n_members, n_classes = members.shape
    row = round_of(np.empty((n_members + 1, n_classes)), np.empty((3, n_classes)), len(first.features))
    candidates = row.candidates
    for t in range(n):
        relative = weight[t]
        write_mean(base.means if is_over else base.weights, members[t], candidates[0])
        write_features(members[t], candidates[0], row.features, row.ranges)
        write_weights(first, 0, row, 1.0, relative)
        write_weights(second, 1, row, 1.0, relative)
        for c in range(2):
            write_corrected(row.weights[c], row.features, candidates[0], candidates[1 + c])
        write_mean(top.means if is_over else top.weights, candidates, mixed[t])
        if relative > 0.0:
            came = int(y[t])
            learn_gradient(first, row, write_gradient(row.features, candidates[1], came, row.gradient), relative)
            learn_gradient(second, row, write_gradient(row.features, candidates[2], came, row.gradient), relative)
            update_soft(base, members[t], candidates[0], came, relative)
            for c in range(3):
                row.losses[c] = -candidates[c, came]
            enter(account, top, row.losses, -mixed[t, came], relative, 1.0)
