"""The kernel perceptron: a step only after a mistake.

Orabona 2014 (see :mod:`tunefree.kernel.pistol`), Algorithm 2: on a mistake, f_{t+1} = f_t + y_t k(x_t, .). As for the
linear learner (:mod:`tunefree.learners.perceptron`), the label is the sign of minus the slope, and a margin of 0 is a
mistake.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import bounded
from tunefree.kernel.contract import PerOutput, Single, begin_round, coefficient, factor
from tunefree.learners.contract import Traits


class KernelPerceptron(NamedTuple):
    """The perceptron, for classification only; it has no settings."""

    outputs: PerOutput  # zeros: how many outputs there are
    weight: Single  # of the latest row, in place

    @classmethod
    def create(cls, n_outputs: int = 1) -> KernelPerceptron:
        """A learner that has seen nothing."""
        return cls(np.zeros(n_outputs), np.zeros(()))


KernelPerceptron.traits = Traits(classifies_only=True)  # type: ignore[attr-defined]


@begin_round.register(KernelPerceptron)
def begin_round_perceptron(state, squared_norm, scale):
    state.weight[()] = scale.weight


@factor.register(KernelPerceptron)
def factor_perceptron(state, k):
    return 1.0


@coefficient.register(KernelPerceptron)
def coefficient_perceptron(state, k, gradient, value, squared_norm):
    label = -math.copysign(1.0, gradient)
    return bounded(label * state.weight[()]) if gradient != 0.0 and label * value <= 0.0 else 0.0
