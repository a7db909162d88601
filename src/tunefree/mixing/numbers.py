"""The mixture of members that predict numbers, row by row.

Exponential weights have the rate 1 / (8 typical loss), where the typical loss is the running mean of the mixture's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.core.kernels import Kernel
from tunefree.core.numbers import bounded, clip
from tunefree.losses.kinds import Functions
from tunefree.losses.loops import Loop
from tunefree.mixing.bases import (
    Account,
    CandidateWeights,
    Single,
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
    """What is known of the targets so far, and of the losses of the base (0) and of the mixture (1); in place."""

    lowest: Single  # least target
    highest: Single  # greatest target
    mean: Single  # weighted mean of the targets
    residual: Single  # root mean square of the base's residuals
    typical: Annotated[np.ndarray, "float64[2]"]  # mean losses
    steepest: Annotated[np.ndarray, "float64[2]"]  # largest scaled slope of each correction

    @classmethod
    def create(cls) -> Self:
        """Of no target."""
        return cls(np.array([math.inf]), np.array([-math.inf]), np.zeros(1), np.zeros(1), np.zeros(2), np.ones(2))


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


def write_features(members, base, known, begun, features):
    """Write the features (M + 2,): members minus the base, the base minus the mean target, and 1."""
    unit = known.residual[0]
    for i in range(len(members)):
        away = within(known, members[i, 0]) - base if begun and is_awake(members[i]) else 0.0
        features[i] = clip(away / unit, WIDEST) / UNIT if unit > 0.0 else 0.0
    away = base - known.mean[0] if begun else 0.0
    features[len(members)] = clip(away / unit, WIDEST_BASE) / UNIT if unit > 0.0 else 0.0
    features[len(members) + 1] = 1.0 / UNIT


def write_candidates(first, second, known, members, begun, weight, scratch, features, candidates):
    """Write the features, and the predictions of the corrections within the range and wherever they are."""
    write_features(members, candidates[0], known, begun, features)
    for i in range(len(features)):
        scratch.ranges[i] = abs(features[i])
    write_first(first, 0, scratch, known.steepest[0], weight)
    write_second(second, 1, scratch, known.steepest[1], weight)
    for c in range(2):
        step = 0.0
        for i in range(len(features)):
            step += scratch.weights[c, i] * features[i]
        scratch.steps[c] = candidates[0] + known.residual[0] * clip(step, 1e30)
        candidates[1 + c] = within(known, scratch.steps[c])


def write_gradient(known, c, scratch, features):
    """Write the gradient of correction ``c``; returns the trace of the second derivative.

    Predictions are in units of the residual, and losses of twice the typical one. Slopes are clipped at the steepest
    before.
    """
    typical, steep, bend, norm = known.typical[0], 0.0, 0.0, 0.0
    if typical > 0.0:
        steep = clip(scratch.slopes[c] / typical * (0.5 * known.residual[0]), 1e50)
        bend = max(scratch.curvatures[c] * 0.5 * known.residual[0] * known.residual[0] / typical, 0.0)
    clipped = clip(steep, known.steepest[c])
    known.steepest[c] = max(known.steepest[c], abs(steep))
    for i in range(len(features)):
        scratch.gradient[i] = clipped * features[i]
        norm += features[i] * features[i]
    return max(bend, clipped * clipped if bend == 0.0 else 0.0) * norm


def learn_target(known, y, base, pace):
    """Let what is known of the targets follow a target."""
    known.lowest[0], known.highest[0] = min(known.lowest[0], y), max(known.highest[0], y)
    known.mean[0] += pace * (y - known.mean[0])
    square = known.residual[0] * known.residual[0]
    known.residual[0] = math.sqrt(square + pace * ((base - y) * (base - y) - square))


def learn_losses(known, base, mixed, pace):
    """Let the typical losses follow those of the base and of the mixture."""
    for level in range(2):
        of_level = min(base if level == 0 else mixed, MOST_LOSS)
        typical = known.typical[level] + pace * (of_level - known.typical[level])
        known.typical[level] = typical if typical > LEAST_LOSS else 0.0


def write_predictions(known, members, candidates, mixed, predictions):
    """Write the predictions (M + 4,) of members, NaN of those asleep, of the candidates, and of the mixture."""
    n_members = len(members)
    for i in range(n_members):
        predictions[i] = within(known, members[i, 0]) if is_awake(members[i]) else math.nan
    for c in range(3):
        predictions[n_members + c] = candidates[c]
    predictions[n_members + 3] = mixed


def learning_of(functions: Functions) -> Callable[..., None]:
    """What learns a round after its prediction; each function of the loss is called in one place."""
    value, slope, curvature = functions.value_of, functions.slope_of, functions.curvature_of

    def learn(
        base,
        first,
        second,
        top,
        account,
        known,
        scratch,
        candidates,
        losses,
        features,
        loss,
        numbers,
        members,
        y,
        mixed,
        weight,
    ):
        for c in range(2):
            scratch.slopes[c] = slope(loss, numbers, y, scratch.steps[c])
            scratch.curvatures[c] = curvature(loss, numbers, y, scratch.steps[c])
        learn_first(first, scratch, write_gradient(known, 0, scratch, features), weight)
        learn_second(second, scratch, write_gradient(known, 1, scratch, features), weight)
        pace, n_members = min(weight / (base.rounds[0] + 1.0), 1.0), len(members)
        learn_target(known, y, candidates[0], pace)
        write_predictions(known, members, candidates, mixed, losses)
        for i in range(n_members + 4):
            losses[i] = value(loss, numbers, y, losses[i]) if not math.isnan(losses[i]) else math.nan
        of_candidates, of_mixture = losses[n_members : n_members + 3], losses[n_members + 3]
        learn_losses(known, of_candidates[0], of_mixture, pace)
        unit = 8.0 * known.typical[0]
        update_exponential(base, losses[:n_members], weight / unit if unit > 0.0 else 0.0)
        enter(account, top, of_candidates, of_mixture, weight, 8.0 * known.typical[1])

    return learn


@Loop
def mixing(functions: Functions) -> Callable[..., None]:
    """The rule, with all losses as cases."""
    learn = learning_of(functions)

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
        y: Annotated[np.ndarray, "float64[rows]"],
        weight: Annotated[np.ndarray, "float64[rows]"],
        is_over: bool,
        mixed: Annotated[np.ndarray, "float64[rows, 1]"],
    ) -> None:
        used = top.means if is_over else top.weights
        for t in range(len(members)):
            of_row, begun = members[t], base.rounds[0] > BEGUN
            candidates[0] = mean_of(base.means if is_over else base.weights, of_row, known)
            write_candidates(first, second, known, of_row, begun, weight[t], scratch, features, candidates)
            mixed[t, 0] = used[0] * candidates[0] + used[1] * candidates[1] + used[2] * candidates[2]
            if weight[t] > 0.0:
                round_ = loss, numbers, of_row, bounded(y[t]), mixed[t, 0], weight[t]
                learn(base, first, second, top, account, known, scratch, candidates, losses, features, *round_)

    return mix


def kernel_of_numbers() -> Kernel:
    """The kernel of the losses that have a name by now."""
    return mixing.kernel(name="mixing.numbers.mix", states=STATES, lengths=LENGTHS)


def all_kernels() -> list[Kernel]:
    """The kernel of this module."""
    return [kernel_of_numbers()]


def mix(*arguments: Any) -> None:
    """Write the mixed predictions (n, 1) of rows, and learn those of a weight above 0, each after its prediction.

    Arguments are those of the kernel. The members' predictions (n, M, 1) are NaN of a member that sleeps; see
    :func:`tunefree.mixing.classes.mix`.
    """
    kernel_of_numbers()(*arguments)
