"""The state of an objective for compiled loops: two arrays, and how targets change them.

``codes`` are a flag for regression and the number of the loss. ``numbers`` start with the elements below, which change
in place (except two constants of the loss: its Lipschitz constant, and a flag for a logarithmic link). The fields of
the loss follow.

In regression the margin predicts the target minus its running centre, in units of the first nonzero target, so that
learning does not depend on the scale and offset of the targets. A unit is a power of two, so dividing by it is exact.
The centre is the mean. A learner's initial wealth follows the mean distance from the centre, which is 0 at first and
may grow with every target. For losses with a Lipschitz constant, which are robust to outliers, both are means of
distances clipped at WIDEST times the previous mean distance.

With a logarithmic link the margin predicts the logarithm of the target's mean minus the logarithm of the running mean.
While all targets are 0, the mean has no logarithm: rows are not learned, and predictions come from
:func:`tunefree.losses.rates.logarithm_of_few`. Slopes of such a loss grow exponentially. So they are taken at the
margin clipped to the largest distance so far of the logarithm of a target from the logarithm of the mean, plus 1. No
target is beyond this distance, so clipping reduces the loss.
"""

from __future__ import annotations

import math

from tunefree.core.numbers import LARGEST_EXPONENT, WIDEST, approach, bounded, clip, finite, power_below, power_of_two
from tunefree.learners.contract import Scale

IS_REGRESSION, LOSS = range(2)  # indices into codes
SOFTMAX = -1  # number of the log-loss of the softmax of all margins
STEEPEST, GRAIN, UNIT, CENTRE, SPREAD, MARGIN, MASS, LIPSCHITZ, IS_LOG, N_NUMBERS = range(10)  # indices into numbers
LARGEST_SLOPE = 1e300  # bound of a slope times a sample weight
LEAST_BOUND = 1e-150  # of the bound of a nonzero slope


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


LEAST_RATIO = 1e-300  # of two successive means
MARGIN_OF_LOGARITHMS = 0.25  # initial scale of margins with a logarithmic link


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
