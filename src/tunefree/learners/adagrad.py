"""AdaGrad with diagonal matrices: the rate of a coordinate is divided by the norm of its gradients so far.

Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic optimization (JMLR 2011), Figure 1
with diagonal matrices:

    w_i <- w_i - eta g_i / sqrt(sum g_i^2)    with g_i = g x_i.

The rate is in units of ``scale.margin``. Steps do not depend on the scale of the slopes, so the bound on slopes is not
used. The first weight has size eta whatever the scale of the feature, so the learner is not invariant to this scale.
"""

from __future__ import annotations

from tunefree.compiled.prefetching import fetch_line
from tunefree.core.fields import EVEN, ODD, per_coordinate, per_feature, setting, single
from tunefree.core.numbers import LARGEST, bounded, clip, norm
from tunefree.learners.contract import Learner, Traits


class PlainLearner(Learner):
    """A learner whose weights are a field that is up to date in every round."""

    seen = per_feature("1 once the feature has been seen, else 0")
    weights = per_coordinate("w_i")

    def coordinate(state, j, k):
        return state.weights[j, k]

    def magnitude(state, j):
        return state.seen[j]


def write_margins(state, row, margins):
    """The margins of plain weights; marks the features of the row as seen."""
    for e in range(len(row.indices)):
        if row.values[e] != 0.0:
            state.seen[row.indices[e]] = 1.0
    for k in range(len(margins)):
        margins[k] = 0.0
    for e in range(len(row.indices)):
        j, value = row.indices[e], row.values[e]
        if len(margins) == 1 or value != 0.0:
            for k in range(len(margins)):
                margins[k] += bounded(state.weights[j, k] * value)
    for k in range(len(margins)):
        margins[k] = bounded(margins[k])


class AdaGrad(PlainLearner):
    """Gradient descent whose rate for each coordinate is eta over the norm of its gradients so far."""

    weights = per_coordinate("w_i", parity=ODD, is_halved=True)
    norms = per_coordinate(
        "sqrt(sum g_i^2); of squares the range of numbers would hold half the exponents", parity=EVEN
    )
    margin = single("scale.margin of the latest round")
    eta = setting(0.5, "rate, in units of scale.margin")
    traits = Traits(rate="eta", can_replay=True)

    def predict(state, row, scale, margins):
        state.margin[0] = scale.margin
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        rate = state.eta[0] * state.margin[0]
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if len(gradient) == 1 or value != 0.0:
                for k in range(len(gradient)):
                    slope = clip(gradient[k] * value, LARGEST)
                    length = norm(state.norms[j, k], slope)  # with g_i included
                    step = rate * (slope / length) if length > 0.0 else 0.0
                    state.weights[j, k] = bounded(state.weights[j, k] - step)
                    state.norms[j, k] = length

    def fetch(state, j):
        fetch_line(state.weights, 2, j)
