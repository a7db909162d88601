"""Shares of frozen candidates, learned from the probabilities that they give to later rows.

Orseau, Lattimore, Legg: Soft-Bayes: Prod for mixtures of experts with log-loss (ALT 2017). In round i the shares w of
candidates c, whose probabilities of the class that came are p_c, and whose mixture's is p = sum_c w_c p_c, become

    w_c (1 - eta_i + eta_i p_c / p).

The rate eta_i = 4 / sqrt(20 + i) decreases. So that it may, each round begins with a fixed share: a part
1 - eta_i / eta_(i-1) of everything is dealt out anew by the prior b. A row of weight h counts with the rate
eta_i h / H, where H is the largest weight so far; H enters the fixed share as eta does.

Theorem. The shares' total loss after n rounds exceeds that of candidate c by at most ln(1 / b_c) H sqrt(20 + n) / 4,
whatever the rows (proof in docs/design.md). Bayes' rule is this with rate 1. Its shares decide for one candidate after
a few rows, and these are all of one season.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import largest
from tunefree.losses.aggregation import LEAST, aggregate
from tunefree.losses.linked import linked
from tunefree.losses.objectives import loss_at
from tunefree.model.mixture import TOO_MUCH, copy

FASTEST = 4.0  # the rate is FASTEST / sqrt(SLOW + rounds)
SLOW = 20.0
HASTE = 8.0  # round t counts like t^(HASTE - 1) in the mean of the shares
PRIOR = 0.995  # of the first candidate
TEMPERATURES = (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)  # factors of margins that are tried
RELUCTANCE = 200.0  # loss that a temperature must save to be taken, times the square of its logarithm


class SoftBayes(NamedTuple):
    """Shares of C candidates, and the losses of their mixture at each temperature."""

    prior: np.ndarray  # (C,) sums to 1
    shares: np.ndarray  # (C,) after the last round, in place
    means: np.ndarray  # (C,) means of the shares over the rounds, with round t weighted like t^7, in place
    rounds: np.ndarray  # () i, in place
    heaviest: np.ndarray  # () H, 0 before the first round, in place
    rate: np.ndarray  # () eta_i / H of the last round, 0 before the first, in place
    loss: np.ndarray  # () total loss of the shares, in place
    losses: np.ndarray  # (C,) total loss of each candidate, in place
    at_temperatures: np.ndarray  # (temperatures,) losses of the deployed mixtures at each, in units of H, in place


def create(prior: np.ndarray) -> SoftBayes:
    """Shares as in the prior."""
    rounds, heaviest, rate, loss = np.zeros(()), np.zeros(()), np.zeros(()), np.zeros(())
    losses, at_temperatures = np.zeros(len(prior)), np.zeros(len(TEMPERATURES))
    return SoftBayes(prior, prior.copy(), prior.copy(), rounds, heaviest, rate, loss, losses, at_temperatures)


def prior_of(n_members: int) -> np.ndarray:
    """The prior (1 + 2N,) of the mixture of N members, the members and their averages."""
    return np.concatenate([[PRIOR], np.full(2 * n_members, (1.0 - PRIOR) / (2 * n_members))])


def excess(rule: SoftBayes, prior: float) -> float:
    """By how much the total loss of the shares exceeds that of a candidate, at most.

    Parameters
    ----------
    rule : SoftBayes
    prior : float
        The candidate's share at the start.

    Examples
    --------
    >>> rule = create(prior_of(5))
    >>> rule.rounds[()], rule.heaviest[()] = 80.0, 1.0
    >>> round(excess(rule, 0.01), 2)
    11.51
    """
    return float(rule.heaviest[()] * math.log(1.0 / prior) * math.sqrt(SLOW + rule.rounds[()]) / FASTEST)


def without(rule: SoftBayes, stays: np.ndarray) -> SoftBayes:
    """The shares of the candidates that stay; none of these decreases, so the bound still holds for them."""
    kept = {name: getattr(rule, name)[stays] for name in ("prior", "shares", "means")}
    return rule._replace(losses=rule.losses[stays], **{name: part / part.sum() for name, part in kept.items()})


def temperature(rule: SoftBayes) -> float:
    """The factor of margins that has the least loss so far, where it saves enough."""
    return TEMPERATURES[int(np.argmin(rule.at_temperatures + RELUCTANCE * np.log(TEMPERATURES) ** 2))]


def halve_losses(rule: SoftBayes) -> None:
    """Let the losses of temperatures so far count half: rows to come are fewer, and stand for more."""
    rule.at_temperatures[:] *= 0.5


class Deployed(NamedTuple):
    """How S frozen copies of a model would predict."""

    mixtures: np.ndarray  # (S, N) shares of the members in the model's own mixture
    shares: np.ndarray  # (S, 2N) shares of the members and their averages in predictions
    temperatures: np.ndarray  # (S,)
    tests_temperatures: np.ndarray  # (S,) 1 for copies whose losses tell which temperature to take, else 0
    lowest: np.ndarray  # (S,) least target that each had learned, where targets are numbers
    highest: np.ndarray  # (S,) greatest one


@compiled.inline
def begin_round(rule, weight):
    """Decrease the rate and deal a fixed share out anew by the prior; returns the rate of a row of this weight."""
    rule.rounds[()] += 1.0
    if weight > rule.heaviest[()]:
        for g in range(len(rule.at_temperatures)):
            rule.at_temperatures[g] *= rule.heaviest[()] / weight
        rule.heaviest[()] = weight
    rate = FASTEST / math.sqrt(SLOW + rule.rounds[()])
    of_weight = rate / rule.heaviest[()]
    kept = min(of_weight / rule.rate[()], 1.0) if rule.rate[()] > 0.0 else 0.0
    rule.rate[()] = of_weight
    for c in range(len(rule.shares)):
        rule.shares[c] = kept * rule.shares[c] + (1.0 - kept) * rule.prior[c]
    return rate * (weight / rule.heaviest[()])


@compiled.inline
def end_round(rule, rate, weight, least, likelihoods):
    """Update the shares by the candidates' probabilities (C,), over exp(-least)."""
    mixed, total = 0.0, 0.0
    for c in range(len(rule.shares)):
        mixed += rule.shares[c] * likelihoods[c]
        of_candidate = least - math.log(likelihoods[c]) if likelihoods[c] > 0.0 else TOO_MUCH
        rule.losses[c] = min(rule.losses[c] + weight * of_candidate, TOO_MUCH)
    rule.loss[()] = min(rule.loss[()] + weight * (least - math.log(mixed)), TOO_MUCH)
    for c in range(len(rule.shares)):
        rule.shares[c] *= 1.0 - rate + rate * (likelihoods[c] / mixed)
        total += rule.shares[c]
    step = HASTE / (rule.rounds[()] + HASTE - 1.0)
    for c in range(len(rule.shares)):
        rule.shares[c] /= total
        rule.means[c] += step * (rule.shares[c] - rule.means[c])


@compiled.inline
def write_probabilities(margins, probabilities):
    """Write the probabilities (2N, classes) that margins (2N, K) stand for."""
    for c in range(len(margins)):
        if margins.shape[1] == 1:
            odds = math.exp(-abs(margins[c, 0]))
            likely = 1 if margins[c, 0] > 0.0 else 0
            probabilities[c, likely], probabilities[c, 1 - likely] = 1.0 / (1.0 + odds), odds / (1.0 + odds)
            continue
        peak, total = largest(margins[c]), 0.0
        for k in range(margins.shape[1]):
            probabilities[c, k] = math.exp(margins[c, k] - peak)
            total += probabilities[c, k]
        for k in range(margins.shape[1]):
            probabilities[c, k] /= total


@compiled.inline
def likelihoods_of(objective, y, mixture, margins, of_class, likelihoods):
    """Write the probabilities (1 + 2N,) of the class that came, of which those of members and averages are known as
    ``of_class`` (2N,). If all would underflow, they are divided by exp(-least) with the least loss, which is returned.
    """
    least, greatest = 0.0, 0.0
    for c in range(len(of_class)):
        greatest = max(greatest, of_class[c])
        likelihoods[1 + c] = of_class[c]
    if greatest <= LEAST:
        least = math.inf
        for c in range(len(of_class)):
            likelihoods[1 + c] = min(loss_at(objective, y, margins[c]), TOO_MUCH)
            least = min(least, likelihoods[1 + c])
        for c in range(len(of_class)):
            likelihoods[1 + c] = math.exp(least - likelihoods[1 + c])
    likelihoods[0] = 0.0
    for c in range(len(mixture)):
        likelihoods[0] += mixture[c] * likelihoods[1 + c]
    return least


@compiled.inline
def write_logarithms(objective, shares, margins, probabilities, aggregated, logarithms):
    """Write the logarithms (classes,) of what is proportional to the mean probabilities."""
    smallest = math.inf
    for k in range(len(logarithms)):
        logarithms[k] = 0.0
        for c in range(len(shares)):
            logarithms[k] += shares[c] * probabilities[c, k]
        smallest = min(smallest, logarithms[k])
    if smallest > LEAST:
        for k in range(len(logarithms)):
            logarithms[k] = math.log(logarithms[k])
        return
    aggregate(objective, shares, margins, aggregated)
    first = len(logarithms) - len(aggregated)  # the first of two classes has no margin
    logarithms[0] = 0.0
    for k in range(len(aggregated)):
        logarithms[first + k] = aggregated[k]


@compiled.inline
def loss_of(logarithms, came, temperature):
    """The log-loss where margins are multiplied by a temperature."""
    peak, total = temperature * largest(logarithms), 0.0
    for k in range(len(logarithms)):
        total += math.exp(temperature * logarithms[k] - peak)
    return min(math.log(total) + (peak - temperature * logarithms[came]), TOO_MUCH)


@compiled.entry
def _judge(rule, objective, y, weight, deployed, predictions, losses):
    n_outputs = predictions.shape[3]
    own, aggregated = np.empty((predictions.shape[1], n_outputs)), np.empty(n_outputs)
    probabilities = np.empty((predictions.shape[1], max(n_outputs, 2)))
    logarithms, of_class = np.empty(max(n_outputs, 2)), np.empty(predictions.shape[1])
    likelihoods = np.empty(len(rule.shares))
    for i in range(len(y)):
        came = int(y[i]) if n_outputs > 1 else (1 if y[i] > 0.0 else 0)
        for s in range(len(predictions)):
            copy(predictions[s], i, own)
            write_probabilities(own, probabilities)
            for c in range(len(own)):
                of_class[c] = probabilities[c, came]
            rate = begin_round(rule, weight[i])
            least = likelihoods_of(objective, y[i], deployed.mixtures[s], own, of_class, likelihoods)
            end_round(rule, rate, weight[i], least, likelihoods)
            write_logarithms(objective, deployed.shares[s], own, probabilities, aggregated, logarithms)
            if deployed.tests_temperatures[s] > 0.0:
                for g in range(len(TEMPERATURES)):
                    loss = loss_of(logarithms, came, TEMPERATURES[g])
                    rule.at_temperatures[g] += loss * (weight[i] / rule.heaviest[()])
            losses[s, i] = loss_of(logarithms, came, deployed.temperatures[s])


def judge(
    rule: SoftBayes,
    objective: Any,
    y: np.ndarray,
    weight: np.ndarray,
    deployed: Deployed,
    predictions: np.ndarray,
    losses: np.ndarray,
) -> None:
    """Learn shares and temperature from copies' predictions (S, 2N, n, K) of rows; writes the losses (S, n) that the
    copies would have had."""
    _judge(rule, linked(objective), y, weight, deployed, predictions, losses)
