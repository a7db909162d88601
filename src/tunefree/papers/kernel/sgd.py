"""Stochastic gradient descent in a kernel's space, with a fixed rate.

Orabona 2014 (see :mod:`tunefree.papers.kernel.pistol`), Algorithm 1, averaged stochastic gradient descent:

    f_{t+1} = f_t - eta s_t k(x_t, .)          (printed with the sign of the negative slope)

Its bound (3) is for the square loss of classes, eta up to 1/4 and k(x, x) <= 1. Slopes of losses with a Lipschitz
constant are divided by it.
"""

from __future__ import annotations

from tunefree.core.fields import setting, single
from tunefree.core.numbers import bounded
from tunefree.learners.contract import Traits
from tunefree.papers.kernel.contract import KernelLearner
from tunefree.papers.learners.gradient import stride_of


class KernelSGD(KernelLearner):
    """Stochastic gradient descent with a fixed rate; its average is Algorithm 1 of Orabona 2014."""

    stride = single("see stride_of, of the latest round")
    eta = setting(1.0, "in units of scale.margin")
    traits = Traits(takes_slopes_as_they_come=True)

    def begin_round(state, squared_norm, scale):
        state.stride[0] = stride_of(scale)

    def coefficient(state, k, gradient, value, squared_norm):
        return bounded(-state.eta[0] * state.stride[0] * gradient)
