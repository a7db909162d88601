"""AdaGrad with diagonal matrices: a rate for each coordinate, over the norm of its gradients so far.

Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic optimization (JMLR 2011), Figure 1
with diagonal matrices:

    w_i <- w_i - eta g_i / sqrt(sum g_i^2)    with g_i = g x_i.

The rate is in units of ``scale.margin``. Steps are relative to the slopes, so the bound on these is not used. A first
weight is eta in size whatever the scale of the feature, so the learner is not invariant to it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import LARGEST, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import matters, outputs, predict, records, traits, update
from tunefree.learners.plain import plain_weights, write_margins


# The first step is as long however small the slope is. Where large margins cancel, or a margin of a hinge is large
# enough, that slope is a rounding error.
@traits(rate="eta", well_conditioned=False, can_replay=True, even=("norms",), odd=("weights",), halved=("weights",))
@plain_weights
class AdaGrad(NamedTuple):
    """Gradient descent whose rate for each coordinate is eta over the norm of its gradients so far.

    Its setting is ``eta``, by default 0.5.
    """

    features: np.ndarray  # (d,) records, in place:
    #   seen       1 once the feature has been seen, else 0
    coordinates: np.ndarray  # (d, K) records, in place:
    #   weights    w_i
    #   norms      sqrt(sum g_i^2); of squares the range of numbers would hold half the exponents
    outputs: Any  # what to loop over, see contract.outputs
    margin: np.ndarray  # () scale.margin of the latest round, in place
    eta: float  # in units of scale.margin

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, eta: float = 0.5) -> AdaGrad:
        """A learner that has seen nothing."""
        statistics = records(("seen",), ("weights", "norms"), n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), np.zeros(()), eta)

    def blank(self, n_features: int, n_outputs: int) -> AdaGrad:
        return self.create(n_features, n_outputs)


@predict.register(AdaGrad)
def predict_adagrad(state, x, scale, margins):
    state.margin[()] = scale.margin
    write_margins(state, x, margins)


@update.register(AdaGrad)
def update_adagrad(state, x, gradient, curvature):
    rate = state.eta * state.margin[()]
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            descend(state, j, x_j, gradient, rate)


@compiled.inline
def descend(state, j, x_j, gradient, rate):
    """A step of each weight of a feature."""
    if squares_fit(state, j, x_j, gradient):
        for k in range(len(state.outputs)):
            own, steep = state.coordinates[j, k], gradient[k] * x_j
            step(own, steep, math.sqrt(own.norms * own.norms + steep * steep), rate)
    else:
        for k in range(len(state.outputs)):
            own, steep = state.coordinates[j, k], min(max(gradient[k] * x_j, -LARGEST), LARGEST)
            step(own, steep, min(math.hypot(own.norms, steep), LARGEST), rate)


@compiled.inline
def step(own, steep, norm, rate):
    """w_i <- w_i - eta g_i / sqrt(sum g_i^2), with the norm that includes g_i; nothing where it is 0."""
    own.norms = norm
    own.weights = bounded(own.weights - (rate * (steep / norm) if norm > 0.0 else 0.0))


@compiled.inline
def squares_fit(state, j, x_j, gradient):
    """Whether no square leaves the range of numbers that would matter: the slow function is for those only."""
    fit = True
    for k in range(len(state.outputs)):
        longest = max(state.coordinates[j, k].norms, abs(gradient[k] * x_j))
        fit &= longest < 1e140 and (longest > 1e-140 or longest == 0.0)
    return fit
