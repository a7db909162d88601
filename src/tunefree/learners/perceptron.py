"""The perceptron: a step only after a mistake.

Rosenblatt: The perceptron (Psychological Review 1958), as Orabona: Simultaneous model selection and optimization
through parameter-free stochastic learning (NIPS 2014) has it, Algorithm 2 with the linear kernel.

A learner is not told the label. It is the sign of minus the slope, for every loss that does not increase with a margin
of the right sign (all for classification but the square loss). A margin of 0 is a mistake. Several outputs are as many
perceptrons, each for one class against all others. A mistake in a round of weight h moves w by h y x, as the
loss of the round is h max(0, -y w.x).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.coordinates import row_of_outputs
from tunefree.core.numbers import bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import outputs, predict, records, traits, update
from tunefree.learners.plain import plain_weights, write_margins


@traits(classifies_only=True, margins_are_log_odds=False)
@plain_weights
class Perceptron(NamedTuple):
    """The perceptron, for classification only; it has no settings.

    The classes it predicts do not depend on the scale of the data as a whole.
    """

    features: np.ndarray  # (d,) records, in place:
    #   seen       1 once the feature has been seen, else 0
    coordinates: np.ndarray  # (d, K) records, in place:
    #   weights    w_i
    outputs: Any  # what to loop over, see contract.outputs
    margins: np.ndarray  # (1, K) of the latest row, in place
    weight: np.ndarray  # () of the latest row, in place

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1) -> Perceptron:
        """A learner that has seen nothing."""
        statistics = records(("seen",), ("weights",), n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), row_of_outputs(n_outputs), np.zeros(()))

    def blank(self, n_features: int, n_outputs: int) -> Perceptron:
        return self.create(n_features, n_outputs)


@predict.register(Perceptron)
def predict_perceptron(state, x, scale, margins):
    write_margins(state, x, margins)
    state.weight[()] = scale.weight
    for k in range(len(state.outputs)):
        state.margins[0, k] = margins[k]


@update.register(Perceptron)
def update_perceptron(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        for k in range(len(state.outputs)):
            own, label = state.coordinates[j, k], -math.copysign(1.0, gradient[k])
            if gradient[k] != 0.0 and label * state.margins[0, k] <= 0.0:
                own.weights = bounded(own.weights + bounded(label * state.weight[()] * x_j))
