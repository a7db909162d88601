"""The mixture of members that predict numbers, row by row.

Exponential weights have the rate 1 / (8 typical loss). Typical losses and residuals are running means that forget the
first rows. For losses with a Lipschitz constant outliers count little in them (:mod:`tunefree.core.numbers`).
What a mean of predictions is, and their unit, depends on the link between predictions and targets: here they are the
same, and in :mod:`tunefree.mixing.rates` predictions are logarithms of the targets' means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import approach, bounded, clip, pace
from tunefree.core.schema import INFINITE
from tunefree.losses.functions import Functions, Loop
from tunefree.losses.numbers import widest_of
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
from tunefree.mixing.corrections import (
    LENGTHS,
    STATES,
    UNIT,
    Scratch,
    keep_order,
    learn_first,
    learn_second,
    write_first,
    write_second,
)

WIDEST = 10.0  # difference of a member from the base, in units of the base's residual, as a feature
WIDEST_BASE = 30.0  # likewise of the base from the mean target
BEYOND = 0.5  # of the range of the targets, by which predictions may lie beyond it
BEGUN = 5.0  # rounds after which corrections see more than a constant: before, no residual is typical
LEAST_LOSS, MOST_LOSS = 1e-290, 1e300  # typical losses below the first are 0; losses are at most the second


class Range(NamedTuple):
    """Statistics of the targets so far, and of the losses of the base (0) and of the mixture (1); changed in place."""

    lowest: Sum  # least target
    highest: Sum  # greatest target
    mean: Sum  # running mean of the targets
    residual: Sum  # typical distance of a target from the base's prediction; or the root of the dispersion
    typical: Annotated[np.ndarray, "float64[2]", INFINITE]  # typical losses
    steepest: Annotated[np.ndarray, "float64[2]", INFINITE]  # largest scaled slope of each correction

    @classmethod
    def create(cls) -> Self:
        """The range before any target."""
        return cls(np.array([math.inf]), np.array([-math.inf]), np.zeros(1), np.zeros(1), np.zeros(2), np.ones(2))


class Link(NamedTuple):
    """Plain functions of a range that depend on the link between predictions and targets."""

    within: Any  # (known, number): a prediction within the range of the targets so far
    centre_of: Any  # (known): the prediction of one who knows the targets alone
    unit_of: Any  # (known): of differences of predictions; 0 as long as there is none
    mean_of: Any  # (weights, members, known): the mean of the predictions of members awake
    mixed_of: Any  # (weights, candidates): the mean of the candidates
    is_steep: bool  # whether slopes of corrections are taken within the range of the targets
    in_units: Any  # (known, slope, curvature): derivatives of the loss of a step of one unit, in units of the loss
    constant: float  # the last feature
    learn_target: Any  # (known, numbers, y, base, rate): let what is known follow a target that the base predicted


def within(known, number):
    """A prediction within the range of the targets so far, widened by a part of it: a linear truth goes on beyond."""
    if known.highest[0] < known.lowest[0]:
        return bounded(number)
    beyond = BEYOND * known.highest[0] - BEYOND * known.lowest[0]
    return bounded(min(max(number, known.lowest[0] - beyond), known.highest[0] + beyond))


def mean_of(weights, members, known):
    """The mean of the predictions of members awake; the mean target where all sleep."""
    total, mean = total_awake(weights, members), 0.0
    for i in range(len(members)):
        if is_awake(members[i]):
            mean += weights[i] / total * within(known, members[i, 0]) if total > 0.0 else 0.0
    return mean if total > 0.0 else known.mean[0]


def mean_target(known):
    """The mean of the targets."""
    return known.mean[0]


def residual_of(known):
    """The typical distance of a target from the base's prediction."""
    return known.residual[0]


def mean_of_candidates(weights, candidates):
    """The mean of the candidates."""
    return weights[0] * candidates[0] + weights[1] * candidates[1] + weights[2] * candidates[2]


def in_residuals(known, slope, curvature):
    """Derivatives where predictions are in units of the residual, and losses of twice the typical one."""
    typical = known.typical[0]
    if typical > 0.0:
        steep = clip(slope / typical * (0.5 * known.residual[0]), 1e50)
        return steep, max(curvature * 0.5 * known.residual[0] * known.residual[0] / typical, 0.0)
    return 0.0, 0.0


def learn_target(known, numbers, y, base, rate):
    """Update the statistics of the targets with a target; the part of an outlier that is too far off does not count."""
    known.lowest[0], known.highest[0] = min(known.lowest[0], y), max(known.highest[0], y)
    residual, widest = known.residual[0], widest_of(numbers)
    near = base + clip(y - base, widest * residual) if residual > 0.0 else y
    known.mean[0] += rate * (near - known.mean[0])
    known.residual[0] = approach(residual, abs(y - base), rate, widest)


def learn_losses(known, numbers, base, mixed, rate):
    """Update the typical losses with the losses of the base and of the mixture; returns the unit of the former."""
    for level in range(2):
        of_level = min(base if level == 0 else mixed, MOST_LOSS)
        typical = approach(known.typical[level], of_level, rate, widest_of(numbers))
        known.typical[level] = typical if typical > LEAST_LOSS else 0.0
    return 8.0 * known.typical[0]


IDENTITY = Link(within, mean_target, residual_of, mean_of, mean_of_candidates, False, in_residuals, 1.0, learn_target)


def writer_of_candidates(link: Link) -> Callable[..., None]:
    """The function in which the corrections predict."""
    within, centre_of, unit_of = link.within, link.centre_of, link.unit_of
    is_steep, constant = link.is_steep, link.constant

    def write_candidates(first, second, known, members, begun, keeps_order, weight, scratch, features, candidates):
        """Write the features (M + 2,), members minus the base, the base minus the mean target, 1; and predictions."""
        base, unit = candidates[0], unit_of(known)
        for i in range(len(members)):
            away = within(known, members[i, 0]) - base if begun and is_awake(members[i]) else 0.0
            features[i] = clip(away / unit, WIDEST) / UNIT if unit > 0.0 else 0.0
        away = base - centre_of(known) if begun else 0.0
        features[len(members)] = clip(away / unit, WIDEST_BASE) / UNIT if unit > 0.0 else 0.0
        features[len(members) + 1] = constant / UNIT
        for i in range(len(features)):
            scratch.ranges[i] = abs(features[i])
        write_first(first, 0, scratch, known.steepest[0], weight)
        write_second(second, 1, scratch, known.steepest[1], weight)
        for c in range(2):
            step = 0.0
            if keeps_order:
                keep_order(scratch.weights[c], len(members))
            for i in range(len(features)):
                step += scratch.weights[c, i] * features[i]
            step = base + unit * clip(step, 1e30)
            candidates[1 + c] = within(known, step)
            scratch.steps[c] = candidates[1 + c] if is_steep else step

    return write_candidates


def writer_of_gradient(link: Link, functions: Functions) -> Callable[..., float]:
    """The function that writes the gradient of a correction."""
    slope, curvature, in_units = functions.slope_of, functions.curvature_of, link.in_units

    def write_gradient(known, c, scratch, features, loss, numbers, y):
        """Write the gradient of correction ``c`` for a target; returns the trace of the second derivative."""
        step = scratch.steps[c]
        steep, bend = in_units(known, slope(loss, numbers, y, step), curvature(loss, numbers, y, step))
        clipped, norm = clip(steep, known.steepest[c]), 0.0
        known.steepest[c] = max(known.steepest[c], abs(steep))
        for i in range(len(features)):
            scratch.gradient[i] = clipped * features[i]
            norm += features[i] * features[i]
        return max(bend, clipped * clipped if bend == 0.0 else 0.0) * norm

    return write_gradient


def writer_of_losses(link: Link, functions: Functions) -> Callable[..., None]:
    """The function that writes the losses of the candidates, the mixture, and the members, NaN of those asleep."""
    value, within = functions.value_of, link.within

    def write_losses(known, members, candidates, mixed, loss, numbers, y, losses):
        for c in range(3):
            losses[c] = value(loss, numbers, y, candidates[c])
        losses[3] = value(loss, numbers, y, mixed)
        for i in range(len(members)):
            is_on = is_awake(members[i])
            losses[4 + i] = value(loss, numbers, y, within(known, members[i, 0])) if is_on else math.nan

    return write_losses


@Loop
def mixing(link: Link, functions: Functions) -> Callable[..., None]:
    """The rule of a link, with all losses as cases."""
    write_gradient, write_losses = writer_of_gradient(link, functions), writer_of_losses(link, functions)
    write_candidates, mean_of = writer_of_candidates(link), link.mean_of
    mixed_of, learn_target = link.mixed_of, link.learn_target

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
            row, weight, begun = members[t], weights[t], base.rounds[0] > BEGUN
            candidates[0] = mean_of(base.means if is_over else base.weights, row, known)
            write_candidates(first, second, known, row, begun, keeps_order, weight, scratch, features, candidates)
            mixed[t, 0] = mixed_of(top.means if is_over else top.weights, candidates)
            if weight > 0.0:
                y, rate = bounded(targets[t]), pace(max((base.rounds[0] + 1.0) / weight, 1.0))
                learn_first(first, scratch, write_gradient(known, 0, scratch, features, loss, numbers, y), weight)
                learn_second(second, scratch, write_gradient(known, 1, scratch, features, loss, numbers, y), weight)
                learn_target(known, numbers, y, candidates[0], rate)
                write_losses(known, row, candidates, mixed[t, 0], loss, numbers, y, losses)
                unit = learn_losses(known, numbers, losses[0], losses[3], rate)
                update_exponential(base, losses[4:], weight / unit if unit > 0.0 else 0.0)
                enter(account, top, losses[:3], losses[3], weight, 8.0 * known.typical[1])

    return mix


def compiled_mixing(link: Link) -> Compiled:
    """The compiled function that mixes and learns rows as :func:`tunefree.mixing.classes.mix` does, for all losses."""
    name = f"mixing.{'numbers' if link is IDENTITY else 'rates'}.mix"
    return mixing.compiled(link, name=name, states=STATES, lengths=LENGTHS)
