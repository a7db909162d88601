"""Base mixtures: averages of members' predictions, with weights that follow their losses.

Classes: Soft-Bayes (Orseau, Lattimore, Legg: Soft-Bayes: Prod for mixtures of experts with log-loss, ALT 2017) at the
rate eta_t = min(4 / sqrt(20 + t), .9). Numbers, and mixtures of few members: exponential weights (Vovk: Aggregating
strategies, COLT 1990) with fixed share (Herbster, Warmuth: Tracking the best expert, 1998).

A member may sleep in a round (its prediction is NaN). The members awake are averaged. Their total weight stays the same
in the round, so a sleeping member neither gains nor loses weight (Freund, Schapire, Singer, Warmuth: Using and
combining predictors that specialize, 1997).

Rows after the last learned row are predicted with the means of the weights over the rounds, where round t has a weight
proportional to t^2.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, Self

import numpy as np

from tunefree.core.schema import FROM_ZERO, INFINITE

FASTEST, SLOW, MOST_RATE = 4.0, 20.0, 0.9  # eta_t = min(FASTEST / sqrt(SLOW + t), MOST_RATE)
HASTE = 3.0  # round t has a weight proportional to t^(HASTE - 1) in means
STEEPEST = 50.0  # largest change of the logarithm of an exponential weight in a round, relative to the best member
LEAST = 1e-300  # lower bound of a probability before its logarithm is taken
N_CANDIDATES = 3  # the base, and two corrections

Sum = Annotated[np.ndarray, "float64[1]", INFINITE]
Rounds = Annotated[np.ndarray, "float64[1]", FROM_ZERO]


class Weights(NamedTuple):
    """Weights of M members, updated in place."""

    weights: Annotated[np.ndarray, "float64[members]", FROM_ZERO]  # for the next round, with sum 1
    means: Annotated[np.ndarray, "float64[members]", FROM_ZERO]  # of the weights over the rounds so far
    rounds: Rounds  # number of learned rounds

    @classmethod
    def create(cls, n_members: int) -> Self:
        """Equal weights.

        >>> Weights.create(4).weights
        array([0.25, 0.25, 0.25, 0.25])
        """
        equal = np.full(n_members, 1.0 / n_members)
        return cls(equal, equal.copy(), np.zeros(1))


class CandidateWeights(NamedTuple):
    """Weights of the candidates, updated in place."""

    weights: Annotated[np.ndarray, "float64[3]", FROM_ZERO]
    means: Annotated[np.ndarray, "float64[3]", FROM_ZERO]
    rounds: Rounds

    @classmethod
    def create(cls) -> Self:
        """Equal weights."""
        return cls(*Weights.create(N_CANDIDATES))


def is_awake(prediction):
    """Whether a member predicts in this round."""
    return not math.isnan(prediction[0])


def total_awake(weights, members):
    """The weight of those members that are awake, by their predictions (members, K)."""
    total = 0.0
    for i in range(len(members)):
        if is_awake(members[i]):
            total += weights[i]
    return total


def write_mean(weights, members, mixed):
    """Write the logarithms (K,) of the mean of the probabilities of those awake; even ones where all sleep."""
    total = total_awake(weights, members)
    for k in range(len(mixed)):
        mixed[k] = 0.0
    for i in range(len(members)):
        if is_awake(members[i]) and weights[i] > 0.0:
            for k in range(len(mixed)):
                mixed[k] += weights[i] * math.exp(members[i, k])
    for k in range(len(mixed)):
        mixed[k] = math.log(max(mixed[k] / total, LEAST)) if total > 0.0 else -math.log(len(mixed))


def multiply(state, factors, kept):
    """Multiply members' weights by factors (members,), NaN for members asleep; the others keep their total weight.

    Then a part 1 - kept of all weights is dealt out evenly. Returns the mean factor.
    """
    before, after = 0.0, 0.0
    for i in range(len(factors)):
        if not math.isnan(factors[i]):
            before += state.weights[i]
            state.weights[i] *= factors[i]
            after += state.weights[i]
    state.rounds[0] += 1.0
    pace = HASTE / (state.rounds[0] + HASTE - 1.0)
    for i in range(len(factors)):
        if not math.isnan(factors[i]) and after > 0.0:
            state.weights[i] *= before / after
        state.weights[i] = kept * state.weights[i] + (1.0 - kept) / len(factors)
        state.means[i] += pace * (state.weights[i] - state.means[i])
    return after / before if after > 0.0 else 1.0


def rate_of(rounds):
    """eta_t."""
    return min(FASTEST / math.sqrt(SLOW + rounds), MOST_RATE)


def update_soft(state, members, mixed, y, weight, factors):
    """w_i <- w_i (1 - eta + eta p_i / p), and eta_{t+1} / eta_t of all is kept; a row counts as its relative weight.

    ``factors`` (members,) are written.
    """
    rate, following = rate_of(state.rounds[0] + 1.0), rate_of(state.rounds[0] + 2.0)
    row_rate = min(rate * weight, MOST_RATE)
    for i in range(len(members)):
        ratio = math.exp(members[i, y] - mixed[y]) if is_awake(members[i]) else math.nan
        factors[i] = 1.0 - row_rate + row_rate * ratio
    multiply(state, factors, following / rate)


def update_exponential(state, losses, rate):
    """w_i <- w_i exp(-rate loss_i) for losses (members,), NaN of those asleep; then a fixed share 1 / (t + 2).

    Factors are written in place of the losses. Returns -ln sum w_i exp(-rate loss_i), the mix loss, with w of those
    awake in sum 1.
    """
    least = math.inf
    for i in range(len(losses)):
        least = losses[i] if losses[i] < least else least
    for i in range(len(losses)):
        asleep = math.isnan(losses[i])
        losses[i] = math.nan if asleep else math.exp(-min(rate * (losses[i] - least), STEEPEST))
    mean_factor = multiply(state, losses, 1.0 - 1.0 / (state.rounds[0] + 2.0))
    return rate * least - math.log(mean_factor) if least < math.inf else 0.0


class Account(NamedTuple):
    """Sums over the learned rounds, from which :mod:`tunefree.theory.mixing` bounds losses; updated in place."""

    weight: Sum  # sum of the weights of the rounds
    losses: Annotated[np.ndarray, "float64[2]", INFINITE]  # of the base and of the mixture
    start: Sum  # number of the first round of the interval on which the theorem is used
    skipped: Sum  # loss of the mixture before this interval
    units: Annotated[np.ndarray, "float64[3]", INFINITE]  # of losses in its first round, sum of later increases, latest
    gap: Sum  # excess of the losses of the mixture over the mix losses in the interval


def enter(account, top, losses, loss, weight, unit):
    """Let the weights of the candidates learn their losses (3,) at the rate weight / unit, and enter the round.

    The interval starts anew where the bound that it gives is then less. Losses are overwritten.
    """
    base_loss = losses[0]
    mix_loss = unit * update_exponential(top, losses, weight / unit if unit > 0.0 else 0.0)
    gap, log_rounds = max(weight * loss - mix_loss, 0.0), math.log(len(losses) * top.rounds[0])
    account.gap[0] += gap
    account.units[1] += max(unit - account.units[2], 0.0)
    excess = account.skipped[0] + account.gap[0] + (account.units[0] + account.units[1]) * log_rounds
    if account.start[0] == 0.0 or account.losses[1] + gap + unit * log_rounds < excess:
        account.start[0], account.skipped[0], account.gap[0] = top.rounds[0], account.losses[1], gap
        account.units[0], account.units[1] = unit, 0.0
    account.units[2] = unit
    account.weight[0] += weight
    account.losses[0] += weight * base_loss
    account.losses[1] += weight * loss
