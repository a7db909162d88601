"""The mixture of members that predict numbers, or logarithms of means, row by row.

Exponential weights have the rate 1 / (8 typical loss). Typical losses and residuals are running means that forget the
first rows. For losses with a Lipschitz constant, outliers count little in them (:mod:`tunefree.core.numbers`).

With a logarithmic link (for counts, amounts and rates) the base is the logarithm of the mean of the means that members
predict, so that its total prediction is the mean of theirs. Corrections are added to the logarithm, and have no
constant; differences of logarithms need no unit. Losses are in units of the dispersion phi, in which half a deviance is
a log-likelihood: with a slope s and an expected curvature f the mean of s^2 / f is phi (Wedderburn: Quasi-likelihood
functions, Biometrika 1974). Slopes grow exponentially, so they are computed at predictions that are clipped to the
range of the targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import CEILING, approach, bounded, clip, pace
from tunefree.core.schema import INFINITE
from tunefree.losses.deviances import power_of_e, times_power_of_e
from tunefree.losses.functions import Functions, Loop
from tunefree.losses.numbers import IS_LOG, N_NUMBERS, widest_of
from tunefree.mixing.bases import (
    Account,
    CandidateWeights,
    Sum,
    Weights,
    enter,
    is_awake,
    total_awake,
    update_exponential,
)
from tunefree.mixing.corrections import LENGTHS, STATES, UNIT, Scratch, learn_first, learn_second, write_both

WIDEST = 10.0  # largest difference of a member from the base as a feature, in units of the base's residual
WIDEST_BASE = 30.0  # likewise for the difference of the base from the mean target
BEYOND = 0.5  # part of the range of the targets by which predictions may exceed it, as linear trends go on
BEYOND_LOGARITHM = 1.0  # by which logarithms may exceed the logarithms of the targets
LOWEST = 15.0  # by which logarithms may be below the logarithm of the mean target, where some targets are 0
BEGUN = 5.0  # rounds until corrections get features other than the constant: before, no residual is typical
LEAST_LOSS, MOST_LOSS = 1e-290, 1e300  # smaller typical losses count as 0; larger losses are clipped


class Range(NamedTuple):
    """Statistics of the targets so far, and of the losses of the base (0) and of the mixture (1); updated in place."""

    lowest: Sum  # smallest target
    highest: Sum  # largest target
    mean: Sum  # running mean of the targets
    residual: Sum  # typical distance of a target from the base's prediction; or the root of the dispersion
    typical: Annotated[np.ndarray, "float64[2]", INFINITE]  # typical losses of the base and the mixture
    steepest: Annotated[np.ndarray, "float64[2]", INFINITE]  # largest scaled slope of each correction

    @classmethod
    def create(cls) -> Self:
        """The range before any target."""
        return cls(np.array([math.inf]), np.array([-math.inf]), np.zeros(1), np.zeros(1), np.zeros(2), np.ones(2))


def ends_of(known, is_log):
    """The least and the greatest prediction: a little beyond those of the targets so far."""
    lowest, highest = known.lowest[0], known.highest[0]
    if is_log:
        if highest <= 0.0:
            return 0.0, 0.0
        high = math.log(highest) + BEYOND_LOGARITHM
        return math.log(lowest) - BEYOND_LOGARITHM if lowest > 0.0 else min(centre_of(known, True), high) - LOWEST, high
    if highest < lowest:
        return -CEILING, CEILING
    beyond = BEYOND * highest - BEYOND * lowest
    return bounded(lowest - beyond), bounded(highest + beyond)


def clip_to(ends, number):
    """A prediction, clipped to its ends."""
    return min(max(number, ends[0]), ends[1])


def centre_of(known, is_log):
    """The prediction of one who knows the targets alone: their mean, or its logarithm; 0 as long as all are 0."""
    if is_log:
        return math.log(known.mean[0]) if known.mean[0] > 0.0 else 0.0
    return known.mean[0]


def unit_of(known, is_log):
    """The unit of differences of predictions: the typical residual; of logarithms 1, or 0 without a dispersion."""
    if is_log:
        return 1.0 if known.residual[0] > 0.0 and known.highest[0] > 0.0 else 0.0
    return known.residual[0]


def mean_of(weights, members, known, ends, is_log):
    """The mean that members awake predict, of logarithms that of the means; that of the targets if all sleep."""
    total, peak, mean = total_awake(weights, members), -math.inf, 0.0
    if total <= 0.0:
        return clip_to(ends, centre_of(known, True)) if is_log else known.mean[0]
    for i in range(len(members) if is_log else 0):
        if is_awake(members[i]):
            peak = max(peak, clip_to(ends, members[i, 0]))
    for i in range(len(members)):
        if is_awake(members[i]):
            number = clip_to(ends, members[i, 0])
            mean += weights[i] / total * (math.exp(number - peak) if is_log else number)
    return peak + math.log(mean) if is_log else mean


def mean_of_candidates(weights, candidates, is_log):
    """The mean of the candidates, or the logarithm of the mean of their means."""
    if not is_log:
        return weights[0] * candidates[0] + weights[1] * candidates[1] + weights[2] * candidates[2]
    peak, mean = max(candidates[0], candidates[1], candidates[2]), 0.0
    for c in range(3):
        mean += weights[c] * math.exp(candidates[c] - peak)
    return peak + math.log(mean)


def write_candidates(
    first, second, known, members, ends, begun, keeps_order, weight, is_log, scratch, features, candidates
):
    """Write the features (M + 2,), members minus the base, the base minus the mean target, 1; and predictions."""
    base, unit = candidates[0], unit_of(known, is_log)
    for i in range(len(members)):
        away = clip_to(ends, members[i, 0]) - base if begun and is_awake(members[i]) else 0.0
        features[i] = clip(away / unit, WIDEST) / UNIT if unit > 0.0 else 0.0
    away = base - centre_of(known, is_log) if begun else 0.0
    features[len(members)] = clip(away / unit, WIDEST_BASE) / UNIT if unit > 0.0 else 0.0
    features[len(members) + 1] = 0.0 if is_log else 1.0 / UNIT
    for i in range(len(features)):
        scratch.ranges[i] = abs(features[i])
    write_both(first, second, scratch, known.steepest, weight, keeps_order, len(members))
    for c in range(2):
        step = 0.0
        for i in range(len(features)):
            step += scratch.weights[c, i] * features[i]
        step = base + unit * clip(step, 1e30)
        candidates[1 + c] = clip_to(ends, step)
        scratch.steps[c] = candidates[1 + c] if is_log else step


def in_units(known, is_log, slope, curvature):
    """Derivatives of the loss of a step of one unit: of losses of twice the typical one, or of the dispersion."""
    if is_log:
        dispersion = known.residual[0] * known.residual[0]
        if dispersion > 0.0 and known.highest[0] > 0.0:
            return clip(slope / dispersion, 1e50), min(curvature / dispersion, 1e50)
        return 0.0, 0.0
    typical = known.typical[0]
    if typical > 0.0:
        steep = clip(slope / typical * (0.5 * known.residual[0]), 1e50)
        return steep, max(curvature * 0.5 * known.residual[0] * known.residual[0] / typical, 0.0)
    return 0.0, 0.0


def learn_target(known, numbers, y, base, rate):
    """Update the statistics of the targets with a target that the base predicted.

    The part of an outlier that is too far off does not count. With a logarithmic link the dispersion is learned.
    """
    known.lowest[0], known.highest[0] = min(known.lowest[0], y), max(known.highest[0], y)
    residual, widest = known.residual[0], widest_of(numbers)
    if numbers[IS_LOG] > 0.0:
        q, r = numbers[N_NUMBERS] - 1.0, 2.0 - numbers[N_NUMBERS]
        known.mean[0] += rate * (y - known.mean[0])
        expected = power_of_e(r * base)
        slope = clip(expected - times_power_of_e(y, -q * base), 1e150)
        square = residual * residual
        known.residual[0] = math.sqrt(square + rate * (min(slope / expected * slope, 1e300) - square))
        return
    near = base + clip(y - base, widest * residual) if residual > 0.0 else y
    known.mean[0] += rate * (near - known.mean[0])
    known.residual[0] = approach(residual, abs(y - base), rate, widest)


def learn_losses(known, numbers, base, mixed, weight, rate):
    """Update the typical losses with those of the base and of the mixture; returns the rate of the base's weights."""
    for level in range(2):
        level_loss = min(base if level == 0 else mixed, MOST_LOSS)
        typical = approach(known.typical[level], level_loss, rate, widest_of(numbers))
        known.typical[level] = typical if typical > LEAST_LOSS else 0.0
    return weight / (8.0 * known.typical[0]) if known.typical[0] > 0.0 else 0.0


def writer_of_gradient(functions: Functions) -> Callable[..., float]:
    """The function that writes the gradient of a correction."""
    slope, curvature = functions.slope_of, functions.curvature_of

    def write_gradient(known, c, scratch, features, loss, numbers, y):
        """Write the gradient of correction ``c`` for a target; returns the trace of the second derivative."""
        step, is_log = scratch.steps[c], numbers[IS_LOG] > 0.0
        steep, bend = in_units(known, is_log, slope(loss, numbers, y, step), curvature(loss, numbers, y, step))
        clipped, norm = clip(steep, known.steepest[c]), 0.0
        known.steepest[c] = max(known.steepest[c], abs(steep))
        for i in range(len(features)):
            scratch.gradient[i] = clipped * features[i]
            norm += features[i] * features[i]
        return max(bend, clipped * clipped if bend == 0.0 else 0.0) * norm

    return write_gradient


def writer_of_losses(functions: Functions) -> Callable[..., None]:
    """The function that writes the losses of a row."""
    value = functions.value_of

    def write_losses(known, members, candidates, mixed, loss, numbers, y, losses):
        """Write the losses of the candidates, the mixture, and the members, NaN of those asleep."""
        ends = ends_of(known, numbers[IS_LOG] > 0.0)
        for c in range(3):
            losses[c] = value(loss, numbers, y, candidates[c])
        losses[3] = value(loss, numbers, y, mixed)
        for i in range(len(members)):
            is_on = is_awake(members[i])
            losses[4 + i] = value(loss, numbers, y, clip_to(ends, members[i, 0])) if is_on else math.nan

    return write_losses


@Loop
def mixing(functions: Functions) -> Callable[..., None]:
    """The loop over rows, with all losses as cases."""
    write_gradient, write_losses = writer_of_gradient(functions), writer_of_losses(functions)

    def mix(
        base: Weights,
        first: Any,
        second: Any,
        top: CandidateWeights,
        account: Account,
        known: Range,
        scratch: Scratch,
        features: Annotated[np.ndarray, "float64[features]"],
        candidates: Annotated[np.ndarray, "float64[3]"],
        losses: Annotated[np.ndarray, "float64[losses]"],
        loss: int,
        numbers: Annotated[np.ndarray, "float64[facts]"],
        members: Annotated[np.ndarray, "float64[rows, members, 1]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        is_over: bool,
        keeps_order: bool,
        mixed: Annotated[np.ndarray, "float64[rows, 1]"],
    ) -> None:
        for t in range(len(members)):
            row, weight, begun, is_log = members[t], weights[t], base.rounds[0] > BEGUN, numbers[IS_LOG] > 0.0
            ends = ends_of(known, is_log)
            candidates[0] = mean_of(base.means if is_over else base.weights, row, known, ends, is_log)
            write_candidates(
                first, second, known, row, ends, begun, keeps_order, weight, is_log, scratch, features, candidates
            )
            mixed[t, 0] = mean_of_candidates(top.means if is_over else top.weights, candidates, is_log)
            if weight > 0.0:
                y, rate = bounded(targets[t]), pace(max((base.rounds[0] + 1.0) / weight, 1.0))
                learn_first(first, scratch, write_gradient(known, 0, scratch, features, loss, numbers, y), weight)
                learn_second(second, scratch, write_gradient(known, 1, scratch, features, loss, numbers, y), weight)
                learn_target(known, numbers, y, candidates[0], rate)
                write_losses(known, row, candidates, mixed[t, 0], loss, numbers, y, losses)
                update_exponential(base, losses[4:], learn_losses(known, numbers, losses[0], losses[3], weight, rate))
                enter(account, top, losses[:3], losses[3], weight, 8.0 * known.typical[1])

    return mix


def compiled_mixing() -> Compiled:
    """The compiled function that mixes and learns rows as :func:`tunefree.mixing.classes.mix` does, for all losses."""
    return mixing.compiled(states=STATES, lengths=LENGTHS)


def all_compiled() -> list[Compiled]:
    """The compiled functions of this module."""
    return [compiled_mixing()]
