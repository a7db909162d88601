"""Base mixtures: averages of members' predictions, with weights that follow their losses.

Classes: Soft-Bayes (Orseau, Lattimore, Legg: Soft-Bayes: Prod for mixtures of experts with log-loss, ALT 2017) at the
rate eta_t = min(4 / sqrt(20 + t), .9). Numbers, and mixtures of few members: exponential weights (Vovk: Aggregating
strategies, COLT 1990) with fixed share (Herbster, Warmuth: Tracking the best expert, 1998).

A member may sleep in a round (its prediction is NaN). Those awake are averaged, and share what they had before the
round, so who sleeps neither gains nor loses (Freund, Schapire, Singer, Warmuth: Using and combining predictors that
specialize, 1997).

Rows after the last one that is learned are predicted with the means of the weights over the rounds, where round t
counts like t^2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled

FASTEST, SLOW, MOST_RATE = 4.0, 20.0, 0.9  # eta_t = min(FASTEST / sqrt(SLOW + t), MOST_RATE)
HASTE = 3.0  # round t counts like t^(HASTE - 1) in means
STEEPEST = 50.0  # most by which the logarithm of an exponential weight changes in a round, relative to the best
LEAST = 1e-300  # of a probability, where its logarithm is taken


class Weights(NamedTuple):
    """Weights of M members."""

    weights: np.ndarray  # (members,) before the next round, sum 1, in place
    means: np.ndarray  # (members,) means over the rounds so far, in place
    rounds: np.ndarray  # () rounds learned, in place

    @classmethod
    def create(cls, n_members: int) -> Weights:
        """Equal weights.

        Examples
        --------
        >>> Weights.create(4).weights
        array([0.25, 0.25, 0.25, 0.25])
        """
        equal = np.full(n_members, 1.0 / n_members)
        return cls(equal, equal.copy(), np.zeros(()))


@compiled.inline
def is_awake(prediction):
    """Whether a member predicts in this round."""
    return not math.isnan(prediction[0])


@compiled.inline
def total_awake(weights, members):
    """The weight of those members that are awake, by their predictions (members, K)."""
    total = 0.0
    for i in range(len(members)):
        if is_awake(members[i]):
            total += weights[i]
    return total


@compiled.inline
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


@compiled.inline
def share(state, kept):
    """Deal a part 1 - kept of the weights out evenly, and take the means on."""
    state.rounds[()] += 1.0
    pace = HASTE / (state.rounds[()] + HASTE - 1.0)
    for i in range(len(state.weights)):
        state.weights[i] = kept * state.weights[i] + (1.0 - kept) / len(state.weights)
        state.means[i] += pace * (state.weights[i] - state.means[i])


@compiled.inline
def rate_of(rounds):
    """eta_t."""
    return min(FASTEST / math.sqrt(SLOW + rounds), MOST_RATE)


@compiled.inline
def update_soft(state, members, mixed, y, weight):
    """w_i <- w_i (1 - eta + eta p_i / p), and eta_{t+1} / eta_t of all is kept; a row counts as its relative weight."""
    rate, following = rate_of(state.rounds[()] + 1.0), rate_of(state.rounds[()] + 2.0)
    of_row = min(rate * weight, MOST_RATE)
    total, after = total_awake(state.weights, members), 0.0
    for i in range(len(members)):
        if is_awake(members[i]):
            state.weights[i] *= 1.0 - of_row + of_row * math.exp(members[i, y] - mixed[y])
            after += state.weights[i]
    for i in range(len(members)):
        if is_awake(members[i]) and after > 0.0:
            state.weights[i] *= total / after
    share(state, following / rate)


@compiled.inline
def update_exponential(state, losses, rate):
    """w_i <- w_i exp(-rate loss_i) for those awake, whose loss (members,) is no NaN; then a fixed share 1 / (t + 2)."""
    least, before, after = math.inf, 0.0, 0.0
    for i in range(len(losses)):
        if not math.isnan(losses[i]):
            least, before = min(least, losses[i]), before + state.weights[i]
    for i in range(len(losses)):
        if not math.isnan(losses[i]):
            state.weights[i] *= math.exp(-min(rate * (losses[i] - least), STEEPEST))
            after += state.weights[i]
    for i in range(len(losses)):
        if not math.isnan(losses[i]) and after > 0.0:
            state.weights[i] *= before / after
    share(state, 1.0 - 1.0 / (state.rounds[()] + 2.0))


def arrays_of(state: Any, prefix: str) -> dict[str, np.ndarray]:
    """The arrays of a state by dotted name, to be saved."""
    return {f"{prefix}.{name}": array for name, array in state._asdict().items()}


def restore_into(state: Any, prefix: str, arrays: dict[str, np.ndarray]) -> None:
    """Take over arrays that :func:`arrays_of` gave."""
    for name, array in state._asdict().items():
        array[...] = arrays[f"{prefix}.{name}"]
