"""One margin for each of K classes: minus the log-probability of the class under the softmax of the margins.

With p = softmax(margins), the gradient is p - onehot(y), and the second derivative in margin k is p_k (1 - p_k).
"""

from __future__ import annotations

import math

from tunefree.core.numbers import finite


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
