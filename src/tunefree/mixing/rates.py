"""The mixture of members that predict logarithms of means, of counts, amounts and rates.

It is that of :mod:`tunefree.mixing.numbers` with another link. The base is the logarithm of the mean of the means that
members predict, so it predicts as much in total as they do. Corrections are added to the logarithm, and have no
constant; differences of logarithms need no unit. Losses are in units of the dispersion phi, in which half a deviance is
a log-likelihood: with a slope s and an expected curvature f the mean of s^2 / f is phi (Wedderburn: Quasi-likelihood
functions, Biometrika 1974). Slopes grow exponentially, and are taken where a prediction ends up within the range of the
targets.
"""

from __future__ import annotations

import math

from tunefree.core.numbers import clip
from tunefree.losses.deviances import power_of_e, times_power_of_e
from tunefree.losses.numbers import N_NUMBERS
from tunefree.mixing.bases import is_awake, total_awake
from tunefree.mixing.numbers import Link

BEYOND = 1.0  # by which logarithms may lie beyond those of the targets
LOWEST = 15.0  # likewise beneath that of their mean, where some are 0


def centre_of(known):
    """The logarithm of the mean target; 0 as long as all are 0."""
    return math.log(known.mean[0]) if known.mean[0] > 0.0 else 0.0


def within(known, number):
    """A prediction within the range of the targets so far, and a little beyond it."""
    if known.highest[0] <= 0.0:
        return 0.0
    high = math.log(known.highest[0]) + BEYOND
    low = math.log(known.lowest[0]) - BEYOND if known.lowest[0] > 0.0 else min(centre_of(known), high) - LOWEST
    return min(max(number, low), high)


def unit_of(known):
    """1; 0 as long as the dispersion is not known."""
    return 1.0 if known.residual[0] > 0.0 and known.highest[0] > 0.0 else 0.0


def mean_of(weights, members, known):
    """The logarithm of the mean of the means that members awake predict; of the mean target if all sleep."""
    total, peak, mean = total_awake(weights, members), -math.inf, 0.0
    if total <= 0.0:
        return within(known, centre_of(known))
    for i in range(len(members)):
        if is_awake(members[i]):
            peak = max(peak, within(known, members[i, 0]))
    for i in range(len(members)):
        if is_awake(members[i]):
            mean += weights[i] / total * math.exp(within(known, members[i, 0]) - peak)
    return peak + math.log(mean)


def mixed_of(weights, candidates):
    """The logarithm of the mean of the candidates' means."""
    peak, mean = max(candidates[0], candidates[1], candidates[2]), 0.0
    for c in range(3):
        mean += weights[c] * math.exp(candidates[c] - peak)
    return peak + math.log(mean)


def in_dispersions(known, slope, curvature):
    """Derivatives of the loss in units of the dispersion."""
    dispersion = known.residual[0] * known.residual[0]
    if dispersion > 0.0 and known.highest[0] > 0.0:
        return clip(slope / dispersion, 1e50), min(curvature / dispersion, 1e50)
    return 0.0, 0.0


def learn_target(known, numbers, y, base, rate):
    """Update the statistics of the targets with a target; the residual is the root of the dispersion."""
    q, r = numbers[N_NUMBERS] - 1.0, 2.0 - numbers[N_NUMBERS]
    known.lowest[0], known.highest[0] = min(known.lowest[0], y), max(known.highest[0], y)
    known.mean[0] += rate * (y - known.mean[0])
    expected = power_of_e(r * base)
    slope = clip(expected - times_power_of_e(y, -q * base), 1e150)
    square = known.residual[0] * known.residual[0]
    known.residual[0] = math.sqrt(square + rate * (min(slope / expected * slope, 1e300) - square))


LOGARITHM = Link(within, centre_of, unit_of, mean_of, mixed_of, True, in_dispersions, 0.0, learn_target)
