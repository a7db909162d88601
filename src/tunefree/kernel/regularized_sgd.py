"""Stochastic gradient descent on the regularised loss in a kernel's space, with decreasing rates.

Nitanda, Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors
(AISTATS 2019), Algorithm 1, which minimises the expected loss plus (lambda / 2) ||f||^2:

    f_{t+1} = (1 - eta_t lambda) f_t - eta_t s_t k(x_t, .),   eta_t = 2 / (lambda (gamma + t))

with the average of f_1 .. f_{T+1} weighted by gamma + t - 1. Other sequences of rates and penalties are those of
:mod:`tunefree.kernel.online_regularized`.

The theory asks for bounded slopes. Those of the square and the exponential loss are bounded in a ball, onto which f is
projected after each step, as the paper suggests. Without a radius given it is sqrt(2 l(0) / lambda), which loses
nothing: the regularised loss of f = 0 is l(0), and that of a longer f is larger. For the exponential loss it is at most
3 / sup ||k(x, .)||, since its slopes and its smoothness are the exponential of the largest |f(x)|.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.kernel.contract import (
    PerOutput,
    Single,
    begin_round,
    coefficient,
    factor,
    share,
    share_to_come,
    small_factors,
    with_kernel_bound,
)
from tunefree.learners.contract import Traits
from tunefree.learners.gradient import stride_of
from tunefree.losses import curvature
from tunefree.losses import value as loss_of_prediction
from tunefree.theory.sgd_rates import least_offset

TUNED, BY_THEOREM = -1.0, 0.0  # offsets that are found on the first rows
LEAST_OFFSET = 3.0  # no rate is then above half of 1 / lambda
SMALLEST = math.log(1e2)  # a factor of which minus the logarithm is larger goes into the coefficients
FARTHEST = 3.0  # |f(x)| in the ball of the exponential loss
LONGEST_STEP = 10.0  # radii: what is left of f by a longer one is next to nothing, and numbers stay in their range


class RegularizedKernelSGD(NamedTuple):
    """Stochastic gradient descent on the regularised loss, with rates 2 / (lambda (gamma + t))."""

    stride: Single  # what a gradient of 1 stands for, of the latest round, in place
    weight: Single  # of the latest row, in place
    rounds: Single  # t of the latest round, in place
    decay: PerOutput  # minus the logarithm of the product of 1 - eta_t lambda and of projections so far, in place
    squares: PerOutput  # ||f_t||^2, in place
    penalty: float  # lambda; after with_kernel_bound, over the Lipschitz constant of the loss
    offset: float  # gamma, at least 3, so that no rate is above half of 1 / lambda; or see TUNED, BY_THEOREM
    radius: float  # of the ball onto which f is projected; 0 for none, or before with_kernel_bound for a default

    @classmethod
    def create(
        cls, n_outputs: int = 1, penalty: float = 1e-3, offset: float = BY_THEOREM, radius: float = 0.0
    ) -> RegularizedKernelSGD:
        """A learner that has seen nothing."""
        if not (penalty > 0.0 and (offset >= LEAST_OFFSET or offset in (TUNED, BY_THEOREM)) and radius >= 0.0):
            raise ModelError(
                "the penalty must be above 0, the offset at least 3 (or 0 for the theorem's, -1 for a tuned one) and"
                f" the radius at least 0, not {penalty}, {offset} and {radius}"
            )
        stride, weight, rounds = (np.zeros(()) for _ in range(3))
        decay, squares = np.zeros(n_outputs), np.zeros(n_outputs)
        return cls(stride, weight, rounds, decay, squares, penalty, offset, radius)


# the ball bounds slopes where the loss does not
RegularizedKernelSGD.traits = Traits(takes_slopes_as_they_come=True)  # type: ignore[attr-defined]


def kept(state):
    """1 - eta_t lambda, of the present round."""
    return 1.0 - 2.0 / (state.offset + state.rounds[()])


@begin_round.register(RegularizedKernelSGD)
def begin_round_regularized(state, squared_norm, scale):
    if scale.weight > 0.0:
        state.stride[()] = scale.margin if state.radius > 0.0 else stride_of(scale)
        state.weight[()] = scale.weight
        state.rounds[()] += 1.0


@factor.register(RegularizedKernelSGD)
def factor_regularized(state, k):
    return math.exp(-state.decay[k])


@share.register(RegularizedKernelSGD)
def share_regularized(state):
    return state.offset + state.rounds[()] - 1.0


@share_to_come.register(RegularizedKernelSGD)
def share_of_the_last(state):
    """gamma + T, with the weight of the latest row."""
    return (state.offset + state.rounds[()]) * state.weight[()]


@coefficient.register(RegularizedKernelSGD)
def coefficient_regularized(state, k, gradient, value, squared_norm):
    rate = bounded(2.0 / (state.penalty * (state.offset + state.rounds[()])))
    before = math.exp(-state.decay[k])
    step, size = bounded(-rate * state.stride[()] * gradient), math.sqrt(squared_norm)
    if state.radius > 0.0 and size > 0.0:
        longest = LONGEST_STEP * state.radius / size
        step = min(max(step, -longest), longest)
    left = kept(state)
    inner = bounded(2.0 * left * bounded(before * value)) * step
    state.squares[k] = min(max(left * left * state.squares[k] + inner + (step * size) ** 2, 0.0), LARGEST)
    scaled_step = bounded(step / (before * left))
    state.decay[k] -= math.log(left)
    if state.radius > 0.0 and state.squares[k] > state.radius**2:  # the projection
        state.decay[k] += 0.5 * math.log(state.squares[k]) - math.log(state.radius)
        state.squares[k] = state.radius**2
    return scaled_step


@with_kernel_bound.register(RegularizedKernelSGD)
def with_kernel_bound_regularized(state, objective, largest, average):
    """Set lambda in units of the slopes, gamma, and the radius."""
    loss = objective.loss
    lipschitz = getattr(loss, "lipschitz", 1.0)  # 1 for the multinomial loss
    is_of_classes, radius, offset = objective.task == "classification", state.radius, state.offset
    bend, reach = objective.smoothness if is_of_classes else math.inf, math.sqrt(largest)
    if lipschitz == math.inf and is_of_classes:
        lossless = math.sqrt(2.0 * loss_of_prediction(loss, 1.0, 0.0) / state.penalty)
        radius = radius or (lossless if bend < math.inf else min(lossless, FARTHEST / reach))
        bend = min(bend, curvature(loss, 1.0, -radius * reach))
    if offset == BY_THEOREM:
        offset = TUNED if bend == math.inf else least_offset(state.penalty, min(bend * largest, CEILING), average)
        offset = min(offset, CEILING)
    units = lipschitz if lipschitz < math.inf else 1.0
    return state._replace(penalty=state.penalty / units, offset=offset, radius=radius)


@small_factors.register(RegularizedKernelSGD)
def small_factors_regularized(state):
    if state.decay.max() <= SMALLEST:
        return None
    factors = np.exp(-state.decay)
    state.decay[:] = 0.0
    return factors
