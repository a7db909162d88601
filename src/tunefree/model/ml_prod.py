"""Shares of frozen candidates, learned from the numbers that they predict for later rows.

Gaillard, Stoltz, van Erven: A second-order bound with excess losses (COLT 2014): Prod with a rate for each candidate.
In round t the candidates c predict p_tc, and the mixture their mean p_t with shares proportional to eta_tc w_tc. With
the slope g_t of the loss at p_t and a sample weight h_t, candidate c would have gained r_tc = h_t g_t (p_t - p_tc), to
first order. A loss that is convex exceeds the candidate's by r_tc at most. Weights become

    v_tc = w_tc (1 + eta_tc r_tc),  eta_tc = 2 / sqrt(16 S_(t-1)^2 + V_(t-1)c),

with S the largest |r| so far, and V_c the sum of the squares of r_c. A round in which S grows counts with the factor
S_(t-1) / S_t. So that rates may decrease, a part 1 - eta_(t+1)c / eta_tc of each weight is replaced by that part of the
prior b_c, where the paper takes a power.

Theorem. After n rounds the mixture's total loss exceeds that of candidate c by at most

    S_n + ln(W_n / b_c) / eta_(n+1)c + sum_t eta_tc r_tc^2,

W_n the sum of the weights, whatever the rows (proof in docs/design.md). The last term is at most 4 sqrt(V_nc).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.losses.linked import linked
from tunefree.losses.objectives import loss_at, true_slope
from tunefree.model.mixture import TOO_MUCH
from tunefree.model.soft_bayes import HASTE, Deployed

FASTEST = 2.0  # the rate is FASTEST / sqrt(SLOW S^2 + V)
SLOW = 16.0
MOST = 1e140  # gains beyond are all the same, so that squares are finite


class MLProd(NamedTuple):
    """Weights of C candidates, the first of which is the model's own mixture."""

    prior: np.ndarray  # (C,) sums to 1 before candidates are dropped
    weights: np.ndarray  # (C,) w_c, in place
    rates: np.ndarray  # (C,) eta_c of the next round in units of 1 / S, in place
    squares: np.ndarray  # (C,) V_c in units of S^2, in place
    costs: np.ndarray  # (C,) sum of eta_c r_c^2 in units of S, in place
    means: np.ndarray  # (C,) means of the shares over the rounds, with round t weighted like t^7, in place
    rounds: np.ndarray  # () t, in place
    largest: np.ndarray  # () S, 0 before candidates first differ, in place
    loss: np.ndarray  # () total loss of the mixture, in place
    losses: np.ndarray  # (C,) total loss of each candidate, in place


def create(prior: np.ndarray) -> MLProd:
    """Weights as in the prior."""
    n = len(prior)
    rates, squares, costs = np.full(n, FASTEST / math.sqrt(SLOW)), np.zeros(n), np.zeros(n)
    rounds, largest, loss = np.zeros(()), np.zeros(()), np.zeros(())
    return MLProd(prior, prior.copy(), rates, squares, costs, prior.copy(), rounds, largest, loss, np.zeros(n))


def excess(rule: MLProd, c: int, prior: float) -> float:
    """By how much the total loss of the mixture exceeds that of a candidate, at most.

    Parameters
    ----------
    rule : MLProd
    c : int
        The candidate.
    prior : float
        Its share at the start.

    Examples
    --------
    >>> rule = create(np.array([0.5, 0.5]))
    >>> rule.largest[()] = 3.0
    >>> round(excess(rule, 0, 0.5), 2)
    7.16
    """
    of_weights = math.log(rule.weights.sum() / prior) / rule.rates[c]
    return float(rule.largest[()] * (1.0 + of_weights + rule.costs[c]))


def without(rule: MLProd, stays: np.ndarray) -> MLProd:
    """The weights of the candidates that stay; the bound still holds for them."""
    parts = {name: getattr(rule, name)[stays] for name in ("prior", "weights", "rates", "squares", "costs", "losses")}
    means = rule.means[stays]
    return rule._replace(means=means / means.sum(), **parts)


def temperature(rule: MLProd) -> float:
    """Predictions are numbers, and taken as they are."""
    return 1.0


def halve_losses(rule: MLProd) -> None:
    """Nothing is kept of temperatures."""


@compiled.inline
def shares_of(rule, shares):
    """Write the candidates' shares (C,) in the next prediction."""
    total = 0.0
    for c in range(len(shares)):
        shares[c] = rule.rates[c] * rule.weights[c]
        total += shares[c]
    for c in range(len(shares)):
        shares[c] /= total


@compiled.inline
def update_weights(rule, gains):
    """Update weights and rates by what each candidate would have gained (C,)."""
    largest = rule.largest[()]
    for c in range(len(gains)):
        largest = max(largest, abs(gains[c]))
    if largest == 0.0:
        return
    shrunk = rule.largest[()] / largest  # everything so far, in units of the new S; and so the gains of this round
    rule.largest[()] = largest
    for c in range(len(gains)):
        gain = gains[c] / largest * shrunk
        change = rule.rates[c] * (gains[c] / largest) if shrunk > 0.0 else 0.0  # eta r
        rule.weights[c] *= 1.0 + change
        rule.costs[c] = rule.costs[c] * shrunk + change * gain
        rule.squares[c] = rule.squares[c] * shrunk * shrunk + gain * gain
        after = FASTEST / math.sqrt(SLOW + rule.squares[c])
        kept = min(after * shrunk / rule.rates[c], 1.0) if shrunk > 0.0 else 1.0
        rule.rates[c] = after
        rule.weights[c] = kept * rule.weights[c] + (1.0 - kept) * rule.prior[c]


@compiled.entry
def _judge(rule, objective, y, weight, deployed, predictions, losses):
    n_candidates = len(rule.weights)
    own, shares, gains = np.empty(n_candidates), np.empty(n_candidates), np.empty(n_candidates)
    mixed, slope, alone = np.empty(1), np.empty(1), np.empty(1)
    for i in range(len(y)):
        for s in range(len(predictions)):
            write_candidates(deployed, predictions, s, i, own)
            shares_of(rule, shares)
            mixed[0], rule.rounds[()] = 0.0, rule.rounds[()] + 1.0
            for c in range(n_candidates):
                mixed[0] += shares[c] * own[c]
            rule.loss[()] = min(rule.loss[()] + weight[i] * loss_at(objective, y[i], mixed), TOO_MUCH)
            true_slope(objective, y[i], mixed, slope)
            for c in range(n_candidates):
                gain = weight[i] * slope[0] * (mixed[0] - own[c])
                gains[c] = min(max(gain, -MOST), MOST)
                alone[0] = own[c]
                rule.losses[c] = min(rule.losses[c] + weight[i] * loss_at(objective, y[i], alone), TOO_MUCH)
            update_weights(rule, gains)
            step = HASTE / (rule.rounds[()] + HASTE - 1.0)
            shares_of(rule, shares)
            for c in range(n_candidates):
                rule.means[c] += step * (shares[c] - rule.means[c])
            mixed[0] = 0.0
            for c in range(1, n_candidates):
                mixed[0] += deployed.shares[s, c - 1] * own[c]
            losses[s, i] = loss_at(objective, y[i], mixed)


@compiled.inline
def write_candidates(deployed, predictions, s, i, own):
    """Write what the mixture, members and averages (1 + 2N,) of a copy predict, within the range that it knew."""
    own[0] = 0.0
    for c in range(predictions.shape[1]):
        number = min(max(predictions[s, c, i, 0], deployed.lowest[s]), deployed.highest[s])
        own[1 + c] = number
        if c < deployed.mixtures.shape[1]:
            own[0] += deployed.mixtures[s, c] * number


def judge(
    rule: MLProd,
    objective: Any,
    y: np.ndarray,
    weight: np.ndarray,
    deployed: Deployed,
    predictions: np.ndarray,
    losses: np.ndarray,
) -> None:
    """Learn shares from copies' predictions (S, 2N, n, 1) of rows; writes the losses (S, n) that the copies would have
    had."""
    _judge(rule, linked(objective), y, weight, deployed, predictions, losses)
