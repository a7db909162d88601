"""The mixture of members that predict classes, row by row."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import clip, largest
from tunefree.mixing.bases import Account, CandidateWeights, Weights, enter, is_awake, update_soft, write_mean
from tunefree.mixing.corrections import LENGTHS, STATES, UNIT, Scratch, learn_first, learn_second, write_both

WIDEST = 10.0  # largest difference of log-probabilities as a feature; larger ones are clipped
WIDEST_BASE = 20.0  # likewise minus the log-probability of the base
MOST_BIASED = 64  # largest number of classes for which each class has a bias


def write_features(members, base, features, ranges):
    """Write the features (M + 1, K), members minus the base and the base, centred over the classes, and all ranges.

    The range of a bias is its unit.
    """
    n_members, n_classes = members.shape
    for i in range(n_members + 1):
        centre, least, most = 0.0, math.inf, -math.inf
        if i < n_members and not is_awake(members[i]):
            features[i], ranges[i] = 0.0, 0.0
            continue
        for k in range(n_classes):
            if i == n_members:
                features[i, k] = max(base[k], -WIDEST_BASE) / UNIT
            else:
                features[i, k] = clip(members[i, k] - base[k], WIDEST) / UNIT
            centre += features[i, k] / n_classes
        for k in range(n_classes):
            features[i, k] -= centre
            least, most = min(least, features[i, k]), max(most, features[i, k])
        ranges[i] = most - least
    for i in range(n_members + 1, len(ranges)):
        ranges[i] = 1.0 / UNIT


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


def write_gradient(members, features, corrected, y, shares, gradient):
    """Write the gradient (F,) of the log-loss in the weights; returns the trace of its second derivative.

    That of a member which sleeps is 0. The probabilities ``shares`` (K,) are written, too.
    """
    n_dense, n_classes = features.shape
    trace = 0.0
    for k in range(n_classes):
        shares[k] = math.exp(corrected[k])
    for i in range(n_dense):
        mean, square, gradient[i] = 0.0, 0.0, 0.0
        if i < len(members) and not is_awake(members[i]):
            continue
        for k in range(n_classes):
            part = shares[k] * features[i, k]
            mean, square = mean + part, square + part * features[i, k]
        gradient[i] = mean - features[i, y]
        trace += max(square - mean * mean, 0.0)
    for k in range(len(gradient) - n_dense):
        p = shares[k]
        gradient[n_dense + k] = (p - (1.0 if k == y else 0.0)) / UNIT
        trace += p * (1.0 - p) / (UNIT * UNIT)
    return trace


@partial(Compiled, states=STATES, lengths=LENGTHS)
def mix(
    base: Weights,
    first: Any,
    second: Any,
    top: CandidateWeights,
    account: Account,
    scratch: Scratch,
    features: Annotated[np.ndarray, "float64[dense, classes]"],
    candidates: Annotated[np.ndarray, "float64[3, classes]"],
    shares: Annotated[np.ndarray, "float64[classes]"],
    losses: Annotated[np.ndarray, "float64[3]"],
    factors: Annotated[np.ndarray, "float64[members]"],
    members: Annotated[np.ndarray, "float64[rows, members, classes]"],
    y: Annotated[np.ndarray, "float64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    is_over: bool,
    keeps_order: bool,
    mixed: Annotated[np.ndarray, "float64[rows, classes]"],
) -> None:
    """Write mixed log-probabilities of rows, and learn the rows of a weight above 0, each after its prediction.

    ``members`` are log-probabilities, NaN of a member that sleeps. Weights of rows are relative to their mean. Where
    ``is_over``, means of the members' weights over the stream are used. A mixture that ``keeps_order``, of two
    classes, rises with each member.
    """
    gradient = scratch.gradient
    for t in range(len(members)):
        write_mean(base.means if is_over else base.weights, members[t], candidates[0])
        write_features(members[t], candidates[0], features, scratch.ranges)
        write_both(first, second, scratch, (1.0, 1.0), weight[t], keeps_order, len(members[t]))
        for c in range(2):
            write_corrected(scratch.weights[c], features, candidates[0], candidates[1 + c])
        write_mean(top.means if is_over else top.weights, candidates, mixed[t])
        if weight[t] > 0.0:
            label = int(y[t])
            trace = write_gradient(members[t], features, candidates[1], label, shares, gradient)
            learn_first(first, scratch, trace, weight[t])
            trace = write_gradient(members[t], features, candidates[2], label, shares, gradient)
            learn_second(second, scratch, trace, weight[t])
            update_soft(base, members[t], candidates[0], label, weight[t], factors)
            for c in range(3):
                losses[c] = -candidates[c, label]
            enter(account, top, losses, -mixed[t, label], weight[t], 1.0)
