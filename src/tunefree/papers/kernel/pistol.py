"""PiSTOL in a kernel's space.

Orabona: Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014),
Algorithm 3.

    f_t = g_{t-1} (b / alpha_{t-1}) exp(||g_{t-1}||^2 / (2 alpha_{t-1}))
    g_t = g_{t-1} - s_t k(x_t, .),   alpha_t = alpha_{t-1} + a |s_t| ||k(x_t, .)||,   alpha_0 = a L

One value g_{t-1}(x_t) gives both the prediction and the norm, ||g_t||^2 = ||g_{t-1}||^2 - 2 s_t g_{t-1}(x_t) +
s_t^2 k(x_t, x_t). The paper assumes k(x, x) <= 1; here M = max bound_t ||k(x_t, .)|| takes the place of L, as for the
linear learner (:mod:`tunefree.learners.pistol`), and slopes come divided by the loss's Lipschitz constant: a and b are
the paper's a / L and b / L.

The paper's experiments set b = sqrt(2 a L T) for T rounds. Where T is not known b grows as sqrt(2 a L t): that only
multiplies f_t by a slowly growing number.
"""

from __future__ import annotations

import math

from tunefree.core.fields import per_output, setting, single
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.learners.pistol import factor_of
from tunefree.papers.kernel.contract import KernelLearner


class KernelPiSTOL(KernelLearner):
    """PiSTOL (Algorithm 3), a copy for each output; the defaults are the paper's in its experiments, where L = 2."""

    norms = per_output("||g||^2")
    slopes = per_output("sum of |s| ||k(x, .)||")
    largest = single("M")
    first = single("M after the first row that was learned; 0 before it")
    rounds = single("t")
    margin = single("scale.margin of the latest round", start=1.0)
    a = setting(0.125, "the theory asks for at least 2.25")
    b = setting(0.0, "in units of scale.margin; 0 for one that grows with the rounds")

    def begin_round(state, squared_norm, scale):
        state.margin[0] = scale.margin
        if scale.weight > 0.0:
            state.rounds[0] += 1.0
            size = min(scale.slope * math.sqrt(squared_norm), CEILING)
            if state.largest[0] == 0.0:
                state.first[0] = size
            state.largest[0] = max(state.largest[0], size)

    def factor(state, k):
        return factor_of(state, k)

    def coefficient(state, k, gradient, value, squared_norm):
        change = gradient * (gradient * squared_norm - 2.0 * value)
        state.norms[k] = min(max(state.norms[k] + change, 0.0), LARGEST)
        state.slopes[k] = min(state.slopes[k] + abs(gradient) * math.sqrt(squared_norm), CEILING)
        return bounded(-gradient)
