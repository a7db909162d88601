"""The mixture: how the predictions of a pool's members are aggregated, and how its shares follow their losses.

Vovk: Aggregating strategies (COLT 1990): predictions are averaged with shares proportional to exp(-rate * total loss).
At rate 1 and log-loss this is Bayes' rule, and the mixture's total loss exceeds that of the best of N members by at
most ln N. For other losses the rate decreases as in de Rooij, van Erven, Grünwald, Koolen: Follow the leader if you
can, hedge if you must (JMLR 2014). The mixability gap here is that of the averaged prediction itself. It is smaller
than that of a member drawn at random, and vanishes once the rate is below the loss's own.
Herbster, Warmuth: Tracking the best expert (1998): after round t a share 1 / (t + 1) of everything is dealt out anew
(fixed share), so that a member that becomes the best soon has a large share. The total cost is at most :func:`excess`.

Whatever depends on how shares are kept is in this file; elsewhere shares are read by :func:`predictive_shares`,
:func:`shares_by_member`, :func:`leader` and :func:`weighted_sum`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.losses.aggregation import aggregate
from tunefree.losses.linked import linked
from tunefree.losses.objectives import loss_at
from tunefree.model.views import pace

ROUNDING = 1e-12  # of a loss: smaller differences tell nobody apart, and set no rate
TOO_MUCH = 1e300  # losses beyond are all the same


class Mixture(NamedTuple):
    """Shares of N members, and what mixing has cost so far."""

    shares: np.ndarray  # (N,) of each member in the prediction of the next row of the stream, in place
    means: np.ndarray  # (N,) of each member in predictions of new rows: means over the stream, see views.pace, in place
    rounds: np.ndarray  # () t, in place
    rate: np.ndarray  # () of the exponential weights; infinite until members differ, in place
    mixability_gap: np.ndarray  # () sum of the losses of mixtures minus their mix losses, where positive, in place
    fixed_share_cost: np.ndarray  # () cost of dealing shares out anew, in place
    lowest: np.ndarray  # () least target so far (regression), in place
    highest: np.ndarray  # () greatest target so far (regression), in place
    clipping_cost: np.ndarray  # () cost of clipping to a range that the next target was beyond (regression), in place
    losses: np.ndarray  # (N,) total loss of each member; infinite once it has failed, in place
    follows: float  # 1 if the member with the least total loss, the leader, has all of the share; else 0

    @classmethod
    def for_task(cls, task: str, n_members: int, follows: bool = False) -> Mixture:
        """Equal shares; log-loss is mixable at rate 1, and of other losses no good rate is known at first."""
        return cls.create(n_members, 1.0 if task == "classification" else math.inf, follows)

    @classmethod
    def create(cls, n_members: int, mixable: float, follows: bool = False) -> Mixture:
        """Equal shares; ``mixable`` is the rate to begin with, infinite where no good one is known."""
        losses, follows_leader = np.zeros(n_members), float(follows)
        equal = np.full(n_members, 1.0 / n_members)
        rounds, mixability_gap, fixed_share_cost, clipping_cost, rate = (
            *(np.zeros(()) for _ in range(4)),
            np.array(mixable),
        )
        lowest, highest = np.array(math.inf), np.array(-math.inf)
        return cls(
            equal,
            equal.copy(),
            rounds,
            rate,
            mixability_gap,
            fixed_share_cost,
            lowest,
            highest,
            clipping_cost,
            losses,
            follows_leader,
        )


def excess(mixture: Mixture, members: int) -> float:
    """By how much the total loss of the mixture exceeds that of its best member, at most.

    For log-loss with sample weights up to 1 it is ln N + ln (T + 1), T the rounds: the cost of not knowing the best
    member, and that of fixed share. Otherwise it is known only after the pass. It then is the sum of the mixability
    gaps, of both costs over the rate that was reached, and of the cost of targets beyond the range of earlier ones.
    Following the leader has no such bound.

    Parameters
    ----------
    mixture : Mixture
    members : int
        How many there were at the start.
    """
    if mixture.follows > 0.0:
        return math.inf
    if mixture.rate[()] == math.inf:
        return float(mixture.clipping_cost[()])
    return float(
        mixture.clipping_cost[()]
        + mixture.mixability_gap[()]
        + math.log(members) / mixture.rate[()]
        + mixture.fixed_share_cost[()]
    )


def without(mixture: Mixture, stays: np.ndarray) -> Mixture:
    """The mixture of the members that stay; the others sleep from here on.

    The bound of :func:`excess` still holds relative to the members that stay, since their shares only increase.
    Relative to a member that was dropped it holds for the rounds before.
    """
    shares, means = mixture.shares[stays], mixture.means[stays]
    return mixture._replace(shares=shares / shares.sum(), means=means / means.sum(), losses=mixture.losses[stays])


def joined(mixture: Mixture, is_new: np.ndarray) -> Mixture:
    """The mixture of its members and of others, which slept so far and together get half of all.

    Parameters
    ----------
    mixture : Mixture
    is_new : (N,) array of bool
        Which of the members from now on are the others.
    """
    n_new = int(np.count_nonzero(is_new))
    shares, means, losses = (np.zeros(len(is_new)) for _ in range(3))
    for placed, own in ((shares, mixture.shares), (means, mixture.means)):
        placed[~is_new], placed[is_new] = own * (0.5 if n_new else 1.0), 0.5 / max(n_new, 1)
    losses[~is_new], losses[is_new] = mixture.losses, mixture.losses.min()
    made = deepcopy(mixture)
    return made._replace(shares=shares, means=means, losses=losses)


def with_means_since(mixture: Mixture, before: Mixture) -> Mixture:
    """The mixture with means of the shares over the rounds since it was ``before`` only.

    Examples
    --------
    >>> before = Mixture.for_task("classification", 2)
    >>> before.rounds[()] = 1.0
    >>> after = joined(before, np.zeros(2, bool))
    >>> after.rounds[()], after.means[:] = 2.0, 0.25 * before.means + 0.75 * np.array([0.9, 0.1])
    >>> with_means_since(after, before).means.round(3)
    array([0.9, 0.1])
    """
    rounds = np.arange(n_rounds(before) + 1, n_rounds(mixture) + 1)
    kept = float(np.prod(1.0 - pace(rounds)))
    means = np.maximum(mixture.means - kept * before.means, 0.0)
    return mixture._replace(means=means / means.sum()) if means.sum() > 0.0 else mixture


def predictive_shares(mixture: Mixture) -> np.ndarray:
    """The share (N,) of each member in predictions of new rows."""
    return mixture.means


def shares_by_member(mixture: Mixture, members: Iterable[Any]) -> dict[str, float]:
    """The shares in predictions of new rows by the members' names."""
    return {member.name: share for member, share in zip(members, predictive_shares(mixture).tolist(), strict=True)}


def losses_by_member(mixture: Mixture, members: Iterable[Any]) -> dict[str, float]:
    """The members' mean losses a row by their names, without those that failed; weights of rows count."""
    means = (mixture.losses / max(mixture.rounds[()], 1.0)).tolist()
    return {member.name: mean for member, mean in zip(members, means, strict=True) if mean < math.inf}


def summary(mixture: Mixture, members: Iterable[Any]) -> dict[str, Any]:
    """The ``rows`` on which members were evaluated, and each member's ``shares`` and mean ``losses`` after them."""
    of_members = {"shares": shares_by_member(mixture, members), "losses": losses_by_member(mixture, members)}
    return {"rows": n_rounds(mixture), **of_members}


def has_failed(mixture: Mixture) -> np.ndarray:
    """Which members (N,) once predicted what is no finite number, and sleep since."""
    return np.isinf(mixture.losses)


def leader(mixture: Mixture) -> int:
    """The member with the largest share in predictions of new rows, the first of several."""
    return int(predictive_shares(mixture).argmax())


def weighted_sum(shares: np.ndarray, of_members: list[np.ndarray]) -> np.ndarray:
    """The sum of arrays, one of each member, each times the member's share."""
    return np.tensordot(shares, np.array(of_members), axes=1)


def n_rounds(mixture: Mixture) -> int:
    """Rows on which the members were evaluated."""
    return int(mixture.rounds[()])


@compiled.inline
def clip_to_range(mixture, predictions):
    """Clip predictions (N, K) to the range of the targets so far; where targets are classes there is none."""
    if mixture.lowest[()] <= mixture.highest[()]:
        for m in range(len(predictions)):
            predictions[m, 0] = min(max(predictions[m, 0], mixture.lowest[()]), mixture.highest[()])


@compiled.inline
def extend_range(mixture, objective, y, weight, end):
    """Extend the range of the targets by one more; ``end`` (1,) is written to."""
    if mixture.lowest[()] <= mixture.highest[()]:  # a prediction was moved away from the target to this end at most
        end[0] = min(max(y, mixture.lowest[()]), mixture.highest[()])
        if end[0] != y:
            mixture.clipping_cost[()] += min(weight * loss_at(objective, y, end), TOO_MUCH)
    mixture.lowest[()] = min(mixture.lowest[()], y)
    mixture.highest[()] = max(mixture.highest[()], y)


@compiled.inline
def update_shares(mixture, losses, loss):
    """Update the shares by the members' losses (N,) in a round; ``loss`` is that of the mixture."""
    mixture.rounds[()] += 1.0
    best, worst = math.inf, 0.0
    for m in range(len(losses)):
        losses[m] = min(losses[m], TOO_MUCH)
        best, worst = min(best, losses[m]), max(worst, losses[m])
        if mixture.losses[m] < math.inf:
            mixture.losses[m] = min(mixture.losses[m] + losses[m], TOO_MUCH)
    if mixture.follows > 0.0:
        follow_the_leader(mixture)
        return
    if mixture.rate[()] == math.inf and worst - best > ROUNDING * worst:
        mixture.rate[()] = min(math.log(len(losses)) / (worst - best), TOO_MUCH)
    if mixture.rate[()] < math.inf:
        exponential_update(mixture, losses, loss, best)
        fixed_share(mixture)
        decrease_rate(mixture)
    weight = pace(mixture.rounds[()])
    for m in range(len(losses)):
        mixture.means[m] += weight * (mixture.shares[m] - mixture.means[m])


@compiled.inline
def follow_the_leader(mixture):
    """Give the member with the least total loss, the first of several, all of the share."""
    leader = np.argmin(mixture.losses)
    for m in range(len(mixture.shares)):
        mixture.shares[m] = mixture.means[m] = 1.0 if m == leader else 0.0


@compiled.inline
def exponential_update(mixture, losses, loss, best):
    """Multiply shares by exp(-rate * loss) and add the gap between the mixture's loss and the mix loss."""
    rate, total = mixture.rate[()], 0.0
    for m in range(len(losses)):
        mixture.shares[m] *= math.exp(-rate * (losses[m] - best))
        total += mixture.shares[m]
    for m in range(len(losses)):
        mixture.shares[m] /= total
    mix_loss = best - math.log(total) / rate
    mixture.mixability_gap[()] += max(min(loss, TOO_MUCH) - mix_loss, 0.0)


@compiled.inline
def fixed_share(mixture):
    """Deal a share 1 / (t + 1) of everything out anew, in equal parts."""
    share = 1.0 / (mixture.rounds[()] + 1.0)
    for m in range(len(mixture.shares)):
        mixture.shares[m] = (1.0 - share) * mixture.shares[m] + share / len(mixture.shares)
    mixture.fixed_share_cost[()] -= math.log1p(-share) / mixture.rate[()]


@compiled.inline
def decrease_rate(mixture):
    """Decrease the rate as the mixability gap increases, and temper the shares to the new rate."""
    if mixture.mixability_gap[()] > 0.0:
        rate = min(mixture.rate[()], max(math.log(len(mixture.shares)) / mixture.mixability_gap[()], 1e-300))
        power, total = rate / mixture.rate[()], 0.0
        if power < 1.0:
            for m in range(len(mixture.shares)):
                mixture.shares[m] **= power
                total += mixture.shares[m]
            for m in range(len(mixture.shares)):
                mixture.shares[m] /= total
            mixture.rate[()] = rate


@compiled.inline
def asleep(mixture, predictions):
    """How many members sleep: their predictions are NaN.

    A member of which a prediction was not finite sleeps for ever, since nobody knows what else it will say.
    """
    count = 0
    for m in range(len(predictions)):
        failed = mixture.losses[m] == math.inf
        for k in range(predictions.shape[1]):
            failed |= not math.isfinite(predictions[m, k])
        if failed:
            predictions[m, 0] = math.nan
        count += 1 if failed else 0
    return count


@compiled.inline
def note_failures(mixture, predictions):
    """Give members with infinite predictions an infinite loss; those that only sleep predict NaN."""
    for m in range(len(predictions)):
        for k in range(predictions.shape[1]):
            if math.isinf(predictions[m, k]):
                mixture.losses[m] = math.inf


@compiled.inline
def predict_awake(objective, mixture, shares, predictions, aggregated):
    """Write the prediction of the mixture; returns how many members sleep.

    A sleeping member is assigned the awake members' mixture, so its share does not change (sleeping experts: Freund,
    Schapire, Singer, Warmuth: Using and combining predictors that specialize, STOC 1997).
    """
    sleeping = asleep(mixture, predictions)
    if sleeping == 0:
        clip_to_range(mixture, predictions)
        aggregate(objective, shares, predictions, aggregated)
        return sleeping
    awake, total = np.zeros(len(shares)), 0.0
    for m in range(len(shares)):
        if math.isnan(predictions[m, 0]):
            for k in range(len(aggregated)):
                predictions[m, k] = 0.0
        else:
            awake[m] = shares[m]
            total += shares[m]
    clip_to_range(mixture, predictions)
    for m in range(len(shares)):
        awake[m] = awake[m] / total if total > 0.0 else 1.0 / len(shares)
    aggregate(objective, awake, predictions, aggregated)
    for m in range(len(shares)):
        if awake[m] == 0.0:
            for k in range(len(aggregated)):
                predictions[m, k] = aggregated[k]
    clip_to_range(mixture, predictions)  # a mean of equal ends may round beyond them
    return sleeping


@compiled.inline
def copy(predictions, i, now):
    """The predictions (N, K) of one row; loops compile in a fraction of the time of slices."""
    for m in range(len(now)):
        for k in range(now.shape[1]):
            now[m, k] = predictions[m, i, k]


def failures(predictions: np.ndarray) -> None:
    """Tell failures from sleep in the predictions of members that are awake: NaN becomes infinite, in place."""
    predictions[np.isnan(predictions)] = math.inf


@compiled.entry
def _mix(mixture, objective, has_range, y, weight, predictions, aggregated):
    losses, end = np.empty(len(predictions)), np.empty(1)
    now = np.empty((len(predictions), aggregated.shape[1]))  # the round's predictions (N, K)
    for i in range(len(y)):
        copy(predictions, i, now)
        note_failures(mixture, now)
        sleeping = predict_awake(objective, mixture, mixture.shares, now, aggregated[i])
        if weight[i] > 0.0 and sleeping < len(now):
            if has_range:
                extend_range(mixture, objective, y[i], weight[i], end)
            for m in range(len(losses)):
                losses[m] = weight[i] * loss_at(objective, y[i], now[m])
            update_shares(mixture, losses, weight[i] * loss_at(objective, y[i], aggregated[i]))


def mix(
    mixture: Mixture, objective: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray, aggregated: np.ndarray
) -> None:
    """Predict rows from the members' predictions (N, n, K), and after each update their shares by its target.

    Predictions of members that sleep are NaN. A row of which all members sleep tells nothing of them. If they learn it
    later, it is evaluated then.
    """
    _mix(mixture, linked(objective), objective.task == "regression", y, weight, predictions, aggregated)


@compiled.entry
def _combine(mixture, objective, predictions, aggregated):
    now = np.empty((len(predictions), aggregated.shape[1]))
    for i in range(len(aggregated)):
        copy(predictions, i, now)
        predict_awake(objective, mixture, mixture.means, now, aggregated[i])


def combine(mixture: Mixture, objective: Any, predictions: np.ndarray, aggregated: np.ndarray) -> None:
    """Predict new rows from the members' predictions (N, n, K)."""
    _combine(mixture, linked(objective), predictions, aggregated)
