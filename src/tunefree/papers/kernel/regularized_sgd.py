"""Stochastic gradient descent on the regularised loss in a kernel's space, with decreasing rates.

Nitanda, Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors
(AISTATS 2019), Algorithm 1, which minimises the expected loss plus (lambda / 2) ||f||^2:

    f_{t+1} = (1 - eta_t lambda) f_t - eta_t s_t k(x_t, .),   eta_t = 2 / (lambda (gamma + t))

with the average of f_1 .. f_{T+1} weighted by gamma + t - 1. Other sequences of rates and penalties are those of
:mod:`tunefree.papers.kernel.online_regularized`.

The theory asks for bounded slopes. Those of the square and the exponential loss are bounded in a ball, onto which f is
projected after each step, as the paper suggests. Without a radius given it is sqrt(2 l(0) / lambda), which loses
nothing: the regularised loss of f = 0 is l(0), and that of a longer f is larger. For the exponential loss it is at most
3 / sup ||k(x, .)||, since its slopes and its smoothness are the exponential of the largest |f(x)|.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import per_output, setting, single
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.learners.contract import Traits
from tunefree.papers.kernel.contract import KernelLearner, factors_of
from tunefree.papers.learners.gradient import stride_of

TUNED, BY_THEOREM = -1.0, 0.0  # offsets that are chosen on the first rows
FIRST_RATES = tuple(4.0**exponent for exponent in range(-3, 4))  # of candidates, over the largest k(x, x)
LEAST_OFFSET = 3.0  # no rate is then above half of 1 / lambda
FARTHEST = 3.0  # |f(x)| in the ball of the exponential loss
LONGEST_STEP = 10.0  # radii: what is left of f by a longer one is next to nothing, and numbers stay in their range


def least_offset(regularization: float, smoothness: float, averaged: bool = False) -> float:
    """Least gamma that the theorems allow: eta_1 <= min(1 / (L + lambda), 1 / (2 lambda)), with 1 / L if averaged.

    Parameters
    ----------
    regularization, smoothness : float
        lambda and L.
    averaged : bool, default False
        Whether the average of the iterates is used (Theorem 2).

    Examples
    --------
    >>> round(least_offset(0.01, smoothness=0.25), 9), round(least_offset(0.01, smoothness=0.25, averaged=True), 9)
    (51.0, 49.0)
    """
    if not (0.0 < regularization < math.inf and 0.0 < smoothness < math.inf):
        raise ValueError(f"lambda and L must be numbers above 0, not {regularization} and {smoothness}")
    steep = smoothness if averaged else smoothness + regularization
    return max(2.0 * steep / regularization, 4.0) - 1.0


def candidate_offsets(penalty: float, largest: float) -> list[float]:
    """Candidates for gamma, 2 / (lambda eta_1) - 1 for each first rate eta_1, at least what the theorems allow.

    Nitanda and Suzuki tune gamma on 1000 iterations. Here first rates are powers of four over the largest k(x, x).

    Examples
    --------
    >>> candidate_offsets(0.1, 1.0)
    [3.0, 4.0, 19.0, 79.0, 319.0, 1279.0]
    """
    distinct = {max(2.0 * largest / (penalty * rate) - 1.0, LEAST_OFFSET) for rate in FIRST_RATES}
    return sorted(min(offset, CEILING) for offset in distinct)


class RegularizedKernelSGD(KernelLearner):
    """Stochastic gradient descent on the regularised loss, with rates 2 / (lambda (gamma + t))."""

    stride = single("what a gradient of 1 stands for, of the latest round")
    weight = single("of the latest row")
    rounds = single("t of the latest round")
    decay = per_output("minus the logarithm of the product of 1 - eta_t lambda and of projections so far")
    squares = per_output("||f_t||^2")
    penalty = setting(1e-3, "lambda; after with_kernel_bound, over the Lipschitz constant of the loss")
    offset = setting(BY_THEOREM, "gamma, at least 3, so that no rate is above half of 1 / lambda; TUNED or BY_THEOREM")
    radius = setting(0.0, "of the ball onto which f is projected; 0 for none, before with_kernel_bound for a default")
    traits = Traits(takes_slopes_as_they_come=True)  # the ball bounds slopes where the loss does not

    def __init__(self, n_features: int, n_outputs: int = 1, **settings: float) -> None:
        super().__init__(n_features, n_outputs, **settings)
        penalty, offset, radius = (self.settings[name] for name in ("penalty", "offset", "radius"))
        if not (penalty > 0.0 and (offset >= LEAST_OFFSET or offset in (TUNED, BY_THEOREM)) and radius >= 0.0):
            raise ModelError(
                "the penalty must be above 0, the offset at least 3 (or 0 for the theorem's, -1 for a tuned one) and"
                f" the radius at least 0, not {penalty}, {offset} and {radius}"
            )

    def begin_round(state, squared_norm, scale):
        if scale.weight > 0.0:
            state.stride[0] = scale.margin if state.radius[0] > 0.0 else stride_of(scale)
            state.weight[0] = scale.weight
            state.rounds[0] += 1.0

    def factor(state, k):
        return math.exp(-state.decay[k])

    def share(state):
        return state.offset[0] + state.rounds[0] - 1.0

    def share_to_come(self) -> float:
        """gamma + T, with the weight of the latest row."""
        return float((self.offset[0] + self.rounds[0]) * self.weight[0])

    def coefficient(state, k, gradient, value, squared_norm):
        rate = bounded(2.0 / (state.penalty[0] * (state.offset[0] + state.rounds[0])))
        before, radius = math.exp(-state.decay[k]), state.radius[0]
        step, size = bounded(-rate * state.stride[0] * gradient), math.sqrt(squared_norm)
        if radius > 0.0 and size > 0.0:
            longest = LONGEST_STEP * radius / size
            step = min(max(step, -longest), longest)
        left = 1.0 - 2.0 / (state.offset[0] + state.rounds[0])  # 1 - eta_t lambda
        inner = bounded(2.0 * left * bounded(before * value)) * step
        state.squares[k] = min(max(left * left * state.squares[k] + inner + (step * size) ** 2, 0.0), LARGEST)
        scaled_step = bounded(step / (before * left))
        state.decay[k] -= math.log(left)
        if radius > 0.0 and state.squares[k] > radius**2:  # the projection
            state.decay[k] += 0.5 * math.log(state.squares[k]) - math.log(radius)
            state.squares[k] = radius**2
        return scaled_step

    def with_kernel_bound(self, objective: Any, largest: float, is_averaged: bool) -> Self:
        """Set lambda in units of the slopes, gamma, and the radius."""
        loss, settings = objective.loss, self.settings
        penalty, offset, radius = (settings[name] for name in ("penalty", "offset", "radius"))
        lipschitz = getattr(loss, "lipschitz", 1.0)  # 1 for the multinomial loss
        is_of_classes, reach = objective.task == "classification", math.sqrt(largest)
        bend = objective.smoothness if is_of_classes else math.inf
        if lipschitz == math.inf and is_of_classes:
            lossless = math.sqrt(2.0 * loss.value(1.0, 0.0) / penalty)
            radius = radius or (lossless if bend < math.inf else min(lossless, FARTHEST / reach))
            bend = min(bend, loss.curvature(1.0, -radius * reach))
        if offset == BY_THEOREM:
            offset = TUNED  # for a loss that is not smooth
            if bend < math.inf:
                offset = min(least_offset(penalty, min(bend * largest, CEILING), is_averaged), CEILING)
        units = lipschitz if lipschitz < math.inf else 1.0
        return self.with_settings(penalty=penalty / units, offset=offset, radius=radius)

    def take_small_factors(self) -> np.ndarray | None:
        return factors_of(self["decay"])
