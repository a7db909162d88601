"""Objectives: what is minimised over K margins of a row, for one target.

An objective is a NamedTuple. It knows what the target is (a label, a class, a number), and holds what it has to know of
the targets so far. Learners receive slopes divided by the loss's Lipschitz constant. Where there is none, slopes are
clipped at the largest absolute one of earlier rounds, which adds to the regret at most the largest slope times the
range of the margins, once (Cutkosky 2019, Artificial constraints and hints). In regression the running mean and mean
absolute deviation of the targets are kept, so that targets of any scale and offset are learned alike.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.generic import generic
from tunefree.core.numbers import CEILING, LARGEST, bounded, clip, finite, largest, power_below
from tunefree.learners.contract import Scale
from tunefree.losses.contract import curvature as second_derivative
from tunefree.losses.contract import slope, value

STEEPEST = 1e300  # what the slope of a loss times a sample weight may be


class Binary(NamedTuple):
    """One margin, targets -1 and +1."""

    loss: Any  # loss of the margin
    steepest: float  # largest absolute slope so far, returned

    @property
    def task(self) -> str:
        """Classes are learned."""
        return "classification"


class OneAgainstAll(NamedTuple):
    """K margins, targets 0 .. K - 1; the sum of the binary losses of each class against the others."""

    loss: Any  # loss of each margin
    steepest: float  # largest absolute slope so far, returned

    @property
    def task(self) -> str:
        """Classes are learned."""
        return "classification"


class Multinomial(NamedTuple):
    """K margins, targets 0 .. K - 1; minus the log-probability of the class under the softmax of the margins."""

    steepest: float  # 1, which no slope exceeds

    @property
    def task(self) -> str:
        """Classes are learned."""
        return "classification"


class Regression(NamedTuple):
    """One margin, real targets; the margin predicts the target minus its running mean, in units of the first target.

    The unit is a power of two, so dividing by it does not round. A learner's initial wealth follows the mean absolute
    deviation, which is 0 at first and may grow with every target.
    """

    loss: Any  # loss of the prediction, in the target's own units
    steepest: float  # largest absolute slope so far, over the loss's Lipschitz constant or else in grains, returned
    grain: float  # power of two next below the first slope that is not 0, in size; 0 before it, returned
    unit: float  # power of two next below the first target that is not 0, in size; 0 before it, returned
    centre: float  # running mean of the targets, in units, returned
    spread: float  # running mean of |target - centre|, in units, returned
    margin: float  # power of two that no spread so far has exceeded, returned
    mass: float  # sum of the sample weights, returned

    @property
    def task(self) -> str:
        """Numbers are learned."""
        return "regression"


def regression(loss: Any) -> Regression:
    """An objective that has seen no target yet."""
    return Regression(loss, steepest=0.0, grain=0.0, unit=0.0, centre=0.0, spread=0.0, margin=0.0, mass=0.0)


def with_slopes_as_they_come(objective: Any) -> Any:
    """The objective for a learner that wants slopes of classes as they come, not clipped at the steepest so far.

    ``scale(objective, weight).slope`` is then the ceiling times the weight where the loss has no Lipschitz constant.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> scale(with_slopes_as_they_come(Binary(Square(), 0.0)), 2.0).slope
    2e+150
    """
    if objective.task == "regression":
        return objective
    return objective._replace(steepest=CEILING)


@generic
def scale(objective: Any, weight: float) -> Scale:
    """What is known of a round of this sample weight before its target."""
    raise TypeError(f"{type(objective).__name__} is not an objective")


@generic
def differentiate(
    objective: Any, y: float, weight: float, margins: np.ndarray, gradient: np.ndarray, curvature: np.ndarray
) -> Any:
    """Write the gradient (K,) in the margins and the second derivative (K,) in each; returns the new objective.

    Both are multiplied by the sample weight and divided by the loss's Lipschitz constant, if it has one. No part of the
    gradient is larger than ``scale(objective, weight).slope``.
    """
    raise TypeError(f"{type(objective).__name__} is not an objective")


@generic
def respond(objective: Any, margins: np.ndarray) -> None:
    """Turn a learner's margins (K,) into predictions, of which the loss is a function, in place."""
    raise TypeError(f"{type(objective).__name__} is not an objective")


@singledispatch
def predictions_of(objective: Any, margins: np.ndarray) -> np.ndarray:
    """The predictions (n, K) that margins (n, K) stand for: :func:`respond` for many rows.

    Examples
    --------
    >>> objective = Regression(None, 0.0, 1.0, unit=2.0, centre=1.5, spread=0.0, margin=0.0, mass=1.0)
    >>> predictions_of(objective, np.array([[0.0], [1.0]]))
    array([[3.],
           [5.]])
    """
    return margins


@singledispatch
def labels_of(objective: Any, targets: np.ndarray) -> np.ndarray:
    """Targets as labels: classes as they are, numbers as two labels, up to their median and above.

    Examples
    --------
    >>> labels_of(regression(None), np.array([3.0, 1.0, 2.0]))
    array([ True, False, False])
    """
    return targets


@generic
def true_slope(objective: Any, y: float, predictions: np.ndarray, slopes: np.ndarray) -> None:
    """Write a subgradient (K,) of :func:`loss_at` in the predictions.

    It is neither divided by the Lipschitz constant nor clipped nor multiplied by the sample weight.
    """
    raise TypeError(f"{type(objective).__name__} is not an objective")


@generic
def loss_at(objective: Any, y: float, predictions: np.ndarray) -> float:
    """The loss of predictions (K,)."""
    raise TypeError(f"{type(objective).__name__} is not an objective")


@generic
def smoothness(objective: Any) -> float:
    """The Lipschitz constant, in the Euclidean norm, of the gradient of :func:`loss_at`; infinite if it jumps."""
    raise TypeError(f"{type(objective).__name__} is not an objective")


@compiled.inline
def unit_slope(loss, y, prediction):
    """The slope of a loss, divided by its Lipschitz constant where it has one."""
    steep = slope(loss, y, prediction)
    return steep / loss.lipschitz if loss.lipschitz < math.inf else steep


@compiled.inline
def unit_curvature(loss, y, prediction):
    """The second derivative of a loss, divided by its Lipschitz constant where it has one."""
    bend = second_derivative(loss, y, prediction)
    return bend / loss.lipschitz if loss.lipschitz < math.inf else bend


@compiled.inline
def slope_bound(objective):
    """The bound of the next unit slope: 1, or the largest one so far if the loss has no Lipschitz constant."""
    return 1.0 if objective.loss.lipschitz < math.inf else objective.steepest


@compiled.inline
def first_power(power, number):
    """The power of two already found, or else the one next below the size of a number that is not 0."""
    if power == 0.0 and number != 0.0:
        return power_below(number)
    return power


@compiled.inline
def known(bound, weight, margin):
    """The scale of a round; a bound of its slope is 0 or so large that no feature divided by it overflows."""
    steepest = min(bound * weight, STEEPEST)
    return Scale(max(steepest, 1e-150) if steepest > 0.0 else 0.0, margin, weight)


@scale.register(Binary)
def scale_binary(objective, weight):
    return known(slope_bound(objective), weight, 1.0)


@differentiate.register(Binary)
def differentiate_binary(objective, y, weight, margins, gradient, curvature):
    steep = unit_slope(objective.loss, y, margins[0])
    gradient[0] = clip(weight * clip(steep, slope_bound(objective)), STEEPEST)
    curvature[0] = weight * unit_curvature(objective.loss, y, margins[0])
    return Binary(objective.loss, max(objective.steepest, abs(steep)))


@loss_at.register(Binary)
def loss_at_binary(objective, y, predictions):
    return value(objective.loss, y, predictions[0])


@true_slope.register(Binary)
def true_slope_binary(objective, y, predictions, slopes):
    slopes[0] = slope(objective.loss, y, predictions[0])


@scale.register(OneAgainstAll)
def scale_one_against_all(objective, weight):
    return known(slope_bound(objective), weight, 1.0)


@differentiate.register(OneAgainstAll)
def differentiate_one_against_all(objective, y, weight, margins, gradient, curvature):
    steepest = objective.steepest
    for k in range(len(margins)):
        label = 1.0 if k == y else -1.0
        steep = unit_slope(objective.loss, label, margins[k])
        gradient[k] = clip(weight * clip(steep, slope_bound(objective)), STEEPEST)
        curvature[k] = clip(weight * unit_curvature(objective.loss, label, margins[k]), STEEPEST)
        steepest = max(steepest, abs(steep))
    return OneAgainstAll(objective.loss, steepest)


@loss_at.register(OneAgainstAll)
def loss_at_one_against_all(objective, y, predictions):
    total = 0.0
    for k in range(len(predictions)):
        total += value(objective.loss, 1.0 if k == y else -1.0, predictions[k])
    return finite(total)


@true_slope.register(OneAgainstAll)
def true_slope_one_against_all(objective, y, predictions, slopes):
    for k in range(len(predictions)):
        slopes[k] = slope(objective.loss, 1.0 if k == y else -1.0, predictions[k])


@scale.register(Multinomial)
def scale_multinomial(objective, weight):
    return known(1.0, weight, 1.0)


@differentiate.register(Multinomial)
def differentiate_multinomial(objective, y, weight, margins, gradient, curvature):
    peak = largest(margins)
    total = 0.0
    for k in range(len(margins)):
        gradient[k] = math.exp(margins[k] - peak)
        total += gradient[k]
    for k in range(len(margins)):
        share = gradient[k] / total
        gradient[k] = weight * (share - (1.0 if k == y else 0.0))
        curvature[k] = weight * share * (1.0 - share)
    return objective


@loss_at.register(Multinomial)
def loss_at_multinomial(objective, y, predictions):
    peak = largest(predictions)
    total = 0.0
    for k in range(len(predictions)):
        total += math.exp(predictions[k] - peak)
    return finite(math.log(total) + (peak - predictions[int(y)]))


@true_slope.register(Multinomial)
def true_slope_multinomial(objective, y, predictions, slopes):
    peak = largest(predictions)
    total = 0.0
    for k in range(len(predictions)):
        slopes[k] = math.exp(predictions[k] - peak)
        total += slopes[k]
    for k in range(len(predictions)):
        slopes[k] = slopes[k] / total - (1.0 if k == y else 0.0)


@scale.register(Regression)
def scale_regression(objective, weight):
    return known(slope_bound(objective), weight, objective.margin)


@differentiate.register(Regression)
def differentiate_regression(objective, y, weight, margins, gradient, curvature):
    unit = first_power(objective.unit, y)
    target = bounded(y / unit) if unit > 0.0 else 0.0
    mass = objective.mass + weight
    centre = objective.centre + (target - objective.centre) * (weight / mass)
    spread = objective.spread + (abs(target - centre) - objective.spread) * (weight / mass)
    margin = max(objective.margin, 2.0 ** math.ceil(math.log2(spread))) if spread > 0.0 else objective.margin
    # The target's own deviation counts with the mean that includes it: the first target is no surprise.
    steep = unit_slope(objective.loss, y, finite((centre + margins[0]) * unit))
    grain = 1.0 if objective.loss.lipschitz < math.inf else first_power(objective.grain, steep)
    steep = bounded(steep / grain) if grain > 0.0 else 0.0
    gradient[0] = clip(weight * clip(steep, slope_bound(objective)), STEEPEST)
    bend = unit_curvature(objective.loss, y, finite((centre + margins[0]) * unit))
    curvature[0] = clip(weight * bounded(bend * unit / grain), STEEPEST) if grain > 0.0 else 0.0
    return Regression(objective.loss, max(objective.steepest, abs(steep)), grain, unit, centre, spread, margin, mass)


@loss_at.register(Regression)
def loss_at_regression(objective, y, predictions):
    return value(objective.loss, y, predictions[0])


@true_slope.register(Regression)
def true_slope_regression(objective, y, predictions, slopes):
    slopes[0] = slope(objective.loss, y, predictions[0])


for kind in (Binary, OneAgainstAll, Multinomial):

    @respond.register(kind)
    def respond_with_margins(objective, margins):
        pass


@respond.register(Regression)
def respond_regression(objective, margins):
    margins[0] = finite((objective.centre + margins[0]) * objective.unit)


@predictions_of.register(Regression)
def predictions_of_regression(objective, margins):
    with np.errstate(over="ignore"):
        return np.clip((objective.centre + margins) * objective.unit, -LARGEST, LARGEST)


@labels_of.register(Regression)
def labels_of_numbers(objective, targets):
    if not len(targets):
        return targets
    middle = np.sort(targets)[[(len(targets) - 1) // 2, len(targets) // 2]] / 2.0
    return targets > middle.sum()  # the median; a sum of the two halves cannot overflow


for kind_of_one_loss in (Binary, OneAgainstAll, Regression):

    @smoothness.register(kind_of_one_loss)
    def smoothness_of_loss(objective):
        return objective.loss.smoothness


@smoothness.register(Multinomial)
def smoothness_multinomial(objective):
    return 0.5


def chosen(margins: np.ndarray) -> np.ndarray:
    """The class with the largest margin; with one margin, class 1 where it is positive.

    Examples
    --------
    >>> chosen(np.array([[0.0], [0.5]])), chosen(np.array([[1.0, 3.0, 2.0]]))
    (array([0, 1]), array([1]))
    """
    return (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)


@compiled.entry
def measure(objective, y, predictions, losses):
    """Write the loss (n,) of each prediction (n, K)."""
    for i in range(len(y)):
        losses[i] = loss_at(objective, y[i], predictions[i])


def measured(objective: Any, y: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """The loss (n,) of each prediction (n, K).

    Examples
    --------
    >>> from tunefree.losses import Hinge
    >>> measured(Binary(Hinge(), 0.0), np.array([1.0, -1.0]), np.array([[0.5], [0.5]]))
    array([0.5, 1.5])
    """
    row_losses = np.empty(len(predictions))
    measure(objective, y, np.ascontiguousarray(predictions), row_losses)
    return row_losses
