"""The state of an objective for compiled loops: two arrays, and how targets change them.

``codes`` are whether numbers are predicted and which loss it is. ``numbers`` begin with those listed here, which change
in place (but for two that the loss has: its Lipschitz constant, and whether its link is the logarithm); then come the
fields of the loss.

A number has one margin. It predicts the target minus its running centre, in units of the first target that is not 0, so
that targets of any scale and offset are learned alike. A unit is a power of two, so dividing by it does not round. The
centre is the mean. A learner's initial wealth follows the mean distance from it, which is 0 at first and may grow with
every target. For losses with a Lipschitz constant both are means of distances that are clipped at WIDEST times the mean
before, as outliers may have any size where the loss does not ask for it.

With a logarithmic link the margin predicts the logarithm of the target's mean minus that of the running mean. As long
as all targets are 0 their mean has no logarithm: rows teach nothing, and rows to come are predicted as in
:func:`tunefree.losses.rates.logarithm_of_few`. Slopes of such a loss grow exponentially. They are taken at the
margin that is the nearest to a learner's within the largest distance of the logarithm of a target from that of the
mean, and one more: beyond it lies no target, so the loss there is less.
"""

from __future__ import annotations

import math

from tunefree.core.numbers import LARGEST_EXPONENT, WIDEST, approach, bounded, clip, finite, power_below, power_of_two
from tunefree.learners.contract import Scale

IS_REGRESSION, LOSS = range(2)  # places in codes
SOFTMAX = -1  # in the place of a loss of single margins: the log-loss of the softmax of all margins
STEEPEST, GRAIN, UNIT, CENTRE, SPREAD, MARGIN, MASS, LIPSCHITZ, IS_LOG, N_NUMBERS = range(10)  # places in numbers
LARGEST_SLOPE = 1e300  # what the slope of a loss times a sample weight may be
LEAST_BOUND = 1e-150  # of a slope that is not 0


def scale_of(numbers, weight):
    """The scale of a round; a bound of its slope is 0 or so large that no feature divided by it overflows."""
    bound = min(slope_bound(numbers) * weight, LARGEST_SLOPE)
    return Scale(max(bound, LEAST_BOUND) if bound > 0.0 else 0.0, numbers[MARGIN], weight)


def slope_bound(numbers):
    """The bound of the next unit slope: 1, or the largest one so far if the loss has no Lipschitz constant."""
    return 1.0 if numbers[LIPSCHITZ] < math.inf else numbers[STEEPEST]


def in_lipschitz_constants(numbers, derivative):
    """A derivative of the loss, divided by the loss's Lipschitz constant where it has one."""
    return derivative / numbers[LIPSCHITZ] if numbers[LIPSCHITZ] < math.inf else derivative


def widest_of(numbers):
    """Times the typical size, as which larger ones count; there is no such bound where outliers decide the loss."""
    return WIDEST if numbers[LIPSCHITZ] < math.inf else math.inf


LEAST_RATIO = 1e-300  # of two means
MARGIN_OF_LOGARITHMS = 0.25  # natural size of what is added to the logarithm of a mean


def first_power(power, number):
    """A power of two that is known, or else the one next below the size of a number that is not 0."""
    if power == 0.0 and number != 0.0:
        return power_below(number)
    return power


def observe(numbers, y, weight):
    """Take a target into the unit, the centre, the spread and the margin.

    The target's distance counts from the centre that includes it: the first target is no surprise.
    """
    if numbers[IS_LOG] > 0.0:
        observe_logarithm(numbers, y, weight)
        return
    unit = first_power(numbers[UNIT], y)
    target = bounded(y / unit) if unit > 0.0 else 0.0
    numbers[MASS] += weight
    rate, widest = weight / numbers[MASS], widest_of(numbers)
    typical, away = numbers[SPREAD], target - numbers[CENTRE]
    centre = numbers[CENTRE] + rate * (clip(away, widest * typical) if typical > 0.0 else away)
    spread = approach(typical, abs(target - centre), rate, widest)
    if spread > 0.0:
        numbers[MARGIN] = max(numbers[MARGIN], power_of_two(math.ceil(math.log2(spread))))
    numbers[UNIT], numbers[CENTRE], numbers[SPREAD] = unit, centre, spread


def observe_logarithm(numbers, y, weight):
    """Take a target into the logarithm of the mean, and its distance from it into the largest one."""
    numbers[MASS] += weight
    pace = weight / numbers[MASS]
    if numbers[UNIT] > 0.0:
        ratio = math.exp(min(-numbers[CENTRE], LARGEST_EXPONENT)) * max(y, 0.0)
        numbers[CENTRE] += math.log(max(1.0 + pace * (finite(ratio) - 1.0), LEAST_RATIO))
    elif y > 0.0:
        numbers[CENTRE] = math.log(y) + math.log(max(pace, LEAST_RATIO))
        numbers[UNIT], numbers[MARGIN] = 1.0, MARGIN_OF_LOGARITHMS
    if y > 0.0:
        numbers[SPREAD] = max(numbers[SPREAD], abs(math.log(y) - numbers[CENTRE]))


def number_in_link(numbers, margin):
    """The number that a margin stands for, where slopes are taken."""
    if numbers[IS_LOG] > 0.0:
        return prediction_of(numbers, clip(margin, numbers[SPREAD] + 1.0))
    return prediction_of(numbers, margin)


def prediction_of(numbers, margin):
    """The number that a margin stands for, in the target's units."""
    return finite((numbers[CENTRE] + margin) * numbers[UNIT])


def in_grains(numbers, steepness, bend):
    """The first two derivatives of a loss in the margin, in units of the first slope if they have no other unit."""
    if numbers[IS_LOG] > 0.0 and numbers[UNIT] == 0.0:
        return 0.0, 0.0
    grain = 1.0 if numbers[LIPSCHITZ] < math.inf else first_power(numbers[GRAIN], steepness)
    numbers[GRAIN] = grain
    if grain > 0.0:
        return bounded(steepness / grain), bounded(bend * numbers[UNIT] / grain)
    return 0.0, 0.0
