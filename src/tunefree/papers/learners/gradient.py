"""Online gradient descent, w <- w - eta_t g x with eta_t = eta / sqrt(t).

Zinkevich: Online convex programming and generalized infinitesimal gradient ascent (ICML 2003). Somebody has to choose
its rate; the learners without rates are compared with it.

Rates are in units of ``scale.margin``, and slopes relative to the Lipschitz constant of the loss. Where a loss of
classes has none, as the square loss, slopes are taken as they come. Of numbers they are relative to the steepest so
far, and clipped there. It is not invariant to the scale of the features. Weights and steps stop at the ceiling, where
gradient descent diverges.
"""

from __future__ import annotations

import math

from tunefree.core.fields import setting, single
from tunefree.core.numbers import CEILING, bounded
from tunefree.learners.adagrad import PlainLearner, write_margins
from tunefree.learners.contract import Traits


class GradientDescent(PlainLearner):
    """Online gradient descent with the rate eta / sqrt(t) in round t.

    Its setting is ``eta``, the first rate, by default 1.
    """

    rounds = single("t")
    stride = single("see stride_of, of the latest round")
    eta = setting(1.0, "first rate, in units of scale.margin")
    traits = Traits(rate="eta", takes_slopes_as_they_come=True)

    def predict(state, row, scale, margins):
        state.stride[0] = stride_of(scale)
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        state.rounds[0] += 1.0
        rate = state.eta[0] / math.sqrt(state.rounds[0]) * state.stride[0]
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                for k in range(len(gradient)):
                    step = bounded(bounded(rate * gradient[k]) * value)
                    state.weights[j, k] = bounded(state.weights[j, k] - step)


def stride_of(scale):
    """The step, in units of the margin, that a slope of 1 stands for: over the bound on slopes of unweighted rows.

    Slopes that nothing bounds are steps as they are.
    """
    if scale.slope >= CEILING * scale.weight:
        return scale.margin
    return bounded(scale.weight / scale.slope) * scale.margin if scale.slope > 0.0 else 0.0
