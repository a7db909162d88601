"""The perceptron: a step only after a mistake.

Rosenblatt: The perceptron (Psychological Review 1958), as Orabona: Simultaneous model selection and optimization
through parameter-free stochastic learning (NIPS 2014) has it, Algorithm 2 with the linear kernel.

A learner does not see the label. It is the sign of minus the slope, for every loss that does not increase with a margin
of the right sign (all for classification but the square loss). A margin of 0 is a mistake. Several outputs are as many
perceptrons, each for one class against all others. A mistake in a round of weight h moves w by h y x, as the
loss of the round is h max(0, -y w.x).
"""

from __future__ import annotations

import math

from tunefree.core.fields import per_output, single
from tunefree.core.numbers import bounded
from tunefree.learners.contract import Traits
from tunefree.learners.plain import PlainLearner, write_margins


class Perceptron(PlainLearner):
    """The perceptron, for classification only; it has no settings.

    The classes it predicts do not depend on the scale of the data as a whole.
    """

    margins = per_output("margins of the latest row", is_saved=False)
    weight = single("weight of the latest row", is_saved=False)
    traits = Traits(classifies_only=True, margins_are_log_odds=False)

    def predict(state, row, scale, margins):
        write_margins(state, row, margins)
        state.weight[0] = scale.weight
        for k in range(len(margins)):
            state.margins[k] = margins[k]

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            for k in range(len(gradient)):
                label = -math.copysign(1.0, gradient[k])
                if gradient[k] != 0.0 and label * state.margins[k] <= 0.0:
                    state.weights[j, k] = bounded(state.weights[j, k] + bounded(label * state.weight[0] * value))
