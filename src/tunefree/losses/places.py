"""Where the numbers of an objective lie in its array, and what follows from them alone.

Compiled loops take an objective as two plain arrays: ``codes``, whether numbers are predicted and which loss it is, and
``numbers``. First come those listed here, which change in place (but for two that the loss has: its Lipschitz constant,
and whether its link is the logarithm), then the fields of the loss.
"""

from __future__ import annotations

import math

from tunefree.core.running import WIDEST
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
