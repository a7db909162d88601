"""The kernel perceptron: a step only after a mistake.

Orabona 2014 (see :mod:`.pistol`), Algorithm 2: on a mistake, f_{t+1} = f_t + y_t k(x_t, .). As for the
linear learner (:mod:`..learners.perceptron`), the label is the sign of minus the slope, and a margin of 0 is a
mistake.
"""

from __future__ import annotations

import math

from tunefree.core.fields import single
from tunefree.core.numbers import bounded
from tunefree.learners.contract import Traits
from tunefree.papers.kernel.contract import KernelLearner


class KernelPerceptron(KernelLearner):
    """The perceptron, for classification only; it has no settings."""

    weight = single("of the latest row")
    traits = Traits(classifies_only=True)

    def begin_round(state, squared_norm, scale):
        state.weight[0] = scale.weight

    def coefficient(state, k, gradient, value, squared_norm):
        label = -math.copysign(1.0, gradient)
        return bounded(label * state.weight[0]) if gradient != 0.0 and label * value <= 0.0 else 0.0
