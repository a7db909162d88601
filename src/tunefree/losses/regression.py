"""One margin for a number: the loss of the prediction that the margin stands for.

The margin predicts the target minus its running centre, in units of the first target that is not 0, so that targets
of any scale and offset are learned alike. A unit is a power of two, so dividing by it does not round. The centre is the
mean. A learner's initial wealth follows the mean distance from it, which is 0 at first and may grow with every target.
For losses with a Lipschitz constant both are means of distances that are clipped at WIDEST times the mean before, as
outliers may have any size where the loss does not ask for it (:mod:`tunefree.core.running`).

With a logarithmic link the margin predicts the logarithm of the target's mean minus that of the running mean. As long
as all targets are 0 their mean has no logarithm: rows teach nothing, and rows to come are predicted as in
:func:`tunefree.losses.rates.logarithm_of_few`. Slopes of such a loss grow exponentially. They are taken at the
margin that is the nearest to a learner's within the largest distance of the logarithm of a target from that of the
mean, and one more: beyond it lies no target, so the loss there is less.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import LARGEST, LARGEST_EXPONENT, bounded, clip, finite, power_below, power_of_two
from tunefree.core.running import approach
from tunefree.losses.contract import has_log_link
from tunefree.losses.places import CENTRE, GRAIN, IS_LOG, LIPSCHITZ, MARGIN, MASS, SPREAD, UNIT, widest_of
from tunefree.losses.rates import logarithm_of_few

LEAST_RATIO = 1e-300  # of two means
MARGIN_OF_LOGARITHMS = 0.25  # natural size of what is added to the logarithm of a mean


class Regression(NamedTuple):
    """One margin, real targets; the margin predicts the target minus its running centre, in units of the first one."""

    loss: Any  # loss of the prediction, in the target's units
    steepest: float  # largest absolute slope so far, over the loss's Lipschitz constant or else in grains, returned
    grain: float  # power of two next below the first slope that is not 0, in size; 0 before it, returned
    unit: float  # power of two next below the first target that is not 0, in size; 0 before it, returned
    centre: float  # running mean of the targets, in units, returned; an outlier counts as a near one
    spread: float  # running mean of |target - centre|, in units, returned; with a logarithmic link the largest one
    margin: float  # power of two that no spread so far has exceeded, returned
    mass: float  # sum of the sample weights, returned

    @property
    def task(self) -> str:
        """Numbers are learned."""
        return "regression"

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of the slope."""
        return float(self.loss.smoothness)

    def predictions_of(self, margins: np.ndarray) -> np.ndarray:
        """The predictions (n, K) that margins (n, K) stand for.

        Examples
        --------
        >>> objective = Regression(None, 0.0, 1.0, unit=2.0, centre=1.5, spread=0.0, margin=0.0, mass=1.0)
        >>> objective.predictions_of(np.array([[0.0], [1.0]]))
        array([[3.],
               [5.]])
        """
        if self.unit == 0.0 and has_log_link(self.loss):
            return np.full(margins.shape, logarithm_of_few(0.0, self.mass))
        with np.errstate(over="ignore"):
            return np.clip((self.centre + margins) * self.unit, -LARGEST, LARGEST)

    def labels_of(self, targets: np.ndarray) -> np.ndarray:
        """Numbers as two labels: up to their median and above.

        Examples
        --------
        >>> regression(None).labels_of(np.array([3.0, 1.0, 2.0]))
        array([ True, False, False])
        """
        if not len(targets):
            return targets
        halves = np.sort(targets)[[(len(targets) - 1) // 2, len(targets) // 2]] / 2.0
        return targets > halves.sum()  # the median; a sum of the two halves cannot overflow


def regression(loss: Any) -> Regression:
    """An objective that has seen no target yet."""
    return Regression(loss, steepest=0.0, grain=0.0, unit=0.0, centre=0.0, spread=0.0, margin=0.0, mass=0.0)


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
