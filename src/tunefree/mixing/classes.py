"""The mixture of members that predict classes, row by row (compiled)."""

from __future__ import annotations

import math

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import clip, largest
from tunefree.mixing.bases import is_awake, update_exponential, update_soft, write_mean
from tunefree.mixing.corrections import UNIT, learn_gradient, scale_of, write_weights

LEAST_LOG = -30.0  # of a member's log-probability
WIDEST = 10.0  # difference of log-probabilities, as a feature
WIDEST_BASE = 20.0  # log-probability of the base, as a feature
MOST_BIASED = 64  # classes up to which each has a bias


@compiled.inline
def write_features(members, base, features):
    """Write the features (M + 1, K): members minus the base, and the base, centred over the classes."""
    n_members, n_classes = members.shape
    for i in range(n_members + 1):
        centre = 0.0
        awake = i == n_members or is_awake(members[i])
        for k in range(n_classes):
            if i == n_members:
                features[i, k] = max(base[k], -WIDEST_BASE) / UNIT
            else:
                features[i, k] = clip(members[i, k] - base[k], WIDEST) / UNIT if awake else 0.0
            centre += features[i, k] / n_classes
        for k in range(n_classes):
            features[i, k] = features[i, k] - centre if awake else 0.0


@compiled.inline
def write_ranges(features, ranges):
    """Write the ranges (F,) of the features over the classes; that of a bias is its unit."""
    n_dense = len(features)
    for i in range(n_dense):
        least, most = features[i, 0], features[i, 0]
        for k in range(1, features.shape[1]):
            least, most = min(least, features[i, k]), max(most, features[i, k])
        ranges[i] = most - least
    for i in range(n_dense, len(ranges)):
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
def mix(base, first, second, top, members, y, weight, is_over, mixed):
    """Write mixed log-probabilities (n, K) of rows, and learn those of a weight above 0, each after its prediction.

    ``members`` (n, M, K) are log-probabilities, NaN of a member that sleeps. Weights of rows are relative to their
    mean. Where ``is_over``, means of the members' weights over the stream are used.
    """
    n, n_members, n_classes = members.shape
    n_features = n_members + 1 + (n_classes if n_classes <= MOST_BIASED else 0)
    features, candidates = np.empty((n_members + 1, n_classes)), np.empty((3, n_classes))
    ranges, gradient, weights = np.empty(n_features), np.empty(n_features), np.empty((2, n_features))
    margin, slopes, losses = np.empty(1), np.empty((2, 1)), np.empty(3)
    for t in range(n):
        relative = weight[t]
        write_mean(base.means if is_over else base.weights, members[t], candidates[0])
        write_features(members[t], candidates[0], features)
        write_ranges(features, ranges)
        write_weights(first, ranges, scale_of(1.0, relative), margin, weights[0])
        write_weights(second, ranges, scale_of(1.0, relative), margin, weights[1])
        for c in range(2):
            write_corrected(weights[c], features, candidates[0], candidates[1 + c])
        write_mean(top.means if is_over else top.weights, candidates, mixed[t])
        if relative > 0.0:
            came = int(y[t])
            trace = write_gradient(features, candidates[1], came, gradient)
            learn_gradient(first, gradient, trace, relative, slopes)
            trace = write_gradient(features, candidates[2], came, gradient)
            learn_gradient(second, gradient, trace, relative, slopes)
            for c in range(3):
                losses[c] = -candidates[c, came]
            update_soft(base, members[t], candidates[0], came, relative)
            update_exponential(top, losses, relative)
