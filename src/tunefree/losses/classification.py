"""Losses for classes: of one margin, with targets -1 and 1, and the log-loss of the softmax of one margin per class.

The smoothed hinge loss is defined in Orabona 2014, Appendix C. Predictions of the logistic loss are log-odds,
predictions of the exponential loss are half the log-odds. With p = softmax(margins), the gradient of the log-loss is p
- onehot(y), and its second derivative in margin k is p_k (1 - p_k).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import LARGEST_EXPONENT, finite, softplus
from tunefree.losses.contract import loss_class


@loss_class
class Logistic(NamedTuple):
    """ln(1 + exp(-y p)), in nats.

    >>> round(Logistic().value(1.0, 0.0), 6)
    0.693147
    """

    lipschitz: float = 1.0
    smoothness: float = 0.25

    def value(loss, y, prediction):
        return softplus(-y * prediction)

    def slope(loss, y, prediction):
        margin = y * prediction
        if margin > 0:
            odds = math.exp(-margin)
            return -y * odds / (1.0 + odds)
        return -y / (1.0 + math.exp(margin))

    def curvature(loss, y, prediction):
        odds = math.exp(-abs(prediction))
        return odds / ((1.0 + odds) * (1.0 + odds))


@loss_class
class Hinge(NamedTuple):
    """max(0, 1 - y p).

    >>> Hinge().value(1.0, 0.25), Hinge().value(-1.0, 0.25)
    (0.75, 1.25)
    """

    lipschitz: float = 1.0
    smoothness: float = math.inf

    def value(loss, y, prediction):
        return max(0.0, 1.0 - y * prediction)

    def slope(loss, y, prediction):
        return -y if y * prediction <= 1.0 else 0.0

    def curvature(loss, y, prediction):
        return 0.0


@loss_class
class SmoothedHinge(NamedTuple):
    """With the margin m = y p: 0 for m >= 1, (1 - m)^2 for 0 < m < 1, and 1 - 2 m for m <= 0.

    >>> [SmoothedHinge().value(1.0, margin) for margin in (2.0, 0.5, -1.0)]
    [0.0, 0.25, 3.0]
    """

    lipschitz: float = 2.0
    smoothness: float = 2.0

    def value(loss, y, prediction):
        margin = y * prediction
        if margin >= 1.0:
            return 0.0
        return (1.0 - margin) ** 2 if margin > 0.0 else finite(1.0 - 2.0 * margin)

    def slope(loss, y, prediction):
        margin = y * prediction
        if margin >= 1.0:
            return 0.0
        return -2.0 * y * (1.0 - margin) if margin > 0.0 else -2.0 * y

    def curvature(loss, y, prediction):
        return 2.0 if 0.0 < y * prediction < 1.0 else 0.0


@loss_class
class SquaredHinge(NamedTuple):
    """max(0, 1 - y p)^2.

    >>> SquaredHinge().value(1.0, 0.5), SquaredHinge().value(1.0, 2.0)
    (0.25, 0.0)
    """

    lipschitz: float = math.inf
    smoothness: float = 2.0

    def value(loss, y, prediction):
        shortfall = max(0.0, 1.0 - y * prediction)
        return finite(shortfall * shortfall)

    def slope(loss, y, prediction):
        return finite(-2.0 * y * max(0.0, 1.0 - y * prediction))

    def curvature(loss, y, prediction):
        return 2.0 if y * prediction < 1.0 else 0.0


@loss_class
class Exponential(NamedTuple):
    """exp(-y p).

    >>> Exponential().value(1.0, 0.0), Exponential().slope(1.0, 0.0)
    (1.0, -1.0)
    """

    lipschitz: float = math.inf
    smoothness: float = math.inf

    def value(loss, y, prediction):
        return math.exp(min(-y * prediction, LARGEST_EXPONENT))

    def slope(loss, y, prediction):
        return -y * math.exp(min(-y * prediction, LARGEST_EXPONENT))

    def curvature(loss, y, prediction):
        return math.exp(min(-y * prediction, LARGEST_EXPONENT))


def peak_of(margins, n_outputs):
    """The largest margin."""
    peak = margins[0]
    for k in range(1, n_outputs):
        if margins[k] > peak:
            peak = margins[k]
    return peak


def write_exponentials(n_outputs, margins, exponentials):
    """Write exp(margin - the largest one); returns their sum."""
    peak = peak_of(margins, n_outputs)
    total = 0.0
    for k in range(n_outputs):
        exponentials[k] = math.exp(margins[k] - peak)
        total += exponentials[k]
    return total


def differentiate_multinomial(y, weight, n_outputs, margins, gradient, curvatures):
    """Write the gradient and the second derivatives, times the sample weight."""
    total = write_exponentials(n_outputs, margins, gradient)
    for k in range(n_outputs):
        probability = gradient[k] / total
        gradient[k] = weight * (probability - (1.0 if k == y else 0.0))
        curvatures[k] = weight * probability * (1.0 - probability)


def multinomial_loss(y, n_outputs, margins):
    """Minus the log-probability of class y."""
    peak = peak_of(margins, n_outputs)
    total = 0.0
    for k in range(n_outputs):
        total += math.exp(margins[k] - peak)
    return finite(math.log(total) + (peak - margins[int(y)]))


def write_multinomial_slopes(y, n_outputs, margins, slopes):
    """Write the gradient."""
    total = write_exponentials(n_outputs, margins, slopes)
    for k in range(n_outputs):
        slopes[k] = slopes[k] / total - (1.0 if k == y else 0.0)
